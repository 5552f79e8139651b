//! Methods of speaker selection.

use polylogue_core::{Body, Choice, Chooser, Event, Message, Name, Step, Transcript, TurnRequest};

use super::answer::Answer;
use crate::policies::order::after;

/// A method of selecting among candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// The next in the order of the participants.
    RoundRobin,
    /// At random, with this seed. Default: the time of the chat's first event.
    Random(Option<u64>),
    /// This agent, in a private turn: a [`Selector`](super::Selector), a [`HumanSelector`](super::HumanSelector), or a
    /// custom one.
    Agent(Name),
}

/// The result of a custom rule.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::From)]
pub enum Selected {
    /// This participant speaks.
    #[from]
    Name(Name),
    /// This method selects the speaker.
    #[from]
    Method(Method),
    /// The chat ends.
    End,
}

impl Method {
    /// Requests a turn of the selected speaker, or of the selector. `of` is not empty.
    pub(super) fn choose(&self, chat: &Transcript, of: Vec<Name>) -> Step {
        match (self, of.as_slice()) {
            (Self::RoundRobin, _) => by_order(chat, of, Chooser::Order, None),
            (_, [only]) => request(only.clone(), of, Chooser::Only, None),
            (Self::Random(seed), _) => {
                let seed = seed.unwrap_or_else(|| chat.events().first().map_or(0, |first| first.time.0));
                match draw(chat, seed, &of).cloned() {
                    Some(name) => request(name, of, Chooser::Chance { seed }, None),
                    None => by_order(chat, of, Chooser::Order, None),
                }
            }
            (Self::Agent(who), _) => match private_reply_of(chat, who) {
                PrivateReply::NotYet => ask(who, of),
                PrivateReply::Silent => fall_back(chat, of, &format!("`{who}` said nothing"), None),
                PrivateReply::Said(message) => answered(chat, who, message, of),
            },
        }
    }
}

/// The turn request for `who`, selected among `of`.
pub(super) fn request(who: Name, of: Vec<Name>, by: Chooser, reply: Option<&str>) -> Step {
    Step::Turn(TurnRequest::to_all(who).with_choice(Choice { of, by, reply: reply.map(Into::into) }))
}

/// Asks `who` in a private turn to select among `of`.
fn ask(who: &Name, of: Vec<Name>) -> Step {
    let choice = Choice { of, by: Chooser::Agent(who.clone()), reply: None };
    let request = TurnRequest { to: polylogue_core::Audience::private(), ..TurnRequest::to_all(who.clone()) };
    Step::Turn(request.with_choice(choice))
}

/// The turn request for the next of `of` in the order of the participants.
fn by_order(chat: &Transcript, of: Vec<Name>, by: Chooser, reply: Option<&str>) -> Step {
    match next_in_order(chat, &of).cloned() {
        Some(name) => request(name, of, by, reply),
        None => Step::Fail("must choose among no participants".into()),
    }
}

fn fall_back(chat: &Transcript, of: Vec<Name>, why: &str, reply: Option<&str>) -> Step {
    by_order(chat, of, Chooser::Fallback { why: why.into() }, reply)
}

/// The next of `of` in the order of the participants.
pub(super) fn next_in_order<'o>(chat: &Transcript, of: &'o [Name]) -> Option<&'o Name> {
    let next = after(chat, |name| of.contains(name));
    of.iter().find(|name| Some(*name) == next).or(of.first())
}

fn answered(chat: &Transcript, who: &Name, message: &Message, of: Vec<Name>) -> Step {
    let text = message.text();
    let reply = Some(&*text).filter(|reply| !reply.is_empty());
    match Answer::read(message, &of, chat.participants()) {
        Answer::Picked(name) if of.contains(&name) => request(name, of, Chooser::Agent(who.clone()), reply),
        Answer::Picked(name) => {
            fall_back(chat, of, &format!("`{who}` picked `{name}`, who may not speak now"), reply)
        }
        Answer::NextInOrder => by_order(chat, of, Chooser::Order, reply),
        Answer::Failed(why) => fall_back(chat, of, &why, reply),
    }
}

/// The result of an agent's private turns since the last turn in the chat.
enum PrivateReply<'c> {
    NotYet,
    Silent,
    Said(&'c Message),
}

/// What the agent said when it was asked for the next speaker.
fn private_reply_of<'c>(chat: &'c Transcript, agent: &Name) -> PrivateReply<'c> {
    for event in chat.events().iter().rev().map(|event| -> &'c Event { event }) {
        match &event.body {
            Body::Message(message) if message.from == *agent && message.to.is_private() => {
                return PrivateReply::Said(message);
            }
            Body::Passed { who } | Body::Left { who, .. } if who == agent => {
                return PrivateReply::Silent;
            }
            Body::TurnStarted { turns: requests }
                if requests.iter().all(|request| request.to.is_private()) => {}
            Body::TurnStarted { .. }
            | Body::Opened(_)
            | Body::Reopened { .. }
            | Body::Posted(_)
            | Body::Joined { .. } => break,
            _ => {}
        }
    }
    PrivateReply::NotYet
}

/// One of `of` at random: the same for the same seed at the same point of the same chat.
fn draw<'o>(chat: &Transcript, seed: u64, of: &'o [Name]) -> Option<&'o Name> {
    // Silent turns add no line, and reopening resets the count of turns: together they identify a step.
    let place = (chat.all_messages().len() as u64) << 32 ^ chat.turns();
    let number = mix(mix(seed) ^ place);
    let index = (u128::from(number) * of.len() as u128) >> 64;
    of.get(usize::try_from(index).ok()?)
}

/// The output function of SplitMix64 (Steele, Lea and Flood 2014), after a step of its counter.
const fn mix(counter: u64) -> u64 {
    let z = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
