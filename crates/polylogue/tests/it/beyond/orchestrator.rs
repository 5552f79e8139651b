//! Work by a plan.

use expect_test::expect;
use polylogue::policies::orchestrator::{Orchestrator, OrchestratorPrompts, Progress};
use polylogue::policies::with_late_joiner;
use polylogue::stop::says;
use polylogue::{Act, AnyModel, Assistant, Chat, Function, Human, Message, Name, Status};
use polylogue_core::{JoinHistory, Params, StopReason};
use polylogue_models::Script;
use serde_json::{Value, json};

use crate::beyond::stage::{Cast, events_with, log, name, play, print};

/// A ledger: done or not, getting on or not, who is next.
fn ledger(done: bool, moving: bool, next: &str, instruction: &str) -> String {
    let answer = |answer: Value| json!({"reason": "so", "answer": answer});
    json!({
        "is_request_satisfied": answer(json!(done)), "is_in_loop": answer(json!(false)),
        "is_progress_being_made": answer(json!(moving)), "next_speaker": answer(json!(next)),
        "instruction_or_question": answer(json!(instruction)),
    })
    .to_string()
}

/// Texts that make short logs.
fn words() -> OrchestratorPrompts {
    OrchestratorPrompts {
        facts: "Facts?".into(),
        plan: "Plan for {names}?".into(),
        briefing: "{facts} / {plan}".into(),
        progress: "Ledger of {names}?".into(),
        unreadable: "Again: {flaw}".into(),
        updated_facts: "Facts, after {facts}?".into(),
        updated_plan: "Plan, after {plan}?".into(),
        answer: "Answer?".into(),
    }
}

fn short() -> Orchestrator {
    Orchestrator::new("Planner").unwrap().prompts(words())
}

fn lab(cast: &Cast<'_>, ledger: Orchestrator) -> Chat {
    cast.chat(&["Coder", "Surfer"]).private_agent(cast.assistant("Planner")).policy(ledger).build().unwrap()
}

async fn run(steps: &[(&str, String)], ledger: Orchestrator) -> String {
    let steps: Vec<Value> = steps.iter().map(|(who, text)| json!({*who: text})).collect();
    play(&Value::Array(steps).to_string(), |cast| lab(cast, ledger.clone())).await
}

fn planner(texts: &[&str]) -> Vec<(&'static str, String)> {
    texts.iter().map(|text| ("Planner", (*text).to_owned())).collect()
}

