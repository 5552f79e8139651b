//! Questions of one of several turns that are in progress at the same time, and of background tasks: each is in the log at once, and an
//! answer continues its turn at once.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{log_of, name, run_or_resume, script};
use futures_util::future::{Either, join, select};
use polylogue::layers::AnswerTimeout;
use polylogue::tools::Approval;
use polylogue::tools::FunctionTool;
use polylogue::tools::agent_tool::AgentTool;
use polylogue::{AnyModel, Assistant, Chat, Function, Human, parallel, sequential};
use polylogue_core::{
    Act, AgentCall, AnyAgent, Body, DeltaSink, Event, Instruction, Log, LogHandle, Model, ModelError,
    OpenQuestion, Path, Reply, Request, Responder, Status, Timer, Timestamp, Transcript,
};
use polylogue_models::Script;
use tokio::time::{Instant, sleep, timeout};

/// A minute of virtual time, which passes only when nothing else can happen.
const HANGS: Duration = Duration::from_secs(60);

/// Where a model of the test finds the log of its conversation.
type Outside = Arc<Mutex<Option<LogHandle>>>;

/// Whether a model replies, by the events of its conversation.
type Gate = fn(&[Arc<Event>]) -> bool;

/// Replies as soon as its gate is open.
struct Gated {
    outside: Outside,
    gate: Gate,
}

impl Model for Gated {
    fn name(&self) -> &str {
        "test:gated"
    }
    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let log = self.outside.lock().unwrap().clone().unwrap();
        let mut updates = log.subscribe().await;
        while !(self.gate)(&log.events().await) {
            updates.next().await;
        }
        Ok(Reply::new("At last."))
    }
}

/// A chat with a slow participant.
type ChatWith<'c> = &'c dyn Fn(AnyAgent) -> Chat;

/// All of them speak at once.
fn panel(agents: impl IntoIterator<Item = AnyAgent>) -> Chat {
    let chat = agents.into_iter().fold(Chat::builder("panel"), |chat, agent| chat.participant(agent));
    chat.policy(parallel()).build().unwrap()
}

fn person(who: &str) -> AnyAgent {
    AnyAgent::new(Human::new(who).unwrap())
}

fn is_answered(events: &[Arc<Event>], who: &str) -> bool {
    events.iter().any(|event| matches!(&event.body, Body::InputProvided { to, .. } if *to == name(who)))
}

fn any_answer(events: &[Arc<Event>]) -> bool {
    events.iter().any(|event| matches!(event.body, Body::InputProvided { .. }))
}

/// Gives each of `answers` as soon as its question and the answer before are in the log.
async fn give(log: &LogHandle, answers: &[(&str, &str)]) -> Infallible {
    let mut updates = log.subscribe().await;
    for (who, text) in answers {
        let question = loop {
            let events = log.events().await;
            let mut open = OpenQuestion::of(&events).into_iter();
            let question = open.find(|open| open.question.who == name(who)).map(|open| open.seq);
            if question.is_some() || is_answered(&events, who) {
                break question;
            }
            updates.next().await;
        };
        if let Some(question) = question {
            let answer = Instruction::Answer { question, text: (*text).into(), by: None };
            log.instruct(answer).confirmed().await.unwrap();
        }
    }
    pending().await
}

/// Runs a conversation until it is closed or waits, while a person gives `answers`.
async fn run(chat: &Chat, log: &mut Log, answers: &[(&str, &str)]) -> Status {
    let handle = log.handle();
    let run = pin!(run_or_resume(chat, log, "go"));
    let person = pin!(give(&handle, answers));
    match timeout(HANGS, select(run, person)).await.expect("no one is asked while a turn is in progress") {
        Either::Left((run, _)) => run.unwrap().status,
        Either::Right((never, _)) => match never {},
    }
}

