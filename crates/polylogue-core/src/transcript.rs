//! The transcript of one chat: what policies, termination conditions and agents read.

mod background;
mod background_entry;
mod conversation;
mod earlier;
mod fold;
mod open_turn;
mod raised;
mod resting;
mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::background::counts_at_end;
pub use self::background_entry::BackgroundEntry;
pub use self::earlier::EarlierTranscript;
pub(crate) use self::open_turn::OpenTurn;
pub use self::raised::RaisedLimits;
pub(crate) use self::resting::{Extent, RestingChat};
pub(crate) use self::shared::{in_order, is_shared};
use crate::{
    Body, Capability, Event, FinishReason, Message, Money, Name, Opening, Part, Path, Question, StopReason,
    ToolCall, TotalUsage,
};

/// The transcript of one chat, folded from its events.
///
/// It is updated incrementally: an event costs what it adds. The events of a turn become part of it when the turn
/// ends, so that agents with parallel turns see the same transcript, and it does not depend on which of them was
/// faster.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    at: Path,
    opening: Option<Opening>,
    participants: Vec<Name>,
    events: Vec<Arc<Event>>,
    messages: Vec<TranscriptMessage>,
    latest: usize,
    private_messages: u64,
    ended: Vec<EndedTurn>,
    /// How many turns had ended when the last message from outside came.
    ended_before: usize,
    /// The `seq` of messages that were sent from outside, if no public turn has begun since.
    unanswered: Vec<u64>,
    /// The result before it was reopened for such a message.
    result_before: Arc<str>,
    turns: BTreeMap<Name, Turns>,
    finished: u64,
    last_speaker: Option<Name>,
    steps: u64,
    open: Vec<OpenTurn>,
    /// Messages from outside that arrived while turns were open: they take effect when these have ended.
    arrived: Vec<Arc<Event>>,
    left: Vec<(Name, String)>,
    /// The participants that ended the chat, of several in parallel turns all.
    over: Vec<(Name, StopReason)>,
    /// Whom the next public turn is for, as chosen from outside.
    next_speaker: Option<Name>,
    closed: Option<(StopReason, Arc<str>)>,
    /// Calls that another participant is asked to make, and that have no result yet.
    pending: Vec<(Name, ToolCall)>,
    /// Capabilities that turned out to be missing, with the agent and the model.
    missing: Vec<(Name, Arc<str>, Capability)>,
    /// Messages before the chat was reopened with a new message.
    before: u64,
    /// The event with which it was opened or reopened last.
    opened: u64,
    /// Shared events of outer chats, up to where it began.
    inherited: Vec<Arc<Event>>,
    /// The last event of this chat that is among them.
    known_until: Option<u64>,
    /// The shared events of this chat and those within it, each with how many events the chat had before.
    shared: Vec<(usize, Arc<Event>)>,
    usage: TotalUsage,
    /// Tokens and money used before the chat was reopened with a new message.
    earlier: (u64, Money),
    raised: raised::Raises,
    span: Option<(u64, u64)>,
    /// When people were waited for, in running time.
    waits: Vec<(u64, u64)>,
    /// The numbers and running times of model calls and shared events in chats within the turns of the step.
    within_step: Vec<(u64, u64)>,
    limit_question: Option<LimitQuestion>,
    background: Vec<BackgroundEntry>,
    /// Turns for results of background tasks, by agent.
    follow_ups: BTreeMap<Name, u64>,
    /// The number of the last background task of each agent.
    background_begun: BTreeMap<Name, u64>,
}

/// The last question about a limit, until what was answered is in the log.
#[derive(Debug, Clone)]
pub(crate) struct LimitQuestion {
    /// The `seq` of its event.
    pub(crate) seq: u64,
    pub(crate) question: Question,
    /// The running time when it was asked.
    pub(crate) asked_ms: u64,
    pub(crate) answer: Option<Arc<str>>,
}

/// A message in a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptMessage {
    /// The `seq` of its event.
    pub seq: u64,
    /// How it came into the transcript.
    pub source: MessageSource,
    /// The message.
    pub message: Message,
}

