//! Tasks: prompts that agents solve alone, in a group, or in two roles.

pub mod group_solve;
pub mod role_play;
pub mod task;
