//! The messages of the manager of larger groups.

use polylogue_core::Name;

/// The manager, which assigns tasks and calls on the speakers of a group of three or more.
pub(super) const MANAGER: &str = "TaskManager";

/// The introduction of `who`.
pub(super) fn role_play(who: &Name, names: &[Name]) -> String {
    let others: Vec<&str> = names.iter().filter(|name| *name != who).map(Name::as_str).collect();
    format!(
        "{MANAGER}: This is a conversation of several speakers, and you play one of them: you are `{who}`. The others are \
         {}. Every message begins with the name of who speaks, as in `name: message`; I am `{MANAGER}`. I tell everybody \
         their main task and whose turn it is. When it is yours, speak only as `{who}`, without your name before it, and \
         never for another speaker. Is that clear?",
        others.join(", ")
    )
}

/// The answer that `who` remembers.
pub(super) fn acknowledged(who: &Name) -> String {
    format!("I am {who}, and I speak only as {who}. I am ready for my task.")
}

/// Assigns a task, visible to all.
pub(super) fn main_task(who: &Name, prompt: &str) -> String {
    format!("{who}: this is your main task: `{prompt}`")
}

/// Calls on a speaker, visible to all.
pub(super) fn your_turn(who: &Name) -> String {
    format!("{who}, it's your turn to speak now.")
}

/// A question in private to a participant of a larger group.
pub(super) fn in_private(question: &str) -> String {
    format!("{MANAGER}: {question}")
}
