//! Archived logs are read as before, and continued by a claim.

use polylogue_core::{
    AnyStore, BlobId, Due, Event, InboxMessage, Instruction, ListQuery, LogId, Store, StoreError, Timestamp,
};

use super::support::{Report, Verdict, begin, busy, done, id, keeps, not_found, refused, same, some};

/// A store can lack archives.
pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    if is_unsupported(&make()).await {
        return;
    }
    report.check("an archived log is read as before", read(make())).await;
    report.check("a claim continues an archived log", continued(make())).await;
    report.check("blobs of an archived log are read as before", blobs(make())).await;
    report.check("a log that is in use is not archived", in_use(make())).await;
    report.check("a removed archive leaves nothing behind", removed(make())).await;
}

async fn is_unsupported(store: &AnyStore) -> bool {
    released(store, "a", 1).await.is_ok() && matches!(archived(store, "a").await, Ok(false))
}

/// A log of so many events that no process has.
async fn released(store: &AnyStore, name: &str, events: u64) -> Result<LogId, String> {
    let claim = begin(store, name).await?;
    done("append", store.append(&claim, &some(0, events)).await)?;
    let log = claim.id.clone();
    done("release", store.release(claim).await)?;
    Ok(log)
}

async fn archived(store: &AnyStore, name: &str) -> Result<bool, String> {
    done("archive", store.archive(&id(name)?).await)
}

/// In a place that is opened again.
pub(super) async fn check_reopened(open: &impl Fn() -> AnyStore, report: &mut Report) {
    report
        .check("an archived log is read and continued when the place is opened again", reopened(open))
        .await;
}

async fn reopened(open: &impl Fn() -> AnyStore) -> Verdict {
    let store = open();
    let log = released(&store, "archived", 5).await?;
    if !archived(&store, "archived").await? {
        return Ok(());
    }
    drop(store);
    let (one, other) = (open(), open());
    keeps("the log", &one, &log, &some(0, 5)).await?;
    let claim = done("claim", one.claim(&log).await)?;
    done("append", one.append(&claim, &some(5, 6)).await)?;
    keeps("the log for another store", &other, &log, &some(0, 6)).await?;
    busy("archiving it elsewhere", other.archive(&log).await, &log)?;
    drop(one);
    same("archiving it when the store is gone", &archived(&other, "archived").await?, &true)?;
    keeps("the log", &open(), &log, &some(0, 6)).await
}

async fn read(store: AnyStore) -> Verdict {
    let log = released(&store, "a", 40).await?;
    let mut listed = done("list", store.list(&ListQuery::default()).await)?;
    same("whether it is archived", &listed.logs.iter().any(|listing| listing.is_archived), &false)?;
    listed.logs.iter_mut().for_each(|listing| listing.is_archived = true);
    let meta = done("meta", store.meta(&log).await)?;
    for again in ["once", "twice"] {
        same(again, &archived(&store, "a").await?, &true)?;
        keeps("the archived log", &store, &log, &some(0, 40)).await?;
        for from in [1, 39, 40, 41] {
            let found = done("read", store.read(&log, from).await)?;
            let wanted: Vec<Event> = some(from, 40).iter().map(|event| Event::clone(event)).collect();
            same("the events from one on", &found, &wanted)?;
        }
        let intact = done("read_intact", store.read_intact(&log).await)?;
        same("its damage", &intact.damage, &None)?;
        same("how much is intact", &intact.events.len(), &40)?;
        same("the list", &done("list", store.list(&ListQuery::default()).await)?, &listed)?;
        same("its meta", &done("meta", store.meta(&log).await)?, &meta)?;
        same("what repairing keeps", &done("repair", store.repair(&log).await)?, &40)?;
    }
    let empty = released(&store, "empty", 0).await?;
    same("a log without events", &archived(&store, "empty").await?, &true)?;
    keeps("the empty log", &store, &empty, &[]).await?;
    done("claiming it", store.claim(&empty).await).map(drop)
}

