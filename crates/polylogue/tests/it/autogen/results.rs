//! Termination and results: items 38 to 47.

mod cost;
mod reasons;
mod summaries;
