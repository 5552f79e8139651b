//! Stop reasons: why a chat ended.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::money::Money;
use super::name::Name;
use super::path::Path;
use super::text::counted;

/// Why a chat was closed. The kernel's own reasons are variants; policies, agents and termination conditions add theirs
/// as [`Other`](Self::Other).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The policy has no further step, and no more specific reason.
    Finished,
    /// The limit on turns of a chat or of a whole run.
    Turns {
        /// The maximum number of turns.
        limit: u64,
        /// The number of turns of the next step, if those parallel turns are more than are left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
    /// The limit on tokens read and written.
    Tokens {
        /// The maximum number of tokens.
        limit: u64,
        /// The number of tokens that were used, calls of unknown usage at their upper bound.
        used: u64,
        /// What the next call could have taken at most, if that was too much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
        /// The last reply, if what was left cut it off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut: Option<CutReply>,
    },
    /// The limit on money.
    Cost {
        /// The maximum amount.
        limit: Money,
        /// The amount that was spent, calls of unknown usage at their upper bound.
        spent: Money,
        /// What the next call could have cost at most, if that was too much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Money>,
        /// The last reply, if what was left cut it off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut: Option<CutReply>,
    },
    /// There is a limit on money, but the tokens or the price of a call are unknown, so that the limit cannot be
    /// enforced.
    UnknownPrice {
        /// The model whose cost is unknown.
        model: Arc<str>,
    },
    /// The limit on model calls of the whole run.
    Calls {
        /// The maximum number of calls.
        limit: u64,
    },
    /// The limit on running time.
    Time {
        /// The limit in milliseconds.
        limit_ms: u64,
        /// The running time in milliseconds. Calls in flight are aborted at the limit.
        used_ms: u64,
    },
    /// A limit of one agent or chat within the run, or of a budget that the run shares with others.
    Allowance {
        /// The owner of the limit.
        of: AllowanceOwner,
        /// The limit that was reached.
        limit: Box<StopReason>,
    },
    /// The bound that was computed before the run ([`RunBound`](crate::RunBound)): a defect of that computation.
    Bound {
        /// The part of the bound that would be exceeded.
        exceeded: Box<StopReason>,
    },
    /// The limit on nesting of chats.
    Depth {
        /// The allowed depth.
        limit: usize,
    },
    /// The conversation loops. The kernel detects repeated tool calls, termination conditions other loops.
    LoopDetected {
        /// Identifies the kind of loop, in lower case with `_`.
        pattern: Arc<str>,
        /// What repeats, for people, such as `empty replies`.
        text: Arc<str>,
        /// The messages or calls that repeat, as `seq` of their events.
        evidence: Vec<u64>,
    },
    /// No participant said anything, so there is no result.
    NoOutput {
        /// The stop reason otherwise.
        ended: Box<StopReason>,
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
    /// A reason of a policy, an agent or a termination condition.
    Other(Box<OtherReason>),
}

/// A reply that was cut off because no more was left of a limit ([`OutputLimit`](crate::OutputLimit)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutReply {
    /// The agent whose reply it is.
    pub who: Name,
    /// The tokens at which it was cut off, reasoning included.
    pub tokens: u64,
}

/// An owner of limits besides those of a run: an agent or a chat within it, or several runs together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowanceOwner {
    /// An agent: its calls, and all within its turns, in the whole run.
    Agent(Name),
    /// A chat: all calls within it.
    Chat {
        /// The name of the chat.
        name: Name,
        /// Its path.
        path: Path,
    },
    /// Several runs that share a [`Budget`](crate::Budget), by its name, such as `batch`.
    Shared(Arc<str>),
}

impl fmt::Display for AllowanceOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(name) => write!(f, "the agent `{name}`"),
            Self::Chat { name, .. } => write!(f, "the chat `{name}`"),
            Self::Shared(name) => write!(f, "the {name}"),
        }
    }
}

