//! Agents of team files that reason, that are shown examples, and in whose words something is read.

use polylogue::{AnyModel, Log, Status};
use polylogue_core::{Body, ToolResult};
use polylogue_team::Team;

use crate::common;

/// A team of `agents` in a chat of the first of them, with `script`.
fn team(agents: &str, script: &str) -> Team {
    with_chat(agents, "{participants: [Ann], pattern: sequential}", script)
}

fn with_chat(agents: &str, chat: &str, script: &str) -> Team {
    let text = format!("{{name: t, model: 'a:b', agents: [{agents}], chat: {chat}, script: [{script}]}}");
    common::team(&text)
}

/// The result of `team` by its script, which holds what is expected of requests and is played whole, and what its tools returned.
async fn play(team: &Team) -> (String, String, Vec<ToolResult>) {
    let stored: Team = serde_json::from_str(&serde_json::to_string(team).unwrap()).unwrap();
    assert_eq!(stored, *team);
    let model = team.script.clone().model("script");
    let chat = team.build(&|_| Ok(AnyModel::new(model.clone()))).unwrap();
    let mut log = Log::in_memory();
    let Status::Closed { reason, summary } = chat.run_in(&mut log, "How much?").await.unwrap().status else {
        panic!()
    };
    model.finish().unwrap();
    let returned = |body: &Body| {
        if let Body::ToolReturned { result: outcome, .. } = body { Some(outcome.clone()) } else { None }
    };
    let outcomes = log.events().await.iter().filter_map(|event| returned(&event.body)).collect();
    (reason.to_string(), summary.to_string(), outcomes)
}

const CALL: &str = "{Ann: {calls: [{tool: calculator, args: {expression: 6*7}}]}}";

#[tokio::test]
async fn rounds_of_calls_end_with_an_answer_with_a_sum_or_with_the_chat() {
    let answer = format!("{CALL}, {{Ann: {{say: '42', expect: {{last: '42', tools: [calculator]}}}}}}");
    assert_eq!(play(&team("{name: Ann, tools: [calculator], reasoning: react}", &answer)).await.1, "42");
    let limited =
        team("{name: Ann, tools: [calculator], reasoning: {react: {rounds: 1}}}", &[CALL, CALL].join(", "));
    assert!(play(&limited).await.0.contains('1'), "the limit of rounds");
    let summed = format!(
        "{CALL}, {CALL}, {{Ann: {{say: About 40., expect: {{last: cannot call any more tools, tools: []}}}}}}"
    );
    let summing =
        team("{name: Ann, tools: [calculator], reasoning: {react: {rounds: 1, summarize: true}}}", &summed);
    assert_eq!(play(&summing).await.1, "About 40.");
}

