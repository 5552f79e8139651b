//! The person's answer to a request for approval.

use polylogue_core::{Name, StopReason};

use super::exact;
use crate::code_block::blocks;

/// The decision.
pub(crate) enum Verdict {
    Run,
    /// Run this instead.
    Edited(String),
    /// Do not run it; with the reason, if given.
    Rejected(String),
}

/// The possible answers, at the end of a question; `instead` says how to give a replacement.
pub(crate) fn choices(instead: &str) -> String {
    format!(
        "`yes` runs it; `no`, with a reason if you like, rejects it; {instead}; `exit` ends the conversation."
    )
}

/// A question whether `text` may run, with the complete text after `lead`.
pub(crate) fn asked(lead: &str, text: &str, choices: &str) -> String {
    let lines = text.lines().count();
    let size = if lines > LONG { format!(" ({lines} lines, all of them shown)") } else { String::new() };
    format!("{lead}{size}:\n\n{}\n\n{choices}", exact(text))
}

/// From so many lines on, the question says how many: the first ones may be off the screen.
const LONG: usize = 20;

/// Sent before a repeated question.
pub(super) const UNCLEAR: &str = "That was none of the answers below. ";

/// The verdict in `answer` for the agent `me`, or a request to end the chat; `None` if unclear.
pub(super) fn read(answer: &str, me: &Name) -> Option<Result<Verdict, StopReason>> {
    let answer = answer.trim();
    if let Some(edited) = blocks(answer).into_iter().next() {
        return Some(Ok(Verdict::Edited(edited.code)));
    }
    let (word, rest) = answer.split_at(answer.find(|c: char| !c.is_alphabetic()).unwrap_or(answer.len()));
    let rest = rest.trim_start_matches([',', ':', '.', ';', '-', ' ', '\t', '\n']).trim();
    // Only the words of the question, case-insensitive.
    match word.to_lowercase().as_str() {
        "yes" if rest.is_empty() => Some(Ok(Verdict::Run)),
        "exit" if rest.is_empty() => {
            Some(Err(StopReason::Left { who: me.clone(), why: "said `exit`".into() }))
        }
        "no" => Some(Ok(Verdict::Rejected(rest.to_owned()))),
        _ => None,
    }
}

/// The message about a rejection: `The code was not run: it was rejected.`, and the reason.
pub(crate) fn rejected(what: &str, why: &str) -> String {
    format!("{what}: it was rejected. {why}").trim_end().to_owned()
}
