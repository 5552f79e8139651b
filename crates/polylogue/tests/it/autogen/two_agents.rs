//! Two-agent basics: items 1 to 17.

use std::sync::Arc;

use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::{Stack, from_fn};
use polylogue::policies::with_termination;
use polylogue::stop::LibraryStopReason;
use polylogue::stop::Stop;
use polylogue::stop::{max_messages, max_turns};
use polylogue::tools::FunctionTool;
use polylogue::{
    Act, Agent, AnyModel, Assistant, Chat, Error, Function, Log, Message, Name, Policy, Status, Step,
    Transcript, round_robin, sequential,
};
use polylogue_core::{
    Body, Entry, Event, Media, OpeningContext, Part, Path, StopReason, ToolCall, View, ViewOptions,
};
use serde_json::json;

use crate::autogen::people::talk;
use crate::stage::{Spy, closed, log, name, printed, run, script};

/// A chat of Ann, who speaks first, and Bob.
fn pair(ann: impl Agent, bob: impl Agent, policy: impl Policy) -> Chat {
    let opening = |task: &str| vec![Message::new(name("Ann"), task)];
    Chat::builder("pair")
        .participant(ann)
        .participant(bob)
        .opening(opening)
        .policy(policy)
        .max_turns(10_000)
        .build()
        .unwrap()
}

fn turns(limit: u64) -> impl Policy {
    with_termination(round_robin(), max_messages(2 * limit))
}

fn assistant(who: &str, model: &AnyModel) -> Assistant {
    Assistant::new(who, model.clone()).unwrap()
}

/// Who says something repeatedly.
fn parrot(who: &str) -> Function {
    Function::new(who, |turn| Ok(Act::say(format!("{} {}", turn.me(), turn.transcript().turns())))).unwrap()
}

/// A parrot that ends the chat after a number of messages.
fn brief_parrot(who: &str, limit: u64) -> Stack {
    let says = from_fn(|turn| Ok(Some(Act::say(format!("{} {}", turn.me(), turn.transcript().turns())))));
    Stack::new(who).unwrap().then(HumanInput::never().max_auto_replies(limit)).then(says)
}

fn folded(events: &[Arc<Event>]) -> Transcript {
    Transcript::from_events(&Path::root(), events).unwrap()
}

/// Speakers and texts in the chat.
fn messages(events: &[Arc<Event>]) -> Vec<String> {
    let said =
        |line: &polylogue_core::TranscriptMessage| format!("{}: {}", line.message.from, line.message.text());
    folded(events).messages().map(said).collect()
}

fn view(events: &[Arc<Event>], who: &str) -> Vec<Entry> {
    View::of(&folded(events), &name(who), ViewOptions::default()).entries().to_vec()
}

