//! What is claimed, in which order, and for how long.

use std::time::Duration;

use polylogue_core::{Due, Features, LEASE, LeaseNumber, LogId, Queue as _, Store as _, Timestamp};

use super::support::{Fixture, HOUR, features, idle, none_due, post, ready, ready_with, take, take_one};
use crate::store::support::{Report, Verdict, done, fenced, id, not_found, refused, same, some};

pub(super) async fn check(make: impl Fn() -> Fixture, report: &mut Report) {
    report.check("a log can be created for workers, or idle", created(make())).await;
    report
        .check("logs that wait longest are claimed first, as many as there is room for", in_order(make()))
        .await;
    report.check("a timed log is due at its time", timed(make())).await;
    report.check("a log is claimed by workers that have what it needs", needs(make())).await;
    report.check("a log is due when its lease has expired, and its old claim is void", lost(make())).await;
    report
        .check("a lease lasts as long as the clock of the worker says that it may", by_the_worker(make()))
        .await;
    report.check("a claim says how long its log was due, and whether it was taken over", found(make())).await;
    report.check("heartbeats keep valid claims, and no others", heartbeats(make())).await;
    report.check("appends renew the lease", appends(make())).await;
    report.check("a log that is claimed by its id is not due", claimed_by_id(make())).await;
    report.check("a claim that is to be continued is due once it is lost", continued(make())).await;
    report.check("an idle log that is run by its id stays idle", at_rest(make())).await;
    report
        .check("what does not exist is not found, and nothing of a removed log is due", absent(make()))
        .await;
}

async fn created(Fixture { queue, pass }: Fixture) -> Verdict {
    idle(&queue, "idle").await?;
    let id = ready(&queue, "ready").await?;
    let claim = take_one(&queue).await?;
    same("its id", &claim.id, &id)?;
    done("append", queue.append(&claim, &some(1, 2)).await)?;
    done("release_until", queue.release_until(claim, Due::Never).await)?;
    pass(HOUR);
    none_due("of idle logs", &queue).await
}

async fn at_rest(Fixture { queue, pass }: Fixture) -> Verdict {
    let id = idle(&queue, "a").await?.id;
    let claim = done("claim", queue.claim(&id).await)?;
    done("release_at_rest", queue.release_at_rest(claim, Due::Now).await)?;
    pass(HOUR);
    none_due("of a log that was idle", &queue).await?;
    // One that waits for a worker, and is run by another process to its rest.
    done("schedule", queue.schedule(&id, Due::Now, None).await)?;
    let claim = done("claim", queue.claim(&id).await)?;
    done("release_at_rest", queue.release_at_rest(claim, Due::Never).await)?;
    pass(HOUR);
    none_due("of a log that was run to its rest", &queue).await?;
    // A message that comes meanwhile wakes it.
    let claim = done("claim", queue.claim(&id).await)?;
    post(&queue, &id, "k").await?;
    done("release_at_rest", queue.release_at_rest(claim, Due::Never).await)?;
    same("its id", &take_one(&queue).await?.id, &id)
}

/// As a server does, which does not stay.
async fn continued(Fixture { queue, pass }: Fixture) -> Verdict {
    let id = idle(&queue, "a").await?.id;
    let claim = done("claim", queue.claim(&id).await)?;
    done("continue_if_lost", queue.continue_if_lost(&claim).await)?;
    done("continue_if_lost again", queue.continue_if_lost(&claim).await)?;
    none_due("while it is held", &queue).await?;
    for _ in 0..3 {
        pass(LEASE * 2 / 3);
        done("renew", queue.renew(&claim).await)?;
        none_due("while its claim is renewed", &queue).await?;
    }
    pass(LEASE * 2);
    let taken = take_one(&queue).await?;
    same("its id", &taken.id, &id)?;
    done("release_until", queue.release_until(taken, Due::Never).await)?;
    // One that was lost changes nothing.
    done("continue_if_lost of a claim that was lost", queue.continue_if_lost(&claim).await)?;
    pass(LEASE * 2);
    none_due("after a claim that was lost", &queue).await?;
    for (due, is_due) in [(Due::Never, false), (Due::Now, true)] {
        let claim = done("claim", queue.claim(&id).await)?;
        done("continue_if_lost", queue.continue_if_lost(&claim).await)?;
        done("release_at_rest", queue.release_at_rest(claim, due).await)?;
        pass(LEASE * 2);
        same("whether it is due after its release", &(take(&queue).await?.len() == 1), &is_due)?;
    }
    Ok(())
}

async fn in_order(Fixture { queue, pass }: Fixture) -> Verdict {
    for name in ["c", "a", "b", "d"] {
        ready(&queue, name).await?;
        pass(Duration::from_secs(1));
    }
    let mut order = Vec::new();
    for room in [0, 3, 3, 3] {
        let claims =
            done("claim_due", queue.claim_due(room, &Features::none(), &[], LeaseNumber::ALL).await)?;
        order.push(claims.iter().map(|claim| claim.id.as_str()).collect::<String>());
    }
    same("the batches", &order, &["", "cab", "d", ""].map(str::to_owned).to_vec())
}