/// A stop reason of a policy, an agent or a termination condition.
///
/// ```
/// use polylogue_core::{OtherReason, RunOutcome, StopReason};
/// let reason = StopReason::from(OtherReason::new("stalled", "no progress with 3 plans", RunOutcome::Limit));
/// assert_eq!((reason.code(), reason.to_string().as_str()), ("stalled", "no progress with 3 plans"));
/// assert_eq!(reason.outcome(), RunOutcome::Limit);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherReason {
    /// Identifies the kind of reason, in lower case with `_`.
    pub code: Arc<str>,
    /// The reason for people, such as `Bob said DONE`.
    pub text: Arc<str>,
    /// Its category.
    pub outcome: RunOutcome,
    /// Whether a tool call alone can have met it: then a chat in which no participant said anything has a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_calls: bool,
    /// What it consists of, for programs: an object, or `null` if there is nothing.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl OtherReason {
    /// Creates a reason without details.
    pub fn new(code: impl Into<Arc<str>>, text: impl Into<Arc<str>>, outcome: RunOutcome) -> Self {
        Self { code: code.into(), text: text.into(), outcome, by_calls: false, details: Value::Null }
    }

    /// Adds details for programs.
    #[must_use]
    pub fn details(self, details: Value) -> Self {
        Self { details, ..self }
    }

    /// Declares that a tool call alone can meet the condition.
    #[must_use]
    pub fn by_calls(self) -> Self {
        Self { by_calls: true, ..self }
    }
}

impl From<OtherReason> for StopReason {
    fn from(reason: OtherReason) -> Self {
        Self::Other(Box::new(reason))
    }
}

