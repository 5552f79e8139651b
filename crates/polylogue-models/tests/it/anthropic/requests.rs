//! What is sent: every request as data, and the strict server accepts all of them.

use polylogue_core::{Capability, Entry, Media, Part, ToolCall, ToolResult};
use polylogue_models::{Config, Endpoint};
use polylogue_test::server::{Answer, Behavior, Server};
use serde_json::{Value, json};

use super::{claude, config};
use crate::common::{Asked, KEY, ask, weather};

fn call(id: &str, tool: &str, args: Value) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), tool: tool.into(), args })
}

fn result(id: &str, tool: &str, outcome: ToolResult) -> Entry {
    Entry::Tool { id: id.into(), tool: tool.into(), result: outcome }
}

fn outcome(parts: Vec<Part>) -> ToolResult {
    ToolResult { parts, ..ToolResult::done("") }
}

fn media(kind: &str, url: &str) -> Part {
    Part::Media(Media { media_type: kind.into(), url: url.into() })
}

const PNG: &str = "data:image/png;base64,iVBORw==";
const PDF: &str = "data:application/pdf;base64,JVBERi0=";

/// The messages that are sent for `entries`, without marks.
async fn messages(entries: Vec<Entry>) -> Vec<Value> {
    let server = Server::start(Answer::text("Hello.")).await;
    let asked = Asked { tools: vec![weather()], ..Asked::new(entries) };
    let config = Config { cache_marks: false, ..config(&server) };
    ask(&Endpoint::new(config).unwrap().model("claude-sonnet-5"), &asked).await.0.unwrap();
    assert_eq!(server.violations(), [""; 0]);
    server.requests()[0].messages().to_vec()
}

// P26, P28.
#[tokio::test]
async fn a_request_has_a_limit_a_version_and_the_key_in_its_own_header() {
    let server = Server::start(Behavior::from(Answer::text("Hello.")).key(KEY)).await;
    let asked = Asked { tools: vec![weather()], ..Asked::default() };
    let plain = Config { cache_marks: false, ..config(&server) };
    ask(&Endpoint::new(plain).unwrap().model("claude-sonnet-5"), &asked).await.0.unwrap();
    let received = &server.requests()[0];
    assert_eq!(
        (received.path.as_str(), received.header("anthropic-version")),
        ("/v1/messages", Some("2026-10-21"))
    );
    assert_eq!((received.header("x-api-key"), received.header("authorization")), (Some(KEY), None));
    assert_eq!(
        received.body,
        json!({
            "model": "claude-sonnet-5",
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "How is the weather?"}]}],
            "max_tokens": 128_000,
            "tools": [{
                "name": "weather",
                "description": "Tells the weather.",
                "input_schema": {"type": "object", "properties": {}},
            }],
            "stream": true,
        })
    );
    ask(&claude(&server, "claude-of-tomorrow"), &Asked::default()).await.0.unwrap();
    assert_eq!(server.requests()[1].body["max_tokens"], 8192);
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test]
async fn the_list_of_models_has_the_version_and_the_key_too() {
    let server = Server::start(Behavior::from(Answer::text("")).models(["claude-a", "claude-b"])).await;
    let listed = Endpoint::new(config(&server)).unwrap().models().await.unwrap();
    assert_eq!(listed.len(), 2);
    let received = &server.requests()[0];
    assert_eq!(
        (received.header("x-api-key"), received.header("anthropic-version")),
        (Some(KEY), Some("2026-10-21"))
    );
}

