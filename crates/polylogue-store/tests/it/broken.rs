//! The suite finds what is broken: a store with one fault at a time.

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use polylogue_core::{
    AnyStore, Claim, Event, ListQuery, LogId, Page, RecoveredEvents, Store, StoreError, StoreWrapper, Summary,
};
use polylogue_store::Memory;
use polylogue_test::store::{conforms, survives};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    ForgetsTheLastEvent,
    KeepsGaps,
    KeepsHalfOfABatch,
    IgnoresFences,
    NeverBusy,
    NeverReleases,
    ReadsFromTheStart,
    RangesHaveNoEnd,
    SalvagesNothing,
    ListsOldestFirst,
    NeverSummarizes,
    SummarizesOnce,
    IgnoresFilters,
    IgnoresCursors,
    RemovesNothing,
}

struct Faulty(AnyStore, Fault);

impl StoreWrapper for Faulty {
    fn inner(&self) -> &AnyStore {
        &self.0
    }

    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        match self.0.claim(id).await {
            Err(StoreError::Busy { id, .. }) if self.1 == Fault::NeverBusy => Ok(Claim::new(id, 0)),
            result => result,
        }
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let result = match self.1 {
            Fault::ForgetsTheLastEvent if batch.len() > 2 => {
                self.0.append(claim, &batch[..batch.len() - 1]).await
            }
            _ => self.0.append(claim, batch).await,
        };
        match (result, self.1) {
            (Err(StoreError::Gap { .. }), Fault::KeepsGaps)
            | (Err(StoreError::Fenced { .. }), Fault::IgnoresFences) => Ok(()),
            (Err(error @ StoreError::Gap { .. }), Fault::KeepsHalfOfABatch) => {
                let _ = self.0.append(claim, &batch[..batch.len() / 2]).await;
                let _ = self.0.append(claim, &batch[..1]).await;
                Err(error)
            }
            (result, _) => result,
        }
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        if self.1 == Fault::NeverReleases { Ok(()) } else { self.0.release(claim).await }
    }

    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        self.0.read(id, if self.1 == Fault::ReadsFromTheStart { 0 } else { from }).await
    }

    async fn read_range(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        let end = if self.1 == Fault::RangesHaveNoEnd { u64::MAX } else { range.end };
        self.0.read_range(id, range.start..end).await
    }

    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        let mut intact = self.0.read_intact(id).await?;
        if self.1 == Fault::SalvagesNothing {
            intact.events.clear();
        }
        Ok(intact)
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let mut query = query.clone();
        match self.1 {
            Fault::IgnoresFilters => (query.team, query.task, query.states) = (None, None, Vec::new()),
            Fault::IgnoresCursors => query.after = None,
            _ => {}
        }
        let mut page = self.0.list(&query).await?;
        match self.1 {
            Fault::ListsOldestFirst => page.logs.reverse(),
            Fault::NeverSummarizes => page.logs.iter_mut().for_each(|log| log.summary = Summary::default()),
            Fault::SummarizesOnce => {
                page.logs.iter_mut().for_each(|log| log.summary.turns = log.summary.turns.min(1))
            }
            _ => {}
        }
        Ok(page)
    }

    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        if self.1 == Fault::RemovesNothing {
            self.0.meta(id).await.map(drop)
        } else {
            self.0.remove(id).await
        }
    }
}

/// What the suite says of a store.
async fn verdict(test: impl Future<Output = ()>) -> String {
    let panic = AssertUnwindSafe(test).catch_unwind().await.err();
    panic.map_or_else(String::new, |panic| *panic.downcast::<String>().unwrap())
}

#[tokio::test]
async fn the_suite_names_the_rule_that_is_broken() {
    for (fault, rule) in [
        (Fault::ForgetsTheLastEvent, "events are kept in order"),
        (Fault::KeepsGaps, "events without gaps are kept"),
        (Fault::KeepsHalfOfABatch, "others refused as a whole"),
        (Fault::IgnoresFences, "the earlier claim is void"),
        (Fault::NeverBusy, "a claimed log is busy"),
        (Fault::NeverReleases, "a released log can be claimed"),
        (Fault::ReadsFromTheStart, "reading begins at the given event"),
        (Fault::RangesHaveNoEnd, "a range is a part of the log"),
        (Fault::SalvagesNothing, "a sound log is intact"),
        (Fault::ListsOldestFirst, "logs are listed newest first"),
        (Fault::NeverSummarizes, "the summary is that of all events after every append"),
        (Fault::SummarizesOnce, "newest first, with their summaries"),
        (Fault::IgnoresFilters, "a query lists what matches it"),
        (Fault::IgnoresCursors, "pages continue at their cursors"),
        (Fault::RemovesNothing, "a removed log is gone"),
    ] {
        let verdict = verdict(conforms(|| AnyStore::new(Faulty(Memory::new().into(), fault)))).await;
        assert!(verdict.contains(rule), "{fault:?}: {verdict}");
    }
    let sound = verdict(conforms(|| AnyStore::new(Faulty(Memory::new().into(), Fault::None)))).await;
    assert_eq!(sound, "");
}

#[tokio::test]
async fn the_suite_finds_a_store_that_forgets() {
    let verdict = verdict(survives(|| AnyStore::new(Memory::new()))).await;
    assert!(verdict.contains("what was acknowledged is there when the place is opened again"), "{verdict}");
}
