//! Graphs with fan-out and join.
