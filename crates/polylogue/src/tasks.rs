//! Tasks: prompts that agents solve alone, in a group, or in two roles.

pub mod group_solve;
pub mod role_play;
pub mod task;

pub use group_solve::{EndMode, GroupSolve, GroupSolveResult, History};
pub use role_play::RolePlay;
pub use task::Task;
