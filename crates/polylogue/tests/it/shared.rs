//! State that belongs to a team: what is set in a chat is seen within it, around it, and by its next run.

use std::sync::Arc;

use polylogue::policies::with_termination;
use polylogue::stop::LibraryStopReason;
use polylogue::stop::max_turns;
use polylogue::tools::agent_tool::AgentTool;
use polylogue::tools::state::{self, GetState, SetState};
use polylogue::{AnyModel, Assistant, Chat, Log, Status, parallel, round_robin, sequential};
use polylogue_core::{Body, Event, StateScope, StopReason};
use polylogue_models::Script;
use polylogue_test::cut::Calls;
use serde_json::{Value, json};

use crate::common::{cut_everywhere, log, script, solo_chat};

/// A step in which the agent sets a value.
fn sets(who: &str, key: &str, value: impl Into<Value>) -> Value {
    json!({who: {"calls": [{"tool": "set_state", "args": {"key": key, "value": value.into()}}]}})
}

/// A step in which the agent reads all values.
fn gets(who: &str) -> Value {
    json!({who: {"calls": [{"tool": "get_state"}]}})
}

fn says(who: &str, text: &str) -> Value {
    json!({who: text})
}

fn steps(steps: impl IntoIterator<Item = Value>) -> Script {
    script(&steps.into_iter().collect::<Value>().to_string())
}

fn agent(who: &str, model: AnyModel) -> Assistant {
    Assistant::new(who, model).unwrap().tool(SetState::new()).tool(GetState::new())
}

fn solo(name: &str, agent: Assistant) -> Chat {
    Chat::builder(name).participant(agent).policy(sequential()).build().unwrap()
}

/// What was read of the state, in order.
fn read(events: &[Arc<Event>]) -> Vec<String> {
    let mut asked: Vec<(&Event, &str)> = Vec::new();
    let mut found = Vec::new();
    for event in events {
        match &event.body {
            Body::ToolCalled { call, .. } if call.tool == "get_state" => asked.push((event, &call.id)),
            Body::ToolReturned { who, id, result: outcome }
                if asked.iter().any(|(call, known)| call.chat == event.chat && known == id) =>
            {
                found.push(format!("{who}: {}", outcome.text()));
            }
            _ => {}
        }
    }
    found
}

async fn run(chat: &Chat) -> (Status, Vec<Arc<Event>>) {
    let mut log: Log = log().await;
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    (status, log.events().await)
}

/// Runs what `make` makes, cut anywhere, and returns the events of the whole run.
async fn cut(make: impl Fn(&Calls) -> Chat) -> Vec<Arc<Event>> {
    cut_everywhere("go", make).await
}

#[tokio::test]
async fn what_a_chat_within_sets_is_seen_outside_and_by_its_next_run() {
    let script = steps([
        sets("In", "x", 1),
        says("In", "set"),
        gets("Out"),
        sets("Out", "y", 2),
        says("Out", "read"),
        gets("In"),
        sets("In", "x", 3),
        says("In", "again"),
        gets("Out"),
        says("Out", "done"),
    ]);
    let events = cut(|calls| {
        let model = || calls.through(script.model("test"));
        let inner = solo("inner", agent("In", model()));
        let chat = Chat::builder("outer").participant(inner).participant(agent("Out", model()));
        chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap()
    })
    .await;
    assert_eq!(read(&events), [r#"Out: {"x":1}"#, r#"In: {"x":1,"y":2}"#, r#"Out: {"x":3,"y":2}"#]);
}

#[tokio::test]
async fn a_value_set_in_a_nested_chat_ends_the_outermost_chat() {
    let script =
        steps([says("Out", "well"), sets("In", "approved", true), says("In", "yes"), says("Out", "never")]);
    let model = || AnyModel::new(script.model("test"));
    let inner = Chat::builder("inner")
        .participant(solo("core", agent("In", model())))
        .policy(sequential())
        .build()
        .unwrap();
    let chat = Chat::builder("outer").participant(agent("Out", model())).participant(inner);
    let chat =
        chat.policy(with_termination(round_robin(), state::reaches("approved", true))).build().unwrap();
    let (status, _) = run(&chat).await;
    let Status::Closed { reason, summary } = status else { panic!("{status:?}") };
    let wanted = StopReason::from(LibraryStopReason::Condition { name: "approved is true".into() });
    assert_eq!((reason, &*summary), (wanted, "yes"));
}

#[tokio::test]
async fn values_of_one_run_of_a_chat_are_not_visible_elsewhere() {
    let script = steps([
        sets("In", "x", 1),
        gets("In"),
        says("In", "set"),
        gets("Out"),
        says("Out", "read"),
        gets("In"),
        says("In", "again"),
    ]);
    let events = cut(|calls| {
        let model = || calls.through(script.model("test"));
        let own = agent("In", model()).tool(SetState::new().scope(StateScope::Chat));
        let chat = Chat::builder("outer").participant(solo("inner", own)).participant(agent("Out", model()));
        chat.policy(with_termination(round_robin(), max_turns(3))).build().unwrap()
    })
    .await;
    assert_eq!(read(&events), [r#"In: {"x":1}"#, "Out: {}", "In: {}"]);
}

// Changes of one are visible to the others when all are done, whatever the timing.
#[tokio::test(start_paused = true)]
async fn chats_at_the_same_time_see_what_was_set_before_and_not_what_others_set_meanwhile() {
    let slow = |mut step: Value, who: &str| {
        step[who]["delay_ms"] = json!(50);
        step
    };
    let script = steps([
        sets("First", "x", 0),
        says("First", "begun"),
        sets("A", "a", 1),
        gets("A"),
        says("A", "done"),
        slow(sets("B", "b", 1), "B"),
        slow(gets("B"), "B"),
        says("B", "done"),
        gets("Last"),
        says("Last", "end"),
    ]);
    let events = cut(|calls| {
        let model = || calls.through(script.model("test"));
        let both = Chat::builder("both")
            .participant(solo("one", agent("A", model())))
            .participant(solo("two", agent("B", model())));
        let both = both.policy(parallel()).build().unwrap();
        let chat = Chat::builder("outer")
            .participant(agent("First", model()))
            .participant(both)
            .participant(agent("Last", model()));
        chat.policy(sequential()).build().unwrap()
    })
    .await;
    let expected = [r#"A: {"x":0,"a":1}"#, r#"B: {"x":0,"b":1}"#, r#"Last: {"x":0,"a":1,"b":1}"#];
    assert_eq!(read(&events), expected);
}

#[tokio::test]
async fn an_agent_tool_shares_the_state_and_remembers_it_in_order() {
    let consult = |task: &str| json!({"Out": {"calls": [{"tool": "Critic", "args": {"task": task}}]}});
    let script = steps([
        sets("Out", "x", 1),
        consult("look"),
        gets("Critic"),
        sets("Critic", "x", 2),
        says("Critic", "looked"),
        gets("Out"),
        sets("Out", "x", 3),
        consult("again"),
        gets("Critic"),
        says("Critic", "seen"),
        says("Out", "thanks"),
        consult("once more"),
        gets("Critic"),
        says("Critic", "still"),
        says("Out", "bye"),
    ]);
    let events = cut(|calls| {
        let model = || calls.through(script.model("test"));
        let out = agent("Out", model()).agent_tool(AgentTool::agent(agent("Critic", model())));
        solo_chat("group", out, 2)
    })
    .await;
    let expected = [r#"Critic: {"x":1}"#, r#"Out: {"x":2}"#, r#"Critic: {"x":3}"#, r#"Critic: {"x":3}"#];
    assert_eq!(read(&events), expected);
}
