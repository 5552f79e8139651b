//! Replies of the agent's own model in its view.

use std::sync::Arc;

use super::View;
use super::entry::EncodeCache;
use super::pending::Pending;
use super::words::is_spoken;
use crate::data::joined;
use crate::{FinishReason, ModelReply, Part, Verbatim};

impl View {
    pub(super) fn model_replied(&mut self, reply: &ModelReply) {
        // Nothing continues from a reply that is asked for again without a prompt.
        self.pending.discard_unparsed();
        self.settle();
        self.measured = reply.usage.input.filter(|_| !reply.cached).map(|input| (input, self.entries.len()));
        let before = (reply.finish == FinishReason::ContextFull).then(|| self.mark());
        let is_unparsed = reply.is_unparsed();
        // The rest of a truncated reply is asked for again, too.
        let whole = self.partial.take_if(|_| !is_unparsed).map(|(mark, before)| {
            self.go_back(mark);
            joined(before, &reply.parts)
        });
        self.pending = match whole {
            Some(parts) => Pending { parts, verbatim: None, is_unparsed },
            None => {
                let verbatim = reply.verbatim.as_ref().and_then(Verbatim::returned);
                Pending { parts: reply.parts.clone(), verbatim, is_unparsed }
            }
        };
        let calls = self.pending.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some((call.clone(), None)),
            _ => None,
        });
        self.awaited.extend(calls);
        if !self.awaited.is_empty() {
            self.settle_pending();
        }
        self.full = before;
    }

    /// Removes a reply that filled the context window, which was the last event: the request is sent again.
    pub(super) fn discard_reply(&mut self) {
        if let Some(mark) = self.full.take() {
            self.pending = Pending::default();
            self.go_back(mark);
        }
    }

    /// Appends the pending reply: its parts in their order, with the thoughts that are sealed. A reply of thoughts
    /// only is left out.
    pub(super) fn settle_pending(&mut self) {
        let Pending { parts, verbatim, .. } = std::mem::take(&mut self.pending);
        let verbatim = verbatim.filter(|_| !self.options.calls_as_text);
        if !parts.iter().any(|part| is_spoken(part, &parts)) {
            return;
        }
        let is_sealed = |at: usize, part: &Part| {
            part.is_thought() && verbatim.as_ref().is_some_and(|verbatim| verbatim.seal(at, part).is_some())
        };
        let sent =
            |(at, part): (usize, &Part)| (is_spoken(part, &parts) || is_sealed(at, part)).then_some(at);
        let kept: Vec<usize> = parts.iter().enumerate().filter_map(sent).collect();
        let verbatim = match verbatim {
            Some(whole) if kept.len() == parts.len() => Some(whole),
            Some(whole) => whole.of_kept(&kept).map(Arc::new),
            None => None,
        };
        let parts = kept.iter().filter_map(|at| parts.get(*at).cloned()).collect();
        self.push_assistant(parts, verbatim);
    }

    /// Removes all seals, because the provider refused them, and the thoughts that they were on.
    pub(super) fn unseal(&mut self) {
        self.pending.verbatim = self.pending.verbatim.take().and_then(|of| of.unsealed()).map(Arc::new);
        for entry in &mut self.entries {
            if let Some(plain) = entry.unsealed() {
                *entry = plain;
            }
        }
        self.relink(|entries| entries);
        self.encoded = EncodeCache::default();
    }
}
