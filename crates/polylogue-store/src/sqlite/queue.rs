//! The database as a queue.

use polylogue_core::{
    Claim, Due, Features, Heartbeat, LeaseNumber, LogId, ParkedLog, Queue, QueueOverview, StoreError,
    Timestamp, WorkerInfo,
};

use super::Sqlite;
use super::due::{is_served, needed};
use crate::claims::ClaimGuard;

impl Sqlite {
    /// The time in milliseconds since 1970, if there is one.
    fn time(&self, due: Due) -> Option<u64> {
        due.time(Timestamp(self.clock.now())).map(|time| time.0)
    }
}

impl Queue for Sqlite {
    async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        // All leases are those of one machine, by a clock that does not jump.
        _ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        // Mostly nothing is due, and no other process has to wait for the lock of the database.
        let now = self.clock.now();
        let needs =
            self.reading(move |reader, place| reader.reading(place, |connection| needed(connection, now)));
        if room == 0 || !needs.await?.iter().any(|needs| is_served(needs, offers)) {
            return Ok(Vec::new());
        }
        let (offers, except, issuer) = (offers.clone(), except.to_vec(), self.issuer());
        let claims = self.writing(None, move |transaction| {
            let claims = transaction.claim_due(room, &offers, &except)?;
            Ok(claims.into_iter().map(|claim| issuer.grant(claim)).collect::<Vec<_>>())
        });
        Ok(claims.await?.into_iter().map(ClaimGuard::accept).collect())
    }

    async fn release_until(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        let due = self.time(due);
        self.releasing(claim, move |transaction, claim| transaction.release_until(claim, due)).await
    }

    async fn release_at_rest(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        let named = if let Due::At(Timestamp(at)) = due { Some(at) } else { None };
        let due = self.time(due);
        self.releasing(claim, move |transaction, claim| transaction.release_at_rest(claim, due, named)).await
    }

    async fn release_failed(&self, claim: Claim, due: Due, why: &str) -> Result<(), StoreError> {
        let (due, why) = (self.time(due), why.to_owned());
        self.releasing(claim, move |transaction, claim| transaction.release_failed(claim, due, &why)).await
    }

    async fn release_to_others(&self, claim: Claim, why: &str) -> Result<(), StoreError> {
        let why = why.to_owned();
        self.releasing(claim, move |transaction, claim| transaction.release_to_others(claim, &why)).await
    }

    async fn schedule(&self, id: &LogId, due: Due, needs: Option<&Features>) -> Result<(), StoreError> {
        let (id, due, needs) = (id.clone(), self.time(due), needs.cloned());
        self.writing(None, move |transaction| transaction.schedule(&id, due, needs.as_ref())).await
    }

    async fn set_needs(&self, id: &LogId, needs: &Features) -> Result<(), StoreError> {
        let (id, needs) = (id.clone(), needs.clone());
        self.writing(None, move |transaction| transaction.set_needs(&id, &needs)).await
    }

    async fn needs(&self, id: &LogId) -> Result<Features, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.needs(place, &id)).await
    }

    async fn is_queued(&self, id: &LogId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.is_queued(place, &id)).await
    }

    async fn continue_if_lost(&self, claim: &Claim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.writing(None, move |transaction| transaction.continue_if_lost(&claim)).await
    }

    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        let claims = claims.to_vec();
        self.writing(None, move |transaction| transaction.heartbeat(&claims)).await
    }

    async fn parked(&self) -> Result<Vec<ParkedLog>, StoreError> {
        self.reading(|reader, place| reader.parked(place)).await
    }

    async fn announce(&self, worker: Option<&WorkerInfo>) -> Result<(), StoreError> {
        let worker = worker.cloned();
        self.writing(None, move |transaction| transaction.announce(worker.as_ref())).await
    }

    async fn overview(&self, most: usize) -> Result<QueueOverview, StoreError> {
        // As a write, so that no two processes examine the lock of a third one at once.
        self.writing(None, move |transaction| transaction.overview(most)).await
    }
}
