//! Appending events to Postgres: one log, and 128 at once, next to the bare statement of an append, and to rows that are inserted without
//! Polylogue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use polylogue::kernel::data::LogId;
use polylogue::kernel::log::{AnyStore, Meta, Store as _};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::PostgresServer;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use crate::job::{Error, Result};
use crate::stores::event;
use crate::table;

/// Logs at once, the events appended to each, and what the bare statement took on two processors with a disk whose
/// synchronization takes 0.3 to 4 ms: the median in milliseconds and rows a second.
const SHAPES: [(usize, u32, &str); 2] = [(1, 1_000, "0.28 ms, 2,800/s"), (128, 100, "12 ms, 8,700/s")];

/// How often each is measured, all of them in turn. Medians count.
const RUNS: usize = 3;

/// The goal: at most so many times what the bare statement takes.
const GOAL: f64 = 1.5;

/// Connections of what is measured without Polylogue, whose statements are pipelined as in its store.
const CONNECTIONS: usize = 4;

/// What is executed without Polylogue for each event, with the number of a log, that of the event, and the event.
struct Bare {
    tables: &'static str,
    statement: &'static str,
}

/// What an append cannot do without: the claim and the number of events are checked in the row that is written.
const STATEMENT: Bare = Bare {
    tables: "DROP TABLE IF EXISTS bare_logs, bare_events;
        CREATE TABLE bare_logs(nr bigint PRIMARY KEY, events bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 1,
            holder text NOT NULL DEFAULT 'bench', tries int NOT NULL DEFAULT 0) WITH (fillfactor = 60);
        INSERT INTO bare_logs(nr) SELECT generate_series(0, 1000);
        CREATE TABLE bare_events(log bigint, seq bigint, json text NOT NULL, PRIMARY KEY(log, seq))",
    statement: "WITH head AS (
            UPDATE bare_logs SET events = events + 1, tries = 0
            WHERE nr = $1 AND fence = 1 AND holder = 'bench' AND events = $2::bigint RETURNING nr)
        INSERT INTO bare_events SELECT nr, $2, $3::text FROM head",
};

/// The least that stores an event.
const INSERT: Bare = Bare {
    tables: "DROP TABLE IF EXISTS plain; CREATE TABLE plain(log bigint, seq bigint, json text, PRIMARY KEY(log, seq))",
    statement: "INSERT INTO plain VALUES ($1, $2, $3)",
};

/// How long appends took, and all of them together.
struct Appended {
    times: Vec<Duration>,
    wall: Duration,
}

/// Of appends: the median and the 99th percentile in milliseconds, and how many there were in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    median_ms: f64,
    p99_ms: f64,
    rate: f64,
}

impl From<Appended> for Figures {
    #[expect(clippy::cast_precision_loss, reason = "counts of appends")]
    fn from(Appended { mut times, wall }: Appended) -> Self {
        times.sort_unstable();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        let [median_ms, p99_ms] = [50, 99].map(|share| at(share).as_secs_f64() * 1e3);
        Self { median_ms, p99_ms, rate: times.len() as f64 / wall.as_secs_f64() }
    }
}

impl Figures {
    /// The median of each figure of these runs.
    fn median(runs: &[Self]) -> Self {
        let figure = |of: fn(&Self) -> f64| {
            let mut figures: Vec<f64> = runs.iter().map(of).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or_default()
        };
        Self {
            median_ms: figure(|run| run.median_ms),
            p99_ms: figure(|run| run.p99_ms),
            rate: figure(|run| run.rate),
        }
    }

    /// How many times as much as `bare` it takes: of one log also the median, of many their rate, because their appends wait for each other.
    fn times(&self, bare: &Self, logs: usize) -> f64 {
        let rate = bare.rate / self.rate;
        if logs == 1 { rate.max(self.median_ms / bare.median_ms) } else { rate }
    }

    fn row(&self, name: &str, more: [String; 3]) -> Vec<String> {
        let figures =
            [format!("{:.2}", self.median_ms), format!("{:.2}", self.p99_ms), format!("{:.0}", self.rate)];
        [name.to_owned()].into_iter().chain(figures).chain(more).collect()
    }
}

/// Prints the same as [`print()`]. A goal that is missed is an error.
pub(crate) fn report() -> Result<()> {
    let missed = print()?;
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n       ").into()) }
}