async fn timed(Fixture { queue, pass }: Fixture) -> Verdict {
    let id = ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    // Long ago is now; the year 2100 is not.
    done("release_until", queue.release_until(claim, Due::At(Timestamp(1))).await)?;
    let claim = take_one(&queue).await?;
    done("release_until", queue.release_until(claim, Due::At(Timestamp(4_102_444_800_000))).await)?;
    none_due("before its time", &queue).await?;
    done("schedule", queue.schedule(&id, Due::After(HOUR), None).await)?;
    pass(HOUR / 2);
    none_due("before its time", &queue).await?;
    pass(HOUR);
    let claim = take_one(&queue).await?;
    done("release_until", queue.release_until(claim, Due::At(Timestamp(u64::MAX))).await)?;
    none_due("before the end of time", &queue).await?;
    done("schedule", queue.schedule(&id, Due::After(Duration::MAX), None).await)?;
    pass(HOUR);
    none_due("before the end of time", &queue).await
}

async fn needs(Fixture { queue, pass }: Fixture) -> Verdict {
    let wanted = [("gpu", "gpu"), ("none", ""), ("both", "gpu mcp:files"), ("files", "mcp:files")];
    for (name, needs) in wanted {
        let id = ready_with(&queue, name, needs).await?;
        same("what it needs", &done("needs", queue.needs(&id).await)?.to_string().as_str(), &needs)?;
        pass(Duration::from_secs(1));
    }
    let mut batches = Vec::new();
    for offers in ["other", "mcp:files", "", "gpu mcp:files other"] {
        let claims = done("claim_due", queue.claim_due(16, &features(offers)?, &[], LeaseNumber::ALL).await)?;
        batches.push(claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>().join(" "));
    }
    same(
        "what each worker claims",
        &batches,
        &["none", "files", "", "gpu both"].map(str::to_owned).to_vec(),
    )?;
    // Needs stay until they are changed.
    let gpu = id("gpu")?;
    done("schedule", queue.schedule(&gpu, Due::Now, None).await)?;
    pass(LEASE * 2);
    let ids = |claims: Vec<polylogue_core::Claim>| -> Vec<String> {
        claims.into_iter().map(|claim| claim.id.to_string()).collect()
    };
    same("what needs nothing", &ids(take(&queue).await?), &vec!["none".to_owned()])?;
    done("schedule", queue.schedule(&gpu, Due::Now, Some(&Features::none())).await)?;
    same("what needs nothing any more", &ids(take(&queue).await?), &vec!["gpu".to_owned()])
}

async fn lost(Fixture { queue, pass }: Fixture) -> Verdict {
    ready(&queue, "a").await?;
    let first = take_one(&queue).await?;
    pass(LEASE / 2);
    none_due("before the end of the lease", &queue).await?;
    pass(LEASE);
    let second = take_one(&queue).await?;
    same("whether the fence rises", &(second.fence > first.fence), &true)?;
    refused("appending with the old claim", queue.append(&first, &some(1, 2)).await, &fenced(&first))?;
    done("releasing the old claim", queue.release_until(first.clone(), Due::Now).await)?;
    done("failing it", queue.release_failed(first.clone(), Due::Now, "why").await)?;
    done("releasing it by its id", queue.release(first).await)?;
    none_due("after the release of the old claim", &queue).await?;
    done("append", queue.append(&second, &some(1, 2)).await)
}

/// W8: as when the clock of the store jumps, and that of the worker does not.
async fn by_the_worker(Fixture { queue, pass }: Fixture) -> Verdict {
    let last_lease = async || done("last_lease", queue.last_lease().await);
    let before = last_lease().await?;
    if before == LeaseNumber::ALL {
        // Its leases end by a clock that does not jump.
        return Ok(());
    }
    ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    let granted = last_lease().await?;
    done("append", queue.append(&claim, &some(1, 2)).await)?;
    let appended = last_lease().await?;
    done("renew", queue.renew(&claim).await)?;
    let renewed = last_lease().await?;
    done("heartbeat", queue.heartbeat(std::slice::from_ref(&claim)).await)?;
    let last = last_lease().await?;
    pass(LEASE * 2);
    for (ended, taken) in [(before, 0), (granted, 0), (appended, 0), (renewed, 0), (last, 1)] {
        let claims = done("claim_due", queue.claim_due(16, &Features::none(), &[], ended).await)?;
        let what = format!("how many logs are taken over when leases up to {ended:?} of {last:?} have ended");
        same(&what, &claims.len(), &taken)?;
    }
    // One that no process has is claimed whatever leases have ended.
    ready(&queue, "b").await?;
    let claims = done("claim_due", queue.claim_due(16, &Features::none(), &[], LeaseNumber::NONE).await)?;
    same("how many free logs are claimed", &claims.len(), &1)
}

