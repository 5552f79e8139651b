//! The store in memory as a queue.

use std::sync::atomic::Ordering;
use std::time::Duration;

use polylogue_core::{
    Claim, Due, Features, Heartbeat, LeaseNumber, LogId, MAX_TRIES, ParkedLog, Queue, StoreError, Timestamp,
};

use super::logs::Log;
use super::{Memory, not_found};
use crate::claims;

impl Queue for Memory {
    async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        let (now, lease) = (self.now(), self.lease());
        let mut logs = self.logs();
        let mut claims: Vec<Claim> = Vec::new();
        loop {
            let is_claimable = |id: &LogId| {
                !except.contains(id) && logs.by_id.get(id).is_some_and(|log| log.is_claimable(now, ended))
            };
            let due = logs.due.due(now, offers, room.saturating_sub(claims.len()), is_claimable);
            if due.is_empty() {
                return Ok(claims);
            }
            // Those that are parked take no room, and others are looked for.
            for id in due {
                let waiting = logs.by_id.get(&id).map(|log| (log.due(), log.writer.is_some()));
                let (due, is_takeover) = waiting.unwrap_or_default();
                let waited = Duration::from_millis(now.saturating_sub(due.unwrap_or(now)));
                let claim = Claim::new(id, claims::next_fence()).found_after(waited, is_takeover);
                if claims.len() < room && logs.take(&claim, lease) {
                    claims.push(claim);
                }
            }
        }
    }

    async fn last_lease(&self) -> Result<LeaseNumber, StoreError> {
        Ok(LeaseNumber(self.leases.load(Ordering::Relaxed)))
    }

    async fn release_until(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        let now = self.now();
        let mut logs = self.logs();
        if let Some(log) = logs.by_id.get_mut(&claim.id).filter(|log| log.is_claimed_by(&claim)) {
            log.queued.is_parked = false;
            log.queued.progressed();
        }
        logs.end_claim(&claim, Some(time(due, now)), now);
        Ok(())
    }

    async fn release_at_rest(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        let now = self.now();
        let mut logs = self.logs();
        let Some(log) = logs.by_id.get_mut(&claim.id).filter(|log| log.is_claimed_by(&claim)) else {
            return Ok(());
        };
        let queued = &mut log.queued;
        let due = match due {
            _ if queued.is_parked && !queued.has_progressed => None,
            Due::At(at) if queued.is_parked => Some(at.0),
            due => queued.due.and_then(|_| time(due, now)),
        };
        // One that is parked needs an append.
        if !queued.is_parked || queued.has_progressed {
            queued.is_parked = false;
            queued.progressed();
        }
        logs.end_claim(&claim, Some(due), now);
        Ok(())
    }

    async fn release_failed(&self, claim: Claim, due: Due, why: &str) -> Result<(), StoreError> {
        let now = self.now();
        let mut logs = self.logs();
        let Some(log) = logs.by_id.get_mut(&claim.id).filter(|log| log.is_claimed_by(&claim)) else {
            return Ok(());
        };
        log.queued.why = Some(why.to_owned());
        if std::mem::take(&mut log.queued.has_progressed) {
            log.queued.tries = 0;
        }
        if log.queued.tries >= MAX_TRIES {
            logs.requeue(&claim.id, Log::park);
        } else {
            log.queued.is_parked = false;
            logs.end_claim(&claim, Some(time(due, now)), now);
        }
        if due == Due::Never {
            // Unless it is woken.
            logs.requeue(&claim.id, |log| {
                if log.queued.due.is_none() {
                    log.park();
                    log.queued.tries = log.queued.tries.max(1);
                }
            });
        }
        Ok(())
    }

    async fn release_to_others(&self, claim: Claim, why: &str) -> Result<(), StoreError> {
        let now = self.now();
        let mut logs = self.logs();
        let Some(log) = logs.by_id.get_mut(&claim.id).filter(|log| log.is_claimed_by(&claim)) else {
            return Ok(());
        };
        let queued = &mut log.queued;
        queued.why = Some(why.to_owned());
        if !queued.is_parked {
            queued.tries = queued.tries.saturating_sub(1);
        }
        let due = queued.due.map(|_| now);
        logs.end_claim(&claim, Some(due), now);
        Ok(())
    }

    async fn schedule(&self, id: &LogId, due: Due, needs: Option<&Features>) -> Result<(), StoreError> {
        let now = self.now();
        let mut logs = self.logs();
        if !logs.by_id.contains_key(id) {
            return Err(not_found(id));
        }
        logs.requeue(id, |log| {
            let (is_held, has_holder, due) = (log.is_held(now), log.writer.is_some(), time(due, now));
            let queued = &mut log.queued;
            queued.unpark();
            needs.into_iter().for_each(|needs| queued.needs = needs.clone());
            // The holder may continue, though its lease has expired.
            queued.is_woken |= has_holder && due.is_some();
            if !is_held {
                queued.due = due;
            }
        });
        Ok(())
    }

    async fn set_needs(&self, id: &LogId, needs: &Features) -> Result<(), StoreError> {
        let mut logs = self.logs();
        if !logs.by_id.contains_key(id) {
            return Err(not_found(id));
        }
        logs.requeue(id, |log| log.queued.needs = needs.clone());
        Ok(())
    }

    async fn needs(&self, id: &LogId) -> Result<Features, StoreError> {
        self.logs().by_id.get(id).map(|log| log.queued.needs.clone()).ok_or_else(|| not_found(id))
    }

    async fn is_queued(&self, id: &LogId) -> Result<bool, StoreError> {
        self.logs().by_id.get(id).map(|log| log.queued.due.is_some()).ok_or_else(|| not_found(id))
    }

    async fn continue_if_lost(&self, claim: &Claim) -> Result<(), StoreError> {
        let mut logs = self.logs();
        let lease = logs.by_id.get(&claim.id).and_then(|log| log.writer);
        if let Some((_, lease)) = lease.filter(|(fence, _)| *fence == claim.fence) {
            logs.requeue(&claim.id, |log| log.queued.due = Some(log.queued.due.unwrap_or(lease.until)));
        }
        Ok(())
    }

    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        let lease = self.lease();
        let mut logs = self.logs();
        let mut renew = |claim: &Claim| {
            let is_woken = logs.by_id.get(&claim.id).filter(|log| log.is_claimed_by(claim))?.has_news();
            logs.requeue(&claim.id, |log| {
                log.writer = Some((claim.fence, lease));
                // One that was claimed by its id is due when it was.
                log.queued.due = log.queued.due.map(|due| due.max(lease.until));
            });
            Some(Heartbeat { claim: claim.clone(), is_woken })
        };
        Ok(claims.iter().filter_map(&mut renew).collect())
    }

    async fn parked(&self) -> Result<Vec<ParkedLog>, StoreError> {
        let logs = self.logs();
        let is_parked = logs.by_id.iter().filter(|(_, log)| log.queued.is_parked);
        let parked = is_parked.map(|(id, log)| ParkedLog {
            id: id.clone(),
            holder: claims::this_process(),
            tries: log.queued.tries,
            why: log.queued.why.clone(),
        });
        let mut parked: Vec<ParkedLog> = parked.collect();
        parked.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(parked)
    }
}

/// The time in milliseconds since 1970, if there is one.
fn time(due: Due, now: u64) -> Option<u64> {
    due.time(Timestamp(now)).map(|time| time.0)
}
