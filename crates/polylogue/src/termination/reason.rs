//! The stop reasons of the library: of its termination conditions, policies and agents.

use std::fmt;
use std::sync::Arc;

use polylogue_core::text::{counted, enumerated};
use polylogue_core::{Name, OtherReason, RunOutcome, Step, StopReason, Transcript};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A stop reason of the library's termination conditions, policies and agents. In a log it is
/// [`StopReason::Other`], with the variant's name as code and its fields as details.
///
/// ```
/// use polylogue::kernel::data::StopReason;
/// use polylogue::stop::LibraryStopReason;
/// let reason = StopReason::from(LibraryStopReason::Rounds { limit: 3 });
/// assert_eq!((reason.code(), reason.to_string().as_str()), ("rounds", "the limit of 3 rounds"));
/// assert_eq!(LibraryStopReason::of(&reason), Some(LibraryStopReason::Rounds { limit: 3 }));
/// assert_eq!(LibraryStopReason::of(&LibraryStopReason::AllSpoken.into()), Some(LibraryStopReason::AllSpoken));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LibraryStopReason {
    /// The only participant replied, in a chat in which each has one turn.
    Replied {
        /// The participant.
        who: Name,
    },
    /// Every participant has spoken, in a chat in which each has one turn.
    AllSpoken,
    /// A participant replied without a handoff, in a chat that ends then.
    NoHandoff {
        /// The participant.
        who: Name,
    },
    /// The graph has no open path.
    GraphComplete,
    /// All chats of the DAG are finished.
    DagComplete,
    /// The transitions of a state machine led to its end.
    EndState {
        /// The last speaker; `None` at the start.
        after: Option<Name>,
    },
    /// A vote decided a debate.
    Voted {
        /// The option.
        option: String,
    },
    /// The chair of a debate decided, after a tie.
    ChairDecided {
        /// The option.
        option: String,
        /// The chair.
        by: Name,
    },
    /// A debate ended without a decision.
    Undecided,
    /// The orchestrator judged the request satisfied.
    RequestSatisfied {
        /// The participant that wrote this into the ledger.
        by: Name,
    },
    /// Every task was done by its agent, once.
    TasksDone {
        /// The number of tasks.
        count: u64,
    },
    /// The requested number of turns, messages or iterations was reached. This is an expected end; the limits that
    /// keep a chat or a run from going too far are [`StopReason::Turns`], [`Messages`](Self::Messages) and
    /// [`Rounds`](Self::Rounds).
    CountReached {
        /// The number that was reached.
        count: u64,
        /// The quantity that was counted.
        of: Counted,
    },
    /// A message contained, or was, a text of a termination condition.
    Mentioned {
        /// The text.
        text: Arc<str>,
        /// The author of the message.
        by: Name,
    },
    /// A message matched the regular expression of a termination condition.
    Matched {
        /// The expression.
        pattern: String,
        /// The author of the message.
        by: Name,
    },
    /// A custom termination condition was met.
    Condition {
        /// The name of the condition.
        name: String,
    },
    /// The chat reached its limit on messages.
    Messages {
        /// The maximum number of messages.
        limit: u64,
    },
    /// The chat reached its limit on running time, waiting for people not counted.
    Time {
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// No participant is left.
    NoParticipants {
        /// The participant that left last, and why.
        last: Option<(Name, String)>,
    },
    /// A participant had no reply, and the chat needs one.
    NoReply {
        /// The participant.
        who: Name,
    },
    /// A participant reached its limit on rounds of tool calls in one turn: its model called tools until the limit, and said
    /// nothing.
    ToolRounds {
        /// The participant.
        who: Name,
        /// The maximum number of rounds.
        limit: u64,
    },
    /// The context window of a participant's model is full: the provider refused a request as too long, and the history could
    /// not be compacted, or was and is still too long.
    ContextFull {
        /// The participant.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
    },
    /// A participant reached its limit on automatic replies without human input.
    AutoReplies {
        /// The participant.
        who: Name,
        /// The maximum number in a row.
        limit: u64,
    },
    /// The rules of the chat allow no next speaker.
    NoSpeaker {
        /// The last speaker.
        after: Option<Name>,
    },
    /// The orchestrator made no progress and reached its limit on new plans.
    Stalled {
        /// The limit.
        plans: u64,
    },
    /// The agents judge their tasks complete.
    Completed {
        /// The agents whose tasks are complete, in the order of completion.
        who: Vec<Name>,
    },
    /// The chat reached its limit on rounds, in each of which every participant speaks once.
    Rounds {
        /// The maximum number of rounds.
        limit: u64,
    },
    /// A participant's model made too many errors: in tool calls, in the format of its reply, or in its role.
    Errors {
        /// The participant.
        who: Name,
        /// The kind of error.
        of: ModelMistake,
        /// The maximum number in a row.
        limit: u64,
    },
}

