//! Conversations whose stop reasons are true, and the same ones with each other reason, which is not.

use std::sync::Arc;

use polylogue::stop::{Counted, ModelMistake, Reason};
use polylogue::{AnyModel, Log};
use polylogue_core::{
    Body, Call, DeltaSink, Event, Finish, Model, ModelError, Name, Part, Reply, Request, Status, StopReason,
    Usage,
};
use polylogue_team::{BuildContext, Overrides, Team, parse};
use serde_json::json;

use super::untrue;

/// A model that says these texts, one in each call of an agent, and then the last one again. `!` calls a tool that there is not, `-` says nothing, and
/// `?` is another vote of each agent.
struct Lines(Vec<&'static str>);

impl Model for Lines {
    fn name(&self) -> &str {
        "a:b"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let mine = usize::try_from(request.origin.nth).unwrap();
        let text = self.0.get(mine).or(self.0.last()).copied().unwrap_or_default();
        let call = |tool: &str| {
            Part::Call(Call { id: format!("c{mine}"), tool: tool.to_owned(), args: json!({"x": mine}) })
        };
        let (parts, finish) = match text {
            "-" => (Vec::new(), Finish::Stop),
            "!" => (vec![call("no_such_tool")], Finish::Calls),
            text if text.starts_with("transfer") => {
                let call = Call { id: format!("c{mine}"), tool: text.to_owned(), args: json!({}) };
                (vec![Part::Call(call)], Finish::Calls)
            }
            "?" => {
                let vote = if request.origin.who.as_str() == "A" { "red" } else { "blue" };
                (vec![Part::text(vote)], Finish::Stop)
            }
            text => (vec![Part::text(text)], Finish::Stop),
        };
        let usage = Usage { input: Some(1), output: Some(1), ..Usage::default() };
        Ok(Reply { parts, finish, usage, ..Reply::text("") })
    }
}

/// A team, what its models say, and the code of the reason for which its chat ends.
type Played = (&'static str, &'static [&'static str], &'static str);

const LEDGER: &str = r#"{"is_request_satisfied": {"answer": true}, "is_in_loop": {"answer": false}, "is_progress_being_made": {"answer": true},
    "next_speaker": {"answer": "B"}, "instruction_or_question": {"answer": "Go on."}}"#;
const STALLS: &str = r#"{"is_request_satisfied": {"answer": false}, "is_in_loop": {"answer": true}, "is_progress_being_made": {"answer": false},
    "next_speaker": {"answer": "B"}, "instruction_or_question": {"answer": "Go on."}}"#;

const PLAYED: [Played; 33] = [
    ("participants: [A, B], stop: {says: DONE}", &["one", "two", "all is DONE"], "mentioned"),
    ("participants: [A, B], stop: {matches: '^OK'}", &["one", "two", "OK then"], "matched"),
    ("participants: [A, B], stop: {when: \"last.text == 'three'\"}", &["one", "two", "three"], "condition"),
    ("participants: [A, B], stop: {max_turns: 3}", &["one", "two", "three"], "count_reached"),
    ("participants: [A, B], stop: {max_messages: 3}", &["one", "two"], "count_reached"),
    ("participants: [A, B], max_turns: 3", &["one", "two", "three"], "turns"),
    ("participants: [A, B], pattern: sequential", &["one", "two"], "all_spoken"),
    ("participants: [A], pattern: sequential", &["one"], "replied"),
    ("participants: [A, B], pattern: {dag: {B: A}}", &["one", "two"], "dag_complete"),
    ("participants: [A, B]", &["one", "-"], "loop_detected"),
    ("participants: [A, B]", &["Thank you!"], "loop_detected"),
    ("participants: [A, B]", &["the same as it was before"], "loop_detected"),
    ("participants: [A, B], pattern: sequential", &["-"], "no_output"),
    (
        "participants: [A, B], pattern: {graph: {start: A, edges: {A: [{to: A, says: again}, {to: B, otherwise: true}]}}}",
        &["again", "one", "two"],
        "graph_complete",
    ),
    (
        "participants: [A, B], pattern: {state_machine: {start: A, after: {A: [{when: turns < 3, then: B}, {then: end}], B: A}}}",
        &["one", "two", "three"],
        "end_state",
    ),
    ("participants: [A, B], pattern: {debate: {options: [red, blue]}}", &["one", "blue"], "voted"),
    (
        "participants: [A, B], pattern: {debate: {options: [red, blue], tie: undecided}}",
        &["one", "?"],
        "undecided",
    ),
    (
        "participants: [B], pattern: {orchestrator: {planner: A}}",
        &["facts", "plan", LEDGER, "end"],
        "request_satisfied",
    ),
    (
        "participants: [B], pattern: {orchestrator: {planner: A, max_plans: 1, max_stalls: 1}}",
        &["facts", "plan", STALLS, "end"],
        "stalled",
    ),
    (
        "participants: [A, B], pattern: {tasks: [{who: A, prompt: One.}, {who: B, prompt: Two.}]}",
        &["one", "two"],
        "tasks_done",
    ),
    (
        "participants: [A, B], pattern: {group_solve: {max_iterations: 2, tasks: [{who: A, prompt: One.}, {who: B, prompt: Two.}]}}",
        &["one", "two"],
        "count_reached",
    ),
    (
        "participants: [H, B], pattern: {handoffs: {start: H, then: end}}",
        &["transfer_to_B", "two"],
        "no_handoff",
    ),
    ("participants: [T, B]", &["!"], "tool_rounds"),
    ("participants: [H, B], pattern: {handoffs: {start: H, then: stay}}", &["one", "-"], "no_reply"),
    (
        "participants: [A, B], pattern: {group: {transitions: {allowed: {A: B}}}}",
        &["one", "two"],
        "no_speaker",
    ),
    (
        "participants: [A, B], pattern: {state_machine: {start: A, after: {A: [{when: turns < 1, then: B}], B: A}}}",
        &["one"],
        "no_speaker",
    ),
    (
        "participants: [A, B], pattern: {debate: {options: [red, blue], tie: {chair: A}}}",
        &["one", "?", "red"],
        "chair_decided",
    ),
    (
        "participants: [A, B], pattern: {role_play: {user: A, assistant: B}}",
        &["Instruction: do it"],
        "errors",
    ),
    ("participants: [A, B], pattern: {role_play: {user: A, assistant: B}}", &["-"], "errors"),
    (
        "participants: [A, B], pattern: {role_play: {user: A, assistant: B, done: {text: FIN}}}",
        &["FIN"],
        "mentioned",
    ),
    ("participants: [R, B]", &["one", "two"], "auto_replies"),
    ("participants: [S, B]", &["one", "two"], "errors"),
    (
        "participants: [A, B], pattern: {group_solve: {end: first_completion, check: {structured: false}, \
         tasks: [{who: A, prompt: One., self_terminating: true}, {who: B, prompt: Two., self_terminating: true}]}}",
        &["one", "two", "three", "no"],
        "completed",
    ),
];

