//! What the rules of stores are checked with.

use std::fmt::Debug;
use std::sync::Arc;

use polylogue_core::{
    AnyStore, Body, Claim, Event, LogId, Message, Meta, Name, Path, Store, StoreError, Timestamp,
};
use serde_json::json;

/// The result of a rule: `Ok`, or how it is broken.
pub(crate) type Verdict = Result<(), String>;

#[derive(Default)]
pub(crate) struct Report {
    broken: Vec<String>,
}

impl Report {
    pub(crate) async fn check(&mut self, rule: &str, test: impl Future<Output = Verdict>) {
        if let Err(how) = test.await {
            self.broken.push(format!("- {rule}:\n  {how}"));
        }
    }

    pub(crate) fn finish(self) {
        let broken = self.broken;
        assert!(broken.is_empty(), "the store breaks {} rules:\n{}", broken.len(), broken.join("\n"));
    }
}

/// Whether `found` is as expected; `what` names what was checked.
pub(crate) fn same<T: PartialEq + Debug>(what: &str, found: &T, wanted: &T) -> Verdict {
    if found == wanted {
        return Ok(());
    }
    let short = |value: &T| format!("{value:?}").chars().take(300).collect::<String>();
    Err(format!("{what}: found {}, wanted {}", short(found), short(wanted)))
}

/// The value of `result`; `what` names the operation.
pub(crate) fn done<T>(what: &str, result: Result<T, StoreError>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error} ({error:?})"))
}

/// Whether `result` is the expected error; `what` names the operation.
pub(crate) fn refused<T>(what: &str, result: Result<T, StoreError>, wanted: &StoreError) -> Verdict {
    match result {
        Ok(_) => Err(format!("{what}: succeeded, wanted {wanted:?}")),
        Err(error) => same(what, &error, wanted),
    }
}

/// Whether `result` says that the log is busy, and names the holder.
pub(crate) fn busy<T>(what: &str, result: Result<T, StoreError>, id: &LogId) -> Verdict {
    match result {
        Err(StoreError::Busy { id: of, holder }) if of == *id && !holder.trim().is_empty() => Ok(()),
        Err(error) => Err(format!("{what}: {error:?} instead of `Busy` with the id and a holder")),
        Ok(_) => Err(format!("{what}: succeeded, though another writer is alive")),
    }
}

pub(crate) fn id(text: &str) -> Result<LogId, String> {
    LogId::new(text).map_err(|error| error.to_string())
}

pub(crate) fn not_found(id: &LogId) -> StoreError {
    StoreError::NotFound { id: id.clone() }
}

pub(crate) fn fenced(claim: &Claim) -> StoreError {
    StoreError::Fenced { id: claim.id.clone() }
}

pub(crate) fn meta(title: &str, created: u64) -> Meta {
    Meta {
        title: title.into(),
        created: Timestamp(created),
        team: json!({"of": ["a", 1, null]}),
        ..Meta::default()
    }
}

/// Event number `seq`, a message with `text`.
pub(crate) fn said(seq: u64, text: &str) -> Arc<Event> {
    let body = Body::Message(Message::new(Name::user(), text));
    Arc::new(Event {
        seq,
        chat: Path::root(),
        time: Timestamp(1_763_712_000_000 + seq),
        ran_ms: 0,
        inbox: None,
        body,
    })
}

/// Events `from` to before `to`, each with its number as text.
pub(crate) fn some(from: u64, to: u64) -> Vec<Arc<Event>> {
    (from..to).map(|seq| said(seq, &format!("number {seq}"))).collect()
}

/// Creates a log with the id `name`.
pub(crate) async fn begin(store: &AnyStore, name: &str) -> Result<Claim, String> {
    done("create", store.create(&id(name)?, &meta(name, 1)).await)
}

/// Whether a log has exactly the events `wanted`.
pub(crate) async fn keeps(what: &str, store: &AnyStore, id: &LogId, wanted: &[Arc<Event>]) -> Verdict {
    let found = done(what, store.read(id, 0).await)?;
    if found.len() != wanted.len() {
        return Err(format!("{what}: {} events are kept, wanted {}", found.len(), wanted.len()));
    }
    found.iter().zip(wanted).try_for_each(|(found, wanted)| same(what, found, wanted))
}