#[tokio::test]
async fn the_address_is_taken_with_and_without_the_version() {
    let server = Server::start(Answer::text("Hello.")).await;
    for path in ["", "/", "/v1", "/v1/", "/v1/messages"] {
        let config = Config { base_url: format!("{}{path}", server.root_url()), ..config(&server) };
        let model = Endpoint::new(config).unwrap().model("claude-sonnet-5");
        ask(&model, &Asked::default()).await.0.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

// P29, P30, P31, P33.
#[tokio::test]
async fn results_come_first_all_of_one_turn_together_and_then_the_words_of_others() {
    let sent = messages(vec![
        Entry::user("Ann: Where?"),
        Entry::user("Ben: And when?"),
        Entry::own(vec![
            Part::text("I look."),
            call("call_of_other:0", "weather", json!({"b": 1, "a": 2})),
            call("call_0002", "no such tool!", json!("not an object")),
        ]),
        result("call_of_other:0", "weather", ToolResult::done("Sunny.")),
        result("call_0002", "no such tool!", ToolResult::failed("There is no such tool.")),
        Entry::user("Ann: Hurry."),
        Entry::System { parts: vec![Part::text("One minute is left.")] },
        Entry::assistant("It is sunny."),
        Entry::user("Ann: Thanks."),
    ])
    .await;
    let text = |text: &str| json!({"type": "text", "text": text});
    let id = &sent[1]["content"][1]["id"];
    assert_ne!(id, "call_of_other:0");
    let user = |content: Value| json!({"role": "user", "content": content});
    let own = |content: Value| json!({"role": "assistant", "content": content});
    assert_eq!(
        sent,
        [
            user(json!([text("Ann: Where?"), text("Ben: And when?")])),
            own(json!([
                text("I look."),
                {"type": "tool_use", "id": id, "name": "weather", "input": {"b": 1, "a": 2}},
                {"type": "tool_use", "id": "call_0002", "name": "no_such_tool_",
                 "input": {"unparsed": "not an object"}},
            ])),
            user(json!([
                {"type": "tool_result", "tool_use_id": id, "content": [text("Sunny.")]},
                {"type": "tool_result", "tool_use_id": "call_0002", "content": [text("There is no such tool.")],
                 "is_error": true},
                text("Ann: Hurry."),
            ])),
            json!({"role": "system", "content": [text("One minute is left.")]}),
            own(json!([text("It is sunny.")])),
            user(json!([text("Ann: Thanks.")])),
        ]
    );
}

// P32.
#[tokio::test]
async fn no_block_is_blank_and_no_message_empty() {
    let sent = messages(vec![
        Entry::user(" \n"),
        Entry::own(vec![Part::Thought("Hm.".into()), Part::text(" ")]),
        Entry::own(vec![Part::text("\t"), call("call_0001", "weather", json!({}))]),
        result("call_0001", "weather", ToolResult::done(" ")),
    ])
    .await;
    let none = json!([{"type": "text", "text": "(no content)"}]);
    let contents: Vec<&Value> = sent.iter().map(|message| &message["content"]).collect();
    assert_eq!((contents[0], contents[1]), (&none, &none));
    assert_eq!(contents[3].as_array().unwrap().len(), 1, "only the call");
    assert_eq!(contents[4][0]["content"], none);
}

// P49.
#[tokio::test]
async fn pictures_and_documents_are_blocks_in_results_too() {
    let sent = messages(vec![
        Entry::User {
            parts: vec![
                Part::text("Look:"),
                media("image/png", PNG),
                media("image/jpeg", "https://example.com/a.jpg"),
                media("application/pdf", PDF),
                media("application/pdf", "https://example.com/a.pdf"),
                media("audio/wav", "data:audio/wav;base64,AAAA"),
                media("image/tiff", "https://example.com/a.tiff"),
            ],
        },
        Entry::own(vec![call("call_0001", "weather", json!({}))]),
        result(
            "call_0001",
            "weather",
            outcome(vec![
                Part::text("A map:"),
                media("image/png", PNG),
                media("application/pdf", PDF),
                media("image/png", "https://example.com/b.png"),
            ]),
        ),
    ])
    .await;
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}});
    let document = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}});
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        sent[0]["content"],
        json!([
            text("Look:"),
            picture,
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
            document,
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
            text("[audio/wav]"),
            text("[image/tiff: https://example.com/a.tiff]"),
        ])
    );
    assert_eq!(
        sent[2]["content"][0]["content"],
        json!([text("A map:"), picture, document, text("[image/png: https://example.com/b.png]")])
    );
}

#[tokio::test]
async fn without_vision_the_pictures_of_results_are_named() {
    let server = Server::start(Answer::text("Hello.")).await;
    let blind = config(&server);
    let blind = Config { capabilities: blind.capabilities.without(Capability::Vision), ..blind };
    let entries = [
        Entry::user("Look."),
        Entry::own(vec![call("call_0001", "weather", json!({}))]),
        result("call_0001", "weather", outcome(vec![media("image/png", PNG)])),
    ];
    let asked = Asked { tools: vec![weather()], ..Asked::new(entries) };
    ask(&Endpoint::new(blind).unwrap().model("claude-sonnet-5"), &asked).await.0.unwrap();
    let result = server.requests()[0].messages()[2]["content"][0].clone();
    assert_eq!(result["content"], json!([{"type": "text", "text": "[image/png]"}]));
}

#[tokio::test]
async fn a_conversation_that_begins_with_the_agent_begins_with_others() {
    let sent =
        messages(vec![Entry::assistant("Hello."), Entry::assistant("Is anyone there?"), Entry::user("Yes.")])
            .await;
    let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
}

