//! Tasks: prompts that agents solve alone, in a group, or in two roles.

use polylogue_core::{Chat, Result};

pub mod group_solve;
pub mod role_play;
pub mod task;

pub use group_solve::{EndMode, GroupSolve, GroupSolveResult, History};
pub use role_play::RolePlay;
pub use task::Task;

/// Returns a chat in which agents solve tasks alone, one after the other. The summary is the last answer.
///
/// # Errors
/// When there is no task, the chat's name is illegal, or a task has settings that its agent does not support.
pub fn tasks(name: impl AsRef<str>, tasks: impl IntoIterator<Item = Task>) -> Result<Chat> {
    GroupSolve::alone(tasks).build(name)
}
