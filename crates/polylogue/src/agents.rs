//! Who speaks: a model, a person, a function; agents made of agents; agents called without a chat.

pub mod compose;
pub mod reason;
pub mod session;
pub mod tooling;

pub(crate) mod assistant;
pub(crate) mod function;
pub(crate) mod human;
