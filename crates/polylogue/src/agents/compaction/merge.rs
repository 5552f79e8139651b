//! Amends a summary: decisions and facts stay word for word until they are outdated.

use polylogue_core::{HistorySummary, text};
use serde::Deserialize;
use serde_json::{Value, json};

/// The most bytes of a summary for each token that it may have.
const BYTES: u64 = 4;

/// What a model writes: what to add to the earlier summary.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Amendment {
    task: String,
    decisions: Vec<String>,
    facts: Vec<String>,
    done: Vec<String>,
    open: Vec<String>,
    files: Vec<String>,
    outdated: Vec<String>,
}

/// The JSON Schema of an [`Amendment`].
pub(super) fn schema() -> Value {
    let list = |what: &str| json!({"type": "array", "items": {"type": "string"}, "description": what});
    json!({
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "What the participant works on now"},
            "decisions": list("New decisions, each with its reason"),
            "facts": list("New facts that may be needed later, with exact names, numbers, paths and quotes"),
            "done": list("Work that was finished"),
            "open": list("All work and questions that are open now"),
            "files": list("Files that were read or written, with their paths"),
            "outdated": list("Decisions and facts of the earlier summary that no longer hold, word for word"),
        },
        "required": ["task", "decisions", "facts", "done", "open", "files", "outdated"],
        "additionalProperties": false,
    })
}

/// `earlier` with what `amendment` adds, at most about `tokens` long: what was done goes first, then files, then the oldest
/// facts.
pub(super) fn amended(earlier: HistorySummary, amendment: Amendment, tokens: u64) -> HistorySummary {
    let Amendment { task, decisions, facts, done, open, files, outdated } = amendment;
    let task = if task.trim().is_empty() { earlier.task } else { task };
    let merged = |mut all: Vec<String>, new: Vec<String>| {
        all.retain(|item| !outdated.contains(item));
        let fresh = new.into_iter().filter(|item| !item.trim().is_empty());
        for item in fresh {
            if !all.contains(&item) {
                all.push(item);
            }
        }
        all
    };
    let summary = HistorySummary {
        task,
        decisions: merged(earlier.decisions, decisions),
        facts: merged(earlier.facts, facts),
        done: merged(earlier.done, done),
        open: merged(Vec::new(), open),
        files: merged(earlier.files, files),
        notes: earlier.notes,
    };
    bounded(summary, tokens)
}

/// `earlier` with the text of a model that writes no JSON, after its earlier notes.
pub(super) fn noted(earlier: HistorySummary, text: &str, tokens: u64) -> HistorySummary {
    let notes = match earlier.notes.trim() {
        "" => text.trim().to_owned(),
        before => format!("{before}\n\n{}", text.trim()),
    };
    bounded(HistorySummary { notes, ..earlier }, tokens)
}

/// `summary` in at most `tokens`: what was done goes first, then files, the oldest facts, the oldest notes, open work and
/// decisions. No item takes more than a quarter.
fn bounded(mut summary: HistorySummary, tokens: u64) -> HistorySummary {
    let most = usize::try_from(tokens.saturating_mul(BYTES)).unwrap_or(usize::MAX);
    summary.task = text::shortened(&summary.task, most / 4);
    let HistorySummary { decisions, facts, done, open, files, .. } = &mut summary;
    for item in [decisions, facts, done, open, files].into_iter().flatten() {
        *item = text::shortened(item, most / 4);
    }
    for list in [List::Done, List::Files, List::Facts] {
        drop_oldest(&mut summary, list, most);
    }
    let excess = summary.text().len().saturating_sub(most);
    let from = summary.notes.ceil_char_boundary(excess.min(summary.notes.len()));
    summary.notes.drain(..from);
    for list in [List::Open, List::Decisions] {
        drop_oldest(&mut summary, list, most);
    }
    summary
}

/// A list of a summary.
#[derive(Clone, Copy)]
enum List {
    Done,
    Files,
    Facts,
    Open,
    Decisions,
}

impl List {
    const fn of(self, summary: &mut HistorySummary) -> &mut Vec<String> {
        match self {
            Self::Done => &mut summary.done,
            Self::Files => &mut summary.files,
            Self::Facts => &mut summary.facts,
            Self::Open => &mut summary.open,
            Self::Decisions => &mut summary.decisions,
        }
    }
}

/// Drops the oldest items of a list until the summary has at most `most` bytes, or the list is empty.
fn drop_oldest(summary: &mut HistorySummary, list: List, most: usize) {
    let mut excess = summary.text().len().saturating_sub(most);
    let items = list.of(summary);
    let mut dropped = 0;
    for item in items.iter() {
        if excess == 0 {
            break;
        }
        // An item is a line that begins with a dash.
        excess = excess.saturating_sub(item.len() + 3);
        dropped += 1;
    }
    items.drain(..dropped);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(items: &[&str]) -> Amendment {
        Amendment { facts: items.iter().map(ToString::to_string).collect(), ..Amendment::default() }
    }

    #[test]
    fn facts_stay_until_they_are_outdated() {
        let first =
            amended(HistorySummary::default(), facts(&["The port is 80.", "Ann is the owner."]), 1_000);
        let outdated = vec!["The port is 80.".to_owned()];
        let second = amended(first, Amendment { outdated, ..facts(&["The port is 81.", " "]) }, 1_000);
        assert_eq!(second.facts, ["Ann is the owner.", "The port is 81."]);
    }

    #[test]
    fn notes_of_several_parts_stay() {
        let first = noted(HistorySummary::default(), "The port is 80.", 1_000);
        assert_eq!(noted(first, "Ann is the owner.", 1_000).notes, "The port is 80.\n\nAnn is the owner.");
    }

    #[test]
    fn a_summary_is_bounded_whatever_it_has_most_of() {
        let long = || vec!["é".repeat(5_000); 40];
        let of = |field: usize| {
            let pick = |at: usize| if at == field { long() } else { vec!["short".to_owned()] };
            let task = if field == 0 { "é".repeat(5_000) } else { "task".to_owned() };
            let (decisions, facts, done, open, files) = (pick(1), pick(2), pick(3), pick(4), pick(5));
            Amendment { task, decisions, facts, done, open, files, outdated: Vec::new() }
        };
        for field in 0..6 {
            let summary = amended(HistorySummary::default(), of(field), 64);
            assert!(summary.text().len() <= 256, "{field}: {}", summary.text());
        }
        assert!(noted(HistorySummary::default(), &"é".repeat(5_000), 64).text().len() <= 256);
    }

    #[test]
    fn finished_work_is_dropped_before_facts() {
        let done = (0..100).map(|n| format!("step {n}")).collect();
        let amendment = Amendment { done, ..facts(&["The port is 80."]) };
        let summary = amended(HistorySummary::default(), amendment, 100);
        assert_eq!(summary.facts, ["The port is 80."]);
        assert!(summary.text().len() <= 400 && summary.done.last().is_some_and(|last| last == "step 99"));
    }
}
