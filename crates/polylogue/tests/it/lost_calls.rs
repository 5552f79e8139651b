//! Calls that were in flight when a process died count at their reservation, also where what they were made in is given up right after
//! the log is opened again, so that no process makes them once more.

use std::fmt;
use std::sync::Arc;

use polylogue::tools::FunctionTool;
use polylogue::tools::agent_tool::AgentTool;
use polylogue::{Act, AnyModel, Assistant, Chat, Function, Log, Session, Status, parallel, sequential};
use polylogue_core::{
    Agent, Allowance, AnyAgent, AnyTool, Body, Budget, ChatBuilder, DeltaSink, Event, Instruction, Limits,
    LogId, Model, ModelCall, ModelError, ModelWrapper, Money, Name, OpenBackground, Params, Parent, Reply,
    Request, ToolCall, Turn, Usage,
};

use crate::common::cents::{Cents, cents};
use crate::common::{log, log_of, name, script, until_dead};

/// A model that can take 20 cents a call, and never replies.
fn hanging() -> Cents {
    Cents { hangs: true, ..Cents::default() }
}

fn agent(name: &str, model: &Cents) -> Assistant {
    Assistant::new(name, AnyModel::new(model.clone())).unwrap()
}

fn function(name: &str) -> Function {
    Function::new(name, |_| Ok(Act::say("42"))).unwrap()
}

/// Does `work` in a process that dies when `model` was called `calls` more times.
async fn dies<T: fmt::Debug>(model: &Cents, calls: u64, work: impl Future<Output = T>) {
    let until = model.made() + calls;
    let ended = until_dead(work, || model.made() >= until).await;
    assert!(ended.is_none(), "it ended: {ended:?}");
}

/// The calls that count at their reservation, and their cost.
async fn lost(log: &Log) -> (u64, Money) {
    let uncertain = log.usage().await.uncertain;
    (uncertain.calls, uncertain.cost)
}

/// Chats, with how many calls of `model` are in flight in their first step.
fn chats(model: &Cents) -> [(Chat, u64); 5] {
    let ann = || agent("Ann", model);
    let main = || Chat::builder("main");
    let pair =
        |chat: ChatBuilder| chat.participant(ann()).participant(agent("Bob", model)).policy(parallel());
    let desk = pair(Chat::builder("desk")).build().unwrap();
    let called = AnyAgent::new(ann());
    let host = Function::calling("Host", [called.clone()], move |turn| {
        let called = called.clone();
        Box::pin(async move { Ok(Act::Say(turn.ask(&called, "go").await?.parts)) })
    });
    [
        (main().participant(ann()).policy(sequential()), 1),
        (pair(main()), 2),
        // What another one has said in the same step stays.
        (main().participant(function("Eve")).participant(ann()).policy(parallel()), 1),
        (main().participant(desk).policy(sequential()), 2),
        (main().participant(host.unwrap()).policy(sequential()), 1),
    ]
    .map(|(chat, calls)| (chat.build().unwrap(), calls))
}

#[tokio::test]
async fn they_count_once_when_their_turns_are_given_up_wherever_the_process_dies_that_does_it() {
    let model = hanging();
    for (nth, (chat, calls)) in chats(&model).into_iter().enumerate() {
        let mut first = log().await;
        dies(&model, calls, chat.run_in(&mut first, "go")).await;
        let (events, sent) = (first.events().await, model.made());
        let budget = Budget::new("batch", cents(1000));
        let mut log = log_of(&events).await.budget(budget.clone());
        chat.end_open_turns(&mut log).await.unwrap();
        assert_eq!(lost(&log).await, (calls, cents(20 * calls)), "chat {nth}");
        assert_eq!(budget.used().cost, cents(20 * calls), "chat {nth}");
        assert_eq!(log.transcript().await.unwrap().current_speakers().count(), 0, "chat {nth}");
        let whole = log.events().await;
        for cut in events.len()..=whole.len() {
            let mut log = log_of(&whole[..cut]).await;
            chat.end_open_turns(&mut log).await.unwrap();
            chat.close(&mut log, "user").await.unwrap();
            let counted = lost(&log).await.0;
            assert!(counted >= calls, "chat {nth}, cut before {cut}: {counted}");
            assert!(counted == calls || cut < whole.len(), "chat {nth}: {counted}");
        }
        assert_eq!(model.made(), sent, "chat {nth}: nothing is sent");
    }
}

