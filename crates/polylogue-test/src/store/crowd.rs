//! Many concurrent conversations.

use futures_util::future::join_all;
use polylogue_core::{AnyStore, Claim, ListQuery, Store, StoreError};

use super::support::{Report, Verdict, begin, done, fenced, id, keeps, meta, refused, same, some};

pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("many logs are written at once, each as it should be", many_logs(make())).await;
    report.check("an append that is refused leaves others alone", refused_among(make())).await;
    report.check("of many that create or claim a log, one succeeds", one_winner(make())).await;
    report.check("readers see a beginning of the log, and all that was acknowledged", readers(make())).await;
}

async fn write(store: &AnyStore, log: usize, events: u64) -> Result<Claim, String> {
    let claim = begin(store, &format!("log-{log}")).await?;
    for seq in 0..events {
        done("append", store.append(&claim, &some(seq, seq + 1)).await)?;
    }
    Ok(claim)
}

async fn many_logs(store: AnyStore) -> Verdict {
    const LOGS: usize = 64;
    const EVENTS: u64 = 20;
    for claim in join_all((0..LOGS).map(|log| write(&store, log, EVENTS))).await {
        keeps("a log", &store, &claim?.id, &some(0, EVENTS)).await?;
    }
    same("the number of logs", &done("list", store.list(&ListQuery::default()).await)?.logs.len(), &LOGS)
}

async fn refused_among(store: AnyStore) -> Verdict {
    let mut claims = Vec::new();
    for log in 0..24 {
        claims.push(write(&store, log, 1).await?);
    }
    let appends = (0..).zip(&claims).map(|(nth, claim)| {
        let (store, mut claim) = (&store, claim.clone());
        async move {
            match nth % 3 {
                0 => done("append", store.append(&claim, &some(1, 3)).await),
                1 => {
                    let gap = StoreError::Gap { id: claim.id.clone(), kept: 1, given: 5 };
                    refused("a gap", store.append(&claim, &some(5, 6)).await, &gap)
                }
                _ => {
                    claim.fence ^= 1 << 62;
                    refused("a wrong fence", store.append(&claim, &some(1, 2)).await, &fenced(&claim))
                }
            }
        }
    });
    join_all(appends).await.into_iter().collect::<Verdict>()?;
    for (nth, claim) in claims.iter().enumerate() {
        keeps("a log", &store, &claim.id, &some(0, if nth % 3 == 0 { 3 } else { 1 })).await?;
    }
    Ok(())
}

async fn one_winner(store: AnyStore) -> Verdict {
    const RIVALS: usize = 16;
    let (id, meta) = (id("a")?, meta("a", 1));
    let created = join_all((0..RIVALS).map(|_| store.create(&id, &meta))).await;
    let lost = created.iter().filter(|result| matches!(result, Err(StoreError::Exists { .. }))).count();
    same("how many found that it exists", &lost, &(RIVALS - 1))?;
    for claim in created.into_iter().flatten() {
        done("append", store.append(&claim, &some(0, 1)).await)?;
        done("release", store.release(claim).await)?;
    }
    let claimed = join_all((0..RIVALS).map(|_| store.claim(&id))).await;
    let lost = claimed.iter().filter(|result| matches!(result, Err(StoreError::Busy { .. }))).count();
    same("how many found that it is busy", &lost, &(RIVALS - 1))?;
    for claim in claimed.into_iter().flatten() {
        done("append", store.append(&claim, &some(1, 2)).await)?;
    }
    keeps("the log", &store, &id, &some(0, 2)).await
}

async fn readers(store: AnyStore) -> Verdict {
    const EVENTS: u64 = 100;
    let claim = begin(&store, "a").await?;
    let acknowledged = std::sync::atomic::AtomicU64::new(0);
    let writing = async {
        for seq in (0..EVENTS).step_by(2) {
            done("append", store.append(&claim, &some(seq, seq + 2)).await)?;
            acknowledged.store(seq + 2, std::sync::atomic::Ordering::SeqCst);
        }
        Ok(())
    };
    let reading = async {
        loop {
            let least = acknowledged.load(std::sync::atomic::Ordering::SeqCst);
            let found = done("read", store.read(&claim.id, 0).await)?;
            let seqs: Vec<u64> = found.iter().map(|event| event.seq).collect();
            same("what is read", &seqs, &(0..seqs.len() as u64).collect())?;
            if (seqs.len() as u64) < least {
                return Err(format!("{} events are read after {least} were acknowledged", seqs.len()));
            }
            if least == EVENTS {
                return Ok(());
            }
            yield_now().await;
        }
    };
    let (wrote, read): (Verdict, Verdict) = futures_util::future::join(writing, reading).await;
    wrote.and(read)
}

/// Lets the other futures of this task run, even if the store is always ready.
async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
