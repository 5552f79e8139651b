//! Nested chats: items 97 to 99.

use std::sync::{Arc, OnceLock};

use polylogue::layers::reply::{Stack, Trigger, when};
use polylogue::layers::{Executor, Nested, OuterContext};
use polylogue::policies::{Carryover, Selector, WithCarryover, with_termination};
use polylogue::runs::Report;
use polylogue::stop::LibraryStopReason;
use polylogue::stop::max_turns;
use polylogue::{
    Act, Agent, Assistant, Chat, Error, Function, Group, Limits, Message, Name, Result, Status, Transcript,
    Turn, round_robin, sequential,
};
use polylogue_core::{AnyAgent, ChatBuilder, Entry, Event, Path, StopReason, ToolResult, ToolSpec};
use polylogue_test::tool::tool_of;
use serde_json::json;

use crate::stage::{Spy, closed, log, name, printed, run, script};

/// A chat of one agent that says `text`.
fn solo(chat: &str, who: &str, text: &'static str) -> Chat {
    let agent = Function::new(who, move |_| Ok(Act::say(text))).unwrap();
    Chat::builder(chat).participant(agent).policy(sequential()).build().unwrap()
}

/// A chat of one agent that repeats its input.
fn echo(chat: &str) -> Chat {
    echo_of(chat).build().unwrap()
}

fn echo_of(chat: &str) -> ChatBuilder {
    let say = |turn: &Turn<'_>| {
        Ok(Act::say(turn.last_message().map_or_else(String::new, |l| l.message.text().into())))
    };
    Chat::builder(chat).participant(Function::new("Echo", say).unwrap()).policy(sequential())
}

fn from(who: &str) -> Trigger {
    Trigger::from_participant(name(who))
}

/// `Ann` says what the chat is about, and `clerk` replies.
async fn asked(task: &str, clerk: impl Agent) -> (Status, Vec<Arc<Event>>) {
    let ann = Function::new("Ann", |_| Ok(Act::Pass)).unwrap();
    let chat = Chat::builder("desk")
        .participant(ann)
        .participant(clerk)
        .policy(with_termination(round_robin(), max_turns(1)));
    run(&chat.opening(|task| vec![Message::new(name("Ann"), task)]).build().unwrap(), task).await
}

fn replied(events: &[Arc<Event>]) -> String {
    let report = Report::of_last_run(events);
    report.messages.last().map(|message| format!("{}: {}", message.from, message.text())).unwrap()
}

fn clerk(layer: impl polylogue::layers::reply::ReplyLayer) -> Stack {
    let rest = Function::new("Clerk", |_| Ok(Act::say("by the next layer"))).unwrap();
    Stack::new("Clerk").unwrap().then(layer).then(AnyAgent::new(rest))
}

