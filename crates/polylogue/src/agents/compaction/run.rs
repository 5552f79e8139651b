//! One compaction: when it is due, what it replaces, and the event.

use polylogue_core::{
    Compactable, Compacted, Entry, HistorySummary, KeptSize, ModelCall, Result, Turn, View, text_of,
};

use super::ask::full;
use super::summarize::Sizes;
use super::{Compaction, CompactionLimit, part, words};

/// Share of the tokens that stay for the summary.
const SUMMARY: f64 = 0.2;

/// A proactive compaction replaces at least this share of the limit: else each call would compact again.
const LEAST: f64 = 0.1;

/// The fewest tokens of a summary.
const LEAST_SUMMARY: u64 = 64;

impl Compaction {
    /// Compacts the history if the log says so, or if the next request would exceed the limit.
    pub(super) async fn compact_if_due(&self, turn: &mut Turn<'_>, call: ModelCall<'_>) -> Result<()> {
        let found = self.due(turn, call);
        match turn.compacts_next() {
            Some(false) => Ok(()),
            // What is due is a function of the log, unless the settings have changed since: then the log counts.
            Some(true) => {
                let found = found.or_else(|| turn.view(call.view).compactable(KeptSize::Tokens(0), 1));
                Box::pin(self.compact(turn, call, found, None)).await
            }
            None if found.is_some() => Box::pin(self.compact(turn, call, found, None)).await,
            None => Ok(()),
        }
    }

    /// Compacts the history after a provider refused a request as too long, with the `limit` that it named, or after a
    /// reply that filled the window.
    pub(super) async fn compact_now(
        &self,
        turn: &mut Turn<'_>,
        call: ModelCall<'_>,
        limit: Option<u64>,
    ) -> Result<()> {
        let tokens = turn.context_tokens(call);
        let limit = limit.or_else(|| self.threshold(call)).unwrap_or(tokens).min(tokens);
        let keep = self.keep_tokens(turn, call, part(limit, self.target));
        let view = turn.view(call.view);
        let fits = |found: &Compactable| view.tokens_from(found.entries.end) <= keep;
        let wished = view.compactable(KeptSize::Tokens(keep), self.keep_messages).filter(fits);
        // The messages that should stay do not fit: as few as possible stay.
        let found = wished.or_else(|| view.compactable(KeptSize::Tokens(keep), 1));
        self.compact(turn, call, found, Some(limit)).await
    }

    /// Whether anything can be replaced.
    pub(super) fn can_compact(turn: &mut Turn<'_>, call: ModelCall<'_>) -> bool {
        turn.view(call.view).compactable(KeptSize::Tokens(0), 1).is_some()
    }

    /// What is to be replaced before the next request, if it exceeds the limit and enough can be replaced.
    fn due(&self, turn: &mut Turn<'_>, call: ModelCall<'_>) -> Option<Compactable> {
        if let CompactionLimit::Messages(limit) = self.limit {
            let view = turn.view(call.view);
            let keep = (limit as u64).min(part(limit as u64, self.target).max(1));
            let keep = KeptSize::Entries(usize::try_from(keep).unwrap_or(limit));
            let found = view.compactable(keep, self.keep_messages)?;
            let least = (limit / 10).max(2);
            return (view.entries().len() > limit && found.entries.len() >= least).then_some(found);
        }
        let threshold = self.threshold(call)?;
        if turn.context_tokens(call) <= threshold {
            return None;
        }
        let keep = self.keep_tokens(turn, call, part(threshold, self.target));
        let view = turn.view(call.view);
        let found = view.compactable(KeptSize::Tokens(keep), self.keep_messages)?;
        (size(replaced(view, &found)) >= part(threshold, LEAST)).then_some(found)
    }

    /// The tokens of the latest messages that stay, of `target` tokens in all.
    fn keep_tokens(&self, turn: &mut Turn<'_>, call: ModelCall<'_>, target: u64) -> u64 {
        let all = turn.context_tokens(call);
        let view = turn.view(call.view);
        let found = view.compactable(KeptSize::Tokens(0), 1);
        let history = view.tokens_from(found.map_or(0, |found| found.entries.start));
        // The system message, the tools and the opening stay as well.
        let fixed = all.saturating_sub(history);
        target.saturating_sub(fixed).saturating_sub(part(target, SUMMARY))
    }

    /// The most tokens of the summary, if a request may have `accepted` tokens.
    fn summary_tokens(&self, turn: &mut Turn<'_>, call: ModelCall<'_>, accepted: Option<u64>) -> u64 {
        let limit = accepted.or_else(|| self.threshold(call)).unwrap_or_else(|| turn.context_tokens(call));
        part(part(limit, self.target), SUMMARY).max(LEAST_SUMMARY)
    }

    /// Replaces what was found. After a provider refused a request, `accepted` has the most tokens that the agent's model may accept.
    async fn compact(
        &self,
        turn: &mut Turn<'_>,
        call: ModelCall<'_>,
        found: Option<Compactable>,
        accepted: Option<u64>,
    ) -> Result<()> {
        let Some(found) = found else { return Err(full(turn, call)) };
        let tokens_before = turn.context_tokens(call);
        let sizes = Sizes { most: self.summary_tokens(turn, call, accepted), accepted };
        let view = turn.view(call.view);
        let kept =
            found.entries.clone().filter(|at| view.entries().get(*at).is_some_and(|of| self.is_pinned(of)));
        let mut kept: Vec<u64> = kept.filter_map(|at| view.origin(at)).collect();
        kept.dedup();
        let task = view.turn_task().filter(|at| found.entries.contains(at)).and_then(|at| view.origin(at));
        let task = task.filter(|origin| !kept.contains(origin));
        let replaced = replaced(view, &found).to_vec();
        let earlier = view.summary().cloned().unwrap_or_default();
        let freed = size(&replaced) + tokens_of(&earlier);
        let stays = |at: usize| view.origin(at).is_some_and(|of| kept.contains(&of) || task == Some(of));
        let kept_entries = found.entries.clone().zip(&replaced).filter(|(at, _)| stays(*at));
        let kept_size: u64 = kept_entries.map(|(_, entry)| words::tokens(entry)).sum();
        let summary = self.summarize(turn, call, &replaced, earlier, sizes).await?;
        let compacted = Compacted {
            who: turn.me().clone(),
            through: found.through,
            kept,
            task,
            replaced: replaced.len() as u64,
            tokens_before,
            tokens_after: tokens_before.saturating_sub(freed) + kept_size + tokens_of(&summary),
            summary,
        };
        turn.compact(compacted).await
    }

    /// Whether the message stays word for word.
    fn is_pinned(&self, entry: &Entry) -> bool {
        let text = text_of(entry.parts());
        !matches!(entry, Entry::Tool { .. }) && self.pins.iter().any(|pin| text.contains(&**pin))
    }
}

fn replaced<'v>(view: &'v View, found: &Compactable) -> &'v [Entry] {
    view.entries().get(found.entries.clone()).unwrap_or_default()
}

fn size(entries: &[Entry]) -> u64 {
    entries.iter().map(words::tokens).sum()
}

fn tokens_of(summary: &HistorySummary) -> u64 {
    if *summary == HistorySummary::default() { 0 } else { summary.text().len() as u64 / 4 }
}