#[tokio::test]
async fn facts_a_plan_instructions_and_a_final_answer() {
    let mut steps = planner(&["F", "P"]);
    steps.push(("Planner", ledger(false, true, "Surfer", "Look it up")));
    steps.push(("Surfer", "It is 7".into()));
    steps.push(("Planner", ledger(true, true, "Coder", "-")));
    steps.push(("Planner", "The answer is 7".into()));
    let said = run(&steps, short()).await;
    let said = said.replace(&ledger(false, true, "Surfer", "Look it up"), "LEDGER");
    expect![[r#"
        opened [Coder, Surfer] "task" | user: task
        turn Planner in private "Facts?"
        Planner says in private: F
        turn Planner in private "Plan for Coder, Surfer?"
        Planner says in private: P
        posted Planner: F / P
        turn Planner in private "Ledger of Coder, Surfer?"
        Planner says in private: LEDGER
        posted Planner: Look it up
        turn Surfer (of [Coder, Surfer] by Planner, who replied: LEDGER)
        Surfer says: It is 7
        turn Planner in private "Ledger of Coder, Surfer?"
        Planner says in private: {"is_request_satisfied":{"reason":"so","answer":true},"is_in_loop":{"reason":"so","answer":false},"is_progress_being_made":{"reason":"so","answer":true},"next_speaker":{"reason":"so","answer":"Coder"},"instruction_or_question":{"reason":"so","answer":"-"}}
        turn Planner in private "Answer?"
        Planner says in private: The answer is 7
        closed (Planner judged the request satisfied): The answer is 7"#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn a_stalled_plan_is_made_again_and_then_abandoned() {
    let stalled = || ("Planner", ledger(false, false, "Coder", "Try"));
    let tried = || ("Coder", "hm".to_owned());
    let mut steps = planner(&["F1", "P1"]);
    steps.extend([stalled(), tried(), stalled()]);
    steps.extend(planner(&["F2", "P2"]));
    // One turn that gets on makes up for one that does not.
    let moving = || ("Planner", ledger(false, true, "Coder", "Try"));
    steps.extend([stalled(), tried(), moving(), tried(), stalled(), tried(), stalled()]);
    steps.extend(planner(&["I do not know"]));
    let said = run(&steps, short().max_stalls(2).max_plans(2)).await;
    assert!(said.contains("turn Planner in private \"Facts, after F1?\""), "{said}");
    assert!(said.contains(
        "turn Planner in private \"Plan, after P1?\"\nPlanner says in private: P2\nposted Planner: F2 / P2"
    ));
    assert_eq!(said.matches("\nCoder says: hm").count(), 4);
    assert!(said.ends_with("closed (no progress with 2 plans): I do not know"), "{said}");
}

#[tokio::test]
async fn a_loop_is_no_progress() {
    let mut circle: Value = serde_json::from_str(&ledger(false, true, "Coder", "Try")).unwrap();
    circle["is_in_loop"]["answer"] = json!(true);
    let mut steps = planner(&["F", "P"]);
    steps.push(("Planner", circle.to_string()));
    steps.extend(planner(&["enough"]));
    let said = run(&steps, short().max_stalls(1).max_plans(1)).await;
    assert!(said.ends_with("closed (no progress with 1 plan): enough"), "{said}");
}

#[tokio::test]
async fn a_ledger_that_cannot_be_parsed_is_requested_again_up_to_a_limit() {
    let good = ledger(false, true, "Coder", "Go");
    let mut steps = planner(&["F", "P", "Coder should go on"]);
    steps.push(("Planner", good.replace("Coder", "Absent")));
    steps.push(("Planner", format!("Sorry:\n```json\n{good}\n```")));
    steps.push(("Coder", "done".into()));
    // Twice unreadable to the end: no progress.
    steps.extend(planner(&["?", "??", "???", "?", "??", "???", ""]));
    let said = run(&steps, short().max_retries(2).max_stalls(2).max_plans(1)).await;
    assert!(said.contains(r#"turn Planner in private "Again: there is no JSON object in it""#), "{said}");
    assert!(
        said.contains(r#""Again: `next_speaker` must be one of: Coder, Surfer; got "Absent"""#),
        "{said}"
    );
    assert!(said.ends_with("Planner passes\nclosed (no progress with 1 plan): done"), "{said}");
}

#[tokio::test]
async fn there_is_a_limit_to_the_turns_and_a_final_answer_all_the_same() {
    let go = || ("Planner", ledger(false, true, "Coder", "Go"));
    let mut steps = planner(&["F", "P"]);
    steps.extend([go(), ("Coder", "1".into()), go(), ("Coder", "2".into()), go()]);
    steps.extend(planner(&["as far as we got"]));
    let said = run(&steps, short().max_turns(2)).await;
    assert!(said.ends_with("closed (the limit of 2 turns): as far as we got"), "{said}");
}

#[tokio::test]
async fn a_scribe_with_a_schema_and_a_planner_who_is_a_participant() {
    let team = [name("Coder")];
    let script = json!([
        {"Planner": "F"}, {"Planner": "P"}, {"Clerk": ledger(true, true, "Coder", "-")}, {"Planner": "Done"},
    ]);
    let said = play(&script.to_string(), |cast| {
        let params = Params { schema: Some(Progress::schema(&team)), ..Params::default() };
        let builder = cast.chat(&["Planner", "Coder"]).private_agent(cast.assistant("Clerk").params(params));
        builder.policy(short().progress_agent(name("Clerk"))).build().unwrap()
    })
    .await;
    assert!(
        said.contains(r#"turn Clerk in private "Ledger of Coder?""#),
        "the planner is not chosen: {said}"
    );
    assert!(said.ends_with("closed (Clerk judged the request satisfied): Done"), "{said}");
}

#[tokio::test]
async fn a_participant_who_left_is_not_selected_and_without_participants_it_ends() {
    let choose = |who: &str| ("Planner", ledger(false, true, who, "Go"));
    let mut steps = planner(&["F", "P"]);
    steps.extend([choose("Me"), choose("Me"), choose("Coder")]);
    let script: Vec<Value> = steps.iter().map(|(who, text)| json!({*who: text})).collect();
    let script = Value::Array(script).to_string();
    let events = events_with(&script, &|_| "exit", |cast| {
        let coder = Function::new("Coder", |_| Ok(Act::Leave("tired".into()))).unwrap();
        let builder = Chat::builder("group").participant(coder).participant(Human::new("Me").unwrap());
        builder.private_agent(cast.assistant("Planner")).policy(short()).build().unwrap()
    })
    .await;
    let said = print(&events);
    assert!(said.contains(r#""Again: `next_speaker` must be one of: Coder; got "Me"""#), "{said}");
    assert!(said.ends_with("closed (no participant is left; Coder left last: tired): "), "{said}");
}

#[tokio::test]
async fn without_its_planner_or_after_a_stop_it_ends() {
    let said = play("[]", |cast| {
        let planner = Function::new("Planner", |_| Ok(Act::Leave("bored".into()))).unwrap();
        cast.chat(&["Coder"]).private_agent(planner).policy(short()).build().unwrap()
    })
    .await;
    assert!(said.ends_with("closed (Planner left: bored): "), "{said}");
    let said = play("[]", |cast| {
        let stop = |_: &polylogue::Turn<'_>| Ok(Act::Stop(StopReason::Stopped { by: "Planner".into() }));
        let planner = Function::new("Planner", stop).unwrap();
        cast.chat(&["Coder"]).private_agent(planner).policy(short()).build().unwrap()
    })
    .await;
    assert!(said.ends_with("closed (stopped by Planner): "), "{said}");
}

#[tokio::test]
async fn the_planner_receives_the_task_the_team_and_the_facts() {
    let script = json!([
        {"Planner": {"say": "F", "expect": {"last": "task"}}},
        {"Planner": {"say": "P", "expect": {"last": "Coder: Writes programs.\nSurfer"}}},
        {"Planner": {"say": ledger(true, true, "Coder", "-"), "expect": {"last": "one of: Coder, Surfer."}}},
        {"Planner": {"say": "7", "expect": {"last": "Give the final answer"}}},
        {"Planner": {"say": "F", "expect": {"last": "Here is a task:\n\nand more"}}},
        {"Planner": "P"}, {"Planner": ledger(true, true, "Coder", "-")}, {"Planner": "8"},
    ]);
    let script: Script = serde_json::from_value(script).unwrap();
    let assistant = |who| Assistant::new(who, AnyModel::new(script.model("test"))).unwrap();
    let coder = assistant("Coder").description("Writes programs.");
    let ledger = Orchestrator::new("Planner").unwrap().participant(&coder).participant(&assistant("Surfer"));
    let builder = Chat::builder("lab")
        .participant(coder)
        .participant(assistant("Surfer"))
        .private_agent(assistant("Planner"));
    let builder = builder.policy(ledger).build().unwrap();
    let mut log = log().await;
    builder.run_in(&mut log, "task").await.unwrap();
    let status =
        builder.continue_with(&mut log, Message::new(Name::user(), "and more")).await.unwrap().status;
    assert!(matches!(status, Status::Closed { summary, .. } if &*summary == "8"));
}

#[test]
fn a_planner_has_a_legal_name() {
    assert!(Orchestrator::new("no/name").is_err());
}

/// A name that could not be chosen stays one when its participant has joined later: what was decided before does not change.
#[tokio::test]
async fn a_late_joiner_is_of_the_team_from_then_on() {
    let mut steps = planner(&["F", "P"]);
    steps.push(("Planner", ledger(false, true, "Lawyer", "Too early")));
    steps.push(("Planner", ledger(false, true, "Coder", "Go")));
    steps.push(("Coder", "We need a lawyer".into()));
    steps.push(("Planner", ledger(false, true, "Lawyer", "Help")));
    steps.push(("Lawyer", "Sign here".into()));
    steps.push(("Planner", ledger(false, true, "Coder", "-")));
    steps.extend(planner(&["Signed"]));
    let script: Vec<Value> = steps.iter().map(|(who, text)| json!({*who: text})).collect();
    let said = play(&Value::Array(script).to_string(), |cast| {
        let policy =
            with_late_joiner(short().max_turns(2), name("Lawyer"), says("a lawyer"), JoinHistory::All);
        cast.chat(&["Coder"])
            .late_joiner(cast.assistant("Lawyer"))
            .private_agent(cast.assistant("Planner"))
            .policy(policy)
            .build()
            .unwrap()
    })
    .await;
    let lines = |mark: &str| -> Vec<String> {
        said.lines().filter_map(|line| Some(line.split_once(mark)?.1.to_owned())).collect()
    };
    assert_eq!(lines("posted Planner: "), ["F / P", "Go", "Help"]);
    assert_eq!(lines(" says: "), ["We need a lawyer", "Sign here"]);
    assert!(said.contains("turn Planner in private \"Ledger of Coder, Lawyer?\""), "{said}");
    assert!(said.ends_with("closed (the limit of 2 turns): Signed"), "{said}");
}
