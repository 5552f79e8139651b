//! Archives: the events of a log at rest, packed into one row. A claim unpacks them.
//!
//! Packing and unpacking are one statement each, so a log is whole in one of the two places at any moment. Its blobs are packed one by one
//! where they are, and stay so: they are read in either form.

use polylogue_core::{Claim, LogId, StoreError};
use polylogue_store::parts::{packed, unpacked};

use crate::claim::{freed, is_long_over, is_woken};
use crate::database::{Access, Parameter};
use crate::logs::Logs;

/// Does nothing if the log is claimed, waits for a worker, or has changed since it was read. Takes the claim of a process that was silent for
/// long, as a claim does: if that process stood still, it appends nothing more, or the log would be in two places.
const PACK: &str = concat!(
    "WITH head AS (
        UPDATE polylogue.logs SET ",
    freed!(),
    ", fence = nextval('polylogue.fences')
        WHERE tenant = $1 AND id = $2 AND events = $3 AND chain = $4 AND due IS NULL AND polylogue.is_format($6)
            AND (holder IS NULL OR (",
    is_long_over!(),
    " AND NOT ",
    is_woken!(),
    "))
        RETURNING nr),
    put AS (
        INSERT INTO polylogue.archives(log, bytes) SELECT nr, $5 FROM head
        ON CONFLICT (log) DO UPDATE SET bytes = excluded.bytes RETURNING log),
    gone AS (DELETE FROM polylogue.events USING put WHERE events.log = put.log)
    SELECT nr FROM head"
);

/// Whether workers look at a log that no living process has claimed.
const IS_DUE: &str =
    concat!("SELECT due IS NOT NULL OR ", is_woken!(), " FROM polylogue.logs WHERE tenant = $1 AND id = $2");

/// Does nothing if the claim was lost, or another statement has unpacked it.
const UNPACK: &str = "WITH head AS (
        SELECT nr FROM polylogue.logs WHERE tenant = $1 AND id = $2 AND CLAIM FOR UPDATE),
    gone AS (DELETE FROM polylogue.archives USING head WHERE log = nr RETURNING log),
    put AS (
        INSERT INTO polylogue.events(log, seq, json, chain)
        SELECT log, seq, j, c FROM gone, unnest($3::bigint[], $4::text[], $5::bytea[]) AS t(seq, j, c) ON CONFLICT DO NOTHING)
    SELECT nr FROM head";

impl Logs {
    /// Packs the events and the blobs of a log.
    pub(crate) async fn archive(&self, id: &LogId) -> Result<(), StoreError> {
        let read = self.read_intact(id).await?;
        if let Some(damage) = read.damage {
            return Err(damage);
        }
        let (head, rows) = self.rows(id, 0..u64::MAX).await?;
        let link = head.link.map(|link| link.bytes().to_vec()).unwrap_or_default();
        let (events, bytes, format) = (head.events.cast_signed(), packed(&rows), self.database.format());
        if !self.of_log(Access::Write, PACK, id, &[&events, &link, &bytes, &format]).await?.is_empty() {
            return self.pack_blobs(id).await;
        }
        let id = id.clone();
        if let Some(holder) = self.holder(&id).await? {
            return Err(StoreError::Busy { id, holder });
        }
        match self.get(&self.row_of_log(Access::Read, IS_DUE, &id, &[]).await?, 0)? {
            true => Err(StoreError::Queued { id }),
            false => Err(StoreError::Busy { id, holder: "a process that was faster".into() }),
        }
    }

    /// Unpacks the events of a log that was claimed, if all are there. A damaged archive stays, and reading it says so.
    pub(crate) async fn unpack(&self, claim: &Claim) -> Result<(), StoreError> {
        let condition = "holder = $6 AND fence = $7 AND events = cardinality($3::bigint[])
            AND (events = 0 OR chain = ($5::bytea[])[cardinality($5::bytea[])])";
        let fence = claim.fence.cast_signed();
        self.unpack_if(&claim.id, condition, &[&self.node, &fence]).await
    }

    /// Unpacks what can be read of a log that no process has claimed, to be repaired.
    pub(crate) async fn unpack_damaged(&self, id: &LogId) -> Result<(), StoreError> {
        self.unpack_if(id, "(holder IS NULL OR lease < now())", &[]).await
    }

    async fn unpack_if(
        &self,
        id: &LogId,
        condition: &str,
        more: &[&dyn Parameter],
    ) -> Result<(), StoreError> {
        let sql = "SELECT bytes FROM polylogue.archives JOIN polylogue.logs ON log = nr WHERE tenant = $1 AND id = $2";
        let rows = self.of_log(Access::Read, sql, id, &[]).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let rows = unpacked(&self.get::<Vec<u8>>(row, 0)?, 0..u64::MAX);
        let seqs: Vec<i64> = rows.iter().map(|row| row.seq.cast_signed()).collect();
        let links: Vec<Vec<u8>> =
            rows.iter().map(|row| row.link.map(|link| link.bytes().to_vec()).unwrap_or_default()).collect();
        let texts: Vec<String> = rows.into_iter().map(|row| row.json).collect();
        let more = [&[&seqs as &dyn Parameter, &texts, &links][..], more].concat();
        self.of_log(Access::Write, &UNPACK.replace("CLAIM", condition), id, &more).await.map(drop)
    }
}
