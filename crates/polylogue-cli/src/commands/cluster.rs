//! `polylogue cluster`: the workers of a store, what they run, and what waits for them.

use polylogue_client::wire::cluster::{Budget, Cluster, Queued, RateLimit, Usage, Worker};
use polylogue_core::{CountedUsage, Money, QueueState, Status};
use polylogue_runtime::Runtime;
use polylogue_runtime::database::Recount;
use polylogue_server::cluster_of;
use serde::Serialize;
use serde_json::json;

use super::runs::age;
use super::{unwritable, write, write_rows};
use crate::args;
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::place::{self, PlaceOption};
use crate::runner::waiting;
use crate::screen::text::folded;
use crate::screen::{RunEnd, Sanitized};
use crate::stderr::print_note_wrapped;

pub(crate) async fn run(cli: &args::Cli, args: &args::worker::Cluster) -> Result<Exit, CliError> {
    let runtime = place::existing(&cli.named_store())?;
    let place = PlaceOption::of_store(&cli.named_store());
    if let Some(name) = &args.recount {
        return recount(&runtime, (name, &place), args.json).await;
    }
    if let Some(name) = &args.remove_budget {
        return remove_budget(&runtime, name, args.json).await;
    }
    let watch = runtime.place().watch();
    show(&cluster_of(&runtime, watch.as_ref(), args.limit).await?, args.json, &place)
}

/// Prints workers, budgets, limits of model servers and conversations.
pub(crate) fn show(cluster: &Cluster, json: bool, place: &PlaceOption) -> Result<Exit, CliError> {
    let Cluster { workers, budgets, rate_limits, conversations, counts, .. } = cluster;
    let rows: Result<Vec<Sanitized>, CliError> = match json {
        true => {
            let conversations = conversations.iter().map(as_json);
            let shared = budgets.iter().map(budget_json).chain(rate_limits.iter().map(as_json));
            workers.iter().map(as_json).chain(shared).chain(conversations).collect()
        }
        false => {
            let conversations = conversations.iter().map(log_row);
            Ok(workers
                .iter()
                .map(worker_row)
                .chain(budgets.iter().map(budget_row))
                .chain(rate_limits.iter().map(rate_limit_row))
                .chain(conversations)
                .collect())
        }
    };
    let text: Sanitized = rows?.into_iter().collect();
    write_rows(&text, json)?;
    if !json {
        print_summary(cluster, place);
    }
    let (shown, all) = (conversations.len() as u64, counts.all());
    if shown < all {
        print_note_wrapped(&format!(
            "{shown} of {} {} shown: `--limit N` shows more",
            counted(all, "conversation"),
            if shown == 1 { "is" } else { "are" }
        ));
    }
    Ok(Exit::Done)
}

fn as_json(row: &impl Serialize) -> Result<Sanitized, CliError> {
    Sanitized::json(row).map_err(unwritable)
}

fn worker_row(worker: &Worker) -> Sanitized {
    let Worker { worker, version, held, at_once, offers, address, seen_ms } = worker;
    let offers = if offers.is_empty() { String::new() } else { format!("  offers {}", offers.join(" ")) };
    let address = address.as_ref().map(|address| format!("  at {address}")).unwrap_or_default();
    let seen = age(seen_ms / 1000);
    Sanitized::row(&format!(
        "worker  {worker}  {held} of {at_once}, seen {seen} ago  {version}{offers}{address}"
    ))
}

