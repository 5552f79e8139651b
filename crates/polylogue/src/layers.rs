//! Layers around agents: other ways to reply, and hooks on what is read and said.

pub mod aggregate;
pub mod answer_timeout;
pub mod background_turns;
pub mod code;
pub mod executor;
pub mod hook;
pub mod human_input;
pub mod nested;
pub mod parse;
pub mod reply;

pub use answer_timeout::AnswerTimeout;
pub use background_turns::BackgroundTurns;
pub use code::Coder;
pub use executor::Executor;
pub use human_input::HumanInput;
pub use nested::{Nested, OuterContext};
pub use reply::Stack;
