//! The person's answer to a request for approval.

use std::fmt::Write as _;

use polylogue_core::{AnswerChoice, AnswerEffect, InputRequest, Name, QuestionKind, StopReason, ToolCall};

use super::exact;
use crate::code_block::only_block;

/// The decision.
pub(crate) enum Verdict {
    Run,
    /// Run this instead.
    Edited(String),
    /// Do not run it; with the reason, if given.
    Rejected(String),
}

/// A request for approval of `call`, whose `text` shows all that runs.
pub(crate) fn request(text: String, kind: QuestionKind, call: ToolCall) -> InputRequest {
    let choices = [("yes", AnswerEffect::Approve), ("no", AnswerEffect::Reject), ("exit", AnswerEffect::End)];
    let choices = choices.map(|(answer, effect)| AnswerChoice::new(answer, effect));
    InputRequest { call: Some(Box::new(call)), ..InputRequest::new(text, kind, choices) }
}

/// The text of a question whether texts may run, each complete, with its name, after `lead`.
pub(crate) fn asked(lead: &str, texts: &[(String, String)]) -> String {
    let mut question = String::new();
    for (index, (name, text)) in texts.iter().enumerate() {
        let lead = if index == 0 { lead } else { "\n\nand" };
        let lines = text.lines().count();
        let size = if lines > LONG { format!(" ({lines} lines, all of them shown)") } else { String::new() };
        let gap = if name.is_empty() { "" } else { " " };
        let _ = write!(question, "{lead}{gap}{name}{size}:\n\n{}", exact(text));
    }
    question
}

/// From so many lines on, the question says how many: the first ones may be off the screen.
const LONG: usize = 20;

/// Sent before a repeated question.
pub(super) const UNCLEAR: &str = "The answer was unclear. ";

/// The verdict in `answer` for the agent `me`, or a request to end the chat; `None` if unclear. The leading word decides: a
/// rejection can quote what should not run. Code in a block replaces what was asked about only if it is the whole answer.
pub(super) fn read(answer: &str, me: &Name) -> Option<Result<Verdict, StopReason>> {
    let answer = answer.trim();
    let (word, rest) = answer.split_at(answer.find(|c: char| !c.is_alphabetic()).unwrap_or(answer.len()));
    let rest = rest.trim_start_matches([',', ':', '.', ';', '-', ' ', '\t', '\n']).trim();
    // Only the words of the question, case-insensitive.
    match word.to_lowercase().as_str() {
        "yes" if rest.is_empty() => Some(Ok(Verdict::Run)),
        "exit" if rest.is_empty() => {
            Some(Err(StopReason::Left { who: me.clone(), why: "said `exit`".into() }))
        }
        "no" => Some(Ok(Verdict::Rejected(rest.to_owned()))),
        _ => only_block(answer).map(|block| Ok(Verdict::Edited(block.code))),
    }
}

/// The message about a rejection: `The code was not run: it was rejected.`, and the reason.
pub(crate) fn rejected(what: &str, why: &str) -> String {
    format!("{what}: it was rejected. {why}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `answer` is read as.
    fn shown(answer: &str) -> String {
        match read(answer, &Name::user()) {
            Some(Ok(Verdict::Run)) => "run".into(),
            Some(Ok(Verdict::Edited(code))) => format!("run {code}"),
            Some(Ok(Verdict::Rejected(why))) => format!("not, {why}"),
            Some(Err(_)) => "end".into(),
            None => "unclear".into(),
        }
    }

    #[test]
    fn the_leading_word_decides_and_a_block_counts_only_alone() {
        for (answer, expected) in [
            ("yes", "run"),
            (" YES\n", "run"),
            ("no", "not, "),
            ("No, too loud.", "not, too loud."),
            (
                "No. This deletes it:\n\n```sh\nrm -rf build\n```\n",
                "not, This deletes it:\n\n```sh\nrm -rf build\n```",
            ),
            ("no ```sh\nls\n```", "not, ```sh\nls\n```"),
            ("exit", "end"),
            ("exit\n```sh\nls\n```", "unclear"),
            ("yes\n```sh\nls\n```", "unclear"),
            ("Never:\n```sh\nls\n```", "unclear"),
            ("```sh\nls\n```\nNo, do not run that.", "unclear"),
            ("```sh\nls\n```\n\n```sh\nid\n```", "unclear"),
            ("- ```sh\n  ls\n  ```", "unclear"),
            ("```sh\nls\n```", "run ls\n"),
            ("\n~~~~\n~~~\nls\n~~~~ \n\n", "run ~~~\nls\n"),
            ("```sh\nls\n", "unclear"),
            ("```\n```", "unclear"),
            ("", "unclear"),
        ] {
            assert_eq!(shown(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn every_text_is_named_and_shown_in_full() {
        let texts = [
            (String::new(), r#"{"timeout":5}"#.to_owned()),
            ("`code`".to_owned(), "ls\nrm \"x\"".to_owned()),
        ];
        assert_eq!(
            asked("`Ops` calls `shell` with", &texts),
            "`Ops` calls `shell` with:\n\n```\n{\"timeout\":5}\n```\n\nand `code`:\n\n```\nls\nrm \"x\"\n```"
        );
    }
}
