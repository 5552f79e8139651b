//! Appending: the statement that writes checks the claim, and the number of events.

use std::sync::Arc;

use polylogue_core::chain::Link;
use polylogue_core::{Claim, LogId, StoreError, Summary};
use polylogue_store::parts::{Batch, sealed};

use crate::append_group::{Append, Appended};
use crate::database::{Access, Retry};
use crate::error::Failure;
use crate::listing::state_of;
use crate::logs::{LogEnd, Logs};

/// Notes that events are lost which were acknowledged. Only of a log that no other process has continued since.
const LOST: &str = "UPDATE polylogue.logs SET lost_events = lost_events + $2 WHERE nr = $1 AND events = $3";

/// The end of a log in the database, and who has claimed it.
struct StoredEnd {
    nr: i64,
    fence: i64,
    is_ours: bool,
    events: u64,
    chain: Vec<u8>,
}

impl Logs {
    pub(crate) async fn append(&self, claim: &Claim, batch: Batch) -> Result<(), StoreError> {
        let held = self
            .held()
            .get(&claim.id)
            .filter(|(fence, _)| *fence == claim.fence)
            .map(|(_, end)| Arc::clone(end));
        let Some(end) = held else {
            // Another store's claim, or one that was released.
            self.stored_end(&claim.id).await?;
            return Err(StoreError::Fenced { id: claim.id.clone() });
        };
        // An append whose caller did not wait is finished first.
        let mut end = end.lock().await;
        if end.is_doubtful {
            self.refresh(claim, &mut end).await?;
        }
        if batch.follows(&claim.id, end.events).is_err() {
            let stored = self.claimed_end(claim, &mut end).await?;
            batch.follows(&claim.id, stored.events)?;
            self.refresh(claim, &mut end).await?;
        }
        let (next, links) = next_end(&end, &batch);
        let append = Arc::new(Append {
            nr: end.nr,
            fence: end.fence,
            kept: end.events.cast_signed(),
            taken: batch.events.iter().filter_map(|event| Some(event.inbox?.cast_signed())).collect(),
            json: batch.json,
            links,
            end: next.link.bytes().to_vec(),
            summary: sealed(&next.summary, next.link),
            state: state_of(&next.summary),
        });
        end.is_doubtful = true;
        self.write(claim, &append, (&mut end, &next)).await?;
        *end = next;
        Ok(())
    }

    /// Writes a batch. One whose connection is lost is settled: the statement is executed again, which does nothing if it was kept, and
    /// the end of the log tells whether it was.
    async fn write(
        &self,
        claim: &Claim,
        append: &Arc<Append>,
        (end, next): (&mut LogEnd, &LogEnd),
    ) -> Result<(), StoreError> {
        let mut retry = Retry::new(&self.database);
        loop {
            match self.appends.execute(append).await {
                Ok(Appended::Kept { is_watched }) => {
                    self.announcements.note(is_watched);
                    return Ok(());
                }
                Ok(Appended::No) => {
                    let stored = self.claimed_end(claim, end).await?;
                    if stored.events == next.events && stored.chain == next.link.bytes() {
                        return Ok(());
                    }
                    return Err(StoreError::Gap {
                        id: claim.id.clone(),
                        kept: stored.events,
                        given: end.events,
                    });
                }
                // The number of the event is taken by one that is in no head.
                Err(Failure::Duplicate) => {
                    return Err(self.damaged(&claim.id, "it has more events than it should"));
                }
                Err(failure) => retry.after(failure).await?,
            }
        }
    }

    async fn stored_end(&self, id: &LogId) -> Result<StoredEnd, StoreError> {
        let sql = "SELECT nr, fence, coalesce(holder, ''), events, chain FROM polylogue.logs WHERE tenant = $1 AND id = $2";
        let row = &self.row_of_log(Access::Read, sql, id, &[]).await?;
        Ok(StoredEnd {
            nr: self.get(row, 0)?,
            fence: self.get(row, 1)?,
            is_ours: self.get::<String>(row, 2)? == self.node,
            events: self.get::<i64>(row, 3)?.cast_unsigned(),
            chain: self.get(row, 4)?,
        })
    }

    /// The end of a log, if the claim is valid. A database that has fewer events than it had acknowledged has failed over to a copy that
    /// lacked them: their number is noted for those who look at the cluster, also if the claim is lost with them.
    async fn claimed_end(&self, claim: &Claim, end: &mut LogEnd) -> Result<StoredEnd, StoreError> {
        let stored = self.stored_end(&claim.id).await?;
        if stored.nr == end.nr && stored.events < end.events && !end.is_loss_noted {
            end.is_loss_noted = true;
            let (lost, left) = ((end.events - stored.events).cast_signed(), stored.events.cast_signed());
            // The caller receives an error anyway.
            let _ = self.database.query_once(Access::Write, LOST, &[&stored.nr, &lost, &left]).await;
        }
        match stored.is_ours && stored.fence == end.fence && stored.nr == end.nr {
            true => Ok(stored),
            false => Err(StoreError::Fenced { id: claim.id.clone() }),
        }
    }

    /// Reads the end of a log again.
    async fn refresh(&self, claim: &Claim, end: &mut LogEnd) -> Result<(), StoreError> {
        let stored = self.claimed_end(claim, end).await?;
        let is_known = stored.events == end.events && stored.chain == end.link.bytes();
        if !is_known {
            let events = self.read(&claim.id, 0..u64::MAX).await?;
            end.link =
                Link::from_bytes(&stored.chain).ok_or_else(|| self.damaged(&claim.id, "its end is lost"))?;
            (end.events, end.summary) = (stored.events, Summary::of(&events, end.has_team));
            end.is_loss_noted = false;
        }
        end.is_doubtful = false;
        Ok(())
    }

    fn damaged(&self, id: &LogId, why: &str) -> StoreError {
        StoreError::Damaged { place: self.place_of(id), why: why.into(), intact: 0 }
    }
}

/// The end of a log after `batch`, and the link of each event.
fn next_end(end: &LogEnd, batch: &Batch) -> (LogEnd, Vec<Vec<u8>>) {
    let mut next = LogEnd { is_doubtful: false, ..end.clone() };
    let links = batch.json.iter().map(|json| {
        next.link = next.link.next(json.as_bytes());
        next.link.bytes().to_vec()
    });
    let links = links.collect();
    next.events += batch.json.len() as u64;
    batch.events.iter().for_each(|event| next.summary.add(event, end.has_team));
    (next, links)
}
