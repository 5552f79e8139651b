//! `polylogue runs`: the conversations there are.

use std::time::{SystemTime, UNIX_EPOCH};

use polylogue::{AnyStore, Body, Event, Listing, Store};
use serde_json::json;

use super::write;
use crate::error::{CliError, Exit};
use crate::screen::{RunEnd, Sanitized};
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::Runs) -> Result<Exit, CliError> {
    // A place without a store lists nothing, and no store is created.
    let all = match place::is_missing(cli.store.as_deref()) {
        true => Vec::new(),
        false => listed(place::open(cli.store.as_deref())?.store()).await?,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    let text: Sanitized = match args.json {
        true => all.iter().map(as_json).collect::<Result<_, _>>()?,
        false => all.iter().map(|listing| line(listing, now)).collect(),
    };
    write(&text)?;
    Ok(Exit::Done)
}

/// The conversations. Where limits were changed last, the event before says how the conversation stands.
async fn listed(store: &AnyStore) -> Result<Vec<Listing>, CliError> {
    let changes_limits = |event: &Event| matches!(event.body, Body::LimitsChanged(_));
    let mut all = store.list().await?;
    for listing in &mut all {
        if listing.last.as_ref().is_some_and(changes_limits) {
            let events = store.read_intact(&listing.id).await?.events;
            listing.last = events.into_iter().rfind(|event| !changes_limits(event));
        }
    }
    Ok(all)
}

fn line(listing: &Listing, now_ms: u64) -> Sanitized {
    let Listing { id, title, created, events, .. } = listing;
    let age = age(now_ms.saturating_sub(created.0) / 1000);
    let line = format!("{id:<8} {age:>5} ago  {title:<24} {events:>6} events  {}", state(listing));
    Sanitized::row(&line)
}

fn as_json(listing: &Listing) -> Result<Sanitized, CliError> {
    let Listing { id, title, created, events, .. } = listing;
    let row =
        json!({ "id": id, "title": title, "created_ms": created, "events": events, "state": state(listing) });
    Sanitized::json(&row).map_err(|error| CliError::failed(format!("the list cannot be written: {error}")))
}

/// How the conversation stands, as its last event tells. What is before that is not read, let alone checked.
fn state(listing: &Listing) -> String {
    if listing.is_damaged {
        return format!("damaged: `polylogue verify {}` says where", listing.id);
    }
    match listing.last.as_ref().map(|event| (&event.body, event.at.is_root())) {
        Some((Body::Closed { reason, .. }, true)) => RunEnd::why(reason),
        // Of agents that are called without a chat around them, any room may be the last to speak.
        Some((Body::Closed { reason, .. }, false)) if !listing.has_team => RunEnd::why(reason),
        Some((Body::InputRequired(question), _)) => format!("waiting for {}", question.who),
        Some((Body::Failed { error, .. }, _)) => {
            format!("failed: {}", error.message.lines().next().unwrap_or_default())
        }
        Some(_) => "unfinished".into(),
        None => "not begun".into(),
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
