//! What counts toward the bound of a run, and whether the bound applies.

use crate::limits::{Admission, Reserved, RunReservation, RunUsage};
use crate::{
    Body, Bound, BoundException, Capability, Charge, ChargeReason, Event, InputTokens, ModelReply, Money,
    Name, Part, Path, Responder, RunBound, StopReason, TotalUsage,
};

/// The usage of the model calls of agents. Rebuilt from the events of the log alone.
#[derive(Default)]
pub(crate) struct BoundAccount {
    usage: TotalUsage,
    /// Failed attempts of calls that have no reply yet. Another run of a failed turn begins to count them again.
    failed: Vec<(Path, Name, Charge)>,
    /// The first event on which bounds do not rest.
    exception: Option<BoundException>,
    /// The task and the messages with which the outermost chat began, with what is attached: a byte as a token; `None` before.
    opening: Option<InputTokens>,
    /// The agents whose last reply could not be parsed.
    unparsed: Vec<(Path, Name)>,
    /// The capabilities that models were found to lack.
    missing: Vec<Capability>,
    /// Whether a reply had seals.
    has_seals: bool,
}

impl BoundAccount {
    pub(crate) fn add(&mut self, event: &Event) {
        self.exception = self.exception.or_else(|| exception(event));
        match &event.body {
            Body::Opened(opening) if event.at.is_root() => {
                let said = opening.messages.iter().map(|message| size(&message.parts));
                let task = InputTokens::from(opening.task.len() as u64);
                self.opening = Some(said.fold(task, InputTokens::and));
            }
            Body::ModelReplied(reply) => {
                let is_of = |at: &Path, who: &Name| *at == event.at && *who == reply.who;
                self.failed.extract_if(.., |(at, who, _)| is_of(at, who)).for_each(|(.., charge)| {
                    self.usage.charge(&charge);
                });
                self.usage.add(reply);
                self.has_seals |= is_sealed(reply);
                let was = self.unparsed.extract_if(.., |(at, who)| is_of(at, who)).count() > 0;
                if reply.is_unparsed() {
                    self.unparsed.push((event.at.clone(), reply.who.clone()));
                    let exception = was.then_some(BoundException::Unparsed);
                    self.exception = self.exception.or(exception);
                }
            }
            Body::Charged(charge) if charge.call.is_none() => self.charge(&event.at, charge),
            Body::CapabilityMissing { capability, .. } => self.missing.push(*capability),
            Body::Failed { who, .. } => self.failed.retain(|(at, of, _)| *at != event.at || of != who),
            _ => {}
        }
    }

