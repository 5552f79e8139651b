//! `polylogue cluster`: the workers of a store, what they run, and what waits for them.

use polylogue_core::{Queue as _, QueueOverview, QueueState, QueuedLog, SeenWorker, Status};
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
    let overview = runtime.queue()?.overview().await?;
    let workers = overview.workers.iter();
    let logs = overview.logs.iter();
    let rows: Result<Vec<Sanitized>, CliError> = match args.json {
        true => {
            let logs = logs.map(|log| log_json(log, &overview));
            workers.map(worker_json).chain(logs).collect()
        }
        false => Ok(workers.map(worker_row).chain(logs.map(|log| log_row(log, &overview))).collect()),
    };
    let text: Sanitized = rows?.into_iter().collect();
    write(&text)?;
    if !args.json {
        print_summary(&overview);
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
    let count = |state| overview.logs.iter().filter(|log| log.state == state).count() as u64;
    let of = |state: QueueState| format!("{} {}", count(state), state.as_str());
    let states =
        [QueueState::Held, QueueState::Ready, QueueState::Lost, QueueState::Timed, QueueState::Parked];
    let takeovers: u64 = overview.logs.iter().map(|log| log.takeovers).sum();
    let workers = counted(overview.workers.len() as u64, "worker");
    let states: Vec<String> = states.into_iter().map(of).collect();
    print_note_wrapped(&format!("{workers}; {}; {}", states.join(", "), counted(takeovers, "takeover")));
    if overview.workers.is_empty() && count(QueueState::Ready) + count(QueueState::Lost) > 0 {
        print_note_wrapped("hint: no worker runs: start one with `polylogue worker`");
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