/// `3 of 20 calls`, for what is limited or used.
fn used(budget: &Budget) -> String {
    let Budget { limits, used, drawn, .. } = budget;
    let of = |used: String, most: Option<String>, drawn: Option<String>| {
        let most = most.map(|most| format!(" of {most}")).unwrap_or_default();
        let drawn = drawn.map(|drawn| format!(" ({drawn} drawn)")).unwrap_or_default();
        format!("{used}{most}{drawn}")
    };
    let number = |number: u64| (number > 0).then(|| number.to_string());
    let cost = Some(drawn.cost).filter(|cost| *cost > Money::default()).map(|cost| cost.to_string());
    let parts = [
        Some(of(
            used.cost.to_string(),
            limits.cost.map(|most| most.to_string()),
            cost.filter(|_| limits.cost.is_some()),
        )),
        limits
            .tokens
            .map(|most| of(counted(used.tokens, "token"), Some(most.to_string()), number(drawn.tokens))),
        limits.calls.map(|most| of(counted(used.calls, "call"), Some(most.to_string()), number(drawn.calls))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn budget_row(budget: &Budget) -> Sanitized {
    let (processes, conversations) =
        (counted(budget.processes, "process"), counted(budget.conversations, "conversation"));
    Sanitized::row(&format!("budget  {}  {}; {conversations}, {processes}", budget.budget, used(budget)))
}

fn rate_limit_row(limit: &RateLimit) -> Sanitized {
    let RateLimit { provider, model, wait_ms, requests, refusals, slots, slots_taken } = limit;
    let model = if model.is_empty() { String::new() } else { format!(":{model}") };
    let mut facts = Vec::new();
    if *wait_ms > 0 {
        facts.push(format!("the next call waits for {}", age(wait_ms.div_ceil(1000))));
    }
    if *slots > 0 {
        facts.push(format!("{slots_taken} of {} in flight", counted(*slots, "call")));
    }
    if *requests > 0 {
        facts.push(counted(*requests, "request"));
    }
    match refusals {
        0 => {}
        1 => facts.push("asked to wait once".into()),
        times => facts.push(format!("asked to wait {times} times")),
    }
    Sanitized::row(&format!("limit   {provider}{model}  {}", facts.join(", ")))
}

fn usage_json(calls: u64, tokens: u64, cost: Money) -> serde_json::Value {
    json!({"calls": calls, "tokens": tokens, "cost": cost.as_dollars()})
}

fn budget_json(budget: &Budget) -> Result<Sanitized, CliError> {
    let Budget { budget, limits, used, drawn, processes, conversations } = budget;
    let usage = |usage: &Usage| usage_json(usage.calls, usage.tokens, usage.cost);
    as_json(&json!({
        "budget": budget,
        "limits": {"calls": limits.calls, "tokens": limits.tokens, "cost": limits.cost.map(Money::as_dollars)},
        "used": usage(used),
        "drawn": usage(drawn),
        "processes": processes, "conversations": conversations,
    }))
}

fn in_words(used: &CountedUsage) -> String {
    format!("{}, {}, {}", used.cost, counted(used.tokens, "token"), counted(used.calls, "call"))
}

/// Counts a shared budget again, from the logs.
async fn recount(
    runtime: &Runtime,
    (name, place): (&str, &PlaceOption),
    json: bool,
) -> Result<Exit, CliError> {
    let Recount { before, after, counted: logs, running, uncertain, unreadable } =
        runtime.recount_budget(name).await?;
    if json {
        let usage = |used: &CountedUsage| usage_json(used.calls, used.tokens, used.cost);
        let row = json!({
            "budget": name, "before": usage(&before), "after": usage(&after), "counted": logs,
            "running": running, "uncertain": uncertain, "unreadable": unreadable,
        });
        write(&as_json(&row)?)?;
        return Ok(Exit::Done);
    }
    write(&Sanitized::row(&format!(
        "budget  {name}  used {}; before {}; {} counted",
        in_words(&after),
        in_words(&before),
        counted(logs, "conversation")
    )))?;
    if running > 0 {
        let what = counted(running, "conversation");
        print_note_wrapped(&match running {
            1 => format!("{what} not counted: a process runs it, and reports by itself"),
            _ => format!("{what} not counted: processes run them, and report by themselves"),
        });
    }
    if unreadable > 0 {
        let what = counted(unreadable, "conversation");
        print_note_wrapped(&format!("{what} removed or damaged: what was reported before stays"));
    }
    for id in &uncertain {
        print_note_wrapped(&format!(
            "`{id}` may have lost a call when its process died: it is counted when it continues; `{}` continues it",
            place.command(&format!("resume {id}"))
        ));
    }
    Ok(Exit::Done)
}

/// Removes a shared budget.
async fn remove_budget(runtime: &Runtime, name: &str, json: bool) -> Result<Exit, CliError> {
    if !runtime.remove_budget(name).await? {
        let what = format!("processes have drawn from the shared budget `{name}`");
        return Err(CliError::failed(what).hint(
            "try again when none has run a conversation that it pays for, for 30 seconds; `polylogue cluster` shows how many processes have it",
        ));
    }
    let row = match json {
        true => as_json(&json!({"budget": name, "removed": true}))?,
        false => Sanitized::row(&format!("removed the budget {name}")),
    };
    write(&row)?;
    Ok(Exit::Done)
}

fn log_row(queued: &Queued) -> Sanitized {
    let Queued { id, state, overdue_ms, holder, needs, missing, tries, takeovers, .. } = queued;
    let holder = holder.as_deref().unwrap_or("a process");
    let mut facts = vec![match (state, overdue_ms) {
        (QueueState::Timed, Some(ms)) => format!("in {}", age(ms.unsigned_abs() / 1000)),
        (QueueState::Ready, Some(ms)) => format!("for {}", age(ms.unsigned_abs() / 1000)),
        (QueueState::Held | QueueState::Lost, _) => format!("by {holder}"),
        // What fails permanently appends events, so that its tries do not add up.
        _ if *tries < 2 => format!("last run by {holder}"),
        _ => format!("after {tries} tries"),
    }];
    if !needs.is_empty() {
        facts.push(format!("needs {}", needs.join(" ")));
    }
    if !missing.is_empty() {
        facts.push(format!("no worker offers {}", missing.join(" ")));
    }
    if is_abandoned(queued) {
        facts.push("no worker continues it".into());
    }
    if *takeovers > 0 {
        facts.push(counted(*takeovers, "takeover"));
    }
    facts.extend(queued.why.as_ref().map(|why| folded(why)));
    Sanitized::row(&format!("{:<6}  {id}  {}", state.as_str(), facts.join("; ")))
}

/// Whether its process has died, and no worker takes it over.
fn is_abandoned(queued: &Queued) -> bool {
    queued.state == QueueState::Lost && queued.overdue_ms.is_none()
}

fn print_summary(cluster: &Cluster, place: &PlaceOption) {
    let counts = &cluster.counts;
    let of = |state: QueueState| format!("{} {}", counts.of(state), state.as_str());
    let states =
        [QueueState::Held, QueueState::Ready, QueueState::Lost, QueueState::Timed, QueueState::Parked];
    let takeovers = counted(cluster.takeovers, "takeover");
    let workers = counted(cluster.workers.len() as u64, "worker");
    let states: Vec<String> = states.into_iter().map(of).collect();
    print_note_wrapped(&format!("{workers}; {}; {takeovers}", states.join(", ")));
    if cluster.lost_events > 0 {
        let events = counted(cluster.lost_events, "event");
        print_note_wrapped(&format!(
            "{events} lost: the database had acknowledged {}, and failed over to a copy without {0}",
            if cluster.lost_events == 1 { "it" } else { "them" }
        ));
    }
    if cluster.workers.is_empty() && counts.ready + counts.lost > 0 {
        let worker = place.at_store().command("worker");
        print_note_wrapped(&format!("hint: no worker runs: start one with `{worker}`"));
    }
    if cluster.conversations.iter().any(is_abandoned) {
        let resume = place.command("resume ID");
        print_note_wrapped(&format!("hint: `{resume}` continues a conversation that was not handed over"));
    }
    if counts.parked > 0 {
        let detach = place.at_store().command("resume ID --detach");
        print_note_wrapped(&format!("hint: `{detach}` hands a parked conversation over again"));
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