    fn charge(&mut self, at: &Path, charge: &Charge) {
        let is_refused = charge.tokens.is_none() && charge.cost.is_none();
        match charge.why {
            // Refused before anything was done: such as with a key that has no money left.
            ChargeReason::Failed if is_refused => {}
            ChargeReason::Failed => self.failed.push((at.clone(), charge.who.clone(), charge.clone())),
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
        self.end_of(bound).or_else(|| bound.is_repriced.then_some(BoundException::Prices))
    }

    /// Why nothing of `bound` applies any more.
    fn end_of(&self, bound: &RunBound) -> Option<BoundException> {
        let is_more = |found: u64, most: Option<u64>| most.is_some_and(|most| found > most);
        let is_longer = || {
            self.opening.is_some_and(|InputTokens { all, pages, .. }| {
                is_more(all, bound.opening) || is_more(pages, bound.opening_pages)
            })
        };
        let is_expected = |of: &Capability| bound.expects.has(*of) == Some(true);
        let missing = || self.missing.iter().copied().find(is_expected);
        let has_seals = || (self.has_seals && bound.expects_no_seals).then_some(BoundException::Seals);
        let by_event = self.exception.or_else(|| missing().map(BoundException::CapabilityMissing));
        by_event.or_else(has_seals).or_else(|| is_longer().then_some(BoundException::Opening))
    }

    /// Reserves a call of the upper bound `call` within `bound`, if that applies.
    pub(super) fn admit(&self, bound: RunBound, reserved: &Reserved, call: &Bound) -> Admission {
        if self.end_of(&bound).is_some() {
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

impl RunBound {
    /// Returns why it does not apply any more after `events`, from the first one of a log on; `None` if it does, or if it
    /// bounds nothing.
    pub fn exception_after<'e>(&self, events: impl IntoIterator<Item = &'e Event>) -> Option<BoundException> {
        let mut account = BoundAccount::default();
        events.into_iter().for_each(|event| account.add(event));
        account.exception(self).filter(|_| self.bounds_anything())
    }
}

/// Why no bound rests on `event`.
fn exception(event: &Event) -> Option<BoundException> {
    if sounds(&event.body) {
        return Some(BoundException::Sound);
    }
    let is_outermost = event.at.is_root();
    match &event.body {
        Body::ToolReturned { outcome, .. } => {
            let has_media = outcome.parts.iter().any(|part| matches!(part, Part::Media(_)));
            has_media.then_some(BoundException::Media)
        }
        // The default answer is that of the team.
        Body::InputProvided { text, by, .. }
            if *by != Responder::Timeout && text.len() as u64 > RunBound::MESSAGE_BYTES =>
        {
            Some(BoundException::LongAnswer)
        }
        Body::ModelReplied(reply) if reply.output_limit.is_some() => Some(BoundException::Overlong),
        Body::ModelReplied(reply) => is_larger(reply),
        Body::Sent(_) => Some(BoundException::Continued),
        // Without a message and more to use, it only continues what a budget interrupted.
        Body::Reopened { message: None, more, .. } if more.is_empty() => None,
        Body::Reopened { .. } | Body::RolledBack { .. } if is_outermost => Some(BoundException::Continued),
        Body::LimitsChanged { .. } | Body::OwnLimitsRaised { .. } | Body::NextSpeaker { .. } => {
            Some(BoundException::Steered)
        }
        Body::TeamChanged(_) => Some(BoundException::TeamChanged),
        Body::TooLong { .. } => Some(BoundException::TooLong),
        Body::Charged(Charge { why: ChargeReason::Reserved, call: None, .. }) => Some(BoundException::Paused),
        _ => None,
    }
}

/// Whether models read a sound from then on.
fn sounds(body: &Body) -> bool {
    let any =
        |parts: &[Part]| parts.iter().any(|part| matches!(part, Part::Media(media) if media.is_audio()));
    match body {
        Body::Opened(opening) => opening.messages.iter().any(|message| any(&message.parts)),
        Body::Message(message) | Body::Posted(message) | Body::Sent(message) => any(&message.parts),
        Body::ToolReturned { outcome, .. } => any(&outcome.parts),
        _ => false,
    }
}

fn is_sealed(reply: &ModelReply) -> bool {
    reply.verbatim.as_ref().is_some_and(|verbatim| verbatim.seals.is_some())
}

/// Why no bound rests on `reply`: it is longer for its tokens than bounds expect, or what later requests return of it.
fn is_larger(reply: &ModelReply) -> Option<BoundException> {
    let output = reply.usage.output?;
    let said = output.saturating_mul(RunBound::BYTES_PER_TOKEN);
    if bytes(&reply.parts) > said {
        return Some(BoundException::LongReply);
    }
    let (exception, seals) = match is_sealed(reply) {
        false => (BoundException::LongReply, 0),
        true => {
            let seals = output.saturating_mul(RunBound::SEAL_BYTES_PER_TOKEN);
            (BoundException::Seals, seals.saturating_add(RunBound::SEAL_BYTES))
        }
    };
    (returned(reply) > said.saturating_add(seals)).then_some(exception)
}

/// The bytes of `reply` in later requests of its agent.
fn returned(reply: &ModelReply) -> u64 {
    let thought = |part: &Part| match part {
        Part::Thought(text) => text.len() as u64,
        _ => 0,
    };
    // Thoughts are returned only if they are sealed.
    let thoughts: u64 = if is_sealed(reply) { reply.parts.iter().map(thought).sum() } else { 0 };
    let verbatim = reply.verbatim.as_ref().map_or(0, |verbatim| verbatim.bytes_besides(&reply.parts));
    [thoughts, verbatim].into_iter().fold(bytes(&reply.parts), u64::saturating_add)
}

/// The bytes of text and of calls, and the tokens of pictures, sounds and documents.
fn size(parts: &[Part]) -> InputTokens {
    let of = |part: &Part| match part {
        Part::Text(text) => InputTokens::from(text.len() as u64),
        Part::Call(call) => InputTokens::from(call.args.to_string().len() as u64),
        Part::Media(media) => media.input_tokens(),
        _ => InputTokens::default(),
    };
    parts.iter().map(of).fold(InputTokens::default(), InputTokens::and)
}

/// The same of a reply, whose model may not be known.
fn bytes(parts: &[Part]) -> u64 {
    size(parts).with_pages(Bound::PAGE_TOKENS)
}
