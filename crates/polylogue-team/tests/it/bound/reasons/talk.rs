//! One chat as its events in the log say, read without the code that runs it.

use std::sync::Arc;

use polylogue_core::{
    Audience, Body, CallPurpose, Chooser, Event, Message, ModelReply, Name, Opening, Part, Path, ToolResult,
    ToolStatus, TurnRequest,
};

/// How a message came into the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Via {
    Opening,
    /// Posted by the policy, or sent from outside.
    Posted,
    Turn,
}

/// A message.
#[derive(Debug, Clone)]
pub(super) struct Line<'e> {
    pub(super) seq: u64,
    pub(super) via: Via,
    pub(super) is_private: bool,
    pub(super) message: &'e Message,
    /// The public step in which it was said, counted from 1.
    pub(super) step: usize,
}

impl Line<'_> {
    pub(super) fn text(&self) -> String {
        self.message.text().into_owned()
    }
}

/// A turn that has ended.
#[derive(Debug, Clone)]
pub(super) struct Past<'e> {
    pub(super) who: &'e Name,
    pub(super) request: &'e TurnRequest,
    pub(super) is_private: bool,
    /// Its events, without those of chats within it.
    pub(super) events: Vec<&'e Event>,
    /// The event that began it, and the one that ended it.
    pub(super) begin: u64,
    pub(super) end: &'e Event,
    /// How many turns its agent had begun by then, which is in the path of chats within it.
    pub(super) nth: usize,
    /// Whether it was a background task that has ended.
    pub(super) worked: bool,
}

impl<'e> Past<'e> {
    pub(super) fn message(&self) -> Option<&'e Message> {
        match &self.end.body {
            Body::Message(message) => Some(message),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> String {
        self.message().map(|message| message.text().into_owned()).unwrap_or_default()
    }

    /// Whether its agent had nothing to say and nothing to do for others.
    pub(super) fn is_silent(&self) -> bool {
        let empty = |part: &Part| match part {
            Part::Text(text) => text.trim().is_empty(),
            Part::Thought(_) | Part::Note(_) | Part::Cut(_) => true,
            _ => false,
        };
        !self.worked && self.message().is_none_or(|message| message.parts.iter().all(empty))
    }

    /// Whether it was only for the result of a background task, and no turn of the pattern.
    pub(super) fn is_for_result(&self) -> bool {
        self.request.choice.as_ref().is_some_and(|choice| choice.by == Chooser::Background)
    }

    /// Whether its agent began this background task in it.
    fn has_begun(&self, id: &str) -> bool {
        self.events
            .iter()
            .any(|event| matches!(&event.body, Body::BackgroundStarted(task) if *task.id == *id))
    }

    /// The replies of its agent's model, without those that summarize its history.
    pub(super) fn replies(&self) -> impl Iterator<Item = &'e ModelReply> {
        self.events.iter().filter_map(|event| match &event.body {
            Body::ModelReplied(reply) if reply.purpose == CallPurpose::default() => Some(reply),
            _ => None,
        })
    }

    /// The calls of its agent, each with the `seq` of its event and its result.
    pub(super) fn calls(&self) -> Vec<(u64, &'e polylogue_core::ToolCall, Option<&'e ToolResult>)> {
        let result = |of: &str| {
            self.events.iter().find_map(|event| match &event.body {
                Body::ToolReturned { id, result: outcome, .. } if id == of => Some(outcome),
                _ => None,
            })
        };
        let called = self.events.iter().filter_map(|event| match &event.body {
            Body::ToolCalled { call, .. } => Some((event.seq, call, result(&call.id))),
            _ => None,
        });
        called.collect()
    }
}

pub(super) fn is_done(outcome: Option<&ToolResult>) -> bool {
    outcome.is_some_and(|outcome| outcome.status == ToolStatus::Done)
}

