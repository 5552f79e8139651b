//! Batches of runs, and reports.

pub mod batch;
pub mod report;