/// P34: the role `system` where the model has it and the place is right, else words of a user.
#[tokio::test]
async fn a_system_message_within_has_its_role_where_that_is_allowed() {
    let within = || Entry::System { parts: vec![Part::text("Hurry.")] };
    let (ask, own) = (|| Entry::user("Where?"), || Entry::assistant("Here."));
    let (user, system, assistant) = ("user", "system", "assistant");
    for (model, entries, expected) in [
        ("claude-opus-5", vec![ask(), within()], vec![(user, 0), (system, 1)]),
        (
            "claude-opus-5",
            vec![ask(), within(), own(), ask()],
            vec![(user, 0), (system, 1), (assistant, 0), (user, 0)],
        ),
        ("claude-opus-5", vec![within(), ask()], vec![(user, 1)]),
        ("claude-opus-5", vec![ask(), within(), ask()], vec![(user, 1)]),
        ("claude-opus-5", vec![ask(), within(), within()], vec![(user, 2)]),
        ("claude-opus-5", vec![ask(), own(), within()], vec![(user, 0), (assistant, 0), (user, 1)]),
        ("claude-opus-4-5", vec![ask(), within()], vec![(user, 1)]),
        ("claude-of-the-future", vec![ask(), within()], vec![(user, 1)]),
    ] {
        let server = Server::start(Behavior::from("So.")).await;
        let asked = Asked { tools: vec![weather()], ..Asked::new(entries) };
        asked_of(&claude(&server, model), &asked).await;
        let sent = server.requests()[0].messages().to_vec();
        assert_eq!(sent.iter().map(hurried).collect::<Vec<_>>(), expected, "{sent:?}");
        assert_eq!(server.violations(), [""; 0]);
    }
}

/// The role of a message, and how often it has the text `Hurry.`.
fn hurried(message: &Value) -> (&str, usize) {
    (message["role"].as_str().unwrap(), message["content"].to_string().matches("Hurry.").count())
}

/// A view that grows after a system message at its end is sent in one piece, as it would be without the part before.
#[tokio::test]
async fn a_system_message_that_is_no_longer_last_is_sent_as_its_new_place_allows() {
    let server = Server::start(Behavior::from("So.")).await;
    let model = claude(&server, "claude-opus-5");
    let within = Entry::System { parts: vec![Part::text("Hurry.")] };
    let mut asked = Asked { tools: vec![weather()], ..Asked::new([Entry::user("Where?"), within]) };
    asked_of(&model, &asked).await;
    asked.entries.push(Entry::user("And when?"));
    asked_of(&model, &asked).await;
    asked.entries.extend([Entry::assistant("Here."), Entry::user("Thanks.")]);
    asked_of(&model, &asked).await;
    let requests = server.requests();
    let sent = |nth: usize| requests[nth].messages().iter().map(hurried).collect::<Vec<_>>();
    assert_eq!(sent(0), [("user", 0), ("system", 1)]);
    assert_eq!(sent(1), [("user", 1)]);
    assert_eq!(sent(2), [("user", 1), ("assistant", 0), ("user", 0)]);
    assert_eq!(server.violations(), [""; 0]);
}

async fn asked_of(model: &polylogue_models::EndpointModel, asked: &Asked) {
    ask(model, asked).await.0.unwrap();
}

/// P50: Claude in Microsoft Foundry differs in address and key only, and the table knows its models.
#[tokio::test]
async fn claude_in_foundry_is_sent_the_same_with_its_own_key() {
    let server = Server::start(Behavior::from("So.")).await;
    let address = format!("{}/anthropic", server.root_url());
    let vars = [("ANTHROPIC_FOUNDRY_BASE_URL", &*address), ("ANTHROPIC_FOUNDRY_API_KEY", KEY)];
    let model = polylogue_models::Models::new(polylogue_models::Env::of(vars))
        .model("foundry:claude-opus-5")
        .unwrap();
    let asked = Asked { tools: vec![weather()], ..Asked::default() };
    asked_of(&model, &asked).await;
    asked_of(&claude(&server, "claude-opus-5"), &Asked { tools: vec![weather()], ..Asked::default() }).await;
    let [there, here] = [0, 1].map(|nth| server.requests()[nth].clone());
    assert_eq!((&*there.path, &there.body), ("/anthropic/v1/messages", &here.body));
    assert_eq!((there.header("api-key"), there.header("x-api-key")), (Some(KEY), None));
    assert_eq!(there.header("anthropic-version"), here.header("anthropic-version"));
    assert_eq!(model.price(), polylogue_models::list_price("anthropic", "claude-opus-5"));
    assert!(model.price().is_some());
    let error = polylogue_models::Models::new(polylogue_models::Env::of([("A", "b")]))
        .model("foundry:m")
        .unwrap_err();
    assert!(error.hint.unwrap().contains("services.ai.azure.com/anthropic"));
}