/// A chat since it was opened last.
pub(super) struct Talk<'e> {
    pub(super) at: Path,
    pub(super) opening: &'e Opening,
    pub(super) lines: Vec<Line<'e>>,
    pub(super) turns: Vec<Past<'e>>,
    /// Who has left, with the reason, in order.
    pub(super) left: Vec<(&'e Name, &'e str)>,
    /// Who joined late.
    pub(super) joined: Vec<&'e Name>,
    /// The number of public steps.
    pub(super) steps: usize,
    /// Whether an agent is called in it, and no chat is held.
    pub(super) is_call: bool,
    /// The number of turns before it continued under a higher limit.
    raised: usize,
    /// How long it ran, in milliseconds, with the time in which people were waited for.
    pub(super) ran_ms: u64,
}

impl<'e> Talk<'e> {
    /// The chat `at` in `events`, all of them before its end. `None` if it has not begun.
    pub(super) fn of(at: &Path, events: &'e [Arc<Event>]) -> Option<Self> {
        let events = kept(events.iter().map(Arc::as_ref).filter(|event| event.chat == *at).collect());
        let opening = events.iter().find_map(|event| match &event.body {
            Body::Opened(opening) => Some((event, opening)),
            _ => None,
        });
        let (opened, opening) = opening?;
        let mut talk = Self {
            at: at.clone(),
            opening,
            lines: Vec::new(),
            turns: Vec::new(),
            left: Vec::new(),
            joined: Vec::new(),
            steps: 0,
            is_call: false,
            raised: 0,
            ran_ms: events.last()?.ran_ms.saturating_sub(opened.ran_ms),
        };
        for message in &opening.messages {
            talk.add(opened.seq, message, Via::Opening, false);
        }
        let mut begun: Vec<(&'e Name, usize)> = Vec::new();
        for (index, event) in events.iter().enumerate() {
            talk.take_in(event, &events[..index], &mut begun);
        }
        Some(talk)
    }

    fn add(&mut self, seq: u64, message: &'e Message, via: Via, is_private: bool) {
        self.lines.push(Line { seq, via, is_private, message, step: self.steps });
    }

    fn take_in(&mut self, event: &'e Event, before: &[&'e Event], begun: &mut Vec<(&'e Name, usize)>) {
        match &event.body {
            Body::TurnStarted { turns } => {
                self.steps += usize::from(turns.iter().any(|turn| !turn.to.is_private()));
                for turn in turns {
                    match begun.iter_mut().find(|(who, _)| **who == turn.who) {
                        Some((_, count)) => *count += 1,
                        None => begun.push((&turn.who, 1)),
                    }
                }
            }
            Body::Posted(message) => {
                self.steps += 1;
                self.add(event.seq, message, Via::Posted, false);
            }
            Body::Sent(message) => self.add(event.seq, message, Via::Posted, false),
            Body::BackgroundEnded(result) if result.turn => {
                let is_it = |turn: &&mut Past<'_>| turn.who == &result.who && turn.has_begun(&result.id);
                if let Some(turn) = self.turns.iter_mut().find(is_it) {
                    turn.worked = true;
                }
            }
            Body::Joined { who, .. } => {
                self.left.retain(|(gone, _)| *gone != who);
                self.joined.push(who);
            }
            Body::Reopened { message: None, .. } => self.raised = self.turns.len(),
            Body::Reopened { message: Some(message), .. } => {
                self.raised = 0;
                self.is_call = true;
                self.lines.clear();
                self.turns.clear();
                self.steps = 0;
                self.add(event.seq, message, Via::Opening, false);
            }
            _ => self.end_of_turn(event, before, begun),
        }
    }

    fn end_of_turn(&mut self, event: &'e Event, before: &[&'e Event], begun: &[(&'e Name, usize)]) {
        let who = match &event.body {
            Body::Message(message) => &message.from,
            Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => who,
            _ => return,
        };
        let started = before.iter().enumerate().rev().find_map(|(index, event)| match &event.body {
            Body::TurnStarted { turns } => {
                turns.iter().find(|turn| turn.who == *who).map(|turn| (index, event.seq, turn))
            }
            _ => None,
        });
        let Some((index, begin, request)) = started else { return };
        let is_private = request.to.is_private();
        let events = before[index + 1..].iter().copied().filter(|event| actor(event) == Some(who));
        let nth = begun.iter().find(|(name, _)| *name == who).map_or(1, |(_, count)| *count);
        let events = events.collect();
        self.turns.push(Past { who, request, is_private, events, begin, end: event, nth, worked: false });
        match &event.body {
            Body::Message(message) => {
                let hidden = message.to.is_private();
                self.add(event.seq, message, Via::Turn, hidden);
            }
            Body::Left { who, why } => self.left.push((who, why)),
            _ => {}
        }
    }

    /// All who take part, also those who left.
    pub(super) fn participants(&self) -> Vec<&'e Name> {
        let late = self.joined.iter().copied().filter(|who| !self.opening.participants.contains(who));
        self.opening.participants.iter().chain(late).collect()
    }

    pub(super) fn public(&self) -> impl DoubleEndedIterator<Item = &Past<'e>> {
        self.turns.iter().filter(|turn| !turn.is_private)
    }

