//! Strict servers that play one provider each: they refuse nothing that its row of the table of deviations leads to, and something
//! without any part of the row.

use crate::common::{Asked, ask, entry, weather};
use polylogue_core::{
    AnyModel, Capability, EncodeCache, Entry, Params, Part, Price, Reply, ToolCall, ToolChoice, ToolResult,
};
use polylogue_models::{
    Config, Deviations, Endpoint, EndpointModel, Env, Models, Prices, Provider, Retries, SendReasoning,
};
use polylogue_test::server::{Answer, Behavior, Playbook, Server, Vendor};
use serde_json::{Value, json};

/// Each row: the provider, one of its models that reason, and who is played.
const ROWS: [(&str, &str, Vendor); 17] = [
    ("openai-chat", "o3", Vendor::OpenAi),
    ("mistral", "magistral-medium-latest", Vendor::Mistral),
    ("cohere", "command-a-03-2025", Vendor::Cohere),
    ("deepseek", "deepseek-v4", Vendor::DeepSeek),
    ("deepseek", "deepseek-r1", Vendor::DeepSeek),
    ("openrouter", "anthropic/claude-sonnet-5", Vendor::OpenRouter),
    ("openrouter", "deepseek/deepseek-v4", Vendor::OpenRouter),
    ("openrouter", "moonshotai/kimi-k2.6", Vendor::OpenRouter),
    ("groq", "openai/gpt-oss-120b", Vendor::Groq),
    ("xai", "grok-4.20", Vendor::Xai),
    ("lmstudio", "m", Vendor::LmStudio),
    ("vllm", "MiniMaxAI/MiniMax-M2", Vendor::Vllm),
    ("llamacpp", "gpt-oss-120b", Vendor::LlamaCpp),
    ("sglang", "MiniMaxAI/MiniMax-M2", Vendor::Sglang),
    ("moonshot", "kimi-k2.6", Vendor::Moonshot),
    ("tgi", "m", Vendor::Tgi),
    ("together", "moonshotai/Kimi-K2-Thinking", Vendor::Together),
];

