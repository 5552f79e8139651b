//! `polylogue cluster`: the workers of a store, what they run, and what waits for them.

use polylogue_core::{
    CountedUsage, Money, Queue as _, QueueOverview, QueueState, QueuedLog, SeenWorker, Status,
};
use polylogue_runtime::{BudgetListing, Recount, Runtime};
use serde_json::json;

use super::runs::age;
use super::{unwritable, write};
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::runner::waiting;
use crate::screen::text::folded;
use crate::screen::{RunEnd, Sanitized};
use crate::stderr::print_note_wrapped;
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::worker::Cluster) -> Result<Exit, CliError> {
    let runtime = place::existing(cli.store.as_deref())?;
    if let Some(name) = &args.recount {
        return recount(&runtime, name, args.json).await;
    }
    let overview = runtime.queue()?.overview(args.limit).await?;
    let budgets = runtime.shared_budgets().await?;
    let workers = overview.workers.iter();
    let logs = overview.logs.iter();
    let rows: Result<Vec<Sanitized>, CliError> = match args.json {
        true => {
            let logs = logs.map(|log| log_json(log, &overview));
            workers.map(worker_json).chain(budgets.iter().map(budget_json)).chain(logs).collect()
        }
        false => {
            let logs = logs.map(|log| log_row(log, &overview));
            Ok(workers.map(worker_row).chain(budgets.iter().map(budget_row)).chain(logs).collect())
        }
    };
    let text: Sanitized = rows?.into_iter().collect();
    write(&text)?;
    if !args.json {
        print_summary(&overview);
    }
    let (shown, all) = (overview.logs.len() as u64, overview.figures.all());
    if shown < all {
        print_note_wrapped(&format!(
            "{shown} of {} are shown: `--limit N` shows more",
            counted(all, "conversation")
        ));
    }
    Ok(Exit::Done)
}

fn worker_row(worker: &SeenWorker) -> Sanitized {
    let SeenWorker { process, version, info, seen, held } = worker;
    let offers = if info.offers.is_empty() { String::new() } else { format!("  offers {}", info.offers) };
    let address = info.address.as_ref().map(|address| format!("  at {address}")).unwrap_or_default();
    let (seen, most) = (age(seen.as_secs()), info.at_once);
    Sanitized::row(&format!(
        "worker  {process}  {held} of {most}, seen {seen} ago  {version}{offers}{address}"
    ))
}

fn worker_json(worker: &SeenWorker) -> Result<Sanitized, CliError> {
    let SeenWorker { process, version, info, seen, held } = worker;
    let offers: Vec<&str> = info.offers.words().collect();
    let seen = u64::try_from(seen.as_millis()).unwrap_or(u64::MAX);
    let row = json!({
        "worker": process, "version": version, "held": held, "at_once": info.at_once, "offers": offers,
        "address": info.address, "seen_ms": seen,
    });
    Sanitized::json(&row).map_err(unwritable)
}

