//! Joining a room later, and leaving it.
