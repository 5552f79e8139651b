//! Termination conditions.

pub mod loop_detector;
mod reason;
pub mod stop;

pub(crate) mod verdict;
