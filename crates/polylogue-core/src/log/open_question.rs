//! Questions without an answer: a fold of events.

use std::sync::Arc;

use super::clock::Timestamp;
use super::event::{Body, Event};
use super::question::{Question, Responder};
use crate::{Message, Name, Path};

/// A question without an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// The path of its chat.
    pub chat: Path,
    /// The `seq` of the event that asks, which identifies it in its conversation.
    pub seq: u64,
    /// The time at which it was asked.
    pub asked: Timestamp,
    /// The question.
    pub question: Question,
}

impl OpenQuestion {
    /// Returns the questions without an answer in the log `events`, oldest first.
    pub fn of(events: &[Arc<Event>]) -> Vec<Self> {
        let mut open = OpenQuestions::default();
        events.iter().for_each(|event| open.add(event));
        open.all()
    }

    /// Returns when its default answer counts; `None` if it waits without a limit.
    pub fn until(&self) -> Option<Timestamp> {
        let default = self.question.default.as_ref()?;
        Some(Timestamp(self.asked.0.saturating_add(default.after_ms)))
    }

    /// Returns whether its time is up at `now`: its default answer counts, and no other one.
    pub fn is_up(&self, now: Timestamp) -> bool {
        self.until().is_some_and(|until| until <= now)
    }

    /// The chat and the event of its default answer; `None` if it has none.
    pub(crate) fn default_answer(self) -> Option<(Path, Body)> {
        let text = self.question.default?.text;
        Some((self.chat, Body::InputProvided { to: self.question.who, text, by: Responder::Timeout }))
    }

    /// Returns when the first of `questions` has its default answer; `None` if all of them wait without a limit.
    pub fn first_default(questions: &[Self]) -> Option<Timestamp> {
        questions.iter().filter_map(Self::until).min()
    }
}

/// The questions without an answer, kept up to date with each event.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenQuestions(Vec<(Path, (u64, Timestamp, Question))>);

impl OpenQuestions {
    pub(super) fn add(&mut self, event: &Event) {
        let new = |question: &Question| (event.seq, event.time, question.clone());
        Question::track(&mut self.0, event, new, |(.., question)| &question.who);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, oldest first.
    pub(super) fn all(&self) -> Vec<OpenQuestion> {
        let question = |(at, (seq, asked, question)): &(Path, (u64, Timestamp, Question))| OpenQuestion {
            chat: at.clone(),
            seq: *seq,
            asked: *asked,
            question: question.clone(),
        };
        self.0.iter().map(question).collect()
    }
}

impl Question {
    /// Returns the questions without an answer in the log `events`, with the paths of their chats.
    pub fn open_in(events: &[Arc<Event>]) -> Vec<(Path, Self)> {
        Self::with_chats(OpenQuestion::of(events))
    }

    pub(crate) fn with_chats(open: Vec<OpenQuestion>) -> Vec<(Path, Self)> {
        open.into_iter().map(|open| (open.chat, open.question)).collect()
    }

    /// Keeps track of open questions: adds the one that `event` asks, as `new` makes it, and removes those that it settles: with an
    /// answer, or because the turns that wait for one are over.
    pub(super) fn track<T>(
        open: &mut Vec<(Path, T)>,
        event: &Event,
        new: impl Fn(&Self) -> T,
        asker: impl Fn(&T) -> &Name,
    ) {
        let chat = &event.chat;
        match &event.body {
            Body::InputRequired(question) => open.push((chat.clone(), new(question))),
            Body::InputProvided { to, .. } => open.retain(|(at, asked)| at != chat || asker(asked) != to),
            _ => Self::settle(open, event, asker),
        }
    }

