//! A cache of replies, in memory and in a file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue_core::{
    Call, Delta, DeltaRef, DeltaSink, EncodeCache, Entry, Fault, Finish, Model, ModelError, ModelErrorKind,
    Money, Name, Origin, Params, Part, Path, Reply, Request, ToolSpec, Usage,
};
use polylogue_models::{Cache, CacheError, Cached};
use serde_json::json;

/// Counts its calls, and fails when it is asked to.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU64>, &'static str);

impl Counter {
    fn calls(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Model for Counter {
    fn name(&self) -> &str {
        if self.1.is_empty() { "test:m" } else { self.1 }
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let nth = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if request.system == Some("fail") {
            return Err(ModelError::new(ModelErrorKind::Refused, "test:m", "busy"));
        }
        let call = Call { id: "c".into(), tool: "look".into(), args: json!({"at": "ü"}) };
        Ok(Reply {
            parts: vec![Part::Thought("hm".into()), Part::text(format!("reply {nth}")), Part::Call(call)],
            finish: Finish::Calls,
            usage: Usage { input: Some(5), output: Some(2), cached: None, reasoning: None },
            cached: false,
        })
    }
    fn cost(&self, _: &Usage) -> Option<Money> {
        Some(Money::dollars(1.0))
    }
}

/// What a request is, besides where it is made.
#[derive(Clone, Default)]
struct Ask {
    system: Option<&'static str>,
    text: &'static str,
    tools: Vec<ToolSpec>,
    params: Params,
    nth: u64,
}

struct Heard(Vec<Delta>);

impl DeltaSink for Heard {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.0.push(delta.into());
    }
}

async fn ask_streaming(model: &impl Model, ask: &Ask) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let (at, who, wire) = (Path::root(), Name::new("A").unwrap(), EncodeCache::default());
    let entries = [Entry::user(ask.text)];
    let origin = Origin { at: &at, who: &who, nth: ask.nth };
    let (system, tools, params) = (ask.system, &ask.tools, &ask.params);
    let request =
        Request { origin, system, entries: &entries, tools, params, encoded: &wire, reserved: None };
    let mut heard = Heard(Vec::new());
    let reply = model.complete(&request, &mut heard).await;
    (reply, heard.0)
}

async fn reply(model: &impl Model, ask: &Ask) -> Reply {
    ask_streaming(model, ask).await.0.unwrap()
}

fn hello() -> Ask {
    Ask { text: "hello", ..Ask::default() }
}