#[tokio::test]
async fn they_count_in_the_conversation_that_made_them_and_in_no_fork_of_it() {
    let model = hanging();
    let parent = Parent { id: LogId::new("original").unwrap(), event: 0, edited: false };
    for (nth, (chat, calls)) in chats(&model).into_iter().enumerate() {
        let mut original = log().await;
        dies(&model, calls, chat.run_in(&mut original, "go")).await;
        let events = original.events().await;
        let parent = Parent { event: events.len() as u64, ..parent.clone() };
        let mut fork = log_of(&events).await.forked_from(Some(&parent));
        assert!(!fork.may_have_lost_calls().await.unwrap(), "chat {nth}");
        dies(&model, calls, chat.resume(&mut fork)).await;
        assert_eq!(lost(&fork).await.0, 0, "chat {nth}");
        // Those of its own process count.
        let mut fork = log_of(&fork.events().await).await.forked_from(Some(&parent));
        chat.charge_lost_calls(&mut fork).await.unwrap();
        assert_eq!(lost(&fork).await, (calls, cents(20 * calls)), "chat {nth}");
    }
}

#[tokio::test]
async fn they_count_once_when_their_conversation_is_closed_and_continues_later() {
    let model = hanging();
    let chat = |model: AnyModel| {
        let ann = Assistant::new("Ann", model).unwrap();
        Chat::builder("main").participant(ann).policy(sequential()).build().unwrap()
    };
    let hanging = chat(AnyModel::new(model.clone()));
    let mut first = log().await;
    dies(&model, 1, hanging.run_in(&mut first, "go")).await;
    let mut log = log_of(&first.events().await).await;
    hanging.close(&mut log, "the owner").await.unwrap();
    assert_eq!((lost(&log).await, model.made()), ((1, cents(20)), 1));
    let mut log = log_of(&log.events().await).await;
    log.reopen().await.unwrap();
    let quick = chat(AnyModel::new(script(r#"[{"Ann": "word"}]"#).model("test")));
    quick.resume(&mut log).await.unwrap();
    assert_eq!(lost(&log).await, (1, cents(20)));
}

#[tokio::test]
async fn they_count_once_when_a_call_in_a_session_is_undone() {
    let model = hanging();
    let (ann, eve) = (agent("Ann", &model), AnyAgent::new(function("Eve")));
    // The first agent speaks at the root, another one next to it.
    for is_first in [true, false] {
        let session = Session::from_log(log().await);
        if !is_first {
            session.call(&eve, "hi").await.unwrap();
        }
        dies(&model, 1, session.call(&ann, "go")).await;
        let sent = model.made();
        let session = Session::from_log(log_of(&session.log().events().await).await);
        assert!(session.roll_back(&eve).await.is_err(), "it is a call of another agent");
        assert!(session.roll_back(&ann).await.unwrap());
        assert_eq!((lost(session.log()).await, model.made()), ((1, cents(20)), sent), "{is_first}");
        assert!(!session.roll_back(&ann).await.unwrap());
        assert_eq!(lost(session.log()).await.0, 1, "{is_first}");
    }
}

/// What a chat has besides its first participant.
type With = fn(ChatBuilder) -> ChatBuilder;

/// Makes further calls only after another model was called.
struct After(AnyModel, Cents);

impl ModelWrapper for After {
    type Inner = AnyModel;
    fn inner(&self) -> &AnyModel {
        &self.0
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        while request.origin.nth > 0 && self.1.made() == 0 {
            tokio::task::yield_now().await;
        }
        self.0.complete(request, deltas).await
    }
}

#[tokio::test]
async fn they_count_when_the_chat_of_their_background_task_ends_as_soon_as_it_continues() {
    let at_its_limit = |chat: ChatBuilder| {
        chat.participant(function("Bob")).limits(Allowance { time_ms: Some(0), ..Allowance::default() })
    };
    let ways: [(With, With); 2] = [
        (|chat| chat, |chat| chat),
        // At a limit that it has reached by then.
        (|chat| chat.participant(function("Bob")), at_its_limit),
    ];
    for (before, after) in ways {
        let model = hanging();
        let chat = |with: With| {
            let script = script(
                r#"[{"Ann": {"calls": [{"tool": "look", "args": {"task": "Look."}, "id": "c1"}]}}, {"Ann": "Done."}]"#,
            );
            let ann = AnyModel::new(After(AnyModel::new(script.model("test")), model.clone()));
            let look = AgentTool::agent(agent("Eve", &model)).named("look").background();
            let ann = Assistant::new("Ann", ann).unwrap().agent_tool(look);
            let chat = with(Chat::builder("main").participant(ann));
            chat.policy(sequential()).open_background(OpenBackground::Cancel).build().unwrap()
        };
        let mut log = log().await;
        chat(before).run_in(&mut log, "go").await.unwrap();
        let whole = log.events().await;
        let said = |event: &Arc<Event>| event.chat.is_root() && matches!(event.body, Body::Message(_));
        let said = whole.iter().position(said).unwrap();
        let mut log = log_of(&whole[..=said]).await;
        assert_eq!(lost(&log).await.0, 0);
        let status = chat(after).resume(&mut log).await.unwrap().status;
        assert!(matches!(status, Status::Closed { .. }), "{status:?}");
        let cancelled = log.events().await;
        assert!(
            cancelled.iter().any(|event| matches!(event.body, Body::BackgroundEnded(_))),
            "{cancelled:?}"
        );
        assert_eq!((lost(&log).await, model.made()), ((1, cents(20)), 1), "nothing is sent in vain");
    }
}

/// Replies once, for a cent, and never again.
struct Once(Cents);

impl Model for Once {
    fn name(&self) -> &str {
        "test:once"
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if request.origin.nth > 0 {
            return self.0.complete(request, deltas).await;
        }
        let usage = Usage { input: Some(5), output: Some(1), ..Usage::default() };
        Ok(Reply { usage, ..Reply::new("I look.") })
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.0.cost(usage)
    }
    fn max_output(&self, params: &Params) -> Option<u64> {
        self.0.max_output(params)
    }
}

/// Asks its model, looks, and asks again. Another version prompts its model before.
struct Seeker {
    name: Name,
    model: AnyModel,
    prompts: bool,
}

impl Agent for Seeker {
    fn name(&self) -> &Name {
        &self.name
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        if self.prompts {
            turn.prompt("Think first.").await?;
        }
        turn.ask_model(ModelCall::of(&self.model)).await?;
        let look = AnyTool::new(FunctionTool::new("look", "Looks.", async |(): ()| Ok("it")));
        let call = ToolCall { id: "c1".into(), tool: "look".into(), args: serde_json::json!({}) };
        turn.call_tools(&[look], &[call]).await?;
        turn.ask_model(ModelCall::of(&self.model)).await?;
        Ok(Act::Pass)
    }
}

#[tokio::test]
async fn they_count_as_all_that_is_left_if_their_agent_does_something_else_since() {
    let model = hanging();
    let chat = |prompts| {
        let (name, model) = (name("Ann"), AnyModel::new(Once(model.clone())));
        let ann = Seeker { name, model, prompts };
        Chat::builder("main").participant(ann).policy(sequential()).build().unwrap()
    };
    let limits = Limits { cost: Some(cents(100)), ..Limits::default() };
    let mut first = log().await.limits(limits);
    dies(&model, 1, chat(false).run_in(&mut first, "go")).await;
    let events = first.events().await;
    let called = events.iter().position(|event| matches!(event.body, Body::ToolCalled { .. })).unwrap();
    // While a tool runs, no model call of the turn does.
    for (cut, counted) in [(events.len(), (1, cents(99))), (called + 1, (0, Money::default()))] {
        let mut log = log_of(&events[..cut]).await.limits(limits);
        let error = chat(true).resume(&mut log).await.unwrap_err().to_string();
        assert!(error.contains("has the agent changed since?"), "{error}");
        assert_eq!((lost(&log).await, model.made()), (counted, 1), "cut before event {cut}");
    }
    // The agent that made them knows what they can have taken. Then they count once.
    let mut log = log_of(&events).await.limits(limits);
    chat(false).charge_lost_calls(&mut log).await.unwrap();
    chat(true).resume(&mut log).await.unwrap_err();
    assert_eq!((lost(&log).await, model.made()), ((1, cents(20)), 1));
}

#[tokio::test]
async fn charging_them_continues_no_paused_conversation() {
    let model = hanging();
    let chat = Chat::builder("main").participant(agent("Ann", &model)).policy(sequential()).build().unwrap();
    let mut first = log().await;
    dies(&model, 1, chat.run_in(&mut first, "go")).await;
    drop(first.handle().instruct(Instruction::Pause));
    first.post_inbox().await.unwrap();
    let mut log = log_of(&first.events().await).await;
    chat.charge_lost_calls(&mut log).await.unwrap();
    assert_eq!(lost(&log).await.0, 1);
    let events = log.events().await;
    assert!(events.iter().any(|event| event.body == Body::Paused), "{events:?}");
    assert!(!events.iter().any(|event| event.body == Body::Resumed), "{events:?}");
}
