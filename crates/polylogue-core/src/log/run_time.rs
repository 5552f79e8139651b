//! The running time that counts toward limits, by the events of the log.

use super::open_question::OpenQuestions;
use crate::{Body, Budget, ChargeReason, Event, TotalUsage};

/// The running time of a conversation without the time in which it waited for people or had ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunTime {
    /// That of the last event, waiting included.
    last_ms: u64,
    used_ms: u64,
    /// Questions without an answer.
    questions: OpenQuestions,
    is_closed: bool,
}

impl RunTime {
    /// Counts the time between the event before and `event`, and returns it.
    pub(crate) fn add(&mut self, event: &Event) -> u64 {
        let since = event.ran_ms.saturating_sub(self.last_ms);
        let counted = if self.waits() && is_from_outside(&event.body) { 0 } else { since };
        self.last_ms = self.last_ms.max(event.ran_ms);
        self.used_ms = self.used_ms.saturating_add(counted);
        self.questions.add(event);
        match &event.body {
            Body::Closed { .. } if event.chat.is_root() => self.is_closed = true,
            Body::Reopened { .. } if event.chat.is_root() => self.is_closed = false,
            _ => {}
        }
        counted
    }

    /// The time that counts, up to the last event.
    pub(crate) const fn used_ms(&self) -> u64 {
        self.used_ms
    }

    /// The time since the last event in a run whose running time is `ran_ms` now.
    pub(crate) const fn since_last(&self, ran_ms: u64) -> u64 {
        ran_ms.saturating_sub(self.last_ms)
    }

    /// The part of that time that counts if what comes next is from outside.
    pub(crate) const fn counted_since(&self, ran_ms: u64) -> u64 {
        if self.waits() { 0 } else { self.since_last(ran_ms) }
    }

    /// The running time of the last event, waiting included.
    pub(crate) const fn last_ms(&self) -> u64 {
        self.last_ms
    }

    /// The questions without an answer.
    pub(super) const fn questions(&self) -> &OpenQuestions {
        &self.questions
    }

    /// Whether people are waited for, or the conversation has ended.
    pub(crate) const fn waits(&self) -> bool {
        !self.questions.is_empty() || self.is_closed
    }
}

impl Budget {
    /// Counts what a run used in earlier processes, by the events of its log. Times in which several runs were under way count
    /// once.
    pub fn count_events<'e>(&self, events: impl IntoIterator<Item = &'e Event>) {
        let (mut usage, mut doubt) = (TotalUsage::default(), TotalUsage::default());
        let mut time = RunTime::default();
        for event in events {
            match &event.body {
                Body::Charged(charge) if charge.why == ChargeReason::Crashed => doubt.charge(charge),
                _ => usage.add_event(event),
            }
            let ran_ms = time.add(event);
            self.was_busy(event.time.0.saturating_sub(ran_ms), event.time.0);
        }
        self.spend(usage.counted());
        self.doubt(doubt.counted());
    }
}

/// Whether a person or another process made the event.
const fn is_from_outside(body: &Body) -> bool {
    let is_said = matches!(
        body,
        Body::InputProvided { .. } | Body::Sent(_) | Body::Reopened { .. } | Body::NextSpeaker { .. }
    );
    is_said || body.is_of_run()
}
