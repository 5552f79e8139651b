//! Conversations among language-model agents, tools and people.

pub mod circles;
pub mod order;
pub mod stop;

mod assistant;
mod function;
mod human;
mod memory;

pub use assistant::Assistant;
pub use circles::Circles;
pub use function::Function;
pub use human::Human;
pub use memory::GetHistory;
pub use order::{all_at_once, in_turn, once_each, reflected, summed_up, until};
pub use polylogue_core::*;
pub use stop::Stop;