/// How a message came into the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSource {
    /// A message of the opening.
    Opening,
    /// Posted by the policy.
    Posted,
    /// Sent from outside while the conversation was open.
    Sent,
    /// The message of a turn.
    Turn,
}

impl TranscriptMessage {
    /// Returns whether only the policy sees it.
    pub fn is_private(&self) -> bool {
        self.source == MessageSource::Turn && self.message.to.is_private()
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
    /// The `seq` of the event that ended it.
    pub seq: u64,
    /// The participant.
    pub who: Name,
    /// Whether only the policy saw its message.
    pub is_private: bool,
    /// Whether it had no content. One that became a background task counts as silent until the task has ended.
    pub is_silent: bool,
}

impl Transcript {
    /// Creates an empty transcript.
    pub fn new(at: Path) -> Self {
        Self { at, ..Self::default() }
    }

    /// Creates the transcript of the chat `at`, from a log's events in order. Events of other chats are skipped; for those
    /// within it, the cost counts.
    ///
    /// # Errors
    /// Names the event that cannot follow those before it.
    pub fn from_events<'e>(
        at: &Path,
        events: impl IntoIterator<Item = &'e Arc<Event>>,
    ) -> Result<Self, String> {
        let mut transcript = Self::new(at.clone());
        for event in events {
            if event.chat == *at || event.chat.is_within(at) {
                transcript.apply(Arc::clone(event))?;
            }
        }
        Ok(transcript)
    }

    /// Returns the path of the chat.
    pub const fn at(&self) -> &Path {
        &self.at
    }

    /// Returns whether the chat has begun.
    pub const fn is_open(&self) -> bool {
        self.opening.is_some()
    }

    /// Returns the participants, in order, including those who left; late joiners come last.
    pub fn participants(&self) -> &[Name] {
        &self.participants
    }

    /// Returns the participants that can join and have not yet.
    pub fn late_joiners(&self) -> impl Iterator<Item = &Name> {
        let later = self.opening.as_ref().map_or(&[][..], |opening| &opening.late_joiners);
        later.iter().filter(|name| !self.participants.contains(name))
    }

    /// Returns the participants who have not left, in order.
    pub fn present(&self) -> impl Iterator<Item = &Name> {
        self.participants().iter().filter(|name| !self.left.iter().any(|(gone, _)| gone == *name))
    }

    /// Returns the participants who left, with their reasons, in order.
    pub fn left(&self) -> &[(Name, String)] {
        &self.left
    }

    /// Returns the task of the chat.
    pub fn task(&self) -> &str {
        self.opening.as_ref().map_or("", |opening| &opening.task)
    }

    /// Returns all messages in order, private ones included.
    pub fn all_messages(&self) -> &[TranscriptMessage] {
        &self.messages
    }

