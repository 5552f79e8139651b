//! W12: logs that make no progress are parked.

use polylogue_core::{
    Due, Features, LEASE, LeaseNumber, LogId, MAX_TRIES, ParkedLog, Queue as _, Store as _, Timestamp,
};

use super::support::{Fixture, features, idle, none_due, parked_ids, post, ready, take, take_one};
use crate::store::support::{Report, Verdict, done, same, some};

pub(super) async fn check(make: impl Fn() -> Fixture, report: &mut Report) {
    report.check("a log whose workers die without an append is parked", parked(make())).await;
    report.check("a log that fails repeatedly is parked, with the reason", failed(make())).await;
    report.check("a log that fails permanently is parked at once, with the reason", given_up(make())).await;
    report.check("an append clears the count of tries", progress(make())).await;
    report.check("a release clears the count of tries", released(make())).await;
    report.check("a parked log that is run by its id is parked no more", run_by_id(&make)).await;
    report.check("a parked log that is run by its id, and lost, is continued", lost_by_id(make())).await;
    report
        .check("a parked log that is changed and not run stays parked, with the reason", moved(make()))
        .await;
    report.check("a parked log that is changed and not run keeps its count of tries", raised(make())).await;
    report.check("parked logs take no room", room(make())).await;
    report.check("a log that a worker leaves to others was not tried", left_to_others(make())).await;
}

async fn the_parked(queue: &polylogue_core::AnyQueue) -> Result<ParkedLog, String> {
    let mut parked = done("parked", queue.parked().await)?;
    let last = parked.pop().ok_or("nothing is parked")?;
    same("how many others are parked", &parked.len(), &0)?;
    Ok(last)
}

/// Has the workers of the only log die until it is parked.
async fn park(fixture: &Fixture) -> Verdict {
    let Fixture { queue, pass } = fixture;
    for _ in 0..MAX_TRIES {
        take_one(queue).await?;
        pass(LEASE * 2);
    }
    same("what is parked before", &parked_ids(queue).await?, &Vec::new())?;
    none_due("of a log that kills its workers", queue).await
}

async fn parked(fixture: Fixture) -> Verdict {
    let id = ready(&fixture.queue, "a").await?;
    let queue = &fixture.queue;
    for round in 0..3 {
        park(&fixture).await?;
        let log = the_parked(queue).await?;
        same("the id and the tries", &(log.id, log.tries), &(id.clone(), MAX_TRIES))?;
        same("whether its last holder is named", &log.holder.is_empty(), &false)?;
        same("the reason", &log.why, &None)?;
        (fixture.pass)(LEASE * 100);
        none_due("when it is parked", queue).await?;
        match round {
            0 => done("schedule", queue.schedule(&id, Due::Now, None).await)?,
            1 => post(queue, &id, "k").await?,
            _ => break,
        }
        same("what is parked after that", &parked_ids(queue).await?, &Vec::new())?;
    }
    // A person can claim it by its id.
    done("claim", queue.claim(&id).await).map(drop)
}

async fn failed(Fixture { queue, .. }: Fixture) -> Verdict {
    let id: LogId = ready(&queue, "a").await?;
    for number in 1..=MAX_TRIES {
        same("what is parked before", &parked_ids(&queue).await?, &Vec::new())?;
        let claim = take_one(&queue).await?;
        let why = format!("error {number}");
        done("release_failed", queue.release_failed(claim, Due::Now, &why).await)?;
    }
    let log = the_parked(&queue).await?;
    let wanted = (id.clone(), MAX_TRIES, Some(format!("error {MAX_TRIES}")));
    same("what is parked", &(log.id, log.tries, log.why), &wanted)?;
    same("whether its last holder is named", &log.holder.is_empty(), &false)?;
    none_due("when it is parked", &queue).await?;
    done("schedule", queue.schedule(&id, Due::Now, None).await)?;
    let claim = take_one(&queue).await?;
    done("release_failed", queue.release_failed(claim, Due::Now, "again").await)?;
    same("what is parked after one more try", &parked_ids(&queue).await?, &Vec::new())
}

/// Such as one whose model refuses the key: its events clear the count of tries.
async fn given_up(Fixture { queue, pass }: Fixture) -> Verdict {
    let id: LogId = ready(&queue, "a").await?;
    for seq in 1..3 {
        let claim = take_one(&queue).await?;
        done("append", queue.append(&claim, &some(seq, seq + 1)).await)?;
        done("release_failed", queue.release_failed(claim, Due::Never, "bad key").await)?;
        let log = the_parked(&queue).await?;
        same("what is parked", &(log.id, log.why), &(id.clone(), Some("bad key".to_owned())))?;
        pass(LEASE * 100);
        none_due("when it is parked", &queue).await?;
        // One that a person continues by its id and leaves unchanged stays parked.
        let claim = done("claim", queue.claim(&id).await)?;
        done("release_at_rest", queue.release_at_rest(claim, Due::Now).await)?;
        same("what is parked", &parked_ids(&queue).await?, &vec!["a".to_owned()])?;
        done("schedule", queue.schedule(&id, Due::Now, None).await)?;
        same("what is parked after that", &parked_ids(&queue).await?, &Vec::new())?;
    }
    // A message that came meanwhile is looked at.
    let claim = take_one(&queue).await?;
    post(&queue, &id, "k").await?;
    done("release_failed", queue.release_failed(claim, Due::Never, "bad key").await)?;
    same("what is parked after a message", &parked_ids(&queue).await?, &Vec::new())?;
    take_one(&queue).await.map(drop)
}

