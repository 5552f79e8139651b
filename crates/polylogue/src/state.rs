//! What a team knows together.
