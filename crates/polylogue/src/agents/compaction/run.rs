//! One compaction: what is replaced, its summary by a model, and the event.

use polylogue_core::{
    Capability, Compactable, Compacted, Entry, HistorySummary, Model as _, ModelAttempt, ModelCall, Params,
    Reply, Result, Turn, plain,
};
use serde_json::Value;

use super::ask::{full, is_too_long};
use super::merge::{Amendment, amended, noted, schema};
use super::{Compaction, CompactionLimit, part, words};
use crate::agents::{check, lenient};

/// Share of the tokens that stay for the summary.
const SUMMARY: f64 = 0.2;

/// Share of a window that one piece of the history takes in a summarizing call.
const PIECE: f64 = 0.6;

/// The most pieces of the history in one compaction. Longer ones are cut.
const PIECES: usize = 8;

/// The window of a summarizing model if it is unknown, in tokens.
const UNKNOWN_WINDOW: u64 = 32_000;

/// A proactive compaction replaces at least this share of the limit: else each call would compact again.
const LEAST: f64 = 0.1;

impl Compaction {
    /// Compacts the history if the log says so, or if the next request would exceed the limit.
    pub(super) async fn compact_if_due(&self, turn: &mut Turn<'_>, call: ModelCall<'_>) -> Result<()> {
        let is_due = match turn.compacts_next() {
            Some(is_next) => is_next,
            None => self.is_due(turn, call),
        };
        if !is_due {
            return Ok(());
        }
        let target = self.target_tokens(turn, call, None);
        self.compact(turn, call, target).await
    }

    /// Compacts the history after a provider refused a request as too long, with the `limit` that it named.
    pub(super) async fn compact_now(
        &self,
        turn: &mut Turn<'_>,
        call: ModelCall<'_>,
        limit: Option<u64>,
    ) -> Result<()> {
        let target = self.target_tokens(turn, call, Some(limit));
        self.compact(turn, call, target).await
    }

    /// Whether anything can be replaced.
    pub(super) fn can_compact(&self, turn: &mut Turn<'_>, call: ModelCall<'_>) -> bool {
        turn.view(call.view).compactable(0, 1).is_some()
    }

    fn is_due(&self, turn: &mut Turn<'_>, call: ModelCall<'_>) -> bool {
        if let CompactionLimit::Messages(limit) = self.limit {
            let view = turn.view(call.view);
            return view.entries().len() > limit && view.compactable(u64::MAX, limit / 2).is_some();
        }
        let Some(threshold) = self.threshold(call) else { return false };
        let tokens = turn.context_tokens(call);
        if tokens <= threshold {
            return false;
        }
        let keep = self.keep_tokens(turn, call, part(threshold, self.target));
        let view = turn.view(call.view);
        let replaced = view.compactable(keep, self.keep_messages).map(|found| {
            let entries = view.entries().get(found.entries).unwrap_or_default();
            entries.iter().map(|entry| words::line(entry).len() as u64 / 4).sum::<u64>()
        });
        replaced.is_some_and(|replaced| replaced >= part(threshold, LEAST))
    }

    /// The tokens of a request after a compaction; of one that was `refused`, at most half of what it had.
    fn target_tokens(&self, turn: &mut Turn<'_>, call: ModelCall<'_>, refused: Option<Option<u64>>) -> u64 {
        let tokens = turn.context_tokens(call);
        let limit = match refused {
            None => self.threshold(call).unwrap_or(tokens),
            Some(limit) => limit.or_else(|| self.threshold(call)).unwrap_or(tokens).min(tokens),
        };
        part(limit, self.target)
    }

