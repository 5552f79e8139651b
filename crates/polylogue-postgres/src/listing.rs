//! Lists of logs, a piece at a time, without reading the logs.

use polylogue_core::chain::Link;
use polylogue_core::{Cursor, ListQuery, Listing, LogId, LogState, Page, StoreError, Summary, Timestamp};
use polylogue_store::parts::unsealed;
use tokio_postgres::Row;

use crate::database::{Access, Parameter};
use crate::logs::{Logs, as_json};

/// How many logs are asked for at once.
const PIECE: usize = 500;

/// Sorts behind every id, in the order of bytes.
const LAST_ID: &str = "~";

/// Conditions that the database can check without reading summaries; [`ListQuery::matches`] checks all. That on ids, which is `$4`, and
/// the time by which is sorted are given, so that the database uses the index that serves best. For each archive it uses the index, too: `EXISTS` would
/// have it read all of them.
macro_rules! list {
    ($ids:literal, $created:literal) => {
        concat!(
            "SELECT id, title, created_ms, team IS NOT NULL, parent, chain, summary,
                (SELECT true FROM polylogue.archives WHERE archives.log = logs.nr) IS NOT NULL FROM polylogue.logs WHERE tenant = $1 AND ",
            $ids,
            " AND (",
            $created,
            r#", id) < ($2, $3)
                AND ($5::text IS NULL OR parent_id = $5) AND ($6::text[] IS NULL OR state = ANY($6))
                AND ($7::bigint IS NULL OR created_ms >= $7 OR created_ms < 0)
                AND ($8::text IS NULL OR title = '"' || $8 || '"' OR starts_with(title, '"' || $8 || ' '))
            ORDER BY "#,
            $created,
            " DESC, id DESC LIMIT $9"
        )
    };
}

const LIST: &str = list!("$4::text IS NULL", "created_ms");
/// A sum has no index.
const LIST_OF_IDS: &str = list!("id >= $4 AND id < $4 || '~'", "(created_ms + 0)");

/// A state in the column for lists.
const fn name(state: LogState) -> &'static str {
    match state {
        LogState::Open => "open",
        LogState::Waiting => "waiting",
        LogState::Paused => "paused",
        LogState::Failed => "failed",
        LogState::Done => "done",
        LogState::Ended => "ended",
        LogState::Damaged => "damaged",
    }
}

/// The state of a log with this summary, as text.
pub(crate) fn state_of(summary: &Summary) -> &'static str {
    name(summary.state())
}

impl Logs {
    pub(crate) async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        if query.id.as_ref().is_some_and(|id| id.contains('\0')) {
            return Ok(Page::default());
        }
        let wanted = query.limit.unwrap_or(usize::MAX).saturating_add(1);
        let (mut found, mut after) = (Vec::new(), query.after.clone());
        loop {
            let rows = self.piece(query, after.as_ref(), wanted.min(PIECE)).await?;
            let is_last = rows.len() < wanted.min(PIECE);
            for row in &rows {
                let listing = self.listing(row).await?;
                after = Some(Cursor { created: listing.created, id: listing.id.clone() });
                found.extend(Some(listing).filter(|listing| query.matches(listing)));
            }
            if is_last || found.len() >= wanted {
                return Page::of(query, found.into_iter().map(Ok));
            }
        }
    }

    pub(crate) async fn count(&self) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM polylogue.logs WHERE tenant = $1";
        let rows = self.database.query(Access::Read, sql, &[&self.tenant]).await?;
        let count = rows.first().map_or(Ok(0), |row| self.get::<i64>(row, 0))?;
        Ok(count.cast_unsigned())
    }

    async fn piece(
        &self,
        query: &ListQuery,
        after: Option<&Cursor>,
        most: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let (created, id) =
            after.map_or((i64::MAX, LAST_ID), |at| (at.created.0.cast_signed(), at.id.as_str()));
        let parent = query.parent.as_ref().map(LogId::as_str);
        let by_state = !query.states.is_empty() && !query.states.contains(&LogState::Damaged);
        let states = by_state.then(|| query.states.iter().map(|state| name(*state)).collect::<Vec<_>>());
        let since = query.since.and_then(|Timestamp(since)| i64::try_from(since).ok());
        // Without the quotes around it.
        let team = query.team.as_ref().map(|team| as_json(team));
        let team = team.as_deref().and_then(|json| json.get(1..json.len() - 1));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let parameters: [&dyn Parameter; 9] =
            [&self.tenant, &created, &id, &query.id, &parent, &states, &since, &team, &most];
        let list = if query.id.is_some() { LIST_OF_IDS } else { LIST };
        self.database.query(Access::Read, list, &parameters).await
    }

    async fn listing(&self, row: &Row) -> Result<Listing, StoreError> {
        let id = LogId::new(&self.get::<String>(row, 0)?)?;
        let title: Option<String> = serde_json::from_str(&self.get::<String>(row, 1)?).ok();
        let created = Timestamp(self.get::<i64>(row, 2)?.cast_unsigned());
        let has_team = self.get(row, 3)?;
        let parent = self.get::<Option<String>>(row, 4)?.and_then(|json| serde_json::from_str(&json).ok());
        let (chain, summary): (Vec<u8>, String) = (self.get(row, 5)?, self.get(row, 6)?);
        let link = Link::from_bytes(&chain);
        let mut listing = Listing {
            title: title.clone().unwrap_or_default(),
            created,
            has_team,
            parent,
            is_archived: self.get(row, 7)?,
            ..Listing::damaged(id)
        };
        listing.is_damaged = title.is_none();
        match link.and_then(|link| unsealed(summary.into_bytes(), link)) {
            Some(summary) => listing.summary = summary,
            None => {
                let intact = self.read_intact(&listing.id).await?;
                listing.is_damaged |= intact.damage.is_some();
                listing.summary = Summary::of(&intact.events, has_team);
            }
        }
        Ok(listing)
    }
}
