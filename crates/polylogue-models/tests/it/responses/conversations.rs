//! Conversations with reasoning, tools and people, whose every request the server accepts.

use polylogue_core::{Entry, FinishReason, Part, Reply, ToolResult};
use polylogue_models::{Api, Config, Endpoint};
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Server};
use serde_json::{Value, json};

use super::{config, reasoning};
use crate::common::{Asked, ask, entry, text, weather};

const RAW: &str = r#"{"b": 1.0, "a":"\u00e9\/"}"#;

/// The results of the calls of a reply.
fn results(reply: &Reply) -> impl Iterator<Item = Entry> {
    reply.calls().into_iter().map(|call| Entry::Tool {
        id: call.id,
        tool: call.tool,
        result: ToolResult::done("sunny"),
    })
}

fn look() -> Answer {
    Answer::text("I look.").think("Where?").call_raw("weather", RAW).usage(30, 20)
}

fn types(body: &Value) -> Vec<&str> {
    body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().or(item["role"].as_str()).unwrap())
        .collect()
}

/// P18, P69, P70, P72: reasoning, ids and phases come back, and arguments as the model wrote them.
#[tokio::test]
async fn a_tool_loop_returns_what_the_model_reasoned() {
    for stream in [true, false] {
        let answers = [look(), look(), Answer::text("It is sunny.").think("So.")];
        let server = Server::start(Playbook::list(answers)).await;
        let model = reasoning(Config { stream, ..config(&server) });
        let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
        for _ in 0..2 {
            let reply = ask(&model, &asked).await.0.unwrap();
            assert_eq!((reply.finish.clone(), reply.usage.input), (FinishReason::Calls, Some(30)));
            asked.entries.push(entry(&reply));
            asked.entries.extend(results(&reply));
        }
        let reply = ask(&model, &asked).await.0.unwrap();
        asked.entries.extend([entry(&reply), Entry::user("And tomorrow?")]);
        assert_eq!(text(&reply), "It is sunny.");
        assert_eq!(server.violations(), [""; 0]);
        let body = &server.requests()[2].body;
        let turn = ["reasoning", "message", "function_call", "function_call_output"];
        assert_eq!(types(body), [&["user"][..], &turn, &turn].concat());
        let input = &body["input"];
        assert!(input[1]["encrypted_content"].as_str().is_some_and(|sealed| sealed.len() == 32), "{input}");
        assert_eq!((&input[2]["phase"], &input[3]["arguments"]), (&json!("commentary"), &json!(RAW)));
        assert!(input[2]["id"].as_str().unwrap().starts_with("msg_"));
    }
}

/// P106, P107: reasoning stays behind at a change of the model or of what was before it, and comes back with its own model.
#[tokio::test]
async fn reasoning_is_sent_to_its_model_alone() {
    let answer = Answer::text("Sunny.").think("It is June.");
    let server = Server::start(Behavior::from(Playbook::always(answer))).await;
    let endpoint = Endpoint::new(Config { provider: "openai".into(), ..config(&server) }).unwrap();
    let (one, other) = (endpoint.model("gpt-5"), endpoint.model("o3"));
    let chat = Config { key: config(&server).key, ..Config::of(Api::ChatCompletions, &server.base_url()) };
    let chat = Endpoint::new(chat).unwrap().model("m");
    let count = || {
        let requests = server.requests();
        types(&requests.last().unwrap().body).iter().filter(|kind| **kind == "reasoning").count()
    };
    let mut asked = Asked::default();
    for (model, expected) in [(&one, 0), (&one, 1), (&other, 0), (&one, 2)] {
        let reply = ask(model, &asked).await.0.unwrap();
        assert_eq!(count(), expected);
        asked.entries.extend([entry(&reply), Entry::user("And now?")]);
    }
    let reply = ask(&chat, &asked).await.0.unwrap();
    asked.entries.extend([entry(&reply), Entry::user("And then?")]);
    ask(&one, &asked).await.0.unwrap();
    assert_eq!(count(), 3);
    asked.entries[0] = Entry::user("Another beginning.");
    ask(&one, &Asked { wire: Default::default(), ..asked }).await.0.unwrap();
    assert_eq!((count(), server.violations()), (0, Vec::new()));
}

/// P77: a refusal is text and a finish reason, and the conversation continues after it.
#[tokio::test]
async fn a_refusal_can_be_answered() {
    let answers = [Answer::text("I cannot.").finish("refusal"), Answer::text("Of course.")];
    let server = Server::start(Playbook::list(answers)).await;
    let model = reasoning(config(&server));
    let mut asked = Asked::default();
    let reply = ask(&model, &asked).await.0.unwrap();
    assert_eq!((&reply.finish, text(&reply)), (&FinishReason::REFUSED, "I cannot.".to_owned()));
    asked.entries.extend([entry(&reply), Entry::user("Please.")]);
    assert_eq!(text(&ask(&model, &asked).await.0.unwrap()), "Of course.");
    assert_eq!(server.violations(), [""; 0]);
}

/// Servers deviate here, too.
#[tokio::test]
async fn deviations_change_nothing() {
    for quirk in [
        Quirk::CallWhole,
        Quirk::Crlf,
        Quirk::Comments,
        Quirk::NoSpace,
        Quirk::MultiLineData,
        Quirk::SplitEvery(1),
        Quirk::Merged,
        Quirk::Unstreamed,
        Quirk::NoFinalNewline,
        Quirk::NoLength,
    ] {
        let server = Server::start(Behavior::from(look().with(quirk.clone()))).await;
        let asked = Asked { tools: vec![weather()], ..Asked::default() };
        let reply =
            ask(&reasoning(config(&server)), &asked).await.0.unwrap_or_else(|e| panic!("{quirk}: {e}"));
        let [Part::Thought(thought), Part::Text(text), Part::ToolCall(call)] = &reply.parts[..] else {
            panic!("{quirk}: {reply:?}")
        };
        assert_eq!((&**thought, &**text, &*call.tool), ("Where?", "I look.", "weather"), "{quirk}");
    }
}