    pub(super) fn last_speaker(&self) -> Option<&'e Name> {
        let spoke = self.public().rev().find(|turn| !turn.is_for_result()).map(|turn| turn.who);
        let opened = || self.opening.messages.last().map(|message| &message.from);
        spoke.or_else(|| opened().filter(|who| self.opening.participants.contains(who)))
    }

    /// The messages that everyone, or some, could see, after the opening.
    pub(super) fn said(&self) -> impl DoubleEndedIterator<Item = &Line<'e>> {
        self.lines.iter().filter(|line| line.via != Via::Opening && !line.is_private)
    }

    /// Those of the last public step.
    pub(super) fn latest(&self) -> impl DoubleEndedIterator<Item = &Line<'e>> {
        self.said().filter(|line| line.step == self.steps)
    }

    /// All messages that count against limits on messages.
    pub(super) fn count_before(&self, step: usize) -> u64 {
        let inherited = usize::try_from(self.opening.inherited).unwrap();
        let open = self.lines.iter().filter(|line| !line.is_private && line.step <= step);
        open.skip(inherited).count() as u64
    }

    /// The turns of participants that others could read.
    pub(super) fn group_turns(&self) -> usize {
        let is_for_others = |to: &Audience| match to {
            Audience::All => true,
            Audience::Only(names) => names.len() > 1,
        };
        self.turns.iter().filter(|turn| is_for_others(&turn.request.to)).count()
    }

    /// The turns that ended with an agent ending the chat.
    pub(super) fn stopped(&self) -> impl Iterator<Item = &Past<'e>> {
        self.turns[self.raised..].iter().filter(|turn| matches!(turn.end.body, Body::Stopped { .. }))
    }

    /// Whether a participant said something in a turn that is not private.
    pub(super) fn has_output(&self) -> bool {
        let content = |part: &Part| match part {
            Part::Text(text) => !text.trim().is_empty(),
            Part::Data(_) | Part::Media(_) => true,
            _ => false,
        };
        let mut said = self.said().filter(|line| line.via == Via::Turn);
        said.any(|line| line.message.parts.iter().any(content))
    }

    /// The tool calls of its participants, not of chats within it.
    pub(super) fn has_calls(&self) -> bool {
        self.turns.iter().any(|turn| {
            let in_message = |part: &Part| matches!(part, Part::ToolCall(_));
            !turn.calls().is_empty()
                || turn.message().is_some_and(|message| message.parts.iter().any(in_message))
        })
    }
}

/// The agent of an event within a turn.
fn actor(event: &Event) -> Option<&Name> {
    match &event.body {
        Body::ModelReplied(reply) => Some(&reply.who),
        Body::Prompted { who, .. }
        | Body::ToolCalled { who, .. }
        | Body::ToolReturned { who, .. }
        | Body::TooLong { who, .. }
        | Body::Failed { who, .. } => Some(who),
        Body::InputProvided { to, .. } => Some(to),
        Body::InputRequired(question) => Some(&question.who),
        Body::BackgroundStarted(task) => Some(&task.who),
        _ => None,
    }
}

/// Without the events that were rolled back.
fn kept(events: Vec<&Event>) -> Vec<&Event> {
    let mut kept: Vec<&Event> = Vec::new();
    for event in events {
        match event.body {
            Body::RolledBack { since } => kept.retain(|event| event.seq < since),
            _ => kept.push(event),
        }
    }
    kept
}
