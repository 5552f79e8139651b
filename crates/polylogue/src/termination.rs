//! Termination conditions.

pub(crate) mod loop_detector;
mod reason;
pub mod stop;

pub(crate) mod verdict;
