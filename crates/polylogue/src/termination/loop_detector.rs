//! Detects conversations that repeat themselves.
//!
//! Conversations of models that never end are the most frequent complaint about multi-agent systems: agents agree with
//! each other forever, say goodbye repeatedly, send empty messages, or repeat the same tool call. Each case is
//! detected from a bounded number of last messages, so a step costs the same however long the chat is.
//!
//! Equal calls of an agent's own tools are detected within its turn: see
//! [`ChatBuilder::max_equal_calls`](polylogue_core::ChatBuilder::max_equal_calls).

use std::collections::HashSet;

use polylogue_core::{Message, MessageSource, Part, StopReason, Transcript, TranscriptMessage};

use crate::stop::{Condition, Stop};

/// The thresholds from which a chat counts as a loop. 0 disables a check.
///
/// ```
/// use polylogue::stop::LoopDetector;
/// let patient = LoopDetector { repetition: 5, ..LoopDetector::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopDetector {
    /// Number of times in a row that every speaker nearly repeats its previous message.
    pub repetition: usize,
    /// Similarity of two messages that count as nearly the same: the share of common word triples, 0 to 1.
    pub similarity: f64,
    /// Number of messages in a row that are little else than farewells or thanks.
    pub farewells: usize,
    /// Number of empty turns in a row, since the last message from outside.
    pub silence: usize,
    /// Number of times in a row that every speaker repeats the same tool calls for another agent, or their results.
    /// Should be more than [`repetition`](Self::repetition), to allow polling.
    pub calls: usize,
}

impl Default for LoopDetector {
    /// 3 repetitions at 0.9, 4 farewells, 2 empty turns, 8 equal calls. Four farewells are two of each side, and
    /// CAMEL's generation of conversations uses four as well.
    fn default() -> Self {
        Self { repetition: 3, similarity: 0.9, farewells: 4, silence: 2, calls: 8 }
    }
}

/// The kinds of loops, as code and text: participants say nothing, say goodbye, or say nearly the same as before.
const SILENCE: (&str, &str) = ("silence", "empty replies");
const FAREWELLS: (&str, &str) = ("farewells", "nothing but farewells");
const REPETITION: (&str, &str) = ("repetition", "nearly the same messages repeatedly");

impl From<LoopDetector> for Stop {
    fn from(detector: LoopDetector) -> Self {
        Self::new(detector)
    }
}

impl Condition for LoopDetector {
    fn now(&self, transcript: &Transcript) -> Option<StopReason> {
        let detected = |(pattern, text): (&str, &str), evidence| StopReason::LoopDetected {
            pattern: pattern.into(),
            text: text.into(),
            evidence,
        };
        if let Some(turns) = self.silent(transcript) {
            return Some(detected(SILENCE, turns));
        }
        if let Some(messages) = self.leaving(transcript) {
            return Some(detected(FAREWELLS, messages));
        }
        let is_work = spoken(transcript).next().is_some_and(|line| !work(&line.message).is_empty());
        if is_work {
            return self.repeating(transcript, self.calls).map(StopReason::repeated_calls);
        }
        self.repeating(transcript, self.repetition).map(|messages| detected(REPETITION, messages))
    }
}

impl LoopDetector {
    /// Detects nothing.
    pub const OFF: Self = Self { repetition: 0, similarity: 1.0, farewells: 0, silence: 0, calls: 0 };

    fn silent(&self, transcript: &Transcript) -> Option<Vec<u64>> {
        // A message from outside ends a silence: turns before it do not count.
        run_of(self.silence, transcript.turns_since_message(), |turn| turn.is_silent)
            .map(|turns| seqs(&turns, |t| t.seq))
    }

    fn leaving(&self, transcript: &Transcript) -> Option<Vec<u64>> {
        let farewell = |line: &&TranscriptMessage| is_farewell(&line.message.text());
        run_of(self.farewells, spoken(transcript), farewell).map(|lines| seqs(&lines, |line| line.seq))
    }

    /// Compares each of the last messages with the previous one of its author.
    fn repeating(&self, transcript: &Transcript, times: usize) -> Option<Vec<u64>> {
        if times == 0 {
            return None;
        }
        let speakers = transcript.participants().len().max(1);
        let wanted = times.saturating_mul(speakers.min(MAX_SPEAKERS));
        let recent: Vec<&TranscriptMessage> =
            spoken(transcript).take(wanted.saturating_add(speakers.min(MAX_SPEAKERS))).collect();
        let alike = |(index, line): (usize, &&TranscriptMessage)| {
            let before =
                recent.iter().skip(index + 1).find(|other| other.message.from == line.message.from)?;
            is_repeated(&line.message, &before.message, self.similarity).then_some(line.seq)
        };
        let evidence: Vec<u64> = recent.iter().enumerate().take(wanted).map_while(alike).collect();
        (evidence.len() == wanted).then(|| evidence.into_iter().rev().collect())
    }
}

