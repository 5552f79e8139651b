//! The question to the person: who speaks to whom, and what Enter and `exit` do.

use polylogue_core::{Call, Name, StopReason, Turn};

use crate::tools::approval::exact;

/// Why the person is asked.
pub(super) enum Occasion {
    /// The chat has no messages.
    First,
    /// It is their turn.
    Turn,
    /// The limit on automatic replies is reached.
    Limit(u64),
    /// The last message terminates the conversation.
    End(StopReason),
}

/// The question. `silent` is whether an empty answer sends no message.
pub(super) fn question(
    turn: &Turn<'_>,
    occasion: &Occasion,
    calls: &[(Name, Call)],
    silent: bool,
    clears: bool,
) -> String {
    let automatic = if silent { "Enter says nothing" } else { "Enter gives an automatic reply" };
    let (situation, keys) = match occasion {
        Occasion::End(_) => (
            situation(turn, occasion),
            "Type a reply to go on; Enter or `exit` ends the conversation.".into(),
        ),
        _ => (situation(turn, occasion), format!("Type a reply. {automatic}, `exit` ends the conversation.")),
    };
    let prompt_text = turn.request().prompt.as_ref().map(|prompt| prompt.to_string());
    let clear =
        clears.then(|| "`clear history`, with a name or a number, puts what was said out of sight.".into());
    let sentences = [prompt_text, Some(situation), interrupts(calls), Some(keys), clear];
    let text = sentences.into_iter().flatten().collect::<Vec<String>>().join(" ");
    let shown = calls.iter().map(|(_, call)| exact(&format!("{} {:#}", call.tool, call.args)));
    std::iter::once(text).chain(shown).collect::<Vec<String>>().join("\n\n")
}

fn situation(turn: &Turn<'_>, occasion: &Occasion) -> String {
    let me = turn.me();
    let to = turn
        .last_message()
        .map_or_else(|| "the others".to_owned(), |line| format!("`{}`", line.message.from));
    match occasion {
        Occasion::First => format!("You speak as `{me}`, and nobody has said anything yet."),
        Occasion::Turn => format!("You speak as `{me}` to {to}."),
        Occasion::Limit(0) => format!("You speak as `{me}`, which never replies by itself, to {to}."),
        Occasion::Limit(limit) => {
            let times = if *limit == 1 { "once".to_owned() } else { format!("{limit} times in a row") };
            format!("You speak as `{me}`, which replied by itself {times}, to {to}.")
        }
        Occasion::End(_) => format!("You speak as `{me}`; {to} ended the conversation."),
    }
}

/// What a reply does to open calls.
fn interrupts(calls: &[(Name, Call)]) -> Option<String> {
    let (who, _) = calls.first()?;
    let tools: Vec<String> = calls.iter().map(|(_, call)| format!("`{}`", call.tool)).collect();
    Some(format!("`{who}` waits for {}: a reply takes the place of running it.", tools.join(", ")))
}
