//! Replies, whole and streamed, and conversations that send them back.

use std::sync::Arc;

use polylogue_core::{Entry, FinishReason, Part, Reply, ToolResult};
use polylogue_models::{Config, Endpoint, EndpointModel, Key};
use polylogue_test::server::{Answer, Behavior, History, Playbook, Quirk, Server};
use serde_json::json;

use super::{claude, config};
use crate::common::{Asked, Heard, ask, entry, quick, text, weather};

fn look() -> Answer {
    Answer::text("I look. \u{2600}").think("Where?").call("weather", json!({"b": 1, "a": [2]})).usage(12, 34)
}

/// Asks, adds the reply, the results of its calls and words of others.
async fn turn(model: &EndpointModel, asked: &mut Asked) -> Reply {
    let reply = ask(model, asked).await.0.unwrap();
    asked.entries.push(entry(&reply));
    for call in reply.calls() {
        asked.entries.push(Entry::Tool { id: call.id, tool: call.tool, result: ToolResult::done("Sunny.") });
    }
    asked.entries.push(Entry::user("Ann: And then?"));
    reply
}

#[tokio::test]
async fn a_reply_is_the_same_whole_and_streamed() {
    for stream in [true, false] {
        let server = Server::start(look().usage_details(5, 0)).await;
        let model = Endpoint::new(Config { stream, ..config(&server) }).unwrap().model("claude-sonnet-5");
        let asked = Asked { tools: vec![weather()], ..Asked::default() };
        let mut received = Heard::default();
        let reply = polylogue_core::Model::complete(&model, &asked.request(), &mut received).await.unwrap();
        assert_eq!((text(&reply), &reply.finish), ("I look. \u{2600}".to_owned(), &FinishReason::Calls));
        assert!(
            matches!(&reply.parts[..], [Part::Thought(_), Part::Text(_), Part::ToolCall(_)]),
            "{reply:?}"
        );
        let usage = (reply.usage.input, reply.usage.cached, reply.usage.output);
        assert_eq!(usage, (Some(12), Some(5), Some(34)));
        assert_eq!(received.0, "(Where?)I look. \u{2600}<weather>{\"b\":1,\"a\":[2]}");
        assert_eq!(server.requests()[0].body.get("stream").is_some(), stream);
    }
}

// P19, P36, P106, P107: the server compares the signature of every thought with everything before it.
#[tokio::test]
async fn thoughts_go_back_signed_to_the_model_that_had_them_and_to_no_other() {
    let server = Server::start(Playbook::new(|_, _| look())).await;
    let (one, other) = (claude(&server, "claude-sonnet-5"), claude(&server, "claude-opus-5"));
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    for model in [&one, &one, &other, &other, &one, &other] {
        turn(model, &mut asked).await;
    }
    assert_eq!(server.violations(), [""; 0]);
    let thoughts = |nth: usize| {
        let requests = server.requests();
        let own = requests[nth].messages().iter().filter(|message| message["role"] == "assistant");
        own.map(|message| message["content"][0]["type"] == "thinking").collect::<Vec<_>>()
    };
    assert_eq!(thoughts(1), [true]);
    assert_eq!(thoughts(2), [false, false], "another model had them");
    assert_eq!(thoughts(3), [false, false, true]);
    assert_eq!(thoughts(4), [true, true, false, false], "what the first model wrote came after the same");
    assert_eq!(thoughts(5)[..3], [false, false, true]);
}

