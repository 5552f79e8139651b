//! At a limit of an agent or a chat, a person is asked to raise it, and an answer that does not ends only the chat.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{log_of, name, reason, run_or_resume, script};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::tools::agent_tool::AgentTool;
use polylogue::{AnyModel, Assistant, Chat, Human, Limits, Log, Status, round_robin, sequential};
use polylogue_core::{
    Allowance, AllowanceOwner, BackgroundStatus, Body, DeltaSink, Event, Instruction, LimitOverrides, Model,
    ModelError, OnLimit, Question, RaiseTerms, Reply, Request, Responder, RunOutcome, StopReason, Timestamp,
};
use polylogue_test::cut::uncharged;

/// Each call takes a second, by the clock that it moves on.
struct Second(Arc<AtomicU64>);

impl Model for Second {
    fn name(&self) -> &str {
        "test:second"
    }
    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.0.fetch_add(1_000, Ordering::SeqCst);
        Ok(Reply::new("word"))
    }
}

fn asking() -> Limits {
    Limits { on_limit: OnLimit::Ask, ..Limits::default() }
}

fn calls(calls: u64) -> Allowance {
    Allowance { calls: Some(calls), ..Allowance::default() }
}

const TWO_SECONDS: Allowance = Allowance { calls: None, tokens: None, cost: None, time_ms: Some(2_000) };

/// Where two seconds are the limit.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Agent,
    Chat,
}

/// A desk of two who talk without end, and an editor, in turn: twice each.
fn team(of: Of, model: &AnyModel) -> Chat {
    let speaker = |who: &str| Assistant::new(who, model.clone()).unwrap();
    let desk = Chat::builder("desk").participant(speaker("A")).participant(speaker("B"));
    let desk = desk.policy(round_robin()).max_turns(40);
    let desk = if of == Of::Chat { desk.limits(TWO_SECONDS) } else { desk };
    let team = Chat::builder("team").participant(desk.build().unwrap()).participant(speaker("Editor"));
    team.policy(with_termination(round_robin(), max_turns(4))).build().unwrap()
}

fn asked_in(events: &[Arc<Event>]) -> Vec<&Question> {
    let bodies = events.iter().map(|event| &event.body);
    bodies
        .filter_map(|body| match body {
            Body::InputRequired(question) => Some(question),
            _ => None,
        })
        .collect()
}

fn answered_in(events: &[Arc<Event>]) -> usize {
    events.iter().filter(|event| matches!(event.body, Body::InputProvided { .. })).count()
}

