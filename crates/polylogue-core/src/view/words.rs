//! What of a message is told to whom, and the words that stand where nobody's do.

use serde_json::Value;

use crate::{CallOutcome, Entry, Name, Part};

/// Is the first message of a view that would be empty. Providers that need a user message first are sent it before a
/// leading message of the agent, too.
pub const BEGIN: &str = "Begin.";
/// Is the last message of a view that would end with the agent's own words. Providers that need alternating roles are sent it
/// between two messages of the agent, too.
pub const GO_ON: &str = "Go on.";
/// Asks for the rest of a reply that was cut off at the limit on tokens.
pub(crate) const CONTINUE: &str = "Your last message was cut off. Continue it exactly where it stops: repeat nothing of it, and \
                                   say nothing about this request.";
/// Stands for what the window left out, where no opening does.
pub(super) const LEFT_OUT: &str = "(What was said before is left out.)";

/// What may be sent of `parts`: no thoughts, no notes, nothing blank, no value whose JSON stands there as a text, calls last.
pub(super) fn spoken(parts: &[Part]) -> Vec<Part> {
    let stands = |value: &Value| {
        let json = value.to_string();
        parts.iter().any(|part| matches!(part, Part::Text(text) if **text == *json))
    };
    let sent = |part: &&Part| match part {
        Part::Thought(_) | Part::Note(_) | Part::Cut(_) => false,
        Part::Data(value) => !stands(value),
        part => !part.is_blank(),
    };
    let mut sent: Vec<Part> = parts.iter().filter(sent).cloned().collect();
    sent.shrink_to_fit();
    sent.sort_by_key(|part| matches!(part, Part::Call(_)));
    sent
}

/// Calls and outcomes in messages as text, for agents that did not make the calls. An outcome that `is_known`, because the view
/// has it as the result of its call, is left out.
pub(super) fn told(parts: Vec<Part>, is_known: impl Fn(&CallOutcome) -> bool) -> Vec<Part> {
    let tell = |part| match part {
        Part::Call(call) => vec![Part::text(format!("(calls `{}` with {})", call.tool, call.args))],
        Part::Outcome(answer) if is_known(&answer) => Vec::new(),
        Part::Outcome(CallOutcome { tool, outcome, .. }) => {
            let (words, rest): (Vec<Part>, Vec<Part>) =
                outcome.told().into_iter().partition(|part| matches!(part, Part::Text(_) | Part::Data(_)));
            let words: Vec<String> = words.iter().map(in_words).collect();
            let words = Part::text(format!("(`{tool}` returned: {})", words.join("\n\n")));
            let rest = rest.into_iter().filter(|part| !matches!(part, Part::Outcome(_)));
            std::iter::once(words).chain(rest).collect()
        }
        part => vec![part],
    };
    // Nearly all messages are words alone.
    if parts.iter().any(|part| matches!(part, Part::Call(_) | Part::Outcome(_))) {
        parts.into_iter().flat_map(tell).collect()
    } else {
        parts
    }
}

/// `entry` without calls: a call is something said, and what came of it something heard.
pub(super) fn worded(entry: Entry) -> Entry {
    match entry {
        Entry::Assistant { parts } => Entry::Assistant { parts: told(parts, |_| false) },
        Entry::Tool { id, tool, outcome } => {
            // Told as others are told, whoever asked.
            let answer = CallOutcome { to: Name::user(), id, tool, outcome };
            Entry::User { parts: told(vec![Part::Outcome(answer)], |_| false) }
        }
        entry => entry,
    }
}

/// A text as it is, a value as JSON.
fn in_words(part: &Part) -> String {
    match part {
        Part::Text(text) => text.as_ref().to_owned(),
        Part::Data(value) => value.to_string(),
        _ => String::new(),
    }
}
