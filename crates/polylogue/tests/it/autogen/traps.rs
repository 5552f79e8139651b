//! Traps that no item of the list shows: T29, T32, T33, T38, T39. T10 is shown by the compiler: a group is given to its
//! chat, and no agent has another that could be changed.

use polylogue::layers::Coder;
use polylogue::layers::reply::Stack;
use polylogue::policies::with_termination;
use polylogue::runs::Report;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Message, Name, Status, round_robin, sequential};
use polylogue_core::{AnyTool, Entry, Params, Part, ToolResult, ToolSpec, ViewOptions, Window};
use polylogue_test::tool::tool_of;
use serde_json::json;

use crate::stage::{Spy, closed, log, printed, run, script};

fn clock() -> AnyTool {
    let spec = ToolSpec::new("clock", "Tells the time.", json!({"type": "object", "properties": {}}));
    tool_of(spec, |_| Ok(ToolResult::done("noon")))
}

fn calls(entry: &Entry) -> usize {
    match entry {
        Entry::Assistant { parts, .. } => {
            parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count()
        }
        _ => 0,
    }
}

// Trap T29: where code cannot be run, an agent that would run it is built, and speaks as long as there is none. That
// there is no place for the code is the reply to it.
#[cfg(unix)]
#[tokio::test]
async fn no_place_to_run_code_is_needed_before_there_is_code() {
    use polylogue_tools::code::{Engine, Sandbox, python};

    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::container(dir.path(), Engine::new("/nowhere/docker", "python:3-slim"));
    let bob = Stack::new("Bob").unwrap().then(Coder::new().tool(python(sandbox))).otherwise("go on");
    let ann = script("[{\"Ann\": \"hello\"}, {\"Ann\": \"```python\\nprint(1)\\n```\"}]");
    let chat = Chat::builder("pair").participant(Assistant::new("Ann", ann).unwrap()).participant(bob);
    let (status, events) =
        run(&chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap(), "go").await;
    assert!(printed(&events).contains("Bob says: go on"), "{}", printed(&events));
    let (reason, reply) = closed(&status);
    assert_eq!(reason, "4 of 4 turns");
    assert!(reply.starts_with("exitcode: 1 (execution failed)"), "{reply}");
    assert!(reply.contains("/nowhere/docker"), "{reply}");
}

// Trap T33: a model that takes forever is cancelled from outside, and the conversation can continue.
#[tokio::test(start_paused = true)]
async fn a_run_can_be_cancelled_and_continued() {
    let chat = |reply: &str| {
        let bob = Assistant::new("Bob", script(reply)).unwrap();
        Chat::builder("alone").participant(bob).policy(sequential()).build().unwrap()
    };
    let mut log = log().await;
    let cancel = log.cancellation();
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        cancel.cancel_now();
    };
    let slow = chat(r#"[{"Bob": {"say": "never", "delay_ms": 600000}}]"#);
    let (status, ()) = tokio::join!(slow.run_in(&mut log, "go"), stop);
    assert_eq!(status.unwrap().status, Status::Cancelled);
    log.cancellation().clear();
    let status = chat(r#"[{"Bob": "now"}]"#).resume(&mut log).await.unwrap();
    assert_eq!(closed(&status.status), ("Bob replied".into(), "now".into()));
}

// Trap T32: what a window keeps is in its order, begins with the task, and never parts a call from its result.
#[tokio::test]
async fn a_window_keeps_the_order_the_task_and_calls_with_their_results() {
    let steps: Vec<String> = (0..8)
        .flat_map(|round| {
            let call = r#"{"Bob": {"calls": [{"tool": "clock"}]}}"#.to_owned();
            [call, format!(r#"{{"Bob": "b{round}"}}"#), format!(r#"{{"Ann": "a{round}"}}"#)]
        })
        .collect();
    let model = script(&format!("[{}]", steps.join(",")));
    for limit in 1..12 {
        let spy = Spy::on(model.clone());
        let bob = Assistant::new("Bob", spy.model()).unwrap().tool(clock());
        let bob = bob.view(ViewOptions { window: Window::Messages(limit), ..ViewOptions::default() });
        let ann = Assistant::new("Ann", model.clone()).unwrap();
        let chat = Chat::builder("pair")
            .participant(bob)
            .participant(ann)
            .policy(with_termination(round_robin(), max_turns(16)));
        run(&chat.build().unwrap(), "the task").await;
        for asked in spy.asked() {
            assert_eq!(asked.entries[0], Entry::user("the task"), "{limit}");
            let called: usize = asked.entries.iter().map(calls).sum();
            let returned = asked.entries.iter().filter(|entry| matches!(entry, Entry::Tool { .. })).count();
            assert_eq!(called, returned, "{limit}: {:?}", asked.entries);
            let said: Vec<String> = asked.entries.iter().flat_map(words).collect();
            let mut ordered = said.clone();
            ordered.sort_by_key(|text| (text[1..].parse::<u32>().unwrap(), text.starts_with('a')));
            assert_eq!(said, ordered, "{limit}");
        }
    }
}

/// What was said in rounds.
fn words(entry: &Entry) -> Vec<String> {
    let (Entry::User { parts } | Entry::Assistant { parts, .. }) = entry else { return Vec::new() };
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.to_string()),
        _ => None,
    });
    texts.filter(|text| text.len() == 2).collect()
}

// Trap T38: there is one place for a parameter, the agent, and what it does not say is not sent.
#[tokio::test]
async fn parameters_belong_to_one_agent() {
    let spy = Spy::on(script(r#"[{"Ann": "a"}, {"Bob": "b"}]"#));
    let agent = |who| Assistant::new(who, spy.model()).unwrap();
    let warm = Params { temperature: Some(0.7), ..Params::default() };
    let chat = Chat::builder("pair").participant(agent("Ann").params(warm.clone())).participant(agent("Bob"));
    run(&chat.policy(sequential()).build().unwrap(), "go").await;
    let asked: Vec<Params> = spy.asked().into_iter().map(|asked| asked.params).collect();
    assert_eq!(asked, [warm, Params::default()]);
}

// Trap T39: an agent that gets a tool is another definition over the same log, in which every figure stays.
#[tokio::test]
async fn an_agent_that_gets_a_tool_loses_no_figures() {
    let reply =
        |text: &str| format!(r#"{{"Bob": {{"say": "{text}", "usage": {{"input": 7, "output": 3}}}}}}"#);
    let spy = Spy::on(script(&format!("[{}, {}]", reply("one"), reply("two"))));
    let bob = Assistant::new("Bob", AnyModel::new(spy.clone())).unwrap();
    let chat = |bob: Assistant| Chat::builder("alone").participant(bob).policy(sequential()).build().unwrap();
    let mut log = log().await;
    chat(bob.clone()).run_in(&mut log, "go").await.unwrap();
    let more = Message::new(Name::user(), "again");
    chat(bob.tool(clock())).continue_with(&mut log, more).await.unwrap();
    let asked = spy.asked();
    assert_eq!((asked[0].tools.len(), asked[1].tools.len()), (0, 1));
    let events = log.events().await;
    assert_eq!(Report::of_last_run(&events).usage.calls, 1, "those of the last run");
    assert_eq!(Report::of_all_runs(&events).usage.calls, 2);
}
