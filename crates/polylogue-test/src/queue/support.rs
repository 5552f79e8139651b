//! What the rules of queues are checked with.

use std::collections::BTreeSet;
use std::time::Duration;

use polylogue_core::{
    AnyQueue, Claim, Due, Features, InboxMessage, Instruction, LeaseNumber, LogId, Message, Name, Queue as _,
    Store as _, Timestamp,
};

use crate::store::support::{Verdict, done, id, meta, same, some};

/// A new, empty queue, and a way to let time pass.
#[derive(derive_more::Debug)]
#[debug("Fixture {{ queue: {queue:?}, .. }}")]
pub struct Fixture {
    /// The queue.
    pub queue: AnyQueue,
    /// Lets the queue behave as if this much time had passed.
    pub pass: Box<dyn Fn(Duration)>,
}

/// A time that passes in no test by itself.
pub(super) const HOUR: Duration = Duration::from_hours(1);

/// A released log with one event, which no worker must look at.
pub(super) async fn idle(queue: &AnyQueue, name: &str) -> Result<Claim, String> {
    let claim = done("create", queue.create(&id(name)?, &meta(name, 1)).await)?;
    done("append", queue.append(&claim, &some(0, 1)).await)?;
    done("release", queue.release(claim.clone()).await)?;
    Ok(claim)
}

/// A log that is created for workers, and due.
pub(super) async fn ready(queue: &AnyQueue, name: &str) -> Result<LogId, String> {
    let claim = done("create", queue.create(&id(name)?, &meta(name, 1)).await)?;
    done("append", queue.append(&claim, &some(0, 1)).await)?;
    done("release_until", queue.release_until(claim.clone(), Due::Now).await)?;
    Ok(claim.id)
}

/// A log that is due, and needs `needs`.
pub(super) async fn ready_with(queue: &AnyQueue, name: &str, needs: &str) -> Result<LogId, String> {
    let id = idle(queue, name).await?.id;
    done("schedule", queue.schedule(&id, Due::Now, Some(&features(needs)?)).await)?;
    Ok(id)
}

pub(super) fn features(text: &str) -> Result<Features, String> {
    Features::parse(text).map_err(|error| error.to_string())
}

/// Claims what is due, by a worker that offers nothing.
pub(super) async fn take(queue: &AnyQueue) -> Result<Vec<Claim>, String> {
    done("claim_due", queue.claim_due(16, &Features::none(), &[], LeaseNumber::ALL).await)
}

/// Claims the only log that is due.
pub(super) async fn take_one(queue: &AnyQueue) -> Result<Claim, String> {
    let mut claims = take(queue).await?;
    let last = claims.pop().ok_or("no log is due, though one should be")?;
    same("how many others are due", &claims.len(), &0)?;
    Ok(last)
}

pub(super) async fn none_due(what: &str, queue: &AnyQueue) -> Verdict {
    let ids: Vec<LogId> = take(queue).await?.into_iter().map(|claim| claim.id).collect();
    same(&format!("what is due {what}"), &ids, &Vec::new())
}

/// Posts a message that wakes a log.
pub(super) async fn post(queue: &AnyQueue, id: &LogId, key: &str) -> Verdict {
    give(queue, id, key, Instruction::Send(Message::new(Name::user(), "hello"))).await
}

/// Posts an inbox message.
pub(super) async fn give(queue: &AnyQueue, id: &LogId, key: &str, instruction: Instruction) -> Verdict {
    let message = InboxMessage { key: key.into(), request: None, posted: Timestamp(1), instruction };
    done("post", queue.post(id, &message).await).map(drop)
}

/// Appends an event for each inbox message that the log does not have.
pub(super) async fn take_messages(queue: &AnyQueue, claim: &Claim) -> Verdict {
    let events = done("read", queue.read(&claim.id, 0).await)?;
    let taken: BTreeSet<u64> = events.iter().filter_map(|event| event.inbox).collect();
    let inbox = done("inbox", queue.inbox(&claim.id, 0).await)?.into_iter().map(|(number, _)| number);
    let new = inbox.filter(|number| !taken.contains(number));
    for (seq, number) in (events.len() as u64..).zip(new) {
        append_taken(queue, claim, seq, number).await?;
    }
    Ok(())
}

/// Appends the event `seq`, which takes the inbox message `number`.
pub(super) async fn append_taken(queue: &AnyQueue, claim: &Claim, seq: u64, number: u64) -> Verdict {
    let mut event = some(seq, seq + 1).first().map(|event| (**event).clone()).ok_or("no event")?;
    event.inbox = Some(number);
    done("append", queue.append(claim, &[event.into()]).await)
}

pub(super) async fn parked_ids(queue: &AnyQueue) -> Result<Vec<String>, String> {
    let parked = done("parked", queue.parked().await)?;
    Ok(parked.into_iter().map(|log| log.id.to_string()).collect())
}
