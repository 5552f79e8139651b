//! Prompts that name handoffs which the agent does not have.

use polylogue::policies::handoff::Handoff;

use crate::agent::{Agent, ModelKeys};
use crate::codes;
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::suggest;

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    for agent in outline.agents() {
        if let Some(keys) = agent.model().filter(|keys| keys.system.ok && keys.handoffs.ok) {
            warn_of_missing(agent, keys, outline, report);
        }
    }
}

/// Warns of the first `transfer_to_NAME` in the system message for which the agent has no handoff. What is neither a participant nor
/// like one of its handoffs may be a tool of another kind, or a placeholder.
fn warn_of_missing(agent: &Agent, keys: &ModelKeys, outline: &Outline<'_>, report: &mut Report<'_>) {
    let text = keys.system.fill("");
    let mentions = |name: &str, after: &str| {
        let rest = after.strip_prefix(name);
        rest.is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '_' | '-'))
        })
    };
    for after in text.split(Handoff::PREFIX).skip(1) {
        let own = || keys.handoffs.iter().map(|target| &target.value);
        let is_own = own().any(|name| mentions(name.as_str(), after) || mentions(&name.tool_name(""), after));
        if is_own || report.full() {
            continue;
        }
        let others = outline.participants().iter().map(|other| other.name().as_str());
        let word: String =
            after.chars().take_while(|next| next.is_alphanumeric() || matches!(next, '_' | '-')).collect();
        let meant = others.clone().find(|name| mentions(name, after));
        let meant = meant.or_else(|| suggest::closest(&word, own().map(polylogue_core::Name::as_str)));
        let Some(meant) = meant else { continue };
        let is_handoff = own().any(|name| name.as_str() == meant);
        let message = format!(
            "`{}` is prompted to call `{}{word}`, which it does not have",
            agent.name,
            Handoff::PREFIX
        );
        let hint = match is_handoff {
            true => format!("did you mean `{}{meant}`?", Handoff::PREFIX),
            false => format!("add `{meant}` to its `handoffs`"),
        };
        report.warning(codes::UNKNOWN_TOOL, &keys.system.span, message, hint);
        return;
    }
}