/// Prints how long appends take; nothing where Postgres is not installed. Returns which goals are missed.
pub(crate) fn print() -> Result<Vec<String>> {
    let Some(server) = PostgresServer::start() else { return Ok(Vec::new()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (mut rows, mut missed) = (Vec::new(), Vec::new());
    for (logs, events, reference) in SHAPES {
        let mut runs: [Vec<Figures>; 3] = Default::default();
        for run in 0..RUNS {
            let [ours, statement, insert] = &mut runs;
            statement.push(runtime.block_on(bare(&server, &STATEMENT, logs, events))?.into());
            ours.push(runtime.block_on(self::ours(&server, run, logs, events))?.into());
            insert.push(runtime.block_on(bare(&server, &INSERT, logs, events))?.into());
        }
        let [ours, statement, insert] = runs.map(|runs| Figures::median(&runs));
        let (of_shape, is_missed) = rows_of(logs, [ours, statement, insert], reference);
        rows.extend(of_shape);
        missed.extend(is_missed);
    }
    let head = ["", "median, ms", "p99, ms", "appends/s", "of the statement", "goal", "reference"];
    let title = format!(
        "Events of 1 KiB appended to Postgres one by one, each synchronized to the disk; medians of {RUNS} runs"
    );
    table::print(&title, &head, &rows);
    Ok(missed)
}

/// The rows of so many logs, and the goal if it is missed, in words.
fn rows_of(
    logs: usize,
    [ours, statement, insert]: [Figures; 3],
    reference: &str,
) -> ([Vec<String>; 3], Option<String>) {
    let name = if logs == 1 { "one log".to_owned() } else { format!("{logs} logs at once") };
    let times = ours.times(&statement, logs);
    let is_met = times <= GOAL;
    let goal = if is_met { "met" } else { "missed" };
    let rows = [
        ours.row(&format!("{name}, Polylogue"), [format!("{times:.2}"), goal.into(), String::new()]),
        statement.row(
            &format!("{name}, the bare statement"),
            [String::new(), String::new(), reference.to_owned()],
        ),
        insert.row(&format!("{name}, an INSERT each"), Default::default()),
    ];
    let missed = format!(
        "appending to {name} takes {times:.2} times as much as the bare statement: it must be at most {GOAL}"
    );
    (rows, Some(missed).filter(|_| !is_met))
}

/// By the store of Polylogue, in conversations of their own.
async fn ours(server: &PostgresServer, run: usize, logs: usize, events: u32) -> Result<Appended> {
    let store = AnyStore::new(Postgres::open(Address::parse(&server.url())?)?);
    let store = &store;
    let claim = |nth: usize| async move {
        let id = LogId::new(&format!("log-{logs}-{run}-{nth}"))?;
        Ok::<_, Error>(store.create(&id, &Meta::default()).await?)
    };
    let claims = try_join_all((0..logs).map(claim)).await?;
    let begun = Instant::now();
    let one = |claim| async move {
        let mut times = Vec::new();
        for seq in 0..events {
            let event = Arc::new(event(seq)?);
            let begun = Instant::now();
            store.append(claim, &[event]).await?;
            times.push(begun.elapsed());
        }
        Ok::<_, Error>(times)
    };
    let times = try_join_all(claims.iter().map(one)).await?.concat();
    Ok(Appended { times, wall: begun.elapsed() })
}

/// By one statement each, into tables of their own.
async fn bare(server: &PostgresServer, bare: &Bare, logs: usize, events: u32) -> Result<Appended> {
    let _ = server.sql(bare.tables);
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS.min(logs) {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
        tokio::spawn(connection);
        let statement = client.prepare(bare.statement).await?;
        clients.push((client, statement));
    }
    let begun = Instant::now();
    let used = clients.iter().cycle().take(logs).enumerate();
    let times = try_join_all(used.map(|(log, client)| append(client, log, events))).await?.concat();
    Ok(Appended { times, wall: begun.elapsed() })
}

async fn append((client, statement): &(Client, Statement), log: usize, events: u32) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for seq in 0..events {
        let json = serde_json::to_string(&event(seq)?)?;
        let (log, seq) = (i64::try_from(log)?, i64::from(seq));
        let parameters: [&(dyn ToSql + Sync); 3] = [&log, &seq, &json];
        let begun = Instant::now();
        let stored = client.execute(statement, &parameters).await?;
        times.push(begun.elapsed());
        if stored != 1 {
            return Err(format!("the statement has stored {stored} events").into());
        }
    }
    Ok(times)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_stored_once_with_and_without_polylogue() {
        let Some(server) = PostgresServer::start() else { return };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        // Each measurement begins with empty tables.
        for run in 0..2 {
            for without in [&STATEMENT, &INSERT] {
                assert_eq!(runtime.block_on(bare(&server, without, 5, 4)).unwrap().times.len(), 20);
            }
            assert_eq!(runtime.block_on(ours(&server, run, 5, 4)).unwrap().times.len(), 20);
        }
        let counts = "SELECT (SELECT count(*) FROM plain), (SELECT count(*) FROM bare_events), (SELECT max(events) FROM bare_logs),
            (SELECT count(*) FROM polylogue.events)";
        assert_eq!(server.sql(counts), "20|20|4|40");
    }

    #[test]
    fn the_goal_is_for_the_median_of_one_log_and_for_the_rate_of_many() {
        let figures = |median_ms, rate| Figures { median_ms, p99_ms: 9.0, rate };
        let of = |logs, ours| rows_of(logs, [ours, figures(1.0, 1_000.0), figures(0.1, 9_000.0)], "");
        let goal = |logs, ours| {
            let (rows, missed) = of(logs, ours);
            assert_eq!(missed.is_some(), rows[0][5] == "missed", "what is missed is an error");
            rows[0][4..6].join(" ")
        };
        assert_eq!(goal(1, figures(1.5, 1_000.0)), "1.50 met");
        assert_eq!(goal(1, figures(2.0, 1_000.0)), "2.00 missed");
        assert_eq!(goal(1, figures(1.0, 500.0)), "2.00 missed");
        assert_eq!(goal(128, figures(2.0, 800.0)), "1.25 met");
        assert_eq!(goal(128, figures(0.5, 500.0)), "2.00 missed");
        let (_, missed) = of(128, figures(0.5, 500.0));
        assert!(missed.unwrap().starts_with("appending to 128 logs at once takes 2.00 times"));
        let runs = [figures(3.0, 10.0), figures(1.0, 30.0), figures(2.0, 20.0)];
        assert_eq!(Figures::median(&runs), figures(2.0, 20.0));
    }
}
