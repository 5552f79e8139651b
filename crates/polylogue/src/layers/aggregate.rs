//! How a model is sent the conversation, where it is not to be sent it as it is.
//!
//! An aggregator is a hook on what a model is asked: [`Hooked::on_view`](crate::hook::Hooked::on_view) takes these and any
//! function of your own. What is in the log, and what agents remember, is not changed.
//!
//! # Examples before the conversation, and no more than the last ten messages of it
//! ```
//! # fn example(model: polylogue_core::AnyModel) -> polylogue_core::Result<()> {
//! use polylogue::aggregate::{few_shot, recent};
//! use polylogue::hook::Hooked;
//! use polylogue::{AnyModel, Assistant};
//!
//! let model = Hooked::new(model).on_view(recent(10)).on_view(few_shot([("Weather today?", "[sunny]")]));
//! let forecaster = Assistant::new("forecaster", AnyModel::new(model))?;
//! # let _ = forecaster;
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use polylogue_core::{Entry, Part, Request};

/// Puts examples before the conversation: what somebody said, and what was replied.
pub fn few_shot<H: Into<Arc<str>>, S: Into<Arc<str>>>(
    examples: impl IntoIterator<Item = (H, S)>,
) -> impl Fn(Vec<Entry>, &Request<'_>) -> Vec<Entry> + Send + Sync + 'static {
    let pair = |(heard, said): (H, S)| [Entry::user(heard), Entry::assistant(said)];
    let examples: Vec<Entry> = examples.into_iter().flat_map(pair).collect();
    move |entries, _| examples.iter().cloned().chain(entries).collect()
}

/// Sends no more than the last `messages`; a call is never parted from its results, and what the agent is at work on is
/// always sent. Where it would begin with the agent's own words, a word that something is left out stands before them.
pub fn recent(messages: usize) -> impl Fn(Vec<Entry>, &Request<'_>) -> Vec<Entry> + Send + Sync + 'static {
    move |mut entries, _| {
        let mut from = entries.len().saturating_sub(messages.max(1));
        while from > 0 && matches!(entries.get(from), Some(Entry::Tool { .. })) {
            from -= 1;
        }
        let mut kept = entries.split_off(from);
        if from > 0 && !matches!(kept.first(), Some(Entry::User { .. })) {
            kept.insert(0, Entry::user("(What was said before is left out.)"));
        }
        kept
    }
}

/// Sends what others say one after the other as one message, texts joined by `separator`.
pub fn merged(
    separator: impl Into<String>,
) -> impl Fn(Vec<Entry>, &Request<'_>) -> Vec<Entry> + Send + Sync + 'static {
    let separator = separator.into();
    move |entries, _| {
        let mut merged: Vec<Entry> = Vec::new();
        for entry in entries {
            match (merged.last_mut(), entry) {
                (Some(Entry::User { parts }), Entry::User { parts: more }) => parts.extend(more),
                (_, entry) => merged.push(entry),
            }
        }
        for entry in &mut merged {
            if let Entry::User { parts } = entry {
                *parts = with_texts_joined(std::mem::take(parts), &separator);
            }
        }
        merged
    }
}

fn with_texts_joined(parts: Vec<Part>, separator: &str) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => {
                *before = format!("{before}{separator}{text}").into()
            }
            (_, part) => joined.push(part),
        }
    }
    joined
}