/// P36, P37: thoughts with nothing but a signature, and redacted ones, go back in their places.
#[tokio::test]
async fn every_block_goes_back_as_it_came() {
    let content = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "thinking", "thinking": "", "signature": "bm9uZQ=="},
        {"type": "text", "text": "I look."},
        {"type": "redacted_thinking", "data": "bW9yZQ=="},
        {"type": "tool_use", "id": "toolu_0001", "name": "weather", "input": {"b": 1, "a": [2]}},
    ]);
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": content,
        "stop_reason": "tool_use", "usage": {"input_tokens": 9, "output_tokens": 4},
    });
    let message = message.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        message.len()
    );
    let first = Server::start(Behavior::raw(format!("{head}{message}"))).await;
    // What it sent itself is not known to the second server.
    let second = Server::start(Behavior::from("Sunny.").history(History::Any)).await;
    let whole = |server: &Server| {
        let config = Config { stream: false, cache_marks: false, ..config(server) };
        Endpoint::new(config).unwrap().model("claude-sonnet-5")
    };
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    turn(&whole(&first), &mut asked).await;
    ask(&whole(&second), &asked).await.0.unwrap();
    assert_eq!(second.requests()[0].messages()[1]["content"], content);
}

// R8: signatures belong to the account of a key, so that a conversation stays with the key that made them, while others take the
// keys in turn.
#[tokio::test]
async fn a_conversation_stays_with_the_key_that_signed_its_thoughts() {
    let server = Server::start(Playbook::new(|_, _| look())).await;
    let keys = ["sk-ant-of-one", "sk-ant-of-two"].map(|key| Key::new(key).unwrap());
    let model = Endpoint::new(config(&server).with_keys(keys)).unwrap().model("claude-sonnet-5");
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    turn(&model, &mut asked).await;
    for _ in 0..2 {
        turn(&model, &mut Asked { tools: vec![weather()], ..Asked::default() }).await;
    }
    turn(&model, &mut asked).await;
    turn(&model, &mut asked).await;
    let sent = server.requests();
    let key = |nth: usize| sent[nth].header("x-api-key").unwrap_or_default().trim_start_matches("sk-ant-of-");
    assert_eq!([0, 1, 2, 3, 4].map(key), ["one", "two", "one", "one", "one"]);
    assert_eq!(server.violations(), [""; 0]);
}

// P106: a window that drops entries ends the use of the seals behind it.
#[tokio::test]
async fn thoughts_after_another_past_are_left_out() {
    let server = Server::start(Playbook::new(|_, _| look())).await;
    let model = claude(&server, "claude-sonnet-5");
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    for _ in 0..3 {
        turn(&model, &mut asked).await;
    }
    asked.entries[0] = Entry::user("How was the weather?");
    turn(&model, &mut asked).await;
    turn(&model, &mut asked).await;
    asked.system = Some("Be long.".into());
    turn(&model, &mut asked).await;
    assert_eq!(server.violations(), [""; 0]);
    let body = server.requests().last().unwrap().body.to_string();
    assert!(!body.contains("\"thinking\""), "{body}");
}

// P3, P5, P6, P43: what breaks is asked again, and nothing of it stays.
#[tokio::test]
async fn a_stream_that_breaks_is_asked_again() {
    for quirk in [Quirk::ErrorInStream(4), Quirk::Reset, Quirk::Truncated] {
        let broken = look().with(quirk.clone());
        let server = Server::start(Playbook::list([broken, look()])).await;
        let config = Config { retries: quick(2), ..config(&server) };
        let model = Endpoint::new(config).unwrap().model("claude-sonnet-5");
        let asked = Asked { tools: vec![weather()], ..Asked::default() };
        let (reply, received) = ask(&model, &asked).await;
        assert_eq!(text(&reply.unwrap()), "I look. \u{2600}", "{quirk:?}");
        let last = received.rsplit('|').next().unwrap();
        assert_eq!(last, "(Where?)I look. \u{2600}<weather>{\"b\":1,\"a\":[2]}", "{quirk:?}");
    }
}

// P41.
#[tokio::test]
async fn a_refused_reply_has_no_text() {
    for stream in [true, false] {
        let server = Server::start(Answer::text("I will").finish("refusal")).await;
        let model = Endpoint::new(Config { stream, ..config(&server) }).unwrap().model("claude-sonnet-5");
        let reply = ask(&model, &Asked::default()).await.0.unwrap();
        assert_eq!((reply.parts.len(), reply.finish), (0, FinishReason::REFUSED));
    }
}

