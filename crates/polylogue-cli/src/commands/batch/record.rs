//! What is kept of a row.

use std::collections::BTreeMap;
use std::sync::Arc;

use polylogue::runs::Report;
use polylogue::runs::batch::BatchResult;
use polylogue::{Message, Status};
use polylogue_core::text::enumerated;
use polylogue_core::{
    Body, CacheSavings, Event, FinishReason, Money, Part, PromptCache, StopReason, TotalUsage,
};
use polylogue_team::Row;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::screen::RunState;

/// How the conversation of a row ended, and why.
pub(crate) struct RowEnd {
    pub(crate) state: RunState,
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
}

impl RowEnd {
    pub(crate) fn closed(reason: &StopReason) -> Self {
        Self { state: RunState::of(reason), reason: reason.to_string(), hint: None }
    }

    pub(crate) fn waiting<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self { state: RunState::Waiting, reason: format!("waiting for {}", enumerated(names)), hint: None }
    }

    pub(crate) fn failed(why: String) -> Self {
        Self { state: RunState::Failed, reason: why, hint: None }
    }
}

/// A line of the output. It tells nothing of times and places, so that the same rows have the same lines.
#[derive(Debug, Serialize)]
pub(crate) struct Record<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    vars: &'a BTreeMap<String, String>,
    pub(crate) state: RunState,
    pub(crate) reason: String,
    /// How to fix what failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// A text, or the value of a structured reply.
    summary: Value,
    /// Why the summary is cut off: `length` or `filter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<FinishReason>,
    calls: u64,
    /// Why the maximum computed before the run no longer applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bound_ended: Option<String>,
    /// Read and written; unknown when those of a call are.
    tokens: Option<u64>,
    /// What was read of these.
    input: Option<u64>,
    /// Dollars; unknown when that of a call is.
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache: Option<CacheRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<SavedRecord>,
    messages: Vec<RecordMessage>,
    /// Such as the task as a specifier made it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    private_messages: Vec<RecordMessage>,
    /// The conversation, for `show` and `resume`.
    conversation: &'a str,
    /// Tells teams apart.
    team: &'a str,
    #[serde(skip)]
    pub(crate) usage: TotalUsage,
}

/// How prompt caches of providers were used, with money in dollars.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct CacheRecord {
    /// Input tokens that were read from a cache.
    read: u64,
    /// Input tokens that were written to a cache.
    written: u64,
    /// What the calls cost that used a cache, where that is known with and without it.
    cost: f64,
    /// What the same calls would have cost without it.
    uncached: f64,
}

impl CacheRecord {
    /// The record of `cache`, if it was used.
    pub(crate) fn of(cache: &PromptCache) -> Option<Self> {
        let PromptCache { read, written, cost, uncached } = *cache;
        let (cost, uncached) = (cost.as_dollars(), uncached.as_dollars());
        (!cache.is_unused()).then_some(Self { read, written, cost, uncached })
    }
}

impl From<CacheRecord> for PromptCache {
    fn from(CacheRecord { read, written, cost, uncached }: CacheRecord) -> Self {
        Self { read, written, cost: Money::dollars(cost), uncached: Money::dollars(uncached) }
    }
}

/// What a cache of replies saved, with money in dollars.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct SavedRecord {
    /// Calls whose reply was taken from it.
    calls: u64,
    /// Their tokens.
    tokens: u64,
    /// What they would have cost, where that is known.
    cost: f64,
}

impl SavedRecord {
    /// The record of `saved`, if anything was.
    pub(crate) fn of(saved: &CacheSavings) -> Option<Self> {
        let CacheSavings { calls, tokens, cost } = *saved;
        (!saved.is_nothing()).then(|| Self { calls, tokens, cost: cost.as_dollars() })
    }
}

impl From<SavedRecord> for CacheSavings {
    fn from(SavedRecord { calls, tokens, cost }: SavedRecord) -> Self {
        Self { calls, tokens, cost: Money::dollars(cost) }
    }
}

#[derive(Debug, Serialize)]
struct RecordMessage {
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The value of a structured reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<FinishReason>,
}

impl<'a> Record<'a> {
    pub(crate) fn of(ended: &'a BatchResult<Row>, conversation: &'a str, team: &'a str) -> Self {
        let ending = match &ended.status {
            Ok(Status::Closed { reason, .. }) => RowEnd::closed(reason),
            Ok(Status::Waiting(questions)) => {
                RowEnd::waiting(questions.iter().map(|(_, question)| question.who.as_str()))
            }
            Ok(Status::Cancelled) => RowEnd::failed("stopped".into()),
            Err(error) => RowEnd { hint: error.hint(), ..RowEnd::failed(error.to_string()) },
        };
        let bound_ended = ended.bound_exception.map(|why| why.to_string());
        Self { bound_ended, ..Self::new(&ended.item, ending, &ended.events, (conversation, team)) }
    }

    /// The record of a row with these events.
    pub(crate) fn new(
        row: &'a Row,
        ending: RowEnd,
        events: &[Arc<Event>],
        (conversation, team): (&'a str, &'a str),
    ) -> Self {
        let report = Report::of_all_runs(events);
        let RowEnd { state, reason, hint } = ending;
        let usage = report.usage;
        let is_metered = usage.unmetered == 0;
        Self {
            id: &row.id,
            task: row.task.as_deref(),
            vars: &row.vars,
            state,
            reason,
            hint,
            summary: summary(&report),
            cut: report.cut,
            calls: usage.calls,
            bound_ended: None,
            tokens: is_metered.then(|| usage.tokens()),
            input: is_metered.then_some(usage.input),
            cost: (usage.unpriced == 0).then(|| usage.cost.as_dollars()),
            prompt_cache: CacheRecord::of(&usage.prompt_cache).filter(|_| is_metered),
            saved: SavedRecord::of(&usage.saved),
            messages: report.messages.iter().map(RecordMessage::of).collect(),
            private_messages: events
                .iter()
                .filter_map(|event| private_message(event))
                .map(RecordMessage::of)
                .collect(),
            conversation,
            team,
            usage,
        }
    }
}

/// The result: the value of the message that the summary repeats, if that is structured.
fn summary(report: &Report) -> Value {
    let is_it = |message: &&Message| *message.to_text() == *report.summary;
    let value = report.messages.iter().rev().find(is_it).and_then(data);
    value.cloned().unwrap_or_else(|| Value::from(&*report.summary))
}

/// The value of a message whose text says nothing else.
fn data(message: &Message) -> Option<&Value> {
    let text = message.text();
    let is_said = |value: &&Value| {
        text.trim().is_empty() || serde_json::from_str::<Value>(&text).is_ok_and(|said| said == **value)
    };
    let mut values = message.parts.iter().filter_map(|part| match part {
        Part::Data(value) => Some(value),
        _ => None,
    });
    values.next().filter(is_said).filter(|_| values.next().is_none())
}

/// The message of a private turn in the outermost chat.
fn private_message(event: &Event) -> Option<&Message> {
    match &event.body {
        Body::Message(message) if event.chat.is_root() && message.to.is_private() => Some(message),
        _ => None,
    }
}

impl RecordMessage {
    fn of(message: &Message) -> Self {
        let data = data(message).cloned();
        let text = data.is_none().then(|| message.to_text().into_owned());
        Self { from: message.from.to_string(), text, data, cut: message.cut() }
    }
}