#[tokio::test]
async fn inner_chats_run_before_tools_and_model_and_the_last_summary_is_the_reply() {
    // item 97
    let spy = Spy::on(script("[]"));
    let inner = Chat::builder("inner")
        .participant(echo("first"))
        .participant(solo("second", "Poet", "a poem TERMINATE"))
        .policy(polylogue::policies::with_summary(
            sequential(),
            polylogue::policies::last_message_without("TERMINATE"),
        ))
        .build()
        .unwrap();
    let clerk = Stack::new("Clerk")
        .unwrap()
        .then(when(from("Ann"), Nested::new(inner)))
        .then(Executor::new().tool(tool_of(ToolSpec::new("add", "Adds.", json!({"type": "object"})), |_| {
            Ok(ToolResult::done("added"))
        })))
        .then(Assistant::new("Clerk", spy.model()).unwrap());
    let (_, events) = asked("turn number 3 into 13", clerk).await;
    assert_eq!(replied(&events), "Clerk: a poem");
    assert!(spy.asked().is_empty(), "the model is not asked");
    let printed = printed(&events);
    // The first inner chat begins with the last message of the outer one.
    assert!(printed.contains(r#"/Clerk.1/first.1 opened [Echo] "turn number 3 into 13""#), "{printed}");
}

#[tokio::test]
async fn an_agent_replies_by_a_nested_chat_outside_of_any_other_chat() {
    // item 97: `generate_reply` of an agent alone is a chat with that agent alone
    let clerk = clerk(Nested::new(solo("inner", "Poet", "a poem")));
    let alone = Chat::builder("alone").participant(clerk).policy(sequential()).build().unwrap();
    let (status, _) = run(&alone, "turn number 3 into 7").await;
    assert_eq!(closed(&status).1, "a poem");
}

#[tokio::test]
async fn a_message_without_a_trigger_gets_the_usual_reply() {
    // item 98, trap T26: by sender and by content
    let nested = || Nested::new(solo("inner", "Poet", "a poem"));
    let about = |word: &'static str| Trigger::received(move |line| line.message.text().contains(word));
    for (trigger, reply) in [
        (from("Ann") & about("rain"), "Clerk: a poem"),
        (from("Ann") & about("snow"), "Clerk: by the next layer"),
        (from("Poet") & about("rain"), "Clerk: by the next layer"),
    ] {
        let (_, events) = asked("rain, please", clerk(when(trigger, nested()))).await;
        assert_eq!(replied(&events), reply);
    }
}

#[tokio::test]
async fn the_first_message_may_be_computed_from_the_turn() {
    // item 98: a function gets recipient, messages and sender
    let message = OuterContext::custom(|turn| {
        let streamed = turn.last_message().unwrap();
        let messages = turn.transcript().message_count();
        format!(
            "{} said to {} as message {messages}: {}",
            streamed.message.from,
            turn.me(),
            streamed.message.text()
        )
    });
    let (_, events) = asked("hi", clerk(Nested::new(echo("inner")).message(message))).await;
    assert_eq!(replied(&events), "Clerk: Ann said to Clerk as message 1: hi");
}

#[tokio::test]
async fn inner_chats_without_a_message_are_skipped() {
    // item 98
    let skipped = WithCarryover::new(solo("skipped", "Zoe", "never"), Carryover::message(""));
    let inner = Chat::builder("inner").participant(solo("first", "Poet", "a poem")).participant(skipped);
    let (_, events) = asked("hi", clerk(Nested::new(inner.policy(sequential()).build().unwrap()))).await;
    assert_eq!(replied(&events), "Clerk: a poem");
    assert!(!printed(&events).contains("/skipped.1"));
}

#[tokio::test]
async fn a_function_decides_what_the_reply_is() {
    // item 99
    let nested = || Nested::new(solo("inner", "Poet", "a poem"));
    let said = nested().map_reply(|reason, summary| Some(Act::say(format!("{reason}; {summary}"))));
    assert_eq!(replied(&asked("hi", clerk(said)).await.1), "Clerk: Poet replied; a poem");
    let passed_on = nested().map_reply(|_, _| None);
    assert_eq!(replied(&asked("hi", clerk(passed_on)).await.1), "Clerk: by the next layer");
    let ends = nested().map_reply(|_, _| {
        Some(Act::Stop(StopReason::from(LibraryStopReason::NoReply { who: name("Clerk") })))
    });
    assert_eq!(
        closed(&asked("hi", clerk(ends)).await.0).0,
        "no participant said anything; Clerk has no reply"
    );
}

#[tokio::test]
async fn without_anything_to_run_the_next_layer_is_asked() {
    // item 99, trap T26
    let skipped = WithCarryover::new(solo("skipped", "Zoe", "never"), Carryover::message("  "));
    let nothing = Chat::builder("inner").participant(skipped).policy(sequential()).build().unwrap();
    for nested in [
        Nested::new(nothing),
        Nested::new(solo("inner", "Poet", "a poem")).message(OuterContext::custom(|_| String::new())),
    ] {
        assert_eq!(replied(&asked("hi", clerk(nested)).await.1), "Clerk: by the next layer");
    }
    // There is no message.
    let alone = Chat::builder("alone").participant(clerk(Nested::new(solo("inner", "Poet", "a poem"))));
    let (status, _) = run(&alone.policy(sequential()).build().unwrap(), "").await;
    assert_eq!(closed(&status).1, "by the next layer");
}

/// The agent that is put in later.
#[derive(Clone)]
struct Later(Name, Arc<OnceLock<AnyAgent>>);

impl Agent for Later {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        self.1.get().unwrap().act(turn).await
    }
}

/// An agent whose inner chat has itself as a participant.
fn ouroboros() -> Chat {
    let itself = Later(name("Clerk"), Arc::default());
    let inner = Chat::builder("inner").participant(itself.clone()).policy(sequential()).build().unwrap();
    itself.1.set(AnyAgent::new(clerk(Nested::new(inner)))).unwrap();
    Chat::builder("desk").participant(itself).policy(sequential()).build().unwrap()
}

#[tokio::test]
async fn a_nested_chat_that_triggers_itself_is_stopped_and_the_log_is_intact() {
    // item 99, trap T26
    let mut log = log().await.limits(Limits { depth: 3, ..Limits::default() });
    let status = ouroboros().run_in(&mut log, "hi").await.unwrap().status;
    assert_eq!(status, Status::Closed { reason: StopReason::Depth { limit: 3 }, summary: "".into() });
    let events = log.events().await;
    assert_eq!(events.iter().map(|event| event.chat.depth()).max(), Some(3));
    for at in events.iter().map(|event| event.chat.clone()).collect::<std::collections::BTreeSet<Path>>() {
        Transcript::from_events(&at, &events).unwrap();
    }
    let report = Report::of_last_run(&events);
    assert_eq!((report.reason, report.failures.len()), (Some(StopReason::Depth { limit: 3 }), 0));
}

/// What the inner chat of a clerk begins with, after two messages of the outer one.
async fn carried(carry: Option<OuterContext>) -> String {
    let nested = Nested::new(echo("inner"));
    let nested = match carry {
        Some(carry) => nested.context(carry),
        None => nested,
    };
    let ann = Function::new("Ann", |_| Ok(Act::say("And in rhymes?"))).unwrap();
    let chat = Chat::builder("desk")
        .participant(ann)
        .participant(clerk(nested))
        .policy(with_termination(round_robin(), max_turns(2)));
    let (_, events) = run(&chat.build().unwrap(), "About rain.").await;
    replied(&events)
}

#[tokio::test]
async fn an_inner_chat_receives_the_configured_part_of_the_outer_chat() {
    // trap T26: not the last message alone
    assert_eq!(carried(None).await, "Clerk: And in rhymes?");
    assert_eq!(carried(Some(OuterContext::Last)).await, "Clerk: And in rhymes?\nContext: \nAnd in rhymes?");
    assert_eq!(
        carried(Some(OuterContext::All)).await,
        "Clerk: And in rhymes?\nContext: \nuser: About rain.\n\nAnn: And in rhymes?"
    );
    let spy = Spy::on(script(r#"[{"Sam": "They want rhymes about rain."}]"#));
    let sam = Assistant::new("Sam", spy.model()).unwrap();
    let reflected = OuterContext::summarized_by(sam, "What do they want?").unwrap();
    let begins = carried(Some(reflected)).await;
    assert_eq!(begins, "Clerk: And in rhymes?\nContext: \nThey want rhymes about rain.");
    let asked = spy.asked();
    let conversation = Entry::user("user: About rain.\n\nAnn: And in rhymes?");
    assert_eq!(asked[0].entries, [conversation, Entry::user("What do they want?")]);
    assert_eq!(asked.len(), 1);
}

#[test]
fn an_agent_that_cannot_reflect_is_refused_before_anything_runs() {
    let user = Function::new("user", |_| Ok(Act::Pass)).unwrap();
    assert!(matches!(OuterContext::summarized_by(user, "?"), Err(Error::Config(_))));
}

#[tokio::test]
async fn the_cost_of_inner_chats_is_in_the_report_of_the_outer() {
    // trap T7
    let model = script(r#"[{"Poet": {"say": "a poem", "usage": {"input": 7, "output": 3}}}]"#);
    let poet = Assistant::new("Poet", model).unwrap();
    let inner = Chat::builder("inner").participant(poet).policy(sequential()).build().unwrap();
    let (_, events) = asked("hi", clerk(Nested::new(inner))).await;
    let report = Report::of_last_run(&events);
    assert_eq!((report.usage.calls, report.usage.tokens()), (1, 10));
    let row = &report.rows[0];
    assert_eq!((row.chat.as_str(), row.who.as_str()), ("/Clerk.1", "Poet"));
    assert_eq!(row.purpose, polylogue::runs::report::Purpose::Nested);
}

/// An agent that does arithmetic on the last number that it reads.
fn operator(who: &str, operation: fn(i64) -> i64) -> impl Agent {
    let act = move |turn: &Turn<'_>| {
        let last = turn.transcript().last().map(|line| line.message.text().into_owned()).unwrap_or_default();
        let number = last.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok());
        Ok(Act::say(operation(number.unwrap_or(0)).to_string()))
    };
    Function::new(who, act).unwrap()
}

#[tokio::test]
async fn the_arithmetic_agent_of_the_document() {
    // item 97: a group chat, a check and a poem, packaged into one agent
    let picks = r#"[{"picker": "Multiplier"}, {"picker": "Multiplier"}, {"picker": "Adder"}]"#;
    let group = Chat::builder("group")
        .participant(operator("Adder", |number| number + 1))
        .participant(operator("Multiplier", |number| number * 2))
        .private_agent(Selector::new("picker", script(picks)).unwrap())
        .policy(with_termination(Group::select_by_name(name("picker")), max_turns(3)));
    let poet = Assistant::new("Poet", script(r#"[{"Poet": "From three\nto thirteen"}]"#)).unwrap();
    let check = |around: &Transcript, _: &Name| {
        let summary = Carryover::task().items(around, &name("check")).join("");
        if summary == "13" { "It is right.".to_owned() } else { format!("{summary} is wrong.") }
    };
    let work = Chat::builder("work")
        .participant(Carryover::task().apply_to(group).build().unwrap())
        .participant(Carryover::custom(check).apply_to(echo_of("check")).build().unwrap())
        .participant(
            Carryover::message("Write a poem about it.")
                .apply_to(Chat::builder("poem").participant(poet).policy(sequential()))
                .build()
                .unwrap(),
        )
        .policy(sequential())
        .build()
        .unwrap();
    let arithmetic = Stack::new("Arithmetic").unwrap().then(Nested::new(work));
    let alone = Chat::builder("alone").participant(arithmetic).policy(sequential()).build().unwrap();
    let (status, events) = run(&alone, "Turn number 3 into 13.").await;
    assert_eq!(closed(&status).1, "From three\nto thirteen");
    let poem = r#"/poem.1 opened [Poet] "Write a poem about it.\nContext: \n13\nIt is right.""#;
    assert!(printed(&events).contains(poem), "{}", printed(&events));
}
