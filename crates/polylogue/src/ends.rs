//! When it is over.

pub mod circles;
pub mod stop;

pub(crate) mod verdict;