async fn progress(Fixture { queue, pass }: Fixture) -> Verdict {
    ready(&queue, "a").await?;
    for next in 0..u64::from(MAX_TRIES) * 2 {
        let claim = take_one(&queue).await?;
        if next % 2 == 0 {
            let next = next / 2 + 1;
            done("append", queue.append(&claim, &some(next, next + 1)).await)?;
        }
        pass(LEASE * 2);
    }
    same("what is parked", &parked_ids(&queue).await?, &Vec::new())
}

async fn released(Fixture { queue, .. }: Fixture) -> Verdict {
    ready(&queue, "a").await?;
    for _ in 0..MAX_TRIES * 2 {
        let claim = take_one(&queue).await?;
        // Such as by a worker that ends before its first model call has returned.
        done("release_until", queue.release_until(claim, Due::Now).await)?;
    }
    same("what is parked", &parked_ids(&queue).await?, &Vec::new())
}

/// As by a move to another version of its team.
async fn moved(Fixture { queue, .. }: Fixture) -> Verdict {
    let id: LogId = ready(&queue, "a").await?;
    for _ in 0..MAX_TRIES {
        let claim = take_one(&queue).await?;
        done("release_failed", queue.release_failed(claim, Due::Now, "no such model").await)?;
    }
    let needs = features("gpu")?;
    for seq in 1..3 {
        let claim = done("claim", queue.claim(&id).await)?;
        done("append", queue.append(&claim, &some(seq, seq + 1)).await)?;
        done("set_needs", queue.set_needs(&id, &needs).await)?;
        done("release", queue.release(claim).await)?;
        let log = the_parked(&queue).await?;
        let wanted = (id.clone(), MAX_TRIES, Some("no such model".to_owned()));
        same("what is parked", &(log.id, log.tries, log.why), &wanted)?;
        same("what it needs", &done("needs", queue.needs(&id).await)?, &needs)?;
        same("whether it is queued", &done("is_queued", queue.is_queued(&id).await)?, &false)?;
    }
    done("schedule", queue.schedule(&id, Due::Now, None).await)?;
    none_due("for a worker that offers nothing", &queue).await?;
    let claims = done("claim_due", queue.claim_due(1, &needs, &[], LeaseNumber::ALL).await)?;
    same("what is claimed", &ids(&claims), &vec!["a".to_owned()])
}

/// As by limits that are raised, of one that failed permanently at its first try.
async fn raised(Fixture { queue, .. }: Fixture) -> Verdict {
    let id: LogId = ready(&queue, "a").await?;
    let claim = take_one(&queue).await?;
    done("release_failed", queue.release_failed(claim, Due::Never, "bad key").await)?;
    let wanted = (id.clone(), 1, Some("bad key".to_owned()));
    for seq in 1..3 {
        let claim = done("claim", queue.claim(&id).await)?;
        done("append", queue.append(&claim, &some(seq, seq + 1)).await)?;
        let log = the_parked(&queue).await?;
        same("what is parked while it is held", &(log.id, log.tries, log.why), &wanted)?;
        match seq {
            1 => done("release", queue.release(claim).await)?,
            _ => done("release_to_others", queue.release_to_others(claim, "bad key").await)?,
        }
        let log = the_parked(&queue).await?;
        same("what is parked", &(log.id, log.tries, log.why), &wanted)?;
    }
    // The next claim has no append, and leaves it parked.
    let claim = done("claim", queue.claim(&id).await)?;
    done("release_at_rest", queue.release_at_rest(claim, Due::Now).await)?;
    let log = the_parked(&queue).await?;
    same("what is parked", &(log.id, log.tries, log.why), &wanted)?;
    // A turn that fails after an append is a new beginning.
    let claim = done("claim", queue.claim(&id).await)?;
    done("append", queue.append(&claim, &some(3, 4)).await)?;
    done("release_failed", queue.release_failed(claim, Due::Now, "broken").await)?;
    for number in 1..=MAX_TRIES {
        same("what is parked before", &parked_ids(&queue).await?, &Vec::new())?;
        let claim = take_one(&queue).await?;
        done("release_failed", queue.release_failed(claim, Due::Now, &format!("error {number}")).await)?;
    }
    let tries = the_parked(&queue).await?.tries;
    same("the tries", &tries, &MAX_TRIES)
}