async fn continued(store: AnyStore) -> Verdict {
    let log = released(&store, "a", 3).await?;
    archived(&store, "a").await?;
    let instruction = Instruction::Cancel { now: false };
    let message = InboxMessage { key: "one".into(), request: None, posted: Timestamp(1), instruction };
    same("the number of a message to it", &done("post", store.post(&log, &message).await)?, &1)?;
    let claim = done("claim", store.claim(&log).await)?;
    let gap = StoreError::Gap { id: log.clone(), kept: 3, given: 4 };
    refused("leaving one out", store.append(&claim, &some(4, 5)).await, &gap)?;
    done("append", store.append(&claim, &some(3, 5)).await)?;
    keeps("the log", &store, &log, &some(0, 5)).await?;
    let listed = done("list", store.list(&ListQuery::default()).await)?;
    same("whether it is archived", &listed.logs.iter().any(|listing| listing.is_archived), &false)?;
    same("its inbox", &done("inbox", store.inbox(&log, 0).await)?.len(), &1)?;
    done("release", store.release(claim).await)?;
    if let Some(queue) = store.as_queue() {
        done("schedule", queue.schedule(&log, Due::Never, None).await)?;
    }
    same("again", &archived(&store, "a").await?, &true)?;
    keeps("the archived log", &store, &log, &some(0, 5)).await
}

async fn blobs(store: AnyStore) -> Verdict {
    let log = released(&store, "a", 2).await?;
    let long = "a line of a long result\n".repeat(3_000);
    let texts = [long.as_str(), "", "short"];
    for text in texts {
        if !done("store_blob", store.store_blob(&log, &BlobId::of(text), text.as_bytes()).await)? {
            return Ok(());
        }
    }
    archived(&store, "a").await?;
    let late = done("store_blob", store.store_blob(&log, &BlobId::of("late"), b"late").await)?;
    same("whether one more is stored", &late, &true)?;
    done("storing one again", store.store_blob(&log, &BlobId::of(&long), long.as_bytes()).await)?;
    archived(&store, "a").await?;
    let claim = done("claim", store.claim(&log).await)?;
    for text in texts.into_iter().chain(["late"]) {
        let read = done("stored_blob", store.stored_blob(&claim.id, &BlobId::of(text)).await)?;
        same("the text", &read.as_deref(), &Some(text.as_bytes()))?;
    }
    Ok(())
}

async fn in_use(store: AnyStore) -> Verdict {
    let absent = id("absent")?;
    refused("archiving what is not there", store.archive(&absent).await, &not_found(&absent))?;
    let claim = begin(&store, "a").await?;
    done("append", store.append(&claim, &some(0, 2)).await)?;
    busy("archiving a log with a writer", store.archive(&claim.id).await, &claim.id)?;
    done("append", store.append(&claim, &some(2, 3)).await)?;
    let log = claim.id.clone();
    done("release", store.release(claim).await)?;
    let Some(queue) = store.as_queue() else { return Ok(()) };
    done("schedule", queue.schedule(&log, Due::Now, None).await)?;
    let queued = StoreError::Queued { id: log.clone() };
    refused("archiving a log that is due", store.archive(&log).await, &queued)?;
    done("schedule", queue.schedule(&log, Due::Never, None).await)?;
    same("one that is not", &archived(&store, "a").await?, &true)
}

async fn removed(store: AnyStore) -> Verdict {
    let log = released(&store, "a", 3).await?;
    archived(&store, "a").await?;
    done("remove", store.remove(&log).await)?;
    refused("reading it", store.read(&log, 0).await, &not_found(&log))?;
    let claim = begin(&store, "a").await?;
    keeps("the next log of that name", &store, &claim.id, &[]).await?;
    done("append", store.append(&claim, &some(0, 1)).await)?;
    keeps("the next log of that name", &store, &claim.id, &some(0, 1)).await
}