// P42: what the provider has written goes back, and it writes the rest; the reply is one.
#[tokio::test]
async fn a_paused_reply_is_resumed_within_the_same_call() {
    for stream in [true, false] {
        let pause = |text: &str| Answer::text(text).think("Hm.").finish("pause_turn").usage(10, 5);
        let broken = Answer::text("Lost.").with(Quirk::Reset);
        let play = [pause("One. "), pause("Two. "), broken, look(), Answer::text("Done.")];
        let server = Server::start(Playbook::list(play)).await;
        let config = Config { stream, retries: quick(2), ..config(&server) };
        let model = Endpoint::new(config).unwrap().model("claude-sonnet-5");
        let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
        let (reply, received) = ask(&model, &asked).await;
        let reply = reply.unwrap();
        assert_eq!(
            (text(&reply), &reply.finish),
            ("One. \n\nTwo. \n\nI look. \u{2600}".into(), &FinishReason::Calls)
        );
        assert_eq!((reply.usage.input, reply.usage.output), (Some(32), Some(44)));
        let last = received.rsplit('|').next().unwrap();
        assert_eq!(last, "(Hm.)One. (Hm.)Two. (Where?)I look. \u{2600}<weather>{\"b\":1,\"a\":[2]}");
        // As one message it is accepted, too, with all that was signed.
        asked.entries.push(entry(&reply));
        let call = reply.calls().remove(0);
        asked.entries.push(Entry::Tool { id: call.id, tool: call.tool, result: ToolResult::done("Sunny.") });
        ask(&model, &asked).await.0.unwrap();
        assert_eq!(server.violations(), [""; 0]);
        let kinds = |nth: usize| {
            let content = server.requests()[nth].messages()[1]["content"].clone();
            content
                .as_array()
                .unwrap()
                .iter()
                .map(|block| block["type"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let one = ["thinking", "text", "server_tool_use"];
        assert_eq!(
            (kinds(1), kinds(2).len(), kinds(4)[..3].to_vec()),
            (one.map(String::from).into(), 6, one.map(String::from).into())
        );
    }
}

#[tokio::test]
async fn a_reply_that_pauses_repeatedly_or_breaks_is_incomplete() {
    let server = Server::start(Playbook::new(|_, _| Answer::text("More. ").finish("pause_turn"))).await;
    let (reply, received) = ask(&claude(&server, "claude-sonnet-5"), &Asked::default()).await;
    assert_eq!((reply.unwrap().finish, server.requests().len()), (FinishReason::Paused, 5));
    assert_eq!(received, "More. ".repeat(5));
    let pause = Answer::text("More. ").finish("pause_turn").usage(10, 5);
    let server = Server::start(Playbook::list([pause, Answer::text("Lost.").with(Quirk::Reset)])).await;
    let (reply, received) = ask(&claude(&server, "claude-sonnet-5"), &Asked::default()).await;
    let reply = reply.unwrap();
    assert_eq!(
        (text(&reply), reply.finish, reply.usage.input),
        ("More. ".into(), FinishReason::Paused, Some(10))
    );
    assert_eq!(received.rsplit('|').next().unwrap(), "More. ");
}

/// The strict server refuses a thought whose signature was changed, so that the other tests can fail.
#[tokio::test]
async fn the_server_refuses_a_signature_of_another_text() {
    let server = Server::start(Playbook::new(|_, _| look())).await;
    let model = claude(&server, "claude-sonnet-5");
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    let reply = turn(&model, &mut asked).await;
    let mut verbatim = (*reply.verbatim.clone().unwrap()).clone();
    let seals = verbatim.seals.as_mut().unwrap();
    seals.parts[0].data = json!({"signature": "another"});
    asked.entries[1] = Entry::Assistant { parts: reply.parts, verbatim: Some(Arc::new(verbatim)) };
    let error = ask(&model, &asked).await.0.unwrap_err();
    assert_eq!(error.kind, polylogue_core::ModelErrorKind::SealsRefused, "{error}");
}
