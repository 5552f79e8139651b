//! `polylogue archive` and `polylogue rm`: keeping conversations in less space, and no longer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polylogue_core::{ListQuery, Listing, LogId, Progress, Queue as _, Store as _, StoreError, Summary};
use polylogue_runtime::{Error, Runtime};
use polylogue_server::remove_conversation;

use super::write;
use crate::args::keeping::Which;
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::{args, place};

/// How many are listed at once.
const PAGE: usize = 200;

pub(crate) async fn archive(cli: &args::Cli, args: &args::keeping::Archive) -> Result<Exit, CliError> {
    let runtime = place::existing(&cli.named_store())?;
    let by_age = args.which.older_than.is_some();
    // What is archived is not archived again because of its age.
    for id in found(&runtime, &args.which, args.all, |listing| !listing.is_archived).await? {
        if args.unpack {
            let claim = runtime.store().claim(&id).await?;
            runtime.store().release(claim).await?;
            write(&Sanitized::row(&format!("unpacked {id}")))?;
            continue;
        }
        match runtime.store().archive(&id).await {
            Ok(true) => write(&Sanitized::row(&format!("archived {id}")))?,
            Ok(false) => {
                let what = format!("the conversations in `{}` cannot be archived", runtime.place().shown());
                return Err(CliError::usage(what)
                    .hint("only folders of JSON lines cannot: `compress` or `tar` packs them"));
            }
            Err(error) if by_age => leave_out(&id, error)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Done)
}

pub(crate) async fn remove(cli: &args::Cli, args: &args::Rm) -> Result<Exit, CliError> {
    let runtime = place::existing(&cli.named_store())?;
    let by_age = args.which.older_than.is_some();
    for id in found(&runtime, &args.which, args.all, |_| true).await? {
        match remove_conversation(&runtime, &id).await {
            Ok(()) => write(&Sanitized::row(&format!("removed {id}")))?,
            Err(Error::Run(polylogue_core::Error::Store(error))) if by_age => leave_out(&id, error)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Done)
}

/// Says why a conversation is left out that is meant because of its age. One that another command has removed meanwhile is not missed.
/// Returns an error with which others would fail, too.
fn leave_out(id: &LogId, error: StoreError) -> Result<(), CliError> {
    let why = match error {
        StoreError::NotFound { .. } => return Ok(()),
        StoreError::Busy { holder, .. } => format!("is in use by {holder}"),
        StoreError::Queued { .. } => "waits for a worker".into(),
        StoreError::Damaged { why, .. } => {
            format!("is damaged ({why}): `polylogue verify {id} --repair` keeps its beginning")
        }
        StoreError::UnknownEvent { .. } => "has an event of a later version of Polylogue".into(),
        error => return Err(error.into()),
    };
    print_note(&format!("`{id}` is left out: it {why}"));
    Ok(())
}

/// The conversations that are meant, all of which exist. By their age, they are those that `is_meant`, also those that wait if `all` are meant.
async fn found(
    runtime: &Runtime,
    which: &Which,
    all: bool,
    is_meant: impl Fn(&Listing) -> bool,
) -> Result<Vec<LogId>, CliError> {
    let mut ids = Vec::new();
    for text in &which.ids {
        add(&mut ids, runtime.find(text).await?);
    }
    if let Some(age) = which.older_than {
        ids.extend(older_than(runtime, age, all, is_meant).await?);
    }
    Ok(ids)
}

/// Adds a conversation that a person names, which can have several names: `last`, its id, and the beginning of that.
pub(crate) fn add(ids: &mut Vec<LogId>, id: LogId) {
    if !ids.contains(&id) {
        ids.push(id);
    }
}

/// The conversations whose last event is older, without those that wait unless `all` are meant. Those that run refuse it later.
async fn older_than(
    runtime: &Runtime,
    age: Duration,
    all: bool,
    is_meant: impl Fn(&Listing) -> bool,
) -> Result<Vec<LogId>, CliError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let before = u64::try_from(now.saturating_sub(age).as_millis()).unwrap_or(u64::MAX);
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = runtime
            .list(&ListQuery { limit: Some(PAGE), after: after.take(), ..ListQuery::default() })
            .await?;
        for listing in page.logs {
            // One without events has only the time when it was created.
            let last = listing.summary.last.max(listing.created);
            let is_old = !listing.is_damaged && last.0 < before;
            if is_old && is_meant(&listing) && (all || !waits(runtime, &listing).await?) {
                ids.push(listing.id);
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(ids),
        }
    }
}

/// Whether it waits for a person or a worker, or is paused.
async fn waits(runtime: &Runtime, listing: &Listing) -> Result<bool, CliError> {
    let Summary { progress, questions, is_paused, .. } = &listing.summary;
    let has_ended = matches!(progress, Progress::Closed(_));
    if !has_ended && (*is_paused || !questions.is_empty()) {
        return Ok(true);
    }
    let Some(queue) = runtime.store().queue() else { return Ok(false) };
    match queue.is_queued(&listing.id).await {
        // Another command has removed it.
        Err(StoreError::NotFound { .. }) => Ok(true),
        is_queued => Ok(is_queued?),
    }
}
