//! Vectors of texts, over real sockets, by servers that misbehave.

mod apis;
mod server;

use std::time::{Duration, Instant};

use crate::common::{KEY, quick};
use polylogue_core::{
    Act, Agent, AnyTool, Chat, Log, Model as _, ModelError, ModelErrorKind as Kind, Money, Name, Price, Step,
    StopReason, Tool, ToolCall, ToolCx, ToolError, ToolResult, ToolSpec, Transcript, Turn, TurnRequest,
};
use polylogue_memory::{Embed, EmbedPurpose, Embedded};
use polylogue_models::{Config, Embedder, Endpoint, Limits, Retries, Timeouts};
use serde_json::{Value, json};
use server::{Does, Server};

const STORE: EmbedPurpose = EmbedPurpose::Store;

fn embedder(config: Config) -> Embedder {
    Endpoint::new(config).unwrap().embedder("m").unwrap()
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| "x".repeat(n % 9 + 1)).collect()
}

/// The lengths of the texts in letters, by the directions of their vectors.
fn lengths(embedded: &Embedded) -> Vec<f32> {
    embedded.vectors.iter().map(|vector| (vector[0] / vector[1]).round()).collect()
}

async fn fails(does: Does) -> ModelError {
    embedder(Server::start([does]).config()).embed(&texts(2), STORE).await.unwrap_err()
}

#[tokio::test]
async fn both_apis_give_vectors_in_order_and_tokens() {
    let server = Server::start([Does::Embeds]);
    let model = embedder(server.config());
    assert_eq!(model.name(), "test:m");
    let embedded = model.embed(&texts(3), STORE).await.unwrap();
    assert_eq!(lengths(&embedded), [1.0, 2.0, 3.0]);
    assert_eq!(embedded.usage.input, Some(9));
    let body = json!({"model": "m", "input": ["x", "xx", "xxx"]});
    assert_eq!(server.asked(), [("/v1/embeddings".into(), format!("Bearer {KEY}"), body.clone())]);

    let server = Server::start([Does::Embeds]);
    let config = Config { retries: Retries::none(), ..Config::ollama(&server.address) };
    let embedded = embedder(config).embed(&texts(3), STORE).await.unwrap();
    assert_eq!((lengths(&embedded), embedded.usage.input), (vec![1.0, 2.0, 3.0], Some(6)));
    assert_eq!(server.asked(), [("/api/embed".into(), String::new(), body)]);
}

#[tokio::test]
async fn many_texts_are_sent_in_batches_and_none_in_no_request() {
    let server = Server::start([Does::Embeds]);
    let model = embedder(server.config());
    let embedded = model.embed(&texts(150), STORE).await.unwrap();
    let expected: Vec<f32> = texts(150).iter().map(|text| text.len() as f32).collect();
    assert_eq!((lengths(&embedded), embedded.usage.input), (expected, Some(450)));
    let sizes: Vec<usize> =
        server.asked().iter().map(|(_, _, body)| body["input"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [64, 64, 22]);
    assert_eq!([150, 64, 5, 0].map(|count| model.batch(&texts(count), STORE)), [64, 64, 5, 0]);
    assert_eq!(model.embed(&[], STORE).await.unwrap().vectors.len(), 0);
    assert_eq!(server.asked().len(), 3);
    let error = model.embed(&["x".into(), " ".into()], STORE).await.unwrap_err();
    assert_eq!((error.kind, server.asked().len()), (Kind::Config, 3));
}

/// As after failed replies, models with a fallback skip the endpoint.
#[tokio::test]
async fn vectors_that_break_off_count_as_failures_of_the_endpoint() {
    let cut = b"HTTP/1.1 200 x\r\ncontent-length: 99\r\n\r\n{".to_vec();
    let endpoint = Endpoint::new(Server::start([Does::Raw(cut)]).config()).unwrap();
    let embedder = endpoint.embedder("m").unwrap();
    for _ in 0..5 {
        assert_eq!(embedder.embed(&texts(1), STORE).await.unwrap_err().kind, Kind::Connection);
    }
    assert!(endpoint.model("m").unavailable_for().is_some());
}

/// Embeds 130 texts in each call, of which 64 fit into a request.
struct Embedding(ToolSpec, Embedder);

impl Tool for Embedding {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let (texts, model) = (texts(130), &self.1);
        let reserved = cx.meter.reserve(model.name(), model.bound(&texts)).await;
        let reserved = reserved.map_err(|error| error.to_string())?.unwrap();
        let error = model.embed_reserved(&texts, STORE, &reserved).await.unwrap_err();
        Err(error.to_string().into())
    }
}