    /// Returns the messages in order, without private ones.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &TranscriptMessage> {
        self.messages.iter().filter(|line| !line.is_private())
    }

    /// Returns how many messages there are since it was opened last, without private ones.
    pub const fn message_count(&self) -> u64 {
        self.messages.len() as u64 - self.private_messages - self.before
    }

    /// Returns the tool calls in messages that have no result yet, with the participants that requested them. They expire when
    /// the requester speaks again.
    pub fn pending_calls(&self) -> &[(Name, ToolCall)] {
        &self.pending
    }

    /// Returns the participant that ended the chat, and the stop reason, if a participant did; of several in parallel turns the last.
    pub fn ended_by(&self) -> Option<(&Name, &StopReason)> {
        self.over.last().map(|(who, reason)| (who, reason))
    }

    /// Returns the finished turns, newest first, without private ones.
    pub fn recent_turns(&self) -> impl Iterator<Item = &EndedTurn> {
        self.ended.iter().rev().filter(|turn| !turn.is_private)
    }

    /// Returns the finished turns since the last message from outside, newest first, without private ones: since the opening,
    /// or a message that reopened the chat or was sent while it was open.
    pub fn turns_since_message(&self) -> impl Iterator<Item = &EndedTurn> {
        let since = self.ended.get(self.ended_before..).unwrap_or_default();
        since.iter().rev().filter(|turn| !turn.is_private)
    }

    /// Whether a message was sent from outside, and no public turn has begun since.
    pub(crate) const fn has_unanswered(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// The same chat, if these messages said nothing.
    pub(crate) fn without_unanswered(&self) -> Self {
        let mut chat = self.clone();
        let lines = chat.messages.iter_mut().filter(|line| self.unanswered.contains(&line.seq));
        lines.for_each(|line| line.message.parts.clear());
        chat
    }

    /// Returns how many private turns `who` had since the last public turn ended.
    pub fn private_turns_of(&self, who: &Name) -> usize {
        self.ended.iter().rev().take_while(|turn| turn.is_private).filter(|turn| turn.who == *who).count()
    }

    /// Whether the last turn was private: the policy may need its reply for the next step.
    pub(crate) fn follows_private_turn(&self) -> bool {
        self.ended.last().is_some_and(|turn| turn.is_private)
    }

    /// Returns the messages that the last step added. The opening is not a step, and neither are private turns.
    ///
    /// Termination conditions on messages check only these: they are evaluated after every step.
    pub fn latest(&self) -> impl DoubleEndedIterator<Item = &TranscriptMessage> {
        self.messages.get(self.latest..).unwrap_or_default().iter().filter(|line| !line.is_private())
    }

    /// Returns the last message, private ones not included.
    pub fn last(&self) -> Option<&TranscriptMessage> {
        self.messages().next_back()
    }

    /// Returns the default result of the chat: the last message of a participant since the chat was opened last, [as
    /// text](Message::to_text). Empty if no participant said anything: the task, the opening and inherited messages are no
    /// result. Where it was reopened for a message that was sent before it closed, its result stays until a participant says
    /// something.
    pub fn summary(&self) -> Arc<str> {
        let mut said = self.replies().rev().map(|line| line.message.to_text());
        let last = said.find(|text| !text.trim().is_empty());
        last.map_or_else(|| Arc::clone(&self.result_before), Into::into)
    }

    /// Returns the finish reason of the message that the result of the closed chat is from, if it was truncated.
    pub fn result_cut(&self) -> Option<FinishReason> {
        let (_, summary) = self.closed.as_ref()?;
        let line = self.said_as(summary).or_else(|| self.replies().next_back())?;
        line.message.cut().filter(|_| !summary.trim().is_empty())
    }

    /// Returns the message that the result of the closed chat is from, unchanged.
    pub fn result(&self) -> Option<&Message> {
        let (_, summary) = self.closed.as_ref()?;
        self.said_as(summary).map(|line| &line.message).filter(|_| !summary.trim().is_empty())
    }

    /// The last message of a turn, private or not, whose text is `summary`.
    fn said_as(&self, summary: &str) -> Option<&TranscriptMessage> {
        let mut said = self
            .messages
            .iter()
            .rev()
            .filter(|line| line.source == MessageSource::Turn && line.seq > self.opened);
        said.find(|line| *line.message.to_text() == *summary)
    }

    /// Returns whether every turn since the chat was opened last was silent: no text, no value, no picture, no call.
    pub fn is_silent(&self) -> bool {
        let is_silent = |part: &Part| part.is_blank() || part.is_thought();
        self.replies().all(|line| line.message.parts.iter().all(is_silent))
    }

    /// Returns the messages of finished turns since the chat was opened last, without private ones.
    pub fn replies(&self) -> impl DoubleEndedIterator<Item = &TranscriptMessage> {
        let of_turn = |line: &TranscriptMessage| line.source == MessageSource::Turn;
        let before = self.messages.iter().rposition(|line| of_turn(line) && line.seq <= self.opened);
        let since = self.messages.get(before.map_or(0, |at| at + 1)..).unwrap_or_default();
        since.iter().filter(move |line| of_turn(line) && !line.is_private())
    }

    /// Returns the last message of `who`, private or not.
    pub fn last_of(&self, who: &Name) -> Option<&TranscriptMessage> {
        self.messages.iter().rev().find(|line| line.message.from == *who)
    }

    /// Returns the participant that had the last turn; before the first turn, the author of the last opening message if it is a
    /// participant.
    pub const fn last_speaker(&self) -> Option<&Name> {
        self.last_speaker.as_ref()
    }

    /// Returns the participant that was chosen from outside for the next public turn, until that begins.
    pub const fn next_speaker(&self) -> Option<&Name> {
        self.next_speaker.as_ref()
    }

    /// Returns how many turns are finished since it was opened last, without private ones.
    pub const fn turns(&self) -> u64 {
        self.finished
    }

    /// Returns how many turns `who` has finished since the chat was opened last, private or not. A turn that ended a chat that
    /// was reopened later does not count.
    pub fn turns_of(&self, who: &Name) -> u64 {
        self.turns.get(who).map_or(0, |turns| turns.finished)
    }

    /// Returns the usage, including chats within this one.
    pub const fn usage(&self) -> &TotalUsage {
        &self.usage
    }

    /// The last question about a limit, unless it is settled.
    pub(crate) const fn limit_question(&self) -> Option<&LimitQuestion> {
        self.limit_question.as_ref()
    }

    /// Returns the input and output tokens since the chat was opened last, including chats within this one. Calls of unknown
    /// usage do not count.
    pub const fn tokens(&self) -> u64 {
        self.usage.tokens().saturating_sub(self.earlier.0)
    }

    /// Returns the cost since the chat was opened last, including chats within this one. Calls of unknown cost do not count.
    pub const fn cost(&self) -> Money {
        self.usage.cost.saturating_sub(self.earlier.1)
    }

    /// Returns the running time in milliseconds, without the time in which no process ran it, and without that in which it
    /// waited for people in steps that are over.
    pub fn elapsed_ms(&self) -> u64 {
        let (first, last) = self.span.unwrap_or_default();
        last.saturating_sub(first).saturating_sub(self.waited_ms())
    }

    /// The running time in which people were waited for: once, where several were.
    fn waited_ms(&self) -> u64 {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let mut until = 0;
        let once = |(from, to): (u64, u64)| {
            let since = from.max(until);
            until = until.max(to);
            to.saturating_sub(since)
        };
        waits.into_iter().map(once).sum()
    }

    /// Returns the stop reason and the result, if it is closed.
    pub fn closed(&self) -> Option<(&StopReason, &Arc<str>)> {
        self.closed.as_ref().map(|(reason, summary)| (reason, summary))
    }

    /// Returns the questions without an answer.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.open.iter().filter_map(|turn| turn.asked.as_ref())
    }

    /// Returns the participants with an open turn; several if their turns are parallel.
    pub fn current_speakers(&self) -> impl Iterator<Item = &Name> {
        self.open.iter().map(|turn| &turn.request.who)
    }

    /// Returns every event of this chat. Those of one turn are together, before the one that ended it. One that reopened the
    /// chat for a message that was sent before has that message.
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// Returns the tool calls of all finished turns, newest first, with the `seq` of their events and who made them.
    pub fn calls(&self) -> impl Iterator<Item = (u64, &Name, &ToolCall)> {
        self.events.iter().rev().filter_map(|event| match &event.body {
            Body::ToolCalled { who, call } => Some((event.seq, who, call)),
            _ => None,
        })
    }

    pub(crate) fn open_turns(&self) -> &[OpenTurn] {
        &self.open
    }

    /// Turns and posts begun so far, private or not: bounds a policy that never ends.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the capabilities that `model` turned out to lack when `who` called it in earlier turns.
    pub fn missing_capabilities(&self, who: &Name, model: &str) -> impl Iterator<Item = Capability> {
        let asked = self.missing.iter().filter(move |(caller, asked, _)| caller == who && **asked == *model);
        asked.map(|(.., capability)| *capability)
    }

    /// Returns how many turns of `who` have begun.
    pub fn turns_begun_by(&self, who: &Name) -> u64 {
        self.turns.get(who).map_or(0, |turns| turns.begun)
    }
}
