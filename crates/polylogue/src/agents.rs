//! Agents: models, people, functions, agents composed of agents, and sessions that call agents without a chat.

pub mod compose;
pub mod reason;
pub mod session;
pub mod tooling;

pub(crate) mod assistant;
pub(crate) mod function;
pub(crate) mod human;
