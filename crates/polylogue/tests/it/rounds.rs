//! Tool calls within one turn: how often the same is called, and how often a model may call at all.

use std::sync::Arc;

use polylogue::layers::executor::Executor;
use polylogue::layers::reply::Stack;
use polylogue::policies::with_termination;
use polylogue::stop::LibraryStopReason;
use polylogue::stop::LoopDetector;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Tool, round_robin, sequential};
use polylogue_core::{Body, Event, RunOutcome, StopReason, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::{Value, json};

use crate::common::{name, run_to_end, script};

/// A job that is polled: it tells how often it was asked, or always the same.
struct Job {
    spec: ToolSpec,
    advances: bool,
}

impl Job {
    fn new(advances: bool) -> Self {
        Self {
            spec: ToolSpec::new("poll", "Polls the job.", json!({"type": "object"})).repeatable(),
            advances,
        }
    }
}

impl Tool for Job {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    async fn call(&self, _: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let polls = cx.turn.iter().filter(|event| matches!(event.body, Body::ToolReturned { .. })).count();
        Ok(ToolResult::done(if self.advances { format!("{polls} %") } else { "pending".into() }))
    }
}

/// The agent polls so often, then says that it is done.
fn polls(times: usize) -> AnyModel {
    let poll = json!({"Ann": {"calls": [{"tool": "poll", "args": {"job": 1}}]}});
    let steps: Vec<Value> =
        std::iter::repeat_n(poll, times).chain([json!({"Ann": "The job is done."})]).collect();
    AnyModel::new(script(&Value::from(steps).to_string()).model("test"))
}

fn polling(times: usize, advances: bool) -> Assistant {
    Assistant::new("Ann", polls(times)).unwrap().tool(Job::new(advances))
}

async fn run(chat: &Chat) -> (StopReason, String, Vec<Arc<Event>>) {
    run_to_end(chat, "Is it done?").await
}

fn alone(ann: Assistant) -> polylogue_core::ChatBuilder {
    Chat::builder("group").participant(ann).policy(with_termination(sequential(), LoopDetector::default()))
}

fn calls(events: &[Arc<Event>]) -> usize {
    events.iter().filter(|event| matches!(event.body, Body::ToolCalled { .. })).count()
}

#[tokio::test]
async fn four_equal_polls_and_a_good_answer_are_no_circle() {
    let (reason, summary, events) = run(&alone(polling(4, false)).build().unwrap()).await;
    assert_eq!(
        (reason, &*summary, calls(&events)),
        (StopReason::from(LibraryStopReason::Replied { who: name("Ann") }), "The job is done.", 4)
    );
}

#[tokio::test]
async fn equal_calls_are_stopped_within_the_turn() {
    let (reason, summary, events) = run(&alone(polling(16, false)).build().unwrap()).await;
    assert_eq!((&*summary, calls(&events)), ("", Chat::DEFAULT_MAX_EQUAL_CALLS));
    assert_eq!(reason.outcome(), RunOutcome::Limit, "{reason}");
    let StopReason::LoopDetected { pattern, evidence, .. } = reason else { panic!("{reason}") };
    assert_eq!(&*pattern, StopReason::CALLS);
    assert!(evidence.len() == Chat::DEFAULT_MAX_EQUAL_CALLS && evidence.is_sorted(), "{evidence:?}");
}

#[tokio::test]
async fn equal_calls_with_different_results_are_no_loop() {
    let (reason, summary, events) = run(&alone(polling(15, true)).build().unwrap()).await;
    assert_eq!(
        (reason, &*summary, calls(&events)),
        (StopReason::from(LibraryStopReason::Replied { who: name("Ann") }), "The job is done.", 15)
    );
}

#[tokio::test]
async fn the_number_of_equal_calls_that_are_a_loop_can_be_set() {
    for (limit, times, made) in [(2, 16, 2), (3, 3, 3), (0, 15, 15)] {
        let chat = alone(polling(times, false)).max_equal_calls(limit).build().unwrap();
        assert_eq!(calls(&run(&chat).await.2), made, "{limit}");
    }
}

#[tokio::test]
async fn equal_calls_of_one_reply_are_counted_before_they_are_made() {
    let call = |nth: usize| json!({"tool": "poll", "args": {}, "id": format!("c{nth}")});
    let steps = json!([{"Ann": {"calls": (0..16).map(call).collect::<Vec<_>>()}}, {"Ann": "done"}]);
    let model = AnyModel::new(script(&steps.to_string()).model("test"));
    let ann = Assistant::new("Ann", model).unwrap().tool(Job::new(false));
    let (reason, _, events) = run(&alone(ann).build().unwrap()).await;
    assert!(
        matches!(&reason, StopReason::LoopDetected { pattern, .. } if **pattern == *StopReason::CALLS),
        "{reason}"
    );
    assert_eq!(calls(&events), 0);
}

// The calls of an agent that another executes are messages: four equal ones and an answer pass there, too.
#[tokio::test]
async fn polling_through_another_agent_is_left_alone_as_well() {
    let chat = |times| {
        let executor = Executor::new().tool(Job::new(false));
        let ann = Assistant::new("Ann", polls(times)).unwrap().suggest_tool(Job::new(false).spec().clone());
        let bob = Stack::new("Bob").unwrap().then(executor);
        let order = with_termination(with_termination(round_robin(), max_turns(60)), LoopDetector::default());
        Chat::builder("group").participant(ann).participant(bob).policy(order).build().unwrap()
    };
    let (reason, summary, _) = run(&chat(4)).await;
    assert_eq!(
        (reason, &*summary),
        (StopReason::from(LibraryStopReason::NoReply { who: name("Bob") }), "The job is done.")
    );
    let (reason, ..) = run(&chat(20)).await;
    assert!(
        matches!(&reason, StopReason::LoopDetected { pattern, .. } if **pattern == *StopReason::CALLS),
        "{reason}"
    );
}

#[tokio::test]
async fn a_turn_that_used_up_its_tool_rounds_is_a_limit_and_no_pass() {
    let ann = polling(9, true).max_tool_rounds(3);
    let (reason, summary, events) = run(&alone(ann).build().unwrap()).await;
    assert_eq!(
        (reason.clone(), &*summary),
        (StopReason::from(LibraryStopReason::ToolRounds { who: name("Ann"), limit: 3 }), "")
    );
    assert_eq!((reason.outcome(), calls(&events)), (RunOutcome::Limit, 3));
    assert_eq!(reason.to_string(), "Ann's limit of 3 rounds of tool calls in one turn");
}
