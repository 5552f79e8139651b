//! Agents that reason.

use std::sync::Arc;

use polylogue::agents::reason::{BestOfN, PlanAndSolve, React, Refine, Rewoo};
use polylogue::stop::LibraryStopReason;
use polylogue::{AnyModel, Assistant, Chat, Error, Log, Session, Status, sequential};
use polylogue_core::{
    AnyAgent, AnyTool, Body, Entry, Interrupt, Part, RunOutcome, StopReason, ToolError, ToolResult, ToolSpec,
    text_of,
};
use polylogue_test::tool::tool_of;
use serde_json::json;

use crate::lagent::parts::{NoTools, agent, session};
use crate::stage::{Asked, Spy, script};

fn spec() -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"q": {}}});
    ToolSpec::new("search", "Searches.", parameters).repeatable()
}

/// Says what it was asked; what is asked for as `list` it returns as a value.
fn search_of(spec: ToolSpec) -> AnyTool {
    tool_of(spec, |args| match args["q"].as_str() {
        Some("list") => Ok(ToolResult { parts: vec![Part::Data(json!([1, 2]))], ..ToolResult::done("") }),
        Some("fail") => Err(ToolError("no such page".into())),
        _ => Ok(ToolResult::done(format!("found {}", args["q"]))),
    })
}

fn search() -> AnyTool {
    search_of(spec())
}

fn last(asked: &Asked) -> String {
    asked.entries.last().map(|entry| text_of(entry.parts()).into_owned()).unwrap()
}

fn roles(asked: &Asked) -> String {
    let role = |entry: &Entry| match entry {
        Entry::User { .. } => 'u',
        Entry::Assistant { .. } => 'a',
        Entry::System { .. } => 's',
        Entry::Tool { .. } => 't',
    };
    asked.entries.iter().map(role).collect()
}

async fn calls(session: &Session) -> usize {
    let events = session.log().events().await;
    events.iter().filter(|event| matches!(event.body, Body::ToolCalled { .. })).count()
}

const CALL: &str = r#"{"bot": {"calls": [{"tool": "search", "args": {"q": "x"}}]}}"#;

/// Z02, Z03, Z04, Z05.
#[tokio::test]
async fn calls_are_made_in_rounds_until_there_is_a_text() {
    let spy = Spy::on(script(
        r#"[{"bot": {"calls": [{"tool": "search", "args": {"q": "x"}}, {"tool": "serch", "args": {}},
            {"tool": "search", "args": {"q": "fail"}}]}}, {"bot": "done"}]"#,
    ));
    let bot = React::new(agent("bot", &spy.model()).tool(search()));
    let session = session().await;
    assert_eq!(session.call(&bot, "go").await.unwrap().text(), "done");
    assert_eq!(spy.asked().len(), 2);
    let asked = &spy.asked()[1];
    assert_eq!(roles(asked), "uattt");
    let shown: Vec<String> =
        asked.entries[2..].iter().map(|entry| text_of(entry.parts()).into_owned()).collect();
    assert_eq!(shown, [r#"found "x""#, "There is no tool `serch`. There is `search`.", "no such page"]);
    // The results are those of the calls, in their order, and both are in the log.
    let Entry::Assistant { parts, .. } = &asked.entries[1] else { panic!("{:?}", asked.entries) };
    let called = parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.id.clone()),
        _ => None,
    });
    let returned = asked.entries[2..].iter().map(|entry| match entry {
        Entry::Tool { id, .. } => id.clone(),
        _ => panic!("{entry:?}"),
    });
    assert_eq!(called.collect::<Vec<_>>(), returned.collect::<Vec<_>>());
    assert_eq!(calls(&session).await, 3);
}

