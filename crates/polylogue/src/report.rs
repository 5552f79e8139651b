//! What came of a run, and what it cost.
