//! At what the outermost chat ends by itself.

use crate::Money;

/// The turns, messages, tokens and money at which the outermost chat ends by itself. These numbers limit nothing: they say
/// which limits of the chat a person can raise while it is open
/// ([`Instruction::RaiseLimits`](crate::Instruction::RaiseLimits)).
///
/// ```
/// # use polylogue_core::{ChatLimits, Limits, Log};
/// // For a chat that ends after 9 turns.
/// let chat = ChatLimits { turns: Some(9), ..ChatLimits::default() };
/// let log = Log::in_memory().limits(Limits { chat, ..Limits::default() });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChatLimits {
    /// Turns in the chat itself.
    pub turns: Option<u64>,
    /// Messages. More turns are also more messages.
    pub messages: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Money>,
}