/// A part of a row: its name, how it is reset to what OpenAI accepts, and its value.
type RowPart = (&'static str, fn(&mut Config), fn(&Config) -> String);

const PARTS: [RowPart; 15] = [
    ("stream usage", |config| config.stream_usage = true, |config| config.stream_usage.to_string()),
    ("ids", |config| config.call_id_length = None, |config| format!("{:?}", config.call_id_length)),
    (
        "reasoning",
        |config| config.reasoning = SendReasoning::Never,
        |config| format!("{:?}", config.reasoning),
    ),
    ("seed", |config| config.deviations.seed = "seed", |config| config.deviations.seed.to_owned()),
    (
        "named tool",
        |config| config.deviations.named_tool_choice = true,
        |config| config.deviations.named_tool_choice.to_string(),
    ),
    (
        "stop texts",
        |config| config.deviations.stop_while_reasoning = true,
        |config| config.deviations.stop_while_reasoning.to_string(),
    ),
    (
        "limit of models that reason",
        |config| config.deviations.completion_limit_while_reasoning = false,
        |config| config.deviations.completion_limit_while_reasoning.to_string(),
    ),
    (
        "top_p of 1",
        |config| config.deviations.top_p_below_one = false,
        |config| config.deviations.top_p_below_one.to_string(),
    ),
    (
        "temperature of 0",
        |config| config.deviations.temperature_above_zero = false,
        |config| config.deviations.temperature_above_zero.to_string(),
    ),
    (
        "null content",
        |config| config.capabilities = config.capabilities.with(Capability::NullContent),
        |config| (config.capabilities.has(Capability::NullContent) != Some(false)).to_string(),
    ),
    (
        "refused parameters",
        |config| config.deviations.refuses = Deviations::NONE.refuses,
        |config| format!("{:?}", config.deviations.refuses),
    ),
    (
        "parameters refused by OpenAI itself",
        |config| config.deviations.own_refuses = Deviations::NONE.own_refuses,
        |config| format!("{:?}", config.deviations.own_refuses),
    ),
    (
        "parameters refused while reasoning",
        |config| config.deviations.refuses_while_reasoning = Deviations::NONE.refuses_while_reasoning,
        |config| format!("{:?}", config.deviations.refuses_while_reasoning),
    ),
    (
        "models that refuse reasoning",
        |config| config.deviations.refuses_reasoning = Deviations::NONE.refuses_reasoning,
        |config| format!("{:?}", config.deviations.refuses_reasoning),
    ),
    (
        "models that expect reasoning",
        |config| config.deviations.wants_reasoning = Deviations::NONE.wants_reasoning,
        |config| format!("{:?}", config.deviations.wants_reasoning),
    ),
];

/// What came before: another model's call, and people who speak right after its result.
fn earlier() -> Vec<Entry> {
    let call = ToolCall { id: "call_of_another_provider".into(), tool: "weather".into(), args: json!({}) };
    let outcome = ToolResult::done("Rain.");
    let result = Entry::Tool { id: call.id.clone(), tool: call.tool.clone(), result: outcome };
    vec![Entry::user("Weather?"), Entry::own(vec![Part::ToolCall(call)]), result, Entry::user("And now?")]
}

fn params() -> Params {
    Params {
        temperature: Some(0.0),
        top_p: Some(1.0),
        seed: Some(7),
        top_k: Some(4),
        max_tokens: Some(500),
        stop: vec!["\n\n".into()],
        tool_choice: Some(ToolChoice::Tool("weather".into())),
        parallel_tool_calls: Some(true),
        ..Params::default()
    }
}

fn thinking() -> [Answer; 3] {
    let reply = |text: &str, thought: &str| Answer::text(text).think(thought);
    [
        reply("I look.", "It may rain.").call("weather", json!({"b": 1, "a": [2]})),
        reply("Sunny.", "It does not."),
        reply("Still sunny.", "As before."),
    ]
}

fn add_reply(asked: &mut Asked, reply: &Reply) {
    asked.entries.push(entry(reply));
    for call in reply.calls() {
        asked.entries.push(Entry::Tool { id: call.id, tool: call.tool, result: ToolResult::done("Sunny.") });
    }
}

/// The configuration of `provider` for a server at `address` that plays it.
fn played_at(provider: &str, address: &str) -> Config {
    let provider = Provider::find(provider).unwrap();
    let mut config = provider.config_at(address);
    // Other servers with its API may take what OpenAI itself refuses.
    config.deviations.own_refuses = provider.config_at("https://api.openai.com/v1").deviations.own_refuses;
    config
}

/// A model of `provider` that `server` plays.
fn model_at(server: &Server, provider: &str, model: &str, change: impl Fn(&mut Config)) -> EndpointModel {
    let mut config = played_at(provider, &server.base_url());
    config.retries = Retries::none();
    change(&mut config);
    Endpoint::new(config).unwrap().model(model)
}

/// Asks, has the calls answered, asks again, and once more after a question.
async fn talk(model: &EndpointModel) -> Asked {
    let mut asked = Asked { tools: vec![weather()], params: params(), ..Asked::new(earlier()) };
    for question in [None, Some("And then?"), None] {
        let Ok(reply) = ask(model, &asked).await.0 else { break };
        add_reply(&mut asked, &reply);
        asked.entries.extend(question.map(Entry::user));
    }
    asked
}

/// Holds a conversation with a strict server of `vendor`: a call, its result, and one more question.
async fn hold(provider: &str, model: &str, vendor: Vendor, change: impl Fn(&mut Config)) -> Server {
    let server = Server::start(Behavior::from(Playbook::list(thinking())).vendor(vendor)).await;
    talk(&model_at(&server, provider, model, change)).await;
    server
}

/// P105.
#[tokio::test]
async fn the_server_of_each_provider_refuses_nothing() {
    for (provider, model, vendor) in ROWS {
        for stream in [true, false] {
            let server = hold(provider, model, vendor, |config| config.stream = stream).await;
            let case = format!("{provider}:{model}, streamed: {stream}");
            assert_eq!(server.violations(), [""; 0], "{case}");
            assert_eq!(server.unused(), 0, "{case}");
        }
    }
}

/// P105: no part of a row can be missing. Each part is in some row.
#[tokio::test]
async fn without_a_part_of_its_row_the_server_of_a_provider_refuses_a_request() {
    let mut played = Vec::new();
    for (provider, model, vendor) in ROWS {
        for (part, reset, value) in PARTS {
            let row = played_at(provider, "http://127.0.0.1:9/v1");
            let mut usual = row.clone();
            reset(&mut usual);
            // Models of the same provider can refuse what others expect.
            let is_of_model = match part {
                "models that refuse reasoning" => model.contains("r1"),
                "models that expect reasoning" => {
                    ["deepseek/", "moonshotai/"].iter().any(|of| model.starts_with(of))
                }
                _ => !model.contains("r1"),
            };
            let differs = value(&row) != value(&usual) && is_of_model;
            let refused = !hold(provider, model, vendor, reset).await.violations().is_empty();
            assert_eq!(refused, differs, "{provider}:{model} without {part}");
            played.extend(differs.then_some(part));
        }
    }
    assert!(PARTS.iter().all(|(part, ..)| played.contains(part)), "{played:?}");
}

/// The reasoning that the assistant's messages of the last request return.
fn reasoning(server: &Server) -> Vec<Value> {
    let requests = server.requests();
    let own = requests.last().unwrap().messages().iter().filter(|message| message["role"] == "assistant");
    own.map(|message| message.get("reasoning_content").cloned().unwrap_or_default()).collect()
}

/// P101: reasoning with every message, and none to R1.
#[tokio::test]
async fn deepseek_is_sent_reasoning_with_every_message_and_r1_with_none() {
    let server = hold("deepseek", "deepseek-v4", Vendor::DeepSeek, |_| {}).await;
    assert_eq!(reasoning(&server), [json!(" "), json!("It may rain."), json!("It does not.")]);
    let server = hold("deepseek", "deepseek-r1", Vendor::DeepSeek, |_| {}).await;
    assert_eq!(reasoning(&server), [Value::Null, Value::Null, Value::Null]);
}

/// P101: Moonshot refuses calls of tools without reasoning, and takes a space for one.
#[tokio::test]
async fn moonshot_is_sent_a_space_where_there_is_no_reasoning_of_its_model() {
    let answers = thinking().into_iter().chain([Answer::text("Always.").think("Who asks?")]);
    let server = Server::start(Behavior::from(Playbook::list(answers)).vendor(Vendor::Moonshot)).await;
    let model = model_at(&server, "moonshot", "kimi-k2.6", |_| {});
    let mut asked = talk(&model).await;
    assert_eq!(reasoning(&server), [json!(" "), json!("It may rain."), json!("It does not.")]);
    // What was reasoned before other instructions stays behind.
    asked.entries.push(Entry::user("And tomorrow?"));
    let system = Some("Be long.".to_owned());
    let asked = Asked { system, wire: EncodeCache::default(), ..asked };
    ask(&model, &asked).await.0.unwrap();
    assert_eq!(reasoning(&server), vec![json!(" "); 4]);
    assert_eq!(server.violations(), [""; 0]);
}

/// What a part is.
fn kind(part: &Part) -> &'static str {
    match part {
        Part::Thought(_) => "thought",
        Part::Text(_) => "text",
        Part::ToolCall(_) => "call",
        _ => "other",
    }
}

