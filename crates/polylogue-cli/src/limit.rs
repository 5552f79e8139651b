//! Limits of the command line.

use polylogue::Limits;
use polylogue_core::StopReason;

/// The option that raises the limit of the whole run that ended it, with its value as the help shows it. Limits of a chat have no
/// option.
pub(crate) fn option(reason: &StopReason, limits: &Limits) -> Option<&'static str> {
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
