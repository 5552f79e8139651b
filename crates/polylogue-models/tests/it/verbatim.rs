//! What a reply has next to its parts goes back to the server that sent it, byte for byte.

use crate::common::{Asked, ask, config, config_of, entry, model, weather};
use polylogue_core::{Entry, Part, Reply, ToolResult};
use polylogue_models::{Api, Config, Endpoint, SendReasoning};
use polylogue_test::server::{Answer, Behavior, History, Playbook, Quirk, Server};
use serde_json::{Value, json};

/// Arguments with unsorted keys, one of them twice, a number and an escape that `serde_json` writes in another way.
const RAW: &str = r#"{"b": 1.0, "a":"\u00e9\/", "c": 1e2, "b": 2.50}"#;

/// Asks, adds the reply and the results of its calls, and asks again.
async fn twice(config: Config, change: impl Fn(&mut Reply)) -> Vec<Entry> {
    let model = model(config);
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    let mut reply = ask(&model, &asked).await.0.unwrap();
    change(&mut reply);
    asked.entries.push(entry(&reply));
    let call = reply.calls().remove(0);
    let outcome = ToolResult::done("sunny");
    asked.entries.push(Entry::Tool { id: call.id, tool: call.tool, result: outcome });
    ask(&model, &asked).await.0.unwrap();
    asked.entries
}

#[tokio::test]
async fn arguments_go_back_as_the_model_wrote_them() {
    for stream in [true, false] {
        let answers = [Answer::default().call_raw("weather", RAW), Answer::text("Sunny.")];
        let server = Server::start(Playbook::list(answers)).await;
        twice(Config { stream, ..config(&server) }, |_| {}).await;
        let sent = &server.requests()[1].body["messages"][2]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(sent.as_str(), Some(RAW));
        assert_eq!(server.violations(), [""; 0]);
    }
}

#[tokio::test]
async fn arguments_that_were_changed_go_back_as_they_are_now() {
    let answers = [Answer::default().call_raw("weather", RAW), Answer::text("Sunny.")];
    let server = Server::start(Playbook::list(answers)).await;
    let change = |reply: &mut Reply| {
        let Part::ToolCall(call) = &mut reply.parts[0] else { panic!("{reply:?}") };
        call.args = json!({"b": 3});
    };
    twice(config(&server), change).await;
    let sent = &server.requests()[1].body["messages"][2]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(sent.as_str(), Some(r#"{"b":3}"#));
}

#[tokio::test]
async fn ollama_gets_the_object_as_the_model_wrote_it() {
    let raw = r#"{"b": 1.0, "a":"\u00e9", "c": 2}"#;
    let answers = [Answer::default().call_raw("weather", raw), Answer::text("Sunny.")];
    let server = Server::start(Playbook::list(answers)).await;
    let ours = config(&server);
    let config = Config { provider: "test".into(), key: ours.key, ..Config::ollama(&server.ollama_url()) };
    twice(config, |_| {}).await;
    // The scripted server writes its object again, so what it sent is what counts.
    let received = String::from_utf8(server.requests()[1].bytes.clone()).unwrap();
    assert!(received.contains(r#""arguments":{"b":1.0,"a":"é","c":2}"#), "{received}");
}

/// The calls of another model, whose arguments have a key twice: where they are an object of the body, that would be no proper JSON.
#[tokio::test]
async fn keys_that_come_twice_are_sent_once_where_arguments_are_an_object() {
    let answers = [Answer::default().call_raw("weather", RAW), Answer::text("Sunny.")];
    let server = Server::start(Playbook::list(answers)).await;
    let entries = twice(config(&server), |_| {}).await;
    for (api, provider, name) in [
        (Api::Messages, "anthropic", "claude-sonnet-5"),
        (Api::Gemini, "gemini", "gemini-3-pro-preview"),
        (Api::Converse, "bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        (Api::Ollama, "ollama", "qwen3"),
    ] {
        let server = Server::start(Behavior::from("Sunny.")).await;
        let model = Endpoint::new(config_of(api, provider, &server)).unwrap().model(name);
        let asked = Asked { tools: vec![weather()], ..Asked::new(entries.clone()) };
        ask(&model, &asked).await.0.unwrap_or_else(|error| panic!("{api:?}: {error:?}"));
        assert_eq!(server.violations(), [""; 0], "{api:?}");
        let sent = String::from_utf8(server.requests()[0].bytes.clone()).unwrap();
        assert!(sent.contains(r#"{"b":2.5,"a":"é/","c":100.0}"#), "{api:?}: {sent}");
    }
}

/// The reasoning that the last request of `server` has, by message.
fn reasoning(server: &Server) -> Vec<Value> {
    let requests = server.requests();
    let messages = requests.last().unwrap().messages().iter();
    let own = messages.filter(|message| message["role"] == "assistant");
    own.map(|message| {
        message.get("reasoning_content").or(message.get("reasoning")).cloned().unwrap_or_default()
    })
    .collect()
}

async fn server(quirks: &[Quirk]) -> Server {
    let answer = quirks.iter().cloned().fold(Answer::text("Sunny.").think("It is June."), Answer::with);
    Server::start(Behavior::from(Playbook::always(answer)).history(History::Loose)).await
}

#[tokio::test]
async fn reasoning_goes_back_to_the_model_that_wrote_it_where_the_server_expects_it() {
    for (send, expected) in [
        (SendReasoning::Never, [json!(null), json!(null)]),
        (SendReasoning::Always, [json!(null), json!("It is June.")]),
        (SendReasoning::AlwaysOrBlank, [json!(" "), json!("It is June.")]),
    ] {
        for quirks in [&[][..], &[Quirk::ReasoningField]] {
            let server = server(quirks).await;
            let model = model(Config { reasoning: send, ..config(&server) });
            let mut asked =
                Asked::new([Entry::user("Hi."), Entry::assistant("Hello."), Entry::user("Weather?")]);
            let reply = ask(&model, &asked).await.0.unwrap();
            asked.entries.extend([entry(&reply), Entry::user("And now?")]);
            ask(&model, &asked).await.0.unwrap();
            assert_eq!(reasoning(&server), expected, "{send:?}");
            let last = server.requests().last().unwrap().messages()[4].clone();
            assert_eq!(last.get("reasoning").is_some(), !quirks.is_empty() && send != SendReasoning::Never);
        }
    }
}

#[tokio::test]
async fn reasoning_stays_behind_when_the_model_or_what_was_before_it_changes() {
    let server = server(&[]).await;
    let endpoint = Endpoint::new(Config { reasoning: SendReasoning::Always, ..config(&server) }).unwrap();
    let model = endpoint.model("m");
    let mut asked = Asked::default();
    for text in ["And now?", "And then?"] {
        let reply = ask(&model, &asked).await.0.unwrap();
        asked.entries.extend([entry(&reply), Entry::user(text)]);
    }
    let june = || json!("It is June.");
    ask(&model, &asked).await.0.unwrap();
    assert_eq!(reasoning(&server), [june(), june()]);
    ask(&endpoint.model("other"), &asked).await.0.unwrap();
    assert_eq!(reasoning(&server), [json!(null), json!(null)]);
    // Back at the first model, its own reasoning fits again.
    ask(&model, &asked).await.0.unwrap();
    assert_eq!(reasoning(&server), [june(), june()]);
    let first = asked.entries.remove(0);
    asked.entries.insert(0, Entry::user("Another beginning."));
    ask(&model, &Asked { wire: Default::default(), ..asked }).await.0.unwrap();
    assert_eq!(reasoning(&server), [json!(null), json!(null)]);
    drop(first);
}
