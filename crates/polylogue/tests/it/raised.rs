//! A person raises limits at which the outermost chat ends by itself, and those of one agent or of one chat, while it is open.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{log_of, name, run_or_resume};
use polylogue::policies::with_termination;
use polylogue::stop::{Stop, max_messages, max_turns};
use polylogue::{Assistant, Function, round_robin, sequential};
use polylogue_core::{
    Act, Agent, Allowance, AllowanceOwner, AnyAgent, AnyModel, Body, Chat, ChatLimits, DeltaSink, Event,
    Instruction, LimitOverrides, Limits, Log, LogHandle, Model, ModelError, Name, OnLimit, Path, Reply,
    Request, Result, Status, StopReason, Turn,
};
use polylogue_test::cut::uncharged;
use tokio::sync::Notify;

/// Where an agent of the test finds the log whose limits are raised.
type Outside = Arc<Mutex<Option<LogHandle>>>;

/// Says its name. In its first turn, someone outside raises limits, if there is an outside.
struct Speaker(Name, Outside, LimitOverrides);

impl Agent for Speaker {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, _: &mut Turn<'_>) -> Result<Act> {
        let outside = self.1.lock().unwrap().take();
        if let Some(outside) = outside {
            // Whether it was done is in the log.
            let _ = outside.instruct(Instruction::RaiseLimits { more: self.2, by: None }).confirmed().await;
        }
        Ok(Act::say(self.0.as_str()))
    }
}

fn turns(turns: u64) -> LimitOverrides {
    LimitOverrides { turns: Some(turns), ..LimitOverrides::default() }
}

/// Two who speak in turn until `stop`. While the second one speaks for the first time, `more` is allowed.
async fn played(stop: Stop, limits: Limits, more: LimitOverrides, prefix: &[Arc<Event>]) -> Log {
    let (outside, none) = (Outside::default(), Outside::default());
    let mut log = log_of(prefix).await.limits(limits);
    if prefix.is_empty() {
        *outside.lock().unwrap() = Some(log.handle());
    }
    let (a, b) = (Speaker(name("A"), none, more), Speaker(name("B"), outside, more));
    let chat = Chat::builder("pair")
        .participant(a)
        .participant(b)
        .policy(with_termination(round_robin(), stop))
        .build()
        .unwrap();
    let status = run_or_resume(&chat, &mut log, "go").await.unwrap().status;
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    log
}

fn bodies(events: &[Arc<Event>]) -> Vec<Body> {
    events.iter().map(|event| event.body.clone()).collect()
}

#[tokio::test]
async fn a_limit_of_the_chat_itself_is_raised_in_its_last_turn_and_the_log_can_be_cut_anywhere() {
    let none = ChatLimits::default();
    type NewStop = fn() -> Stop;
    let of_chat = "turns of the chat from 2 to 5";
    let stops: [(NewStop, ChatLimits, Option<u64>, &[&str]); 3] = [
        (|| max_turns(2), ChatLimits { turns: Some(2), ..none }, None, &[of_chat]),
        (
            || max_messages(3),
            ChatLimits { turns: Some(90), messages: Some(3), ..none },
            None,
            &["messages of the chat from 3 to 6"],
        ),
        // With a limit of the run, both are raised.
        (|| max_turns(2), ChatLimits { turns: Some(2), ..none }, Some(3), &["turns from 3 to 5", of_chat]),
    ];
    for (stop, chat, of_run, changes) in stops {
        let limits = Limits { chat, turns: of_run, ..Limits::default() };
        let log = played(stop(), limits, turns(4), &[]).await;
        assert_eq!(log.turns().await, 5, "1 turn was over, and 4 more are allowed");
        let whole = log.events().await;
        let raised = |event: &Arc<Event>| matches!(event.body, Body::LimitsChanged { .. });
        let at = whole.iter().position(raised).unwrap();
        let of_run = of_run.map_or_else(LimitOverrides::default, |_| turns(5));
        let changes = changes.iter().map(|change| Arc::from(*change)).collect();
        let expected = Body::LimitsChanged { limits: of_run, more: turns(4), changes, by: None };
        assert_eq!(whole[at].body, expected);
        for cut in 1..whole.len() {
            let raised = LimitOverrides::last_of(&whole[..cut]).unwrap_or_default();
            let again = played(stop(), raised.apply_to(limits), turns(4), &whole[..cut]).await;
            if cut <= at {
                assert_eq!(again.turns().await, 2, "cut before event {cut}");
            } else {
                assert_eq!(bodies(&again.events().await), bodies(&whole), "cut before event {cut}");
            }
        }
    }
}

