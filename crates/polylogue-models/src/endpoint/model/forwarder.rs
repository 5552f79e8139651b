//! Forwards the deltas of a call.

use polylogue_core::{DeltaRef, DeltaSink, Part, push_parts};

use crate::retry::Attempts;

use std::time::Duration;

/// Forwards deltas and remembers whether there were any, so that a retry can restart.
pub(crate) struct Forwarder<'a> {
    deltas: &'a mut dyn DeltaSink,
    any: bool,
    /// The parts before those that are forwarded now, if the provider paused after them.
    before: Vec<Part>,
}

impl<'a> Forwarder<'a> {
    pub(super) fn new(deltas: &'a mut dyn DeltaSink) -> Self {
        Self { deltas, any: false, before: Vec::new() }
    }

    /// Keeps what was forwarded, which `parts` are: a retry restarts after it.
    pub(super) fn keep(&mut self, parts: &[Part]) {
        (self.before, self.any) = (parts.to_vec(), false);
    }

    /// Reports a retry, unless it is at once because the request was sent in another form.
    pub(super) fn retry(&mut self, cause: &str, attempts: &Attempts<'_>, wait: Duration) {
        let (retry, retries) = attempts.retries();
        if retry > 0 {
            self.deltas.push(DeltaRef::Retry { cause, retry, retries, wait });
        }
    }

    /// Withdraws what was forwarded since the last restart, except for what is kept.
    pub(super) fn restart(&mut self) {
        if !std::mem::take(&mut self.any) {
            return;
        }
        self.deltas.push(DeltaRef::Restart);
        push_parts(&self.before, self.deltas);
    }
}

impl DeltaSink for Forwarder<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.any = true;
        let earlier = self.before.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
        self.deltas.push(match delta {
            DeltaRef::Call { index, tool, args } => DeltaRef::Call { index: index + earlier, tool, args },
            delta => delta,
        });
    }
}
