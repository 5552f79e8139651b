//! Whole runs: thousands of them, and what came of each.

pub mod batch;
pub mod report;
