//! Termination conditions.

pub mod loop_detector;
pub mod stop;

pub(crate) mod verdict;
