//! Tasks: what agents solve, alone, by talking or in roles, and judge themselves.

pub mod society;
pub mod solve;
pub mod task;
