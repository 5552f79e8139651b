//! What a whole run may consume.

use std::sync::Arc;

use crate::{Money, Reason, Spent};

/// What a whole run may consume, nested chats included. Checked before every turn and every model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Turns of agents in all chats. What is said aside is no turn, and neither is that of a chat within a chat.
    pub turns: Option<u64>,
    /// Model calls.
    pub calls: u64,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Money>,
    /// Chats within chats.
    pub depth: usize,
}

impl Default for Limits {
    /// 1,000 model calls, chats 8 deep, and any number of turns, tokens and money.
    fn default() -> Self {
        Self { turns: None, calls: 1_000, tokens: None, cost: None, depth: 8 }
    }
}

impl Limits {
    /// The limit that is met, if one is.
    pub(crate) fn exceeded(&self, spent: &Spent, unpriced: Option<&Arc<str>>) -> Option<Reason> {
        if spent.calls + spent.saved.calls >= self.calls {
            return Some(Reason::Calls { limit: self.calls });
        }
        if let Some(limit) = self.cost {
            if spent.cost >= limit {
                return Some(Reason::Cost { limit, spent: spent.cost });
            }
            if let Some(model) = unpriced {
                return Some(Reason::Unpriced { model: Arc::clone(model) });
            }
        }
        let limit = self.tokens?;
        let used = spent.tokens();
        (used >= limit).then_some(Reason::Tokens { limit, used })
    }
}