/// P19: what is reasoned after a text comes after it in the reply, and all of it goes back as each provider expects it. Only Mistral says
/// in whole replies where it was, and has texts apart; of others the text is one, streamed or not.
#[tokio::test]
async fn reasoning_between_texts_goes_back_as_it_was_sent() {
    for (provider, name, vendor) in ROWS {
        for stream in [true, false] {
            let looks = Answer::text("I look.").think("It may rain.").after("Let me see. ", "One moment. ");
            let answers = [looks.call("weather", json!({})), Answer::text("Sunny.")];
            let server = Server::start(Behavior::from(Playbook::list(answers)).vendor(vendor)).await;
            let model = model_at(&server, provider, name, |config| config.stream = stream);
            let mut asked = Asked { tools: vec![weather()], params: params(), ..Asked::new(earlier()) };
            let reply = ask(&model, &asked).await.0.unwrap();
            let kinds: Vec<_> = reply.parts.iter().map(kind).collect();
            let case = format!("{provider}:{name}, streamed: {stream}");
            let (expected, text) = match (vendor, stream) {
                (Vendor::Mistral, _) => {
                    (&["thought", "text", "thought", "text", "call"][..], "One moment. \n\nI look.")
                }
                (_, true) => (&["thought", "text", "thought", "call"][..], "One moment. I look."),
                (_, false) => (&["thought", "text", "call"][..], "One moment. I look."),
            };
            assert_eq!((&kinds[..], &*reply.text()), (expected, text), "{case}");
            add_reply(&mut asked, &reply);
            ask(&model, &asked).await.0.unwrap();
            assert_eq!(server.violations(), [""; 0], "{case}");
            assert_eq!(server.unused(), 0, "{case}");
        }
    }
}

