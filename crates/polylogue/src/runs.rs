//! Whole runs: what goes into them, what came of them, and thousands of them.

pub mod batch;
pub mod carry;
pub mod report;