/// The ends of chats, in order.
fn ends(events: &[Arc<Event>]) -> Vec<String> {
    let end = |event: &Arc<Event>| match &event.body {
        Body::Closed { reason, .. } => Some(format!("{}: {reason}", event.chat)),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

/// Runs the team from `prefix` to its end. A person gives the answers that are not in it.
async fn played(of: Of, answers: &[&str], prefix: &[Arc<Event>]) -> Vec<Arc<Event>> {
    let time = Arc::new(AtomicU64::new(0));
    let chat = team(of, &AnyModel::new(Second(Arc::clone(&time))));
    let mut log = log_of(prefix).await.limits(asking()).clock(move || Timestamp(time.load(Ordering::SeqCst)));
    if of == Of::Agent {
        log = log.agent_limits([(name("A"), TWO_SECONDS)]);
    }
    let mut status = run_or_resume(&chat, &mut log, "go").await.unwrap().status;
    let mut answers = answers[answered_in(prefix)..].iter();
    while let Status::Waiting(questions) = status {
        let [(at, question)] = questions.as_slice() else { panic!("{questions:?}") };
        assert!(at.is_root() && question.is_about_limit() && question.who == name("team"));
        log.answer(at, &question.who, *answers.next().expect("no one is asked again")).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    assert_eq!(answers.next(), None);
    log.events().await
}

/// Events without what depends on the process and its clock.
fn story(events: &[Arc<Event>]) -> Vec<String> {
    let shown = |event: &Arc<Event>| match &event.body {
        Body::ModelReplied(reply) => format!("{} reply of {}", event.chat, reply.who),
        Body::Closed { reason, .. } => format!("{} closed: {reason}", event.chat),
        body => format!("{} {body:?}", event.chat),
    };
    uncharged(events).iter().map(shown).collect()
}

#[tokio::test]
async fn an_answer_raises_the_limit_and_a_no_ends_only_the_chat_wherever_the_log_is_cut() {
    for (of, answers, text, ended, closed) in [
        (
            Of::Agent,
            ["yes", "no"].as_slice(),
            "The agent `A` has reached the limit of 2 s of running time. Allow 2 s more?",
            "the chat in which it has its turn",
            // No one is asked again at the same limit.
            [
                "/desk.1: the agent `A` has reached the limit of 4 s",
                "/desk.2: the agent `A` has reached the limit of 4 s",
            ],
        ),
        (
            Of::Chat,
            ["yes", "no", "no"].as_slice(),
            "The chat `desk` has reached the limit of 2 s of running time. Allow 2 s more?",
            "this chat",
            // Another run of the chat has a limit of its own.
            [
                "/desk.1: the chat `desk` has reached the limit of 4 s",
                "/desk.2: the chat `desk` has reached the limit of 2 s",
            ],
        ),
    ] {
        let whole = played(of, answers, &[]).await;
        let asked = asked_in(&whole)[0];
        assert_eq!((&*asked.text, asked.choices[1].label.as_deref()), (text, Some(ended)));
        assert_eq!(asked.limit.as_ref().unwrap().example(), "5 min");
        let (ends, closed) = (ends(&whole), closed.map(|end| format!("{end} of running time")));
        assert_eq!((&ends[..2], ends.len()), (closed.as_slice(), 3));
        assert_eq!(
            whole.iter().filter(|event| matches!(event.body, Body::OwnLimitsRaised { .. })).count(),
            1
        );
        for cut in 1..whole.len() {
            let again = played(of, answers, &whole[..cut]).await;
            assert_eq!(story(&again), story(&whole), "cut before event {cut}");
        }
    }
}

/// Two who talk in turn, of whom A may call its model `limit` times.
async fn pair(limit: u64, limits: Limits) -> (Chat, Log) {
    let model = AnyModel::new(Second(Arc::default()));
    let speaker = |who: &str| Assistant::new(who, model.clone()).unwrap();
    let chat = Chat::builder("pair").participant(speaker("A")).participant(speaker("B"));
    let chat = chat.policy(with_termination(round_robin(), max_turns(20))).build().unwrap();
    (chat, log_of(&[]).await.limits(limits).agent_limits([(name("A"), calls(limit))]))
}

async fn answer(chat: &Chat, log: &mut Log, text: &str) -> Status {
    let (at, question) = log.questions().await.unwrap().remove(0);
    log.answer(&at, &question.who, text).await.unwrap();
    chat.resume(log).await.unwrap().status
}

#[tokio::test]
async fn an_amount_raises_the_limit_of_an_agent_up_to_the_ceiling_where_no_one_is_asked() {
    let raise = RaiseTerms { ceiling: calls(6), ..RaiseTerms::default() };
    let (chat, mut log) = pair(2, Limits { raise, ..asking() }).await;
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert!(matches!(status, Status::Waiting(_)), "{status:?}");
    // Running it without an answer changes nothing.
    let asked = log.events().await;
    chat.resume(&mut log).await.unwrap();
    assert_eq!(log.events().await, asked);
    answer(&chat, &mut log, "1").await;
    assert_eq!(log.calls().await[&name("A")], 3);
    let status = answer(&chat, &mut log, "1,000").await;
    let limit = Box::new(StopReason::Calls { limit: 6 });
    let of = AllowanceOwner::Agent(name("A"));
    assert_eq!(reason(&status), &StopReason::Allowance { of, limit });
    assert_eq!(log.calls().await[&name("A")], 6);
}

#[tokio::test]
async fn a_limit_of_an_agent_that_is_raised_from_outside_answers_its_question() {
    let (chat, mut log) = pair(1, asking()).await;
    chat.run_in(&mut log, "go").await.unwrap();
    let calls = |calls| LimitOverrides { calls: Some(calls), ..LimitOverrides::default() };
    // Limits of the run are others.
    for (instruction, is_answered) in [
        (Instruction::RaiseLimits { more: calls(5_000), by: None }, false),
        (Instruction::RaiseAgentLimits { who: name("A"), more: calls(2), by: None }, true),
    ] {
        let raised = log.handle().instruct(instruction);
        log.post_inbox().await.unwrap();
        raised.confirmed().await.unwrap();
        assert_eq!(log.questions().await.unwrap().is_empty(), is_answered);
    }
    let status = chat.resume(&mut log).await.unwrap().status;
    assert!(matches!(status, Status::Waiting(_)), "{status:?}");
    assert_eq!(log.calls().await[&name("A")], 3);
    // As after the limit without a question: it continues when it is raised.
    let status = answer(&chat, &mut log, "").await;
    assert_eq!(reason(&status).outcome(), RunOutcome::Limit);
    log.reopen_for(calls(1)).await.unwrap();
    chat.resume(&mut log).await.unwrap();
    assert_eq!(log.calls().await[&name("A")], 4);
    assert_eq!(log.questions().await.unwrap().len(), 1, "a higher limit is another one");
}

/// From now on, no person is asked at a limit.
async fn stop_at_limits(log: &mut Log) {
    let more = LimitOverrides { on_limit: Some(OnLimit::Stop), ..LimitOverrides::default() };
    let raised = log.handle().instruct(Instruction::RaiseLimits { more, by: None });
    log.post_inbox().await.unwrap();
    raised.confirmed().await.unwrap();
}

#[tokio::test]
async fn a_question_about_a_limit_of_an_agent_is_answered_when_limits_end_chats_from_then_on() {
    let (chat, mut log) = pair(1, asking()).await;
    chat.run_in(&mut log, "go").await.unwrap();
    assert_eq!(log.questions().await.unwrap().len(), 1);
    stop_at_limits(&mut log).await;
    assert!(log.questions().await.unwrap().is_empty());
    let status = chat.resume(&mut log).await.unwrap().status;
    let (of, limit) = (AllowanceOwner::Agent(name("A")), Box::new(StopReason::Calls { limit: 1 }));
    assert_eq!(reason(&status), &StopReason::Allowance { of, limit });
    assert_eq!(asked_in(&log.events().await).len(), 1);
}

#[tokio::test]
async fn a_question_of_a_participant_stays_open_when_limits_end_chats() {
    let kim = Human::new("Kim").unwrap();
    let chat = Chat::builder("main").participant(kim).policy(sequential()).build().unwrap();
    let mut log = log_of(&[]).await.limits(asking());
    chat.run_in(&mut log, "go").await.unwrap();
    stop_at_limits(&mut log).await;
    let status = chat.resume(&mut log).await.unwrap().status;
    let Status::Waiting(questions) = &status else { panic!("{status:?}") };
    assert!(matches!(questions.as_slice(), [(_, question)] if question.who == name("Kim")), "{questions:?}");
    assert_eq!(answered_in(&log.events().await), 0);
}

/// The chat has not run in the process in which it is raised: its question says which limit it is.
#[tokio::test]
async fn a_limit_of_a_chat_that_is_raised_from_outside_answers_its_question() {
    let whole = played(Of::Chat, &["yes", "no", "no"], &[]).await;
    let asked = whole.iter().position(|event| matches!(event.body, Body::InputRequired(_))).unwrap();
    let mut log = log_of(&whole[..=asked]).await.limits(asking());
    for (chat, is_answered) in [("team", false), ("desk", true)] {
        let more = LimitOverrides { time_ms: Some(2_000), ..LimitOverrides::default() };
        let raised =
            log.handle().instruct(Instruction::RaiseChatLimits { chat: chat.into(), more, by: None });
        log.post_inbox().await.unwrap();
        assert_eq!(raised.confirmed().await.is_ok(), is_answered, "{chat}");
        assert_eq!(log.questions().await.unwrap().is_empty(), is_answered, "{chat}");
    }
    let again = played(Of::Chat, &["raised", "no", "no"], &log.events().await).await;
    let owned = |event: &&Arc<Event>| matches!(event.body, Body::OwnLimitsRaised { .. });
    assert_eq!(again.iter().filter(owned).count(), 1);
    assert_eq!(ends(&again), ends(&whole));
}

#[tokio::test]
async fn no_answer_in_time_ends_the_chat_of_the_agent() {
    let raise = RaiseTerms { timeout_ms: Some(1_000), ..RaiseTerms::default() };
    let (chat, mut log) = pair(1, Limits { raise, ..asking() }).await;
    chat.run_in(&mut log, "go").await.unwrap();
    let mut log = log.clock(|| Timestamp(1_000));
    let status = chat.resume(&mut log).await.unwrap().status;
    let limit = Box::new(StopReason::Calls { limit: 1 });
    let of = AllowanceOwner::Agent(name("A"));
    assert_eq!(reason(&status), &StopReason::Allowance { of, limit });
    let by_timeout =
        |event: &Arc<Event>| matches!(&event.body, Body::InputProvided { by: Responder::Timeout, .. });
    assert!(log.events().await.iter().any(by_timeout));
}

#[tokio::test]
async fn a_background_task_continues_with_a_higher_limit_and_fails_without() {
    let script = script(
        r#"[{"Ann": {"calls": [{"tool": "Eve", "args": {"task": "1"}, "id": "c1"}]}}, {"Ann": "Started."}, {"Ann": "Thanks."},
            {"Eve": "One."}, {"Eve": "Two."}]"#,
    );
    let assistant = |who: &str| Assistant::new(who, script.model("test")).unwrap();
    let talk = Chat::builder("talk").participant(assistant("Eve")).policy(round_robin()).max_turns(2);
    let ann = assistant("Ann").agent_tool(AgentTool::chat(talk.build().unwrap()).named("Eve").background());
    let chat = Chat::builder("main").participant(ann).policy(sequential()).build().unwrap();
    for (text, status, is_over) in
        [("yes", BackgroundStatus::Completed, false), ("no", BackgroundStatus::Failed, true)]
    {
        // Ann pays for her task.
        let mut log = log_of(&[]).await.limits(asking()).agent_limits([(name("Ann"), calls(3))]);
        let asked = chat.run_in(&mut log, "go").await.unwrap().status;
        assert!(matches!(asked, Status::Waiting(_)), "{asked:?}");
        let end = answer(&chat, &mut log, text).await;
        let events = log.events().await;
        let tasks: Vec<BackgroundStatus> = events
            .iter()
            .filter_map(|event| match &event.body {
                Body::BackgroundEnded(end) => Some(end.status),
                _ => None,
            })
            .collect();
        assert_eq!(tasks, [status], "{text}");
        // For its result, Ann needs another call.
        let is_limit = matches!(reason(&end), StopReason::Allowance { .. });
        assert_eq!((asked_in(&events).len(), is_limit), (1, is_over), "{text}");
    }
}
