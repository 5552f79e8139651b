//! How fast the stores are: `cargo bench -p polylogue-store`, with a folder as argument to measure another disk.
//!
//! Events of about 460 bytes are appended one at a time, each acknowledged before the next of its log.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use polylogue_core::{AnyStore, Body, Event, LogId, Message, Meta, Name, Path, Store, StoreError, Timestamp};
use polylogue_store::{Jsonl, Memory, Sqlite};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let place = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).map(PathBuf::from);
    let dir = tempfile::tempdir_in(place.unwrap_or_else(std::env::temp_dir))?;
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        println!("store   logs  events/s  reading, events/s");
        for (name, store, one, many) in [
            ("memory", AnyStore::new(Memory::new()), 100_000, 2_000),
            ("jsonl", AnyStore::new(Jsonl::open(dir.path().join("jsonl"))?), 1_000, 100),
            ("sqlite", AnyStore::new(Sqlite::open(dir.path().join("chats.db"))?), 1_000, 200),
        ] {
            for (logs, events) in [(1, one), (64, many)] {
                let (wrote, read) = measure(&store, logs, events).await?;
                let rate = |time: Duration| (logs * events) as f64 / time.as_secs_f64();
                println!("{name:7} {logs:4} {:9.0} {:18.0}", rate(wrote), rate(read));
            }
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    opening(dir.path())
}

/// How long it takes to append, and to read it all again.
async fn measure(store: &AnyStore, logs: u64, events: u64) -> Outcome<(Duration, Duration)> {
    let claims = try_join_all((0..logs).map(|log| async move {
        store.create(&LogId::new(&format!("{logs}-{log}"))?, &Meta::default()).await
    }))
    .await?;
    let begun = Instant::now();
    try_join_all(claims.iter().map(|claim| async move {
        for seq in 0..events {
            store.append(claim, &[event(seq)]).await?;
        }
        Ok::<_, StoreError>(())
    }))
    .await?;
    let wrote = begun.elapsed();
    let begun = Instant::now();
    let read = try_join_all(claims.iter().map(|claim| store.read(&claim.id, 0))).await?;
    let took = begun.elapsed();
    if read.iter().map(Vec::len).sum::<usize>() as u64 != logs * events {
        return Err("events are missing".into());
    }
    Ok((wrote, took))
}

fn event(seq: u64) -> Arc<Event> {
    let body = Body::Message(Message::text(Name::user(), "four hundred bytes or so ".repeat(15)));
    Arc::new(Event {
        seq,
        at: Path::root(),
        time: Timestamp(1_763_712_000_000),
        ran_ms: 0,
        inbox: None,
        body,
    })
}

/// The median time to open a database, and to close it.
fn opening(dir: &std::path::Path) -> Outcome {
    const TIMES: usize = 21;
    let existing = dir.join("chats.db");
    println!("\nsqlite: opening and closing, microseconds");
    for (name, fresh) in [("new", true), ("existing", false)] {
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        for nth in 0..TIMES {
            let place = if fresh { dir.join(format!("new-{nth}.db")) } else { existing.clone() };
            let begun = Instant::now();
            let store = Sqlite::open(place)?;
            opened.push(begun.elapsed().as_micros());
            let begun = Instant::now();
            drop(store);
            closed.push(begun.elapsed().as_micros());
        }
        opened.sort_unstable();
        closed.sort_unstable();
        let median = |times: &[u128]| times.get(TIMES / 2).copied().unwrap_or_default();
        println!("{name:8} {:8} {:8}", median(&opened), median(&closed));
    }
    Ok(())
}
