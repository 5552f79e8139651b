//! Questions that wait for people.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use polylogue_core::{
    AnyStore, Body, Due, Event, LogId, Meta, Name, Path, Question, Queue as _, Status, Store as _,
    StoreError, StoreWrapper, Timestamp,
};
use polylogue_runtime::fork::ForkPoint;
use polylogue_runtime::{OpenOptions, Runtime, StoreLocation};
use polylogue_store::Memory;

use crate::conversations::world;

/// Notes which events are read.
struct Noting(AnyStore, Arc<Mutex<Vec<Range<u64>>>>);

impl StoreWrapper for Noting {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
    async fn read_range(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        self.1.lock().unwrap().push(range.clone());
        self.0.read_range(id, range).await
    }
}

#[tokio::test]
async fn open_questions_are_found_from_the_end_of_the_log() {
    // The events that ask, how many there are, and the first one that is read.
    for (asking, count, first) in [(vec![500], 510, 446), (vec![500], 700, 444), (vec![3, 505], 510, 0)] {
        let read = Arc::<Mutex<Vec<Range<u64>>>>::default();
        let store = AnyStore::new(Noting(Memory::new().into(), Arc::clone(&read)));
        let id = LogId::new("asked").unwrap();
        let claim = store.create(&id, &Meta::default()).await.unwrap();
        let event = |seq: u64| {
            let body = match asking.contains(&seq) {
                true => Body::InputRequired(Question::new(Name::new("Kim").unwrap(), "?")),
                false => Body::TitleChanged { title: "x".into() },
            };
            Arc::new(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body })
        };
        store.append(&claim, &(0..count).map(event).collect::<Vec<_>>()).await.unwrap();
        store.release(claim).await.unwrap();
        let runtime = Runtime::with_store(StoreLocation::new("nowhere"), store);
        let open = runtime.open_questions(&id).await.unwrap();
        assert_eq!(open.iter().map(|open| open.seq).collect::<Vec<_>>(), asking);
        let read = read.lock().unwrap().clone();
        assert_eq!(read.last().map(|range| range.start), Some(first), "{read:?}");
        assert!(read.iter().all(|range| range.end == count), "{read:?}");
    }
}

const BOTH: &str = "
name: both
task: Help.
agents: [{name: Pat, human: true}, {name: Ann}]
chat: {participants: [Pat, Ann], pattern: parallel}
script: [{Ann: Thanks.}]
";

#[tokio::test]
async fn workers_continue_a_turn_that_was_interrupted_while_another_one_waits_for_a_person() {
    let world = world(BOTH).await;
    let (runtime, queue) = (&world.runtime, world.runtime.queue().unwrap());
    let open = async |id: &LogId| runtime.open(id, &world.team, OpenOptions::default()).await.unwrap();
    let begun = runtime.begin(&world.team.run()).await.unwrap();
    let whole = begun.id().clone();
    begun.run().await.unwrap();
    let events = begun.events().await;
    begun.release().await.unwrap();
    drop(begun);
    let replied = events.iter().find(|event| matches!(event.body, Body::ModelReplied(_))).unwrap();
    // As a process leaves it that is interrupted during Ann's call.
    let point = ForkPoint { event: Some(replied.seq), ..ForkPoint::default() };
    let half = runtime.fork(&whole, &point).await.unwrap().id;
    for (id, runs, is_queued) in [(&half, false, true), (&half, true, false), (&whole, true, false)] {
        queue.schedule(id, Due::Now, None).await.unwrap();
        let opened = open(id).await;
        if runs {
            assert!(matches!(opened.run().await.unwrap(), Status::Waiting(_)), "{id}");
        }
        assert_eq!(opened.questions().await.len(), 1, "{id}");
        opened.release().await.unwrap();
        assert_eq!(queue.is_queued(id).await.unwrap(), is_queued, "{id}, run: {runs}");
    }
}
