//! Conversations: what clients see of them, and how they change them.

use std::collections::BTreeMap;
use std::sync::Arc;

use polylogue_core::{
    AnswerChoice, BoundSummary, DefaultAnswer, Event, Instruction, LimitOverrides, LimitRaise, LogId, Name,
    OpenQuestion, OpenState, Path, Question, QuestionKind, RunOutcome, Timestamp, ToolCall, TotalUsage,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The state of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// The id.
    pub id: LogId,
    /// The id of the team, or its name if the team is not served.
    pub team: String,
    /// The name of the team.
    pub team_name: String,
    /// The title of its own, if it has one.
    pub title: Option<String>,
    /// The beginning of the task.
    pub task: Arc<str>,
    /// The state: whether it runs.
    pub state: ConversationState,
    /// The time at which it was created.
    pub created_ms: Timestamp,
    /// The time at which its first event was stored; 0 if it has none.
    pub started_ms: Timestamp,
    /// The time at which its last event was stored.
    pub updated_ms: Timestamp,
    /// The number of its events.
    pub seq: u64,
    /// The number of turns in all chats.
    pub turns: u64,
    /// The usage and cost of all model calls. On the wire, what is not known of any call is left out.
    #[serde(with = "crate::usage")]
    #[schemars(with = "Map<String, Value>")]
    pub usage: TotalUsage,
    /// The open questions.
    pub questions: Vec<PendingQuestion>,
    /// Whether it was paused from outside.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// Whether its events are packed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub archived: bool,
    /// Why it is closed or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Why it is halted, if it has neither failed nor been paused: `queued` (a worker will continue it), `cancelled`, `interrupted`, or `new`
    /// (it has not begun, or is a fork that nothing has continued).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted: Option<OpenState>,
    /// Whether it was imported, and never runs; only where one conversation is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<bool>,
    /// The process that runs it, and its machine; only where one conversation is asked for, and nothing while no process runs it. After an
    /// instruction: the process that carries it out, if that is not the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The bound, what it takes at most, as computed before its first call; only where one conversation is asked for or made,
    /// and nothing where a script speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundSummary>,
    /// Why it can take more than that; only where one conversation is asked for, and nothing while the bound applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_ended: Option<String>,
    /// The conversation that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

// By reference, as serde calls it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The state of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The reason why a conversation is closed or has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// The reason in one word.
    pub word: Outcome,
    /// The reason in a sentence.
    pub detail: String,
}

/// The kind of end of a conversation, in the words of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
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

impl Outcome {
    /// Returns the name on the wire.
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

impl From<RunOutcome> for Outcome {
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

/// The conversation that another one was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parent {
    /// The conversation.
    pub id: LogId,
    /// The `seq` of the first event that was not copied.
    pub seq: u64,
    /// Whether it has another text there than the original.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingQuestion {
    /// The `seq` of the event that asks, which an answer names.
    pub question: u64,
    /// The chat.
    pub chat: Path,
    /// The participant that asks.
    pub who: Name,
    /// The text, without what can be answered. What an agent wrote in it is shown verbatim.
    pub text: Arc<str>,
    /// The kind: `turn` (asks for a person's message in their turn), `speaker` (who speaks next), `reply` (in the name of an agent),
    /// `approval` of a call, `code_approval` (of code in a message), `limit` (whether it is raised), or `text`.
    pub kind: QuestionKind,
    /// The answers that have an effect of their own. The kind says what other answers are.
    pub choices: Vec<AnswerChoice>,
    /// The call that waits for approval, if it asks for one.
    pub call: Option<ToolCall>,
    /// The time at which it was asked.
    pub asked_ms: Timestamp,
    /// The time at which the default answer counts.
    pub until_ms: Option<Timestamp>,
    /// The default answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
    /// The limit that it asks to raise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<AskedLimit>,
}

/// The limit that a question asks to raise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedLimit {
    /// The limit that was reached, in a sentence.
    pub reached: String,
    /// The amounts by which `yes` raises it.
    pub more: LimitOverrides,
    /// The same as the log has it.
    #[schemars(with = "Map<String, Value>")]
    pub raise: Box<LimitRaise>,
}

impl From<&OpenQuestion> for PendingQuestion {
    fn from(open: &OpenQuestion) -> Self {
        let Question { who, text, kind, choices, call, default, limit } = open.question.clone();
        let limit = limit.map(|raise| {
            let (reached, more) = (raise.reached.to_string(), raise.more);
            AskedLimit { reached, more, raise }
        });
        Self {
            question: open.seq,
            chat: open.chat.clone(),
            who,
            text,
            kind,
            choices,
            call,
            asked_ms: open.asked,
            until_ms: open.until(),
            default,
            limit,
        }
    }
}