/// Z06, Z07.
#[tokio::test]
async fn a_limit_on_rounds_ends_or_sums_up() {
    for rounds in [0, 2] {
        let steps = [CALL; 3].join(",");
        let spy = Spy::on(script(&format!(r#"[{steps}, {{"bot": "in sum"}}]"#)));
        let bot = React::new(agent("bot", &spy.model()).tool(search())).max_rounds(rounds);
        let session = session().await;
        let error = session.call(&bot, "go").await.unwrap_err();
        let limit = u64::from(rounds);
        assert!(
            matches!(&error, Error::Interrupt(Interrupt::Ended { reason, .. }) if *reason == StopReason::from(LibraryStopReason::Rounds { limit })),
            "{error}"
        );
        assert_eq!(spy.asked().len() as u64, limit + 1);
        assert_eq!(calls(&session).await as u64, limit);
    }
    let spy = Spy::on(script(&format!(r#"[{CALL}, {CALL}, {{"bot": "in sum"}}, {{"bot": "next"}}]"#)));
    let bot = React::new(agent("bot", &spy.model()).tool(search())).max_rounds(1).summarize();
    let session = session().await;
    assert_eq!(session.call(&bot, "go").await.unwrap().text(), "in sum");
    let asked = spy.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[2].tools.is_empty());
    assert!(last(&asked[2]).starts_with("You cannot call any more tools."));
    // Another agent knows nothing of it.
    let other = agent("other", &script(r#"[{"other": "hi"}]"#));
    assert_eq!(session.call(&other, "hello").await.unwrap().text(), "hi");
    assert_eq!(session.state(&other).await.unwrap().get("memory").unwrap().len(), 2);
}

/// Z09: an agent that was never called in this session knows only its input.
#[tokio::test]
async fn a_session_is_all_the_history_there_is() {
    let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}]"#));
    let bot = React::new(agent("bot", &spy.model()));
    session().await.call(&bot, "a").await.unwrap();
    let second = session().await;
    let state = r#"{"memory": [{"from": "user", "parts": [{"text": "b"}]}, {"from": "bot", "parts": [{"text": "B"}]}]}"#;
    second.load(&bot, &serde_json::from_str(state).unwrap()).await.unwrap();
    second.call(&bot, "c").await.unwrap();
    assert_eq!(roles(&spy.asked()[0]), "u");
    assert_eq!(roles(spy.asked().last().unwrap()), "uau");
}

/// Z10.
#[tokio::test]
async fn a_tool_that_ends_the_turn_gives_the_message_unless_it_fails() {
    let spy = Spy::on(script(
        r#"[{"bot": {"calls": [{"tool": "search", "args": {"q": "fail"}}]}}, {"bot": {"calls": [{"tool": "search", "args": {"q": "x"}}]}}]"#,
    ));
    let bot = React::new(agent("bot", &spy.model()).tool(search_of(spec().ends_turn())));
    let session = session().await;
    assert_eq!(session.call(&bot, "go").await.unwrap().text(), r#"found "x""#);
    assert_eq!(spy.asked().len(), 2);
}

#[tokio::test]
async fn calls_may_be_written_as_text() {
    let spy = Spy::on(script(
        r#"[{"bot": "Thought: hm\nAction: search\nAction Input: {\"q\": \"x\"}"}, {"bot": "Action: search\nAction Input: {\"q\":"},
            {"bot": "Thought: I know.\nFinal Answer: 42"}]"#,
    ));
    let bot = React::new(agent("bot", &spy.model()).tool(search())).in_text();
    let session = session().await;
    assert_eq!(session.call(&bot, "go").await.unwrap().text(), "42");
    let asked = spy.asked();
    assert!(asked.iter().all(|asked| asked.tools.is_empty() && asked.params.stop == ["Observation:"]));
    assert!(
        asked[0]
            .system
            .as_deref()
            .unwrap()
            .starts_with("I am bot.\n\nYou can use these tools:\n- search: Searches.")
    );
    assert_eq!(last(&asked[1]), r#"Observation: found "x""#);
    assert!(
        last(&asked[2]).starts_with("Observation: The arguments of `search` must be a JSON object"),
        "{}",
        last(&asked[2])
    );
}

/// A model that cannot call tools writes its calls, and is not offered tools again.
#[tokio::test]
async fn a_model_without_tools_writes_its_calls() {
    // The refused request counts as one of its calls.
    let steps = r#"[{"bot": "not asked"}, {"bot": "Action: search\nAction Input: {\"q\": 1}"}, {"bot": "Final Answer: 42"}, {"bot": "43"}]"#;
    let spy = Spy::on(AnyModel::new(NoTools(script(steps))));
    let bot = React::new(agent("bot", &spy.model()).tool(search()));
    let session = session().await;
    assert_eq!(session.call(&bot, "go").await.unwrap().text(), "42");
    assert_eq!(session.call(&bot, "on").await.unwrap().text(), "43");
    let offered: Vec<usize> = spy.asked().iter().map(|asked| asked.tools.len()).collect();
    assert_eq!(offered, [1, 0, 0, 0]);
    assert_eq!(last(&spy.asked()[2]), "Observation: found 1");
}

fn planned(plan: &str) -> (Spy, PlanAndSolve) {
    let plan = serde_json::to_string(plan).unwrap();
    let spy = Spy::on(script(&format!(
        r#"[{{"planner": {plan}}}, {{"solver": "r1"}}, {{"solver": "r2"}}, {{"solver": "r3"}}]"#
    )));
    let planner = agent("planner", &spy.model());
    let solver = agent("solver", &spy.model());
    (spy.clone(), PlanAndSolve::new("analyst", planner, solver).unwrap())
}

/// Z16.
#[tokio::test]
async fn a_plan_is_solved_step_by_step() {
    let (spy, analyst) = planned("Here it is:\n1. Find.\n2. Compare\n   both.\n3. Answer. <END_OF_PLAN>");
    let session = session().await;
    assert_eq!(session.call(&analyst, "Which?").await.unwrap().text(), "r3");
    let asked = spy.asked();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|asked| asked.entries.len() == 1), "each is its own conversation");
    let third = last(&asked[3]);
    for part in ["Objective: Which?", "- Step: Find.\n  Result: r1", "- Step: Compare both.\n  Result: r2"] {
        assert!(third.contains(part), "{third}");
    }
    assert!(third.ends_with("Solve this step and no other: Answer."), "{third}");
}

#[tokio::test]
async fn a_plan_without_numbers_is_one_step_and_a_long_one_is_refused() {
    let (spy, analyst) = planned("Just look.");
    assert_eq!(session().await.call(&analyst, "Which?").await.unwrap().text(), "r1");
    assert_eq!(spy.asked().len(), 2);
    let (_, analyst) = planned("1. a\n2. b\n3. c");
    let error = session().await.call(&analyst.max_steps(2), "Which?").await.unwrap_err().to_string();
    assert!(error.contains("the plan of `planner` has 3 steps, and may have 2"), "{error}");
}

/// Z17.
#[tokio::test]
async fn evidence_is_gathered_without_a_model() {
    let plan = r##"Plan: find a
#E1 = search[{"q": "list"}]
Plan: use it
#E2 = search[{"q": ["#E1", ["see #E1]", 3]]}]
#E3 = search[plain words]"##;
    let plan = serde_json::to_string(plan).unwrap();
    let spy = Spy::on(script(&format!(r#"[{{"planner": {plan}}}, {{"solver": "so"}}]"#)));
    let rewoo = Rewoo::new("rewoo", agent("planner", &spy.model()), agent("solver", &spy.model())).unwrap();
    let rewoo = rewoo.tool(search());
    let session = session().await;
    assert_eq!(session.call(&rewoo, "Why?").await.unwrap().text(), "so");
    assert_eq!(spy.asked().len(), 2);
    assert_eq!(calls(&session).await, 3);
    let shown = last(&spy.asked()[1]);
    let expected = "Answer the question from this evidence.\n\nPlan: find a\n#E1: [1,2]\n\n\
                    Plan: use it\n#E2: found [[1,2],[\"see [1,2]]\",3]]\n\nPlan: \n#E3: found \"plain words\"\n\nQuestion: Why?";
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_draft_is_refined_until_nothing_is_left_to_criticize() {
    let spy = Spy::on(script(
        r#"[{"writer": "d1"}, {"critic": "longer"}, {"writer": "d2"}, {"critic": "GOOD"}, {"writer": "d3"}]"#,
    ));
    let refine =
        || Refine::new("refine", agent("writer", &spy.model()), agent("critic", &spy.model())).unwrap();
    let first = session().await;
    assert_eq!(first.call(&refine().until("GOOD"), "Write.").await.unwrap().text(), "d2");
    assert_eq!(spy.asked().len(), 4);
    let itself = Spy::on(script(r#"[{"me": "d1"}, {"me": "longer"}, {"me": "d2"}]"#));
    let me = agent("me", &itself.model());
    let alone = Refine::new("refine", me.clone(), me).unwrap().rounds(1);
    assert_eq!(session().await.call(&alone, "Write.").await.unwrap().text(), "d2");
    assert_eq!(roles(&itself.asked()[2]), "uauau");
}

fn best(options: usize, critic: &str) -> (Spy, BestOfN) {
    let spy = Spy::on(script(&format!(
        r#"[{{"bot": "one"}}, {{"bot": "two"}}, {{"bot": "three"}}, {{"bot": "four"}}, {{"bot": "five"}}, {critic}]"#
    )));
    let bot: Assistant = agent("bot", &spy.model());
    (spy.clone(), BestOfN::new(options, bot, agent("critic", &spy.model())).retries(1))
}

/// C14.
#[tokio::test]
async fn a_critic_chooses_among_options() {
    let (spy, bot) = best(3, r#"{"critic": "Option 2, it is short."}, {"critic": "1"}"#);
    let bot = AnyAgent::new(bot);
    let session = session().await;
    assert_eq!(session.call(&bot, "go").await.unwrap().text(), "two");
    assert_eq!(spy.asked().len(), 4);
    assert!(spy.asked()[..3].iter().all(|asked| roles(asked) == "u"));
    assert!(last(&spy.asked()[3]).contains("Option 3:\nthree"));
    // The chosen one is what it remembers, and only current options can be chosen.
    session.call(&bot, "on").await.unwrap_err();
    let fourth = &spy.asked()[4];
    let texts: Vec<_> = fourth.entries.iter().map(|entry| text_of(entry.parts()).into_owned()).collect();
    assert_eq!(texts, ["go", "two", "on"]);
    assert_eq!(roles(fourth), "uau");
}

#[tokio::test]
async fn without_a_choice_the_first_draft_wins_and_one_draft_needs_no_critic() {
    let (spy, bot) = best(2, r#"{"critic": "7"}, {"critic": "none"}"#);
    assert_eq!(session().await.call(&bot, "go").await.unwrap().text(), "one");
    assert_eq!(spy.asked().len(), 4);
    assert!(last(&spy.asked()[3]).starts_with("That is none of the options."));
    let (spy, bot) = best(1, r#"{"critic": "1"}"#);
    assert_eq!(session().await.call(&bot, "go").await.unwrap().text(), "one");
    assert_eq!(spy.asked().len(), 1);
}

/// A run ended by an agent's own limit can continue: the agent has another turn.
#[tokio::test]
async fn an_agent_that_reached_its_own_limit_has_a_new_turn_when_the_chat_continues() {
    let script = script(&format!(r#"[{CALL}, {CALL}, {{"bot": "found it"}}]"#));
    let bot = agent("bot", &script).tool(search());
    let chat = Chat::builder("group")
        .participant(React::new(bot).max_rounds(1))
        .policy(sequential())
        .build()
        .unwrap();
    let mut log = Log::in_memory();
    let ended = chat.run_in(&mut log, "Find it.").await.unwrap().status;
    assert!(
        matches!(&ended, Status::Closed { reason, .. } if reason.outcome() == RunOutcome::Limit),
        "{ended:?}"
    );
    log.reopen().await.unwrap();
    let Status::Closed { reason, summary } = chat.resume(&mut log).await.unwrap().status else {
        panic!("it is over")
    };
    assert_eq!((reason.to_string(), &*summary), ("bot replied".to_owned(), "found it"));
}

#[tokio::test]
async fn a_plan_of_too_many_calls_fails_before_the_first() {
    let plan: String = (1..=3).map(|nth| format!("#E{nth} = search[{{\"q\": {nth}}}]\n")).collect();
    let plan = serde_json::to_string(&plan).unwrap();
    let spy =
        Spy::on(script(&format!(r#"[{{"planner": {plan}}}, {{"planner": {plan}}}, {{"solver": "so"}}]"#)));
    let rewoo = Rewoo::new("rewoo", agent("planner", &spy.model()), agent("solver", &spy.model())).unwrap();
    let rewoo = rewoo.tool(search());
    let session = session().await;
    let error = session.call(&rewoo.clone().max_steps(2), "Why?").await.unwrap_err().to_string();
    assert!(error.contains("the plan of `planner` has more than 2 steps"), "{error}");
    assert_eq!(calls(&session).await, 0);
    assert_eq!(session.call(&rewoo.max_steps(3), "Why?").await.unwrap().text(), "so");
    assert_eq!(calls(&session).await, 3);
}

#[tokio::test]
async fn a_short_plan_asks_for_no_gigabytes_of_evidence() {
    let long = "y".repeat(60_000);
    let plan =
        format!("#E1 = search[{long}]\n#E2 = search[{{\"q\": [{}\"#E1 #E1\"]}}]", "\"#E1\", ".repeat(20_000));
    let plan = serde_json::to_string(&plan).unwrap();
    let spy = Spy::on(script(&format!(r#"[{{"planner": {plan}}}, {{"solver": "so"}}]"#)));
    let rewoo = Rewoo::new("rewoo", agent("planner", &spy.model()), agent("solver", &spy.model())).unwrap();
    let session = session().await;
    session.call(&rewoo.tool(search()), "Why?").await.unwrap();
    let events = session.log().events().await;
    let called = |event: &Arc<polylogue_core::Event>| match &event.body {
        Body::ToolCalled { call, .. } => Some(call.args.to_string()),
        _ => None,
    };
    let args = events.iter().rev().find_map(called).unwrap();
    assert!(args.len() < 4 << 20, "{}", args.len());
    assert!(args.contains("found") && args.contains("(left out: the arguments would be too long)"));
}
