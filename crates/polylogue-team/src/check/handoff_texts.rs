//! Prompts that name handoffs which the agent does not have.

use polylogue::policies::handoff::Handoff;
use polylogue_core::Name;

use super::approval::Tools;
use super::sentence;
use crate::agent::{Agent, ModelKeys};
use crate::codes;
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::suggest;
use crate::team::Team;

/// What prompts write for any name.
const PLACEHOLDERS: [&str; 7] = ["name", "agent", "agent_name", "participant", "target", "x", "xxx"];

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    for agent in outline.agents() {
        if let Some(keys) = agent.model().filter(|keys| keys.system.ok && keys.handoffs.ok) {
            warn_of_missing(team, agent, keys, outline, report);
        }
    }
}

/// Warns of the first `transfer_to_NAME` in the system message for which the agent has neither a handoff nor another tool.
fn warn_of_missing(
    team: &Team,
    agent: &Agent,
    keys: &ModelKeys,
    outline: &Outline<'_>,
    report: &mut Report<'_>,
) {
    let text = keys.system.fill("");
    let (mut at, mut tools) = (0, None);
    for (index, after) in text.split(Handoff::PREFIX).enumerate() {
        let begin = at;
        at += after.len() + Handoff::PREFIX.len();
        let own = || keys.handoffs.iter().map(|target| &target.value);
        let is_own = own().any(|name| begins(after, name.as_str()) || begins(after, &name.tool_name("")));
        if index == 0 || is_own || report.full_of_warnings() {
            continue;
        }
        let word: String = after.chars().take_while(|next| is_in_name(*next)).collect();
        let mut others = outline.participants().iter().map(|other| other.name().as_str());
        let meant = others.find(|name| begins(after, name));
        let meant = meant.or_else(|| suggest::closest(&word, own().map(Name::as_str)));
        let before = sentence::before(&text, begin.saturating_sub(Handoff::PREFIX.len()));
        if meant.is_none() && (is_placeholder(&word) || sentence::is_negated(before)) {
            continue;
        }
        let tool = format!("{}{word}", Handoff::PREFIX);
        let hint = match meant {
            Some(meant) if own().any(|name| name.as_str() == meant) => {
                format!("did you mean `{}{meant}`?", Handoff::PREFIX)
            }
            Some(meant) => format!("add `{meant}` to its `handoffs`"),
            None => {
                let tools = tools.get_or_insert_with(|| Tools::of(team, agent));
                let is_suggested = keys.suggests_tools.iter().any(|own| *own.value == tool);
                if tools.open || is_suggested || tools.names.contains(&tool) {
                    continue;
                }
                let names = outline.participants().iter().map(|other| other.name().as_str());
                format!("no participant is called `{word}`: {}", suggest::there_are(names))
            }
        };
        let message = format!("`{}` is prompted to call `{tool}`, which it does not have", agent.name);
        report.warning(codes::UNKNOWN_TOOL, &keys.system.span, message, hint);
        return;
    }
}

/// Whether `text` begins with the whole `name`.
fn begins(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_in_name))
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// Whether a prompt means any name: `NAME`, or nothing that a name begins with.
fn is_placeholder(word: &str) -> bool {
    !word.chars().any(char::is_lowercase) || PLACEHOLDERS.contains(&word)
}
