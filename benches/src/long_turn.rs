//! One turn of 100 tool calls with results of 5 KB, after a history of 105,000 tokens: what is stored and written, how long it takes to
//! resume, and whether appending a result takes longer at its end than at its beginning. Durable engines that store the whole state after each step store such a conversation 25 times over.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polylogue::agents::compaction::Compaction;
use polylogue::kernel::data::{
    DeltaSink, FinishReason, LogId, ModelError, Part, Reply, StoreError, ToolCall, ToolResult, ToolSpec,
    Usage, text_of,
};
use polylogue::kernel::log::{AnyStore, Body, Claim, Event, Store as _, StoreWrapper};
use polylogue::kernel::model::{Model, Request};
use polylogue::kernel::tool::{ToolCx, ToolError};
use polylogue::{Act, AnyModel, Assistant, Chat, Function, Limits, Log, Status, Tool, sequential};
use polylogue_postgres::{Address, Postgres};
use polylogue_store::{Jsonl, Sqlite};
use polylogue_test::postgres::PostgresServer;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::job::{RUNS, Result};
use crate::table;

/// Tool calls of the turn.
const CALLS: u64 = 100;
/// Bytes of a result.
const PAGE: usize = 5 * 1024;
/// Messages of the history, and the bytes of each: 105,000 tokens of 4 bytes.
const MESSAGES: usize = 42;
const MESSAGE: usize = 10_000;

/// Some prose of `bytes` bytes.
fn prose(seed: u64, bytes: usize) -> String {
    const WORDS: [&str; 16] = [
        "harbor", "ledger", "copper", "evening", "bridge", "signal", "winter", "garden", "letter", "engine",
        "market", "shadow", "river", "window", "pepper", "lantern",
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let word = usize::try_from(state % 16).ok().and_then(|nth| WORDS.get(nth));
        text.push_str(word.copied().unwrap_or_default());
        text.push(' ');
    }
    text.truncate(bytes);
    text
}

/// Reads page after page, by what the last result says. Waits forever after the page `hangs_after`.
#[derive(Clone)]
struct Reader {
    window: Option<u64>,
    hangs_after: Option<u64>,
    hung: Arc<Notify>,
}

