//! Termination conditions that compose.

use std::ops::{BitAnd, BitOr};
use std::sync::Arc;

pub use super::reason::{Counted, LibraryStopReason, ModelMistake};
pub use crate::termination::loop_detector::LoopDetector;
pub use polylogue_core::Condition;
use polylogue_core::{MessageSource, Money, Name, StopReason, Transcript, TranscriptMessage};
use regex::Regex;

/// A termination condition: a pure function of the transcript, checked after every step.
///
/// Conditions compose: `a | b` ends the chat when either holds, `a & b` when one holds now and the other holds or has
/// held before.
///
/// ```
/// use polylogue::stop::{max_turns, says};
/// let stop = says("DONE").whole() | max_turns(20);
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct Stop(#[debug(skip)] Arc<dyn Condition>);

impl Stop {
    /// Creates a custom condition, to combine it with others.
    ///
    /// ```
    /// use polylogue::Transcript;
    /// use polylogue::kernel::data::StopReason;
    /// use polylogue::stop::{Condition, Stop, max_turns};
    ///
    /// /// Holds when every participant has spoken twice.
    /// struct SpokenTwice;
    ///
    /// impl Condition for SpokenTwice {
    ///     fn now(&self, chat: &Transcript) -> Option<StopReason> {
    ///         let all = chat.participants().iter().all(|who| chat.turns_of(who) >= 2);
    ///         all.then_some(StopReason::Finished)
    ///     }
    /// }
    ///
    /// let stop = Stop::new(SpokenTwice) | max_turns(20);
    /// ```
    pub fn new(condition: impl Condition) -> Self {
        Self(Arc::new(condition))
    }
}

impl Condition for Stop {
    fn now(&self, transcript: &Transcript) -> Option<StopReason> {
        self.0.now(transcript)
    }

    fn ever(&self, transcript: &Transcript) -> Option<StopReason> {
        self.0.ever(transcript)
    }
}

struct Any(Stop, Stop);

impl Condition for Any {
    fn now(&self, transcript: &Transcript) -> Option<StopReason> {
        self.0.now(transcript).or_else(|| self.1.now(transcript))
    }
    fn ever(&self, transcript: &Transcript) -> Option<StopReason> {
        self.0.ever(transcript).or_else(|| self.1.ever(transcript))
    }
}

struct All(Stop, Stop);

impl Condition for All {
    fn now(&self, transcript: &Transcript) -> Option<StopReason> {
        match (self.0.now(transcript), self.1.now(transcript)) {
            (None, None) => None,
            (Some(first), second) => Some(both(first, second.or_else(|| self.1.ever(transcript))?)),
            (None, Some(second)) => Some(both(self.0.ever(transcript)?, second)),
        }
    }
    fn ever(&self, transcript: &Transcript) -> Option<StopReason> {
        Some(both(self.0.ever(transcript)?, self.1.ever(transcript)?))
    }
}

fn both(first: StopReason, second: StopReason) -> StopReason {
    let flat = |reason| match reason {
        StopReason::All(reasons) => reasons,
        reason => vec![reason],
    };
    StopReason::All(flat(first).into_iter().chain(flat(second)).collect())
}

impl<S: Into<Stop>> BitOr<S> for Stop {
    type Output = Stop;
    fn bitor(self, other: S) -> Stop {
        Stop::new(Any(self, other.into()))
    }
}

impl<S: Into<Stop>> BitAnd<S> for Stop {
    type Output = Stop;
    fn bitand(self, other: S) -> Stop {
        Stop::new(All(self, other.into()))
    }
}

struct Count<F>(F);

impl<F: Fn(&Transcript) -> Option<StopReason> + Send + Sync + 'static> Condition for Count<F> {
    fn now(&self, transcript: &Transcript) -> Option<StopReason> {
        (self.0)(transcript)
    }
}

fn count(condition: impl Fn(&Transcript) -> Option<StopReason> + Send + Sync + 'static) -> Stop {
    Stop::new(Count(condition))
}

/// Ends the chat after `limit` turns, an expected end: [`LibraryStopReason::CountReached`]. Private turns do not count. It is checked
/// between steps: turns that run in parallel all end first. For a safety limit see
/// [`ChatBuilder::max_turns`](polylogue_core::ChatBuilder::max_turns).
pub fn max_turns(limit: u64) -> Stop {
    count(move |t| {
        let count = limit.max(t.raised().turns);
        (t.turns() >= count)
            .then(|| StopReason::from(LibraryStopReason::CountReached { count, of: Counted::Turns }))
    })
}

/// Ends the chat after `limit` messages, including the opening, an expected end: [`LibraryStopReason::CountReached`].
pub fn max_messages(limit: u64) -> Stop {
    count(move |t| {
        let count = limit.max(t.raised().messages);
        let is_reached = t.message_count() >= count;
        is_reached.then(|| StopReason::from(LibraryStopReason::CountReached { count, of: Counted::Messages }))
    })
}

/// Ends the chat after `limit` input and output tokens since it was opened last, including nested chats. Calls with unknown
/// tokens do not count.
pub fn max_tokens(limit: u64) -> Stop {
    count(move |t| {
        let (used, limit) = (t.tokens(), limit.max(t.raised().tokens));
        (used >= limit).then_some(StopReason::Tokens { limit, used, next: None, cut: None })
    })
}

