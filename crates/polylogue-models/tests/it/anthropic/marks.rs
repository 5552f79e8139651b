//! Marks up to which the provider caches the prompt.

use polylogue_core::{CacheLifetime, Entry, Model as _, Params, Part, ToolResult};
use polylogue_models::{Config, Endpoint, EndpointModel};
use polylogue_test::server::{Answer, Playbook, Server};
use serde_json::{Value, json};

use super::{claude, config};
use crate::common::{Asked, ask, weather};

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Where a body is marked, as the path of each marked block.
fn marked(body: &Value) -> Vec<String> {
    fn walk(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if fields.contains_key("cache_control") {
                    found.push(path.to_owned());
                }
                fields.iter().for_each(|(name, value)| walk(value, &format!("{path}/{name}"), found));
            }
            Value::Array(values) => {
                (0..)
                    .zip(values)
                    .for_each(|(at, value): (usize, _)| walk(value, &format!("{path}/{at}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(body, "", &mut found);
    found.sort();
    found
}

/// Asks `turns` times, each time after the reply and the results of its calls.
async fn talk(model: &EndpointModel, asked: &mut Asked, turns: usize) {
    for _ in 0..turns {
        let reply = ask(model, asked).await.0.unwrap();
        asked.entries.push(Entry::Assistant { parts: reply.parts.clone(), verbatim: reply.verbatim.clone() });
        for call in reply.calls() {
            asked.entries.push(Entry::Tool {
                id: call.id,
                tool: call.tool,
                result: ToolResult::done("Sunny."),
            });
        }
        asked.entries.push(Entry::user("And then?"));
    }
}

fn look() -> Answer {
    Answer::text("I look.").think("Where?").call("weather", json!({"b": 1}))
}

fn long() -> Asked {
    Asked { tools: vec![weather()], ..Asked::new([Entry::user("Where? ".repeat(300))]) }
}

// P48, P109.
#[tokio::test]
async fn the_system_text_the_first_and_the_last_message_and_the_one_before_are_marked() {
    let server = Server::start(Playbook::new(|_, _| look())).await;
    talk(&claude(&server, "claude-sonnet-5"), &mut long(), 12).await;
    let requests = server.requests();
    assert_eq!(marked(&requests[0].body), ["/messages/0/content/0", "/system/0"]);
    assert_eq!(marked(&requests[1].body), ["/messages/0/content/0", "/messages/2/content/1", "/system/0"]);
    for (nth, received) in requests.iter().enumerate().skip(2) {
        let mut expected = vec!["/messages/0/content/0".to_owned(), "/system/0".to_owned()];
        expected.extend([nth - 1, nth].map(|nth| format!("/messages/{}/content/1", 2 * nth)));
        expected.sort();
        assert_eq!(marked(&received.body), expected, "request {nth}");
    }
    assert_eq!(server.violations(), [""; 0]);
}

// P11: marks aside, a request begins with the bytes of the one before.
#[tokio::test]
async fn marks_leave_the_bytes_of_earlier_messages_alone() {
    let server = Server::start(Playbook::new(|_, _| look())).await;
    talk(&claude(&server, "claude-sonnet-5"), &mut long(), 10).await;
    let text = |received: &polylogue_test::server::Received| {
        String::from_utf8(received.bytes.clone()).unwrap().replace(MARK, "")
    };
    let bodies: Vec<String> = server.requests().iter().map(|received| text(received)).collect();
    for pair in bodies.windows(2) {
        let messages = pair[0].split("]}],\"max_tokens\"").next().unwrap();
        assert!(pair[1].starts_with(messages), "{}\ndoes not begin with\n{messages}", pair[1]);
    }
    // The same conversation encoded at once is the same, so nothing of the marks stays in the buffer.
    let fresh = Server::start(Playbook::new(|_, _| look())).await;
    let (model, mut asked) = (claude(&server, "claude-sonnet-5"), long());
    talk(&model, &mut asked, 6).await;
    let again = Asked { tools: vec![weather()], ..Asked::new(asked.entries.clone()) };
    ask(&claude(&fresh, "claude-sonnet-5"), &again).await.0.unwrap();
    ask(&model, &asked).await.0.unwrap();
    assert_eq!(text(server.requests().last().unwrap()), text(&fresh.requests()[0]));
    assert_eq!((server.violations(), fresh.violations()), (vec![], vec![]));
}

#[tokio::test]
async fn what_is_asked_once_or_is_short_or_is_to_have_no_marks_has_none() {
    let server = Server::start(Playbook::new(|_, _| Answer::text("Well."))).await;
    let model = claude(&server, "claude-sonnet-5");
    let mut once = Asked { tools: Vec::new(), ..long() };
    talk(&model, &mut once, 2).await;
    talk(&model, &mut Asked { tools: vec![weather()], system: None, ..Asked::default() }, 1).await;
    let off =
        Endpoint::new(Config { cache_marks: false, ..config(&server) }).unwrap().model("claude-sonnet-5");
    talk(&off, &mut long(), 3).await;
    let all: Vec<Vec<String>> = server.requests().iter().map(|received| marked(&received.body)).collect();
    assert_eq!(all[0], [""; 0], "asked once, without tools");
    assert_eq!(all[1], ["/messages/0/content/0", "/messages/2/content/0", "/system/0"], "asked again");
    assert_eq!(all[2], ["/tools/0"], "shorter than what is cached");
    assert!(all[3..].iter().all(Vec::is_empty), "switched off");
    assert_eq!(server.violations(), [""; 0]);
}

/// With `prompt_cache: 1h`, what is the same in every request is kept for an hour; it comes first, as the API requires.
#[tokio::test]
async fn what_is_the_same_in_every_request_is_cached_for_an_hour_on_request() {
    let server = Server::start(Playbook::new(|_, _| look())).await;
    let params = Params { prompt_cache: Some(CacheLifetime::Hour), ..Params::default() };
    let model = claude(&server, "claude-sonnet-5");
    assert_eq!(model.ignored(&params), [""; 0]);
    talk(&model, &mut Asked { params: params.clone(), ..long() }, 5).await;
    for (nth, received) in server.requests().iter().enumerate() {
        let body = &received.body;
        for first in ["/system/0", "/messages/0/content/0"] {
            assert_eq!(body.pointer(first).unwrap()["cache_control"]["ttl"], "1h", "request {nth}");
        }
        let marks = marked(body).len();
        assert_eq!(body.to_string().matches(r#""ttl":"1h""#).count(), 2, "request {nth}");
        assert_eq!(marks, [2, 3, 4, 4, 4][nth]);
    }
    // Without a system text, the tools are marked.
    talk(&model, &mut Asked { params, system: None, ..long() }, 1).await;
    let body = &server.requests()[5].body;
    assert_eq!(body["tools"][0]["cache_control"]["ttl"], "1h");
    assert_eq!(server.violations(), [""; 0]);
}

/// A system message at the end of a request has a message of its own, and joins that of what is said after it. So the place where a
/// request ended need not be one in the next.
#[tokio::test]
async fn a_last_message_that_changes_before_the_next_request_is_not_marked_where_it_ended() {
    let server = Server::start(Playbook::new(|_, _| Answer::text("Well."))).await;
    let model = claude(&server, "claude-fable-5");
    let mut asked = long();
    talk(&model, &mut asked, 2).await;
    asked.entries.push(Entry::System { parts: vec![Part::text("Be brief.")] });
    ask(&model, &asked).await.0.unwrap();
    asked.entries.push(Entry::user("Still there?"));
    ask(&model, &asked).await.0.unwrap();
    let bodies: Vec<Value> = server.requests().iter().map(|received| received.body.clone()).collect();
    assert_eq!(bodies[2]["messages"][5]["role"], "system", "{}", bodies[2]);
    assert_eq!(marked(&bodies[3]), ["/messages/0/content/0", "/messages/4/content/2", "/system/0"]);
    assert_eq!(server.violations(), [""; 0]);
}