/// Calls its tool once.
struct Caller(Name, AnyTool);

impl Agent for Caller {
    fn name(&self) -> &Name {
        &self.0
    }

    async fn act(&self, turn: &mut Turn<'_>) -> polylogue_core::Result<Act> {
        let call = ToolCall { id: "c".into(), tool: "embed".into(), args: json!({}) };
        turn.call_tools(std::slice::from_ref(&self.1), &[call]).await?;
        Ok(Act::say("done"))
    }
}

/// A refusal is not billed, but the request before it is.
#[tokio::test]
async fn what_was_paid_before_a_request_failed_counts() {
    for (failing, texts) in [(0, 0), (1, 64), (2, 128)] {
        let does = vec![Does::Embeds; failing].into_iter().chain([Does::Status(400, "no")]);
        let server = Server::start(does);
        // A millionth of a dollar for each token.
        let price = Price { input: 1.0, ..Price::FREE };
        let model = embedder(server.config()).with_price(Some(price));
        let spec = ToolSpec::new("embed", "Embeds.", json!({"type": "object"}));
        let caller = Caller(Name::new("A").unwrap(), AnyTool::new(Embedding(spec, model)));
        let turns = |chat: &Transcript| match chat.turns() {
            0 => Step::Turn(TurnRequest::to_all(Name::new("A").unwrap())),
            _ => Step::close(StopReason::Finished, chat),
        };
        let mut log = Log::in_memory();
        let chat = Chat::builder("one").participant(caller).policy(turns).build().unwrap();
        chat.run_in(&mut log, "go").await.unwrap();
        assert_eq!(server.asked().len(), failing + 1);
        // Three tokens for each text.
        let used = log.usage().await;
        let cost = Money { picodollars: texts * 3 * 1_000_000 };
        assert_eq!((used.counted_tokens(), used.counted_cost()), (texts * 3, cost), "{failing}");
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_each_batch_for_itself() {
    let cut = b"HTTP/1.1 200 x\r\ncontent-length: 900\r\n\r\n{\"data\": [".to_vec();
    for failing in
        [Does::Status(429, "slow down"), Does::Status(503, "busy"), Does::Raw(Vec::new()), Does::Raw(cut)]
    {
        let does = [failing.clone(), failing.clone(), Does::Embeds, failing, Does::Embeds];
        let server = Server::start(does);
        let model = embedder(Config { retries: quick(3), ..server.config() });
        assert_eq!(model.embed(&texts(65), STORE).await.unwrap().vectors.len(), 65);
        assert_eq!(server.asked().len(), 5);
    }
}

#[tokio::test]
async fn permanent_errors_are_returned_at_once_and_show_no_key() {
    let server = Server::start([Does::Status(401, "no such key sk-a-key-that-no-one-may-see")]);
    let model = embedder(Config { retries: quick(5), ..server.config() });
    let error = model.embed(&texts(1), STORE).await.unwrap_err();
    assert_eq!((error.kind, error.status, server.asked().len()), (Kind::Config, Some(401), 1));
    assert!(!format!("{error:?}{model:?}").contains(KEY), "{error:?}");
    let server = Server::start([Does::Status(500, "down")]);
    let error =
        embedder(Config { retries: quick(3), ..server.config() }).embed(&texts(1), STORE).await.unwrap_err();
    assert!(error.message.ends_with("down (tried 3 times)"), "{error}");
    let without = Config { key: None, needs_key: true, ..server.config() };
    let error = embedder(without).embed(&texts(1), STORE).await.unwrap_err();
    assert!(error.message.contains("no API key") && server.asked().len() == 3, "{error}");
}

#[tokio::test]
async fn answers_that_are_no_vectors_are_errors_that_say_why() {
    let row = |index: usize, vector: Value| json!({"index": index, "embedding": vector});
    for (json, why) in [
        (json!({"data": [row(0, json!([1]))]}), "it has 1 vectors for 2 texts"),
        (json!({"data": [row(0, json!([1])), row(0, json!([2]))]}), "not numbered from 0 on"),
        (json!({"data": [row(1, json!([1])), row(2, json!([2]))]}), "not numbered from 0 on"),
        (json!({"data": [row(0, json!([])), row(1, json!([]))]}), "is empty"),
        (json!({"data": [row(0, json!([1])), row(1, json!([1, 2]))]}), "different lengths"),
        (json!({"data": [row(0, json!([null])), row(1, json!([1]))]}), "invalid type: null"),
        (json!({"data": [row(0, json!([1e300])), row(1, json!([1]))]}), "out of range"),
        (json!({"data": [row(0, json!("AACAPw==")), row(1, json!("AACAPw=="))]}), "expected a sequence"),
        (json!({"embeddings": [[1.0], [2.0], [3.0]]}), "it has 3 vectors for 2 texts"),
        (json!({"object": "list"}), "neither `data` nor `embeddings`"),
        (json!([1, 2]), "cannot be read"),
    ] {
        let error = fails(Does::Json(json.clone())).await;
        assert_eq!(error.kind, Kind::InvalidReply, "{json}");
        assert!(error.message.contains(why), "{json}: {error}");
    }
    let error = fails(Does::Json(json!({"error": {"message": "out of memory"}}))).await;
    assert!(error.message.contains("out of memory"), "{error}");
    let page = b"HTTP/1.1 200 x\r\ncontent-length: 13\r\n\r\n<html></html>".to_vec();
    assert!(fails(Does::Raw(page)).await.hint.unwrap().contains("that is a web page"));
    let empty = b"HTTP/1.1 200 x\r\ncontent-length: 0\r\n\r\n".to_vec();
    assert!(fails(Does::Raw(empty)).await.message.contains("empty"));
    let moved = b"HTTP/1.1 302 x\r\nlocation: http://evil.example/?k\r\ncontent-length: 0\r\n\r\n".to_vec();
    assert!(fails(Does::Raw(moved)).await.message.contains("redirects to `http://evil.example/`"));
    assert_eq!(fails(Does::Raw(b"nonsense\r\n\r\n".to_vec())).await.kind, Kind::Connection);
}

#[tokio::test]
async fn numbers_of_servers_that_count_nothing_are_unknown_and_rows_may_lack_numbers() {
    let rows = json!({"data": [{"embedding": [3, 4]}, {"embedding": [8, 6]}]});
    let server = Server::start([Does::Json(rows)]);
    let embedded = embedder(server.config()).embed(&texts(2), STORE).await.unwrap();
    assert_eq!((embedded.vectors, embedded.usage.input), (vec![vec![0.6, 0.8], vec![0.8, 0.6]], None));
}

#[tokio::test]
async fn a_body_without_end_and_a_server_that_hangs_are_bounded() {
    let mut endless = b"HTTP/1.1 200 x\r\n\r\n{\"data\": [".to_vec();
    endless.resize(65 << 20, b' ');
    let error = fails(Does::Raw(endless)).await;
    assert!(error.message.contains("the reply does not end"), "{error}");

    let server = Server::start([Does::Hangs]);
    let timeouts = Timeouts { total: Duration::from_millis(300), ..Timeouts::default() };
    let begun = Instant::now();
    let error = embedder(Config { timeouts, ..server.config() }).embed(&texts(1), STORE).await.unwrap_err();
    assert_eq!(error.kind, Kind::Timeout);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn the_limits_of_the_endpoint_hold_for_vectors_too() {
    let server = Server::start([Does::Late(Duration::from_millis(200))]);
    let limits = Limits { in_flight: Some(1), per_minute: None };
    let model = embedder(Config { limits, ..server.config() });
    let begun = Instant::now();
    let (one, two, three) = (texts(1), texts(2), texts(3));
    let all = tokio::join!(model.embed(&one, STORE), model.embed(&two, STORE), model.embed(&three, STORE));
    assert!(all.0.is_ok() && all.1.is_ok() && all.2.is_ok());
    assert!(begun.elapsed() >= Duration::from_millis(600), "one at a time");
}
