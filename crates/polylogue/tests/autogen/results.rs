//! Termination and results: items 38 to 47.