impl LibraryStopReason {
    /// Returns the reason that is in `reason`; `None` if that is one of the kernel or of a custom policy or condition.
    pub fn of(reason: &StopReason) -> Option<Self> {
        let StopReason::Other(other) = reason else { return None };
        let code = other.code.to_string();
        let tagged = match &other.details {
            Value::Null => Value::String(code),
            details => Value::Object(Map::from_iter([(code, details.clone())])),
        };
        serde_json::from_value(tagged).ok()
    }

    /// Ends the chat for this reason, or for that of a participant that ended it.
    pub(crate) fn close(self, chat: &Transcript) -> Step {
        let ended = chat.ended_by().map(|(_, reason)| reason.clone());
        Step::close(ended.unwrap_or_else(|| self.into()), chat)
    }

    const fn outcome(&self) -> RunOutcome {
        match self {
            Self::Replied { .. }
            | Self::AllSpoken
            | Self::NoHandoff { .. }
            | Self::GraphComplete
            | Self::DagComplete
            | Self::EndState { .. }
            | Self::Voted { .. }
            | Self::ChairDecided { .. }
            | Self::Undecided
            | Self::RequestSatisfied { .. }
            | Self::TasksDone { .. }
            | Self::CountReached { .. }
            | Self::Mentioned { .. }
            | Self::Matched { .. }
            | Self::Condition { .. }
            | Self::NoReply { .. }
            | Self::NoSpeaker { .. }
            | Self::Completed { .. } => RunOutcome::Done,
            Self::NoParticipants { .. } => RunOutcome::Stopped,
            Self::Messages { .. }
            | Self::Time { .. }
            | Self::ToolRounds { .. }
            | Self::ContextFull { .. }
            | Self::AutoReplies { .. }
            | Self::Stalled { .. }
            | Self::Rounds { .. }
            | Self::Errors { .. } => RunOutcome::Limit,
        }
    }
}

impl From<LibraryStopReason> for StopReason {
    fn from(reason: LibraryStopReason) -> Self {
        // A value of this type is always written as an object with one key, or, without fields, as a string.
        let (code, details) = match serde_json::to_value(&reason) {
            Ok(Value::Object(tagged)) => tagged.into_iter().next().unwrap_or_default(),
            Ok(Value::String(code)) => (code, Value::Null),
            _ => Default::default(),
        };
        let other = OtherReason::new(code, reason.to_string(), reason.outcome()).details(details);
        match reason {
            LibraryStopReason::Condition { .. } | LibraryStopReason::Completed { .. } => {
                other.by_calls().into()
            }
            _ => other.into(),
        }
    }
}

