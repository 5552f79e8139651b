//! Traps that no item of the list shows: T32, T38, T39.

use polylogue::stop::max_turns;
use polylogue::{
    AnyModel, Assistant, Chat, Entry, Lens, Message, Name, Outcome, Params, Part, Report, ToolCx, ToolError,
    Window, in_turn, once_each, until,
};
use polylogue_core::{Tool, ToolSpec};
use serde_json::{Value, json};

use crate::stage::{Spy, log, run, script};

struct Clock(ToolSpec);

impl Clock {
    fn new() -> Self {
        Self(ToolSpec::new("clock", "Tells the time.", json!({"type": "object", "properties": {}})))
    }
}

impl Tool for Clock {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, _: Value, _: &ToolCx<'_>) -> Result<Outcome, ToolError> {
        Ok(Outcome::done("noon"))
    }
}

fn calls(entry: &Entry) -> usize {
    match entry {
        Entry::Assistant { parts } => parts.iter().filter(|part| matches!(part, Part::Call(_))).count(),
        _ => 0,
    }
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
        let bob = Assistant::new("Bob", spy.model()).unwrap().tool(Clock::new());
        let bob = bob.lens(Lens { window: Window::Messages(limit), ..Lens::default() });
        let ann = Assistant::new("Ann", model.clone()).unwrap();
        let chat = Chat::named("pair").with(bob).with(ann).policy(until(max_turns(16), in_turn()));
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
    let (Entry::User { parts } | Entry::Assistant { parts }) = entry else { return Vec::new() };
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.to_string()),
        _ => None,
    });
    texts.filter(|text| text.len() == 2).collect()
}

// Trap T38: there is one place for a parameter, the agent, and what it does not say is not sent.
#[tokio::test]
async fn parameters_are_those_of_the_agent_and_of_nobody_else() {
    let spy = Spy::on(script(r#"[{"Ann": "a"}, {"Bob": "b"}]"#));
    let agent = |who| Assistant::new(who, spy.model()).unwrap();
    let warm = Params { temperature: Some(0.7), ..Params::default() };
    let chat = Chat::named("pair").with(agent("Ann").params(warm.clone())).with(agent("Bob"));
    run(&chat.policy(once_each()).build().unwrap(), "go").await;
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
    let chat = |bob: Assistant| Chat::named("alone").with(bob).policy(once_each()).build().unwrap();
    let mut log = log().await;
    chat(bob.clone()).run(&mut log, "go").await.unwrap();
    let more = Message::text(Name::user(), "again");
    chat(bob.tool(Clock::new())).go_on(&mut log, more).await.unwrap();
    let asked = spy.asked();
    assert_eq!((asked[0].tools.len(), asked[1].tools.len()), (0, 1));
    let events = log.events().await;
    assert_eq!(Report::of(&events).spent.calls, 1, "those of the last run");
    assert_eq!(Report::of_all(&events).spent.calls, 2);
}