#[tokio::test]
async fn calls_can_be_written_and_observations_read() {
    let script = "{Ann: {say: \"Thought: count\\nAction: calculator\\nAction Input: {\\\"expression\\\": \\\"6*7\\\"}\", expect: {system: 'Action Input', tools: []}}},
        {Ann: {say: \"Thought: done\\nFinal Answer: 42\", expect: {last: 'Observation: 42'}}}";
    let (_, summary, outcomes) =
        play(&team("{name: Ann, tools: [calculator], reasoning: {react: {as_text: true}}}", script)).await;
    assert_eq!((&*summary, outcomes.len()), ("42", 1));
}

#[tokio::test]
async fn a_plan_is_made_and_its_steps_are_solved() {
    let script =
        "{Plan: {say: \"1. Count\\n2. Answer\\n<END_OF_PLAN>\", expect: {last: 'Objective: How much?'}}},
        {Ann: {say: it is 42, expect: {last: 'Solve this step and no other: Count', tools: [calculator]}}},
        {Ann: {say: It is 42., expect: {last: 'Result: it is 42'}}}";
    let agents =
        "{name: Ann, tools: [calculator], reasoning: {plan_and_solve: {planner: Plan}}}, {name: Plan}";
    assert_eq!(play(&team(agents, script)).await.1, "It is 42.");
    // Alone, it plans without its tools.
    let script = "{Ann: {say: \"1. Count\", expect: {last: 'Objective', tools: []}}}, {Ann: '42'}";
    assert_eq!(
        play(&team("{name: Ann, tools: [calculator], reasoning: plan_and_solve}", script)).await.1,
        "42"
    );
}

#[tokio::test]
async fn all_calls_are_planned_at_once_and_answered_from_their_evidence() {
    let script = "{Ann: {say: \"Plan: count\\n#E1 = calculator[{\\\"expression\\\": \\\"6*7\\\"}]\\nPlan: more\\n#E2 = calculator[{\\\"expression\\\": \\\"#E1 + 1\\\"}]\", expect: {last: 'Question: How much?', tools: []}}},
        {Solve: {say: It is 43., expect: {last: '#E2: 43'}}}";
    let agents = "{name: Ann, tools: [calculator], reasoning: {rewoo: {solver: Solve}}}, {name: Solve}";
    let (_, summary, outcomes) = play(&team(agents, script)).await;
    assert_eq!((&*summary, outcomes.len()), ("It is 43.", 2));
}

#[tokio::test]
async fn a_plan_of_more_calls_than_the_file_allows_fails() {
    let script = "{Ann: \"#E1 = calculator[{\\\"expression\\\": \\\"6*7\\\"}]\\n#E2 = calculator[{\\\"expression\\\": \\\"1+1\\\"}]\"}";
    let team = team("{name: Ann, tools: [calculator], reasoning: {rewoo: {max_steps: 1}}}", script);
    let model = team.script.clone().model("script");
    let chat = team.build(&|_| Ok(AnyModel::new(model.clone()))).unwrap();
    let mut log = Log::in_memory();
    let error = chat.run_in(&mut log, "How much?").await.unwrap_err().to_string();
    assert!(error.contains("the plan of `Ann` has more than 1 step"), "{error}");
}

#[tokio::test]
async fn a_draft_is_criticized_until_there_is_nothing_to_criticize() {
    let script = "{Ann: draft}, {Eve: {say: Shorter., expect: {last: draft}}}, {Ann: {say: short, expect: {last: Shorter.}}}, {Eve: FINE}";
    let agents = "{name: Ann, reasoning: {refine: {critic: Eve, rounds: 5, until: FINE}}}, {name: Eve}";
    assert_eq!(play(&team(agents, script)).await.1, "short");
    let script = "{Ann: draft}, {Ann: Shorter.}, {Ann: short}";
    assert_eq!(play(&team("{name: Ann, reasoning: {refine: {rounds: 1}}}", script)).await.1, "short");
}

#[tokio::test]
async fn the_best_of_several_proposals_is_said() {
    let script = "{Ann: one}, {Ann: two}, {Eve: none}, {Eve: I choose 2}";
    let agents = "{name: Ann, reasoning: {best: {critic: Eve, options: 2, retries: 1}}}, {name: Eve}";
    assert_eq!(play(&team(agents, script)).await.1, "two");
    let script = "{Ann: one}, {Ann: two}, {Eve: {say: none, expect: {last: \"Welche der 2?\\n1. Entwurf\\none\\n\\n2. Entwurf\\ntwo\"}}},
        {Eve: {say: '2', expect: {last: Eine von 2.}}}";
    let texts = "{prompt: \"Welche der {count}?\\n{options}\", option: '{number}. Entwurf', retry_prompt: 'Eine von {count}.'}";
    let agents = format!(
        "{{name: Ann, reasoning: {{best: {{critic: Eve, options: 2, texts: {texts}}}}}}}, {{name: Eve}}"
    );
    assert_eq!(play(&team(&agents, script)).await.1, "two");
}

#[tokio::test]
async fn an_agent_that_reasons_may_have_layers_before_it() {
    let script = format!("{CALL}, {{Ann: '42'}}");
    let agents =
        "{name: Ann, tools: [calculator], reasoning: react, max_auto_replies: 3, default_reply: Nothing.}";
    assert_eq!(play(&team(agents, &script)).await.1, "42");
}

#[tokio::test]
async fn blocks_are_read_and_run_and_what_is_broken_is_not() {
    let agents = "{name: Ann, parameters: {stop: [\"\\n```\\n\"]}, output_blocks: [{kind: call, begin: \"```json\\n\", end: \"\\n```\\n\", json: true, instructions: Call tools in blocks., restore: true}]},
        {name: Bob, model: none, runs_output_blocks: {tools: [calculator]}, default_reply: Go on.}";
    let call =
        "```json\\n{\\\"name\\\": \\\"calculator\\\", \\\"parameters\\\": {\\\"expression\\\": \\\"6*7\\\"}}";
    let script = format!(
        "{{Ann: {{say: \"I count.\\n{call}\", expect: {{system: Call tools in blocks.}}}}}},
         {{Ann: {{say: \"```json\\nbroken\", expect: {{last: '42'}}}}}},
         {{Ann: {{say: It is 42., expect: {{last: was not run}}}}}}, {{Ann: {{say: Done., expect: {{last: Go on.}}}}}}"
    );
    let chat = "{participants: [Ann, Bob], stop: {says: Done.}}";
    let (_, summary, outcomes) = play(&with_chat(agents, chat, &script)).await;
    assert_eq!((&*summary, outcomes.len()), ("Done.", 1));
}

#[tokio::test]
async fn a_state_machine_branches_on_a_structured_reply() {
    let agents = "{name: Ann, output_schema: {type: object, properties: {route: {type: string}, sure: {type: integer}}, required: [route]}}, {name: Bob}, {name: Cy}";
    let chat = "{participants: [Ann, Bob, Cy], pattern: {state_machine: {after: {Ann: [
        {when: \"last.value.route == 'sales' && last.value.sure > 50\", then: Bob}, {then: Cy}], Bob: end, Cy: end}}}}";
    for (route, sure, who) in [("sales", 90, "Bob"), ("sales", 10, "Cy"), ("repairs", 90, "Cy")] {
        let script = format!("{{Ann: '{{\"route\": \"{route}\", \"sure\": {sure}}}'}}, {{{who}: by {who}}}");
        assert_eq!(play(&with_chat(agents, chat, &script)).await.1, format!("by {who}"));
    }
}
