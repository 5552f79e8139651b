//! Usage by agent, chat, model and purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use polylogue_core::{
    Body, CacheSavings, ChargeReason, Event, Money, Name, Path, TotalUsage, UncertainUsage,
};
use serde::Serialize;

/// The usage of one agent with one model for one purpose in one chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The chat.
    pub at: Path,
    /// The agent.
    pub who: Name,
    /// The model, as `provider:model`.
    pub model: Arc<str>,
    /// The purpose.
    pub purpose: Purpose,
    /// The usage.
    pub spent: TotalUsage,
}

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn in the chat of the report.
    Speaking,
    /// A private turn, such as speaker selection or a summary, in any chat, and all within that turn.
    Private,
    /// A turn in a nested chat.
    Nested,
}

/// Calls, tokens and cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Model calls.
    pub calls: u64,
    /// Input and output tokens, where known.
    pub tokens: u64,
    /// Cost, where known.
    pub cost: Money,
}

impl Figures {
    /// The usage without replies from a cache.
    #[must_use]
    pub const fn excluding_cached(spent: &TotalUsage) -> Self {
        Self { calls: spent.calls, tokens: spent.tokens(), cost: spent.cost }
    }

    /// The usage as it would be without a cache of replies.
    #[must_use]
    pub fn including_cached(spent: &TotalUsage) -> Self {
        let saved = spent.saved;
        Self {
            calls: spent.calls + saved.calls,
            tokens: spent.tokens() + saved.tokens,
            cost: spent.cost + saved.cost,
        }
    }
}

/// The sum of rows.
pub(super) fn total<'r>(rows: impl IntoIterator<Item = &'r Row>) -> TotalUsage {
    rows.into_iter().fold(TotalUsage::default(), |sum, Row { spent, .. }| TotalUsage {
        calls: sum.calls + spent.calls,
        input: sum.input + spent.input,
        output: sum.output + spent.output,
        unmetered: sum.unmetered + spent.unmetered,
        cost: sum.cost + spent.cost,
        unpriced: sum.unpriced + spent.unpriced,
        saved: CacheSavings {
            calls: sum.saved.calls + spent.saved.calls,
            tokens: sum.saved.tokens + spent.saved.tokens,
            cost: sum.saved.cost + spent.saved.cost,
        },
        uncertain: UncertainUsage {
            calls: sum.uncertain.calls + spent.uncertain.calls,
            tokens: sum.uncertain.tokens + spent.uncertain.tokens,
            cost: sum.uncertain.cost + spent.uncertain.cost,
        },
    })
}

type Key = (Path, Name, Arc<str>, Purpose);

/// Aggregates usage while events are read.
pub(super) struct UsageTable {
    at: Path,
    rows: BTreeMap<Key, TotalUsage>,
    /// The open private turns.
    private_turns: BTreeSet<(Path, Name)>,
}

impl UsageTable {
    /// An empty table for the chat `at`.
    pub(super) const fn of(at: Path) -> Self {
        Self { at, rows: BTreeMap::new(), private_turns: BTreeSet::new() }
    }

    pub(super) fn read(&mut self, event: &Event) {
        self.follow(event);
        if let Body::ModelReplied(sample) = &event.body {
            let (at, who) = (event.at.clone(), sample.who.clone());
            let purpose = self.purpose(&at, &who);
            self.rows.entry((at, who, Arc::clone(&sample.model), purpose)).or_default().add(sample);
        }
        if let Body::Charged(charge) = &event.body
            && charge.why != ChargeReason::Repeated
        {
            let (at, who) = (event.at.clone(), charge.who.clone());
            let purpose = self.purpose(&at, &who);
            self.rows.entry((at, who, Arc::clone(&charge.model), purpose)).or_default().charge(charge);
        }
        if let Body::ToolReturned { who, outcome, .. } = &event.body {
            for used in &outcome.used {
                let purpose = self.purpose(&event.at, who);
                let key = (event.at.clone(), who.clone(), Arc::clone(&used.model), purpose);
                self.rows.entry(key).or_default().add_tool(used);
            }
        }
    }

    /// Tracks open turns and which of them are private.
    pub(super) fn follow(&mut self, event: &Event) {
        let at = &event.at;
        match &event.body {
            Body::TurnStarted { turns: requests } => {
                for request in requests {
                    let turn = (at.clone(), request.who.clone());
                    if request.to.is_private() {
                        self.private_turns.insert(turn)
                    } else {
                        self.private_turns.remove(&turn)
                    };
                }
            }
            Body::Message(polylogue_core::Message { from: who, .. })
            | Body::Passed { who }
            | Body::Left { who, .. }
            | Body::Stopped { who, .. } => {
                self.private_turns.remove(&(at.clone(), who.clone()));
            }
            _ => {}
        }
    }

    fn purpose(&self, at: &Path, who: &Name) -> Purpose {
        let within = |turn: &(Path, Name)| {
            let (chat, speaker) = turn;
            (chat == at && speaker == who) || runs(chat, speaker, at)
        };
        match (self.private_turns.iter().any(within), *at == self.at) {
            (true, _) => Purpose::Private,
            (false, true) => Purpose::Speaking,
            (false, false) => Purpose::Nested,
        }
    }

    pub(super) fn into_rows(self) -> Vec<Row> {
        let row = |((at, who, model, purpose), spent)| Row { at, who, model, purpose, spent };
        self.rows.into_iter().map(row).collect()
    }
}

/// Whether the chat `at` is within a turn of `who` in `chat`.
fn runs(chat: &Path, who: &Name, at: &Path) -> bool {
    let rest = at.as_str().strip_prefix(chat.as_str()).and_then(|rest| rest.strip_prefix('/'));
    rest.and_then(|rest| rest.strip_prefix(who.as_str())).is_some_and(|rest| rest.starts_with('.'))
}
