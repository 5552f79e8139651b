//! Every action in every state of a log, and the state that it leads to: arrows that are not in the table change nothing.

use std::time::Duration;

use polylogue_core::{Claim, Due, Features, Instruction, LEASE, MAX_TRIES, Queue as _, Store as _};

use super::support::{Fixture, HOUR, give, idle, none_due, parked_ids, post, ready, take, take_one};
use crate::store::support::{Report, Verdict, done, fenced, refused, same, some};

/// The states of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Timed,
    Ready,
    Held,
    Lost,
    Parked,
}

/// What happens to a log. Operations on a claim have the last one that was granted.
#[derive(Debug, Clone, Copy)]
enum Action {
    ClaimDue,
    Release,
    ReleaseUntil(Due),
    ReleaseAtRest(Due),
    ReleaseFailed(Due),
    ReleaseToOthers,
    ContinueIfLost,
    Heartbeat,
    Append,
    /// A message that wakes it.
    Post,
    /// One that does not.
    PostSilently,
    Schedule(Due),
    SetNeeds,
    TimePasses,
}

use Action::{
    Append, ClaimDue, ContinueIfLost, Heartbeat, Post, PostSilently, Release, ReleaseAtRest, ReleaseFailed,
    ReleaseToOthers, ReleaseUntil, Schedule, SetNeeds, TimePasses,
};
use State::{Held, Idle, Lost, Parked, Ready, Timed};

const STATES: [State; 6] = [Idle, Timed, Ready, Held, Lost, Parked];

/// For each action, the states that those of [`STATES`] become, in their order.
const ARROWS: [(Action, [State; 6]); 20] = [
    (ClaimDue, [Idle, Timed, Held, Held, Held, Parked]),
    (Release, [Idle, Timed, Ready, Timed, Ready, Parked]),
    (ReleaseUntil(Due::Never), [Idle, Timed, Ready, Idle, Idle, Parked]),
    (ReleaseUntil(Due::Now), [Idle, Timed, Ready, Ready, Ready, Parked]),
    (ReleaseUntil(Due::After(HOUR)), [Idle, Timed, Ready, Timed, Timed, Parked]),
    (ReleaseAtRest(Due::Never), [Idle, Timed, Ready, Idle, Idle, Parked]),
    (ReleaseAtRest(Due::After(HOUR)), [Idle, Timed, Ready, Timed, Timed, Parked]),
    (ReleaseFailed(Due::After(HOUR)), [Idle, Timed, Ready, Timed, Timed, Parked]),
    (ReleaseFailed(Due::Never), [Idle, Timed, Ready, Parked, Parked, Parked]),
    (ReleaseToOthers, [Idle, Timed, Ready, Ready, Ready, Parked]),
    (ContinueIfLost, [Idle, Timed, Ready, Held, Lost, Parked]),
    (Heartbeat, [Idle, Timed, Ready, Held, Held, Parked]),
    (Append, [Idle, Timed, Ready, Held, Held, Parked]),
    (Post, [Ready, Ready, Ready, Held, Lost, Ready]),
    (PostSilently, [Idle, Timed, Ready, Held, Lost, Parked]),
    (Schedule(Due::Never), [Idle, Idle, Idle, Held, Idle, Idle]),
    (Schedule(Due::Now), [Ready, Ready, Ready, Held, Lost, Ready]),
    (Schedule(Due::After(HOUR)), [Timed, Timed, Timed, Held, Timed, Timed]),
    (SetNeeds, [Idle, Timed, Ready, Held, Lost, Parked]),
    // Less than an hour, and more than a lease.
    (TimePasses, [Idle, Timed, Ready, Lost, Lost, Parked]),
];

pub(super) async fn check(make: impl Fn() -> Fixture, report: &mut Report) {
    for state in STATES {
        let is_queued = !matches!(state, Idle | Parked);
        let rule = format!("{state:?}: workers look at it by themselves: {is_queued}");
        report.check(&rule, queued(make(), state, is_queued)).await;
    }
    for (action, after) in ARROWS {
        for (before, after) in STATES.into_iter().zip(after) {
            let rule = format!("{action:?}: {before:?} becomes {after:?}");
            report.check(&rule, arrow(&make, (before, after), action)).await;
        }
    }
}

async fn queued(fixture: Fixture, state: State, is_queued: bool) -> Verdict {
    let id = in_state(&fixture, state).await?.id;
    same("is_queued", &done("is_queued", fixture.queue.is_queued(&id).await)?, &is_queued)
}

