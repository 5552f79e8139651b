//! Limits of the command line.

use polylogue::Limits;
use polylogue_core::{RunOutcome, StopReason};

/// What continues a conversation that ended for this reason, after `polylogue resume ID`: the option that raises a limit of the
/// whole run, with its value as the help shows it, or a message, from which the limits of a chat count again.
pub(crate) fn command_to_continue(reason: &StopReason, limits: &Limits) -> Option<&'static str> {
    option(reason, limits).or_else(|| (reason.outcome() == RunOutcome::Limit).then_some(MORE))
}

/// A message for agents that a limit of their team stopped.
pub(crate) const MORE: &str = "\"Continue.\"";

/// The option that raises the limit of the whole run that ended it.
fn option(reason: &StopReason, limits: &Limits) -> Option<&'static str> {
    match reason {
        StopReason::Turns { limit } => (limits.turns == Some(*limit)).then_some("--max-turns N"),
        StopReason::Calls { limit } => (limits.max_calls() == *limit).then_some("--max-calls N"),
        StopReason::Tokens { limit, .. } => (limits.tokens == Some(*limit)).then_some("--max-tokens N"),
        StopReason::Cost { limit, .. } => (limits.cost == Some(*limit)).then_some("--max-cost DOLLARS"),
        StopReason::NoOutput { ended } => option(ended, limits),
        StopReason::All(reasons) => reasons.iter().find_map(|reason| option(reason, limits)),
        _ => None,
    }
}

/// `1 turn`, `2 turns`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
