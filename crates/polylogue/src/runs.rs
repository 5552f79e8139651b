//! Batches of runs, workers, and reports.

pub mod batch;
pub mod report;
pub mod worker;

pub use batch::Batch;
pub use report::Report;
pub use worker::Worker;
