//! Streams a scripted reply at its pace.

use std::time::Duration;

use polylogue_core::{DeltaRef, DeltaSink};
use tokio::time::{Instant, sleep, sleep_until};

use super::steps::ScriptStep;

/// Waits for the delay of the step, then sends its reasoning, text and calls to `deltas`.
///
/// A step without delay and pace needs no timer, and therefore no runtime.
pub(super) async fn stream(step: &ScriptStep, deltas: &mut dyn DeltaSink) {
    if step.delay_ms > 0 {
        sleep(Duration::from_millis(step.delay_ms)).await;
    }
    let mut pace = Pace::new(step.pace.unwrap_or(0.0));
    for word in pace.words(step.think.as_deref()) {
        pace.wait().await;
        deltas.push(DeltaRef::Thought(word));
    }
    for word in pace.words(step.say.as_deref()) {
        pace.wait().await;
        deltas.push(DeltaRef::Text(word));
    }
    for (index, call) in step.calls.iter().enumerate() {
        deltas.push(DeltaRef::Call { index, tool: Some(&call.tool), args: &call.args.to_string() });
    }
}

/// Schedules the words. Times are relative to the first word, so that delays of timers do not add up.
struct Pace {
    /// The time between two words; `None` is at once.
    interval: Option<Duration>,
    first: Option<Instant>,
    sent: u32,
}

impl Pace {
    fn new(words_per_second: f64) -> Self {
        let interval =
            (words_per_second > 0.0).then(|| Duration::try_from_secs_f64(1.0 / words_per_second).ok());
        Self { interval: interval.flatten(), first: None, sent: 0 }
    }

    /// `text` in the pieces in which it is streamed: words with the white space after them, or all of it.
    fn words<'a>(&self, text: Option<&'a str>) -> Vec<&'a str> {
        let text = text.unwrap_or_default();
        match self.interval {
            Some(_) => split_words(text),
            None if text.is_empty() => Vec::new(),
            None => vec![text],
        }
    }

    async fn wait(&mut self) {
        let Some(interval) = self.interval else { return };
        let first = *self.first.get_or_insert_with(Instant::now);
        if let Some(due) = interval.checked_mul(self.sent).and_then(|after| first.checked_add(after)) {
            sleep_until(due).await;
        }
        self.sent = self.sent.saturating_add(1);
    }
}

/// Splits `text` before each word; white space before the first word belongs to it.
fn split_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let begin = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let (_, word) = rest.split_at(begin);
        let space = word.find(char::is_whitespace).unwrap_or(word.len());
        let (_, after) = word.split_at(space);
        let next = after.find(|c: char| !c.is_whitespace()).unwrap_or(after.len());
        let (piece, remaining) = rest.split_at(begin + space + next);
        words.push(piece);
        rest = remaining;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_all_white_space() {
        for (text, words) in [
            ("", &[][..]),
            ("one", &["one"]),
            (" one  two\n\n- three \n", &[" one  ", "two\n\n", "- ", "three \n"]),
            (" \n ", &[" \n "]),
            ("Grüße\u{a0}dich", &["Grüße\u{a0}", "dich"]),
        ] {
            assert_eq!(split_words(text), words);
            assert_eq!(split_words(text).concat(), text);
        }
    }

    #[test]
    fn a_pace_of_zero_sends_the_text_at_once() {
        for words_per_second in [0.0, -1.0, f64::NAN, 1e-300] {
            assert_eq!(Pace::new(words_per_second).words(Some("a b c")), ["a b c"], "{words_per_second}");
        }
        assert_eq!(Pace::new(2.0).words(Some("a b c")), ["a ", "b ", "c"]);
    }
}
