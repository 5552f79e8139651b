//! Amends a summary: decisions and facts stay word for word until they are outdated.

use polylogue_core::HistorySummary;
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

/// `earlier` with the text of a model that writes no JSON.
pub(super) fn noted(earlier: HistorySummary, text: String, tokens: u64) -> HistorySummary {
    let most = usize::try_from(tokens.saturating_mul(BYTES)).unwrap_or(usize::MAX);
    let end = text.floor_char_boundary(most.min(text.len()));
    let notes = text.get(..end).unwrap_or_default().to_owned();
    bounded(HistorySummary { notes, ..earlier }, tokens)
}

fn bounded(mut summary: HistorySummary, tokens: u64) -> HistorySummary {
    let most = usize::try_from(tokens.saturating_mul(BYTES)).unwrap_or(usize::MAX);
    let mut length = summary.text().len();
    for items in [&mut summary.done, &mut summary.files, &mut summary.facts] {
        let mut dropped = 0;
        for item in items.iter() {
            if length <= most {
                break;
            }
            length = length.saturating_sub(item.len() + 3);
            dropped += 1;
        }
        items.drain(..dropped);
    }
    summary
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
    fn what_was_done_goes_before_facts() {
        let done = (0..100).map(|n| format!("step {n}")).collect();
        let amendment = Amendment { done, ..facts(&["The port is 80."]) };
        let summary = amended(HistorySummary::default(), amendment, 100);
        assert_eq!(summary.facts, ["The port is 80."]);
        assert!(summary.text().len() <= 400 && summary.done.last().is_some_and(|last| last == "step 99"));
    }
}
