//! Tools: items 58 to 65.
