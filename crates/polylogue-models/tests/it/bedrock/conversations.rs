//! Conversations with reasoning, tools and people, which Bedrock accepts from the first request to the last.

use polylogue_core::{Entry, Part, Reply, ToolResult};
use polylogue_models::{Config, Endpoint, EndpointModel};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::{Value, json};

use crate::bedrock::config;
use crate::common::{Asked, ask, entry, weather};

/// Asks, and adds the reply and the results of its calls.
async fn turn(model: &EndpointModel, asked: &mut Asked) -> Reply {
    let reply = ask(model, asked).await.0.unwrap();
    asked.entries.push(entry(&reply));
    for call in reply.calls() {
        let outcome = ToolResult::done("sunny");
        asked.entries.push(Entry::Tool { id: call.id.clone(), tool: call.tool.clone(), result: outcome });
    }
    reply
}

fn thinking() -> Answer {
    Answer::text("I ask.").think("Where?").call("weather", json!({"b": 1, "a": [2]}))
}

fn reasoning(body: &Value) -> Vec<&Value> {
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    blocks.filter_map(|block| block.get("reasoningContent")).collect()
}

/// P95: reasoning goes back with its signature to the model that wrote it, and to no other.
#[tokio::test]
async fn reasoning_goes_back_to_its_model_only() {
    for stream in [true, false] {
        let server = Server::start(Behavior::from(Playbook::list(vec![thinking(); 4]))).await;
        let endpoint = Endpoint::new(Config { stream, ..config(&server) }).unwrap();
        let (one, other) = (endpoint.model("one"), endpoint.model("other"));
        let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
        for (model, thoughts) in [(&one, 0), (&one, 1), (&other, 0), (&one, 2)] {
            turn(model, &mut asked).await;
            asked.entries.push(Entry::user("And tomorrow?"));
            let requests = server.requests();
            let body = &requests.last().unwrap().body;
            assert_eq!(reasoning(body).len(), thoughts, "{body}");
            assert_eq!(body["messages"][0]["content"], json!([{"text": "How is the weather?"}]));
        }
        assert_eq!(server.violations(), [""; 0]);
    }
}

#[tokio::test]
async fn reasoning_that_was_changed_is_left_out() {
    let server = Server::start(Behavior::from(Playbook::list(vec![thinking(); 2]))).await;
    let model = Endpoint::new(config(&server)).unwrap().model("one");
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    turn(&model, &mut asked).await;
    let Some(Entry::Assistant { parts, .. }) = asked.entries.get_mut(1) else {
        panic!("{:?}", asked.entries)
    };
    parts[0] = Part::Thought("Why?".into());
    ask(&model, &asked).await.0.unwrap();
    assert!(reasoning(&server.requests()[1].body).is_empty());
    assert_eq!(server.violations(), [""; 0]);
}

/// Later requests begin with the bytes of earlier ones.
#[tokio::test]
async fn a_request_begins_as_the_one_before_it() {
    let server = Server::start(Behavior::from(Playbook::list(vec![thinking(); 6]))).await;
    let model = Endpoint::new(config(&server)).unwrap().model("one");
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    for nth in 0..6 {
        turn(&model, &mut asked).await;
        if nth % 2 == 1 {
            asked.entries.push(Entry::user("And then?"));
        }
    }
    let requests = server.requests();
    for (before, after) in requests.iter().zip(requests.iter().skip(1)) {
        let text = std::str::from_utf8(&before.bytes).unwrap();
        let end = text.find(r#"]}],"toolConfig""#).unwrap();
        assert!(after.bytes.starts_with(&before.bytes[..end]));
    }
    assert_eq!(server.violations(), [""; 0]);
}