async fn room(fixture: Fixture) -> Verdict {
    let Fixture { queue, pass } = &fixture;
    ready(queue, "a").await?;
    for _ in 0..MAX_TRIES {
        take_one(queue).await?;
        pass(LEASE * 2);
    }
    ready(queue, "b").await?;
    let claim =
        async || done("claim_due", queue.claim_due(1, &Features::none(), &[], LeaseNumber::ALL).await);
    let claims = claim().await?;
    let mut ids: Vec<String> = claims.iter().map(|claim| claim.id.to_string()).collect();
    // A queue may look at one log at a time.
    let claims = claim().await?;
    ids.extend(claims.iter().map(|claim| claim.id.to_string()));
    same("what is claimed", &ids, &vec!["b".to_owned()])
}

/// How a claim is released.
#[derive(Debug, Clone, Copy)]
enum By {
    Release,
    AtRest(Due),
    Until(Due),
    Failed,
}

async fn run_by_id(make: impl Fn() -> Fixture) -> Verdict {
    // How it is released, whether an event was appended before; whether it is parked after that, and whether it is due.
    let cases = [
        (By::Release, true, (true, false)),
        (By::AtRest(Due::Never), true, (false, false)),
        (By::AtRest(Due::Now), true, (false, false)),
        // Such as of a question with a default answer.
        (By::AtRest(Due::At(Timestamp(1))), true, (false, true)),
        (By::Release, false, (true, false)),
        (By::AtRest(Due::Never), false, (true, false)),
        (By::AtRest(Due::At(Timestamp(1))), false, (true, false)),
        (By::Until(Due::Never), false, (false, false)),
        (By::Until(Due::Now), false, (false, true)),
        (By::Failed, false, (true, false)),
        (By::Failed, true, (false, true)),
    ];
    for (by, appends, wanted) in cases {
        let fixture = make();
        let queue = &fixture.queue;
        let id = ready(queue, "a").await?;
        park(&fixture).await?;
        let claim = done("claim", queue.claim(&id).await)?;
        if appends {
            done("append", queue.append(&claim, &some(1, 2)).await)?;
        }
        let released = match by {
            By::Release => queue.release(claim).await,
            By::AtRest(due) => queue.release_at_rest(claim, due).await,
            By::Until(due) => queue.release_until(claim, due).await,
            By::Failed => queue.release_failed(claim, Due::Now, "why").await,
        };
        done("a release", released)?;
        let found = (!parked_ids(queue).await?.is_empty(), !take(queue).await?.is_empty());
        same(&format!("whether it is parked and due after {by:?}, an append: {appends}"), &found, &wanted)?;
    }
    Ok(())
}

async fn lost_by_id(fixture: Fixture) -> Verdict {
    let Fixture { queue, pass } = &fixture;
    let id = ready(queue, "a").await?;
    park(&fixture).await?;
    let claim = done("claim", queue.claim(&id).await)?;
    done("continue_if_lost", queue.continue_if_lost(&claim).await)?;
    done("append", queue.append(&claim, &some(1, 2)).await)?;
    pass(LEASE * 2);
    // After an append, it is tried as often as any other.
    park(&fixture).await
}

async fn left_to_others(Fixture { queue, .. }: Fixture) -> Verdict {
    let (id, other) = (ready(&queue, "a").await?, ready(&queue, "b").await?);
    let claim_without = async |except: &[LogId]| {
        let none = Features::none();
        done("claim_due", queue.claim_due(16, &none, except, LeaseNumber::ALL).await)
    };
    let claims = claim_without(std::slice::from_ref(&other)).await?;
    same("what is claimed without `b`", &ids(&claims), &vec!["a".to_owned()])?;
    for claim in claims {
        done("release_to_others", queue.release_to_others(claim, "no key").await)?;
    }
    for round in 0..MAX_TRIES * 2 {
        let claims = claim_without(std::slice::from_ref(&other)).await?;
        same(&format!("what is claimed in round {round}"), &ids(&claims), &vec!["a".to_owned()])?;
        for claim in claims {
            done("release_to_others", queue.release_to_others(claim.clone(), "no key").await)?;
            done("release_to_others of a claim that has ended", queue.release_to_others(claim, "?").await)?;
        }
    }
    same("what is parked", &parked_ids(&queue).await?, &Vec::new())?;
    // Those that do not count leave the others as they are.
    for number in 1..=MAX_TRIES {
        let claims = claim_without(std::slice::from_ref(&other)).await?;
        for claim in claims {
            done("release_failed", queue.release_failed(claim, Due::Now, &format!("error {number}")).await)?;
        }
    }
    let parked = the_parked(&queue).await?;
    same("the tries", &(parked.id, parked.tries), &(id, MAX_TRIES))?;
    // One that is idle stays so.
    let idle = idle(&queue, "c").await?.id;
    let claim = done("claim", queue.claim(&idle).await)?;
    done("release_to_others", queue.release_to_others(claim, "no key").await)?;
    same("what is due", &take_one(&queue).await?.id, &other)
}

fn ids(claims: &[polylogue_core::Claim]) -> Vec<String> {
    claims.iter().map(|claim| claim.id.to_string()).collect()
}
