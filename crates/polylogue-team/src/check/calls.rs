//! Services over HTTP: their tools have names of their own and can be called.

use std::collections::{BTreeSet, HashSet};

use polylogue_tools::http::Call;

use crate::built_in::{FILES, known_tool_names};
use crate::calls::ApiDocument;
use crate::codes;
use crate::diagnostic::Report;
use crate::source::Span;
use crate::suggest;
use crate::team::Team;
use crate::vars;

const UNUSED: &str = "name it among the `tools` of an agent, or leave it out";

/// Reports calls that cannot be built, tools with the same name, and unused calls.
pub(super) fn check_built(team: &Team, report: &mut Report<'_>) {
    let mut names: HashSet<String> = known_tool_names().collect();
    names.insert(FILES.to_owned());
    names.extend(team.commands.iter().map(|command| command.name.clone()));
    let mut take = |name: &str, at: &Span, report: &mut Report<'_>| {
        if !names.insert(name.to_owned()) {
            report.error(at, format!("a tool `{name}` already exists"));
        }
    };
    for call in &team.calls {
        take(&call.name, &call.span, report);
        if let Err(error) = Call::check(call) {
            report.error(&call.span, error.to_string());
        } else if !team.names_tool(&call.name) {
            report.warning(
                codes::UNUSED,
                &call.span,
                format!("no agent has the call `{}`", call.name),
                UNUSED,
            );
        }
    }
    for (name, service) in &team.openapi {
        if !vars::is_name(name) {
            report.error_with_hint(
                service.key(),
                format!("no service can be called `{name}`"),
                vars::NAME_HINT,
            );
        }
        check_keys(service, report);
        take(name, &service.span, report);
        // One operation may have the name of its service.
        let operations = service.operations.iter().filter(|one| one.name != *name);
        operations.for_each(|one| take(&one.name, &service.span, report));
        let is_used = |name: &str| team.names_tool(name);
        if !is_used(name) && !service.operations.iter().any(|one| is_used(&one.name)) {
            report.warning(
                codes::UNUSED,
                service.key(),
                format!("no agent has the service `{name}`"),
                UNUSED,
            );
        }
    }
}

/// Reports keys that would be sent nowhere.
fn check_keys(document: &ApiDocument, report: &mut Report<'_>) {
    let schemes: BTreeSet<&str> =
        document.operations.iter().flat_map(|one| one.credentials.keys()).map(String::as_str).collect();
    if let Some(key) = document.key.as_ref().filter(|_| schemes.is_empty()) {
        let hint = "leave out `key`, or add `security` and `securitySchemes` to the document";
        report.error_with_hint(&key.span, "the document does not say how a key is sent", hint);
    }
    for (name, variable) in document.keys.iter().filter(|(name, _)| !schemes.contains(name.as_str())) {
        let message = format!("no operation asks for the security scheme `{name}`");
        report.error_with_hint(variable.key(), message, suggest::hint(name, schemes.iter().copied()));
    }
}
