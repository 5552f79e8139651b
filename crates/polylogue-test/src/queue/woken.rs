//! W7: inbox messages wake logs at any point of their holder's cycle, and are taken once.

use std::collections::BTreeSet;

use polylogue_core::{AnyQueue, Claim, Due, LEASE, Queue as _, Store as _};

use super::support::{Fixture, idle, none_due, post, ready, take_one};
use crate::store::support::{Report, Verdict, done, same, some};

pub(super) async fn check(make: impl Fn() -> Fixture, report: &mut Report) {
    report.check("an inbox message wakes a log", woken(make())).await;
    report
        .check("an inbox message to a held log wakes it when it is released", woken_while_held(make()))
        .await;
    report.check("a held log is scheduled for its release", scheduled_while_held(make())).await;
    report.check("a wake-up after the lease has expired is not lost", woken_while_lost(make())).await;
    report.check("heartbeats tell of inbox messages", told(make())).await;
    for at in
        [Point::BeforeClaim, Point::WhileHeld, Point::BeforeRelease, Point::AfterRelease, Point::AfterLoss]
    {
        let rule = format!("a message that is posted {at:?} is taken once");
        report.check(&rule, taken_once(make(), at)).await;
    }
}

async fn woken(Fixture { queue, .. }: Fixture) -> Verdict {
    let id = idle(&queue, "a").await?.id;
    post(&queue, &id, "k").await?;
    let claim = take_one(&queue).await?;
    same("its inbox", &done("inbox", queue.inbox(&id, 0).await)?.len(), &1)?;
    done("release_until", queue.release_until(claim, Due::Never).await)?;
    none_due("after that", &queue).await?;
    post(&queue, &id, "k").await?;
    none_due("after the same message again", &queue).await
}

async fn woken_while_held(Fixture { queue, .. }: Fixture) -> Verdict {
    let id = ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    post(&queue, &id, "k").await?;
    none_due("while it is held", &queue).await?;
    done("release_until", queue.release_until(claim, Due::Never).await)?;
    let claim = take_one(&queue).await?;
    done("release_until", queue.release_until(claim, Due::Never).await)?;
    none_due("when the worker has looked", &queue).await?;
    // The same for a claim by its id, as a command of a person takes it.
    let claim = done("claim", queue.claim(&id).await)?;
    post(&queue, &id, "l").await?;
    done("release", queue.release(claim).await)?;
    let claim = take_one(&queue).await?;
    post(&queue, &id, "m").await?;
    done("release_failed", queue.release_failed(claim, Due::Never, "why").await)?;
    take_one(&queue).await.map(drop)
}

async fn scheduled_while_held(Fixture { queue, .. }: Fixture) -> Verdict {
    let id = ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    done("schedule", queue.schedule(&id, Due::Now, None).await)?;
    none_due("while it is held", &queue).await?;
    done("append", queue.append(&claim, &some(1, 2)).await)?;
    done("release_until", queue.release_until(claim, Due::Never).await)?;
    take_one(&queue).await.map(drop)
}

async fn woken_while_lost(Fixture { queue, pass }: Fixture) -> Verdict {
    let id = ready(&queue, "a").await?;
    for (round, seq) in [(0, 1), (1, 2)] {
        let claim = take_one(&queue).await?;
        pass(LEASE * 2);
        match round {
            0 => post(&queue, &id, "k").await?,
            _ => done("schedule", queue.schedule(&id, Due::Now, None).await)?,
        }
        // No other worker was faster.
        done("append", queue.append(&claim, &some(seq, seq + 1)).await)?;
        done("release_until", queue.release_until(claim, Due::Never).await)?;
    }
    take_one(&queue).await.map(drop)
}

async fn told(Fixture { queue, .. }: Fixture) -> Verdict {
    let id = ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    let is_woken = async || {
        let valid = done("heartbeat", queue.heartbeat(std::slice::from_ref(&claim)).await)?;
        Ok::<_, String>(valid.iter().map(|heartbeat| heartbeat.is_woken).collect::<Vec<_>>())
    };
    same("before", &is_woken().await?, &vec![false])?;
    post(&queue, &id, "k").await?;
    same("after", &is_woken().await?, &vec![true])
}

/// A point of the cycle of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    BeforeClaim,
    WhileHeld,
    /// When the worker has read its inbox for the last time.
    BeforeRelease,
    AfterRelease,
    /// When the worker has died.
    AfterLoss,
}

async fn taken_once(Fixture { queue, pass }: Fixture, at: Point) -> Verdict {
    let id = ready(&queue, "a").await?;
    let post_at = async |point: Point| if point == at { post(&queue, &id, "k").await } else { Ok(()) };
    post_at(Point::BeforeClaim).await?;
    let claim = take_one(&queue).await?;
    post_at(Point::WhileHeld).await?;
    take_messages(&queue, &claim).await?;
    post_at(Point::BeforeRelease).await?;
    if at == Point::AfterLoss {
        post_at(at).await?;
    } else {
        done("release_until", queue.release_until(claim, Due::Never).await)?;
    }
    post_at(Point::AfterRelease).await?;
    // One lease at most, then any worker that looks until none is due.
    pass(LEASE * 2);
    for _ in 0..2 {
        let due = super::support::take(&queue).await?;
        for claim in due {
            take_messages(&queue, &claim).await?;
            done("release_until", queue.release_until(claim, Due::Never).await)?;
        }
    }
    let taken: Vec<u64> =
        done("read", queue.read(&id, 0).await)?.iter().filter_map(|event| event.inbox).collect();
    same("the messages in the log", &taken, &vec![1])
}

/// Appends an event for each message that the log does not have.
async fn take_messages(queue: &AnyQueue, claim: &Claim) -> Verdict {
    let events = done("read", queue.read(&claim.id, 0).await)?;
    let taken: BTreeSet<u64> = events.iter().filter_map(|event| event.inbox).collect();
    let mut end = events.len() as u64;
    for (number, _) in done("inbox", queue.inbox(&claim.id, 0).await)? {
        if !taken.contains(&number) {
            let mut event = some(end, end + 1).first().map(|event| (**event).clone()).ok_or("no event")?;
            event.inbox = Some(number);
            done("append", queue.append(claim, &[event.into()]).await)?;
            end += 1;
        }
    }
    Ok(())
}
