//! `polylogue archive` and `polylogue rm`: keeping conversations in less space, and no longer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polylogue_core::{ListQuery, LogId, LogState, Store as _, StoreError};
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
    let runtime = place::existing(cli.store.as_deref())?;
    let by_age = args.which.older_than.is_some();
    for id in found(&runtime, &args.which).await? {
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
            Err(StoreError::Busy { id, holder }) if by_age => print_left_out(&id, &holder),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Done)
}

pub(crate) async fn remove(cli: &args::Cli, args: &args::Rm) -> Result<Exit, CliError> {
    let runtime = place::existing(cli.store.as_deref())?;
    let by_age = args.which.older_than.is_some();
    for id in found(&runtime, &args.which).await? {
        match remove_conversation(&runtime, &id).await {
            Ok(()) => write(&Sanitized::row(&format!("removed {id}")))?,
            Err(Error::Run(polylogue_core::Error::Store(StoreError::Busy { id, holder }))) if by_age => {
                print_left_out(&id, &holder);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Done)
}

fn print_left_out(id: &LogId, holder: &str) {
    print_note(&format!("`{id}` is left out: it is in use by {holder}"));
}

/// The conversations that are meant, all of which exist.
async fn found(runtime: &Runtime, which: &Which) -> Result<Vec<LogId>, CliError> {
    let mut ids = Vec::new();
    for text in &which.ids {
        ids.push(runtime.find(text).await?);
    }
    if let Some(age) = which.older_than {
        ids.extend(older_than(runtime, age).await?);
    }
    Ok(ids)
}

/// The conversations that have ended, and whose last event is older.
async fn older_than(runtime: &Runtime, age: Duration) -> Result<Vec<LogId>, CliError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let before = u64::try_from(now.saturating_sub(age).as_millis()).unwrap_or(u64::MAX);
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = runtime
            .list(&ListQuery { limit: Some(PAGE), after: after.take(), ..ListQuery::default() })
            .await?;
        let old = page.logs.iter().filter(|listing| {
            let has_ended = matches!(listing.state(), LogState::Done | LogState::Ended);
            has_ended && !listing.is_damaged && listing.summary.last.0 < before
        });
        ids.extend(old.map(|listing| listing.id.clone()));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(ids),
        }
    }
}