#[tokio::test]
async fn what_would_raise_no_limit_of_the_chat_is_refused() {
    let chat = ChatLimits { turns: Some(4), ..ChatLimits::default() };
    let tokens = LimitOverrides { tokens: Some(5_000), ..LimitOverrides::default() };
    for (more, why) in [
        (turns(1), "it would lower the limit of 4 turns to 2 turns"),
        (turns(3), "it would raise no limit"),
        (tokens, "the run has no limit on tokens that could be raised"),
    ] {
        let log = played(max_turns(4), Limits { chat, ..Limits::default() }, more, &[]).await;
        assert_eq!(log.turns().await, 4);
        let events = log.events().await;
        let refused = events.iter().find_map(|event| match &event.body {
            Body::Refused { why, .. } => Some(why),
            _ => None,
        });
        assert!(refused.unwrap().starts_with(why), "{refused:?}");
        assert_eq!(LimitOverrides::last_of(&events), None);
    }
}

/// Replies with a word. During the first call of B, someone outside raises limits, if there is an outside.
struct Words(Outside, Option<Instruction>);

impl Model for Words {
    fn name(&self) -> &str {
        "test:words"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let is_second = request.origin.who.as_str() == "B";
        let outside = self.0.lock().unwrap().take_if(|_| is_second);
        if let (Some(outside), Some(given)) = (outside, &self.1) {
            // Whether it was done is in the log.
            let _ = outside.instruct(given.clone()).confirmed().await;
        }
        Ok(Reply::new("word"))
    }
}

fn calls(calls: u64) -> LimitOverrides {
    LimitOverrides { calls: Some(calls), ..LimitOverrides::default() }
}

/// Two who talk in turn, of whom A has a limit on calls.
async fn talked(limit: u64, given: Option<Instruction>, prefix: &[Arc<Event>]) -> (Log, StopReason) {
    let outside = Outside::default();
    let limits = Allowance { calls: Some(limit), ..Allowance::default() };
    let mut log = log_of(prefix).await.agent_limits([(name("A"), limits)]);
    if prefix.is_empty() {
        *outside.lock().unwrap() = Some(log.handle());
    }
    let model = AnyModel::new(Words(outside, given));
    let speaker = |who: &str| Assistant::new(who, model.clone()).unwrap();
    let chat = Chat::builder("pair").participant(speaker("A")).participant(speaker("B"));
    let chat = chat.policy(with_termination(round_robin(), max_turns(8))).build().unwrap();
    match run_or_resume(&chat, &mut log, "go").await.unwrap().status {
        Status::Closed { reason, .. } => (log, reason),
        status => panic!("{status:?}"),
    }
}

fn is_of_agent(reason: &StopReason) -> bool {
    matches!(reason, StopReason::Allowance { of: AllowanceOwner::Agent(who), .. } if who.as_str() == "A")
}

#[tokio::test]
async fn the_limits_of_an_agent_are_raised_while_it_runs_and_the_log_can_be_cut_anywhere() {
    let given = || Some(Instruction::RaiseAgentLimits { who: name("A"), more: calls(9), by: None });
    let (log, reason) = talked(2, given(), &[]).await;
    assert!(log.turns().await == 8 && !is_of_agent(&reason), "{reason}");
    let whole = log.events().await;
    let raised = |event: &Arc<Event>| matches!(event.body, Body::OwnLimitsRaised { .. });
    let at = whole.iter().position(raised).unwrap();
    for cut in 1..whole.len() {
        let (again, reason) = talked(2, given(), &whole[..cut]).await;
        assert_eq!(is_of_agent(&reason), cut <= at, "cut before event {cut}: {reason}");
        if cut > at {
            let (again, whole) = (uncharged(&again.events().await), uncharged(&whole));
            assert_eq!(bodies(&again), bodies(&whole), "cut before event {cut}");
        }
    }
}

