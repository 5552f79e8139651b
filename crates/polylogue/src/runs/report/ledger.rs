//! Usage by agent, chat, model and purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use polylogue_core::{Body, CallPurpose, Event, Name, Path, TotalUsage};
use serde::Serialize;

/// The usage of one agent with one model for one purpose in one chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The chat.
    pub chat: Path,
    /// The agent.
    pub who: Name,
    /// The model, as `provider:model`.
    pub model: Arc<str>,
    /// The purpose.
    pub purpose: Purpose,
    /// The usage.
    pub usage: TotalUsage,
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
    /// A summary of an agent's older history, in any chat.
    Compaction,
}

/// The sum of rows.
pub(super) fn total<'r>(rows: impl IntoIterator<Item = &'r Row>) -> TotalUsage {
    rows.into_iter().fold(TotalUsage::default(), |mut sum, Row { usage, .. }| {
        sum.merge(usage);
        sum
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
        if let Body::ModelReplied(reply) = &event.body {
            let (at, who) = (event.chat.clone(), reply.who.clone());
            let purpose = match reply.purpose {
                CallPurpose::Turn => self.purpose(&at, &who),
                CallPurpose::Compaction => Purpose::Compaction,
            };
            self.rows.entry((at, who, Arc::clone(&reply.model), purpose)).or_default().add(reply);
        }
        if let Body::Charged(charge) = &event.body
            && charge.counts()
        {
            let (at, who) = (event.chat.clone(), charge.who.clone());
            let purpose = self.purpose(&at, &who);
            self.rows.entry((at, who, Arc::clone(&charge.model), purpose)).or_default().charge(charge);
        }
        if let Body::ToolReturned { who, result: outcome, .. } = &event.body {
            for used in &outcome.used {
                let purpose = self.purpose(&event.chat, who);
                let key = (event.chat.clone(), who.clone(), Arc::clone(&used.model), purpose);
                self.rows.entry(key).or_default().add_tool(used);
            }
        }
    }

    /// Tracks open turns and which of them are private.
    pub(super) fn follow(&mut self, event: &Event) {
        let at = &event.chat;
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
        let row = |((at, who, model, purpose), usage)| Row { chat: at, who, model, purpose, usage };
        self.rows.into_iter().map(row).collect()
    }
}

/// Whether the chat `at` is within a turn of `who` in `chat`. A background task is in no turn.
fn runs(chat: &Path, who: &Name, at: &Path) -> bool {
    if at.as_background_of(chat).is_some() {
        return false;
    }
    let rest = at.as_str().strip_prefix(chat.as_str()).and_then(|rest| rest.strip_prefix('/'));
    rest.and_then(|rest| rest.strip_prefix(who.as_str())).is_some_and(|rest| rest.starts_with('.'))
}
