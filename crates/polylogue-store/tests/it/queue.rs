//! W2, W3, W7 and W12: queues keep their promises, and the suite finds those that do not.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use polylogue_core::{
    AnyQueue, AnyStore, Claim, Due, DynQueue, Features, Heartbeat, InboxMessage, LeaseNumber, LogId, Queue,
    QueueWrapper, Store, StoreError, StoreWrapper, Timestamp,
};
use polylogue_store::{Memory, Sqlite};
use polylogue_test::queue::{Fixture, conforms};

/// A time that passes by hand.
#[derive(Clone)]
pub(crate) struct Time(Arc<AtomicU64>);

impl Time {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_763_712_000_000)))
    }

    pub(crate) fn clock(&self) -> impl Fn() -> Timestamp + Send + Sync + 'static {
        let now = Arc::clone(&self.0);
        move || Timestamp(now.load(Ordering::SeqCst))
    }

    /// The same for leases.
    pub(crate) fn steady(&self) -> impl Fn() -> Duration + Send + Sync + 'static {
        let clock = self.clock();
        move || Duration::from_millis(clock().0)
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

fn memory() -> Fixture {
    let time = Time::new();
    let queue = AnyQueue::new(Memory::with_clock(time.clock())).unwrap();
    Fixture { queue, pass: Box::new(move |more| time.pass(more)) }
}

fn sqlite() -> Fixture {
    let (time, dir) = (Time::new(), tempfile::tempdir().unwrap());
    let place = dir.path().join("chats.db");
    let store = Sqlite::open_with_clocks(place, time.clock(), time.steady()).unwrap();
    let pass = move |more| {
        // Kept as long as the queue.
        let _ = dir.path();
        time.pass(more);
    };
    Fixture { queue: AnyQueue::new(store).unwrap(), pass: Box::new(pass) }
}

#[tokio::test]
async fn memory_is_a_queue() {
    conforms(memory).await;
}

#[tokio::test]
async fn sqlite_is_a_queue() {
    conforms(sqlite).await;
}

/// What a queue does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// Nothing: the wrapper itself is right.
    Nothing,
    /// A message does not wake a log.
    PostWakesNothing,
    /// Every instruction wakes a log.
    EveryPostWakes,
    /// A message wakes a log whose holder has taken it.
    TakenMessagesWake,
    /// A message that came while the log was held is forgotten when it is released.
    ReleaseForgetsMessages,
    /// A released log is still due at the end of its lease.
    ReleaseKeepsTheDueTime,
    /// A void claim releases that of its successor.
    VoidClaimsRelease,
    /// Heartbeats name no fence.
    HeartbeatsWithoutFence,
    /// Leases of claims that were granted never end.
    LeasesNeverEnd,
    /// A log that is held is granted once more.
    GrantsTwice,
    /// Those that have waited longest come last.
    NewestFirst,
    /// A log that kills its workers is claimed forever.
    NeverParks,
    /// Failures are forgotten.
    FailuresDoNotCount,
    /// What a worker leaves to others is idle.
    LeavesToNoOne,
    /// What a log needs does not matter.
    IgnoresNeeds,
    /// A log that is taken over looks like one that was free.
    HidesTakeovers,
    /// The clock of the store alone decides when leases end.
    IgnoresLeaseNumbers,
}

struct Faulty {
    inner: AnyQueue,
    wrong: Wrong,
    granted: Mutex<BTreeMap<LogId, Claim>>,
}

impl Faulty {
    fn granted(&self) -> Vec<Claim> {
        self.granted.lock().unwrap().values().cloned().collect()
    }

    fn current(&self, claim: Claim) -> Claim {
        match self.wrong {
            Wrong::VoidClaimsRelease => self.granted.lock().unwrap().get(&claim.id).cloned().unwrap_or(claim),
            _ => claim,
        }
    }
}

impl StoreWrapper for Faulty {
    fn inner(&self) -> &AnyStore {
        self.inner.store()
    }

    fn as_queue(&self) -> Option<&dyn DynQueue> {
        Some(self)
    }

    async fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        let number = Store::post(&self.inner, id, message).await?;
        match self.wrong {
            Wrong::PostWakesNothing => Queue::schedule(&self.inner, id, Due::Never, None).await?,
            Wrong::EveryPostWakes => Queue::schedule(&self.inner, id, Due::Now, None).await?,
            _ => {}
        }
        Ok(number)
    }
}