/// Plays a conversation from `prefix` to its end, where the slow participant waits for `gate` and a person answers while it does; without
/// a gate, the person answers when the run waits.
async fn play(
    chat: ChatWith<'_>,
    gate: Option<Gate>,
    prefix: &[Arc<Event>],
    answers: &[(&str, &str)],
) -> Vec<Arc<Event>> {
    let outside = Outside::default();
    let model = Gated { outside: Arc::clone(&outside), gate: gate.unwrap_or(|_| true) };
    let chat = chat(AnyAgent::new(Assistant::new("Slow", AnyModel::new(model)).unwrap()));
    let mut log = log_of(prefix).await;
    *outside.lock().unwrap() = Some(log.handle());
    let meanwhile = if gate.is_some() { answers } else { &[] };
    loop {
        let questions = match run(&chat, &mut log, meanwhile).await {
            Status::Waiting(questions) => questions,
            Status::Closed { .. } => return log.events().await,
            Status::Cancelled => panic!("it was cancelled"),
        };
        // What came when no turn was in progress any more.
        if log.post_inbox().await.unwrap() {
            continue;
        }
        let (at, question) = &questions[0];
        let (_, text) = answers.iter().find(|(who, _)| question.who == name(who)).unwrap();
        log.answer(at, &question.who, *text).await.unwrap();
    }
}

/// The conversation, chat by chat, whichever turn was faster.
fn story(events: &[Arc<Event>]) -> Vec<Vec<Body>> {
    let paths: BTreeSet<&Path> = events.iter().map(|event| &event.chat).collect();
    let chat = |at: &Path| -> Vec<Body> {
        let chat = Transcript::from_events(at, events).unwrap();
        chat.events().iter().map(|event| event.body.clone()).collect()
    };
    paths.into_iter().map(chat).collect()
}

/// Plays a conversation in which a person gives `answers` while the slow participant waits for `gate`, and again after a cut at each event,
/// with answers at the same time and with answers when the run waits: the conversation is the same. Returns its events.
async fn check(chat: ChatWith<'_>, gate: Gate, answers: &[(&str, &str)]) -> Vec<Arc<Event>> {
    let whole = play(chat, Some(gate), &[], answers).await;
    for cut in 0..whole.len() {
        for gate in [Some(gate), None] {
            let again = play(chat, gate, &whole[..cut], answers).await;
            assert_eq!(story(&again), story(&whole), "cut before event {cut}, gate: {}", gate.is_some());
        }
    }
    whole
}

/// What is said in the outermost chat, in order.
fn said(events: &[Arc<Event>]) -> Vec<String> {
    let chat = Transcript::from_events(&Path::root(), events).unwrap();
    chat.replies().map(|line| format!("{}: {}", line.message.from, line.message.text())).collect()
}

/// The position of the first such event.
fn first(events: &[Arc<Event>], is_it: impl Fn(&Body) -> bool) -> usize {
    events.iter().position(|event| is_it(&event.body)).unwrap()
}

fn reply_of_slow(events: &[Arc<Event>]) -> usize {
    first(events, |body| matches!(body, Body::ModelReplied(reply) if reply.who == name("Slow")))
}