/// P50: Claude in Amazon Bedrock by Anthropic's API differs in address and authorization only: a key of Bedrock, or a signature
/// for the service.
#[tokio::test]
async fn claude_in_bedrock_is_sent_the_same_with_a_key_or_a_signature() {
    let server = Server::start(Behavior::from("So.")).await;
    let address = format!("{}/anthropic", server.root_url());
    let at = ("ANTHROPIC_BEDROCK_MANTLE_BASE_URL", &*address);
    let region = ("AWS_REGION", "eu-west-1");
    let signed = [at, region, ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", KEY)];
    let name = "bedrock-mantle:anthropic.claude-opus-4-8";
    let model = |vars: &[(&str, &str)]| {
        polylogue_models::Models::new(polylogue_models::Env::of(vars.iter().copied())).model(name).unwrap()
    };
    let asked = || Asked { tools: vec![weather()], ..Asked::default() };
    asked_of(&model(&[at, ("AWS_BEARER_TOKEN_BEDROCK", KEY)]), &asked()).await;
    asked_of(&model(&signed), &asked()).await;
    asked_of(&claude(&server, "claude-opus-4-8"), &asked()).await;
    let [by_key, by_signature, here] = [0, 1, 2].map(|nth| server.requests()[nth].clone());
    let mut body = here.body.clone();
    body["model"] = "anthropic.claude-opus-4-8".into();
    for there in [&by_key, &by_signature] {
        assert_eq!((&*there.path, &there.body), ("/anthropic/v1/messages", &body));
        assert_eq!(there.header("anthropic-version"), here.header("anthropic-version"));
        assert_eq!(there.header("x-api-key"), None);
    }
    assert_eq!(by_key.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let authorization = by_signature.header("authorization").unwrap();
    assert!(authorization.contains("/eu-west-1/bedrock-mantle/aws4_request, "), "{authorization}");
    assert!(!authorization.contains(KEY));
    let price = polylogue_models::list_price("anthropic", "claude-opus-4-8");
    assert_eq!(model(&signed).price(), price);
    assert!(price.is_some());
    let addressed = [region, ("AWS_BEARER_TOKEN_BEDROCK", KEY)];
    let provider = polylogue_models::Provider::find("bedrock-mantle").unwrap();
    let config = provider.config(&polylogue_models::Env::of(addressed)).unwrap();
    assert_eq!(config.base_url, "https://bedrock-mantle.eu-west-1.api.aws/anthropic");
    let error = provider.config(&polylogue_models::Env::of([("A", "b")])).unwrap_err();
    assert!(error.hint.unwrap().contains("AWS_REGION"));
}

/// P26, P50: the newer version is there from Claude 4.7 on. Of models that are not in the table, that is unknown.
#[tokio::test]
async fn claude_in_bedrock_is_asked_by_a_version_that_is_there() {
    let (old, new) = ("2023-06-01", "2026-10-21");
    for (model, expected) in [
        ("claude-haiku-4-5-20251001", old),
        ("claude-sonnet-4-5", old),
        ("claude-sonnet-4-6", old),
        ("claude-opus-4-6", old),
        ("claude-opus-4-7", new),
        ("claude-opus-5", new),
        ("claude-haiku-5-5", new),
        ("claude-of-tomorrow", old),
    ] {
        let server = Server::start(Behavior::from("So.")).await;
        let address = format!("{}/anthropic", server.root_url());
        let vars = [("ANTHROPIC_BEDROCK_MANTLE_BASE_URL", &*address), ("AWS_BEARER_TOKEN_BEDROCK", KEY)];
        let models = polylogue_models::Models::new(polylogue_models::Env::of(vars));
        asked_of(&models.model(&format!("bedrock-mantle:anthropic.{model}")).unwrap(), &Asked::default())
            .await;
        asked_of(&claude(&server, model), &Asked::default()).await;
        let [there, here] =
            [0, 1].map(|nth| server.requests()[nth].header("anthropic-version").unwrap().to_owned());
        assert_eq!((&*there, &*here), (expected, new), "{model}");
        assert_eq!(server.violations(), [""; 0], "{model}");
    }
}
