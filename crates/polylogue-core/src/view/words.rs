//! The text form of messages in views, and texts that fill gaps.

use serde_json::Value;

use super::entry::Entry;
use crate::{ExecutedCall, Name, Part};

/// The first message of a view that would be empty. Providers that need a user message first get it before a leading
/// message of the agent, too.
pub const BEGIN: &str = "Begin.";
/// The last message of a view that would end with the agent's own. Providers that need alternating roles get it
/// between two messages of the agent, too.
pub const CONTINUE: &str = "Continue.";
/// Prompts for the rest of a reply that was truncated at the limit on tokens.
pub(crate) const CONTINUE_CUT_OFF: &str = "Your last message was cut off. Continue it exactly where it stops: repeat nothing of it, and \
                                   say nothing about this request.";
/// Prompts for another reply instead of two that the provider of the model could not parse.
const WRITE_AGAIN: &str = "Your last reply could not be parsed: it had no valid tool call, or no valid JSON. Write it again in the \
                           required form, or reply without calling a tool.";
/// Replaces what the window dropped, if there is no opening.
pub(super) const LEFT_OUT: &str = "(What was said before is left out.)";

/// The prompt for another reply instead of one of these `parts`, with what of it could not be parsed, if the provider says that.
pub(crate) fn write_again(parts: &[Part]) -> String {
    match parts.iter().find_map(Part::as_unparsed) {
        Some(written) => format!("{WRITE_AGAIN} This is what you wrote:\n\n{written}"),
        None => WRITE_AGAIN.to_owned(),
    }
}

/// Whether `text` is such a prompt.
pub(super) fn is_write_again(text: &str) -> bool {
    text.starts_with(WRITE_AGAIN)
}

/// The parts that may be sent: no thoughts, no notes, nothing blank, no value whose JSON is there as text, calls
/// last.
pub(super) fn spoken(parts: &[Part]) -> Vec<Part> {
    let spoken = parts.iter().filter(|part| is_spoken(part, parts));
    // Sized exactly, because it is kept as long as the conversation.
    let mut sent = Vec::with_capacity(spoken.clone().count());
    sent.extend(spoken.cloned());
    calls_last(sent)
}

/// As [`spoken`], without a copy where all of the parts may be sent.
pub(super) fn into_spoken(parts: Vec<Part>) -> Vec<Part> {
    if parts.iter().all(|part| is_spoken(part, &parts)) { calls_last(parts) } else { spoken(&parts) }
}

/// Whether `part` of `parts` may be sent.
pub(super) fn is_spoken(part: &Part, parts: &[Part]) -> bool {
    let stands = |value: &Value| {
        let json = value.to_string();
        parts.iter().any(|part| matches!(part, Part::Text(text) if **text == *json))
    };
    match part {
        Part::Thought(_) | Part::Note(_) | Part::Cut(_) => false,
        Part::Data(value) => !stands(value),
        part => !part.is_blank(),
    }
}

fn calls_last(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by_key(|part| matches!(part, Part::ToolCall(_)));
    parts
}

/// Calls and results in messages as text, for agents that did not make the calls. Omits a result that `is_known`,
/// because the view has it as the result of its call.
pub(super) fn calls_as_text(parts: Vec<Part>, is_known: impl Fn(&ExecutedCall) -> bool) -> Vec<Part> {
    let as_shown = |part| match part {
        Part::ToolCall(call) => vec![Part::text(format!("(calls `{}` with {})", call.tool, call.args))],
        Part::ToolResult(answer) if is_known(&answer) => Vec::new(),
        Part::ToolResult(ExecutedCall { tool, result: outcome, .. }) => {
            let (texts, rest): (Vec<Part>, Vec<Part>) = outcome
                .for_model()
                .into_iter()
                .partition(|part| matches!(part, Part::Text(_) | Part::Data(_)));
            let texts: Vec<String> = texts.iter().map(as_text).collect();
            let texts = Part::text(format!("(`{tool}` returned: {})", texts.join("\n\n")));
            let rest = rest.into_iter().filter(|part| !matches!(part, Part::ToolResult(_)));
            std::iter::once(texts).chain(rest).collect()
        }
        part => vec![part],
    };
    // Nearly all messages are text only.
    if parts.iter().any(|part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_))) {
        parts.into_iter().flat_map(as_shown).collect()
    } else {
        parts
    }
}

/// `entry` without calls: a call becomes own text, and its result a message of others.
pub(super) fn entry_as_text(entry: Entry) -> Entry {
    match entry {
        Entry::Assistant { parts, .. } => Entry::own(calls_as_text(parts, |_| false)),
        Entry::Tool { id, tool, result: outcome } => {
            // In the form for other agents, for every caller.
            let answer = ExecutedCall { to: Name::user(), id, tool, result: outcome };
            Entry::User { parts: calls_as_text(vec![Part::ToolResult(answer)], |_| false) }
        }
        entry => entry,
    }
}

/// A text unchanged, a value as JSON.
fn as_text(part: &Part) -> String {
    match part {
        Part::Text(text) => text.as_ref().to_owned(),
        Part::Data(value) => value.to_string(),
        _ => String::new(),
    }
}