/// The category of a stop reason, for programs that run chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// The kind of loop in which the same tool is called with the same arguments repeatedly.
    pub const CALLS: &str = "calls";

    /// Creates the stop reason for a loop of the same tool calls, with the `seq` of their events.
    pub fn repeated_calls(evidence: Vec<u64>) -> Self {
        Self::LoopDetected {
            pattern: Self::CALLS.into(),
            text: "the same tool call repeatedly".into(),
            evidence,
        }
    }

    /// The limit on turns, of which `taken` leave too few for the `next` ones.
    pub(crate) fn turns(limit: u64, taken: u64, next: u64) -> Self {
        Self::Turns { limit, next: (taken < limit).then_some(next) }
    }

    /// This limit on tokens or money, of which `used` tokens and `spent` are used by now, after it cut a reply off.
    pub(crate) fn after(&self, (used, spent): (u64, Money), reply: CutReply) -> Self {
        match self {
            Self::Tokens { limit, .. } => Self::Tokens { limit: *limit, used, next: None, cut: Some(reply) },
            Self::Cost { limit, .. } => Self::Cost { limit: *limit, spent, next: None, cut: Some(reply) },
            Self::Allowance { of, limit } => {
                Self::Allowance { of: of.clone(), limit: Box::new(limit.after((used, spent), reply)) }
            }
            other => other.clone(),
        }
    }

    /// Whose limit it is, if not that of the run, and the limit.
    pub(crate) fn owned(&self) -> (Option<&AllowanceOwner>, &Self) {
        match self {
            Self::Allowance { of, limit } => (Some(of), limit),
            own => (None, own),
        }
    }

    /// Identifies the kind of reason, as in logs: `finished`, `turns`, `loop_detected`; of [`Other`](Self::Other) its
    /// own code.
    pub fn code(&self) -> &str {
        match self {
            Self::Finished => "finished",
            Self::Turns { .. } => "turns",
            Self::Tokens { .. } => "tokens",
            Self::Cost { .. } => "cost",
            Self::UnknownPrice { .. } => "unknown_price",
            Self::Calls { .. } => "calls",
            Self::Time { .. } => "time",
            Self::Allowance { .. } => "allowance",
            Self::Bound { .. } => "bound",
            Self::Depth { .. } => "depth",
            Self::LoopDetected { .. } => "loop_detected",
            Self::NoOutput { .. } => "no_output",
            Self::Left { .. } => "left",
            Self::Stopped { .. } => "stopped",
            Self::All(_) => "all",
            Self::Other(reason) => &reason.code,
        }
    }

    /// Returns whether the reason is the limit of a budget that the run shares with others: reopened under a larger one, it continues.
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Allowance { of: AllowanceOwner::Shared(_), .. })
    }

    /// Returns the category. Of several conditions at once, the worst counts.
    pub fn outcome(&self) -> RunOutcome {
        match self {
            Self::Finished => RunOutcome::Done,
            Self::Other(reason) => reason.outcome,
            Self::Tokens { .. } | Self::Cost { .. } | Self::UnknownPrice { .. } => RunOutcome::Budget,
            Self::Allowance { limit: reason, .. } | Self::Bound { exceeded: reason } => reason.outcome(),
            Self::Left { .. } | Self::Stopped { .. } => RunOutcome::Stopped,
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
            Self::Finished => f.write_str("the chat is complete"),
            Self::Turns { limit, next: None } => write!(f, "the limit of {}", counted(*limit, "turn")),
            Self::Turns { limit, next: Some(next) } => {
                let limit = counted(*limit, "turn");
                write!(f, "the limit of {limit} (the next step has {next} parallel turns, all or none)")
            }
            Self::Tokens { limit, used, next, cut } => {
                write!(f, "the limit of {} ({used} used", counted(*limit, "token"))?;
                if let Some(next) = next {
                    write!(f, ", and the next call could take up to {next}")?;
                }
                cut_off(cut.as_ref(), f)
            }
            Self::Cost { limit, spent, next, cut } => {
                write!(f, "the limit of {limit} ({spent} spent")?;
                if let Some(next) = next {
                    write!(f, ", and the next call could cost up to {next}")?;
                }
                cut_off(cut.as_ref(), f)
            }
            Self::UnknownPrice { model } => {
                write!(f, "there is a limit on cost, but what a call of `{model}` cost is unknown")
            }
            Self::Calls { limit } => write!(f, "the limit of {}", counted(*limit, "model call")),
            Self::Time { limit_ms, .. } => write!(f, "the limit of {} of running time", in_units(*limit_ms)),
            Self::Allowance { of, limit } => match &**limit {
                Self::UnknownPrice { model } => {
                    write!(f, "{of} has a limit on cost, but what a call of `{model}` cost is unknown")
                }
                limit => write!(f, "{of} has reached {limit}"),
            },
            Self::Bound { exceeded } => write!(
                f,
                "the bound computed before the run is too low: {exceeded}. This is a defect of Polylogue: please report it with the team file"
            ),
            Self::Depth { limit: 1 } => f.write_str("the limit of 1 level of chats within chats"),
            Self::Depth { limit } => write!(f, "the limit of {limit} levels of chats within chats"),
            Self::LoopDetected { text, .. } => write!(f, "loop detected: {text}"),
            Self::NoOutput { ended } => write!(f, "no participant said anything; {ended}"),
            Self::Left { who, why } => write!(f, "{who} left: {why}"),
            Self::Stopped { by } => write!(f, "stopped by {by}"),
            Self::Other(reason) => f.write_str(&reason.text),
            Self::All(reasons) => {
                let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
                f.write_str(&reasons.join(", and "))
            }
        }
    }
}

/// The end of the parentheses, with the reply that was cut off.
fn cut_off(cut: Option<&CutReply>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match cut {
        Some(CutReply { who, tokens }) => {
            write!(f, "; the reply of {who} was cut off at {tokens} tokens, all that was left)")
        }
        None => f.write_str(")"),
    }
}

/// A time in the largest unit in which it is a whole number.
pub(crate) fn in_units(ms: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    let unit = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ms} ms"), |(unit, name)| format!("{} {name}", ms / unit))
}