#[tokio::test]
async fn the_same_request_is_asked_once_and_says_that_it_is_cached() {
    let counter = Counter::default();
    let model = Cache::memory().around(counter.clone());
    let first = reply(&model, &hello()).await;
    let (second, pieces) = ask_streaming(&model, &Ask { nth: 7, ..hello() }).await;
    assert_eq!(second.unwrap(), Reply { cached: true, ..first.clone() });
    assert_eq!((first.cached, counter.calls()), (false, 1));
    let call = Delta::Call { index: 0, tool: Some("look".into()), args: r#"{"at":"ü"}"#.into() };
    assert_eq!(pieces, [Delta::Thought("hm".into()), Delta::Text("reply 1".into()), call]);
    assert_eq!((model.name(), model.cost(&Usage::default())), ("test:m", Some(Money::dollars(1.0))));
}

#[tokio::test]
async fn whatever_differs_is_asked() {
    let counter = Counter::default();
    let cache = Cache::memory();
    let model = cache.around(counter.clone());
    let tool = ToolSpec::new("look", "Looks.", json!({"type": "object"}));
    let asks = [
        hello(),
        Ask { text: "hello ", ..Ask::default() },
        Ask { system: Some(""), ..hello() },
        Ask { tools: vec![tool], ..hello() },
        Ask { params: Params { seed: Some(1), ..Params::default() }, ..hello() },
    ];
    for ask in &asks {
        assert!(!reply(&model, ask).await.cached);
    }
    assert!(!reply(&cache.around(Counter(Arc::clone(&counter.0), "test:n")), &hello()).await.cached);
    assert!(!reply(&cache.namespace("41").around(counter.clone()), &hello()).await.cached);
    assert_eq!((counter.calls(), cache.len(), cache.namespace("41").len()), (7, 6, 1));
}

#[tokio::test]
async fn errors_are_not_kept() {
    let counter = Counter::default();
    let model = Cache::memory().around(counter.clone());
    let ask = Ask { system: Some("fail"), ..hello() };
    for _ in 0..2 {
        assert_eq!(ask_streaming(&model, &ask).await.0.unwrap_err().message, "busy");
    }
    assert_eq!(counter.calls(), 2);
}

#[tokio::test]
async fn a_cache_around_a_cache_keeps_nothing_twice() {
    let (inner, outer) = (Cache::memory(), Cache::memory());
    let model = inner.around(Counter::default());
    reply(&model, &hello()).await;
    let around: Cached<_> = outer.around(model);
    assert!(reply(&around, &hello()).await.cached && outer.is_empty());
}

#[tokio::test]
async fn a_cache_holds_no_more_than_its_capacity() {
    let cache = Cache::memory();
    let model = cache.around(Counter::default());
    for seed in 0..=i64::try_from(Cache::CAPACITY).unwrap() {
        let params = Params { seed: Some(seed), ..Params::default() };
        reply(&model, &Ask { params, ..hello() }).await;
    }
    assert_eq!(cache.len(), Cache::CAPACITY);
    let oldest = Ask { params: Params { seed: Some(0), ..Params::default() }, ..hello() };
    assert!(!reply(&model, &oldest).await.cached, "the oldest is forgotten");
}

#[tokio::test]
async fn a_file_keeps_replies_for_the_next_process_whatever_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("replies.jsonl");
    let first = {
        let cache = Cache::open(&place).unwrap();
        let kept = reply(&cache.namespace("41").around(Counter::default()), &hello()).await;
        reply(&cache.around(Counter::default()), &hello()).await;
        kept
    };
    let whole = fs::read(&place).unwrap();
    let lines: Vec<usize> = (1..=whole.len()).filter(|end| whole[end - 1] == b'\n').collect();
    for cut in 0..=whole.len() {
        fs::write(&place, &whole[..cut]).unwrap();
        let cache = Cache::open(&place).unwrap();
        let replies = lines.iter().filter(|end| **end <= cut).count().saturating_sub(1);
        assert_eq!(cache.len() + cache.namespace("41").len(), replies, "cut at byte {cut}");
        // It can be written to after the cut.
        let kept = reply(&cache.namespace("41").around(Counter::default()), &hello()).await;
        assert_eq!(kept.parts, first.parts);
        reply(&cache.around(Counter::default()), &hello()).await;
        assert_eq!(cache.trouble(), None);
        drop(cache);
        assert!(fs::read(&place).unwrap() == whole, "cut at byte {cut}");
    }
}

fn refused(place: &std::path::Path, content: &str) -> CacheError {
    fs::write(place, content).unwrap();
    let error = Cache::open(place).unwrap_err();
    assert_eq!(fs::read_to_string(place).unwrap(), content, "what is no cache is left alone");
    error
}

#[test]
fn what_is_no_cache_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("c");
    let shown = place.display().to_string();
    for content in ["my notes", "my notes\n", "\n", "[1]\n", "{\"polylogue_cassette\":1}\n"] {
        assert_eq!(refused(&place, content), CacheError::NoCache { place: shown.clone() });
    }
    let newer = refused(&place, "{\"polylogue_cache\":2}\n");
    assert_eq!(newer, CacheError::Newer { place: shown, found: 2, known: 1 });
    let damaged = refused(&place, "{\"polylogue_cache\":1}\n{\"request\":\n");
    assert!(matches!(&damaged, CacheError::Damaged { line: 2, .. }), "{damaged}");
    assert_eq!((damaged.fault(), newer.fault()), (Fault::System, Fault::System));
    assert!(damaged.hint().unwrap().contains("before line 2"));
    assert!(matches!(Cache::open(folder.path().join("no/where")), Err(CacheError::Io { .. })));
}

#[test]
fn a_file_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("c");
    let first = Cache::open(&place).unwrap();
    let second = Cache::open(&place).unwrap_err();
    assert_eq!(
        (second.fault(), second.to_string().contains("in use by another program")),
        (Fault::Config, true)
    );
    drop(first);
    assert!(Cache::open(&place).unwrap().is_empty());
}
