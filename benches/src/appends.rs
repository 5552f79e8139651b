//! Appending events to Postgres: one log, and 128 at once, next to rows that are inserted without Polylogue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use polylogue::kernel::data::LogId;
use polylogue::kernel::log::{AnyStore, Meta, Store as _};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::PostgresServer;
use tokio_postgres::{Client, NoTls, Statement};

use crate::job::{Error, Result};
use crate::stores::event;
use crate::table;

/// Logs at once, the events appended to each, and what rows of the same size took on two processors with a disk whose
/// synchronization takes 0.3 to 4 ms: the median in milliseconds and rows a second.
const SHAPES: [(usize, u32, &str); 2] = [(1, 3_000, "0.28 ms, 2,800/s"), (128, 100, "12 ms, 8,700/s")];

/// Connections of the rows without Polylogue, whose statements are pipelined as in its store.
const CONNECTIONS: usize = 4;

/// How long appends took, and all of them together.
struct Appended {
    times: Vec<Duration>,
    wall: Duration,
}

/// Prints how long appends take; nothing where Postgres is not installed.
pub(crate) fn report() -> Result<()> {
    let Some(server) = PostgresServer::start() else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut rows = Vec::new();
    for (logs, events, reference) in SHAPES {
        let plain = runtime.block_on(plain(&server, logs, events))?;
        let ours = runtime.block_on(ours(&server, logs, events))?;
        let name = if logs == 1 { "one log".to_owned() } else { format!("{logs} logs at once") };
        rows.push(row(&format!("{name}, Polylogue"), ours, ""));
        rows.push(row(&format!("{name}, an INSERT each"), plain, reference));
    }
    let head = ["", "median, ms", "p99, ms", "appends/s", "reference"];
    table::print(
        "Events of 1 KiB appended to Postgres one by one, each synchronized to the disk",
        &head,
        &rows,
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts of appends")]
fn row(name: &str, appended: Appended, reference: &str) -> Vec<String> {
    let Appended { mut times, wall } = appended;
    times.sort_unstable();
    let at =
        |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
    let rate = times.len() as f64 / wall.as_secs_f64();
    vec![
        name.to_owned(),
        format!("{:.2}", at(50)),
        format!("{:.2}", at(99)),
        format!("{rate:.0}"),
        reference.to_owned(),
    ]
}

/// By the store of Polylogue, in conversations of their own.
async fn ours(server: &PostgresServer, logs: usize, events: u32) -> Result<Appended> {
    let store = AnyStore::new(Postgres::open(Address::parse(&server.url())?)?);
    let store = &store;
    let claim = |nth: usize| async move {
        Ok::<_, Error>(store.create(&LogId::new(&format!("log-{logs}-{nth}"))?, &Meta::default()).await?)
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

/// By one statement each, into a table of its own.
async fn plain(server: &PostgresServer, logs: usize, events: u32) -> Result<Appended> {
    let _ = server
        .sql("CREATE TABLE IF NOT EXISTS plain(log bigint, seq bigint, json text, PRIMARY KEY(log, seq))");
    let _ = server.sql("TRUNCATE plain");
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS.min(logs) {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
        tokio::spawn(connection);
        let statement = client.prepare("INSERT INTO plain VALUES ($1, $2, $3)").await?;
        clients.push((client, statement));
    }
    let begun = Instant::now();
    let used = clients.iter().cycle().take(logs).enumerate();
    let times = try_join_all(used.map(|(log, client)| insert(client, log, events))).await?.concat();
    Ok(Appended { times, wall: begun.elapsed() })
}

async fn insert((client, statement): &(Client, Statement), log: usize, events: u32) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for seq in 0..events {
        let json = serde_json::to_string(&event(seq)?)?;
        let begun = Instant::now();
        client.execute(statement, &[&i64::try_from(log)?, &i64::from(seq), &json]).await?;
        times.push(begun.elapsed());
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
        let plain = runtime.block_on(plain(&server, 5, 4)).unwrap();
        let ours = runtime.block_on(ours(&server, 5, 4)).unwrap();
        assert_eq!((plain.times.len(), ours.times.len()), (20, 20));
        assert_eq!(server.sql("SELECT count(*) FROM plain"), "20");
        assert_eq!(server.sql("SELECT count(*) FROM polylogue.events"), "20");
    }
}
