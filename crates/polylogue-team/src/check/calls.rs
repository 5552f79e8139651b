//! Services over HTTP: their tools have names of their own, can be called, and hold no secret.

use std::collections::{BTreeSet, HashSet};

use polylogue_core::Tool as _;
use polylogue_tools::http::Call;

use crate::built_in::{FILES, known_tools};
use crate::calls::ApiDocument;
use crate::diagnostic::Report;
use crate::secret::is_secret_header;
use crate::suggest;
use crate::team::Team;
use crate::vars;
use crate::yaml::{Data, Entry, Node};

/// Hides headers that are secret by their names, before a line is shown.
pub(super) fn hide_secrets(root: &Node, report: &mut Report<'_>) {
    for header in secrets(root) {
        report.hide(&header.value.span);
    }
}

/// Headers of calls that are secret, and written out.
fn secrets(root: &Node) -> impl Iterator<Item = &Entry> {
    let headers = root.get("calls").items().iter().flat_map(|call| call.get("headers").entries());
    headers.filter(|header| is_secret_header(&header.key) && !matches!(header.value.data, Data::Map(_)))
}

/// Reports calls that cannot be built, tools with the same name, and unused calls.
pub(super) fn check_built(root: &Node, team: &Team, report: &mut Report<'_>) {
    for header in secrets(root) {
        let hint =
            "put it into the environment: `{env: NAME}`, with `before: \"Bearer \"` if that stands before it";
        report.error_with_hint(&header.value.span, format!("`{}` is a secret", header.key), hint);
    }
    let mut names: HashSet<String> = known_tools().iter().map(|tool| tool.spec().name.clone()).collect();
    names.insert(FILES.to_owned());
    names.extend(team.commands.iter().map(|command| command.name.clone()));
    let mut take = |name: &str, node: &Node, report: &mut Report<'_>| {
        if !names.insert(name.to_owned()) {
            report.error(&node.span, format!("there is a tool `{name}` already"));
        }
    };
    for (call, node) in team.calls.iter().zip(root.get("calls").items()) {
        let at = node.get("name");
        take(&call.name, at, report);
        if let Err(error) = Call::check(call) {
            report.error(&at.span, error.to_string());
        } else if !team.names_tool(&call.name) {
            report.warning(&at.span, format!("no agent has the call `{}`", call.name), UNUSED);
        }
    }
    for Entry { key, key_span, value } in root.get("openapi").entries() {
        let Some(document) = team.openapi.get(key) else { continue };
        if !vars::is_name(key) {
            let hint = "a name begins with a letter, followed by letters, digits, `_` and `-`";
            report.error_with_hint(key_span, format!("no service can be called `{key}`"), hint);
        }
        check_keys(document, value, report);
        take(key, value, report);
        // One operation may have the name of its service.
        document
            .operations
            .iter()
            .filter(|one| one.name != *key)
            .for_each(|one| take(&one.name, value, report));
        let is_used = |name: &str| team.names_tool(name);
        if !is_used(key) && !document.operations.iter().any(|one| is_used(&one.name)) {
            report.warning(key_span, format!("no agent has the service `{key}`"), UNUSED);
        }
    }
}

/// Reports keys that would be sent nowhere.
fn check_keys(document: &ApiDocument, node: &Node, report: &mut Report<'_>) {
    let schemes: BTreeSet<&str> =
        document.operations.iter().flat_map(|one| one.credentials.keys()).map(String::as_str).collect();
    if document.key.is_some() && schemes.is_empty() {
        let hint = "leave out `key`, or add `security` and `securitySchemes` to the document";
        report.error_with_hint(&node.get("key").span, "the document does not say how a key is sent", hint);
    }
    for entry in node.get("keys").entries().iter().filter(|entry| !schemes.contains(entry.key.as_str())) {
        let message = format!("no operation asks for the security scheme `{}`", entry.key);
        report.error_with_hint(&entry.key_span, message, suggest::hint(&entry.key, schemes.iter().copied()));
    }
}

const UNUSED: &str = "name it among the `tools` of an agent, or leave it out";
