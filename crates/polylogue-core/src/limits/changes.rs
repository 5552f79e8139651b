//! How limits differ from earlier ones, in words.

use std::sync::Arc;

use super::{ChatLimits, LimitOverrides, Limits, OnLimit};
use crate::data::in_units;

impl Limits {
    /// What is different in `after`, one text for each limit, such as `model calls from 5 to 12`.
    pub(crate) fn changes_to(&self, after: &Self) -> Vec<Arc<str>> {
        let number = |number: u64| number.to_string();
        let word = |at_limit: OnLimit| if at_limit == OnLimit::Ask { "ask" } else { "stop" };
        let (chat, chat_after) = (&self.chat, &after.chat);
        let changes = [
            change("turns", self.turns, after.turns, number),
            change("turns of the chat", chat.turns, chat_after.turns, number),
            change("messages of the chat", chat.messages, chat_after.messages, number),
            change("model calls", Some(self.max_calls()), Some(after.max_calls()), number),
            change("tokens", self.tokens, after.tokens, number),
            change("tokens of the chat", chat.tokens, chat_after.tokens, number),
            change("money", self.cost, after.cost, |cost| cost.to_string()),
            change("money of the chat", chat.cost, chat_after.cost, |cost| cost.to_string()),
            change("running time", self.time_ms, after.time_ms, time),
            change("tokens of a reply", self.reply_tokens, after.reply_tokens, number),
            change("`on_limit`", Some(self.on_limit), Some(after.on_limit), |at| word(at).to_owned()),
        ];
        changes.into_iter().flatten().collect()
    }

    /// The same where these `totals` apply.
    pub(crate) fn changes_by(&self, totals: LimitOverrides) -> Vec<Arc<str>> {
        self.changes_to(&totals.apply_to(*self))
    }
}

impl ChatLimits {
    /// These limits, where they are set, and at least what was `raised`.
    pub(crate) fn raised_to(self, raised: &Self) -> Self {
        Self {
            turns: self.turns.map(|limit| limit.max(raised.turns.unwrap_or_default())),
            messages: self.messages.map(|limit| limit.max(raised.messages.unwrap_or_default())),
            tokens: self.tokens.map(|limit| limit.max(raised.tokens.unwrap_or_default())),
            cost: self.cost.map(|limit| limit.max(raised.cost.unwrap_or_default())),
        }
    }
}

fn change<T: Copy + PartialEq>(
    what: &str,
    before: Option<T>,
    after: Option<T>,
    shown: impl Fn(T) -> String,
) -> Option<Arc<str>> {
    let after = after.filter(|_| before != after).map(&shown)?;
    let before = before.map_or_else(|| "none".to_owned(), shown);
    Some(format!("{what} from {before} to {after}").into())
}

/// A time in whole units, or in tenths of a second.
fn time(ms: u64) -> String {
    match ms % 1000 {
        0 => in_units(ms),
        rest => format!("{}.{} s", ms / 1000, rest / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Money;

    #[test]
    fn each_limit_that_differs_is_named_with_both_values() {
        let chat = ChatLimits { turns: Some(9), messages: Some(20), ..ChatLimits::default() };
        let before = Limits { calls: Some(5), time_ms: Some(60_000), chat, ..Limits::default() };
        let totals = LimitOverrides {
            calls: Some(12),
            cost: Some(Money::dollars(0.5)),
            time_ms: Some(90_350),
            on_limit: Some(OnLimit::Ask),
            ..LimitOverrides::default()
        };
        let texts = |changes: Vec<Arc<str>>| changes.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expected = [
            "model calls from 5 to 12",
            "money from none to $0.50",
            "running time from 1 min to 90.3 s",
            "`on_limit` from stop to ask",
        ];
        assert_eq!(texts(before.changes_by(totals)), expected);
        let raised = ChatLimits { turns: Some(13), messages: Some(15), ..ChatLimits::default() };
        let changes = before.changes_to(&Limits { chat: chat.raised_to(&raised), ..before });
        assert_eq!(texts(changes), ["turns of the chat from 9 to 13"]);
        assert!(before.changes_to(&before).is_empty());
    }
}