impl From<PendingQuestion> for OpenQuestion {
    fn from(asked: PendingQuestion) -> Self {
        let PendingQuestion {
            question: seq,
            chat: at,
            who,
            text,
            kind,
            choices,
            call,
            asked_ms,
            default,
            limit,
            ..
        } = asked;
        let limit = limit.map(|limit| limit.raise);
        let question = Question { who, text, kind, choices, call, default, limit };
        Self { chat: at, seq, asked: asked_ms, question }
    }
}

/// A page of conversations, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationPage {
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// The cursor of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events, as the log has them.
    pub events: Vec<Event>,
    /// The `seq` of the first event of the next page; `None` on the last one.
    pub next: Option<u64>,
}

/// The request to begin a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewConversation {
    /// The id of the team.
    pub team: String,
    /// The task. Default: that of the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Values of the team's variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// The title in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = Instruction::TITLE_CHARS))]
    pub title: Option<String>,
    /// Limits below those of the team.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub limits: LimitOverrides,
}

/// The request to change the title of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewTitle {
    /// The new title. Empty: none.
    #[schemars(length(max = Instruction::TITLE_CHARS))]
    pub title: String,
}

/// The request to import a conversation that was exported, to be stored and read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Import {
    /// The text of the file.
    pub log: String,
    /// The team that it is of, to show requests and graphs. Default: the one with the name in the file, if it has the same participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

/// The request to send a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewMessage {
    /// The text.
    #[schemars(length(min = 1))]
    pub text: String,
    /// The author: a participant of the outermost chat, or `system`. Default: `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub from: Option<String>,
}

/// The request to answer a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The answer. In the turn of a person, an empty one passes, and `exit` leaves the chat.
    pub text: String,
    /// The `question` of one of the open `questions`: the `seq` of the event that asks.
    pub question: u64,
}

/// The result of a request to send a message or an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// The `seq` of its event; `None` while it waits for the end of a step, or for the process that runs the conversation.
    pub seq: Option<u64>,
    /// The process that runs the conversation and carries it out, and its machine, if that is not the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// The request to stop a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// The time at which it stops. Default: `after_step`.
    #[serde(default)]
    pub when: When,
}

/// The result of a request to stop a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// Whether there was anything to stop: a run, or what would have continued by itself.
    pub stopped: bool,
    /// The conversation, after that.
    #[serde(flatten)]
    pub conversation: Conversation,
}

/// The time at which a conversation stops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// When the turns that have begun have ended.
    #[default]
    AfterStep,
    /// At once: calls in flight are aborted.
    Now,
}

/// The request to pause a conversation, without fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {}

/// The request to choose the next speaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextSpeaker {
    /// A participant of the outermost chat.
    #[schemars(length(min = 1))]
    pub who: String,
}

/// Limits to raise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Raise {
    /// How much more it may use than it has used so far.
    pub limits: LimitOverrides,
    /// An agent, whose own limits on calls, tokens, money or time are raised. Default: those of the conversation, or of `chat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub agent: Option<String>,
    /// An open chat, by its name or its path, whose own limits are raised instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub chat: Option<String>,
}

/// The result of verifying a conversation: whether what is stored is what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The conversation.
    pub id: LogId,
    /// The integrity of the stored conversation.
    pub state: Integrity,
    /// The number of events that can be read, those behind the damage included.
    pub events: u64,
    /// The number of them in the intact beginning.
    pub intact: u64,
    /// The damage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The integrity of a stored conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The request to resume a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resume {
    /// How much more it may use than it has used so far.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub limits: LimitOverrides,
}

/// The ways in which a conversation that has ended can be continued.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Continuation {
    /// Whether it continues when it is resumed, without anything else.
    pub resumes: bool,
    /// Higher limits with which it continues.
    pub limits: Option<LimitOverrides>,
    /// A message with which it continues.
    pub message: Option<String>,
}

/// The request to fork a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fork {
    /// The `seq` of the first event that is not copied. Default: all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The new text of that event; without `seq`, the next message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The team that continues it, with the same participants. Default: that of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Whether the fork runs at once. Default: false.
    #[serde(default)]
    pub run: bool,
}

/// The conversation was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// Always true.
    pub removed: bool,
}
