use std::collections::BTreeSet;

use polylogue_core::{EncodeCache, Media, Name, Origin, Params, Part, Path, ToolCall, ToolResult, ToolSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::deviations::SendReasoning;
use crate::openai::ChatCompletions;
use crate::wire::sent::RequestFormat;

#[path = "encode_forms_tests.rs"]
mod forms;
#[path = "encode_groups_tests.rs"]
mod groups;

const STYLE: Style = Style {
    marks: false,
    long_marks: false,
    marks_system: false,
    names_prefix: false,
    lacks_reasoning: false,
    accepts: crate::accepts::Accepts::UNKNOWN,
    media: &crate::media_limits::MediaLimits::NONE,
    merge: true,
    stream: false,
    stream_usage: true,
    max_tokens: "max_tokens",
    vision: false,
    fold: false,
    omit: false,
    bridge: false,
    vertex: false,
    reasoning: SendReasoning::Never,
    call_id_length: None,
    deviations: crate::deviations::Deviations::NONE,
};

struct Asked {
    at: Path,
    who: Name,
    system: Option<String>,
    tools: Vec<ToolSpec>,
    params: Params,
    wire: EncodeCache,
}

impl Asked {
    fn new() -> Self {
        let (system, tools) = (Some("Be brief.".to_owned()), Vec::new());
        let who = Name::new("a").unwrap();
        Self { at: Path::root(), who, system, tools, params: Params::default(), wire: EncodeCache::default() }
    }

    /// The body for `entries`; the buffer goes back into the wire as after a call.
    fn body(&self, entries: &[Entry], style: &Style) -> Vec<u8> {
        self.body_as::<ChatCompletions>(entries, style)
    }

    fn body_as<P: Protocol>(&self, entries: &[Entry], style: &Style) -> Vec<u8> {
        let origin = Origin::new(&self.at, &self.who, 0);
        let Self { tools, params, wire, .. } = self;
        let request = Request {
            origin,
            system: self.system.as_deref(),
            entries,
            tools,
            params,
            encoded: wire,
            reserved: None,
        };
        let body = encode::<P>(&request, "m", style);
        let bytes = body.bytes().to_vec();
        body.give_back(&request);
        bytes
    }

    fn json(&self, entries: &[Entry], style: &Style) -> Value {
        serde_json::from_slice(&self.body(entries, style)).unwrap()
    }
}

fn call(id: &str, args: Value) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), tool: "look".into(), args })
}

fn image() -> Part {
    Part::Media(Media { media_type: "image/png".into(), url: "https://example.com/a.png".into() })
}

/// One that a tool could have drawn.
fn drawn(data: &str) -> Part {
    Part::Media(Media { media_type: "image/png".into(), url: format!("data:image/png;base64,{data}").into() })
}

fn returned(id: &str, tool: &str, parts: Vec<Part>) -> Entry {
    let outcome = ToolResult::new(polylogue_core::ToolStatus::Done, parts);
    Entry::Tool { id: id.into(), tool: tool.into(), result: outcome }
}

#[test]
fn the_whole_body_of_a_request() {
    let mut asked = Asked::new();
    asked.tools = vec![ToolSpec::new("look", "Looks \"there\"", json!({"type": "object"})).repeatable()];
    asked.params.temperature = Some(0.2);
    let entries = [
        Entry::user("Hi\n\"you\""),
        Entry::own(vec![call("c1", json!({"x": 1}))]),
        Entry::Tool { id: "c1".into(), tool: "look".into(), result: ToolResult::done("seen") },
    ];
    let body = String::from_utf8(asked.body(&entries, &Style { stream: true, ..STYLE })).unwrap();
    let expected = concat!(
        r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},"#,
        r#"{"role":"user","content":"Hi\n\"you\""},"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","#,
        r#""function":{"name":"look","arguments":"{\"x\":1}"}}]},"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"seen"}],"#,
        r#""tools":[{"type":"function","function":{"name":"look","description":"Looks \"there\"","#,
        r#""parameters":{"type":"object","properties":{}}}}],"temperature":0.2,"stream":true,"#,
        r#""stream_options":{"include_usage":true}}"#,
    );
    assert_eq!(body, expected);
}

