//! W4 and W5: appends of claims that are no longer valid. W8: claims by id.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polylogue_core::{Body, Claim, Meta, Store, StoreError};
use polylogue_test::postgres::PostgresServer;

use crate::support::{expire, id, open, said, some};

/// W4.
#[tokio::test]
async fn an_append_that_is_not_allowed_keeps_nothing() {
    let Some(server) = PostgresServer::start() else { return };
    let (store, other) = (open(&server), open(&server));
    let first = store.create(&id("a"), &Meta::default()).await.unwrap();
    store.append(&first, &some(0, 2)).await.unwrap();
    let gap = |kept, given| Err(StoreError::Gap { id: id("a"), kept, given });
    let fenced = Err(StoreError::Fenced { id: id("a") });
    assert_eq!(store.append(&first, &some(3, 4)).await, gap(2, 3), "a gap");
    assert_eq!(store.append(&first, &some(1, 2)).await, gap(2, 1), "a repetition");
    assert_eq!(other.append(&first, &some(2, 3)).await, fenced, "another's holder");
    let wrong = Claim { fence: first.fence + 1, ..first.clone() };
    assert_eq!(store.append(&wrong, &some(2, 3)).await, fenced, "another fence");
    expire(&server);
    let second = other.take_over(&id("a")).await.unwrap();
    assert!(second.fence > first.fence);
    // The claim is looked at before the gap.
    assert_eq!(store.append(&first, &some(2, 3)).await, fenced, "a void claim");
    assert_eq!(store.append(&first, &some(7, 8)).await, fenced, "a void claim, with a gap");
    assert_eq!(store.renew(&first).await, fenced);
    store.release(first).await.unwrap();
    other.append(&second, &some(2, 3)).await.unwrap();
    assert_eq!(server.sql("SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM polylogue.events"), "0 1 2");
    // The same fence under another holder, as after a failover that lost a claim.
    let _ = server.sql("UPDATE polylogue.logs SET holder = 'another'");
    assert_eq!(other.append(&second, &some(3, 4)).await, fenced, "the same fence of another holder");
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.events"), "3");
}

/// W8: the clock of the database may have jumped forward by a minute, and the lease may last.
#[tokio::test]
async fn a_log_is_claimed_by_its_id_a_minute_after_its_lease_and_taken_over_at_once() {
    let Some(server) = PostgresServer::start() else { return };
    let (one, other) = (open(&server), open(&server));
    let first = one.create(&id("a"), &Meta::default()).await.unwrap();
    let end_lease = |seconds: u32| {
        let _ =
            server.sql(&format!("UPDATE polylogue.logs SET lease = now() - interval '{seconds} seconds'"));
    };
    end_lease(5);
    let busy = other.claim(&id("a")).await.unwrap_err();
    let StoreError::Busy { holder, .. } = &busy else { panic!("{busy:?}") };
    assert!(holder.ends_with("whose lease has expired"), "{holder}");
    assert!(other.holder(&id("a")).await.unwrap().is_some(), "it cannot be claimed");
    let second = other.take_over(&id("a")).await.unwrap();
    assert!(second.fence > first.fence);
    let busy = one.take_over(&id("a")).await.unwrap_err();
    assert!(busy.to_string().contains("whose lease expires in"), "{busy}");
    end_lease(65);
    assert_eq!(one.holder(&id("a")).await.unwrap(), None);
    one.claim(&id("a")).await.unwrap();
}

/// What one claim read, and under which fence.
type Taken = (u64, u64);

/// W5: `POLYLOGUE_TAKEOVERS` sets how many; default: 400.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_of_an_older_claim_is_behind_the_read_of_a_later_one() {
    const RIVALS: usize = 6;
    let Some(server) = PostgresServer::start() else { return };
    let most = std::env::var("POLYLOGUE_TAKEOVERS").ok().and_then(|most| most.parse().ok()).unwrap_or(400);
    let begin = open(&server);
    let claim = begin.create(&id("a"), &Meta::default()).await.unwrap();
    begin.release(claim).await.unwrap();
    // Leases that end at once: every claim is taken at any time.
    let _ = server.sql(
        "CREATE FUNCTION polylogue.expire() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN IF NEW.lease IS NOT NULL THEN NEW.lease := '-infinity'; END IF; RETURN NEW; END$$;
        CREATE TRIGGER expire BEFORE UPDATE ON polylogue.logs FOR EACH ROW EXECUTE FUNCTION polylogue.expire()",
    );
    let count = Arc::new(AtomicUsize::new(0));
    let rivals = (0..RIVALS).map(|_| tokio::spawn(steal(open(&server), count.clone(), most)));
    let mut taken: Vec<Taken> = Vec::new();
    let mut refused = 0;
    for rival in rivals.collect::<Vec<_>>() {
        let (claims, fenced) = rival.await.unwrap();
        taken.extend(claims);
        refused += fenced;
    }
    taken.sort_unstable();
    assert!(taken.len() >= most, "{} takeovers of {most}", taken.len());
    assert!(taken.is_sorted_by(|a, b| a.0 < b.0), "no fence is granted twice");
    let events = begin.read(&id("a"), 0).await.unwrap();
    assert!(refused > 0 && !events.is_empty(), "{refused} refused, {} kept", events.len());
    for event in &events {
        let Body::Message(message) = &event.body else { panic!("{event:?}") };
        let fence: u64 = message.text().parse().unwrap();
        // Every later claim has read it.
        let missed = taken.iter().find(|(later, read)| *later > fence && event.seq >= *read);
        assert_eq!(missed, None, "event {} of the claim {fence}", event.seq);
    }
}

/// Claims the log repeatedly, and appends until it is taken by another.
async fn steal(
    store: polylogue_postgres::Postgres,
    count: Arc<AtomicUsize>,
    most: usize,
) -> (Vec<Taken>, usize) {
    let (mut taken, mut refused) = (Vec::new(), 0);
    while count.load(Ordering::SeqCst) < most {
        let claim = match store.claim(&id("a")).await {
            Err(StoreError::Busy { .. }) => continue,
            claim => claim.unwrap(),
        };
        count.fetch_add(1, Ordering::SeqCst);
        let mut next = store.read(&claim.id, 0).await.unwrap().len() as u64;
        taken.push((claim.fence, next));
        for _ in 0..4 {
            match store.append(&claim, &[said(next, &claim.fence.to_string())]).await {
                Ok(()) => next += 1,
                Err(StoreError::Fenced { .. }) => {
                    refused += 1;
                    break;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    (taken, refused)
}