impl QueueWrapper for Faulty {
    async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        let inner = &self.inner;
        if self.wrong == Wrong::LeasesNeverEnd {
            Queue::heartbeat(inner, &self.granted()).await?;
        }
        let all = Features::parse("gpu mcp:files other").unwrap();
        let offers = if self.wrong == Wrong::IgnoresNeeds { &all } else { offers };
        let ended = if self.wrong == Wrong::IgnoresLeaseNumbers { LeaseNumber::ALL } else { ended };
        let mut claims = Queue::claim_due(inner, room, offers, except, ended).await?;
        if self.wrong == Wrong::NeverParks {
            for log in Queue::parked(inner).await? {
                Queue::schedule(inner, &log.id, Due::Now, None).await?;
            }
            claims.extend(Queue::claim_due(inner, room - claims.len(), offers, except, ended).await?);
        }
        match self.wrong {
            Wrong::NewestFirst => claims.reverse(),
            Wrong::HidesTakeovers => {
                claims
                    .iter_mut()
                    .filter_map(|claim| claim.found.as_mut())
                    .for_each(|found| found.is_takeover = false);
            }
            Wrong::GrantsTwice if claims.is_empty() => {
                let again = self.granted.lock().unwrap().pop_first();
                return Ok(again.into_iter().map(|(_, claim)| claim).collect());
            }
            _ => {}
        }
        self.granted.lock().unwrap().extend(claims.iter().map(|claim| (claim.id.clone(), claim.clone())));
        Ok(claims)
    }

    async fn release_until(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        let (id, inner) = (claim.id.clone(), &self.inner);
        let claim = self.current(claim);
        match self.wrong {
            Wrong::ReleaseKeepsTheDueTime => Store::release(inner, claim).await,
            Wrong::TakenMessagesWake => {
                let has_inbox = !Store::inbox(inner, &id, 0).await?.is_empty();
                Queue::release_until(inner, claim, if has_inbox { Due::Now } else { due }).await
            }
            Wrong::ReleaseForgetsMessages => {
                Queue::release_until(inner, claim, due).await?;
                Queue::schedule(inner, &id, due, None).await
            }
            _ => Queue::release_until(inner, claim, due).await,
        }
    }

    async fn release_failed(&self, claim: Claim, due: Due, why: &str) -> Result<(), StoreError> {
        match self.wrong {
            Wrong::FailuresDoNotCount => Queue::release_until(&self.inner, claim, due).await,
            _ => Queue::release_failed(&self.inner, claim, due, why).await,
        }
    }

    async fn release_to_others(&self, claim: Claim, why: &str) -> Result<(), StoreError> {
        match self.wrong {
            Wrong::LeavesToNoOne => Queue::release_until(&self.inner, claim, Due::Never).await,
            _ => Queue::release_to_others(&self.inner, claim, why).await,
        }
    }

    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        if self.wrong == Wrong::HeartbeatsWithoutFence {
            let current: Vec<Claim> = {
                let granted = self.granted.lock().unwrap();
                claims.iter().filter_map(|claim| granted.get(&claim.id).cloned()).collect()
            };
            return Queue::heartbeat(&self.inner, &current).await;
        }
        Queue::heartbeat(&self.inner, claims).await
    }
}

/// The rules that a queue with this fault breaks, as the suite lists them.
async fn broken(wrong: Wrong) -> String {
    let checked = conforms(|| {
        let Fixture { queue, pass } = memory();
        let faulty = Faulty { inner: queue, wrong, granted: Mutex::default() };
        Fixture { queue: AnyQueue::new(faulty).unwrap(), pass }
    });
    match AssertUnwindSafe(checked).catch_unwind().await {
        Ok(()) => String::new(),
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap(),
    }
}

#[tokio::test]
async fn the_suite_finds_each_broken_rule() {
    let cases = [
        (Wrong::EveryPostWakes, "- only messages and answers wake a log:"),
        (Wrong::PostWakesNothing, "- an inbox message wakes a log:"),
        (
            Wrong::TakenMessagesWake,
            "- an inbox message that its holder has taken wakes nothing by release_until:",
        ),
        (Wrong::ReleaseForgetsMessages, "- a message that is posted BeforeRelease is taken once:"),
        (Wrong::ReleaseKeepsTheDueTime, "- ReleaseUntil(Never): Held becomes Idle:"),
        (Wrong::VoidClaimsRelease, "- a log is due when its lease has expired, and its old claim is void:"),
        (Wrong::HeartbeatsWithoutFence, "- heartbeats keep valid claims, and no others:"),
        (Wrong::LeasesNeverEnd, "- TimePasses: Held becomes Lost:"),
        (Wrong::GrantsTwice, "- of many rivals one claims a log:"),
        (Wrong::NewestFirst, "- logs that wait longest are claimed first, as many as there is room for:"),
        (Wrong::NeverParks, "- a log whose workers die without an append is parked:"),
        (Wrong::FailuresDoNotCount, "- a log that fails repeatedly is parked, with the reason:"),
        (Wrong::FailuresDoNotCount, "- a log that fails permanently is parked at once, with the reason:"),
        (Wrong::LeavesToNoOne, "- ReleaseToOthers: Held becomes Ready:"),
        (Wrong::HidesTakeovers, "- a claim says how long its log was due, and whether it was taken over:"),
        (Wrong::IgnoresNeeds, "- a log is claimed by workers that have what it needs:"),
        (Wrong::IgnoresLeaseNumbers, "- a lease lasts as long as the clock of the worker says that it may:"),
    ];
    for (wrong, rule) in cases {
        let found = broken(wrong).await;
        assert!(found.contains(rule), "{wrong:?}: {found}");
    }
    assert_eq!(broken(Wrong::Nothing).await, "");
}
