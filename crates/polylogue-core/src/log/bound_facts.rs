//! Whether the bound of a run applies: a fold of the events of its log.

use serde::{Deserialize, Serialize};

use crate::{
    Body, Bound, BoundException, Capability, Charge, ChargeReason, Event, InputTokens, ModelReply, Name,
    Part, Path, Responder, RunBound,
};

/// What a log says about whether the [bound](RunBound) of its run still applies: a fold of its events, which stores keep in the
/// [`Summary`](super::Summary), so that a log need not be read to know. [`RunBound::exception_by`] compares it with a bound.
///
/// ```
/// # use polylogue_core::{BoundFacts, RunBound};
/// let bound = RunBound { calls: Some(12), ..RunBound::default() };
/// assert_eq!(bound.exception_by(&BoundFacts::default()), None, "no event");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoundFacts {
    /// The first event on which bounds do not rest. Nothing else counts then.
    #[serde(skip_serializing_if = "Option::is_none")]
    exception: Option<BoundException>,
    /// The task and the messages with which the outermost chat began, with what is attached: a byte as a token; `None` before.
    #[serde(skip_serializing_if = "Option::is_none")]
    opening: Option<InputTokens>,
    /// The agents whose last reply could not be parsed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unparsed: Vec<(Path, Name)>,
    /// The capabilities that models were found to lack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Capability>,
    /// Whether a reply had seals.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_seals: bool,
}

impl BoundFacts {
    /// Adds the next event.
    pub(crate) fn add(&mut self, event: &Event) {
        if self.exception.is_some() {
            return;
        }
        match &event.body {
            Body::Opened(opening) if event.chat.is_root() => {
                let said = opening.messages.iter().map(|message| size(&message.parts));
                let task = InputTokens::from(opening.task.len() as u64);
                self.opening = Some(said.fold(task, InputTokens::and));
            }
            Body::ModelReplied(reply) => self.reply(&event.chat, reply),
            Body::CapabilityMissing { capability, .. } if !self.missing.contains(capability) => {
                self.missing.push(*capability);
            }
            _ => {}
        }
        if let Some(exception) = exception(event).or(self.exception) {
            *self = Self { exception: Some(exception), ..Self::default() };
        }
    }

    fn reply(&mut self, at: &Path, reply: &ModelReply) {
        self.has_seals |= is_sealed(reply);
        let is_own = |(of, who): &mut (Path, Name)| of == at && *who == reply.who;
        let was_unparsed = self.unparsed.extract_if(.., is_own).count() > 0;
        if reply.is_unparsed() {
            self.unparsed.push((at.clone(), reply.who.clone()));
            self.exception = was_unparsed.then_some(BoundException::Unparsed);
        }
    }

    /// Why nothing of `bound` applies any more.
    pub(super) fn end_of(&self, bound: &RunBound) -> Option<BoundException> {
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
}

impl RunBound {
    /// Returns why it does not apply any more after `events`, from the first one of a log on; `None` if it does, or if it
    /// bounds nothing.
    pub fn exception_after<'e>(&self, events: impl IntoIterator<Item = &'e Event>) -> Option<BoundException> {
        let mut facts = BoundFacts::default();
        events.into_iter().for_each(|event| facts.add(event));
        self.exception_by(&facts)
    }

    /// Returns the same for a log of which these are the `facts`.
    pub fn exception_by(&self, facts: &BoundFacts) -> Option<BoundException> {
        let by_prices = || self.is_repriced.then_some(BoundException::Prices);
        facts.end_of(self).or_else(by_prices).filter(|_| self.bounds_anything())
    }
}

/// Why no bound rests on `event`.
fn exception(event: &Event) -> Option<BoundException> {
    if sounds(&event.body) {
        return Some(BoundException::Sound);
    }
    let is_outermost = event.chat.is_root();
    match &event.body {
        Body::ToolReturned { result: outcome, .. } => {
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
        Body::TeamChanged(changed) if !changed.harmless => Some(BoundException::TeamChanged),
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
        Body::ToolReturned { result: outcome, .. } => any(&outcome.parts),
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
        Part::ToolCall(call) => InputTokens::from(call.args.to_string().len() as u64),
        Part::Media(media) => media.input_tokens(),
        _ => InputTokens::default(),
    };
    parts.iter().map(of).fold(InputTokens::default(), InputTokens::and)
}

/// The same of a reply, whose model may not be known.
fn bytes(parts: &[Part]) -> u64 {
    size(parts).with_pages(Bound::PAGE_TOKENS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Message, TeamChanged, Timestamp};

    fn reply(finish: &str) -> Body {
        let body = json!({
            "type": "model_replied", "who": "Ann", "model": "m", "request": "0".repeat(32), "parts": [], "finish": finish,
        });
        serde_json::from_value(body).unwrap()
    }

    /// Why a bound does not apply after these events, each added to facts that were stored and read.
    fn exception(bodies: impl IntoIterator<Item = Body>) -> Option<BoundException> {
        let event = |(seq, body)| {
            let (at, time) = (Path::root(), Timestamp(0));
            Event { seq, chat: at, time, ran_ms: 0, inbox: None, body }
        };
        let events: Vec<Event> = (0..).zip(bodies).map(event).collect();
        let bound = RunBound { calls: Some(9), ..RunBound::default() };
        let mut facts = BoundFacts::default();
        for event in &events {
            facts.add(event);
            facts = serde_json::from_str(&serde_json::to_string(&facts).unwrap()).unwrap();
        }
        let found = bound.exception_by(&facts);
        assert_eq!(bound.exception_after(&events), found);
        found
    }

    #[test]
    fn facts_that_are_stored_between_events_decide_as_all_events_do() {
        let sent = || Body::Sent(Message::new(Name::user(), "And?"));
        let unparsed = || reply("malformed");
        let changed = |harmless| {
            Body::TeamChanged(TeamChanged {
                digest: "d".into(),
                changes: vec!["a change".into()],
                harmless,
                team: json!({}),
            })
        };
        for (bodies, found) in [
            (vec![], None),
            (vec![unparsed(), reply("stop"), unparsed()], None),
            (vec![unparsed(), unparsed()], Some(BoundException::Unparsed)),
            (vec![sent()], Some(BoundException::Continued)),
            (vec![changed(true), changed(true)], None),
            (vec![changed(true), changed(false), changed(true)], Some(BoundException::TeamChanged)),
            (vec![sent(), unparsed(), unparsed()], Some(BoundException::Continued)),
        ] {
            assert_eq!(exception(bodies), found);
        }
    }
}
