//! Batches of runs, and reports.

pub mod batch;
pub mod report;

pub use batch::Batch;
pub use report::Report;