    /// Removes what belongs to turns that are over with `event`.
    pub(super) fn settle<T>(open: &mut Vec<(Path, T)>, event: &Event, asker: impl Fn(&T) -> &Name) {
        let chat = &event.chat;
        match &event.body {
            Body::Message(Message { from: who, .. })
            | Body::Passed { who }
            | Body::Left { who, .. }
            | Body::Stopped { who, .. } => open.retain(|(at, asked)| {
                let is_own = at == chat && asker(asked) == who;
                !is_own && !at.is_run_by(chat, who)
            }),
            // Open turns of the outermost chat, and of one in which an agent is called, continue when it is opened again.
            Body::Closed { .. } if chat.owner().is_some() => {
                open.retain(|(at, _)| at != chat && !at.is_within(chat));
            }
            // All its open turns are over, with the chats in them. Background tasks are in none: those that the turns started are rolled
            // back as well.
            Body::RolledBack { .. } => open.retain(|(at, _)| {
                let is_background = at.as_background_of(chat).is_some();
                at != chat && (is_background || !at.is_within(chat))
            }),
            // Those within a task that has ended have no answer any more.
            Body::BackgroundEnded(result) => {
                let is_within = |at: &Path| {
                    at.as_background_of(chat).is_some_and(|(who, number)| result.is_of(who, number))
                };
                open.retain(|(at, _)| !is_within(at));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DefaultAnswer, StopReason, TurnRequest};

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// The chats whose questions are open after these events.
    fn open(bodies: &[(&Path, Body)]) -> Vec<String> {
        let event = |(seq, (at, body)): (u64, &(&Path, Body))| {
            let (at, body) = ((*at).clone(), body.clone());
            Arc::new(Event { seq, chat: at, time: Timestamp(0), ran_ms: 0, inbox: None, body })
        };
        let events: Vec<Arc<Event>> = (0..).zip(bodies).map(event).collect();
        OpenQuestion::of(&events).iter().map(|open| open.chat.to_string()).collect()
    }

    #[test]
    fn a_default_answer_counts_from_its_time_on() {
        let asked = |default| OpenQuestion {
            chat: Path::root(),
            seq: 0,
            asked: Timestamp(1_000),
            question: Question { default, ..Question::new(name("Kim"), "?") },
        };
        let after = |after_ms| asked(Some(DefaultAnswer { after_ms, text: "no".into() }));
        let (never, soon, last) = (asked(None), after(500), after(u64::MAX));
        for (now, is_up) in [(1_499, false), (1_500, true), (u64::MAX, true)] {
            assert_eq!(soon.is_up(Timestamp(now)), is_up, "{now}");
        }
        assert!(!never.is_up(Timestamp(u64::MAX)) && last.is_up(Timestamp(u64::MAX)));
        assert_eq!(OpenQuestion::first_default(&[never.clone(), last, soon]), Some(Timestamp(1_500)));
        assert_eq!(OpenQuestion::first_default(&[never]), None);
    }

    #[test]
    fn a_question_is_settled_when_its_turn_is_over() {
        let root = Path::root();
        let desk = root.child(&name("desk"), 1);
        let inner = desk.child(&name("inner"), 1);
        let called = root.agent("Host.Helper").unwrap();
        let of_called = called.child(&name("talk"), 1);
        let task = root.background(&name("Host"), 1);
        let asks = |at| (at, Body::InputRequired(Question::new(name("Kim"), "?")));
        let closed = || Body::Closed { reason: StopReason::Finished, summary: "".into() };
        let passed = |who: &str| Body::Passed { who: name(who) };
        let asked = [&root, &desk, &inner, &called, &of_called, &task];
        for (at, ends, left) in [
            (&desk, closed(), vec![&root, &called, &of_called, &task]),
            (&inner, closed(), vec![&root, &desk, &called, &of_called, &task]),
            // They are opened again.
            (&root, closed(), asked.to_vec()),
            (&called, closed(), asked.to_vec()),
            (&root, passed("Kim"), vec![&desk, &inner, &called, &of_called, &task]),
            (&root, passed("desk"), vec![&root, &called, &of_called, &task]),
            (&root, passed("Host"), vec![&root, &desk, &inner, &task]),
            (&called, passed("Helper"), vec![&root, &desk, &inner, &called, &task]),
            (&root, passed("Ann"), asked.to_vec()),
            (&root, Body::RolledBack { since: 0 }, vec![&task]),
            (&called, Body::RolledBack { since: 0 }, vec![&root, &desk, &inner, &task]),
            (&task, Body::RolledBack { since: 0 }, vec![&root, &desk, &inner, &called, &of_called]),
            (&root, Body::TurnStarted { turns: vec![TurnRequest::to_all(name("Ann"))] }, asked.to_vec()),
        ] {
            let bodies: Vec<(&Path, Body)> =
                asked.map(asks).into_iter().chain([(at, ends.clone())]).collect();
            let left: Vec<String> = left.into_iter().map(Path::to_string).collect();
            assert_eq!(open(&bodies), left, "{ends:?} at `{at}`");
        }
    }
}