#[tokio::test]
async fn the_limits_of_an_agent_are_raised_after_they_have_ended_the_conversation() {
    let (log, reason) = talked(2, None, &[]).await;
    assert!(is_of_agent(&reason), "{reason}");
    let limits = Allowance { calls: Some(2), ..Allowance::default() };
    let mut log = log_of(&log.events().await).await.agent_limits([(name("A"), limits)]);
    let more = Instruction::RaiseAgentLimits { who: name("A"), more: calls(1), by: None };
    let raised = log.handle().instruct(more);
    log.post_inbox().await.unwrap();
    raised.confirmed().await.unwrap();
    log.reopen().await.unwrap();
    let (log, reason) = talked(2, None, &log.events().await).await;
    assert!(is_of_agent(&reason), "{reason}");
    assert_eq!((log.calls().await[&name("A")], log.turns().await), (3, 6));
}

#[tokio::test]
async fn what_would_raise_no_limit_of_the_agent_is_refused() {
    let none = LimitOverrides::default();
    for (who, more, expected) in [
        ("A", calls(3), "it would lower the limit of 6 model calls to 4 model calls"),
        ("A", calls(5), "it would raise no limit"),
        ("A", turns(9), "the agent `A` has no limit on turns that could be raised"),
        ("A", LimitOverrides { tokens: Some(9), ..none }, "the agent `A` has no limit on tokens "),
        ("A", LimitOverrides { on_limit: Some(OnLimit::Ask), ..none }, "an agent has limits on calls, "),
        ("B", calls(3), "`B` has no limits of its own; agents with limits: `A`"),
    ] {
        let given = Instruction::RaiseAgentLimits { who: name(who), more, by: None };
        let (log, _) = talked(6, Some(given), &[]).await;
        let events = log.events().await;
        let refused = events.iter().find_map(|event| match &event.body {
            Body::Refused { why, .. } => Some(why),
            _ => None,
        });
        assert!(refused.unwrap().starts_with(expected), "{refused:?}");
        assert!(!events.iter().any(|event| matches!(event.body, Body::OwnLimitsRaised { .. })));
    }
}

const THREE_CALLS: Allowance = Allowance { calls: Some(3), tokens: None, cost: None, time_ms: None };

/// A desk of A and B, who may make three calls together, and Editor, who speaks after them. Returns why the desk ended.
async fn edited(mut log: Log, given: Option<Instruction>) -> (Log, StopReason) {
    let outside = Outside::default();
    let has_begun = !log.events().await.is_empty();
    if !has_begun {
        *outside.lock().unwrap() = Some(log.handle());
    }
    let model = AnyModel::new(Words(outside, given));
    let speaker = |who: &str| Assistant::new(who, model.clone()).unwrap();
    let desk = Chat::builder("desk").participant(speaker("A")).participant(speaker("B")).limits(THREE_CALLS);
    let desk = desk.policy(with_termination(round_robin(), max_turns(6))).build().unwrap();
    let team = Chat::builder("team").participant(desk).participant(speaker("Editor"));
    let team = team.policy(sequential()).build().unwrap();
    let run = if has_begun { team.resume(&mut log).await } else { team.run_in(&mut log, "go").await };
    run.unwrap();
    let ended = log.events().await.iter().find_map(|event| match &event.body {
        Body::Closed { reason, .. } if !event.chat.is_root() => Some(reason.clone()),
        _ => None,
    });
    (log, ended.unwrap())
}

fn raise_chat(chat: &str, more: LimitOverrides) -> Instruction {
    Instruction::RaiseChatLimits { chat: chat.into(), more, by: None }
}

fn is_of_chat(reason: &StopReason) -> bool {
    matches!(reason, StopReason::Allowance { of: AllowanceOwner::Chat { .. }, .. })
}

fn refusal(events: &[Arc<Event>]) -> Option<String> {
    events.iter().find_map(|event| match &event.body {
        Body::Refused { why, .. } => Some(why.to_string()),
        _ => None,
    })
}

#[tokio::test]
async fn the_limits_of_a_chat_are_raised_while_it_is_open_and_the_log_can_be_cut_anywhere() {
    for chat in ["desk", "/desk.1"] {
        let given = || Some(raise_chat(chat, calls(9)));
        let (log, reason) = edited(log_of(&[]).await, given()).await;
        assert!(log.turns().await == 7 && !is_of_chat(&reason), "{reason}");
        let whole = log.events().await;
        let raised = |event: &Arc<Event>| matches!(event.body, Body::OwnLimitsRaised { .. });
        let at = whole.iter().position(raised).unwrap();
        for cut in 1..whole.len() {
            let (again, reason) = edited(log_of(&whole[..cut]).await, None).await;
            assert_eq!(is_of_chat(&reason), cut <= at, "cut before event {cut}: {reason}");
            if cut > at {
                let (again, whole) = (uncharged(&again.events().await), uncharged(&whole));
                assert_eq!(bodies(&again), bodies(&whole), "cut before event {cut}");
            }
        }
    }
}