/// P103: the log and the cost are those of the model that OpenRouter names, if it chose another one, by `openrouter/auto` or by
/// `models`; the user's price of it counts, or else that of the model that was asked.
#[tokio::test]
async fn the_model_that_openrouter_chose_is_logged_and_priced() {
    let choices =
        r#"[{"index":0,"delta":{"content":"Hi."},"message":{"content":"Hi."},"finish_reason":"stop"}]"#;
    let whole = |model: &str| {
        let usage = r#"{"prompt_tokens":1000000,"completion_tokens":0,"total_tokens":1000000}"#;
        format!(r#"{{"id":"x","model":"{model}","choices":{choices},"usage":{usage}}}"#)
    };
    let dollars = |input| Price { input, ..Price::FREE };
    let prices = Prices::new([
        ("openrouter:a/chosen".to_owned(), dollars(3.0).into()),
        ("openrouter:a/asked".to_owned(), dollars(1.0).into()),
    ]);
    for (provider, asked, named, logged, cost) in [
        ("openrouter", "openrouter/auto", "a/chosen", "openrouter:a/chosen", Some(3)),
        ("openrouter", "a/asked", "a/chosen", "openrouter:a/chosen", Some(3)),
        ("openrouter", "a/asked", "b/unpriced", "openrouter:b/unpriced", Some(1)),
        ("openrouter", "openrouter/auto", "b/unpriced", "openrouter:b/unpriced", None),
        ("openrouter", "a/asked", "a/asked-2026-01-01", "", Some(1)),
        ("openrouter", "a/asked:nitro", "a/asked", "", None),
        ("together", "a/asked", "a/chosen", "", None),
    ] {
        for stream in [true, false] {
            let json = whole(named);
            let (kind, body) = match stream {
                true => ("text/event-stream", format!("data: {json}\n\ndata: [DONE]\n\n")),
                false => ("application/json", json),
            };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}", body.len());
            let server = Server::start(Behavior::raw(format!("{head}\r\n\r\n{body}"))).await;
            let config = Provider::find(provider).unwrap().config_at(&server.base_url());
            let models = Models::new(Env::of([("NONE", "")])).with_prices(prices.clone());
            models.define(Config { stream, ..config }).unwrap();
            let model = models.model(&format!("{provider}:{asked}")).unwrap();
            let reply = ask(&model, &Asked::default()).await.0.unwrap();
            let case = format!("{provider}:{asked} by {named}, streamed: {stream}");
            assert_eq!(polylogue_core::text_of(&reply.parts), "Hi.", "{case}");
            let by = reply.answered_by.as_deref();
            assert_eq!(by.map_or("", |by| &*by.model), logged, "{case}");
            let own = AnyModel::from(model.clone()).call_cost(&reply.usage);
            let total = by.map_or(own, |by| by.cost).map(|cost| cost.cost.picodollars / 1_000_000_000_000);
            assert_eq!(total, cost, "{case}");
        }
    }
}