async fn found(Fixture { queue, pass }: Fixture) -> Verdict {
    let id = idle(&queue, "a").await?.id;
    let by_id = done("claim", queue.claim(&id).await)?;
    same("what a claim by its id says", &by_id.found, &None)?;
    done("release", queue.release(by_id).await)?;
    done("schedule", queue.schedule(&id, Due::Now, None).await)?;
    pass(HOUR);
    // Tests take time, too, but not as long.
    let is_near = |waited: Duration, wanted: Duration| waited >= wanted && waited < wanted + HOUR / 2;
    for (wanted, is_takeover) in [(HOUR, false), (LEASE, true)] {
        let claim = take_one(&queue).await?;
        let found = claim.found.ok_or("a claim of a log that was due does not say so")?;
        same("whether it was taken over", &found.is_takeover, &is_takeover)?;
        same(
            &format!("whether {:?} is about {wanted:?}", found.waited),
            &is_near(found.waited, wanted),
            &true,
        )?;
        pass(LEASE * 2);
    }
    Ok(())
}

async fn heartbeats(Fixture { queue, pass }: Fixture) -> Verdict {
    ready(&queue, "a").await?;
    let first = take_one(&queue).await?;
    ready(&queue, "b").await?;
    let other = take_one(&queue).await?;
    let heartbeat = async |claims: &[polylogue_core::Claim]| {
        let valid = done("heartbeat", queue.heartbeat(claims).await)?;
        Ok::<_, String>(valid.into_iter().map(|heartbeat| heartbeat.claim).collect::<Vec<_>>())
    };
    same("no claims", &heartbeat(&[]).await?, &Vec::new())?;
    for held in
        [[other.clone(), first.clone()], [first.clone(), other.clone()], [first.clone(), other.clone()]]
    {
        pass(LEASE * 2 / 3);
        same("those that are held", &heartbeat(&held).await?, &held.to_vec())?;
        none_due("between heartbeats", &queue).await?;
    }
    pass(LEASE * 2 / 3);
    let only = vec![other.clone()];
    same("one of them", &heartbeat(&only).await?, &only)?;
    pass(LEASE / 2);
    let second = take_one(&queue).await?;
    same("the lost log", &second.id, &first.id)?;
    pass(LEASE * 2 / 3);
    // The old claim keeps nothing alive.
    same("those that are held", &heartbeat(&[first.clone(), other.clone()]).await?, &only)?;
    pass(LEASE / 2);
    same("the log whose worker was silent", &take_one(&queue).await?.id, &first.id)
}

async fn appends(Fixture { queue, pass }: Fixture) -> Verdict {
    ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    for seq in 1..4 {
        pass(LEASE * 2 / 3);
        done("append", queue.append(&claim, &some(seq, seq + 1)).await)?;
        none_due("between appends", &queue).await?;
    }
    pass(LEASE * 2 / 3);
    done("renew", queue.renew(&claim).await)?;
    pass(LEASE * 2 / 3);
    none_due("after renewing", &queue).await?;
    pass(LEASE);
    take_one(&queue).await.map(drop)
}

async fn claimed_by_id(Fixture { queue, pass }: Fixture) -> Verdict {
    let id = ready(&queue, "a").await?;
    let claim = done("claim", queue.claim(&id).await)?;
    none_due("when it is claimed by its id", &queue).await?;
    done("release", queue.release(claim).await)?;
    let claim = take_one(&queue).await?;
    same("whether a held log is busy", &queue.claim(&id).await.is_err(), &true)?;
    done("release_until", queue.release_until(claim, Due::Never).await)?;
    // Heartbeats keep it, and workers look at it only if it is due.
    let claim = done("claim", queue.claim(&id).await)?;
    let held = done("heartbeat", queue.heartbeat(std::slice::from_ref(&claim)).await)?;
    same("whether it is held", &held.len(), &1)?;
    pass(HOUR);
    none_due("of an idle log whose process is silent", &queue).await?;
    done("schedule", queue.schedule(&id, Due::Now, None).await)?;
    take_one(&queue).await.map(drop)
}

async fn absent(Fixture { queue, .. }: Fixture) -> Verdict {
    let absent = id("absent")?;
    refused("schedule", queue.schedule(&absent, Due::Now, None).await, &not_found(&absent))?;
    refused("is_queued", queue.is_queued(&absent).await, &not_found(&absent))?;
    refused("set_needs", queue.set_needs(&absent, &Features::none()).await, &not_found(&absent))?;
    let gone: LogId = ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    done("release_until", queue.release_until(claim.clone(), Due::Now).await)?;
    done("remove", queue.remove(&gone).await)?;
    none_due("of a removed log", &queue).await?;
    same("its heartbeat", &done("heartbeat", queue.heartbeat(&[claim]).await)?, &Vec::new())?;
    // A new log of this id has nothing of the old one.
    idle(&queue, "a").await?;
    none_due("of a new log of this id", &queue).await
}
