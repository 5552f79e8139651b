//! A cache of replies.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue_core::{
    Delta, DeltaRef, DeltaSink, EncodeCache, Entry, FinishReason, Model, ModelError, ModelErrorKind, Money,
    Name, Origin, Params, Part, Path, Reply, Request, ToolCall, ToolSpec, Usage,
};
use polylogue_models::{Cache, Cached, Cassette};
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
            return Err(ModelError::new(ModelErrorKind::Unavailable, "test:m", "busy"));
        }
        let call = ToolCall { id: "c".into(), tool: "look".into(), args: json!({"at": "ü"}) };
        Ok(Reply {
            parts: vec![Part::Thought("hm".into()), Part::text(format!("reply {nth}")), Part::ToolCall(call)],
            finish: FinishReason::Calls,
            usage: Usage { input: Some(5), output: Some(2), ..Usage::default() },
            cached: false,
            verbatim: None,
            answered_by: None,
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
    let origin = Origin::new(&at, &who, ask.nth);
    let (system, tools, params) = (ask.system, &ask.tools, &ask.params);
    let request =
        Request { origin, system, entries: &entries, tools, params, encoded: &wire, reserved: None };
    let mut received = Heard(Vec::new());
    let reply = model.complete(&request, &mut received).await;
    (reply, received.0)
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
async fn a_request_that_differs_is_not_cached() {
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
async fn errors_are_not_cached() {
    let counter = Counter::default();
    let model = Cache::memory().around(counter.clone());
    let ask = Ask { system: Some("fail"), ..hello() };
    for _ in 0..2 {
        assert_eq!(ask_streaming(&model, &ask).await.0.unwrap_err().message, "busy");
    }
    assert_eq!(counter.calls(), 2);
}

/// Ends its first reply in this way.
struct EndsBy(FinishReason, Counter);

impl Model for EndsBy {
    fn name(&self) -> &str {
        self.1.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let reply = self.1.complete(request, deltas).await?;
        Ok(if self.1.calls() == 1 { Reply { finish: self.0.clone(), ..reply } } else { reply })
    }
}

/// Such as the reply with a malformed call, which is asked for once more by the same request.
#[tokio::test]
async fn a_reply_that_is_asked_for_again_is_not_cached() {
    let folder = tempfile::tempdir().unwrap();
    for finish in [FinishReason::Malformed, FinishReason::Paused, FinishReason::Interrupted] {
        let (place, counter) = (folder.path().join(finish.to_string()), Counter::default());
        let model = Cache::open(&place).unwrap().around(EndsBy(finish.clone(), counter.clone()));
        assert_eq!(reply(&model, &hello()).await.finish, finish);
        assert_eq!(Cache::open(&place).unwrap().len(), 0, "{finish}");
        let second = reply(&model, &hello()).await;
        assert_eq!(
            (second.cached, &second.finish, counter.calls()),
            (false, &FinishReason::Calls, 2),
            "{finish}"
        );
        assert!(reply(&model, &hello()).await.cached, "{finish}");
        assert_eq!(Cache::open(&place).unwrap().len(), 1, "{finish}");
    }
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
async fn a_file_keeps_replies_for_later_processes() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("replies.jsonl");
    let counter = Counter::default();
    let first = reply(&Cache::open(&place).unwrap().namespace("n").around(counter.clone()), &hello()).await;
    let cache = Cache::open(&place).unwrap();
    let again = reply(&cache.namespace("n").around(counter.clone()), &hello()).await;
    assert_eq!(again, Reply { cached: true, ..first });
    assert!(!reply(&cache.around(counter.clone()), &hello()).await.cached, "another namespace");
    assert_eq!((counter.calls(), Cache::open(&place).unwrap().namespace("n").len()), (2, 1));
}

#[tokio::test]
async fn a_truncated_line_loses_its_reply_only_and_a_file_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("replies.jsonl");
    let counter = Counter::default();
    let model = Cache::open(&place).unwrap().around(counter.clone());
    reply(&model, &hello()).await;
    reply(&model, &Ask { text: "bye", ..Ask::default() }).await;
    let whole = std::fs::read(&place).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&place, &whole[..length]).unwrap();
        let Ok(cache) = Cache::open(&place) else { continue };
        let ends = |at: &usize| whole[*at] == b'\n';
        // The header is no reply; a line that only lacks its end is whole.
        let left = (0..=length.min(whole.len() - 1)).filter(ends).count().saturating_sub(1);
        assert_eq!(cache.len(), left, "{length}");
        reply(&cache.around(Counter::default()), &Ask { text: "new", ..Ask::default() }).await;
        assert_eq!(Cache::open(&place).unwrap().len(), left + 1, "{length}");
    }
    std::fs::write(&place, "# notes").unwrap();
    let error = Cache::open(&place).unwrap_err();
    assert!(error.message.contains("is not a cache of replies") && error.hint.is_some(), "{error}");
    assert_eq!(std::fs::read(&place).unwrap(), b"# notes");
    assert!(Cache::open(folder.path().join("no/such/folder")).is_err());
}

/// The other process died while it wrote, or the disk was full.
#[tokio::test]
async fn a_line_that_another_process_cut_does_not_spoil_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("replies.jsonl");
    let cache = Cache::open(&place).unwrap();
    let mut other = std::fs::OpenOptions::new().append(true).open(&place).unwrap();
    other.write_all(br#"{"request":"#).unwrap();
    reply(&cache.around(Counter::default()), &hello()).await;
    assert_eq!(Cache::open(&place).unwrap().len(), 1);
}

#[cfg(unix)]
#[test]
fn files_of_replies_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let [cache, created, appended] = ["cache", "created", "appended"].map(|name| dir.path().join(name));
    Cache::open(&cache).unwrap();
    Cassette::create(&created).unwrap();
    Cassette::append(&appended).unwrap();
    for file in [cache, created, appended] {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}