    /// The tokens of the latest messages that stay, of `target` tokens in all.
    fn keep_tokens(&self, turn: &mut Turn<'_>, call: ModelCall<'_>, target: u64) -> u64 {
        let all = turn.context_tokens(call);
        let view = turn.view(call.view);
        let open = view.compactable(0, 1).map_or(0, |found| found.entries.start);
        let history = view.entries().get(open..).unwrap_or_default().iter();
        let history: u64 = history.map(|entry| words::line(entry).len() as u64 / 4).sum();
        // The system message, the tools and the opening stay as well.
        let fixed = all.saturating_sub(history);
        target.saturating_sub(fixed).saturating_sub(part(target, SUMMARY))
    }

    fn plan(&self, turn: &mut Turn<'_>, call: ModelCall<'_>, target: u64) -> Option<Compactable> {
        if let CompactionLimit::Messages(limit) = self.limit {
            return turn.view(call.view).compactable(u64::MAX, limit / 2);
        }
        let keep = self.keep_tokens(turn, call, target);
        let view = turn.view(call.view);
        view.compactable(keep, self.keep_messages).or_else(|| view.compactable(keep, 1))
    }

    async fn compact(&self, turn: &mut Turn<'_>, call: ModelCall<'_>, target: u64) -> Result<()> {
        let Some(found) = self.plan(turn, call, target) else { return Err(full(turn, call)) };
        let tokens_before = turn.context_tokens(call);
        let view = turn.view(call.view);
        let replaced: Vec<Entry> = view.entries().get(found.entries.clone()).unwrap_or_default().to_vec();
        let kept = found.entries.clone().zip(&replaced).filter(|(_, entry)| self.is_pinned(entry));
        let mut kept: Vec<u64> = kept.filter_map(|(at, _)| view.origin(at)).collect();
        kept.extend(task_of(view.entries(), &found).and_then(|at| view.origin(at)));
        kept.sort_unstable();
        kept.dedup();
        let earlier = view.summary().cloned().unwrap_or_default();
        let most = part(target, SUMMARY).max(64);
        let summary = self.summarize(turn, call, &replaced, earlier, most).await?;
        let size = |entry: &Entry| words::line(entry).len() as u64 / 4;
        let freed: u64 = replaced.iter().map(size).sum();
        let compacted = Compacted {
            who: turn.me().clone(),
            through: found.through,
            kept,
            replaced: replaced.len() as u64,
            tokens_before,
            tokens_after: tokens_before.saturating_sub(freed) + summary.text().len() as u64 / 4,
            summary,
        };
        turn.compact(compacted).await
    }

    /// Whether the message stays word for word.
    fn is_pinned(&self, entry: &Entry) -> bool {
        let text = plain(entry.parts());
        !matches!(entry, Entry::Tool { .. }) && self.pins.iter().any(|pin| text.contains(&**pin))
    }

    /// The summary of `entries`, piece by piece.
    async fn summarize(
        &self,
        turn: &mut Turn<'_>,
        call: ModelCall<'_>,
        entries: &[Entry],
        earlier: HistorySummary,
        most: u64,
    ) -> Result<HistorySummary> {
        let model = self.by.as_ref().unwrap_or(call.model);
        let window = model.context_window().or_else(|| call.model.context_window()).unwrap_or(UNKNOWN_WINDOW);
        let pieces =
            pieces(entries, usize::try_from(part(window, PIECE).saturating_mul(3)).unwrap_or(usize::MAX));
        let mut summary = earlier;
        let own = ModelCall { model, ..call };
        for piece in &pieces {
            summary = self.amend(turn, own, piece, summary, most).await?;
        }
        Ok(summary)
    }

    /// `earlier`, amended by what is in `piece`.
    async fn amend(
        &self,
        turn: &mut Turn<'_>,
        call: ModelCall<'_>,
        piece: &str,
        earlier: HistorySummary,
        most: u64,
    ) -> Result<HistorySummary> {
        let schema = schema();
        let task = turn.transcript().task();
        let prompt = words::prompt(task, &earlier, piece, self.prompt.as_deref(), &schema);
        let mut entries = vec![Entry::user(prompt)];
        let mut text = String::new();
        for _ in 0..2 {
            let reply = ask_in_form(turn, call, &entries, &schema).await?;
            text = reply.plain().into_owned();
            match read(&text, &schema) {
                Ok(amendment) => return Ok(amended(earlier, amendment, most)),
                Err(flaw) => {
                    let said = if text.trim().is_empty() { "(nothing)" } else { text.as_str() };
                    entries.extend([Entry::assistant(said), Entry::user(words::again(&flaw, &schema))]);
                }
            }
        }
        Ok(noted(earlier, text, most))
    }
}