#[test]
fn parameters_are_sent_under_their_names_and_extra_fields_win() {
    let mut asked = Asked::new();
    asked.params = Params {
        temperature: Some(f64::NAN),
        top_p: Some(0.5),
        top_k: Some(40),
        seed: Some(-7),
        max_tokens: Some(100),
        stop: vec!["END".into()],
        schema: Some(json!({"type": "string"})),
        extra: json!({"seed": 8, "stream": false, "model": "other", "min_p": 0.1})
            .as_object()
            .unwrap()
            .clone(),
        ..Params::default()
    };
    let mut body = asked.json(&[Entry::user("x")], &Style { max_tokens: "max_completion_tokens", ..STYLE });
    body.as_object_mut().unwrap().shift_remove("messages");
    let expected = json!({
        "model": "other", "top_p": 0.5, "top_k": 40, "seed": 8, "max_completion_tokens": 100, "stop": ["END"],
        "response_format": {"type": "json_schema", "json_schema":
            {"name": "reply", "schema": {"type": "string"}, "strict": false}},
        "stream": false, "min_p": 0.1,
    });
    assert_eq!(body, expected);
    // `serde_json` would keep the last of two equal keys, so they are counted in the bytes.
    let bytes = asked.body(&[Entry::user("x")], &STYLE);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!((text.matches("\"seed\":").count(), text.matches("\"model\":").count()), (1, 1));
}

// What a group's selector is set to (`pick: {model: {role: system}}`) reaches the wire.
#[test]
fn a_prompt_in_the_role_system_keeps_its_role_on_the_wire() {
    let entries = [
        Entry::user("Ann: hi"),
        Entry::user("Bob: ho"),
        Entry::System { parts: vec![Part::text("Who is next?")] },
    ];
    let expected = |said: &[&str]| {
        let said = said.iter().map(|text| json!({"role": "user", "content": text}));
        let prompt = json!({"role": "system", "content": "Who is next?"});
        Value::from(said.chain([prompt]).collect::<Vec<_>>())
    };
    let mut asked = Asked::new();
    asked.system = None;
    assert_eq!(asked.json(&entries, &STYLE)["messages"], expected(&["Ann: hi\n\nBob: ho"]));
    let apart = Style { merge: false, ..STYLE };
    assert_eq!(
        Asked { wire: EncodeCache::default(), ..asked }.json(&entries, &apart)["messages"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let mut again = Asked::new();
    again.system = None;
    again.json(&entries, &STYLE);
    let more = [&entries[..], &[Entry::assistant("Ann"), Entry::user("Ann: well")]].concat();
    let fresh = Asked { system: None, ..Asked::new() }.body(&more, &STYLE);
    assert_eq!(again.body(&more, &STYLE), fresh, "what is kept of the request before is its beginning");
}

#[test]
fn what_others_say_in_a_row_is_one_message_unless_kept_apart() {
    let entries = [
        Entry::user("a"),
        Entry::user("b"),
        Entry::assistant("c"),
        Entry::user("e"),
        Entry::User { parts: vec![image(), Part::text("f")] },
    ];
    let mut asked = Asked::new();
    asked.system = None;
    let image = json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let merged = asked.json(&entries, &STYLE);
    assert_eq!(
        merged["messages"],
        json!([
            {"role": "user", "content": "a\n\nb"},
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": [text("e"), image, text("f")]},
        ])
    );
    let apart = asked.json(&entries, &Style { merge: false, ..STYLE });
    assert_eq!(apart["messages"].as_array().unwrap().len(), 5);
    assert_eq!(apart["messages"][4]["content"], json!([image, text("f")]));
}

#[test]
fn no_content_is_ever_empty_and_odd_parts_are_put_in_words() {
    let media = |kind: &str, url: &str| Part::Media(Media { media_type: kind.into(), url: url.into() });
    let parts = vec![
        media("audio/wav", "data:audio/wav;base64,AAAA"),
        media("application/pdf", "data:application/pdf;base64,BBBB"),
        media("video/mp4", "https://example.com/a.mp4"),
        Part::Data(json!({"k": "v"})),
    ];
    let outcome = |parts| ToolResult::new(polylogue_core::ToolStatus::Done, parts);
    let entries = [
        Entry::User { parts },
        Entry::own(vec![call("c1", json!("raw")), call("c2", json!({"a": 1}))]),
        Entry::Tool { id: "c1".into(), tool: "look".into(), result: outcome(vec![]) },
        Entry::Tool {
            id: "c2".into(),
            tool: "look".into(),
            result: outcome(vec![Part::Data(json!([1])), image(), Part::text(" ")]),
        },
        Entry::User { parts: vec![Part::text("  ")] },
        Entry::own(vec![]),
        Entry::User { parts: vec![Part::Thought("secret".into()), Part::text("go")] },
    ];
    let body = Asked::new().json(&entries, &STYLE);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,BBBB"}},
            {"type": "text", "text": "[video/mp4: https://example.com/a.mp4]"},
            {"type": "text", "text": "{\"k\":\"v\"}"},
        ])
    );
    let arguments = |index: usize| messages[2]["tool_calls"][index]["function"]["arguments"].clone();
    assert_eq!((arguments(0), arguments(1)), (json!("{\"unparsed\":\"raw\"}"), json!("{\"a\":1}")));
    assert_eq!(messages[3]["content"], "(no content)");
    assert_eq!(messages[4]["content"], "[1]\n\n[image/png: https://example.com/a.png]");
    assert_eq!(messages[5]["content"], "(no content)");
    assert_eq!(messages[6]["content"], "(no content)");
    assert_eq!(messages[7]["content"], "go");
}

