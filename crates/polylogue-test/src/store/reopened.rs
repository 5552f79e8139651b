//! Several stores at one place, concurrently and one after another.

use polylogue_core::{AnyStore, BlobId, Event, ListQuery, Store, StoreError, Summary};

use super::support::{Report, Verdict, begin, busy, done, fenced, id, keeps, refused, same, some};

pub(super) async fn check(open: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("what was acknowledged is there when the place is opened again", kept(open)).await;
    report.check("what was acknowledged is seen by other stores at once", seen(open)).await;
    report.check("one store writes to a log at a time", one_writer(open)).await;
    report.check("a store that is dropped frees its claims", freed(open)).await;
    report.check("a claim of one store is void in another", foreign_claim(open)).await;
    report.check("stores write to different logs at once", side_by_side(open)).await;
}

async fn kept(open: &impl Fn() -> AnyStore) -> Verdict {
    let store = open();
    let claim = begin(&store, "kept").await?;
    done("append", store.append(&claim, &some(0, 3)).await)?;
    done("append", store.append(&claim, &some(3, 4)).await)?;
    let result = BlobId::of("a large result");
    let stored = done("store_blob", store.store_blob(&claim.id, &result, b"a large result").await)?;
    done("release", store.release(claim.clone()).await)?;
    let (meta, list) =
        (done("meta", store.meta(&claim.id).await)?, done("list", store.list(&ListQuery::default()).await)?);
    drop(store);
    let store = open();
    keeps("the log", &store, &claim.id, &some(0, 4)).await?;
    let read = done("stored_blob", store.stored_blob(&claim.id, &result).await)?;
    same("its result", &read.as_deref(), &stored.then_some(b"a large result".as_slice()))?;
    same("its meta", &done("meta", store.meta(&claim.id).await)?, &meta)?;
    same("the list", &done("list", store.list(&ListQuery::default()).await)?, &list)?;
    let exists = StoreError::Exists { id: claim.id.clone() };
    refused("creating it again", store.create(&claim.id, &meta).await, &exists)?;
    let again = done("claim", store.claim(&claim.id).await)?;
    let gap = StoreError::Gap { id: claim.id.clone(), kept: 4, given: 5 };
    refused("leaving one out", store.append(&again, &some(5, 6)).await, &gap)?;
    done("append", store.append(&again, &some(4, 5)).await)?;
    drop(store);
    let store = open();
    keeps("the log", &store, &claim.id, &some(0, 5)).await?;
    let listed = done("list", store.list(&ListQuery::default()).await)?.logs;
    let events: Vec<Event> = some(0, 5).iter().map(|event| Event::clone(event)).collect();
    let summaries: Vec<Summary> = listed.into_iter().map(|listing| listing.summary).collect();
    same("its summary after appends before and after", &summaries, &vec![Summary::of(&events, true)])
}

async fn seen(open: &impl Fn() -> AnyStore) -> Verdict {
    let (writer, reader) = (open(), open());
    let claim = begin(&writer, "seen").await?;
    keeps("the empty log", &reader, &claim.id, &[]).await?;
    for seq in 0..5 {
        done("append", writer.append(&claim, &some(seq, seq + 1)).await)?;
        keeps("the log", &reader, &claim.id, &some(0, seq + 1)).await?;
    }
    let listed = done("list", reader.list(&ListQuery::default()).await)?;
    let listed = listed.logs.into_iter().find(|listing| listing.id == claim.id);
    same("its length in the list", &listed.map(|listing| listing.summary.events), &Some(5))
}

async fn one_writer(open: &impl Fn() -> AnyStore) -> Verdict {
    let (first, second) = (open(), open());
    let claim = begin(&first, "one").await?;
    done("append", first.append(&claim, &some(0, 1)).await)?;
    busy("claiming it elsewhere", second.claim(&claim.id).await, &claim.id)?;
    busy("removing it elsewhere", second.remove(&claim.id).await, &claim.id)?;
    done("append", first.append(&claim, &some(1, 2)).await)?;
    done("release", first.release(claim.clone()).await)?;
    let taken = done("claim", second.claim(&claim.id).await)?;
    busy("claiming it back", first.claim(&claim.id).await, &claim.id)?;
    refused("appending with the first claim", first.append(&claim, &some(2, 3)).await, &fenced(&claim))?;
    done("releasing the first claim again", first.release(claim.clone()).await)?;
    done("append", second.append(&taken, &some(2, 3)).await)?;
    keeps("the log", &first, &claim.id, &some(0, 3)).await
}

async fn freed(open: &impl Fn() -> AnyStore) -> Verdict {
    let first = open();
    let claim = begin(&first, "freed").await?;
    let other = begin(&first, "freed-too").await?;
    let second = open();
    busy("claiming it elsewhere", second.claim(&claim.id).await, &claim.id)?;
    drop(first);
    for id in [&claim.id, &other.id] {
        let claim = done("claiming it when the store is gone", second.claim(id).await)?;
        done("append", second.append(&claim, &some(0, 1)).await)?;
    }
    Ok(())
}

async fn foreign_claim(open: &impl Fn() -> AnyStore) -> Verdict {
    let (first, second) = (open(), open());
    let claim = begin(&first, "foreign").await?;
    refused("appending elsewhere", second.append(&claim, &some(0, 1)).await, &fenced(&claim))?;
    done("releasing elsewhere", second.release(claim.clone()).await)?;
    done("append", first.append(&claim, &some(0, 1)).await)?;
    drop(first);
    refused("appending when its store is gone", second.append(&claim, &some(1, 2)).await, &fenced(&claim))?;
    let third = open();
    let taken = done("claim", third.claim(&claim.id).await)?;
    refused("appending when it is claimed again", third.append(&claim, &some(1, 2)).await, &fenced(&claim))?;
    done("append", third.append(&taken, &some(1, 2)).await)?;
    done("release", third.release(taken).await)?;
    done("remove", third.remove(&claim.id).await)?;
    let new = begin(&third, "foreign").await?;
    refused("appending when it is another log", third.append(&claim, &some(0, 1)).await, &fenced(&claim))?;
    keeps("the new log", &second, &new.id, &[]).await
}

async fn side_by_side(open: &impl Fn() -> AnyStore) -> Verdict {
    const EVENTS: u64 = 20;
    let stores = [open(), open(), open()];
    let writes = (0..).zip(&stores).map(|(nth, store): (usize, _)| async move {
        let claim = begin(store, &format!("side-{nth}")).await?;
        for seq in 0..EVENTS {
            done("append", store.append(&claim, &some(seq, seq + 1)).await)?;
        }
        Ok(())
    });
    futures_util::future::join_all(writes).await.into_iter().collect::<Verdict>()?;
    for (nth, store) in stores.iter().enumerate() {
        keeps("a log", store, &id(&format!("side-{}", (nth + 1) % stores.len()))?, &some(0, EVENTS)).await?;
    }
    Ok(())
}
