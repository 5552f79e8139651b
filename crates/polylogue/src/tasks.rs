//! Tasks: what agents solve, alone, by talking or in roles, and judge themselves.

pub mod group_solve;
pub mod role_play;
pub mod task;
