//! Limits of the command line.

use polylogue_core::{AllowanceOwner, LimitOverrides, Message, RunOutcome, StopReason};
use polylogue_runtime::database::shared_budget_name;
use polylogue_runtime::{Continuation, Conversation};

use crate::args::Budgets;
use crate::error::CliError;

/// What continues a conversation that ended for `reason`, or with `message` after that was refused for `reason`, after
/// `polylogue resume ID`: the option that allows more of what its limit counts, as much again, another message, from which the
/// limits of its chats count from 0, or another model.
pub(crate) async fn command_to_continue(
    conversation: &Conversation,
    reason: &StopReason,
    message: Option<&Message>,
) -> Result<Option<String>, CliError> {
    Ok(conversation.continuation(reason, message).await?.map(words))
}

/// The same, if a limit ended it.
pub(crate) async fn past_limit(
    conversation: &Conversation,
    reason: &StopReason,
) -> Result<Option<String>, CliError> {
    if let Some(budget) = next_budget(reason).or_else(|| higher_budget(reason)) {
        return Ok(Some(budget));
    }
    let is_limit = matches!(reason.outcome(), RunOutcome::Limit | RunOutcome::Budget);
    let continuation = conversation.continuation(reason, None).await?;
    Ok(continuation.filter(|way| is_limit || *way != Continuation::Message).map(words))
}

/// The option for as much again, if the budget of this process ended a conversation for `reason`: the next process has one of its own.
fn next_budget(reason: &StopReason) -> Option<String> {
    let (owner, limit) = budget_of(reason)?;
    budget_options(&limit, "").filter(|_| owner == Budgets::PROCESS)
}

/// The option for twice as much, if a budget with a name that processes share refuses to continue a conversation for `reason`: its limit is a
/// total, and a new one replaces it.
pub(crate) fn higher_budget(reason: &StopReason) -> Option<String> {
    let (owner, limit) = budget_of(reason)?;
    let name = shared_budget_name(owner)?;
    let double = |amount: u64| amount.saturating_mul(2).max(1);
    let limit = LimitOverrides {
        calls: limit.calls.map(double),
        tokens: limit.tokens.map(double),
        cost: limit.cost.map(|cost| cost + cost).filter(|cost| cost.picodollars > 0),
        ..LimitOverrides::default()
    };
    budget_options(&limit, &format!("{name}="))
}

/// The budget that ended a conversation for `reason`, by its title, and as much as its limit.
fn budget_of(reason: &StopReason) -> Option<(&str, LimitOverrides)> {
    let StopReason::Allowance { of: AllowanceOwner::Shared(owner), limit } = reason else { return None };
    Some((&**owner, limit.as_limit()))
}

/// The option with the limit of a budget, after its name.
fn budget_options(limit: &LimitOverrides, name: &str) -> Option<String> {
    let LimitOverrides { calls, tokens, cost, time_ms, .. } = limit;
    let options = [
        calls.map(|calls| format!("--budget-calls {name}{calls}")),
        tokens.map(|tokens| format!("--budget-tokens {name}{tokens}")),
        cost.map(|cost| format!("--budget {name}{}", cost.as_dollars())),
        time_ms.map(|ms| format!("--budget-time {}", time(ms))),
    ];
    options.into_iter().flatten().next()
}

/// The option with which a new limit of a budget is given that has refused a call for `reason`.
pub(crate) fn budget_option(reason: &StopReason) -> Option<&'static str> {
    let StopReason::Allowance { limit, .. } = reason else { return None };
    let LimitOverrides { calls, tokens, cost, time_ms, .. } = limit.as_limit();
    let options = [
        (calls.is_some(), "--budget-calls"),
        (tokens.is_some(), "--budget-tokens"),
        (cost.is_some(), "--budget"),
        (time_ms.is_some(), "--budget-time"),
    ];
    options.into_iter().find_map(|(is_it, option)| is_it.then_some(option))
}

/// What continues a conversation, after `polylogue resume ID`.
pub(crate) fn words(continuation: Continuation) -> String {
    match continuation {
        Continuation::More(more) => options(&more),
        Continuation::Message => format!("\"{}\"", Continuation::MESSAGE),
        Continuation::LargerModel { message: false } => "--model PROVIDER:MODEL".to_owned(),
        Continuation::LargerModel { message: true } => {
            format!("--model PROVIDER:MODEL \"{}\"", Continuation::MESSAGE)
        }
    }
}

/// Limits as options of a command.
fn options(limits: &LimitOverrides) -> String {
    let LimitOverrides { turns, calls, tokens, cost, time_ms, .. } = limits;
    let options = [
        turns.map(|turns| format!("--max-turns {turns}")),
        calls.map(|calls| format!("--max-calls {calls}")),
        tokens.map(|tokens| format!("--max-tokens {tokens}")),
        cost.map(|cost| format!("--max-cost {}", cost.as_dollars())),
        time_ms.map(|ms| format!("--max-time {}", time(ms))),
    ];
    options.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A time as the option takes it: `90s`.
fn time(ms: u64) -> String {
    match ms % 1000 {
        0 => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

/// `1 turn`, `2 turns`, `2 processes`, `2 tries`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    match what.strip_suffix("ry") {
        _ if count == 1 => format!("1 {what}"),
        Some(stem) => format!("{count} {stem}ries"),
        None if what.ends_with('s') => format!("{count} {what}es"),
        None => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_has_the_right_number() {
        let counts = [(1, "turn"), (0, "turn"), (1, "process"), (2, "process"), (1, "try"), (5, "try")];
        let texts = counts.map(|(count, what)| counted(count, what));
        assert_eq!(texts, ["1 turn", "0 turns", "1 process", "2 processes", "1 try", "5 tries"]);
    }
}
