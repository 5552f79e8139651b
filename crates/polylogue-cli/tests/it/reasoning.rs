//! Agents that reason, as people run them and look at them.

use polylogue_test::server::{Answer, Behavior, Playbook, Received};
use serde_json::json;

use crate::home::{Home, KEY, serve};

const CHAT: &str = "chat: {participants: [Ann], pattern: sequential}\n";

fn team(agents: &str, script: &str) -> String {
    format!("name: t\ntask: How much?\nagents: {agents}\n{CHAT}script: {script}\n")
}

/// What `who` was sent, by its call `call`, exactly.
fn sent(home: &Home, who: &str, call: &str) -> String {
    let shown = home.run(&["show", "last", "--as", who, "--call", call]).ok();
    assert!(!shown.err.contains("was changed"), "{}", shown.err);
    shown.out
}

#[test]
fn what_an_agent_that_reasons_was_sent_is_shown_in_each_of_its_ways() {
    let home = Home::new();
    let react = team(
        "[{name: Ann, system: Be exact., tools: [calculator], reasoning: {react: {rounds: 1, as_text: true, summarize: true}}}]",
        "[{Ann: \"Action: calculator\\nAction Input: {\\\"expression\\\": \\\"6*7\\\"}\"}, {Ann: \"Action: calculator\"}, {Ann: It is 42.}]",
    );
    let ran = home.run(&["run", home.file("react.yaml", &react)]).ok();
    assert!(ran.out.contains("It is 42."), "{}", ran.out);
    let first = sent(&home, "Ann", "1");
    assert!(first.contains("Be exact.") && first.contains("Action Input"), "{first}");
    assert!(sent(&home, "Ann", "2").contains("Observation: 42"));
    assert!(sent(&home, "Ann", "3").contains("cannot call any more tools"));

    let plan = team(
        "[{name: Ann, tools: [calculator], reasoning: plan_and_solve}]",
        "[{Ann: '1. Count'}, {Ann: {calls: [{tool: calculator, args: {expression: 6*7}}]}}, {Ann: '42'}]",
    );
    home.run(&["run", home.file("plan.yaml", &plan)]).ok();
    assert!(sent(&home, "Ann", "1").contains("Objective: How much?"));
    assert!(sent(&home, "Ann", "3").contains("Solve this step and no other: Count"));

    let best = team(
        "[{name: Ann, reasoning: {best: {critic: Eve, options: 2}}}, {name: Eve, system: Choose.}]",
        "[{Ann: one}, {Ann: two}, {Eve: '2'}]",
    );
    let ran = home.run(&["run", home.file("best.yaml", &best)]).ok();
    assert!(ran.out.contains("two"), "{}", ran.out);
    assert!(sent(&home, "Eve", "1").contains("Option 2:"));
}

#[test]
fn blocks_are_explained_read_and_run() {
    let home = Home::new();
    let blocks = "name: t\ntask: How much?\nagents:\n  - name: Ann\n    output_blocks: [{kind: call, begin: <call>, end: </call>, json: true, instructions: Write calls.}]\n  - {name: Bob, model: none, runs_output_blocks: {tools: [calculator]}, default_reply: Go on.}\nchat: {participants: [Ann, Bob], stop: {says: Done}}\nscript:\n  - Ann: 'So: <call>{\"name\": \"calculator\", \"parameters\": {\"expression\": \"6*7\"}}</call>'\n  - Ann: {say: Done, expect: {last: '42'}}\n";
    let ran = home.run(&["run", home.file("blocks.yaml", blocks)]).ok();
    assert!(ran.out.contains("Done"), "{}", ran.out);
    assert!(sent(&home, "Ann", "2").contains("Write calls."));
}

#[test]
fn rounds_of_calls_work_at_an_endpoint_and_are_made_once() {
    let play = |request: &Received, _: usize| match request.body["messages"].to_string().contains("\"tool\"")
    {
        true => Answer::text("It is 42."),
        false => Answer::tool("calculator", json!({"expression": "6*7"})),
    };
    let server = serve(Behavior::from(Playbook::new(play)).key(KEY));
    let home = Home::at(&server);
    let react = team("[{name: Ann, tools: [calculator], reasoning: react}]", "[{Ann: x}]");
    let ran = home.run(&["run", home.file("react.yaml", &react), "-m", "openai:test"]).ok();
    assert!(ran.out.contains("It is 42."), "{}", ran.out);
    assert_eq!(server.count(), 2);
}
