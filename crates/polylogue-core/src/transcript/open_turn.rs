//! An open turn of a chat.

use std::sync::Arc;

use crate::log::LastEvent;
use crate::{Charge, ChargeReason, Event, Question, TurnRequest};

/// An open turn.
#[derive(Debug, Clone)]
pub(crate) struct OpenTurn {
    pub(crate) request: TurnRequest,
    /// Its events so far.
    pub(crate) events: Vec<Arc<Event>>,
    /// Shared events of chats within it.
    pub(crate) within: Vec<Arc<Event>>,
    /// The ends of background tasks of its agent that came with the end of the chat, which was reopened.
    pub(crate) ends: Vec<Arc<Event>>,
    /// Its question.
    pub(crate) asked: Option<Question>,
    /// Its last event, charges included.
    pub(crate) last: LastEvent,
    /// Requests besides its next model call that may be in flight, with the `seq` of their events.
    pub(crate) reserved: Vec<(u64, Charge)>,
}

impl OpenTurn {
    /// The turn of `request`, which the event `seq` begins.
    pub(super) const fn new(request: TurnRequest, seq: u64) -> Self {
        Self {
            request,
            events: Vec::new(),
            within: Vec::new(),
            ends: Vec::new(),
            asked: None,
            last: LastEvent { seq, proves_no_call: false },
            reserved: Vec::new(),
        }
    }

    /// Takes in a charge of its agent, the event `seq`.
    pub(super) fn charged(&mut self, charge: &Charge, seq: u64) {
        self.last = LastEvent { seq, proves_no_call: charge.why == ChargeReason::Cancelled };
        match charge.why {
            ChargeReason::Reserved => self.reserved.push((seq, charge.clone())),
            // Another attempt, or the rest of a paused reply, may still be in flight.
            ChargeReason::Failed | ChargeReason::Discarded | ChargeReason::Unreported => {}
            _ => self.settle(charge.call.as_deref()),
        }
    }

    /// The requests of a tool call, or those for the rest of a reply, are in flight no more.
    pub(super) fn settle(&mut self, call: Option<&str>) {
        self.reserved.retain(|(_, charge)| charge.call.as_deref() != call);
    }
}
