//! Why a run ended.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Money, Name};

/// Why a chat was closed. Every way a chat can end has its own variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The policy came to its end: everybody had their turn.
    Finished,
    /// All turns, messages or iterations that the chat was asked for were made. This is an expected end; the limits that keep
    /// a chat or a run from going too far are [`Turns`](Self::Turns), [`Messages`](Self::Messages) and
    /// [`Rounds`](Self::Rounds).
    CountReached {
        /// How many.
        count: u64,
        /// Of what.
        of: Counted,
    },
    /// A message held the text, or was the text, that ends the chat.
    Mentioned {
        /// The text.
        text: Arc<str>,
        /// Who said it.
        by: Name,
    },
    /// A message matched the regular expression that ends the chat.
    Matched {
        /// The expression.
        pattern: String,
        /// Whose message matched.
        by: Name,
    },
    /// A condition of the caller's own held.
    Condition {
        /// What the caller calls it.
        name: String,
    },
    /// The limit on turns: the cap of a chat, or the limit of a whole run.
    Turns {
        /// How many are allowed.
        limit: u64,
    },
    /// The limit on messages.
    Messages {
        /// How many are allowed.
        limit: u64,
    },
    /// The limit on the time between the first and the last event, waiting for people not counted.
    Time {
        /// How long is allowed, in milliseconds.
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
    /// A budget was given, but a call's tokens or price are unknown, so that nobody can hold it.
    UnknownPrice {
        /// The model whose cost is unknown.
        model: Arc<str>,
    },
    /// The limit on model calls of the whole run.
    Calls {
        /// How many are allowed.
        limit: u64,
    },
    /// The limit on chats within chats.
    Depth {
        /// How deep is allowed.
        limit: usize,
    },
    /// The conversation goes in circles.
    LoopDetected {
        /// In what way.
        pattern: LoopKind,
        /// The messages or calls that show it, as `seq` of their events.
        evidence: Vec<u64>,
    },
    /// Nobody is left who could speak.
    NoParticipants {
        /// Who left last, and why.
        last: Option<(Name, String)>,
    },
    /// A participant had no reply, and replies are what the chat is made of.
    NoReply {
        /// Who.
        who: Name,
    },
    /// No participant said anything, so there is no result.
    NoOutput {
        /// Why the chat would have ended otherwise.
        ended: Box<StopReason>,
    },
    /// A participant's limit on rounds of tool calls in one turn: its model called tools until there were no more rounds, and
    /// said nothing.
    ToolRounds {
        /// Whose.
        who: Name,
        /// How many are allowed.
        limit: u64,
    },
    /// A participant's limit on replies that no person had a part in.
    AutoReplies {
        /// Whose.
        who: Name,
        /// How many in a row are allowed.
        limit: u64,
    },
    /// The rules of the chat allow nobody to speak next.
    NoSpeaker {
        /// Who spoke last.
        after: Option<Name>,
    },
    /// The plan was made anew as often as it may be, and there was no progress.
    Stalled {
        /// How often it may.
        plans: u64,
    },
    /// Agents hold their tasks to be complete, and that is what the chat is for.
    Completed {
        /// Whose tasks are complete, in the order in which they were completed.
        who: Vec<Name>,
    },
    /// The limit on rounds, in each of which everybody speaks once.
    Rounds {
        /// How many are allowed.
        limit: u64,
    },
    /// A participant's model made more errors than it may: in calling a tool, in the form of what it wrote, or in its role.
    Errors {
        /// Whose.
        who: Name,
        /// In what.
        of: ModelMistake,
        /// How many in a row are allowed.
        limit: u64,
    },
    /// A participant left, and the chat does not go on without it.
    Left {
        /// Who.
        who: Name,
        /// Why.
        why: String,
    },
    /// It was stopped for good from outside.
    Stopped {
        /// By whom or what.
        by: String,
    },
    /// Several conditions held at once, and all were asked for.
    All(Vec<StopReason>),
}

/// What a chat was asked for a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Counted {
    /// Turns in the room.
    Turns,
    /// Messages in the room, those of the opening included.
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

/// What a model made errors in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelMistake {
    /// A tool refused what it was called with, or what was to be its arguments was no JSON.
    Tool(String),
    /// The arguments did not fit the tool.
    Arguments(String),
    /// The choice of a tool.
    Choice,
    /// The form of the answer.
    Answer,
    /// Replying: there were no words in what it wrote.
    Reply,
    /// Its role: it instructed where it was to be instructed, or gave no instruction where it was to.
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

/// A way of going in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopKind {
    /// Speakers say nearly the same as before.
    Repetition,
    /// Speakers take leave of each other, again and again.
    Farewells,
    /// Speakers say nothing.
    Silence,
    /// The same tool is called with the same arguments, again and again.
    Calls,
}

/// What kind of end it is: what a program that runs chats decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunOutcome {
    /// The chat reached what it was for.
    Done,
    /// A limit on turns, time, calls or depth, or going in circles.
    Limit,
    /// A limit on tokens or money.
    Budget,
    /// Somebody stopped it or left.
    Stopped,
    /// No participant said anything.
    NoOutput,
}

impl StopReason {
    /// What kind of end it is. Several conditions at once are as bad as the worst of them.
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
            Self::Finished => f.write_str("everybody had their turn"),
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
            Self::LoopDetected { pattern, .. } => write!(f, "going in circles: {pattern}"),
            Self::NoParticipants { last: Some((who, why)) } => {
                write!(f, "nobody is left; {who} left last: {why}")
            }
            Self::NoParticipants { last: None } => f.write_str("there is nobody to speak"),
            Self::NoReply { who } => write!(f, "{who} has no reply"),
            Self::NoOutput { ended } => write!(f, "no participant said anything; {ended}"),
            Self::ToolRounds { who, limit } => {
                write!(f, "{who}'s limit of {} of tool calls in one turn", counted(*limit, "round"))
            }
            Self::AutoReplies { who, limit } => {
                write!(f, "{who}'s limit of {} that nobody had a part in", counted(*limit, "reply"))
            }
            Self::NoSpeaker { after: Some(who) } => write!(f, "nobody may speak after {who}"),
            Self::NoSpeaker { after: None } => f.write_str("nobody may begin"),
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