// Item 1. A history does not start with the agent's own message, as some models refuse such a request (T16).
#[tokio::test]
async fn one_turn_is_one_message_of_each_side() {
    let model = script(r#"[{"Bob": "r1"}]"#);
    let chat = pair(assistant("Ann", &model), assistant("Bob", &model), turns(1));
    let (status, events) = run(&chat, "hi").await;
    assert_eq!(closed(&status), ("2 of 2 messages".into(), "r1".into()));
    assert_eq!(messages(&events), ["Ann: hi", "Bob: r1"]);
    let ann = [Entry::assistant("hi"), Entry::user("r1")];
    assert_eq!(view(&events, "Ann"), ann);
    assert_eq!(view(&events, "Bob"), [Entry::user("hi"), Entry::assistant("r1")]);
}

// Item 2.
#[tokio::test]
async fn a_system_text_is_sent_and_never_stored() {
    let spy = Spy::on(script(r#"[{"Bob": "r1"}]"#));
    let bob = assistant("Bob", &spy.model()).system("SECRET");
    let (_, events) = run(&pair(parrot("Ann"), bob, turns(1)), "hi").await;
    let asked = spy.asked();
    assert_eq!(asked[0].system.as_deref(), Some("SECRET"));
    assert_eq!(asked[0].entries, [Entry::user("hi")]);
    assert!(!serde_json::to_string(&events).unwrap().contains("SECRET"));
}

// Item 3.
#[tokio::test]
async fn two_turns_are_four_messages() {
    let spy = Spy::on(script(r#"[{"Bob": "b1"}, {"Ann": "a1"}, {"Bob": "b2"}]"#));
    let model = spy.model();
    let chat = pair(assistant("Ann", &model), assistant("Bob", &model), turns(2));
    let (_, events) = run(&chat, "hi").await;
    assert_eq!(messages(&events), ["Ann: hi", "Bob: b1", "Ann: a1", "Bob: b2"]);
    let order: Vec<Name> = spy.asked().into_iter().map(|asked| asked.who).collect();
    assert_eq!(order, ["Bob", "Ann", "Bob"].map(name));
}

// Item 4, trap T4.
#[tokio::test]
async fn a_stop_ends_the_chat_and_no_agent_answers_itself() {
    let chat = pair(parrot("Ann"), brief_parrot("Bob", 1), turns(5));
    let (status, events) = run(&chat, "hi").await;
    let Status::Closed { reason, .. } = status else { panic!("it is over") };
    assert_eq!(reason, StopReason::from(LibraryStopReason::AutoReplies { who: name("Bob"), limit: 1 }));
    assert_eq!(messages(&events), ["Ann: hi", "Bob: Bob 0", "Ann: Ann 1"]);
}

// Item 5.
#[tokio::test]
async fn without_a_limit_on_turns_those_on_replies_end_it() {
    let chat = pair(brief_parrot("Ann", 2), brief_parrot("Bob", 2), round_robin());
    let (status, events) = run(&chat, "hi").await;
    assert_eq!(messages(&events).len(), 5);
    assert_eq!(closed(&status).0, "Bob's limit of 2 replies without human input");
}

// Item 6, trap T3: on a thread with a stack of 512 KiB, with layers.
#[test]
fn five_thousand_messages_need_no_stack() {
    let long = || {
        let chat = pair(brief_parrot("Ann", 9_000), brief_parrot("Bob", 9_000), turns(2_500));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (status, events) = runtime.block_on(run(&chat, "hi"));
        assert_eq!(closed(&status).0, "5000 of 5000 messages");
        messages(&events).len()
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(long).unwrap();
    assert_eq!(thread.join().unwrap(), 5_000);
}

// Item 7. What has no parts is not a message: the turn passes.
#[tokio::test]
async fn a_message_without_content_is_none_and_an_empty_text_is_one() {
    let ann = Function::new("Ann", |_| Ok(Act::Say(Vec::new()))).unwrap();
    let bob = Function::new("Bob", |_| Ok(Act::Say(vec![Part::text("")]))).unwrap();
    let chat = Chat::builder("pair").participant(ann).participant(bob).policy(sequential()).build().unwrap();
    let (_, events) = run(&chat, "hi").await;
    assert_eq!(messages(&events), ["user: hi", "Bob: "]);
    assert!(printed(&events).contains("Ann passes"));
}

// Item 8.
#[tokio::test]
async fn unknown_keys_of_a_message_do_not_reach_the_model() {
    let text = r#"{"from": "Ann", "role": "boss", "parts": [{"text": "hi"}], "color": "red"}"#;
    let message: Message = serde_json::from_str(text).unwrap();
    let spy = Spy::on(script(r#"[{"Bob": "r1"}]"#));
    let chat = Chat::builder("pair").participant(parrot("Ann")).participant(assistant("Bob", &spy.model()));
    let chat = chat.opening(move |_| vec![message.clone()]).policy(turns(1)).build().unwrap();
    let (_, events) = run(&chat, "").await;
    assert_eq!(spy.asked()[0].entries, [Entry::user("hi")]);
    assert!(!printed(&events).contains("red") && !printed(&events).contains("boss"));
}

// Item 9. A message has no role: the caller reads its own call, and the other reads of it.
#[tokio::test]
async fn a_tool_call_is_native_for_the_caller_and_text_for_the_other() {
    let clock = FunctionTool::new("clock", "Tells the time.", async |_: ()| Ok("noon"));
    let model = script(r#"[{"Ann": {"calls": [{"tool": "clock", "id": "c1"}]}}]"#);
    let ann = assistant("Ann", &model).suggest_tool(polylogue::Tool::spec(&clock).clone());
    let chat = Chat::builder("pair")
        .participant(ann)
        .participant(parrot("Bob"))
        .policy(with_termination(round_robin(), max_turns(1)));
    let (_, events) = run(&chat.build().unwrap(), "What time is it?").await;
    let call = ToolCall { id: "c1".into(), tool: "clock".into(), args: json!({}) };
    assert_eq!(view(&events, "Ann")[1], Entry::own(vec![Part::ToolCall(call)]));
    assert_eq!(view(&events, "Bob")[1], Entry::user("(calls `clock` with {})"));
}

// Item 10. As text a picture is named by its kind and its address.
#[tokio::test]
async fn pictures_reach_the_model_and_are_named_in_the_transcript() {
    let picture = Media { media_type: "image/png".into(), url: "https://example.org/cat.png".into() };
    let parts = vec![Part::text("What is this?"), Part::Media(picture)];
    let spy = Spy::on(script(r#"[{"Bob": "A cat."}]"#));
    let message = Message { parts: parts.clone(), ..Message::new(name("Ann"), "") };
    let chat = Chat::builder("pair").participant(parrot("Ann")).participant(assistant("Bob", &spy.model()));
    let chat = chat.opening(move |_| vec![message.clone()]).policy(turns(1)).build().unwrap();
    let (_, events) = run(&chat, "").await;
    assert_eq!(spy.asked()[0].entries, [Entry::User { parts }]);
    assert!(printed(&events).contains("Ann: What is this? | <image/png https://example.org/cat.png>"));
}

// Item 11: a message is posted, and no agent replies unless the policy says so.
#[tokio::test]
async fn a_message_without_a_wish_for_a_reply_gets_none() {
    let post = |replies: u64| {
        move |chat: &Transcript| match chat.message_count() {
            0 => Step::Post(Message::new(name("Ann"), "note this")),
            len if len <= replies => round_robin().next(chat),
            _ => Step::close(StopReason::Finished, chat),
        }
    };
    let chat = |replies| {
        Chat::builder("pair")
            .participant(parrot("Bob"))
            .participant(parrot("Ann"))
            .policy(post(replies))
            .build()
            .unwrap()
    };
    let (_, events) = run(&chat(0), "").await;
    assert_eq!(messages(&events), ["Ann: note this"]);
    assert_eq!(view(&events, "Bob"), [Entry::user("note this")]);
    let (_, events) = run(&chat(1), "").await;
    assert_eq!(messages(&events), ["Ann: note this", "Bob: Bob 0"]);
}

// Item 12. An agent without any input is prompted to begin: no model accepts an empty request.
#[tokio::test]
async fn an_agent_replies_to_given_messages_without_a_conversation() {
    let spy = Spy::on(script(r#"[{"Bob": "Paris."}]"#));
    let bob = || Chat::builder("alone").participant(assistant("Bob", &spy.model())).policy(sequential());
    let messages = |_: &str| vec![Message::new(Name::user(), "France?")];
    let (status, _) = run(&bob().opening(messages).build().unwrap(), "").await;
    assert_eq!(closed(&status).1, "Paris.");
    run(&bob().build().unwrap(), "").await;
    let asked: Vec<_> = spy.asked().into_iter().map(|asked| asked.entries).collect();
    assert_eq!(asked, [[Entry::user("France?")], [Entry::user("Begin.")]]);
}

// Item 13. Another log starts again; the same log continues.
#[tokio::test]
async fn history_is_new_in_another_log_and_kept_when_the_chat_continues() {
    let spy = Spy::on(script(r#"[{"Bob": "b1"}, {"Bob": "b2"}]"#));
    let chat = pair(parrot("Ann"), assistant("Bob", &spy.model()), turns(1));
    run(&chat, "one").await;
    let mut log = log().await;
    chat.run_in(&mut log, "two").await.unwrap();
    chat.continue_with(&mut log, Message::new(name("Ann"), "three")).await.unwrap();
    let asked = spy.asked();
    assert_eq!(asked[1].entries, [Entry::user("two")]);
    assert_eq!(asked[2].entries, [Entry::user("two"), Entry::assistant("b1"), Entry::user("three")]);
}

// Item 14, trap T6.
#[tokio::test]
async fn a_result_does_not_change_when_the_recipient_talks_again() {
    let chat = pair(parrot("Ann"), parrot("Bob"), turns(1));
    let (_, first) = run(&chat, "one").await;
    let before = printed(&first);
    let (_, second) = run(&chat, "two").await;
    assert_eq!(printed(&first), before);
    assert_eq!(messages(&second), ["Ann: two", "Bob: Bob 0"]);
}

// Item 15.
#[tokio::test]
async fn the_first_message_may_be_computed() {
    let context = json!({"city": "Oslo"});
    let opening = move |start: &OpeningContext<'_>| {
        let text = format!("Ann to Bob: {} in {}", start.task, context["city"]);
        vec![Message::new(name("Ann"), text)]
    };
    let chat =
        Chat::builder("pair").participant(parrot("Ann")).participant(parrot("Bob")).opening_from(opening);
    let (_, events) = run(&chat.policy(turns(1)).build().unwrap(), "weather").await;
    assert_eq!(messages(&events)[0], "Ann: Ann to Bob: weather in \"Oslo\"");
}

// Item 16.
#[tokio::test]
async fn a_person_is_asked_for_the_first_message_when_there_is_none() {
    let ann = Stack::new("Ann").unwrap().then(HumanInput::terminate());
    let chat = Chat::builder("pair")
        .participant(ann)
        .participant(parrot("Bob"))
        .policy(with_termination(round_robin(), max_turns(2)));
    let (_, events) = talk(&chat.build().unwrap(), "", &["Hello Bob"]).await;
    assert_eq!(messages(&events), ["Ann: Hello Bob", "Bob: Bob 1"]);
    let text = printed(&events);
    assert!(text.contains("Ann asks: You speak as `Ann`, and there are no messages yet."), "{text}");
    assert!(text.contains("Ann is answered: Hello Bob"), "{text}");
}

// Item 17, trap T36.
#[tokio::test]
async fn a_failure_leaves_what_was_said_and_who_failed() {
    let model = script(r#"[{"Bob": "b1"}, {"Bob": {"error": {"status": 503, "message": "too busy"}}}]"#);
    let chat = pair(parrot("Ann"), assistant("Bob", &model), turns(3));
    let mut log: Log = log().await;
    let error = chat.run_in(&mut log, "hi").await.unwrap_err();
    assert!(matches!(error, Error::Model(_)), "{error}");
    let events = log.events().await;
    assert_eq!(messages(&events), ["Ann: hi", "Bob: b1", "Ann: Ann 1"]);
    assert!(matches!(&events.last().unwrap().body, Body::Failed { who, .. } if *who == name("Bob")));
}

// Trap T34: a definition holds no state of a conversation, so that several run at the same time.
#[tokio::test]
async fn one_definition_serves_several_conversations_at_once() {
    let chat = pair(brief_parrot("Ann", 2), brief_parrot("Bob", 2), round_robin());
    let both = tokio::join!(run(&chat, "one"), run(&chat, "two"));
    for ((status, events), task) in [(both.0, "one"), (both.1, "two")] {
        assert_eq!(messages(&events)[0], format!("Ann: {task}"));
        assert_eq!(messages(&events).len(), 5);
        assert!(closed(&status).0.starts_with("Bob's limit"));
    }
}

// Trap T35.
#[test]
fn two_agents_of_one_name_are_refused() {
    let chat =
        Chat::builder("pair").participant(parrot("Ann")).participant(parrot("Ann")).policy(round_robin());
    assert_eq!(chat.build().unwrap_err().to_string(), "two agents of `pair` are named `Ann`");
}

// Trap T18: conditions are one set, and each run says which held.
#[tokio::test]
async fn limits_of_several_kinds_are_one_set_of_conditions() {
    let stop: Stop = max_turns(9) | max_messages(3);
    let (status, _) =
        run(&pair(parrot("Ann"), brief_parrot("Bob", 7), with_termination(round_robin(), stop)), "hi").await;
    assert_eq!(closed(&status).0, "3 of 3 messages");
}
