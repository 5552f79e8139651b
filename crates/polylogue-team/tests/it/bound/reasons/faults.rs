//! Conversations whose stop reasons are true, and the same ones with each other reason, which is not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use polylogue::stop::{Counted, LibraryStopReason, ModelMistake};
use polylogue::{AnyModel, Log};
use polylogue_core::{
    Body, Bound, DeltaSink, Event, FinishReason, Model, ModelError, Money, Name, Params, Part, Reply,
    Request, Status, StopReason, ToolCall, Usage,
};
use polylogue_team::{BuildContext, Overrides, Team, parse};
use serde_json::json;

use super::untrue;

/// A model that says these texts, one in each call of an agent, and then the last one again. `!` calls a tool that there is not, `-` says nothing, and
/// `?` is another vote of each agent. What begins with `~` takes its time.
struct Lines(Vec<&'static str>);

impl Model for Lines {
    fn name(&self) -> &str {
        "a:b"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let mine = usize::try_from(request.origin.nth).unwrap();
        let mut text = self.0.get(mine).or(self.0.last()).copied().unwrap_or_default();
        if let Some(slow) = text.strip_prefix('~') {
            tokio::time::sleep(Duration::from_millis(300)).await;
            text = slow;
        }
        let call = |tool: &str| {
            Part::ToolCall(ToolCall {
                id: format!("c{mine}"),
                tool: tool.to_owned(),
                args: json!({"x": mine}),
            })
        };
        let (parts, finish) = match text {
            "-" => (Vec::new(), FinishReason::Stop),
            "!" => (vec![call("no_such_tool")], FinishReason::Calls),
            text if text.starts_with("transfer") => {
                let call = ToolCall { id: format!("c{mine}"), tool: text.to_owned(), args: json!({}) };
                (vec![Part::ToolCall(call)], FinishReason::Calls)
            }
            "?" => {
                let vote = if request.origin.who.as_str() == "A" { "red" } else { "blue" };
                (vec![Part::text(vote)], FinishReason::Stop)
            }
            text => (vec![Part::text(text)], FinishReason::Stop),
        };
        let (input, output) = (Bound::of(self, request).input, text.len() as u64 / 8 + 2);
        let usage = Usage { input: Some(input), output: Some(output), ..Usage::default() };
        Ok(Reply { parts, finish, usage, ..Reply::new("") })
    }

    /// A dollar for a million tokens.
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(Money { picodollars: (usage.input? + usage.output?) * 1_000_000 })
    }

    fn max_output(&self, _: &Params) -> Option<u64> {
        Some(64)
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

/// Teams, of which all keys but the first ones are given, whose runs end for reasons that no chat of [`PLAYED`] has. People leave.
const LIMITED: [Played; 12] = [
    (
        "limits: {calls: 2}, agents: [{name: A}, {name: B}], chat: {participants: [A, B], max_turns: 8}",
        &["one", "two"],
        "calls",
    ),
    (
        "limits: {tokens: 600}, agents: [{name: A}, {name: B}], chat: {participants: [A, B], max_turns: 8}",
        &["one", "two"],
        "tokens",
    ),
    (
        "limits: {cost: 0.0006}, agents: [{name: A}, {name: B}], chat: {participants: [A, B], max_turns: 8}",
        &["one", "two"],
        "cost",
    ),
    (
        "limits: {time: 200 ms}, agents: [{name: A}, {name: B}], chat: {participants: [A, B], max_turns: 8}",
        &["~one", "two"],
        "time",
    ),
    (
        "agents: [{name: A}, {name: B}], chat: {participants: [A, B], stop: {max_time: 200 ms}}",
        &["~one", "two"],
        "time",
    ),
    (
        "agents: [{name: A, limits: {calls: 1}}, {name: B}], chat: {participants: [A, B], max_turns: 8}",
        &["one", "two"],
        "allowance",
    ),
    (
        "limits: {depth: 1}, agents: [{name: A}, {name: B}], \
         chats: [{name: most, participants: [B], pattern: sequential}, {name: inner, participants: [most], pattern: sequential}], \
         chat: {participants: [A, inner], pattern: sequential}",
        &["one"],
        "depth",
    ),
    (
        "agents: [{name: A}, {name: B}], chat: {participants: [A, B], stop: {all: [{max_turns: 2}, {max_messages: 2}]}}",
        &["one", "two"],
        "all",
    ),
    (
        "agents: [{name: A}, {name: B}], \
         chat: {participants: [A, B], pattern: {role_play: {user: A, assistant: B, max_messages: 2, max_uninstructed: 0}}}",
        &["one", "two"],
        "messages",
    ),
    (
        "agents: [{name: A}, {name: B}], \
         chat: {participants: [A, B], pattern: {role_play: {user: A, assistant: B, max_rounds: 1, max_uninstructed: 0}}}",
        &["one", "two"],
        "rounds",
    ),
    (
        "agents: [{name: A}, {name: P, human: true}], chat: {participants: [A, P], max_turns: 8}",
        &["one"],
        "left",
    ),
    (
        "agents: [{name: A}, {name: P, human: true}], chat: {participants: [P], max_turns: 5}",
        &["one"],
        "no_participants",
    ),
];

/// All reasons for which the outermost chat of a team can end within its bound. Others are those of chats of one agent (`finished`), of a
/// bound that is wrong (`bound`), of unknown prices, of what stops a run from outside, and of a history that a provider refuses
/// (`context_full`), after which no bound applies.
const REACHED: [&str; 36] = [
    "all", "all_spoken", "allowance", "auto_replies", "calls", "chair_decided", "completed", "condition",
    "cost", "count_reached", "dag_complete", "depth", "end_state", "errors", "graph_complete", "left",
    "loop_detected", "matched", "mentioned", "messages", "no_handoff", "no_output", "no_participants",
    "no_reply", "no_speaker", "replied", "request_satisfied", "rounds", "stalled", "tasks_done", "time",
    "tokens", "tool_rounds", "turns", "undecided", "voted",
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
    with_keys(&format!("agents: [{}], chat: {{{chat}}}", agents.join(", ")))
}

fn with_keys(keys: &str) -> Team {
    let text = format!("{{name: t, model: 'a:b', task: hi, {keys}}}");
    parse(&text, "t.yaml", &Overrides::default()).unwrap_or_else(|error| panic!("{keys}: {error}")).team
}

/// Plays a run of `team` within its limits and its bound.
async fn play(team: &Team, says: &[&'static str]) -> (StopReason, Vec<Arc<Event>>) {
    let model = AnyModel::new(Lines(says.to_vec()));
    let bound = team.bound(&|_| Ok(model.clone()), &team.limits()).unwrap();
    let chat = team.build_at(&|_| Ok(model.clone()), &BuildContext::none()).unwrap();
    let log = Log::in_memory().limits(team.limits()).agent_limits(team.agent_limits());
    let mut log = log.bound(bound.to_enforce());
    let mut run = chat.run_in(&mut log, "hi").await.unwrap();
    while let Status::Waiting(questions) = &run.status {
        let (at, who) = (questions[0].0.clone(), questions[0].1.who.clone());
        log.answer(&at, &who, "exit").await.unwrap();
        run = chat.resume(&mut log).await.unwrap();
    }
    let Status::Closed { reason, .. } = &run.status else { panic!("{:?}", run.status) };
    let (used, most) = (log.usage().await, bound.at_most);
    assert_eq!(log.bound_exception().await, None, "{reason}");
    assert!(most.calls().is_none_or(|most| used.counted_calls() <= most), "{reason}: {used:?} {most:?}");
    assert!(most.tokens().is_none_or(|most| used.counted_tokens() <= most), "{reason}: {used:?} {most:?}");
    (reason.clone(), log.events().await)
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
    let count = |count, of| LibraryStopReason::CountReached { count, of };
    let errors = |of| LibraryStopReason::Errors { who: name("A"), of, limit: 1 };
    let library = [
        LibraryStopReason::Replied { who: b.clone() },
        LibraryStopReason::Replied { who: a.clone() },
        LibraryStopReason::AllSpoken,
        LibraryStopReason::NoHandoff { who: a.clone() },
        LibraryStopReason::GraphComplete,
        LibraryStopReason::DagComplete,
        LibraryStopReason::EndState { after: Some(b.clone()) },
        LibraryStopReason::EndState { after: Some(a.clone()) },
        LibraryStopReason::EndState { after: None },
        LibraryStopReason::Voted { option: "red".into() },
        LibraryStopReason::Voted { option: "green".into() },
        LibraryStopReason::ChairDecided { option: "red".into(), by: a.clone() },
        LibraryStopReason::Undecided,
        LibraryStopReason::RequestSatisfied { by: a.clone() },
        LibraryStopReason::RequestSatisfied { by: b.clone() },
        LibraryStopReason::TasksDone { count: 1 },
        LibraryStopReason::TasksDone { count: 3 },
        count(2, Counted::Turns),
        count(4, Counted::Turns),
        count(4, Counted::Messages),
        count(3, Counted::Iterations),
        LibraryStopReason::Mentioned { text: "DONE".into(), by: b.clone() },
        LibraryStopReason::Mentioned { text: "one".into(), by: a.clone() },
        LibraryStopReason::Matched { pattern: "^OK".into(), by: b.clone() },
        LibraryStopReason::Matched { pattern: "then".into(), by: a.clone() },
        LibraryStopReason::Condition { name: "last.text == 'two'".into() },
        LibraryStopReason::Messages { limit: 3 },
        LibraryStopReason::Time { limit_ms: 0 },
        LibraryStopReason::NoParticipants { last: None },
        LibraryStopReason::NoReply { who: b.clone() },
        LibraryStopReason::ToolRounds { who: a.clone(), limit: 2 },
        LibraryStopReason::ToolRounds { who: name("T"), limit: 3 },
        LibraryStopReason::ContextFull { who: a.clone(), model: "a:b".into() },
        LibraryStopReason::AutoReplies { who: a.clone(), limit: 2 },
        LibraryStopReason::NoSpeaker { after: Some(a.clone()) },
        LibraryStopReason::NoSpeaker { after: None },
        LibraryStopReason::Stalled { plans: 2 },
        LibraryStopReason::Completed { who: vec![a.clone()] },
        LibraryStopReason::Rounds { limit: 1 },
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
        StopReason::All(vec![LibraryStopReason::AllSpoken.into(), LibraryStopReason::GraphComplete.into()]),
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

#[tokio::test]
async fn each_reason_is_reached_within_the_bound() {
    let of_chats = PLAYED.iter().map(|(chat, says, code)| (team(chat), says, *code));
    let limited = LIMITED.iter().map(|(keys, says, code)| (with_keys(keys), says, *code));
    let mut reached = BTreeSet::new();
    for (team, says, code) in of_chats.chain(limited) {
        let (reason, events) = play(&team, says).await;
        assert_eq!(reason.code(), code, "{reason:?}");
        assert_eq!(untrue(&team, &events), None, "{reason:?}");
        reached.insert(code);
    }
    assert_eq!(reached.into_iter().collect::<Vec<_>>(), REACHED);
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
