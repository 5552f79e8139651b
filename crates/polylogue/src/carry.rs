//! What a chat takes with it from those before.