impl Model for Reader {
    fn name(&self) -> &str {
        "test:reader"
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    async fn complete(
        &self,
        request: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        let bytes: usize = request.entries.iter().map(|entry| text_of(entry.parts()).len()).sum();
        let usage = Usage { input: Some(bytes as u64 / 4), output: Some(60), ..Usage::default() };
        if request.params.schema.is_some() {
            let said = json!({"task": "read all pages", "decisions": [], "facts": ["pages are long"], "done": [],
                "open": ["the next pages"], "files": [], "outdated": []});
            return Ok(Reply { usage, ..Reply::new(said.to_string()) });
        }
        let last =
            request.entries.last().map(|entry| text_of(entry.parts()).into_owned()).unwrap_or_default();
        let next =
            last.rsplit_once("next page: ").and_then(|(_, page)| page.trim().parse().ok()).unwrap_or(1);
        if self.hangs_after.is_some_and(|last| next > last) {
            self.hung.notify_one();
            std::future::pending::<()>().await;
        }
        if next > CALLS {
            return Ok(Reply { usage, ..Reply::new("All pages are read.") });
        }
        let call =
            ToolCall { id: format!("page_{next}"), tool: "read_page".into(), args: json!({"page": next}) };
        let parts = vec![Part::ToolCall(call)];
        Ok(Reply { finish: FinishReason::Calls, parts, usage, ..Reply::new("") })
    }
}

struct ReadPage(ToolSpec);

impl Tool for ReadPage {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> std::result::Result<ToolResult, ToolError> {
        let page = args.get("page").and_then(Value::as_u64).ok_or("`page` is missing")?;
        Ok(ToolResult::done(format!("{}\nnext page: {}", prose(page, PAGE - 20), page + 1)))
    }
}

fn chat(model: &Reader) -> Result<Chat> {
    let spec = ToolSpec::new("read_page", "Reads a page.", json!({"type": "object"})).repeatable();
    let rounds = u32::try_from(CALLS)? + 1;
    let ann = Assistant::new("Ann", AnyModel::new(model.clone()))?
        .tool(ReadPage(spec))
        .compaction(Compaction::default())
        .max_tool_rounds(rounds);
    let mut chat = Chat::builder("pages");
    for nth in 0..MESSAGES {
        let text = prose(1_000 + nth as u64, MESSAGE);
        chat = chat.participant(Function::new(format!("B{nth}"), move |_| Ok(Act::say(text.as_str())))?);
    }
    Ok(chat.participant(ann).policy(sequential()).build()?)
}

/// What the turn took.
#[derive(Debug, Clone, Copy)]
struct Taken {
    /// Bytes in the store, of the texts in it, and written to files.
    stored: u64,
    text: u64,
    written: u64,
    /// The time of the turn until it was killed, and from opening the log again to its end.
    run: Duration,
    resume: Duration,
}

/// What a turn took and left.
struct Turn {
    taken: Taken,
    #[cfg(test)]
    events: Vec<Arc<Event>>,
    /// How long appending each result took, in order.
    appends: Vec<Duration>,
}

/// A store that notes how long it takes to append results of tool calls.
struct Timed {
    inner: AnyStore,
    appends: Arc<Mutex<Vec<Duration>>>,
}

impl StoreWrapper for Timed {
    fn inner(&self) -> &AnyStore {
        &self.inner
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> std::result::Result<(), StoreError> {
        let begun = Instant::now();
        self.inner.append(claim, batch).await?;
        let took = begun.elapsed();
        if batch.iter().any(|event| matches!(event.body, Body::ToolReturned { .. })) {
            self.appends.lock().unwrap_or_else(PoisonError::into_inner).push(took);
        }
        Ok(())
    }
}

fn limits() -> Limits {
    Limits { calls: Some(10 * CALLS), ..Limits::default() }
}

/// Runs the turn until all calls but `left` are made, kills it, and resumes it with another store value.
async fn turn(
    open: &dyn Fn() -> Result<AnyStore>,
    stored: &dyn Fn() -> Result<u64>,
    window: Option<u64>,
    left: u64,
) -> Result<Turn> {
    let appends = Arc::<Mutex<Vec<Duration>>>::default();
    let open =
        || -> Result<AnyStore> { Ok(AnyStore::new(Timed { inner: open()?, appends: Arc::clone(&appends) })) };
    let id = LogId::new("pages")?;
    let model = Reader { window, hangs_after: Some(CALLS - left), hung: Arc::default() };
    let (before, begun) = (written()?, Instant::now());
    let first = chat(&model)?;
    let mut log = Log::create(open()?, id.clone()).await?.limits(limits());
    tokio::select! {
        run = first.run_in(&mut log, "Read all pages.") => return Err(format!("it ended: {:?}", run?.status).into()),
        () = model.hung.notified() => {}
    }
    drop(log);
    let (run, resumed) = (begun.elapsed(), Instant::now());
    let model = Reader { hangs_after: None, ..model };
    let mut log = Log::open(open()?, id).await?.limits(limits());
    let status = chat(&model)?.resume(&mut log).await?.status;
    if !matches!(status, Status::Closed { .. }) {
        return Err(format!("it did not end: {status:?}").into());
    }
    let resume = resumed.elapsed();
    let events = log.events().await;
    log.release().await?;
    let text = events.iter().map(text_len).sum::<usize>() as u64;
    let taken = Taken { stored: stored()?, text, written: written()? - before, run, resume };
    let appends = std::mem::take(&mut *appends.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Turn {
        taken,
        #[cfg(test)]
        events,
        appends,
    })
}

fn text_len(event: &Arc<Event>) -> usize {
    match &event.body {
        Body::Message(message) => message.text().len(),
        Body::ToolReturned { result: outcome, .. } => outcome.text().len(),
        Body::Compacted(compacted) => compacted.summary.text().len(),
        _ => 0,
    }
}

/// The bytes of the files in `folder`.
fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        sum += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(sum)
}

/// The bytes that this process has written so far; 0 on systems that do not count them.
fn written() -> Result<u64> {
    let Ok(text) = std::fs::read_to_string("/proc/self/io") else { return Ok(0) };
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(line.map_or(Ok(0), str::parse)?)
}

const STORES: [&str; 3] = ["SQLite", "JSON lines", "Postgres"];

/// Bytes of all tables, with their indexes and the texts that are stored apart.
const TABLES: &str = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class
    WHERE relnamespace = 'polylogue'::regnamespace AND relkind = 'r'";

/// The turn with the store of this number; `None` where its server is not installed.
async fn measured(store: usize, window: Option<u64>, left: u64) -> Result<Option<Turn>> {
    if store == 2 {
        let Some(server) = PostgresServer::start() else { return Ok(None) };
        let open = || Ok(AnyStore::new(Postgres::open(Address::parse(&server.url())?)?));
        return turn(&open, &|| Ok(server.sql(TABLES).parse()?), window, left).await.map(Some);
    }
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("logs");
    let open = || -> Result<AnyStore> {
        Ok(if store == 0 {
            Sqlite::open(place.join("bench.db"))?.into()
        } else {
            Jsonl::open(&place)?.into()
        })
    };
    turn(&open, &|| size(folder.path()), window, left).await.map(Some)
}

/// How long it may take to resume the turn.
const RESUME: Duration = Duration::from_millis(50);

/// How many times as long as in the first tenth of the turn appending a result may take in the last one.
const GROWTH: f64 = 1.5;

/// How long appending results took in the first and in the last tenth of turns.
#[derive(Debug, Default)]
struct Growth {
    first: Vec<Duration>,
    last: Vec<Duration>,
}

impl Growth {
    fn add(&mut self, appends: &[Duration]) {
        let tenth = appends.len() / 10;
        self.first.extend(appends.iter().take(tenth));
        self.last.extend(appends.iter().rev().take(tenth));
    }

