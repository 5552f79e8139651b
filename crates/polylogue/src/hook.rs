//! Hooks around a model and around what an agent says.
