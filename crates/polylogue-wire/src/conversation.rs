//! Conversations: what clients see of them, and how they change them.

use std::collections::BTreeMap;
use std::sync::Arc;

use polylogue_core::{
    BoundSummary, Call, DefaultAnswer, Event, LimitOverrides, LimitRaise, LogId, Name, OpenQuestion, Path,
    Question, RunOutcome, Timestamp, TotalUsage,
};
use serde::{Deserialize, Serialize};

/// A conversation, at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its id.
    pub id: LogId,
    /// The id of its team, or its name if the team is not served.
    pub team: String,
    /// The name of its team.
    pub team_name: String,
    /// Its own title, if it has one.
    pub title: Option<String>,
    /// The beginning of its task.
    pub task: Arc<str>,
    /// Whether it runs.
    pub state: ConversationState,
    /// When it was made.
    pub created_ms: Timestamp,
    /// When its first event was stored; 0 if it has none.
    pub started_ms: Timestamp,
    /// When its last event was stored.
    pub updated_ms: Timestamp,
    /// The number of its events.
    pub seq: u64,
    /// The number of turns in all chats.
    pub turns: u64,
    /// The usage and cost of all model calls. On the wire, what is not known of any call is left out.
    #[serde(with = "crate::usage")]
    pub usage: TotalUsage,
    /// The open questions.
    pub asked: Vec<Asked>,
    /// Whether it was paused from outside.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// Why it is closed or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Whether it was imported, and never runs; only where one conversation is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<bool>,
    /// The process that runs it, and its machine; only where one conversation is asked for, and nothing while no process runs it. After an
    /// instruction: the process that carries it out, if that is not the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What it takes at most, as computed before its first call; only where one conversation is asked for or made, and nothing where a
    /// script speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundSummary>,
    /// Why it can take more than that; only where one conversation is asked for, and nothing while the bound applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_ended: Option<String>,
    /// What it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

// By reference, as serde calls it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Whether a conversation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationState {
    /// A process runs it, or is about to.
    Running,
    /// A person has to answer.
    Waiting,
    /// It was stopped, paused or interrupted, or it has failed. It can be resumed.
    Halted,
    /// It has ended.
    Closed,
}

/// Why a conversation is closed or has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// In one word.
    pub word: Ending,
    /// In a sentence.
    pub detail: String,
}

/// How a conversation ended, in the words of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It reached its end.
    Done,
    /// A limit on turns, calls, time or depth was reached.
    Limit,
    /// A limit on tokens or cost was reached.
    Budget,
    /// It was stopped from outside.
    Stopped,
    /// No participant said anything.
    NoOutput,
    /// A turn, a tool or the store failed.
    Failed,
}

impl Ending {
    /// Its name on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Limit => "limit",
            Self::Budget => "budget",
            Self::Stopped => "stopped",
            Self::NoOutput => "no_output",
            Self::Failed => "failed",
        }
    }
}

impl From<RunOutcome> for Ending {
    fn from(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Done => Self::Done,
            RunOutcome::Limit => Self::Limit,
            RunOutcome::Budget => Self::Budget,
            RunOutcome::Stopped => Self::Stopped,
            RunOutcome::NoOutput => Self::NoOutput,
        }
    }
}

/// What a conversation was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The conversation.
    pub id: LogId,
    /// The first event that was not copied.
    pub seq: u64,
    /// Whether it has another text there than the original.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The event that asks, which an answer names.
    pub question: u64,
    /// The chat.
    pub at: Path,
    /// Who asks.
    pub who: Name,
    /// The text. What an agent wrote in it is shown verbatim.
    pub text: Arc<str>,
    /// The call that waits for approval, if it asks for one.
    pub call: Option<Call>,
    /// When it was asked.
    pub asked_ms: Timestamp,
    /// When the default answer counts.
    pub until_ms: Option<Timestamp>,
    /// The default answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
    /// The limit that it asks to raise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<AskedLimit>,
}