/// Ends the chat after costs of `limit` since it was opened last, including tools and nested chats. Calls with unknown cost do
/// not count; [`Limits::cost`](polylogue_core::Limits), the limit of a whole run, refuses them.
///
/// ```
/// use polylogue::kernel::data::Money;
/// use polylogue::stop::{max_cost, max_tokens};
///
/// let stop = max_cost(Money::dollars(0.5)) | max_tokens(100_000);
/// ```
pub fn max_cost(limit: Money) -> Stop {
    count(move |t| {
        let (spent, limit) = (t.cost(), limit.max(t.raised().cost));
        (spent >= limit).then_some(StopReason::Cost { limit, spent, next: None, cut: None })
    })
}

/// Ends the chat after `limit_ms` milliseconds by the times of events, not counting time spent waiting for people.
pub fn max_time_ms(limit_ms: u64) -> Stop {
    count(move |t| {
        (t.elapsed_ms() >= limit_ms).then(|| StopReason::from(LibraryStopReason::Time { limit_ms }))
    })
}

/// Ends the chat when `holds`, a pure function of the transcript, is true. The stop reason has the `name`.
///
/// ```
/// use polylogue::Transcript;
/// use polylogue::stop::{Condition, when};
///
/// let stop = when("no participants", |chat: &Transcript| chat.participants().is_empty());
/// assert!(stop.now(&Transcript::default()).is_some());
/// ```
pub fn when(name: &str, holds: impl Fn(&Transcript) -> bool + Send + Sync + 'static) -> Stop {
    let name = name.to_owned();
    count(move |t| holds(t).then(|| StopReason::from(LibraryStopReason::Condition { name: name.clone() })))
}

/// Ends the chat when a message contains `text`. The task and reasoning do not count.
///
/// ```
/// use polylogue::Name;
/// use polylogue::stop::says;
///
/// // One of these two must say it, and nothing else.
/// let stop = says("APPROVED").whole().by(Name::new("Critic")?).by(Name::new("Boss")?);
/// # Ok::<(), polylogue::kernel::data::NameError>(())
/// ```
pub fn says(text: &str) -> Says {
    Says { text: text.into(), whole: false, by: Vec::new() }
}

/// A condition on the text of messages; see [`says`].
#[derive(Debug, Clone)]
pub struct Says {
    text: Arc<str>,
    whole: bool,
    by: Vec<Name>,
}

impl Says {
    /// Requires that the message is exactly the text, except for surrounding white space.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Counts only messages of `name`, or of one of the names added before.
    #[must_use]
    pub fn by(mut self, name: Name) -> Self {
        self.by.push(name);
        self
    }

    /// The stop reason, if `line` ends the chat.
    pub(crate) fn of(&self, line: &TranscriptMessage) -> Option<StopReason> {
        let by = &line.message.from;
        let counts = self.by.is_empty() || self.by.contains(by);
        let holds = counts && self.matches(&line.message.text());
        holds.then(|| {
            StopReason::from(LibraryStopReason::Mentioned { text: Arc::clone(&self.text), by: by.clone() })
        })
    }

    fn matches(&self, text: &str) -> bool {
        if self.whole { text.trim() == self.text.trim() } else { text.contains(&*self.text) }
    }
}

impl Condition for Says {
    fn now(&self, transcript: &Transcript) -> Option<StopReason> {
        transcript.latest().find_map(|line| self.of(line))
    }
    fn ever(&self, transcript: &Transcript) -> Option<StopReason> {
        said(transcript).find_map(|line| self.of(line))
    }
}

impl From<Says> for Stop {
    fn from(says: Says) -> Self {
        Self::new(says)
    }
}

impl<S: Into<Stop>> BitOr<S> for Says {
    type Output = Stop;
    fn bitor(self, other: S) -> Stop {
        Stop::from(self) | other
    }
}

impl<S: Into<Stop>> BitAnd<S> for Says {
    type Output = Stop;
    fn bitand(self, other: S) -> Stop {
        Stop::from(self) & other
    }
}

/// Ends the chat when a message of one of `by`, or of any participant if that is empty, matches the regular expression.
///
/// ```
/// use polylogue::Name;
/// use polylogue::stop::matches;
///
/// let stated = matches(r"(?i)^total: \d+", Vec::new())?;
/// let decided = matches("approved|rejected", vec![Name::new("Clerk")?])?;
/// let stop = stated & decided;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When `pattern` is not a valid regular expression of the `regex` crate.
pub fn matches(pattern: &str, by: Vec<Name>) -> Result<Stop, regex::Error> {
    Ok(Stop::new(Matches { regex: Regex::new(pattern)?, by }))
}

struct Matches {
    regex: Regex,
    by: Vec<Name>,
}

impl Matches {
    fn of(&self, line: &TranscriptMessage) -> Option<StopReason> {
        let by = &line.message.from;
        let is_read = self.by.is_empty() || self.by.contains(by);
        let holds = is_read && self.regex.is_match(&line.message.text());
        holds.then(|| {
            StopReason::from(LibraryStopReason::Matched {
                pattern: self.regex.as_str().to_owned(),
                by: by.clone(),
            })
        })
    }
}

impl Condition for Matches {
    fn now(&self, transcript: &Transcript) -> Option<StopReason> {
        transcript.latest().find_map(|line| self.of(line))
    }
    fn ever(&self, transcript: &Transcript) -> Option<StopReason> {
        said(transcript).find_map(|line| self.of(line))
    }
}

/// The messages after the opening.
fn said(transcript: &Transcript) -> impl Iterator<Item = &TranscriptMessage> {
    transcript.messages().filter(|line| line.source != MessageSource::Opening)
}
