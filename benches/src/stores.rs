//! Cost of appending an event to a store: synchronized to the disk, with its checksum.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polylogue::kernel::data::LogId;
use polylogue::kernel::log::{AnyStore, Event, Meta, Store as _};
use polylogue_store::{Jsonl, Memory, Sqlite};
use serde_json::json;

use crate::job::{RUNS, Result};
use crate::table;

/// Number of events appended in a run, one by one.
const EVENTS: u32 = 1_000;

/// About the size of a model's reply.
const WORDS: usize = 160;

/// Prints the time of an append for all stores in turn. It depends on the disk.
pub(crate) fn report() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..RUNS {
        for (which, times) in times.iter_mut().enumerate() {
            let folder = tempfile::tempdir()?;
            let store = match which {
                0 => AnyStore::new(Memory::new()),
                1 => AnyStore::new(Sqlite::open(folder.path().join("bench.db"))?),
                _ => AnyStore::new(Jsonl::open(folder.path().join("bench"))?),
            };
            times.extend(runtime.block_on(appends(store))?);
        }
    }
    let names = ["memory", "SQLite", "JSON lines"];
    let rows: Vec<Vec<String>> =
        names.into_iter().zip(&mut times).map(|(name, times)| row(name, times)).collect();
    let head = ["", "least", "median", "95 of 100"];
    table::print("Microseconds to append an event of 1 KiB to a store", &head, &rows);
    Ok(())
}

async fn appends(store: AnyStore) -> Result<Vec<Duration>> {
    let claim = store.create(&LogId::new("bench")?, &Meta::default()).await?;
    let mut times = Vec::new();
    for seq in 0..EVENTS {
        let event = Arc::new(event(seq)?);
        let begun = Instant::now();
        store.append(&claim, &[event]).await?;
        times.push(begun.elapsed());
    }
    store.release(claim).await?;
    Ok(times)
}

pub(crate) fn event(seq: u32) -> Result<Event> {
    let text = "words ".repeat(WORDS);
    let parts = json!([{ "text": text }]);
    Ok(serde_json::from_value(
        json!({"seq": seq, "time_ms": 0, "type": "posted", "from": "Ann", "parts": parts}),
    )?)
}

fn row(name: &str, times: &mut [Duration]) -> Vec<String> {
    times.sort();
    let at = |hundredth: usize| times.get(times.len() * hundredth / 100);
    let figures = [at(0), at(50), at(95)]
        .map(|time| time.map_or(String::new(), |time| format!("{:.1}", time.as_secs_f64() * 1e6)));
    std::iter::once(name.to_owned()).chain(figures).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_appended() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let times = runtime.block_on(appends(AnyStore::new(Memory::new()))).unwrap();
        assert_eq!(times.len(), EVENTS as usize);
    }
}
