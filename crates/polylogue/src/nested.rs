//! A chat within a turn, when something triggers it.
