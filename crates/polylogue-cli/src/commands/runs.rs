//! `polylogue runs`: the conversations there are.

use std::time::{SystemTime, UNIX_EPOCH};

use polylogue_core::{Listing, Timestamp};
use polylogue_runtime::{ListQuery, Listed, Page, Runtime, State, StateKind};
use serde_json::json;

use super::write;
use crate::error::{CliError, Exit};
use crate::screen::{RunEnd, Sanitized};
use crate::tell::tell;
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::runs::Runs) -> Result<Exit, CliError> {
    // A place without a store lists nothing, and no store is created.
    if place::is_missing(cli.store.as_deref()) {
        return Ok(Exit::Done);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    let runtime = place::open(cli.store.as_deref())?;
    let Page { conversations, next } = runtime.list(&query(&runtime, args, now).await?).await?;
    let text: Sanitized = match args.json {
        true => conversations.iter().map(as_json).collect::<Result<_, _>>()?,
        false => conversations.iter().map(|listed| line(listed, now)).collect(),
    };
    write(&text)?;
    if let Some(next) = next {
        tell(&format!("there are more: `--after {}` continues the list", next.to_text()));
    }
    Ok(Exit::Done)
}

async fn query(runtime: &Runtime, args: &args::runs::Runs, now: u64) -> Result<ListQuery, CliError> {
    let parent = match &args.parent {
        Some(text) => Some(runtime.find(text).await?),
        None => None,
    };
    let before = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Ok(ListQuery {
        limit: args.limit.and_then(|limit| usize::try_from(limit).ok()),
        after: args.after.clone(),
        states: args.state.iter().copied().map(kind).collect(),
        team: args.team.clone(),
        since: args.since.map(|time| Timestamp(now.saturating_sub(before(time)))),
        parent,
    })
}

const fn kind(state: args::runs::RunState) -> StateKind {
    match state {
        args::runs::RunState::Open => StateKind::Open,
        args::runs::RunState::Waiting => StateKind::Waiting,
        args::runs::RunState::Failed => StateKind::Failed,
        args::runs::RunState::Done => StateKind::Done,
        args::runs::RunState::Ended => StateKind::Ended,
        args::runs::RunState::Damaged => StateKind::Damaged,
    }
}

fn line(listed: &Listed, now_ms: u64) -> Sanitized {
    let Listing { id, title, created, events, parent, .. } = &listed.listing;
    let age = age(now_ms.saturating_sub(created.0) / 1000);
    let fork =
        parent.as_ref().map(|parent| format!("  (fork of {} before event {})", parent.id, parent.event));
    let (state, fork) = (state(listed), fork.unwrap_or_default());
    let line = format!("{id:<8} {age:>5} ago  {title:<24} {events:>6} events  {state}{fork}");
    Sanitized::row(&line)
}

fn as_json(listed: &Listed) -> Result<Sanitized, CliError> {
    let Listing { id, title, created, events, parent, .. } = &listed.listing;
    let mut row = json!({
        "id": id, "title": title, "created_ms": created, "events": events, "state": state(listed),
    });
    if let (Some(parent), Some(row)) = (parent, row.as_object_mut()) {
        row.insert("parent".to_owned(), json!(parent));
    }
    Sanitized::json(&row).map_err(|error| CliError::failed(format!("the list cannot be written: {error}")))
}

/// The state, as the last event says. What is before that is not read, let alone checked.
fn state(listed: &Listed) -> String {
    match &listed.state {
        State::Damaged => format!("damaged: `polylogue verify {}` says where", listed.listing.id),
        State::Closed(reason) => RunEnd::why(reason),
        State::Waiting(who) => format!("waiting for {who}"),
        State::Failed(message) => format!("failed: {message}"),
        State::Open => "unfinished".into(),
        State::New => "not begun".into(),
    }
}

/// A time span in its largest unit.
pub(super) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}
