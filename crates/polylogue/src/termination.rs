//! When it is over.

pub mod loop_detector;
pub mod stop;

pub(crate) mod verdict;