/// `3 of 20 calls`, for what is limited or used.
fn used(listing: &BudgetListing) -> String {
    let BudgetListing { limits, spent, drawn, .. } = listing;
    let of = |used: String, most: Option<String>, drawn: Option<String>| {
        let most = most.map(|most| format!(" of {most}")).unwrap_or_default();
        let drawn = drawn.map(|drawn| format!(" ({drawn} drawn)")).unwrap_or_default();
        format!("{used}{most}{drawn}")
    };
    let number = |number: u64| (number > 0).then(|| number.to_string());
    let cost = Some(drawn.cost).filter(|cost| *cost > Money::default()).map(|cost| cost.to_string());
    let parts = [
        Some(of(
            spent.cost.to_string(),
            limits.cost.map(|most| most.to_string()),
            cost.filter(|_| limits.cost.is_some()),
        )),
        limits
            .tokens
            .map(|most| of(format!("{} tokens", spent.tokens), Some(most.to_string()), number(drawn.tokens))),
        limits
            .calls
            .map(|most| of(counted(spent.calls, "call"), Some(most.to_string()), number(drawn.calls))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn budget_row(listing: &BudgetListing) -> Sanitized {
    let (processes, conversations) =
        (counted(listing.processes, "process"), counted(listing.conversations, "conversation"));
    let processes = processes.replace("processs", "processes");
    Sanitized::row(&format!("budget  {}  {}; {conversations}, {processes}", listing.name, used(listing)))
}

fn usage_json(used: &CountedUsage) -> serde_json::Value {
    json!({"calls": used.calls, "tokens": used.tokens, "cost": used.cost.as_dollars()})
}

fn budget_json(listing: &BudgetListing) -> Result<Sanitized, CliError> {
    let BudgetListing { name, limits, spent, drawn, processes, conversations } = listing;
    let row = json!({
        "budget": name,
        "limits": {"calls": limits.calls, "tokens": limits.tokens, "cost": limits.cost.map(Money::as_dollars)},
        "used": usage_json(spent),
        "drawn": usage_json(drawn),
        "processes": processes, "conversations": conversations,
    });
    Sanitized::json(&row).map_err(unwritable)
}

/// Counts a shared budget again, from the logs.
async fn recount(runtime: &Runtime, name: &str, json: bool) -> Result<Exit, CliError> {
    let Recount { before, after, counted: logs, running, uncertain, unreadable } =
        runtime.recount_budget(name).await?;
    if json {
        let row = json!({
            "budget": name, "before": usage_json(&before), "after": usage_json(&after), "counted": logs,
            "running": running, "uncertain": uncertain, "unreadable": unreadable,
        });
        write(&Sanitized::json(&row).map_err(unwritable)?)?;
        return Ok(Exit::Done);
    }
    write(&Sanitized::row(&format!(
        "budget  {name}  {} used, {} before; {} counted",
        after.cost,
        before.cost,
        counted(logs, "conversation")
    )))?;
    if running > 0 {
        print_note_wrapped(&format!(
            "{} not counted: a process runs it, and reports by itself",
            counted(running, "conversation")
        ));
    }
    if unreadable > 0 {
        let what = counted(unreadable, "conversation");
        print_note_wrapped(&format!("{what} removed or damaged: what was reported before stays"));
    }
    for id in &uncertain {
        print_note_wrapped(&format!(
            "`{id}` may have lost a call when its process died: it is counted when it continues; `polylogue resume {id}` continues it"
        ));
    }
    Ok(Exit::Done)
}

fn log_row(log: &QueuedLog, overview: &QueueOverview) -> Sanitized {
    let QueuedLog { id, state, overdue_ms, holder, needs, takeovers, .. } = log;
    let mut facts = vec![match (state, overdue_ms) {
        (QueueState::Timed, Some(ms)) => format!("in {}", age(ms.unsigned_abs() / 1000)),
        (QueueState::Ready, Some(ms)) => format!("for {}", age(ms.unsigned_abs() / 1000)),
        (QueueState::Held | QueueState::Lost, _) => {
            format!("by {}", holder.as_deref().unwrap_or("a process"))
        }
        _ => format!("after {} tries", log.tries),
    }];
    if !needs.is_empty() {
        facts.push(format!("needs {needs}"));
    }
    if let Some(missing) = missing(log, overview) {
        facts.push(format!("no worker offers {missing}"));
    }
    if *state == QueueState::Lost && overdue_ms.is_none() {
        facts.push("no worker continues it".into());
    }
    if *takeovers > 0 {
        facts.push(counted(*takeovers, "takeover"));
    }
    facts.extend(log.why.as_ref().map(|why| folded(why)));
    Sanitized::row(&format!("{:<6}  {id}  {}", state.as_str(), facts.join("; ")))
}

/// What a log waits for that no worker has.
fn missing(log: &QueuedLog, overview: &QueueOverview) -> Option<String> {
    let waits = matches!(log.state, QueueState::Ready | QueueState::Lost);
    overview.missing(log).filter(|_| waits).map(|missing| missing.to_string())
}

fn log_json(log: &QueuedLog, overview: &QueueOverview) -> Result<Sanitized, CliError> {
    let QueuedLog { id, state, overdue_ms, holder, needs, tries, takeovers, why } = log;
    let (needs, missing): (Vec<&str>, _) = (needs.words().collect(), missing(log, overview));
    let missing: Vec<&str> = missing.iter().flat_map(|missing| missing.split(' ')).collect();
    let row = json!({
        "id": id, "state": state.as_str(), "overdue_ms": overdue_ms, "holder": holder, "needs": needs,
        "missing": missing, "tries": tries, "takeovers": takeovers, "why": why,
    });
    Sanitized::json(&row).map_err(unwritable)
}

fn print_summary(overview: &QueueOverview) {
    let count = |state| overview.figures.count(state);
    let of = |state: QueueState| format!("{} {}", count(state), state.as_str());
    let states =
        [QueueState::Held, QueueState::Ready, QueueState::Lost, QueueState::Timed, QueueState::Parked];
    let takeovers = overview.figures.takeovers;
    let workers = counted(overview.workers.len() as u64, "worker");
    let states: Vec<String> = states.into_iter().map(of).collect();
    print_note_wrapped(&format!("{workers}; {}; {}", states.join(", "), counted(takeovers, "takeover")));
    if overview.workers.is_empty() && count(QueueState::Ready) + count(QueueState::Lost) > 0 {
        print_note_wrapped("hint: no worker runs: start one with `polylogue worker`");
    }
    if overview.logs.iter().any(|log| log.state == QueueState::Lost && log.overdue_ms.is_none()) {
        print_note_wrapped("hint: `polylogue resume ID` continues a conversation that was not handed over");
    }
    if count(QueueState::Parked) > 0 {
        print_note_wrapped("hint: `polylogue resume ID --detach` hands a parked conversation over again");
    }
}

/// How a conversation is at rest, in a sentence about it.
pub(super) fn rest(status: &Status) -> String {
    match status {
        Status::Closed { reason, .. } => format!("has ended: {}", RunEnd::why(reason)),
        Status::Waiting(questions) => format!("is {}", waiting(questions)),
        Status::Cancelled => "was stopped: it can be resumed".into(),
    }
}