#[test]
fn names_that_a_model_invented_are_sent_in_a_form_that_is_allowed() {
    let long = "x".repeat(70);
    let named = |tool: &str| {
        Part::ToolCall(ToolCall { id: format!("id {tool}"), tool: tool.into(), args: json!({}) })
    };
    let names = ["look", "functions.look it", "", &long, "blick\u{fc}"];
    let entries = [Entry::own(names.iter().map(|name| named(name)).collect())];
    let body = Asked::new().json(&entries, &STYLE);
    let calls = body["messages"][2]["tool_calls"].as_array().unwrap();
    let sent: Vec<&str> = calls.iter().map(|call| call["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(sent, ["look", "functions_look_it", "unnamed", &long[..64], "blick_"]);
}

#[test]
fn another_system_text_model_or_style_is_not_taken_for_the_old_one() {
    let mut asked = Asked::new();
    let entries = [Entry::user("a"), Entry::assistant("b"), Entry::user("c")];
    asked.body(&entries, &STYLE);
    asked.system = Some("Other.".into());
    let body = asked.json(&entries, &STYLE);
    assert_eq!(body["messages"][0]["content"], "Other.");
    asked.params.extra.insert("model".into(), json!("n"));
    assert_eq!(asked.json(&entries, &STYLE)["model"], "n");
    let shorter = asked.json(&entries[..1], &STYLE);
    assert_eq!(shorter["messages"].as_array().unwrap().len(), 2);
}

/// What a strict server accepts: the rules of chat templates and of OpenAI's API. Without `bridge` it takes words after results.
fn strict(body: &Value, bridge: bool) -> Result<(), String> {
    let mut awaited: Vec<String> = Vec::new();
    let mut previous = "system";
    let messages = body["messages"].as_array().ok_or("no messages")?;
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().ok_or("no role")?;
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let content = &message["content"];
        let filled = content.as_str().is_some_and(|text| !text.is_empty())
            || content.as_array().is_some_and(|parts| !parts.is_empty());
        if !(filled || (content.is_null() && !calls.is_empty())) {
            return Err(format!("message {index} is empty"));
        }
        let fits = match role {
            "system" => index == 0,
            "user" if previous == "tool" => !bridge && awaited.is_empty(),
            "user" => matches!(previous, "system" | "assistant") && awaited.is_empty(),
            "assistant" => matches!(previous, "user" | "tool") && awaited.is_empty(),
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let known = awaited.iter().position(|other| other == id);
                known.map(|at| awaited.remove(at)).is_some()
            }
            _ => false,
        };
        if !fits {
            return Err(format!("message {index} of {role} after {previous}"));
        }
        for call in &calls {
            let args = call["function"]["arguments"].as_str().ok_or("no arguments")?;
            serde_json::from_str::<serde_json::Map<String, Value>>(args)
                .map_err(|error| error.to_string())?;
            awaited.push(call["id"].as_str().unwrap_or_default().to_owned());
        }
        previous = role;
    }
    if previous == "assistant" || !awaited.is_empty() { Err("ends too early".into()) } else { Ok(()) }
}

#[derive(Debug, Clone)]
enum Turn {
    User(Vec<Part>),
    Assistant(String),
    Calls(Option<String>, Vec<(Value, ToolResult)>),
}

fn words() -> impl Strategy<Value = String> {
    "[a-z\"\\\\\\n äß€]{0,12}x"
}

fn turn() -> impl Strategy<Value = Turn> {
    let part = prop_oneof![
        4 => words().prop_map(Part::text),
        1 => Just(image()),
        1 => Just(Part::Data(json!({"n": 1}))),
    ];
    let args = prop_oneof![Just(json!({"q": "\"x\""})), words().prop_map(Value::from), Just(json!({}))];
    let seen = (words(), "[A-Z]{4}")
        .prop_map(|(text, data)| vec![Part::text(text), drawn(&data), drawn("QUJD")])
        .prop_map(|parts| ToolResult::new(polylogue_core::ToolStatus::Done, parts));
    let outcome = prop_oneof![words().prop_map(ToolResult::done), Just(ToolResult::unknown()), seen];
    prop_oneof![
        3 => proptest::collection::vec(part, 1..3).prop_map(Turn::User),
        2 => words().prop_map(Turn::Assistant),
        2 => (proptest::option::of(words()), proptest::collection::vec((args, outcome), 1..3))
            .prop_map(|(text, calls)| Turn::Calls(text, calls)),
    ]
}

