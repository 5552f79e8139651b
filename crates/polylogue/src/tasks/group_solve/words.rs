//! What larger groups are told.

use polylogue_core::Name;

/// Who gives the tasks and calls on the speakers of a group of three or more.
pub(super) const MANAGER: &str = "TaskManager";

/// What `who` is told before all else.
pub(super) fn role_play(who: &Name, everybody: &[Name]) -> String {
    let others: Vec<&str> = everybody.iter().filter(|name| *name != who).map(Name::as_str).collect();
    format!(
        "{MANAGER}: This is a conversation of several speakers, and you play one of them: you are `{who}`. The others are \
         {}. Every message begins with the name of who speaks, as in `name: message`; I am `{MANAGER}`. I tell everybody \
         their main task and whose turn it is. When it is yours, speak only as `{who}`, without your name before it, and \
         never in the place of somebody else. Is that clear?",
        others.join(", ")
    )
}

/// What `who` remembers to have answered.
pub(super) fn acknowledged(who: &Name) -> String {
    format!("I am {who}, and I speak only as {who}. I am ready for my task.")
}

/// How a task is given, for everybody to hear.
pub(super) fn main_task(who: &Name, prompt: &str) -> String {
    format!("{who}: this is your main task: `{prompt}`")
}

/// How somebody is called on, for everybody to hear.
pub(super) fn your_turn(who: &Name) -> String {
    format!("{who}, it's your turn to speak now.")
}

/// What a member of a larger group is asked in private.
pub(super) fn in_private(question: &str) -> String {
    format!("{MANAGER}: {question}")
}
