//! Events as JSON, one a line, for programs.

use serde::Serialize;

use polylogue_core::{BoundSummary, LogId, Name, TotalUsage};

use super::end::{RunEnd, RunState};
use super::text::visible;

/// The lines around the events of a run.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum RunLine<'a> {
    /// The first line: the conversation that runs.
    RunStarted {
        /// The id of the conversation.
        id: &'a LogId,
        /// The name of the team.
        team: &'a Name,
    },
    /// What the conversation takes at most, as computed before its first call. Not where a script speaks.
    Bound {
        /// The id of the conversation.
        id: &'a LogId,
        /// The bound.
        bound: &'a BoundSummary,
    },
    /// The maximum computed before the run no longer applies.
    BoundEnded {
        /// The id of the conversation.
        id: &'a LogId,
        /// Why, such as `a person wrote more than 4,000 bytes`.
        why: &'a str,
    },
    /// The last line: why the run stopped, and its totals.
    RunEnded {
        /// The id of the conversation.
        id: &'a LogId,
        /// Why it stopped, in one word.
        state: RunState,
        /// Why it stopped, as the last lines of the terminal say it.
        status: &'a str,
        /// The number of turns.
        turns: u64,
        /// The usage and cost of all model calls.
        usage: &'a TotalUsage,
        /// The running time of this process in milliseconds.
        elapsed_ms: u64,
        /// The command that continues the conversation; omitted if it is complete.
        #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
        resume: Option<String>,
    },
}

impl<'a> RunLine<'a> {
    pub(crate) fn of(end: &'a RunEnd) -> Self {
        Self::RunEnded {
            id: &end.id,
            state: end.state,
            status: &end.status,
            turns: end.turns,
            usage: &end.usage,
            elapsed_ms: u64::try_from(end.elapsed.as_millis()).unwrap_or(u64::MAX),
            resume: end.resumable.then(|| end.resume()),
        }
    }
}

/// `value`, such as an event, as one line of JSON, with its end. Reads back as the same.
///
/// JSON escapes most control characters by itself, but not DEL and the C1 controls, which some terminals obey, and not what
/// reorders text or hides in it.
///
/// # Errors
/// When it holds what JSON cannot.
pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    let mut line = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Outside of strings JSON has none of these.
        if visible(c) == c {
            line.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| line.push_str(&format!("\\u{unit:04x}")));
        }
    }
    line.push('\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Body, Event, Message, Name, Path, Timestamp};

    use super::*;

    #[test]
    fn an_event_is_one_line_that_no_terminal_obeys() {
        let text = "a\n\x1b[2J\u{9b}31m\x7f\u{a0}\u{202e}\u{feff}";
        let body = Body::Message(Message::new(Name::user(), text));
        let event = Event { seq: 3, chat: Path::root(), time: Timestamp(7), ran_ms: 0, inbox: None, body };
        let json = line(&event).unwrap();
        assert!(json.ends_with("}\n") && json.matches('\n').count() == 1);
        assert!(json.trim_end().chars().all(|c| visible(c) == c), "{json}");
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }
}