/// In chats with more speakers than this, only the last so many messages are compared.
const MAX_SPEAKERS: usize = 8;

fn spoken(transcript: &Transcript) -> impl Iterator<Item = &TranscriptMessage> {
    transcript.messages().rev().take_while(|line| line.source == MessageSource::Turn)
}

/// The first `length` of `items`, oldest first, if all of them satisfy `holds`.
fn run_of<T>(length: usize, items: impl Iterator<Item = T>, holds: impl Fn(&T) -> bool) -> Option<Vec<T>> {
    let mut run: Vec<T> = items.take(length).take_while(holds).collect();
    run.reverse();
    (length > 0 && run.len() == length).then_some(run)
}

fn seqs<T>(items: &[T], seq: impl Fn(&T) -> u64) -> Vec<u64> {
    items.iter().map(seq).collect()
}

/// The words of a text, in lower case, without punctuation.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether a message nearly repeats the text of the previous one, with the same tool calls and results: calls for
/// other agents usually have no text. Blank messages count as silence.
fn is_repeated(message: &Message, before: &Message, similarity: f64) -> bool {
    let (work, earlier) = (work(message), work(before));
    let text = message.text();
    let says = !work.is_empty() || !text.trim().is_empty();
    let same = work.len() == earlier.len() && work.into_iter().zip(earlier).all(|(a, b)| is_same_work(a, b));
    says && same && is_alike(&text, &before.text(), similarity)
}

/// The tool calls and results in a message.
fn work(message: &Message) -> Vec<&Part> {
    message.parts.iter().filter(|part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_))).collect()
}

/// Whether two calls, or two results, are equal except for their ids.
fn is_same_work(a: &Part, b: &Part) -> bool {
    match (a, b) {
        (Part::ToolCall(a), Part::ToolCall(b)) => a.tool == b.tool && a.args == b.args,
        (Part::ToolResult(a), Part::ToolResult(b)) => a.result == b.result,
        _ => false,
    }
}

/// Whether two texts have at least `similarity` of their word triples in common (Jaccard index of 3-shingles, as used
/// for finding near-duplicate documents: Broder 1997). Numbers count as words: counting is not a loop.
fn is_alike(a: &str, b: &str, similarity: f64) -> bool {
    let (a, b) = (words(a), words(b));
    if a == b {
        return true;
    }
    if a.len() < 3 || b.len() < 3 {
        return false;
    }
    let (a, b): (HashSet<&[String]>, HashSet<&[String]>) = (a.windows(3).collect(), b.windows(3).collect());
    let common = a.intersection(&b).count();
    let either = a.len() + b.len() - common;
    #[expect(clippy::cast_precision_loss, reason = "far fewer words than 2^52")]
    let share = common as f64 / either as f64;
    share >= similarity
}

/// Phrases of farewell and thanks: CAMEL's list, and farewells seen in reported loops.
const FAREWELL_PHRASES: &[&str] = &[
    "goodbye", "good bye", "bye", "farewell", "see you", "take care", "have a great day", "have a nice day",
    "have a good day", "have a wonderful day", "thank you", "thanks", "you're welcome", "you are welcome",
    "my pleasure", "glad i could help", "happy to help", "all the best", "until next time", "best wishes",
];

/// A message of farewell or thanks and little else.
fn is_farewell(text: &str) -> bool {
    /// Longer messages have other content.
    const MAX_WORDS: usize = 40;
    let words = words(text);
    if words.is_empty() || words.len() > MAX_WORDS {
        return false;
    }
    let text = format!(" {} ", words.join(" "));
    FAREWELL_PHRASES.iter().any(|phrase| text.contains(&format!(" {phrase} ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_alike_when_only_case_and_punctuation_differ() {
        assert!(is_alike("Great, I agree!", "great I AGREE", 0.9));
        assert!(!is_alike("3", "4", 0.9));
        assert!(!is_alike("", "x", 0.9));
    }

    #[test]
    fn consecutive_numbers_are_not_a_repetition() {
        assert!(!is_alike("The next number is 14", "The next number is 15", 0.9));
    }

    #[test]
    fn a_long_message_with_goodbye_is_no_farewell() {
        assert!(is_farewell("Thank you, and goodbye!"));
        assert!(!is_farewell("Buy the stock; the bytes are thankful"));
        let long = format!("Thanks! {}", "Now implement the parser with care. ".repeat(10));
        assert!(!is_farewell(&long));
    }
}