const AGENTS: &str = "{name: A}, {name: B}, {name: H, handoffs: [B]}, {name: T, tools: [calculator], max_tool_rounds: 2}, \
     {name: R, human_input: never, max_auto_replies: 1}, {name: S, output_schema: {type: object}, output_retries: 1}";

fn team(chat: &str) -> Team {
    let agents = AGENTS.split("}, {").map(|agent| agent.trim_matches(['{', '}']));
    let named = |agent: &&str| {
        let name = &agent[6..7];
        matches!(name, "A" | "B") || chat.contains(&format!("[{name}"))
    };
    let agents: Vec<String> = agents.filter(named).map(|agent| format!("{{{agent}}}")).collect();
    let text =
        format!("{{name: t, model: 'a:b', task: hi, agents: [{}], chat: {{{chat}}}}}", agents.join(", "));
    parse(&text, "t.yaml", &Overrides::default()).unwrap_or_else(|error| panic!("{chat}: {error}")).team
}

async fn play(team: &Team, says: &[&'static str]) -> (StopReason, Vec<Arc<Event>>) {
    let model = AnyModel::new(Lines(says.to_vec()));
    let chat = team.build_at(&|_| Ok(model.clone()), &BuildContext::none()).unwrap();
    let run = chat.run_in(&mut Log::in_memory(), "hi").await.unwrap();
    let Status::Closed { reason, .. } = &run.status else { panic!("{:?}", run.status) };
    (reason.clone(), run.events().to_vec())
}

/// The log with another reason at its end.
fn with_reason(events: &[Arc<Event>], other: &StopReason) -> Vec<Arc<Event>> {
    let mut events = events.to_vec();
    let last = Arc::make_mut(events.last_mut().unwrap());
    let Body::Closed { reason, .. } = &mut last.body else { panic!("{last:?}") };
    *reason = other.clone();
    events
}

/// Whether two reasons say the same; of loops, whatever the text for people is.
fn is_same(one: &StopReason, other: &StopReason) -> bool {
    match (one, other) {
        (
            StopReason::LoopDetected { pattern, evidence, .. },
            StopReason::LoopDetected { pattern: other, evidence: seqs, .. },
        ) => pattern == other && evidence == seqs,
        _ => one == other,
    }
}

fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

/// Reasons, of which each is true of one of the conversations at most.
fn reasons() -> Vec<StopReason> {
    let (a, b) = (name("A"), name("B"));
    let looped = |pattern: &str, evidence: &[u64]| StopReason::LoopDetected {
        pattern: pattern.into(),
        text: "".into(),
        evidence: evidence.to_vec(),
    };
    let count = |count, of| Reason::CountReached { count, of };
    let errors = |of| Reason::Errors { who: name("A"), of, limit: 1 };
    let library = [
        Reason::Replied { who: b.clone() },
        Reason::Replied { who: a.clone() },
        Reason::AllSpoken,
        Reason::NoHandoff { who: a.clone() },
        Reason::GraphComplete,
        Reason::DagComplete,
        Reason::EndState { after: Some(b.clone()) },
        Reason::EndState { after: Some(a.clone()) },
        Reason::EndState { after: None },
        Reason::Voted { option: "red".into() },
        Reason::Voted { option: "green".into() },
        Reason::ChairDecided { option: "red".into(), by: a.clone() },
        Reason::Undecided,
        Reason::RequestSatisfied { by: a.clone() },
        Reason::RequestSatisfied { by: b.clone() },
        Reason::TasksDone { count: 1 },
        Reason::TasksDone { count: 3 },
        count(2, Counted::Turns),
        count(4, Counted::Turns),
        count(4, Counted::Messages),
        count(3, Counted::Iterations),
        Reason::Mentioned { text: "DONE".into(), by: b.clone() },
        Reason::Mentioned { text: "one".into(), by: a.clone() },
        Reason::Matched { pattern: "^OK".into(), by: b.clone() },
        Reason::Matched { pattern: "then".into(), by: a.clone() },
        Reason::Condition { name: "last.text == 'two'".into() },
        Reason::Messages { limit: 3 },
        Reason::Time { limit_ms: 0 },
        Reason::NoParticipants { last: None },
        Reason::NoReply { who: b.clone() },
        Reason::ToolRounds { who: a.clone(), limit: 2 },
        Reason::ToolRounds { who: name("T"), limit: 3 },
        Reason::ContextFull { who: a.clone(), model: "a:b".into() },
        Reason::AutoReplies { who: a.clone(), limit: 2 },
        Reason::NoSpeaker { after: Some(a.clone()) },
        Reason::NoSpeaker { after: None },
        Reason::Stalled { plans: 2 },
        Reason::Completed { who: vec![a.clone()] },
        Reason::Rounds { limit: 1 },
        errors(ModelMistake::Reply),
        errors(ModelMistake::Role),
        errors(ModelMistake::Answer),
    ];
    let kernel = [
        StopReason::Finished,
        StopReason::Turns { limit: 2, next: None },
        StopReason::Turns { limit: 4, next: None },
        StopReason::Calls { limit: 50 },
        StopReason::Calls { limit: 1_000 },
        StopReason::Tokens { limit: 1, used: 2, next: None, cut: None },
        StopReason::Time { limit_ms: 1, used_ms: 2 },
        StopReason::Depth { limit: 8 },
        looped("silence", &[1, 2]),
        looped("farewells", &[3, 6, 9, 12]),
        looped("repetition", &[1]),
        looped("calls", &[]),
        StopReason::Left { who: a, why: "bored".into() },
        StopReason::Stopped { by: "user".into() },
        StopReason::UnknownPrice { model: "a:b".into() },
        StopReason::Bound { exceeded: Box::new(StopReason::Calls { limit: 1 }) },
        StopReason::NoOutput { ended: Box::new(StopReason::Calls { limit: 1 }) },
        StopReason::All(vec![Reason::AllSpoken.into(), Reason::GraphComplete.into()]),
        polylogue_core::OtherReason::new("unheard_of", "", polylogue_core::RunOutcome::Done).into(),
    ];
    kernel.into_iter().chain(library.into_iter().map(StopReason::from)).collect()
}

#[tokio::test]
async fn reasons_that_are_not_true_are_found() {
    let mut missed = Vec::new();
    for (chat, says, code) in PLAYED {
        let team = team(chat);
        let (reason, events) = play(&team, says).await;
        assert_eq!(reason.code(), code, "{chat}: {reason:?}");
        assert_eq!(untrue(&team, &events), None, "{chat}");
        let others = reasons().into_iter().filter(|other| !is_same(other, &reason));
        let believed = others.filter(|other| untrue(&team, &with_reason(&events, other)).is_none());
        missed.extend(believed.map(|other| format!("{chat}: {other:?} for {reason:?}")));
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// A conversation that should have ended before does not pass, whatever it says in the end.
#[tokio::test]
async fn conversations_that_ended_too_late_are_found() {
    let late = [
        ("participants: [A, B], max_turns: 3", "participants: [A, B], max_turns: 3, stop: {says: one}"),
        (
            "participants: [A, B], max_turns: 3",
            "participants: [A, B], max_turns: 3, stop: {any: [{matches: '^o'}, {says: x}]}",
        ),
        (
            "participants: [A, B], stop: {max_turns: 4}, loop_detection: off",
            "participants: [A, B], stop: {max_turns: 4}",
        ),
    ];
    for (played, wanted) in late {
        let says: &[&str] = if played.contains("off") { &["-"] } else { &["one", "two", "three"] };
        let (reason, events) = play(&team(played), says).await;
        assert_eq!(untrue(&team(played), &events), None, "{reason:?}");
        let found = untrue(&team(wanted), &events);
        assert!(found.is_some(), "{wanted}: {reason:?}");
    }
}
