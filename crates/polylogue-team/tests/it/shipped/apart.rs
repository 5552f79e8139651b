//! A cut for teams whose chats run at the same time.
//!
//! Their events are in the log as they happened, and after a cut they may happen at another pace: what is said in each
//! chat, and what comes after them, is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use polylogue_core::{AnyModel, AnyStore, Body, Event, Log, LogId, Meta, Status, Store, Timestamp};
use polylogue_team::Team;
use polylogue_test::cut::{Calls, uncharged};

use crate::shipped::stage::model;

/// The conversation of `team` that begins with `prefix`, and how many model calls it took.
async fn from(prefix: &[Arc<Event>], team: &Team, store: AnyStore) -> (Vec<Arc<Event>>, u64) {
    let id = LogId::new("cut").unwrap();
    let claim = store.create(&id, &Meta::default()).await.unwrap();
    if !prefix.is_empty() {
        store.append(&claim, prefix).await.unwrap();
    }
    store.release(claim).await.unwrap();
    let calls = Calls::default();
    let model = AnyModel::new(calls.through(model(team)));
    let chat = team.build(&|_| Ok(model.clone())).unwrap();
    let mut log = Log::open(store, id).await.unwrap().clock(|| Timestamp(0));
    let status = match prefix {
        [] => chat.run_in(&mut log, team.task.as_deref().unwrap()).await.map(|run| run.status),
        _ => chat.resume(&mut log).await.map(|run| run.status),
    };
    assert!(matches!(status, Ok(Status::Closed { .. })), "{}: {status:?}", team.name);
    (log.events().await, calls.made())
}

/// What happened in each chat, apart from the others, without the calls that a resumed run counts as in flight.
pub(crate) fn apart(events: &[Arc<Event>]) -> BTreeMap<String, Vec<Body>> {
    let mut chats: BTreeMap<String, Vec<Body>> = BTreeMap::new();
    for event in uncharged(events) {
        chats.entry(event.chat.to_string()).or_default().push(event.body.clone());
    }
    chats
}

fn sampled(events: &[Arc<Event>]) -> u64 {
    events.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count() as u64
}

/// Cuts the conversation of `team` after every event; how many cuts there were.
pub(crate) async fn cut_everywhere(team: &Team, store: &dyn Fn() -> AnyStore) -> usize {
    let (whole, _) = from(&[], team, store()).await;
    for cut in 1..whole.len() {
        let (again, made) = from(&whole[..cut], team, store()).await;
        assert_eq!(apart(&whole), apart(&again), "{}: cut before event {cut}", team.name);
        assert_eq!(made, sampled(&whole[cut..]), "{}: calls after the cut before event {cut}", team.name);
    }
    whole.len()
}