#[tokio::test(start_paused = true)]
async fn a_person_is_asked_and_answers_while_another_turn_is_in_progress() {
    let chats: [ChatWith<'_>; 2] =
        [&|slow| panel([person("Pat"), slow]), &|slow| panel([slow, person("Pat")])];
    // Messages are in the order of the step, not of time.
    let orders = [["Pat: Yes.", "Slow: At last."], ["Slow: At last.", "Pat: Yes."]];
    for (chat, order) in chats.into_iter().zip(orders) {
        let events = check(chat, any_answer, &[("Pat", "Yes.")]).await;
        assert_eq!(said(&events), order);
        let answered = first(&events, |body| matches!(body, Body::InputProvided { .. }));
        assert!(answered < reply_of_slow(&events), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_people_of_a_step_answer_in_any_order() {
    let both: Gate = |events| is_answered(events, "Ann") && is_answered(events, "Ben");
    let chat = |slow| panel([person("Ann"), slow, person("Ben")]);
    for answers in [[("Ben", "No."), ("Ann", "Yes.")], [("Ann", "Yes."), ("Ben", "No.")]] {
        let events = check(&chat, both, &answers).await;
        assert_eq!(said(&events), ["Ann: Yes.", "Slow: At last.", "Ben: No."]);
        let order: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.body {
                Body::InputProvided { to, text, .. } => Some((to.as_str(), &**text)),
                _ => None,
            })
            .collect();
        assert_eq!(order, answers);
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Said {
    text: String,
}

#[tokio::test(start_paused = true)]
async fn an_approved_call_is_made_while_another_turn_is_in_progress() {
    let script = script(
        r#"[{"Ann": {"calls": [{"tool": "echo", "args": {"text": "a"}, "id": "c1"}]}}, {"Ann": "Echoed."}]"#,
    );
    let echo =
        || FunctionTool::new("echo", "Says it again.", async |Said { text }: Said| Ok(text)).repeatable();
    let chat = |slow| {
        let ann = Assistant::new("Ann", script.model("test")).unwrap().tool(echo());
        panel([AnyAgent::new(ann.approval(Approval::of_tools(["echo"]))), slow])
    };
    let returned: Gate = |events| events.iter().any(|event| matches!(event.body, Body::ToolReturned { .. }));
    let events = check(&chat, returned, &[("Ann", "yes")]).await;
    assert_eq!(said(&events), ["Ann: Echoed.", "Slow: At last."]);
    let asked =
        first(&events, |body| matches!(body, Body::InputRequired(question) if question.is_approval()));
    let called = first(&events, |body| matches!(body, Body::ToolCalled { .. }));
    assert!(asked < called && called < reply_of_slow(&events), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_within_a_nested_chat_is_answered_while_another_turn_is_in_progress() {
    let script = script(r#"[{"Helper": "I help."}]"#);
    let chat = |slow| {
        let helper = Assistant::new("Helper", script.model("test")).unwrap();
        let desk = Chat::builder("desk").participant(person("Pat")).participant(helper).policy(sequential());
        panel([AnyAgent::new(desk.build().unwrap()), slow])
    };
    let helped: Gate = |events| {
        let is_help = |body: &Body| matches!(body, Body::ModelReplied(reply) if reply.who == name("Helper"));
        events.iter().any(|event| is_help(&event.body))
    };
    let events = check(&chat, helped, &[("Pat", "Help.")]).await;
    assert_eq!(said(&events), ["desk: I help.", "Slow: At last."]);
}

/// Alone in a chat, calls all `agents` at the same time, and says what they reply.
fn caller(agents: Vec<AnyAgent>) -> Chat {
    let called = agents.clone();
    let host = Function::calling("Host", agents, move |turn| {
        let called = called.clone();
        Box::pin(async move {
            let calls: Vec<_> = called.iter().map(|agent| AgentCall::of(agent, "go")).collect();
            let mut said = Vec::new();
            for reply in turn.ask_all(calls).await {
                said.push(reply?.text().into_owned());
            }
            Ok(Act::say(said.join(" ")))
        })
    });
    Chat::builder("desk").participant(host.unwrap()).policy(sequential()).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_called_is_answered_while_another_call_is_in_progress() {
    for is_first in [true, false] {
        let chat =
            |slow| caller(if is_first { vec![person("Pat"), slow] } else { vec![slow, person("Pat")] });
        let events = check(&chat, any_answer, &[("Pat", "Yes.")]).await;
        assert_eq!(said(&events), [if is_first { "Host: Yes. At last." } else { "Host: At last. Yes." }]);
        let answered = first(&events, |body| matches!(body, Body::InputProvided { .. }));
        assert!(answered < reply_of_slow(&events), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_ask_several_times_continue_with_each_answer() {
    let pair = || {
        let pair = Chat::builder("pair").participant(person("Ann")).participant(person("Ben"));
        AnyAgent::new(pair.policy(sequential()).build().unwrap())
    };
    let all: Gate = |events| ["Ann", "Ben", "Pat"].iter().all(|who| is_answered(events, who));
    let chat = |slow| caller(vec![pair(), slow, person("Pat")]);
    let answers = [("Ann", "One."), ("Pat", "Three."), ("Ben", "Two.")];
    let events = check(&chat, all, &answers).await;
    assert_eq!(said(&events), ["Host: Two. At last. Three."]);
    let last = events.iter().rposition(|event| matches!(event.body, Body::InputProvided { .. })).unwrap();
    assert!(last < reply_of_slow(&events), "{events:?}");
}

/// Has a tool that asks Boss in the background.
fn starter(script: &Script) -> Assistant {
    let boss = AgentTool::agent(Human::new("Boss").unwrap()).named("boss").background();
    Assistant::new("Ann", script.model("test")).unwrap().agent_tool(boss)
}

/// Whether a background task has ended.
fn task_is_over(events: &[Arc<Event>]) -> bool {
    events.iter().any(|event| event.chat.is_background() && matches!(event.body, Body::Closed { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_background_task_continues_with_an_answer_while_the_conversation_does() {
    let script = script(
        r#"[{"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}]}}, {"Ann": "Asked."}, {"Ann": "I may."}]"#,
    );
    let chat = |slow: AnyAgent| {
        let chat = Chat::builder("main").participant(starter(&script)).participant(slow);
        chat.policy(sequential()).build().unwrap()
    };
    let events = check(&chat, task_is_over, &[("Boss", "Yes.")]).await;
    assert_eq!(said(&events), ["Ann: Asked.", "Slow: At last.", "Ann: I may."]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_awaits_its_background_task_acts_again_after_an_answer_in_it() {
    let script = script(
        r#"[{"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}]}},
            {"Ann": {"calls": [{"tool": "wait_for_task", "args": {}, "id": "c2"}]}}, {"Ann": "I may."}]"#,
    );
    let chat = |slow| panel([AnyAgent::new(starter(&script)), slow]);
    let events = check(&chat, task_is_over, &[("Boss", "Yes.")]).await;
    assert_eq!(said(&events), ["Ann: I may.", "Slow: At last."]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_awaits_one_background_task_continues_while_another_one_works() {
    let script = script(
        r#"[{"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}, {"tool": "helper", "args": {"task": "Help."}, "id": "c2"}]}},
            {"Ann": {"calls": [{"tool": "wait_for_task", "args": {"task": "boss-1"}, "id": "c3"}]}}, {"Ann": "I may."}, {"Ann": "Thanks."}]"#,
    );
    let chat = |slow: AnyAgent| {
        let ann = starter(&script).agent_tool(AgentTool::agent(slow).named("helper").background());
        Chat::builder("main").participant(ann).policy(sequential()).build().unwrap()
    };
    let spoke: Gate = |events| {
        let is_reply = |body: &Body| matches!(body, Body::ModelReplied(reply) if reply.who == name("Ann"));
        events.iter().filter(|event| is_reply(&event.body)).count() >= 3
    };
    let events = check(&chat, spoke, &[("Boss", "Yes.")]).await;
    assert_eq!(said(&events), ["Ann: I may.", "Ann: Thanks."]);
}

/// The task ends only after the answer. Wherever the log is cut, the conversation is the same.
#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_alone_is_answered_while_a_background_task_works() {
    let echo =
        || FunctionTool::new("echo", "Says it again.", async |Said { text }: Said| Ok(text)).repeatable();
    let start = r#"{"Ann": {"calls": [{"tool": "helper", "args": {"task": "Help."}, "id": "c1"}]}}"#;
    let says = script(&format!(r#"[{start}, {{"Ann": "Started."}}, {{"Ann": "Thanks."}}]"#));
    let calls = script(&format!(
        r#"[{start}, {{"Ann": {{"calls": [{{"tool": "echo", "args": {{"text": "a"}}, "id": "c2"}}]}}}}, {{"Ann": "Echoed."}},
            {{"Ann": "Thanks."}}]"#
    ));
    let ann = |script: &Script, slow: AnyAgent| {
        let helper = AgentTool::agent(slow).named("helper").background();
        Assistant::new("Ann", script.model("test")).unwrap().agent_tool(helper)
    };
    let main = |ann: Assistant| Chat::builder("main").participant(ann);
    let next = |slow| main(ann(&says, slow)).participant(person("Pat")).policy(sequential()).build().unwrap();
    let within = |slow| {
        let desk = Chat::builder("desk").participant(person("Pat")).policy(sequential()).build().unwrap();
        main(ann(&says, slow)).participant(desk).policy(sequential()).build().unwrap()
    };
    let approved = |slow| {
        let ann = ann(&calls, slow).tool(echo()).approval(Approval::of_tools(["echo"]));
        main(ann).policy(sequential()).build().unwrap()
    };
    let cases: [(ChatWith<'_>, (&str, &str), &[&str]); 3] = [
        (&next, ("Pat", "Yes."), &["Ann: Started.", "Pat: Yes.", "Ann: Thanks."]),
        (&within, ("Pat", "Yes."), &["Ann: Started.", "desk: Yes.", "Ann: Thanks."]),
        (&approved, ("Ann", "yes"), &["Ann: Echoed.", "Ann: Thanks."]),
    ];
    for (chat, answer, expected) in cases {
        let whole = play(chat, Some(any_answer), &[], &[answer]).await;
        assert_eq!(said(&whole), expected);
        let answered = first(&whole, |body| matches!(body, Body::InputProvided { .. }));
        assert!(answered < reply_of_slow(&whole), "{whole:?}");
        for cut in 0..whole.len() {
            let again = play(chat, Some(any_answer), &whole[..cut], &[answer]).await;
            assert_eq!(story(&again), story(&whole), "cut before event {cut}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_background_task_waits_for_the_end_of_a_pause() {
    let script = script(
        r#"[{"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}]}}, {"Ann": "Asked."}, {"Ann": "I may."}]"#,
    );
    let outside = Outside::default();
    let is_paused: Gate = |events| events.iter().any(|event| matches!(event.body, Body::Paused));
    let model = Gated { outside: Arc::clone(&outside), gate: is_paused };
    let chat = Chat::builder("main").participant(starter(&script));
    let chat = chat.participant(Assistant::new("Slow", AnyModel::new(model)).unwrap());
    let chat = chat.policy(sequential()).build().unwrap();
    let mut log = log_of(&[]).await;
    let handle = log.handle();
    *outside.lock().unwrap() = Some(handle.clone());
    let person = async {
        let mut updates = handle.subscribe().await;
        let open = loop {
            if let Some(open) = OpenQuestion::of(&handle.events().await).pop() {
                break open;
            }
            updates.next().await;
        };
        handle.instruct(Instruction::Pause).confirmed().await.unwrap();
        handle.rests().await;
        let answer = Instruction::Answer { question: open.seq, text: "Yes.".into(), by: None };
        let answered = handle.instruct(answer);
        // The run is polled in between.
        sleep(Duration::from_secs(1)).await;
        assert!(!is_answered(&handle.events().await, "Boss"));
        handle.instruct(Instruction::Resume).confirmed().await.unwrap();
        answered.confirmed().await.unwrap();
    };
    let run = async {
        let mut status = chat.run_in(&mut log, "go").await.unwrap().status;
        // The chat can look whether its task waits before that takes the answer.
        while matches!(status, Status::Waiting(_)) && log.post_inbox().await.unwrap() {
            status = chat.resume(&mut log).await.unwrap().status;
        }
        status
    };
    let (status, ()) = timeout(HANGS, join(run, person)).await.expect("it hangs");
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    assert_eq!(said(&log.events().await), ["Ann: Asked.", "Slow: At last.", "Ann: I may."]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_open_when_the_process_ends_is_answered_after_the_restart() {
    let chat = |slow| panel([person("Pat"), slow]);
    let answers = [("Pat", "Yes.")];
    let whole = play(&chat, Some(any_answer), &[], &answers).await;
    let outside = Outside::default();
    let model = Gated { outside: Arc::clone(&outside), gate: |_| false };
    let stuck = chat(AnyAgent::new(Assistant::new("Slow", AnyModel::new(model)).unwrap()));
    let mut log = log_of(&[]).await;
    let handle = log.handle();
    *outside.lock().unwrap() = Some(handle.clone());
    let is_asked = async {
        let mut updates = handle.subscribe().await;
        while handle.questions().await.is_empty() {
            updates.next().await;
        }
    };
    {
        let run = pin!(stuck.run_in(&mut log, "go"));
        let is_asked = pin!(is_asked);
        let first = timeout(HANGS, select(run, is_asked)).await;
        assert!(matches!(first, Ok(Either::Right(_))), "no one is asked while a turn is in progress");
    }
    let left = log.events().await;
    // By another process, which does not run it.
    let mut between = log_of(&left).await;
    between.answer(&Path::root(), &name("Pat"), "Yes.").await.unwrap();
    let answered = between.events().await;
    let gate: Gate = any_answer;
    for (gate, prefix) in [(None, &answered), (Some(gate), &answered), (Some(gate), &left)] {
        assert_eq!(story(&play(&chat, gate, prefix, &answers).await), story(&whole));
    }
}

#[tokio::test(start_paused = true)]
async fn a_default_answer_comes_in_time_while_another_turn_is_in_progress() {
    let outside = Outside::default();
    let model = Gated { outside: Arc::clone(&outside), gate: any_answer };
    let slow = AnyAgent::new(Assistant::new("Slow", AnyModel::new(model)).unwrap());
    let pat = AnswerTimeout::new(Human::new("Pat").unwrap(), Duration::from_secs(1), "Not today.");
    let chat = panel([slow, AnyAgent::new(pat)]);
    let began = Instant::now();
    let clock = move || Timestamp(u64::try_from(began.elapsed().as_millis()).unwrap());
    let mut log = Log::in_memory().clock(clock).timer(Timer::new(sleep));
    *outside.lock().unwrap() = Some(log.handle());
    let run = timeout(HANGS, chat.run_in(&mut log, "go")).await.expect("it hangs").unwrap();
    assert!(matches!(run.status, Status::Closed { .. }), "{:?}", run.status);
    assert_eq!(said(run.events()), ["Slow: At last.", "Pat: Not today."]);
    let is_default = |body: &Body| matches!(body, Body::InputProvided { by: Responder::Timeout, .. });
    assert!(first(run.events(), is_default) < reply_of_slow(run.events()));
}

/// Works until the clock says half a minute.
struct Busy(Arc<AtomicU64>);

impl Model for Busy {
    fn name(&self) -> &str {
        "test:busy"
    }
    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.0.store(30_000, Ordering::SeqCst);
        Ok(Reply::new("Done."))
    }
}

#[tokio::test]
async fn the_time_in_which_people_are_waited_for_counts_once_and_begins_when_no_turn_is_in_progress() {
    let now = Arc::new(AtomicU64::new(0));
    let busy = Assistant::new("Busy", AnyModel::new(Busy(Arc::clone(&now)))).unwrap();
    let chat = panel([person("Ann"), person("Ben"), AnyAgent::new(busy)]);
    let clock = Arc::clone(&now);
    let mut log = Log::in_memory().clock(move || Timestamp(clock.load(Ordering::SeqCst)));
    chat.run_in(&mut log, "go").await.unwrap();
    for (who, at_ms) in [("Ann", 40_000), ("Ben", 50_000)] {
        now.store(at_ms, Ordering::SeqCst);
        log.answer(&Path::root(), &name(who), "Well.").await.unwrap();
    }
    // Its model replies only once.
    let run = chat.resume(&mut log).await.unwrap();
    assert!(matches!(run.status, Status::Closed { .. }), "{:?}", run.status);
    let elapsed = log.transcript().await.unwrap().elapsed_ms();
    assert_eq!((elapsed, log.time_used_ms().await), (30_000, 30_000));
}