impl fmt::Display for LibraryStopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replied { who } => write!(f, "{who} replied"),
            Self::AllSpoken => f.write_str("every participant has spoken"),
            Self::NoHandoff { who } => write!(f, "{who} replied without a handoff"),
            Self::GraphComplete => f.write_str("the graph is complete"),
            Self::DagComplete => f.write_str("every chat of the DAG is finished"),
            Self::EndState { after: Some(who) } => write!(f, "the state machine reached its end after {who}"),
            Self::EndState { after: None } => f.write_str("the state machine reached its end"),
            Self::Voted { option } => write!(f, "the vote was for `{option}`"),
            Self::ChairDecided { option, by } => write!(f, "the vote was tied, and {by} chose `{option}`"),
            Self::Undecided => f.write_str("the vote was undecided"),
            Self::RequestSatisfied { by } => write!(f, "{by} judged the request satisfied"),
            Self::TasksDone { count: 1 } => f.write_str("the task is done"),
            Self::TasksDone { count } => write!(f, "all {count} tasks are done"),
            Self::CountReached { count, of } => write!(f, "{count} of {}", counted(*count, of.one())),
            Self::Mentioned { text, by } => write!(f, "{by} said `{text}`"),
            Self::Matched { pattern, by } => write!(f, "{by}'s message matched `{pattern}`"),
            Self::Condition { name } => write!(f, "the condition `{name}` held"),
            Self::Messages { limit } => write!(f, "the limit of {}", counted(*limit, "message")),
            Self::Time { limit_ms } => write!(f, "the limit of {} s", seconds(*limit_ms)),
            Self::NoParticipants { last: Some((who, why)) } => {
                write!(f, "no participant is left; {who} left last: {why}")
            }
            Self::NoParticipants { last: None } => f.write_str("there is no participant"),
            Self::NoReply { who } => write!(f, "{who} has no reply"),
            Self::ToolRounds { who, limit } => {
                write!(f, "{who}'s limit of {} of tool calls in one turn", counted(*limit, "round"))
            }
            Self::ContextFull { who, model } => {
                write!(f, "{who}'s history does not fit into the context window of `{model}`")
            }
            Self::AutoReplies { who, limit } => {
                write!(f, "{who}'s limit of {} without human input", counted(*limit, "reply"))
            }
            Self::NoSpeaker { after: Some(who) } => write!(f, "no participant may speak after {who}"),
            Self::NoSpeaker { after: None } => f.write_str("no participant may begin"),
            Self::Stalled { plans } => write!(f, "no progress with {}", counted(*plans, "plan")),
            Self::Completed { who } => {
                let (tasks, are) = if who.len() == 1 { ("task", "is") } else { ("tasks", "are") };
                write!(f, "the {tasks} of {} {are} complete", enumerated(who.iter().map(Name::as_str)))
            }
            Self::Rounds { limit } => write!(f, "the limit of {}", counted(*limit, "round")),
            Self::Errors { who, of, limit } => {
                write!(f, "{who}'s limit of {} in {of}", counted(*limit, "error"))
            }
        }
    }
}

/// The quantity that a limit or condition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Counted {
    /// Turns, private turns not included.
    Turns,
    /// Messages, including those of the opening.
    Messages,
    /// Iterations, in each of which every participant speaks once.
    Iterations,
}

impl Counted {
    const fn one(self) -> &'static str {
        match self {
            Self::Turns => "turn",
            Self::Messages => "message",
            Self::Iterations => "iteration",
        }
    }
}

/// The kind of a model's error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelMistake {
    /// A tool rejected its arguments, or the arguments were not JSON.
    Tool(String),
    /// The arguments did not match the tool's schema.
    Arguments(String),
    /// The choice of a tool.
    Choice,
    /// The format of the answer.
    Answer,
    /// Replying: the reply had no content.
    Reply,
    /// The role: it instructed as the instructed role, or gave no instruction as the instructing one.
    Role,
}

impl fmt::Display for ModelMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(tool) => write!(f, "calling `{tool}`"),
            Self::Arguments(tool) => write!(f, "the arguments of `{tool}`"),
            Self::Choice => f.write_str("choosing a tool"),
            Self::Answer => f.write_str("the form of its answer"),
            Self::Reply => f.write_str("replying with words"),
            Self::Role => f.write_str("keeping to its role"),
        }
    }
}

/// Seconds without zeros at the end: `60`, `1.5`, `0.01`.
fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
