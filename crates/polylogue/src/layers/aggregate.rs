//! Changes how a model receives the conversation: examples, a window, merged messages.
//!
//! An aggregator is a hook on model requests: [`HookedModel::on_view`](crate::layers::hook::HookedModel::on_view) takes these and any
//! function. The log and the memory of agents do not change.
//!
//! # Examples before the conversation, and at most its last ten messages
//! ```
//! # fn example(model: polylogue_core::AnyModel) -> polylogue_core::Result<()> {
//! use polylogue::layers::aggregate::{few_shot, recent};
//! use polylogue::layers::hook::HookedModel;
//! use polylogue::Assistant;
//!
//! let model = HookedModel::new(model).on_view(recent(10)).on_view(few_shot([("Weather today?", "[sunny]")]));
//! let forecaster = Assistant::new("forecaster", model)?;
//! # let _ = forecaster;
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use polylogue_core::{Entry, Part, Request};

/// Adds few-shot examples before the conversation: pairs of a user message and a reply.
pub fn few_shot<H: Into<Arc<str>>, S: Into<Arc<str>>>(
    examples: impl IntoIterator<Item = (H, S)>,
) -> impl Fn(Vec<Entry>, &Request<'_>) -> Vec<Entry> + Send + Sync + 'static {
    let pair = |(received, said): (H, S)| [Entry::user(received), Entry::assistant(said)];
    let examples: Vec<Entry> = examples.into_iter().flat_map(pair).collect();
    move |entries, _| examples.iter().cloned().chain(entries).collect()
}

/// Sends only the last `messages`. Never separates a call from its results, and always sends the current turn of the
/// agent. If the first message would be the agent's own, a note that earlier messages are omitted comes before it.
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

/// Merges consecutive messages of others into one, texts joined by `separator`.
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
