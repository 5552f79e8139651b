//! Repairing a damaged log: its intact beginning stays, the rest is set aside in a table of its own.

use polylogue_core::chain::Link;
use polylogue_core::{LogId, Meta, StoreError, Summary};
use polylogue_store::parts::{first_link, sealed};

use crate::database::{Access, Parameter};
use crate::listing::state_of;
use crate::logs::{Logs, as_json};

/// Does nothing if the log is claimed, or was since it was read.
const REPAIR: &str = "WITH log AS (
        UPDATE polylogue.logs SET events = $4, origin = $5, chain = $6, summary = $7, state = $8, title = $9,
            team = CASE WHEN $10 THEN team END, fence = nextval('polylogue.fences'), holder = NULL, lease = NULL
        WHERE tenant = $1 AND id = $2 AND fence = $3 AND (holder IS NULL OR lease < now()) AND polylogue.is_format($12)
        RETURNING nr),
    gone AS (DELETE FROM polylogue.events USING log WHERE log = log.nr AND seq >= $4 RETURNING seq, json, chain),
    aside AS (INSERT INTO polylogue.set_aside(tenant, id, seq, json, chain) SELECT $1, $2, seq, json, chain FROM gone),
    linked AS (
        UPDATE polylogue.events SET chain = c FROM log, unnest($11::bytea[]) WITH ORDINALITY AS t(c, ord)
        WHERE events.log = log.nr AND events.seq = ord - 1)
    SELECT nr FROM log";

impl Logs {
    /// Keeps the intact beginning of a damaged log. Returns how many events remain.
    pub(crate) async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        let sql = "SELECT fence FROM polylogue.logs WHERE tenant = $1 AND id = $2";
        let fence: i64 = self.get(&self.row_of_log(Access::Read, sql, id, &[]).await?, 0)?;
        let found = self.read_intact(id).await?;
        let damage = match found.damage {
            None => return Ok(found.events.len() as u64),
            // It is intact.
            Some(newer @ StoreError::UnknownEvent { .. }) => return Err(newer),
            Some(damage) => damage,
        };
        self.unpack_damaged(id).await?;
        let kept = usize::try_from(damage.intact()).unwrap_or(usize::MAX);
        let events = found.events.get(..kept).unwrap_or(&found.events);
        let texts = self.texts(id, events.len()).await?;
        let (meta, _) = self.stored_meta(id).await?;
        let (origin, link, links) = relinked(id, &meta, &texts);
        let has_team = !meta.team.is_null();
        let (count, summary) = (events.len() as u64, Summary::of(events, has_team));
        let (state, summary) = (state_of(&summary), sealed(&summary, link));
        let (title, number, format) = (as_json(&meta.title), count.cast_signed(), self.database.format());
        let more: [&dyn Parameter; 10] = [
            &fence,
            &number,
            &origin.bytes(),
            &link.bytes(),
            &summary,
            &state,
            &title,
            &has_team,
            &links,
            &format,
        ];
        if self.of_log(Access::Write, REPAIR, id, &more).await?.is_empty() {
            let holder = self.holder(id).await?.unwrap_or_else(|| "another process".into());
            return Err(StoreError::Busy { id: id.clone(), holder });
        }
        Ok(count)
    }

    /// The first `count` events as they are stored.
    async fn texts(&self, id: &LogId, count: usize) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT json FROM polylogue.logs JOIN polylogue.events ON log = nr
            WHERE tenant = $1 AND id = $2 AND seq < $3 ORDER BY seq";
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = self.of_log(Access::Read, sql, id, &[&count]).await?;
        rows.iter().map(|row| self.get(row, 0)).collect()
    }
}

/// The links of a log with this `meta` and these events: the first, the last, and that of each event.
fn relinked(id: &LogId, meta: &Meta, events: &[String]) -> (Link, Link, Vec<Vec<u8>>) {
    let parent = meta.parent.as_ref().and_then(|parent| serde_json::to_string(parent).ok());
    let created = meta.created.0.cast_signed();
    let origin = first_link(id.as_str(), &meta.title, created, &meta.team.to_string(), parent.as_deref());
    let mut link = origin;
    let links = events.iter().map(|json| {
        link = link.next(json.as_bytes());
        link.bytes().to_vec()
    });
    let links = links.collect();
    (origin, link, links)
}