/// A legal view of these turns, which may begin with the agent's own words, with the lengths at which its agent could be asked.
fn view(turns: &[Turn]) -> (Vec<Entry>, BTreeSet<usize>) {
    let (mut entries, mut asked) = (Vec::new(), BTreeSet::new());
    for (index, turn) in turns.iter().enumerate() {
        match turn {
            Turn::User(parts) => entries.push(Entry::User { parts: parts.clone() }),
            Turn::Assistant(text) => {
                entries.push(Entry::assistant(&**text));
                continue;
            }
            Turn::Calls(text, calls) => {
                let text = text.iter().map(|text| Part::text(&**text));
                let id = |at| format!("c{index}_{at}");
                let made = calls.iter().enumerate().map(|(at, (args, _))| call(&id(at), args.clone()));
                entries.push(Entry::own(text.chain(made).collect()));
                for (at, (_, outcome)) in calls.iter().enumerate() {
                    let outcome = outcome.clone();
                    entries.push(Entry::Tool { id: id(at), tool: "look".into(), result: outcome });
                }
            }
        }
        asked.insert(entries.len());
    }
    (entries, asked)
}

/// What `body` says up to the end of its last message.
fn messages(body: &[u8]) -> &[u8] {
    let text = std::str::from_utf8(body).unwrap();
    &body[..text.rfind("],\"stream\":").unwrap_or(text.rfind(']').unwrap())]
}

proptest! {
    #[test]
    fn a_body_built_step_by_step_is_the_body_built_at_once(
        turns in proptest::collection::vec(turn(), 0..12), merge: bool, stream: bool,
        vision: bool, fold: bool, bridge: bool, skip in 1_usize..4,
    ) {
        let style = Style { merge, stream, vision, fold, bridge, ..STYLE };
        let grown = Asked::new();
        let (entries, asked) = view(&turns);
        let mut earlier: Option<Vec<u8>> = None;
        for length in asked.into_iter().step_by(skip) {
            let part = &entries[..length];
            let body = grown.body(part, &style);
            prop_assert_eq!(&body, &Asked::new().body(part, &style));
            let reported = RequestFormat { merge, vision, bridge }.sent(part);
            let plain = Style { merge: false, vision: false, bridge: false, ..style };
            prop_assert_eq!(&body, &Asked::new().body(&reported, &plain), "what is shown of it is what is sent");
            let json: Value = serde_json::from_slice(&body).unwrap();
            if merge {
                prop_assert_eq!(strict(&json, bridge), Ok(()));
            }
            if let Some(earlier) = &earlier {
                prop_assert!(body.starts_with(earlier), "the earlier body is a prefix up to its last message");
            }
            let kept = grown.wire.take::<ViewBuffer>().unwrap();
            prop_assert!(body.starts_with(&kept.buffer));
            // Words of others may still join the message with the pictures of results.
            let has_pictures = || !pictures::shown(pictures::run(part)).is_empty();
            let settled = match part.last() {
                Some(Entry::Tool { .. }) if !vision || !has_pictures() => messages(&body),
                _ => &kept.buffer[..],
            };
            earlier = Some(settled.to_vec());
            grown.wire.put(kept);
        }
    }
}

#[test]
fn entries_are_encoded_once_and_into_the_same_buffer() {
    let asked = Asked::new();
    let mut entries = vec![Entry::user("x".repeat(100_000))];
    asked.body(&entries, &STYLE);
    let kept = asked.wire.take::<ViewBuffer>().unwrap();
    assert_eq!(kept.prefix.entries, 0, "the last message may still grow");
    asked.wire.put(kept);
    entries.extend([Entry::assistant("y"), Entry::user("z")]);
    asked.body(&entries, &STYLE);
    let kept = asked.wire.take::<ViewBuffer>().unwrap();
    assert_eq!(kept.prefix.entries, 2);
    let place = kept.buffer.as_ptr();
    asked.wire.put(kept);
    entries.extend([Entry::assistant("y"), Entry::user("z")]);
    asked.body(&entries, &STYLE);
    let kept = asked.wire.take::<ViewBuffer>().unwrap();
    assert_eq!((kept.prefix.entries, kept.buffer.as_ptr()), (4, place), "the buffer is not copied");
}
