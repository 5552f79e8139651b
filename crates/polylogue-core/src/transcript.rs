//! One chat, folded from its events: what policies, stops and agents read.

mod fold;
mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::shared::{in_order, is_shared};
use crate::{
    Body, Call, Capability, Event, Finish, Message, Name, Opening, Part, Path, Question, StopReason,
    TotalUsage, TurnRequest,
};

/// One chat as far as it went, folded from its events.
///
/// It is kept incrementally: an event costs what it adds. The events of a turn become part of it when the turn
/// ends, so that agents whose turns run at the same time see the same transcript, and so that it does not depend
/// on which of them was faster.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    at: Path,
    opening: Option<Opening>,
    members: Vec<Name>,
    events: Vec<Arc<Event>>,
    lines: Vec<Line>,
    latest: usize,
    asides: u64,
    ended: Vec<EndedTurn>,
    turns: BTreeMap<Name, Turns>,
    finished: u64,
    last_speaker: Option<Name>,
    steps: u64,
    open: Vec<OpenTurn>,
    left: Vec<(Name, String)>,
    over: Option<(Name, StopReason)>,
    closed: Option<(StopReason, Arc<str>)>,
    /// Calls that somebody else is asked to make, and nobody has made yet.
    pending: Vec<(Name, Call)>,
    /// What models turned out to be unable to do, for whom.
    lacks: Vec<(Name, Arc<str>, Capability)>,
    /// Messages of the room before the chat was opened again for something more.
    before: u64,
    /// The event with which it was opened last.
    opened: u64,
    /// What is known around this chat, up to where it began.
    inherited: Vec<Arc<Event>>,
    /// The last event of this chat that is among them.
    known_until: Option<u64>,
    /// What is shared of this chat and those within it.
    shared: Vec<Arc<Event>>,
    spent: TotalUsage,
    span: Option<(u64, u64)>,
    waited_ms: u64,
}

/// A message in a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The event it is from.
    pub seq: u64,
    /// Where it came from.
    pub source: Source,
    /// The message.
    pub message: Message,
}

/// Where a message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was said before the first turn.
    Opening,
    /// The policy placed it.
    Posted,
    /// It ended a turn.
    Turn,
}

impl Line {
    /// Whether only the policy reads it.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.source == Source::Turn && self.message.to.is_private()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Turns {
    begun: u64,
    finished: u64,
}

/// A turn that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTurn {
    /// The event that ended it.
    pub seq: u64,
    /// Whose turn it was.
    pub who: Name,
    /// Whether only the policy heard it.
    pub is_private: bool,
    /// Whether nothing was said.
    pub is_silent: bool,
}

/// A turn that has begun and not ended.
#[derive(Debug, Clone)]
pub(crate) struct OpenTurn {
    pub(crate) cue: TurnRequest,
    /// What happened in it so far.
    pub(crate) events: Vec<Arc<Event>>,
    /// What is shared of chats within it.
    pub(crate) within: Vec<Arc<Event>>,
    /// What was asked, and when, in running time.
    pub(crate) asked: Option<(Question, u64)>,
    /// The last event of it, charges included.
    pub(crate) last: u64,
    /// Whether that says that no model call of it was in flight any more.
    pub(crate) settled: bool,
}

impl Transcript {
    /// The transcript of a chat of which nothing happened yet.
    #[must_use]
    pub fn new(at: Path) -> Self {
        Self { at, ..Self::default() }
    }

