//! Recording and replaying model calls.

mod differences;
mod files;
mod mutated;
mod replay;
mod roundtrip;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use polylogue_core::{
    Delta, DeltaRef, DeltaSink, EncodeCache, Entry, FinishReason, Model, ModelError, ModelErrorKind, Money,
    Name, Origin, Params, Part, Path, Price, Reply, Request, ToolCall, ToolResult, ToolSpec, Usage,
};
use serde_json::json;

/// The name of a file that does not exist, in a folder that is removed in the end.
struct Fresh {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Fresh {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { path: folder.path().join("c.jsonl"), _folder: folder }
    }
}

impl AsRef<std::path::Path> for Fresh {
    fn as_ref(&self) -> &std::path::Path {
        &self.path
    }
}

/// What a request is made of.
#[derive(Debug, Clone)]
struct Asked {
    at: Path,
    who: Name,
    nth: u64,
    system: Option<String>,
    entries: Vec<Entry>,
    tools: Vec<ToolSpec>,
    params: Params,
}

impl Asked {
    /// The `nth` request of `who` in the outermost chat: a conversation of `nth` exchanges before.
    fn new(who: &str, nth: u64) -> Self {
        let turns =
            |turn| [Entry::user(format!("question {turn}")), Entry::assistant(format!("answer {turn}"))];
        let mut entries: Vec<Entry> = (0..nth).flat_map(turns).collect();
        entries.push(Entry::user(format!("question {nth}")));
        let (at, who) = (Path::root(), Name::new(who).unwrap());
        let system = Some(format!("You are {who}."));
        Self { at, who, nth, system, entries, tools: vec![tool("search")], params: Params::default() }
    }

    async fn of(&self, model: &impl Model) -> Result<Reply, ModelError> {
        self.received(model).await.0
    }

    /// The reply, and the pieces in which it came.
    async fn received(&self, model: &impl Model) -> (Result<Reply, ModelError>, Vec<Delta>) {
        let Self { at, who, nth, system, entries, tools, params } = self;
        let origin = Origin::new(at, who, *nth);
        let wire = &EncodeCache::default();
        let mut ear = Ear::default();
        let request = Request {
            origin,
            system: system.as_deref(),
            entries,
            tools,
            params,
            encoded: wire,
            reserved: None,
        };
        (model.complete(&request, &mut ear).await, ear.0)
    }
}

#[derive(Default)]
struct Ear(Vec<Delta>);

impl DeltaSink for Ear {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.0.push(delta.into());
    }
}

/// The pieces in which an answer comes, and the answer.
type Answer = (Vec<Delta>, Result<Reply, ModelError>);

/// A model that answers with what it was given, in order.
struct Fake {
    name: &'static str,
    price: Option<Price>,
    answers: Mutex<VecDeque<Answer>>,
}

impl Fake {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let price = Some(Price { input: 1.0, output: 2.0, ..Price::FREE });
        Self { name: "fake:model", price, answers: Mutex::new(answers.into_iter().collect()) }
    }

    fn saying(texts: &[&str]) -> Self {
        Self::new(texts.iter().map(|text| (vec![Delta::Text((*text).to_owned())], Ok(reply(text)))))
    }
}

impl Model for Fake {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, _: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let (pieces, result) = next.expect("an answer is left");
        for piece in &pieces {
            deltas.push(piece.into());
        }
        result
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.price.as_ref()?.of(usage)
    }
}

fn reply(text: &str) -> Reply {
    let usage = Usage { input: Some(100), output: Some(text.len() as u64), ..Usage::default() };
    Reply { usage, ..Reply::new(text) }
}

/// A reply of every kind of part, and the pieces in which it may come.
fn rich_answer() -> Answer {
    let call = |args: &str, tool: Option<&str>| Delta::Call {
        index: 0,
        tool: tool.map(str::to_owned),
        args: args.to_owned(),
    };
    let pieces = vec![
        Delta::Text("fal".into()),
        Delta::Restart,
        Delta::Thought("hm ".into()),
        Delta::Text("Grü".into()),
        Delta::Text("ße\n\"".into()),
        call("{\"q\":", Some("search")),
        call("0.1}", None),
    ];
    let call = ToolCall { id: "c1".into(), tool: "search".into(), args: json!({"q": 0.1}) };
    let parts = vec![
        Part::Thought("hm ".into()),
        Part::text("Grüße\n\""),
        Part::Data(json!({"score": 0.30000000000000004})),
        Part::ToolCall(call),
    ];
    let usage =
        Usage { input: Some(7), output: Some(9), cached: Some(3), reasoning: Some(2), ..Usage::default() };
    (
        pieces,
        Ok(Reply {
            parts,
            finish: FinishReason::Calls,
            usage,
            cached: false,
            verbatim: None,
            answered_by: None,
        }),
    )
}

fn error() -> ModelError {
    ModelError {
        status: Some(529),
        body: Some("{\"error\":\"overloaded\"}".into()),
        hint: Some("wait a while".into()),
        ..ModelError::new(ModelErrorKind::Unavailable, "fake:model", "overloaded")
    }
}

fn tool(name: &str) -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    ToolSpec::new(name, "Searches", parameters).repeatable()
}

fn tool_entries() -> [Entry; 2] {
    let call = ToolCall { id: "c1".into(), tool: "search".into(), args: json!({"q": "x"}) };
    let parts = vec![Part::ToolCall(call)];
    [
        Entry::own(parts),
        Entry::Tool { id: "c1".into(), tool: "search".into(), result: ToolResult::done("found") },
    ]
}
