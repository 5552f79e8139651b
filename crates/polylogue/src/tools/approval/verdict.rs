//! What a person says who is asked before something is done.

use polylogue_core::{Name, StopReason};

use super::exact;
use crate::code::blocks;

/// What a person makes of it.
pub(crate) enum Verdict {
    Run,
    /// This in its place.
    Edited(String),
    /// It is not to be run, and why, if that was said.
    Rejected(String),
}

/// What can be answered, told at the end of a question; `instead` says what is done in its place, and how it is given.
pub(crate) fn choices(instead: &str) -> String {
    format!(
        "`yes` runs it; `no`, with a reason if you like, rejects it; {instead}; `exit` ends the conversation."
    )
}

/// A question whether `text` may run, which shows all of it: `lead` ends before what is shown.
pub(crate) fn asked(lead: &str, text: &str, choices: &str) -> String {
    let lines = text.lines().count();
    let size = if lines > LONG { format!(" ({lines} lines, all of them shown)") } else { String::new() };
    format!("{lead}{size}:\n\n{}\n\n{choices}", exact(text))
}

/// From so many lines on, their number is said: the beginning may be off the screen.
const LONG: usize = 20;

/// Told before a question that was asked before.
pub(super) const UNCLEAR: &str = "That was none of the answers below. ";

/// What `answer` comes to, for the agent `me`: a verdict, or that the chat is to end; nothing if it is unclear.
pub(super) fn read(answer: &str, me: &Name) -> Option<Result<Verdict, StopReason>> {
    let answer = answer.trim();
    if let Some(edited) = blocks(answer).into_iter().next() {
        return Some(Ok(Verdict::Edited(edited.code)));
    }
    let (word, rest) = answer.split_at(answer.find(|c: char| !c.is_alphabetic()).unwrap_or(answer.len()));
    let rest = rest.trim_start_matches([',', ':', '.', ';', '-', ' ', '\t', '\n']).trim();
    // The words that the question names, and no others, in any case of letters.
    match word.to_lowercase().as_str() {
        "yes" if rest.is_empty() => Some(Ok(Verdict::Run)),
        "exit" if rest.is_empty() => {
            Some(Err(StopReason::Left { who: me.clone(), why: "said `exit`".into() }))
        }
        "no" => Some(Ok(Verdict::Rejected(rest.to_owned()))),
        _ => None,
    }
}

/// What is told of `what` that was rejected: `The code was not run: it was rejected.`, and why.
pub(crate) fn rejected(what: &str, why: &str) -> String {
    format!("{what}: it was rejected. {why}").trim_end().to_owned()
}