    /// The transcript of the chat `at`, from a log's events in their order. Events of chats around and beside it are
    /// passed over; of those within it, only the cost counts.
    ///
    /// # Errors
    /// Says which event cannot follow those before it.
    pub fn of<'e>(at: &Path, events: impl IntoIterator<Item = &'e Arc<Event>>) -> Result<Self, String> {
        let mut transcript = Self::new(at.clone());
        for event in events {
            if event.at == *at || event.at.is_within(at) {
                transcript.apply(Arc::clone(event))?;
            }
        }
        Ok(transcript)
    }

    /// The chat.
    #[must_use]
    pub const fn at(&self) -> &Path {
        &self.at
    }

    /// Whether it has begun.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.opening.is_some()
    }

    /// The members of the room, in order, those who left included; those who joined later come last.
    #[must_use]
    pub fn participants(&self) -> &[Name] {
        &self.members
    }

    /// Those who may join and have not yet.
    pub fn late_joiners(&self) -> impl Iterator<Item = &Name> {
        let later = self.opening.as_ref().map_or(&[][..], |opening| &opening.late_joiners);
        later.iter().filter(|name| !self.members.contains(name))
    }

    /// The members who are still there, in order.
    pub fn present(&self) -> impl Iterator<Item = &Name> {
        self.participants().iter().filter(|name| !self.left.iter().any(|(gone, _)| gone == *name))
    }

    /// Who left, and why, in order.
    #[must_use]
    pub fn left(&self) -> &[(Name, String)] {
        &self.left
    }

    /// What the chat is about.
    #[must_use]
    pub fn task(&self) -> &str {
        self.opening.as_ref().map_or("", |opening| &opening.task)
    }

    /// Every message in order, those said aside included.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The messages of the room in order: all but those said aside.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.is_private())
    }

    /// How many messages the room has, since it was opened last.
    #[must_use]
    pub const fn message_count(&self) -> u64 {
        self.lines.len() as u64 - self.asides - self.before
    }

    /// The tool calls in messages of the room that nobody has answered yet, with who asks for them. They lapse when whoever
    /// asked speaks again.
    #[must_use]
    pub fn pending_calls(&self) -> &[(Name, Call)] {
        &self.pending
    }

    /// Who ended the chat, and why, if a participant did.
    #[must_use]
    pub fn ended_by(&self) -> Option<(&Name, &StopReason)> {
        self.over.as_ref().map(|(who, reason)| (who, reason))
    }

    /// The turns in the room that have ended, newest first.
    pub fn recent_turns(&self) -> impl Iterator<Item = &EndedTurn> {
        self.ended.iter().rev().filter(|turn| !turn.is_private)
    }

    /// Whether `who` had a turn aside since the last turn in the room ended.
    #[must_use]
    pub fn acted_in_private(&self, who: &Name) -> bool {
        self.private_turns_of(who) > 0
    }

    /// How many turns aside `who` had since the last turn in the room ended.
    #[must_use]
    pub fn private_turns_of(&self, who: &Name) -> usize {
        self.ended.iter().rev().take_while(|turn| turn.is_private).filter(|turn| turn.who == *who).count()
    }

    /// What the last step added to the room. The opening is no step, and neither is what is said aside.
    ///
    /// Conditions that look at messages look at these alone: they are asked after every step.
    pub fn latest(&self) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.get(self.latest..).unwrap_or_default().iter().filter(|line| !line.is_private())
    }

    /// The last message of the room.
    #[must_use]
    pub fn last(&self) -> Option<&Line> {
        self.messages().next_back()
    }

    /// The result of the chat, unless its policy says otherwise: the last message of a participant since the chat was opened
    /// last, [in words](Message::in_words). Empty when no participant said anything: the task, an opening, and what is inherited are no result.
    #[must_use]
    pub fn summary(&self) -> Arc<str> {
        let mut said = self.replies().rev().map(|line| line.message.in_words());
        said.find(|text| !text.trim().is_empty()).unwrap_or_default().into()
    }

    /// Why the result of the chat, which is over, is cut off, if it is: that of the message it was taken from.
    #[must_use]
    pub fn result_cut(&self) -> Option<Finish> {
        let (_, summary) = self.closed.as_ref()?;
        let line = self.said_as(summary).or_else(|| self.replies().next_back())?;
        line.message.cut().filter(|_| !summary.trim().is_empty())
    }

    /// The message that the result of the chat, which is over, was taken from, unchanged.
    #[must_use]
    pub fn result(&self) -> Option<&Message> {
        let (_, summary) = self.closed.as_ref()?;
        self.said_as(summary).map(|line| &line.message).filter(|_| !summary.trim().is_empty())
    }

    /// The last message of a turn, aside or not, whose words are `summary`.
    fn said_as(&self, summary: &str) -> Option<&Line> {
        let mut said =
            self.lines.iter().rev().filter(|line| line.source == Source::Turn && line.seq > self.opened);
        said.find(|line| *line.message.in_words() == *summary)
    }

    /// Whether every turn in the room since the chat was opened last was silent: no text, no value, no picture, no call.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        let is_silent = |part: &Part| part.is_blank() || part.is_thought();
        self.replies().all(|line| line.message.parts.iter().all(is_silent))
    }

    /// The messages that ended a turn in the room since the chat was opened last.
    pub fn replies(&self) -> impl DoubleEndedIterator<Item = &Line> {
        let since = self.opened;
        self.messages().filter(move |line| line.source == Source::Turn && line.seq > since)
    }

    /// The last message of `who`, aside or not.
    #[must_use]
    pub fn last_of(&self, who: &Name) -> Option<&Line> {
        self.lines.iter().rev().find(|line| line.message.from == *who)
    }

    /// Who had the last turn in the room; before the first turn, the member who said the last opening message.
    #[must_use]
    pub const fn last_speaker(&self) -> Option<&Name> {
        self.last_speaker.as_ref()
    }

    /// How many turns in the room are finished, since it was opened last.
    #[must_use]
    pub const fn turns(&self) -> u64 {
        self.finished
    }

    /// How many turns `who` has finished since the chat was opened last, aside or not. A turn that ended the chat, which goes on
    /// since, is not among them.
    #[must_use]
    pub fn turns_of(&self, who: &Name) -> u64 {
        self.turns.get(who).map_or(0, |turns| turns.finished)
    }

    /// What was spent, in chats within this one too.
    #[must_use]
    pub const fn usage(&self) -> &TotalUsage {
        &self.spent
    }

    /// For how many milliseconds it ran, without the time that people were waited for and that in which no process ran it.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        let (first, last) = self.span.unwrap_or_default();
        last.saturating_sub(first).saturating_sub(self.waited_ms)
    }

    /// Why it was closed and what came of it, if it was.
    #[must_use]
    pub fn closed(&self) -> Option<(&StopReason, &Arc<str>)> {
        self.closed.as_ref().map(|(reason, summary)| (reason, summary))
    }

    /// The questions nobody has answered yet.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.open.iter().filter_map(|turn| turn.asked.as_ref()).map(|(question, _)| question)
    }

    /// Whose turn it is: several when their turns run at the same time.
    pub fn current_speakers(&self) -> impl Iterator<Item = &Name> {
        self.open.iter().map(|turn| &turn.cue.who)
    }

    /// Every event of this chat. Those of one turn stand together, before the one that ended it.
    #[must_use]
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// The tool calls of all finished turns, newest first, with the `seq` of their events and who made them.
    pub fn calls(&self) -> impl Iterator<Item = (u64, &Name, &Call)> {
        self.events.iter().rev().filter_map(|event| match &event.body {
            Body::ToolCalled { who, call } => Some((event.seq, who, call)),
            _ => None,
        })
    }

    pub(crate) fn open_turns(&self) -> &[OpenTurn] {
        &self.open
    }

    /// Turns and posts begun so far, aside or not: what bounds a policy that never ends.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// What `model` turned out to be unable to do when `who` asked it in earlier turns.
    pub fn missing_capabilities(&self, who: &Name, model: &str) -> impl Iterator<Item = Capability> {
        let asked = self.lacks.iter().filter(move |(asker, asked, _)| asker == who && **asked == *model);
        asked.map(|(.., capability)| *capability)
    }

    /// How many turns of `who` have begun.
    #[must_use]
    pub fn turns_begun_by(&self, who: &Name) -> u64 {
        self.turns.get(who).map_or(0, |turns| turns.begun)
    }
}
