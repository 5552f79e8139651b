//! Messages are posted to the inbox of a log by anyone, in order, and once for each key.

use polylogue_core::{AnyStore, InboxMessage, Instruction, Store, Timestamp};

use super::support::{Report, Verdict, begin, done, id, meta, not_found, refused, same};

pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("messages are posted to a claimed log, in order", posted(make())).await;
    report.check("a message is posted once for each key", once(make())).await;
    report.check("a message is found by its key", found(make())).await;
    report.check("messages of several tasks are numbered without gaps", crowd(make())).await;
    report.check("what is not there has no inbox", absent(make())).await;
    report.check("a removed log leaves no inbox behind", removed(make())).await;
}

fn message(key: &str, now: bool) -> InboxMessage {
    let instruction = Instruction::Cancel { now };
    InboxMessage {
        key: key.into(),
        request: Some("of a client".into()),
        posted: Timestamp(1_763_712_000_000),
        instruction,
    }
}

async fn posted(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    same("an empty inbox", &done("inbox", store.inbox(&claim.id, 0).await)?, &Vec::new())?;
    for (number, key) in [(1, "one"), (2, "two\n\u{0}"), (3, "")] {
        let found = done("post", store.post(&claim.id, &message(key, number == 2)).await)?;
        same("the number", &found, &number)?;
    }
    let all = vec![(1, message("one", false)), (2, message("two\n\u{0}", true)), (3, message("", false))];
    same("the inbox", &done("inbox", store.inbox(&claim.id, 0).await)?, &all)?;
    same("its rest", &done("inbox", store.inbox(&claim.id, 1).await)?.len(), &2)?;
    done("release", store.release(claim.clone()).await)?;
    same("the inbox of a released log", &done("inbox", store.inbox(&claim.id, 0).await)?, &all)?;
    same("its end", &done("inbox", store.inbox(&claim.id, u64::from(u32::MAX)).await)?, &Vec::new())
}

async fn once(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    let other = begin(&store, "b").await?;
    for _ in 0..2 {
        same("the number", &done("post", store.post(&claim.id, &message("key", false)).await)?, &1)?;
    }
    same("in another log", &done("post", store.post(&other.id, &message("key", true)).await)?, &1)?;
    same(
        "the first counts",
        &done("inbox", store.inbox(&claim.id, 0).await)?,
        &vec![(1, message("key", false))],
    )
}

async fn found(store: AnyStore) -> Verdict {
    let first = begin(&store, "a").await?;
    let second = begin(&store, "b").await?;
    let keys = [(&first, "one"), (&second, "two\n\u{0}"), (&second, "")];
    for (claim, key) in keys {
        done("post", store.post(&claim.id, &message(key, false)).await)?;
    }
    for (claim, key) in keys {
        same("the log", &done("posted_with", store.posted_with(key).await)?, &Some(claim.id.clone()))?;
    }
    same("of another key", &done("posted_with", store.posted_with("on").await)?, &None)?;
    done("release", store.release(first.clone()).await)?;
    done("remove", store.remove(&first.id).await)?;
    same("of a removed log", &done("posted_with", store.posted_with("one").await)?, &None)
}

async fn crowd(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    let keys: Vec<String> = (0..32).map(|key| key.to_string()).collect();
    let messages: Vec<InboxMessage> = keys.iter().map(|key| message(key, false)).collect();
    let posts = messages.iter().map(|message| store.post(&claim.id, message));
    let mut numbers = Vec::new();
    for posted in futures_util::future::join_all(posts).await {
        numbers.push(done("post", posted)?);
    }
    numbers.sort_unstable();
    same("the numbers", &numbers, &(1..=32).collect())
}

async fn absent(store: AnyStore) -> Verdict {
    begin(&store, "there").await?;
    let id = id("absent")?;
    refused("post", store.post(&id, &message("key", false)).await, &not_found(&id))?;
    refused("inbox", store.inbox(&id, 0).await, &not_found(&id))
}

async fn removed(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    done("post", store.post(&claim.id, &message("key", false)).await)?;
    done("release", store.release(claim.clone()).await)?;
    done("remove", store.remove(&claim.id).await)?;
    done("create", store.create(&claim.id, &meta("again", 2)).await)?;
    same("the inbox of the next log", &done("inbox", store.inbox(&claim.id, 0).await)?, &Vec::new())
}
