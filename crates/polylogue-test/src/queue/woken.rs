//! W7: inbox messages wake logs at any point of their holder's cycle, and are taken once.

use std::pin::Pin;

use polylogue_core::{
    AnyQueue, Claim, Due, Instruction, LEASE, LimitOverrides, Name, Queue as _, Store as _, StoreError,
};

use super::support::{
    Fixture, append_taken, give, idle, none_due, post, ready, take, take_messages, take_one,
};
use crate::store::support::{Report, Verdict, done, same, some};

pub(super) async fn check(make: impl Fn() -> Fixture, report: &mut Report) {
    report.check("an inbox message wakes a log", woken(make())).await;
    report
        .check("an inbox message to a held log wakes it when it is released", woken_while_held(make()))
        .await;
    for (release, name) in RELEASES {
        let rule = format!("an inbox message that its holder has taken wakes nothing by {name}");
        report.check(&rule, taken_while_held(make(), release)).await;
        let rule = format!("one of two inbox messages that its holder has not taken wakes a log by {name}");
        report.check(&rule, partly_taken(make(), release)).await;
    }
    report.check("only messages and answers wake a log", silent(make())).await;
    report.check("a held log is scheduled for its release", scheduled_while_held(make())).await;
    report.check("a wake-up after the lease has expired is not lost", woken_while_lost(make())).await;
    report
        .check("a message to a log that no worker continues wakes it if its process dies", lost_by_id(make()))
        .await;
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

/// A way to release a claim.
type Release = fn(AnyQueue, Claim) -> Pin<Box<dyn Future<Output = Result<(), StoreError>>>>;

/// All of them, by which an idle log stays idle.
const RELEASES: [(Release, &str); 5] = [
    (|queue, claim| Box::pin(async move { queue.release(claim).await }), "a release"),
    (|queue, claim| Box::pin(async move { queue.release_until(claim, Due::Never).await }), "release_until"),
    (
        |queue, claim| Box::pin(async move { queue.release_at_rest(claim, Due::Never).await }),
        "release_at_rest",
    ),
    (
        |queue, claim| Box::pin(async move { queue.release_failed(claim, Due::Never, "?").await }),
        "release_failed",
    ),
    (|queue, claim| Box::pin(async move { queue.release_to_others(claim, "?").await }), "release_to_others"),
];

async fn taken_while_held(Fixture { queue, pass }: Fixture, release: Release) -> Verdict {
    let id = idle(&queue, "a").await?.id;
    for round in 0..2 {
        let claim = done("claim", queue.claim(&id).await)?;
        post(&queue, &id, &format!("k{round}")).await?;
        post(&queue, &id, &format!("l{round}")).await?;
        take_messages(&queue, &claim).await?;
        done("a release", release(queue.clone(), claim).await)?;
        none_due("after the release", &queue).await?;
    }
    pass(LEASE * 2);
    none_due("later", &queue).await?;
    // It can be packed, as one that waits for no worker.
    done("archive", queue.archive(&id).await).map(drop)
}

/// Messages are taken in any order.
async fn partly_taken(Fixture { queue, .. }: Fixture, release: Release) -> Verdict {
    for (name, taken) in [("a", 1), ("b", 2)] {
        let id = idle(&queue, name).await?.id;
        let claim = done("claim", queue.claim(&id).await)?;
        post(&queue, &id, "k").await?;
        post(&queue, &id, "l").await?;
        append_taken(&queue, &claim, 1, taken).await?;
        done("a release", release(queue.clone(), claim).await)?;
        let claim = take_one(&queue).await?;
        same("its id", &claim.id, &id)?;
        done("release_until", queue.release_until(claim, Due::Never).await)?;
        none_due("when a worker has looked", &queue).await?;
    }
    Ok(())
}

async fn silent(Fixture { queue, pass }: Fixture) -> Verdict {
    let answer = Instruction::Answer { question: 1, text: "yes".into(), by: None };
    let more = LimitOverrides::default();
    let all = [
        (Instruction::NextSpeaker { who: Name::user() }, false),
        (Instruction::RaiseLimits { more, by: None }, false),
        (Instruction::RaiseAgentLimits { who: Name::user(), more, by: None }, false),
        (Instruction::RaiseChatLimits { chat: "desk".into(), more, by: None }, false),
        (Instruction::ChangeTitle { title: "A title".into() }, false),
        (Instruction::ClientDisconnected { received: "Once".into() }, false),
        (Instruction::Pause, false),
        (Instruction::Resume, false),
        (Instruction::Cancel { now: true }, false),
        (answer, true),
    ];
    let id = idle(&queue, "a").await?.id;
    for (number, (instruction, wakes)) in all.into_iter().enumerate() {
        for is_held in [false, true] {
            let what = format!("whether it is due after {instruction:?}, held: {is_held}");
            let key = format!("k{number} {is_held}");
            let held = if is_held { Some(done("claim", queue.claim(&id).await)?) } else { None };
            give(&queue, &id, &key, instruction.clone()).await?;
            if let Some(claim) = held {
                // A holder hears of all of them.
                let valid = done("heartbeat", queue.heartbeat(std::slice::from_ref(&claim)).await)?;
                same("what a holder hears of", &valid.iter().all(|held| held.is_woken), &true)?;
                done("release_at_rest", queue.release_at_rest(claim, Due::Never).await)?;
            }
            let due = take(&queue).await?;
            same(&what, &!due.is_empty(), &wakes)?;
            for claim in due {
                done("release_until", queue.release_until(claim, Due::Never).await)?;
            }
        }
    }
    pass(LEASE * 2);
    none_due("later", &queue).await
}

async fn scheduled_while_held(Fixture { queue, .. }: Fixture) -> Verdict {
    let id = ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    done("schedule", queue.schedule(&id, Due::Now, None).await)?;
    none_due("while it is held", &queue).await?;
    done("append", queue.append(&claim, &some(1, 2)).await)?;
    done("release_until", queue.release_until(claim, Due::Never).await)?;
    let claim = take_one(&queue).await?;
    // Also if a message comes and is taken.
    done("schedule", queue.schedule(&id, Due::Now, None).await)?;
    post(&queue, &id, "k").await?;
    take_messages(&queue, &claim).await?;
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

/// A claim by an id is that of a person's process, which workers leave alone: unless a message came that it did not take.
async fn lost_by_id(Fixture { queue, pass }: Fixture) -> Verdict {
    let id = idle(&queue, "a").await?.id;
    for (round, name) in ["message", "schedule"].into_iter().enumerate() {
        let claim = done("claim", queue.claim(&id).await)?;
        // Messages that it has taken do not count.
        post(&queue, &id, &format!("taken {round}")).await?;
        take_messages(&queue, &claim).await?;
        match name {
            "message" => post(&queue, &id, "unread").await?,
            _ => done("schedule", queue.schedule(&id, Due::Now, None).await)?,
        }
        // It lives for three leases.
        for _ in 0..4 {
            none_due("while it is held", &queue).await?;
            pass(LEASE * 3 / 4);
            let valid = done("heartbeat", queue.heartbeat(std::slice::from_ref(&claim)).await)?;
            same("its heartbeats", &valid.len(), &1)?;
        }
        pass(LEASE * 2);
        let claim = take_one(&queue).await?;
        same("its id", &claim.id, &id)?;
        take_messages(&queue, &claim).await?;
        done("release_until", queue.release_until(claim, Due::Never).await)?;
        none_due("when a worker has looked", &queue).await?;
    }
    let claim = done("claim", queue.claim(&id).await)?;
    post(&queue, &id, "taken").await?;
    take_messages(&queue, &claim).await?;
    pass(LEASE * 2);
    none_due("without a message", &queue).await
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
    same("after", &is_woken().await?, &vec![true])?;
    take_messages(&queue, &claim).await?;
    same("when it is taken", &is_woken().await?, &vec![false])
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
        let due = take(&queue).await?;
        for claim in due {
            take_messages(&queue, &claim).await?;
            done("release_until", queue.release_until(claim, Due::Never).await)?;
        }
    }
    let taken: Vec<u64> =
        done("read", queue.read(&id, 0).await)?.iter().filter_map(|event| event.inbox).collect();
    same("the messages in the log", &taken, &vec![1])
}
