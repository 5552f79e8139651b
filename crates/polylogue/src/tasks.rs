//! Tasks: what agents solve, alone or by talking, and judge themselves.

pub mod solve;
pub mod task;