/// The last message of others before the part that stays, if none is in it: what the agent works on.
fn task_of(entries: &[Entry], found: &Compactable) -> Option<usize> {
    let is_others = |entry: &Entry| matches!(entry, Entry::User { .. });
    let (before, after) = entries.split_at_checked(found.entries.end)?;
    if after.iter().any(is_others) {
        return None;
    }
    before.iter().rposition(is_others).filter(|at| *at >= found.entries.start)
}

/// Asks for JSON in the best way that the model supports: by the schema, in JSON mode, or as text.
async fn ask_in_form(
    turn: &mut Turn<'_>,
    call: ModelCall<'_>,
    entries: &[Entry],
    schema: &Value,
) -> Result<Reply> {
    let lacks: Vec<Capability> =
        turn.transcript().missing_capabilities(turn.me(), call.model.name()).collect();
    let mut capabilities =
        lacks.into_iter().fold(call.model.capabilities(), polylogue_core::Capabilities::without);
    loop {
        let by_schema = capabilities.schema != Some(false);
        let free =
            Params { schema: None, json: false, stop: Vec::new(), tool_choice: None, ..call.params.clone() };
        let params = Params {
            schema: by_schema.then(|| schema.clone()),
            json: !by_schema && capabilities.json != Some(false),
            ..free
        };
        let own = ModelCall {
            system: Some(words::SYSTEM),
            tools: &[],
            params: &params,
            compaction: Some(entries),
            ..call
        };
        match turn.try_model(own).await {
            Ok(ModelAttempt::Reply(reply)) => return Ok(reply),
            Ok(ModelAttempt::Unable(capability)) => capabilities = capabilities.without(capability),
            Err(polylogue_core::Error::Model(error)) if is_too_long(&error) => return Err(full(turn, call)),
            Err(error) => return Err(error),
        }
    }
}

fn read(text: &str, schema: &Value) -> Result<Amendment, String> {
    let value = lenient::value(text).ok_or_else(|| "there is no JSON in it that can be read".to_owned())?;
    check::check(&value, schema)?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// `entries` as text in pieces of about `most` bytes, at most [`PIECES`]: where they are longer, the middle of long messages
/// is cut.
fn pieces(entries: &[Entry], most: usize) -> Vec<String> {
    let most = most.max(1_000);
    let lines: Vec<String> = entries.iter().map(words::line).collect();
    let total: usize = lines.iter().map(String::len).sum();
    let space = most.saturating_mul(PIECES - 1);
    let longest = if total > space { (space / lines.len().max(1)).max(64) } else { most };
    let mut pieces = vec![String::new()];
    for line in lines {
        let line = shortened(line, longest.min(most));
        let is_full = pieces.last().is_some_and(|last| !last.is_empty() && last.len() + line.len() > most);
        if is_full && pieces.len() < PIECES {
            pieces.push(String::new());
        }
        if let Some(last) = pieces.last_mut() {
            last.push_str(&line);
        }
    }
    pieces
}

/// The beginning and the end of `line`, if it is longer than `most` bytes.
fn shortened(line: String, most: usize) -> String {
    if line.len() <= most {
        return line;
    }
    let head = line.get(..line.floor_char_boundary(most / 2)).unwrap_or_default();
    let tail = line.get(line.ceil_char_boundary(line.len() - most / 4)..).unwrap_or_default();
    format!("{head}\n(...)\n{tail}")
}
