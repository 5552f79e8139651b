//! Logs are created, claimed by one writer at a time, and removed.

use futures_util::FutureExt;
use polylogue_core::{AnyStore, Store, StoreError};

use super::support::{
    Report, Verdict, begin, busy, done, fenced, id, keeps, meta, not_found, refused, same, some,
};

pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("a log begins empty and claimed", begins(make())).await;
    report.check("a log is created once", created_once(make())).await;
    report.check("what is not there is not found", absent(make())).await;
    report.check("a claimed log is busy", claimed_once(make())).await;
    report.check("a released log can be claimed, and the earlier claim is void", released(make())).await;
    report.check("a void claim takes nothing from a valid one", void(make())).await;
    report.check("claims of different logs are independent", independent(make())).await;
    report.check("a removed log is gone, and its id is free", removed(make())).await;
    report.check("a claim that no caller receives is released", unreceived(make())).await;
}

async fn begins(store: AnyStore) -> Verdict {
    let (id, meta) = (id("a")?, meta("Ä \"title\"", 7));
    let claim = done("create", store.create(&id, &meta).await)?;
    same("the claim's id", &claim.id, &id)?;
    same("its meta", &done("meta", store.meta(&id).await)?, &meta)?;
    keeps("a new log", &store, &id, &[]).await?;
    busy("claiming what was just created", store.claim(&id).await, &id)
}

async fn created_once(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    done("append", store.append(&claim, &some(0, 2)).await)?;
    let exists = StoreError::Exists { id: claim.id.clone() };
    refused("creating it again", store.create(&claim.id, &meta("other", 2)).await, &exists)?;
    same("the title", &done("meta", store.meta(&claim.id).await)?.title, &"a".to_owned())?;
    done("release", store.release(claim.clone()).await)?;
    refused("creating it when it is released", store.create(&claim.id, &meta("other", 2)).await, &exists)?;
    keeps("the log", &store, &claim.id, &some(0, 2)).await
}

async fn absent(store: AnyStore) -> Verdict {
    let elsewhere = begin(&store, "there").await?;
    let id = id("absent")?;
    refused("claim", store.claim(&id).await, &not_found(&id))?;
    refused("holder", store.holder(&id).await, &not_found(&id))?;
    refused("read", store.read(&id, 0).await, &not_found(&id))?;
    refused("read_intact", store.read_intact(&id).await, &not_found(&id))?;
    refused("meta", store.meta(&id).await, &not_found(&id))?;
    refused("remove", store.remove(&id).await, &not_found(&id))?;
    let claim = polylogue_core::Claim { id: id.clone(), ..elsewhere };
    refused("append", store.append(&claim, &some(0, 1)).await, &not_found(&id))
}

async fn claimed_once(store: AnyStore) -> Verdict {
    let first = begin(&store, "a").await?;
    done("release", store.release(first.clone()).await)?;
    same("its holder", &done("holder", store.holder(&first.id).await)?, &None)?;
    let claim = done("claim", store.claim(&first.id).await)?;
    same("whether it has a holder", &done("holder", store.holder(&claim.id).await)?.is_some(), &true)?;
    busy("a second claim", store.claim(&claim.id).await, &claim.id)?;
    busy("removing it", store.remove(&claim.id).await, &claim.id)?;
    done("append after that", store.append(&claim, &some(0, 1)).await)?;
    keeps("the log", &store, &claim.id, &some(0, 1)).await
}

async fn released(store: AnyStore) -> Verdict {
    let first = begin(&store, "a").await?;
    done("append", store.append(&first, &some(0, 1)).await)?;
    done("release", store.release(first.clone()).await)?;
    refused("appending after the release", store.append(&first, &some(1, 2)).await, &fenced(&first))?;
    refused("appending nothing after the release", store.append(&first, &[]).await, &fenced(&first))?;
    let second = done("claim", store.claim(&first.id).await)?;
    if first.fence == second.fence {
        return Err(format!("both claims have the fence {}", first.fence));
    }
    refused("appending with the void claim", store.append(&first, &some(1, 2)).await, &fenced(&first))?;
    // The claim is looked at first: a writer that was overtaken must not be told of its own bug.
    refused("appending a gap with it", store.append(&first, &some(7, 8)).await, &fenced(&first))?;
    done("append", store.append(&second, &some(1, 3)).await)?;
    keeps("the log", &store, &first.id, &some(0, 3)).await
}

async fn void(store: AnyStore) -> Verdict {
    let first = begin(&store, "a").await?;
    done("release", store.release(first.clone()).await)?;
    done("releasing twice", store.release(first.clone()).await)?;
    let second = done("claim", store.claim(&first.id).await)?;
    done("releasing a void claim", store.release(first).await)?;
    busy("claiming after that", store.claim(&second.id).await, &second.id)?;
    done("append", store.append(&second, &some(0, 1)).await)
}

async fn independent(store: AnyStore) -> Verdict {
    let (a, b) = (begin(&store, "a").await?, begin(&store, "b").await?);
    done("append", store.append(&a, &some(0, 2)).await)?;
    done("append", store.append(&b, &some(0, 1)).await)?;
    let mixed = polylogue_core::Claim::new(b.id.clone(), a.fence);
    refused(
        "appending to one with the claim of the other",
        store.append(&mixed, &some(1, 2)).await,
        &fenced(&b),
    )?;
    done("release", store.release(a.clone()).await)?;
    done("append", store.append(&b, &some(1, 3)).await)?;
    keeps("the first", &store, &a.id, &some(0, 2)).await?;
    keeps("the second", &store, &b.id, &some(0, 3)).await
}

async fn removed(store: AnyStore) -> Verdict {
    let other = begin(&store, "b").await?;
    done("append", store.append(&other, &some(0, 2)).await)?;
    let old = begin(&store, "a").await?;
    done("append", store.append(&old, &some(0, 3)).await)?;
    done("release", store.release(old.clone()).await)?;
    done("remove", store.remove(&old.id).await)?;
    refused("read", store.read(&old.id, 0).await, &not_found(&old.id))?;
    refused("claim", store.claim(&old.id).await, &not_found(&old.id))?;
    refused("append", store.append(&old, &some(3, 4)).await, &not_found(&old.id))?;
    refused("removing twice", store.remove(&old.id).await, &not_found(&old.id))?;
    let new = begin(&store, "a").await?;
    keeps("the new log", &store, &new.id, &[]).await?;
    refused("appending to it with the old claim", store.append(&old, &some(0, 1)).await, &fenced(&old))?;
    done("append", store.append(&new, &some(0, 1)).await)?;
    keeps("the new log", &store, &new.id, &some(0, 1)).await?;
    keeps("the other log", &store, &other.id, &some(0, 2)).await
}

async fn unreceived(store: AnyStore) -> Verdict {
    /// The store may need a while, but every attempt waits for earlier operations.
    const TRIES: usize = 1000;
    let first = begin(&store, "a").await?;
    done("release", store.release(first.clone()).await)?;
    // Polled once and dropped.
    if let Some(claim) = store.claim(&first.id).now_or_never() {
        return done("release", store.release(done("claim", claim)?).await);
    }
    for _ in 0..TRIES {
        if store.claim(&first.id).await.is_ok() {
            return Ok(());
        }
    }
    Err(format!("the log is still busy after {TRIES} tries"))
}
