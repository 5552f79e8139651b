//! Two-agent basics: items 1 to 17.
