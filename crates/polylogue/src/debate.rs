//! Debates that end in a vote.
