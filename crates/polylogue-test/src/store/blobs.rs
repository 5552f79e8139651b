//! Blobs are stored next to their log, and belong to it alone.

use polylogue_core::{AnyStore, BlobId, Store};

use super::support::{Report, Verdict, begin, done, id, meta, not_found, refused, same};

/// A store can lack them: results are truncated then.
pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    if is_unsupported(&make()).await {
        return;
    }
    report.check("a result is stored once, and read whole", stored(make())).await;
    report.check("results of several tasks are all stored", crowd(make())).await;
    report.check("what is not there stores no result", absent(make())).await;
    report.check("a removed log leaves no result behind", removed(make())).await;
}

async fn is_unsupported(store: &AnyStore) -> bool {
    begin(store, "a").await.is_ok() && put(store, "a", "text").await == Ok(false)
}

async fn put(store: &AnyStore, log: &str, text: &str) -> Result<bool, String> {
    done("store_blob", store.store_blob(&id(log)?, &BlobId::of(text), text.as_bytes()).await)
}

async fn stored(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    begin(&store, "b").await?;
    let long = "one\u{0} line of \u{1f600}\r\n".repeat(50_000);
    for text in [long.as_str(), "", "short", &long] {
        same("whether it is stored", &put(&store, "a", text).await?, &true)?;
    }
    done("release", store.release(claim.clone()).await)?;
    same("whether it is stored without a claim", &put(&store, "a", "late").await?, &true)?;
    for text in [long.as_str(), "", "short", "late"] {
        let read = done("stored_blob", store.stored_blob(&claim.id, &BlobId::of(text)).await)?;
        same("the text", &read.as_deref(), &Some(text.as_bytes()))?;
    }
    let other = done("stored_blob", store.stored_blob(&id("b")?, &BlobId::of("short")).await)?;
    same("the result in another log", &other, &None)?;
    let none = done("stored_blob", store.stored_blob(&claim.id, &BlobId::of("never")).await)?;
    same("a result that is not there", &none, &None)
}

async fn crowd(store: AnyStore) -> Verdict {
    begin(&store, "a").await?;
    let texts: Vec<String> = (0..32).map(|nth| format!("result {}", nth % 16)).collect();
    for stored in futures_util::future::join_all(texts.iter().map(|text| put(&store, "a", text))).await {
        same("whether it is stored", &stored?, &true)?;
    }
    for text in texts {
        let read = done("stored_blob", store.stored_blob(&id("a")?, &BlobId::of(&text)).await)?;
        same("the text", &read.as_deref(), &Some(text.as_bytes()))?;
    }
    Ok(())
}

async fn absent(store: AnyStore) -> Verdict {
    begin(&store, "there").await?;
    let id = id("absent")?;
    let result = BlobId::of("text");
    refused("store_blob", store.store_blob(&id, &result, b"text").await, &not_found(&id))?;
    refused("stored_blob", store.stored_blob(&id, &result).await, &not_found(&id))
}

async fn removed(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    put(&store, "a", "text").await?;
    done("release", store.release(claim.clone()).await)?;
    done("remove", store.remove(&claim.id).await)?;
    done("create", store.create(&claim.id, &meta("again", 2)).await)?;
    let read = done("stored_blob", store.stored_blob(&claim.id, &BlobId::of("text")).await)?;
    same("the result of the next log", &read, &None)
}
