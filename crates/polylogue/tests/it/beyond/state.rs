//! A state that a team shares.

use polylogue::policies::group::{Group, Selected};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::tools::state::{self, GetState, SetState};
use polylogue::{Act, Chat, Function, Message, Name, Transcript, parallel, round_robin};
use polylogue_core::{Part, Path};
use serde_json::{Map, Value, json};

use crate::beyond::stage::{events, name, play, print};
use crate::common::solo_chat;

fn with_state(values: Value) -> impl Fn(&str) -> Vec<Message> + Send + Sync + 'static {
    move |task| {
        let values: Map<String, Value> = values.as_object().cloned().unwrap_or_default();
        vec![state::given(values), Message::new(Name::user(), task)]
    }
}

#[tokio::test]
async fn values_are_set_read_in_the_same_turn_and_end_the_chat() {
    let script = r#"[
        {"A": {"calls": [{"tool": "set_state", "args": {"key": "draft", "value": {"words": 3}}}, {"tool": "get_state"}]}},
        {"A": {"calls": [{"tool": "get_state"}, {"tool": "get_state", "args": {"key": "draft"}}]}}, {"A": "written"},
        {"B": {"calls": [{"tool": "set_state", "args": {"key": "ok", "value": true}},
            {"tool": "set_state", "args": {"key": "draft", "value": null}}]}}, {"B": "approved"}]"#;
    let events = events(script, |cast| {
        let writer = cast.assistant("A").tool(SetState::new()).tool(GetState::new());
        let policy = with_termination(round_robin(), state::reaches("ok", true) | max_turns(9));
        let builder =
            Chat::builder("group").participant(writer).participant(cast.assistant("B").tool(SetState::new()));
        builder.opening(with_state(json!({"ok": false}))).policy(policy).build().unwrap()
    })
    .await;
    let said = print(&events);
    // A parallel read returns the value before the write.
    assert!(said.contains(r#"A gets #A-0-1: {"ok":false}"#), "{said}");
    assert!(said.contains(r#"A gets #A-1-0: {"ok":false,"draft":{"words":3}}"#), "{said}");
    assert!(said.contains(r#"A gets #A-1-1: {"words":3}"#), "{said}");
    assert!(said.ends_with("closed (the condition `ok is true` held): approved"), "{said}");
    let transcript = Transcript::from_events(&Path::root(), &events).unwrap();
    assert_eq!(Value::Object(state::of(&transcript)), json!({"ok": true}));
    assert_eq!(state::get(&transcript, "ok"), Some(json!(true)));
    assert!(state::is("ok", true)(&transcript) && state::is("draft", Value::Null)(&transcript));
}

#[tokio::test]
async fn invalid_keys_and_values_of_the_state_are_refused_with_a_reason() {
    let long = "x".repeat(state::MAX_VALUE_BYTES);
    let call = |args: Value| json!({"tool": "set_state", "args": args});
    let script = json!([{"A": {"calls": [
        call(json!({"key": "other", "value": 1})), call(json!({"key": " ", "value": 1})), call(json!({"value": 1})),
        call(json!({"key": "a"})), call(json!({"key": "a", "value": long})), {"tool": "get_state", "args": {"key": 1}},
    ]}}, {"A": "sorry"}]);
    let said = play(&script.to_string(), |cast| {
        let a = cast.assistant("A").tool(SetState::new().only(["a", "b"])).tool(GetState::new());
        solo_chat("group", a, 1)
    })
    .await;
    let failures: Vec<_> =
        said.lines().filter_map(|line| line.split_once(" failed: ")).map(|(_, why)| why).collect();
    assert_eq!(
        failures,
        [
            "`other` cannot be set; what can be set is `a`, `b`",
            "`key` must be a text that is not empty",
            "`key` must be a text that is not empty",
            "`value` is missing; to take a key away, set it to null",
            "the value has 16387 bytes; at most 16384 can be set",
            "`key` must be a text; got 1",
        ]
    );
}

#[tokio::test]
async fn there_is_an_end_to_the_keys() {
    let full: Map<String, Value> = (0..state::MAX_KEYS).map(|n| (format!("k{n}"), json!(n))).collect();
    let script = r#"[{"A": {"calls": [{"tool": "set_state", "args": {"key": "new", "value": 1}},
        {"tool": "set_state", "args": {"key": "k1", "value": 2}}]}}, {"A": "hm"}]"#;
    let events = events(script, |cast| {
        let builder = Chat::builder("group").participant(cast.assistant("A").tool(SetState::new()));
        let builder = builder.opening(with_state(Value::Object(full.clone())));
        builder.policy(with_termination(round_robin(), max_turns(1))).build().unwrap()
    })
    .await;
    assert!(print(&events).contains("failed: there are 256 keys already; take one away first"));
    let state = state::of(&Transcript::from_events(&Path::root(), &events).unwrap());
    assert_eq!((state.len(), state.get("k1")), (256, Some(&json!(2))));
}

#[tokio::test]
async fn of_parallel_turns_the_last_request_counts_whatever_the_timing() {
    let set = |who: &str, delay: u64| json!({who: {"calls": [{"tool": "set_state", "args": {"key": "k", "value": who}}], "delay_ms": delay}});
    let script = json!([set("A", 20), {"A": "a"}, set("B", 0), {"B": "b"}]);
    let events = events(&script.to_string(), |cast| {
        let builder = Chat::builder("group").participant(cast.assistant("A").tool(SetState::new()));
        builder.participant(cast.assistant("B").tool(SetState::new())).policy(parallel()).build().unwrap()
    })
    .await;
    assert_eq!(state::get(&Transcript::from_events(&Path::root(), &events).unwrap(), "k"), Some(json!("B")));
}

#[tokio::test]
async fn functions_set_values_by_what_they_say_and_other_data_is_left_alone() {
    let events = events("[]", |_| {
        let say = |who: &str, data: Value| {
            Function::new(who, move |_| Ok(Act::Say(vec![Part::Data(data.clone())]))).unwrap()
        };
        Chat::builder("group")
            .participant(say("A", json!({"state": {"a": 1}})))
            .participant(say("B", json!({"state": {"b": 1}, "more": 1})))
            .participant(say("C", json!({"state": "c"})))
            .participant(say("D", json!(["state"])))
            .policy(with_termination(round_robin(), max_turns(4)))
            .build()
            .unwrap()
    })
    .await;
    assert_eq!(
        Value::Object(state::of(&Transcript::from_events(&Path::root(), &events).unwrap())),
        json!({"a": 1})
    );
}

#[tokio::test]
async fn a_group_selects_by_state() {
    let script = r#"[{"A": {"calls": [{"tool": "set_state", "args": {"key": "urgent", "value": true}}]}}, {"A": "fire"},
        {"C": "on my way"}]"#;
    let (b, c) = (name("B"), name("C"));
    let said = play(script, |cast| {
        let (b, c, urgent) = (b.clone(), c.clone(), state::is("urgent", true));
        let rule = move |chat: &Transcript, _: &[Name]| match chat.turns() {
            0 => Selected::from(name("A")),
            _ if urgent(chat) => c.clone().into(),
            _ => b.clone().into(),
        };
        let builder = Chat::builder("group").participant(cast.assistant("A").tool(SetState::new()));
        let builder = builder.participant(cast.assistant("B")).participant(cast.assistant("C"));
        builder.policy(with_termination(Group::custom(rule), max_turns(2))).build().unwrap()
    })
    .await;
    assert!(said.contains("C says: on my way\nclosed"), "{said}");
}