    /// The medians.
    fn medians(&self) -> [Duration; 2] {
        [&self.first, &self.last].map(|times| {
            let mut times = times.clone();
            times.sort_unstable();
            times.get(times.len() / 2).copied().unwrap_or_default()
        })
    }

    fn ratio(&self) -> f64 {
        let [first, last] = self.medians();
        last.as_secs_f64() / first.as_secs_f64()
    }
}

/// Prints what the turn takes with the stores that write to a disk. A goal that is missed is an error.
pub(crate) fn report() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut rows, mut missed) = (Vec::new(), Vec::new());
    for (store, name) in STORES.into_iter().enumerate() {
        for (window, how) in [(None, "whole history"), (Some(128_000), "compacted at 128k")] {
            let (mut least, mut growth) = (None::<Taken>, Growth::default());
            for _ in 0..RUNS {
                let Some(turn) = runtime.block_on(measured(store, window, 0))? else { break };
                growth.add(&turn.appends);
                let taken = turn.taken;
                let best = least.unwrap_or(taken);
                least = Some(Taken {
                    run: taken.run.min(best.run),
                    resume: taken.resume.min(best.resume),
                    ..taken
                });
            }
            let Some(taken) = least else { continue };
            let name = format!("{name}, {how}");
            rows.push(row(&name, &taken, &growth));
            if taken.resume >= RESUME {
                missed.push(format!("{name}: to resume takes {} ms or more", RESUME.as_millis()));
            }
            if growth.ratio() > GROWTH {
                missed.push(format!(
                    "{name}: appending a result takes more than {GROWTH} times as long at the end"
                ));
            }
        }
    }
    let head = [
        "",
        "stored, KiB",
        "of the text",
        "written, KiB",
        "100 calls, ms",
        "resume, ms",
        "append a result, ms: first tenth",
        "last tenth",
        "ratio",
    ];
    table::print("A turn of 100 tool calls of 5 KB after 105,000 tokens", &head, &rows);
    if missed.is_empty() { Ok(()) } else { Err(missed.join("; ").into()) }
}

fn row(name: &str, taken: &Taken, growth: &Growth) -> Vec<String> {
    let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    let [first, last] = growth.medians().map(|time| format!("{:.2}", time.as_secs_f64() * 1e3));
    let kib = |bytes: u64| (bytes / 1024).to_string();
    let times = format!("{:.2}x", taken.stored as f64 / taken.text as f64);
    vec![
        name.to_owned(),
        kib(taken.stored),
        times,
        kib(taken.written),
        ms(taken.run),
        ms(taken.resume),
        first,
        last,
        format!("{:.2}", growth.ratio()),
    ]
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]
mod tests {
    use super::*;

    /// The calls in the log, in order.
    fn pages(events: &[Arc<Event>]) -> Vec<u64> {
        let page = |event: &Arc<Event>| match &event.body {
            Body::ToolCalled { call, .. } => call.args.get("page").and_then(Value::as_u64),
            _ => None,
        };
        events.iter().filter_map(page).collect()
    }

    #[test]
    fn a_turn_grows_by_what_appends_take_at_its_end_whatever_one_of_them_takes() {
        let ms = |ms: &[u64]| ms.iter().copied().map(Duration::from_millis).collect::<Vec<_>>();
        let mut growth = Growth::default();
        // Of 30, the first and the last three.
        growth.add(&ms(&[&[2, 90, 2][..], &[50; 24], &[3, 2, 80]].concat()));
        assert_eq!(growth.medians(), [2, 3].map(Duration::from_millis));
        assert_eq!(growth.ratio(), 1.5);
        growth.add(&ms(&[&[2, 2, 2][..], &[50; 24], &[4, 4, 4]].concat()));
        assert_eq!(growth.ratio(), 2.0);
    }

    #[test]
    fn a_turn_of_a_hundred_calls_is_stored_once_and_survives_a_kill() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (store, name) in STORES.into_iter().enumerate() {
            for (window, left) in [(None, 1), (Some(128_000), 40)] {
                let ran = runtime.block_on(measured(store, window, left)).unwrap();
                let Some(Turn { taken, events, appends }) = ran else { continue };
                assert_eq!(appends.len() as u64, CALLS, "{name}, {window:?}: each result is appended once");
                assert_eq!(pages(&events), (1..=CALLS).collect::<Vec<_>>(), "{name}, {window:?}");
                let Taken { stored, text, .. } = taken;
                assert!(text > CALLS * 5_000 + 420_000, "{name}: {text} bytes of text");
                assert!(
                    stored < 2 * text,
                    "{name}, {window:?}: {stored} bytes stored for {text} bytes of text"
                );
                let compacted =
                    events.iter().filter(|event| matches!(event.body, Body::Compacted(_))).count();
                assert_eq!(compacted > 0, window.is_some(), "{name}: {compacted} compactions");
                println!("{name}, {window:?}: {taken:?}");
            }
        }
    }
}
