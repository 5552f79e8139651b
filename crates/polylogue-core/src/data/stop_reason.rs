//! Stop reasons: why a chat ended.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::usage::Money;

/// Why a chat was closed. Every way a chat can end has its own variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The policy finished: every participant has spoken.
    Finished,
    /// The requested number of turns, messages or iterations was reached. This is an expected end; the limits that
    /// keep a chat or a run from going too far are [`Turns`](Self::Turns), [`Messages`](Self::Messages) and
    /// [`Rounds`](Self::Rounds).
    CountReached {
        /// How many.
        count: u64,
        /// Of what.
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
    /// The limit on turns of a chat or of a whole run.
    Turns {
        /// How many are allowed.
        limit: u64,
    },
    /// The limit on messages.
    Messages {
        /// How many are allowed.
        limit: u64,
    },
    /// The limit on running time, waiting for people not counted.
    Time {
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// The limit on tokens read and written.
    Tokens {
        /// How many are allowed.
        limit: u64,
        /// How many were used, calls of unknown usage at their upper bound.
        used: u64,
        /// What the next call could have taken at most, if that was too much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
    /// The limit on money.
    Cost {
        /// How much is allowed.
        limit: Money,
        /// How much was spent, calls of unknown usage at their upper bound.
        spent: Money,
        /// What the next call could have cost at most, if that was too much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Money>,
    },
    /// There is a limit on money, but the tokens or the price of a call are unknown, so that the limit cannot be
    /// enforced.
    UnknownPrice {
        /// The model whose cost is unknown.
        model: Arc<str>,
    },
    /// The limit on model calls of the whole run.
    Calls {
        /// How many are allowed.
        limit: u64,
    },
    /// The limit on nesting of chats.
    Depth {
        /// The allowed depth.
        limit: usize,
    },
    /// The conversation loops.
    LoopDetected {
        /// The kind of loop.
        pattern: LoopKind,
        /// The messages or calls that repeat, as `seq` of their events.
        evidence: Vec<u64>,
    },
    /// No participant is left.
    NoParticipants {
        /// Who left last, and why.
        last: Option<(Name, String)>,
    },
    /// A participant had no reply, and the chat needs one.
    NoReply {
        /// Who.
        who: Name,
    },
    /// No participant said anything, so there is no result.
    NoOutput {
        /// The stop reason otherwise.
        ended: Box<StopReason>,
    },
    /// A participant's limit on rounds of tool calls in one turn: its model called tools until the limit, and said
    /// nothing.
    ToolRounds {
        /// Whose.
        who: Name,
        /// How many are allowed.
        limit: u64,
    },
    /// A participant's limit on automatic replies without human input.
    AutoReplies {
        /// Whose.
        who: Name,
        /// How many in a row are allowed.
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
    /// The limit on rounds, in each of which every participant speaks once.
    Rounds {
        /// How many are allowed.
        limit: u64,
    },
    /// A participant's model made too many errors: in tool calls, in the format of its reply, or in its role.
    Errors {
        /// The participant.
        who: Name,
        /// The kind of error.
        of: ModelMistake,
        /// How many in a row are allowed.
        limit: u64,
    },
    /// A participant left, and the chat does not continue without it.
    Left {
        /// The participant.
        who: Name,
        /// The reason it gave.
        why: String,
    },
    /// It was closed from outside.
    Stopped {
        /// Who or what closed it.
        by: String,
    },
    /// Several termination conditions were met, and all were required.
    All(Vec<StopReason>),
}

/// What is counted.
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
    /// Its role: it instructed as the instructed role, or gave no instruction as the instructing one.
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

/// A kind of loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopKind {
    /// Speakers say nearly the same as before.
    Repetition,
    /// Speakers say goodbye to each other again and again.
    Farewells,
    /// Speakers say nothing.
    Silence,
    /// The same tool is called with the same arguments again and again.
    Calls,
}

/// The category of a stop reason, for programs that run chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunOutcome {
    /// The chat reached its goal.
    Done,
    /// A limit on turns, time, calls or depth, or a loop.
    Limit,
    /// A limit on tokens or money.
    Budget,
    /// A participant left or stopped it, or it was stopped from outside.
    Stopped,
    /// No participant said anything.
    NoOutput,
}

impl StopReason {
    /// The category. Of several conditions at once, the worst counts.
    #[must_use]
    pub fn outcome(&self) -> RunOutcome {
        match self {
            Self::Finished
            | Self::CountReached { .. }
            | Self::Mentioned { .. }
            | Self::Matched { .. }
            | Self::Condition { .. }
            | Self::NoReply { .. }
            | Self::NoSpeaker { .. }
            | Self::Completed { .. } => RunOutcome::Done,
            Self::Tokens { .. } | Self::Cost { .. } | Self::UnknownPrice { .. } => RunOutcome::Budget,
            Self::Left { .. } | Self::Stopped { .. } | Self::NoParticipants { .. } => RunOutcome::Stopped,
            Self::NoOutput { .. } => RunOutcome::NoOutput,
            Self::All(reasons) => {
                let is = |ending| reasons.iter().any(|reason| reason.outcome() == ending);
                [RunOutcome::Budget, RunOutcome::Limit, RunOutcome::Stopped, RunOutcome::NoOutput]
                    .into_iter()
                    .find(|e| is(*e))
                    .unwrap_or(RunOutcome::Done)
            }
            _ => RunOutcome::Limit,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("every participant has spoken"),
            Self::CountReached { count, of } => write!(f, "{count} of {}", counted(*count, of.one())),
            Self::Mentioned { text, by } => write!(f, "{by} said `{text}`"),
            Self::Matched { pattern, by } => write!(f, "{by}'s message matched `{pattern}`"),
            Self::Condition { name } => write!(f, "the condition `{name}` held"),
            Self::Turns { limit } => write!(f, "the limit of {}", counted(*limit, "turn")),
            Self::Messages { limit } => write!(f, "the limit of {}", counted(*limit, "message")),
            Self::Time { limit_ms } => write!(f, "the limit of {} s", limit_ms / 1000),
            Self::Tokens { limit, used, next: None } => {
                write!(f, "the limit of {limit} tokens ({used} used)")
            }
            Self::Tokens { limit, used, next: Some(next) } => {
                write!(
                    f,
                    "the limit of {limit} tokens ({used} used, and the next call could take up to {next})"
                )
            }
            Self::Cost { limit, spent, next: None } => write!(f, "the budget of {limit} ({spent} spent)"),
            Self::Cost { limit, spent, next: Some(next) } => {
                write!(f, "the budget of {limit} ({spent} spent, and the next call could cost up to {next})")
            }
            Self::UnknownPrice { model } => {
                write!(f, "there is a budget, but what a call of `{model}` cost is unknown")
            }
            Self::Calls { limit } => write!(f, "the limit of {}", counted(*limit, "model call")),
            Self::Depth { limit } => write!(f, "the limit of {limit} chats within chats"),
            Self::LoopDetected { pattern, .. } => write!(f, "loop detected: {pattern}"),
            Self::NoParticipants { last: Some((who, why)) } => {
                write!(f, "no participant is left; {who} left last: {why}")
            }
            Self::NoParticipants { last: None } => f.write_str("there is no participant"),
            Self::NoReply { who } => write!(f, "{who} has no reply"),
            Self::NoOutput { ended } => write!(f, "no participant said anything; {ended}"),
            Self::ToolRounds { who, limit } => {
                write!(f, "{who}'s limit of {} of tool calls in one turn", counted(*limit, "round"))
            }
            Self::AutoReplies { who, limit } => {
                write!(f, "{who}'s limit of {} without human input", counted(*limit, "reply"))
            }
            Self::NoSpeaker { after: Some(who) } => write!(f, "no participant may speak after {who}"),
            Self::NoSpeaker { after: None } => f.write_str("no participant may begin"),
            Self::Stalled { plans } => write!(f, "no progress with {}", counted(*plans, "plan")),
            Self::Completed { who } => {
                let names: Vec<_> = who.iter().map(Name::as_str).collect();
                let (tasks, are) = if who.len() == 1 { ("task", "is") } else { ("tasks", "are") };
                write!(f, "the {tasks} of {} {are} complete", names.join(" and "))
            }
            Self::Rounds { limit } => write!(f, "the limit of {}", counted(*limit, "round")),
            Self::Errors { who, of, limit } => {
                write!(f, "{who}'s limit of {} in {of}", counted(*limit, "error"))
            }
            Self::Left { who, why } => write!(f, "{who} left: {why}"),
            Self::Stopped { by } => write!(f, "stopped by {by}"),
            Self::All(reasons) => {
                let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
                f.write_str(&reasons.join(", and "))
            }
        }
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = what.strip_suffix('y').map_or_else(|| format!("{what}s"), |stem| format!("{stem}ies"));
    if count == 1 { format!("1 {what}") } else { format!("{count} {plural}") }
}

impl fmt::Display for LoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repetition => "nearly the same messages again and again",
            Self::Farewells => "nothing but farewells",
            Self::Silence => "empty replies",
            Self::Calls => "the same tool call again and again",
        })
    }
}
