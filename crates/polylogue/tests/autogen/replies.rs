//! The reply chain: items 18 to 26.
