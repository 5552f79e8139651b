//! What counts toward the bound of a run.

use super::bound_facts::BoundFacts;
use crate::limits::{Admission, Reserved, RunReservation, RunUsage};
use crate::{
    Body, Bound, BoundException, Charge, ChargeReason, Event, Money, Name, Path, RunBound, StopReason,
    TotalUsage,
};

/// The usage of the model calls of agents, and what decides whether the bound applies. Rebuilt from the events of the log alone.
#[derive(Default)]
pub(crate) struct BoundAccount {
    usage: TotalUsage,
    /// Failed attempts of calls that have no reply yet. Another run of a failed turn begins to count them again.
    failed: Vec<(Path, Name, Charge)>,
    facts: BoundFacts,
}

impl BoundAccount {
    pub(crate) fn add(&mut self, event: &Event) {
        self.facts.add(event);
        match &event.body {
            Body::ModelReplied(reply) => {
                let is_of = |at: &Path, who: &Name| *at == event.chat && *who == reply.who;
                self.failed.extract_if(.., |(at, who, _)| is_of(at, who)).for_each(|(.., charge)| {
                    self.usage.charge(&charge);
                });
                self.usage.add(reply);
            }
            Body::Charged(charge) if charge.call.is_none() => self.charge(&event.chat, charge),
            Body::Failed { who, .. } => self.failed.retain(|(at, of, _)| *at != event.chat || of != who),
            _ => {}
        }
    }

    fn charge(&mut self, at: &Path, charge: &Charge) {
        let is_refused = charge.tokens.is_none() && charge.cost.is_none();
        match charge.why {
            // Refused before anything was done: such as with a key that has no money left.
            ChargeReason::Failed if is_refused => {}
            ChargeReason::Failed | ChargeReason::Discarded => {
                self.failed.push((at.clone(), charge.who.clone(), charge.clone()));
            }
            ChargeReason::Unreported => self.usage.charge(charge),
            // The call was lost with its process, and is not what a team takes.
            _ => {}
        }
    }

    fn used(&self) -> TotalUsage {
        let mut usage = self.usage;
        self.failed.iter().for_each(|(.., charge)| usage.charge(charge));
        usage
    }

    /// Why `bound`, or its money, does not apply; `None` if all of it does.
    pub(crate) fn exception(&self, bound: &RunBound) -> Option<BoundException> {
        bound.exception_by(&self.facts)
    }

    /// Reserves a call of the upper bound `call` within `bound`, if that applies.
    pub(super) fn admit(&self, bound: RunBound, reserved: &Reserved, call: &Bound) -> Admission {
        if self.facts.end_of(&bound).is_some() {
            return Admission::Now(RunReservation::default());
        }
        // What is unknown of a call is in no bound.
        let known = Bound { tokens: Some(call.least_tokens()), cost: Some(call.least()), ..*call };
        // What costs nothing fits, whatever is left.
        let cost = bound.cost.filter(|_| !bound.is_repriced && call.least() > Money::default());
        let tokens = bound.tokens.filter(|_| call.least_tokens() > 0);
        let bound = RunBound { cost, tokens, ..bound };
        let used = RunUsage { counted: self.used().counted(), unpriced: None, time_ms: 0 };
        match bound.limits().admit(used, reserved, 0, (&known, 1)) {
            Admission::Never(reason) => Admission::Never(StopReason::Bound { exceeded: Box::new(reason) }),
            admission => admission,
        }
    }
}