#[tokio::test]
async fn the_limits_of_a_chat_are_raised_before_it_continues_in_another_process_that_knows_them() {
    let whole = edited(log_of(&[]).await, None).await.0.events().await;
    let ended = whole.iter().position(|event| matches!(event.body, Body::Closed { .. })).unwrap();
    let desk = AllowanceOwner::Chat { name: name("desk"), path: Path::root().child(&name("desk"), 1) };
    for (known, is_known) in [(Vec::new(), false), (vec![(desk, THREE_CALLS)], true)] {
        // The desk is at its limit, and still open.
        let mut log = log_of(&whole[..ended]).await.chat_limits(known);
        let raised = log.handle().instruct(raise_chat("desk", calls(9)));
        log.post_inbox().await.unwrap();
        assert_eq!(raised.confirmed().await.is_ok(), is_known);
        let (log, reason) = edited(log, None).await;
        assert_eq!((log.turns().await, is_of_chat(&reason)), if is_known { (7, false) } else { (4, true) });
    }
}

#[tokio::test]
async fn what_would_raise_no_limit_of_an_open_chat_is_refused() {
    let tokens = LimitOverrides { tokens: Some(9), ..LimitOverrides::default() };
    for (chat, more, expected) in [
        ("desk", calls(1), "it would lower the limit of 3 model calls to 2 model calls"),
        ("desk", calls(2), "it would raise no limit"),
        ("desk", turns(9), "`limits` of a chat are on calls, tokens, money and time only"),
        ("desk", tokens, "the chat `desk` has no limit on tokens that could be raised"),
        ("team", calls(9), "no chat `team` with limits of its own is open; open are: `desk`"),
    ] {
        let (log, reason) = edited(log_of(&[]).await, Some(raise_chat(chat, more))).await;
        let events = log.events().await;
        assert!(refusal(&events).unwrap().starts_with(expected), "{:?}", refusal(&events));
        assert!(is_of_chat(&reason), "{reason}");
    }
}

/// Works until it is released, and counts how often it begins.
#[derive(Clone)]
struct Helper(Name, Arc<Notify>, Arc<AtomicUsize>);

impl Agent for Helper {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, _: &mut Turn<'_>) -> Result<Act> {
        self.2.fetch_add(1, Ordering::Relaxed);
        self.1.notified().await;
        Ok(Act::say("helped"))
    }
}

/// Has a helper work in the background in its first turn, and says the result in its second one.
struct Starter(Name, Helper);

impl Agent for Starter {
    fn name(&self) -> &Name {
        &self.0
    }
    fn background_agent(&self, _: &str) -> Option<AnyAgent> {
        Some(AnyAgent::new(self.1.clone()))
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        if turn.transcript().turns_begun_by(turn.me()) == 1 {
            turn.start_background("helper", "work", 1).await?;
            return Ok(Act::say("A"));
        }
        let ended = turn.wait_for_background("helper-1").await?;
        Ok(Act::Say(ended.map(|ended| ended.parts).unwrap_or_default()))
    }
}

#[tokio::test]
async fn a_background_task_continues_when_the_limit_is_raised_at_which_its_chat_would_end() {
    let (released, begun) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let limits = Limits { chat: ChatLimits { turns: Some(2), ..ChatLimits::default() }, ..Limits::default() };
    let mut log = log_of(&[]).await.limits(limits);
    let outside = Arc::new(Mutex::new(Some(log.handle())));
    let helper = Helper(name("helper"), Arc::clone(&released), Arc::clone(&begun));
    let last = Function::new("C", move |_| {
        released.notify_one();
        Ok(Act::say("C"))
    });
    let chat = Chat::builder("trio")
        .participant(Starter(name("A"), helper))
        .participant(Speaker(name("B"), outside, turns(4)))
        .participant(last.unwrap())
        .policy(round_robin())
        .max_turns(2)
        .build()
        .unwrap();
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    let transcript = log.transcript().await.unwrap();
    let said: Vec<_> = transcript.replies().map(|line| line.message.text().into_owned()).collect();
    assert_eq!(said, ["A", "B", "C", "helped", "B"]);
    assert_eq!(begun.load(Ordering::Relaxed), 1, "it was not aborted");
}
