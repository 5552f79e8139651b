//! The question to the person: who speaks to whom, and what an empty answer does.

use polylogue_core::{
    AnswerChoice, AnswerEffect, InputRequest, Name, QuestionKind, StopReason, ToolCall, Turn,
};

use crate::tools::approval::exact;

/// Why the person is asked.
pub(super) enum InputReason {
    /// The chat has no messages.
    First,
    /// It is their turn.
    Turn,
    /// The limit on automatic replies is reached.
    Limit(u64),
    /// The last message terminates the conversation.
    End(StopReason),
}

/// The question. `silent` is whether an empty answer sends no message, `clears` whether answers can clear the history.
pub(super) fn question(
    turn: &Turn<'_>,
    input_reason: &InputReason,
    calls: &[(Name, ToolCall)],
    silent: bool,
    clears: bool,
) -> InputRequest {
    let empty = match input_reason {
        InputReason::End(_) => AnswerEffect::End,
        _ if silent => AnswerEffect::NoMessage,
        _ => AnswerEffect::AutomaticReply,
    };
    let situation = situation(turn, input_reason);
    let prompt_text = turn.request().prompt.as_ref().map(|prompt| prompt.to_string());
    let clear =
        clears.then(|| "`clear history`, with a name or a number, hides the earlier messages.".into());
    let sentences = [prompt_text, Some(situation), interrupts(calls), clear];
    let text = sentences.into_iter().flatten().collect::<Vec<String>>().join(" ");
    let shown = calls.iter().map(|(_, call)| exact(&format!("{} {:#}", call.tool, call.args)));
    let text = std::iter::once(text).chain(shown).collect::<Vec<String>>().join("\n\n");
    let choices = [AnswerChoice::new("", empty), AnswerChoice::new("exit", AnswerEffect::End)];
    InputRequest::new(text, QuestionKind::Reply, choices)
}

fn situation(turn: &Turn<'_>, input_reason: &InputReason) -> String {
    let me = turn.me();
    let to = turn
        .last_message()
        .map_or_else(|| "the others".to_owned(), |line| format!("`{}`", line.message.from));
    match input_reason {
        InputReason::First => format!("You speak as `{me}`, and there are no messages yet."),
        InputReason::Turn => format!("You speak as `{me}` to {to}."),
        InputReason::Limit(0) => format!("You speak as `{me}`, which never replies by itself, to {to}."),
        InputReason::Limit(limit) => {
            let times = if *limit == 1 { "once".to_owned() } else { format!("{limit} times in a row") };
            format!("You speak as `{me}`, which replied by itself {times}, to {to}.")
        }
        InputReason::End(_) => format!("You speak as `{me}`; {to} ended the conversation."),
    }
}

/// What a reply does to open calls.
fn interrupts(calls: &[(Name, ToolCall)]) -> Option<String> {
    let (who, _) = calls.first()?;
    let tools: Vec<String> = calls.iter().map(|(_, call)| format!("`{}`", call.tool)).collect();
    Some(format!("`{who}` waits for {}: a reply takes the place of running it.", tools.join(", ")))
}
