//! Appends that wait at the same time share a statement: its round trip, and its commit.

use std::collections::VecDeque;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::database::{Access, Database, Parameter};
use crate::error::Failure;

/// The most logs in a statement, and bytes of their events unless the first has more.
const MOST: (usize, usize) = (64, 4 << 20);

/// The function does nothing for a log whose claim or number of events is another one.
const APPEND: &str = "SELECT polylogue.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

/// Events that are appended to one log.
pub(crate) struct Append {
    pub(crate) nr: i64,
    pub(crate) fence: i64,
    /// How many events the log has before.
    pub(crate) kept: i64,
    pub(crate) json: Vec<String>,
    /// The inbox messages that they take.
    pub(crate) taken: Vec<i64>,
    /// The link of each event, and of the last one.
    pub(crate) links: Vec<Vec<u8>>,
    pub(crate) end: Vec<u8>,
    pub(crate) summary: String,
    pub(crate) state: &'static str,
}

impl Append {
    fn bytes(&self) -> usize {
        self.json.iter().map(String::len).sum()
    }
}

/// What the database did with an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    /// Nothing.
    No,
    /// It is kept, and whether a process follows the log.
    Kept { is_watched: bool },
}

/// Executes the appends of a store. While as many statements run as there are connections, further appends are gathered, so that those of
/// many logs take few statements, and that of one log takes one at once.
pub(crate) struct Appends {
    database: Arc<Database>,
    node: String,
    /// How long the lease of a claim lasts after an append.
    lease_ms: i64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    appends: VecDeque<Pending>,
    /// How many statements run.
    statements: usize,
}

/// An append, and who waits for it.
struct Pending {
    append: Arc<Append>,
    answer: oneshot::Sender<Result<Appended, Failure>>,
}

impl Appends {
    pub(crate) fn new(database: Arc<Database>, node: String, lease_ms: i64) -> Self {
        Self { database, node, lease_ms, waiting: Mutex::default() }
    }

    /// Executes an append once. Only one at a time may be of the same log.
    pub(crate) async fn execute(self: &Arc<Self>, append: &Arc<Append>) -> Result<Appended, Failure> {
        let (answer, answered) = oneshot::channel();
        if self.add(Pending { append: Arc::clone(append), answer }) {
            let appends = Arc::clone(self);
            tokio::spawn(async move {
                while let Some(group) = appends.next() {
                    appends.commit(group).await;
                }
            });
        }
        let stopped = |_| Err(Failure::Lost("the store is closed".into()));
        answered.await.unwrap_or_else(stopped)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has an append wait. Returns whether another statement can run.
    fn add(&self, pending: Pending) -> bool {
        let mut waiting = self.waiting();
        waiting.appends.push_back(pending);
        let has_place = waiting.statements < Database::CONNECTIONS;
        waiting.statements += usize::from(has_place);
        has_place
    }

    /// The appends of the next statement, in the order in which they lock their logs, so that two statements never wait for each other.
    fn next(&self) -> Option<Vec<Pending>> {
        let mut waiting = self.waiting();
        let (mut group, mut bytes) = (Vec::new(), 0);
        while group.len() < MOST.0
            && let Some(next) = waiting.appends.front()
            && (group.is_empty() || bytes + next.append.bytes() <= MOST.1)
        {
            bytes += next.append.bytes();
            group.extend(waiting.appends.pop_front());
        }
        if group.is_empty() {
            waiting.statements -= 1;
            return None;
        }
        group.sort_by_key(|pending: &Pending| pending.append.nr);
        Some(group)
    }

    async fn commit(&self, group: Vec<Pending>) {
        match self.write(&group).await {
            Ok(results) => {
                let results = results.into_iter().chain(std::iter::repeat(Appended::No));
                group.into_iter().zip(results).for_each(|(pending, result)| pending.settle(Ok(result)));
            }
            // One of them is at fault: each is tried alone.
            Err(Failure::Duplicate | Failure::Again(_) | Failure::Refused(_)) if group.len() > 1 => {
                for pending in group {
                    let alone = self.write(slice::from_ref(&pending)).await;
                    let result = alone.map(|results| results.first().copied().unwrap_or(Appended::No));
                    pending.settle(result);
                }
            }
            Err(failure) => group.into_iter().for_each(|pending| pending.settle(Err(failure.clone()))),
        }
    }

    async fn write(&self, group: &[Pending]) -> Result<Vec<Appended>, Failure> {
        let appends = || group.iter().map(|pending| &*pending.append);
        let nrs: Vec<i64> = appends().map(|append| append.nr).collect();
        let fences: Vec<i64> = appends().map(|append| append.fence).collect();
        let kept: Vec<i64> = appends().map(|append| append.kept).collect();
        let counts: Vec<i32> =
            appends().map(|append| i32::try_from(append.json.len()).unwrap_or(i32::MAX)).collect();
        let json: Vec<&str> = appends().flat_map(|append| &append.json).map(String::as_str).collect();
        let links: Vec<&[u8]> = appends().flat_map(|append| &append.links).map(Vec::as_slice).collect();
        let ends: Vec<&[u8]> = appends().map(|append| append.end.as_slice()).collect();
        let summaries: Vec<&str> = appends().map(|append| append.summary.as_str()).collect();
        let states: Vec<&str> = appends().map(|append| append.state).collect();
        let taken_counts: Vec<i32> =
            appends().map(|append| i32::try_from(append.taken.len()).unwrap_or(i32::MAX)).collect();
        let taken: Vec<i64> = appends().flat_map(|append| append.taken.iter().copied()).collect();
        let parameters: [&dyn Parameter; 13] = [
            &nrs, &fences, &self.node, &kept, &counts, &json, &links, &ends, &summaries, &states,
            &self.lease_ms, &taken_counts, &taken,
        ];
        let rows = self.database.query_once(Access::Write, APPEND, &parameters).await?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        let results: Vec<i16> = self.database.get(row, 0).map_err(Failure::Refused)?;
        let appended = |result: i16| match result {
            0 => Appended::No,
            result => Appended::Kept { is_watched: result == 2 },
        };
        Ok(results.into_iter().map(appended).collect())
    }
}

impl Pending {
    fn settle(self, result: Result<Appended, Failure>) {
        // Fails only if the store is being closed.
        let _ = self.answer.send(result);
    }
}