async fn arrow(make: impl Fn() -> Fixture, (before, after): (State, State), action: Action) -> Verdict {
    // Twice the same: looking at the claim and at the queue would change one another.
    let (one, other) = (make(), make());
    let mut last = Vec::new();
    for fixture in [&one, &other] {
        let claim = in_state(fixture, before).await?;
        last.push(act(fixture, before, action, claim).await?);
    }
    let [of_one, of_other] = last.as_slice() else { return Err("no claims".into()) };
    let has_claim = is_valid(&one, of_one).await?;
    same("the state", &observed(&other, of_other, has_claim).await?, &after)
}

/// A log in `state`, and its last claim.
async fn in_state(Fixture { queue, pass }: &Fixture, state: State) -> Result<Claim, String> {
    if state == Idle {
        return idle(queue, "a").await;
    }
    ready(queue, "a").await?;
    let mut claim = take_one(queue).await?;
    match state {
        Idle | Held => {}
        Timed => done("release", queue.release_until(claim.clone(), Due::After(HOUR)).await)?,
        Ready => done("release", queue.release_until(claim.clone(), Due::Now).await)?,
        Lost => pass(LEASE * 2),
        Parked => {
            for _ in 1..MAX_TRIES {
                pass(LEASE * 2);
                claim = take_one(queue).await?;
            }
            pass(LEASE * 2);
            none_due("after so many tries", queue).await?;
        }
    }
    Ok(claim)
}

/// Does it. Returns the last claim.
async fn act(
    Fixture { queue, pass }: &Fixture,
    before: State,
    action: Action,
    claim: Claim,
) -> Result<Claim, String> {
    let (id, last) = (claim.id.clone(), claim.clone());
    let is_valid = matches!(before, Held | Lost);
    match action {
        ClaimDue => return Ok(take(queue).await?.pop().unwrap_or(last)),
        Release => done("release", queue.release(claim).await)?,
        ReleaseUntil(due) => done("release_until", queue.release_until(claim, due).await)?,
        ReleaseAtRest(due) => done("release_at_rest", queue.release_at_rest(claim, due).await)?,
        ReleaseFailed(due) => done("release_failed", queue.release_failed(claim, due, "why").await)?,
        ReleaseToOthers => done("release_to_others", queue.release_to_others(claim, "why").await)?,
        ContinueIfLost => done("continue_if_lost", queue.continue_if_lost(&claim).await)?,
        Heartbeat => {
            let valid = done("heartbeat", queue.heartbeat(std::slice::from_ref(&claim)).await)?;
            same("whether it is valid", &(valid.len() == 1), &is_valid)?;
        }
        Append if is_valid => done("append", queue.append(&claim, &some(1, 2)).await)?,
        Append => refused("append", queue.append(&claim, &some(1, 2)).await, &fenced(&claim))?,
        Post => post(queue, &id, "k").await?,
        PostSilently => give(queue, &id, "k", Instruction::Pause).await?,
        Schedule(due) => done("schedule", queue.schedule(&id, due, None).await)?,
        SetNeeds => done("set_needs", queue.set_needs(&id, &Features::none()).await)?,
        TimePasses => pass(LEASE * 2),
    }
    Ok(last)
}

/// Whether `claim` allows to append.
async fn is_valid(Fixture { queue, .. }: &Fixture, claim: &Claim) -> Result<bool, String> {
    let end = done("read", queue.read(&claim.id, 0).await)?.len() as u64;
    match queue.append(claim, &some(end, end + 1)).await {
        Ok(()) => Ok(true),
        Err(error) => same("the error", &error, &fenced(claim)).map(|()| false),
    }
}

/// The state of the only log, by when it is due, and by whether its last claim is valid.
async fn observed(fixture: &Fixture, last: &Claim, has_claim: bool) -> Result<State, String> {
    let Fixture { queue, pass } = fixture;
    let is_parked = !parked_ids(queue).await?.is_empty();
    let mut due_after = None;
    for (time, name) in [(Duration::ZERO, "now"), (LEASE * 2, "after the lease"), (HOUR * 2, "later")] {
        pass(time);
        let claimed = take(queue).await?;
        if let [claim] = claimed.as_slice() {
            same("the id", &claim.id, &last.id)?;
            due_after = Some(name);
            break;
        }
    }
    Ok(match (due_after, has_claim) {
        (None, _) if is_parked => Parked,
        (Some(when), _) if is_parked => return Err(format!("a parked log was claimed {when}")),
        (None, _) => Idle,
        (Some("now"), true) => Lost,
        (Some("now"), false) => Ready,
        (Some("after the lease"), true) => Held,
        (Some(_), _) => Timed,
    })
}