/// The limit that a question asks to raise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskedLimit {
    /// The limit that was reached, in a sentence.
    pub reached: String,
    /// How much more `yes` allows beyond what was used.
    pub more: LimitOverrides,
    /// The same as the log has it.
    pub raise: Box<LimitRaise>,
}

impl From<&OpenQuestion> for Asked {
    fn from(open: &OpenQuestion) -> Self {
        let Question { who, text, call, default, limit } = open.question.clone();
        let (at, until_ms) = (open.at.clone(), open.until());
        let limit = limit.map(|raise| {
            let (reached, more) = (raise.reached.to_string(), raise.more);
            AskedLimit { reached, more, raise }
        });
        Self { question: open.seq, at, who, text, call, asked_ms: open.asked, until_ms, default, limit }
    }
}

impl From<Asked> for OpenQuestion {
    fn from(asked: Asked) -> Self {
        let Asked { question: seq, at, who, text, call, asked_ms, default, limit, .. } = asked;
        let limit = limit.map(|limit| limit.raise);
        Self { at, seq, asked: asked_ms, question: Question { who, text, call, default, limit } }
    }
}

/// A page of conversations, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationPage {
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// Where the next page begins; `None` on the last one.
    pub next_cursor: Option<String>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events, as the log has them.
    pub events: Vec<Event>,
    /// The first event of the next page; `None` on the last one.
    pub next: Option<u64>,
}

/// A conversation to begin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NewConversation {
    /// The id of the team.
    pub team: String,
    /// The task. Default: that of the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Values of the team's variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// Its title in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Limits below those of the team.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub limits: LimitOverrides,
}

/// Another title of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTitle {
    /// The title. Empty: none.
    pub title: String,
}

/// A conversation that was exported, to be stored and read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The text of the file.
    pub log: String,
    /// The team that it is of. Default: the one with the name in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMessage {
    /// Its text.
    pub text: String,
    /// Its author: a participant of the outermost chat, or `system`. Default: `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The event that asks.
    pub question: u64,
    /// The answer.
    pub text: String,
}

/// What a message or an answer became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Its event; `None` while it waits for the end of a step, or for the process that runs the conversation.
    pub seq: Option<u64>,
    /// The process that runs the conversation and carries it out, and its machine, if that is not the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// How a conversation is stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// When it stops.
    #[serde(default)]
    pub when: When,
}

/// What a request to stop a conversation has done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// Whether there was anything to stop: a run, or what would have continued by itself.
    pub stopped: bool,
    /// The conversation, after that.
    #[serde(flatten)]
    pub conversation: Conversation,
}

/// When a conversation stops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// When the turns that have begun are over.
    #[default]
    AfterStep,
    /// At once: calls in flight are aborted.
    Now,
}

/// How a conversation is paused: there is nothing to say of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {}

/// Who speaks next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextSpeaker {
    /// A participant of the outermost chat.
    pub who: String,
}

/// Limits to raise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raise {
    /// How much more it may use than it has used.
    pub limits: LimitOverrides,
}

/// Whether what is stored of a conversation is what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The conversation.
    pub id: LogId,
    /// What was found.
    pub state: Integrity,
    /// How many events can be read, those behind the damage included.
    pub events: u64,
    /// How many of them are the intact beginning.
    pub intact: u64,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What is found of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// Everything is what was written.
    Intact,
    /// Something is damaged or lost.
    Damaged,
    /// An earlier version of Polylogue wrote it.
    OldFormat,
    /// A later version of Polylogue wrote it.
    NewerFormat,
}

/// How a conversation continues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// How much more it may use than it has used so far.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub limits: LimitOverrides,
}

/// What continues a conversation that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// Whether it continues when it is resumed, without anything else.
    pub resumes: bool,
    /// More of what its limit counts, with which it continues.
    pub limits: Option<LimitOverrides>,
    /// A message with which it continues.
    pub message: Option<String>,
}

/// How a conversation is forked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The first event that is not copied. Default: all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Replaces the text of that event; without `seq`, the next message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The team that continues it, with the same participants. Default: that of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Whether the fork runs at once.
    #[serde(default)]
    pub run: bool,
}

/// The conversation was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Always true.
    pub removed: bool,
}
