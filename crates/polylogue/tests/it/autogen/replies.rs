//! The reply chain: items 18 to 26.

use polylogue::layers::Executor;
use polylogue::layers::hook::{HookedModel, before_send, map_text};
use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::{MessageKind, ReplyLayer, Stack, Trigger, from_fn, labeled, when};
use polylogue::policies::with_termination;
use polylogue::stop::LibraryStopReason;
use polylogue::stop::max_turns;
use polylogue::tools::FunctionTool;
use polylogue::{
    Act, AnyModel, Assistant, Chat, Error, Function, Human, Message, Name, Status, Tool, Update, round_robin,
    sequential,
};
use polylogue_core::{Audience, Delta, Entry, Fault, Media, Part, StopReason};
use serde_json::json;

use crate::autogen::people::talk;
use crate::common::pair_chat;
use crate::stage::{Spy, closed, log, name, printed, run, script};

fn says(text: &'static str) -> impl ReplyLayer {
    from_fn(move |_| Ok(Some(Act::say(text))))
}

fn passes_on() -> impl ReplyLayer {
    from_fn(|_| Ok(None))
}

/// What `stack` does with a `message`, and nothing else.
async fn replies_to(stack: Stack, message: Message) -> Status {
    let from = message.from.clone();
    let chat = Chat::builder("group").participant(stack).opening(move |_| vec![message.clone()]);
    let other = Function::new("Other", |_| Ok(Act::Pass)).unwrap();
    let chat = if from == name("Other") { chat.participant(other) } else { chat };
    run(&chat.policy(with_termination(round_robin(), max_turns(1))).build().unwrap(), "").await.0
}

async fn reply(stack: Stack) -> String {
    closed(&replies_to(stack, Message::new(Name::user(), "hi")).await).1
}

fn stack() -> Stack {
    Stack::new("Bob").unwrap()
}

// Item 18.
#[tokio::test]
async fn layers_are_asked_in_the_order_of_their_places() {
    assert_eq!(reply(stack().prepend(says("one")).prepend(says("two"))).await, "two");
    assert_eq!(
        reply(stack().prepend(passes_on()).prepend(passes_on()).insert(1, says("second"))).await,
        "second"
    );
    let last = stack().prepend(says("one")).insert(1_000_000, says("last"));
    assert_eq!(reply(last.clone()).await, "one");
    assert_eq!(reply(last.prepend(passes_on())).await, "one");
    assert_eq!(reply(stack().then(passes_on()).insert(usize::MAX, says("last"))).await, "last");
}

// Item 19, trap T2: without a default reply there is none, and the chat ends for want of it.
#[tokio::test]
async fn a_reply_is_final_and_none_is_passed_on() {
    assert_eq!(reply(stack().then(passes_on()).then(says("b")).then(says("c"))).await, "b");
    assert_eq!(reply(stack().then(passes_on()).otherwise("the default")).await, "the default");
    let ends = from_fn(|turn| {
        Ok(Some(Act::Stop(StopReason::from(LibraryStopReason::NoReply { who: turn.me().clone() }))))
    });
    for stack in [stack().then(ends).then(says("never")), stack().then(passes_on()), stack()] {
        let status = replies_to(stack, Message::new(Name::user(), "hi")).await;
        assert_eq!(closed(&status), ("no participant said anything; Bob has no reply".into(), String::new()));
    }
}

// Item 20.
#[tokio::test]
async fn triggers_match_the_right_speakers_and_messages() {
    let ann = Message::new(name("Other"), "Please help");
    let user = Message::new(Name::user(), "hi");
    let unheard = user.clone().to(Audience::Only(vec![name("Other")]));
    let picture =
        Part::Media(Media { media_type: "image/png".into(), url: "https://example.org/a.png".into() });
    let picture = Message { parts: vec![picture], ..ann.clone() };
    let call = polylogue_core::ToolCall { id: "c".into(), tool: "t".into(), args: json!({}) };
    let call = Message { parts: vec![Part::ToolCall(call)], ..ann.clone() };
    let asks = |line: &polylogue_core::TranscriptMessage| line.message.text().contains("help");
    let by_other = || Trigger::from_participant(name("Other"));
    // Whether it holds when Other asks for help, when the user speaks, when there is no message, and for a picture and a
    // call.
    for (what, trigger, holds) in [
        ("name", by_other(), [true, false, false, true, true]),
        ("names", Trigger::from_any_of([name("Zoe"), name("Other")]), [true, false, false, true, true]),
        ("no names", Trigger::from_any_of([]), [false; 5]),
        ("predicate", Trigger::received(asks), [true, false, false, false, false]),
        ("anyone", Trigger::any_message(), [true, true, false, true, true]),
        ("none", Trigger::no_message(), [false, false, true, false, false]),
        ("list", Trigger::any([by_other(), Trigger::no_message()]), [true, false, true, true, true]),
        ("text", Trigger::kind(MessageKind::Text), [true, true, false, false, false]),
        ("media", Trigger::kind(MessageKind::Media), [false, false, false, true, false]),
        ("calls", Trigger::kind(MessageKind::Calls), [false, false, false, false, true]),
        ("outcomes", Trigger::kind(MessageKind::Outcomes), [false; 5]),
        ("person", Trigger::kind(MessageKind::Person), [false, true, false, false, false]),
        ("both", by_other() & Trigger::kind(MessageKind::Text), [true, false, false, false, false]),
        (
            "either",
            Trigger::no_message() | Trigger::kind(MessageKind::Calls),
            [false, false, true, false, true],
        ),
        ("turn", Trigger::on(|turn| turn.transcript().turns() == 0), [true; 5]),
    ] {
        let messages = [&ann, &user, &unheard, &picture, &call];
        for (message, holds) in messages.into_iter().zip(holds) {
            let stack = stack().then(when(trigger.clone(), says("matched"))).otherwise("default");
            let said = closed(&replies_to(stack, message.clone()).await).1;
            assert_eq!(said == "matched", holds, "{what}: {message:?}");
        }
    }
}

// Item 20: a reply is a person's if a person was asked and answered, whatever the agent is otherwise.
#[tokio::test]
async fn a_message_of_a_person_differs_from_an_automatic_one() {
    let ann = Stack::new("Ann").unwrap().then(HumanInput::always()).otherwise("automatic");
    let bob =
        stack().then(when(Trigger::kind(MessageKind::Person), says("dear person"))).otherwise("dear machine");
    let chat = pair_chat("pair", ann, bob, 4);
    let (_, events) = talk(&chat, "hi", &["It is me", ""]).await;
    let text = printed(&events);
    assert!(text.contains("Ann says: It is me\n"), "{text}");
    let replies: Vec<_> =
        text.lines().filter_map(|line| line.split_once("Bob says: ")).map(|(_, t)| t).collect();
    assert_eq!(replies, ["dear person", "dear machine"]);
}

/// A tool, what a model that may call it says, and who does all there is.
fn everything(model: &AnyModel) -> (Assistant, Stack) {
    let clock = || FunctionTool::new("clock", "Tells the time.", async |_: ()| Ok("noon"));
    let caller = Assistant::new("Ann", model.clone()).unwrap().suggest_tool(clock().spec().clone());
    let code = |line: &polylogue_core::TranscriptMessage| line.message.text().contains("```");
    let proxy = stack()
        .then(HumanInput::never())
        .then(Executor::new().tool(clock()))
        .then(labeled("code", when(Trigger::received(code), says("exitcode: 0"))))
        .then(Assistant::new("Bob", model.clone()).unwrap());
    (caller, proxy)
}

fn pair(ann: Assistant, bob: Stack, turns: u64) -> Chat {
    pair_chat("pair", ann, bob, turns)
}

// Items 21 and 22: what is first in the order replies, and the model is not asked.
#[tokio::test]
async fn tools_come_before_code_and_code_before_the_model() {
    let spy = Spy::on(script(
        r#"[{"Ann": {"say": "Let me see. ```date```", "calls": [{"tool": "clock"}]}}, {"Ann": "```date```"}, {"Ann": "So?"},
            {"Bob": "It is noon."}]"#,
    ));
    let (ann, bob) = everything(&spy.model());
    let (_, events) = run(&pair(ann, bob, 6), "time?").await;
    let text = printed(&events);
    let replies: Vec<_> =
        text.lines().filter_map(|line| line.split_once("Bob says: ")).map(|(_, t)| t).collect();
    assert_eq!(replies, ["clock #Ann-0-0 of Ann: noon", "exitcode: 0", "It is noon."]);
    assert_eq!(spy.asked().iter().filter(|asked| asked.who == name("Bob")).count(), 1);
}

// Item 23: another stack is another value, and what it was made of does not change.
#[tokio::test]
async fn a_layer_can_be_removed_and_another_can_be_the_only_one() {
    let model = script(r#"[{"Ann": "```date```"}, {"Bob": "I run no code."}]"#);
    let (ann, bob) = everything(&model);
    let (status, _) = run(&pair(ann.clone(), bob.clone().without("code").unwrap(), 2), "time?").await;
    assert_eq!(closed(&status).1, "I run no code.");
    let (status, _) = run(&pair(ann, bob.clone(), 2), "time?").await;
    assert_eq!(closed(&status).1, "exitcode: 0");
    assert_eq!(reply(stack().then(says("only this"))).await, "only this");
    let error = bob.without("cod").unwrap_err();
    assert_eq!(
        (error.fault(), error.to_string().as_str(), error.hint().as_deref()),
        (
            Fault::Config,
            "unknown layer `cod` of `Bob`",
            Some("use one of `human_input`, `executor`, `code`, `model`")
        )
    );
}

// Item 24: a definition holds nothing, so another log is a reset: of counters, histories and costs.
#[tokio::test]
async fn counters_begin_at_zero_in_another_log() {
    let spy = Spy::on(script(r#"[{"Ann": "a1"}, {"Bob": "b1"}, {"Ann": "a2"}]"#));
    let ann = Assistant::new("Ann", spy.model()).unwrap();
    let bob = stack()
        .then(HumanInput::never().max_auto_replies(1))
        .then(Assistant::new("Bob", spy.model()).unwrap());
    let chat = pair(ann, bob, 9);
    let (first, second) = (run(&chat, "hi").await, run(&chat, "hi").await);
    assert_eq!(closed(&first.0).0, "Bob's limit of 1 reply without human input");
    assert_eq!(printed(&first.1), printed(&second.1));
    let asked: Vec<_> = spy.asked().into_iter().map(|asked| asked.entries).collect();
    let (one, other) = asked.split_at(3);
    assert_eq!(one, other);
}

fn appends(word: &'static str) -> impl Fn(Vec<Part>) -> Vec<Part> + Send + Sync {
    map_text(move |text| format!("{text}{word}"))
}

// Item 25, traps T5 and T9.
#[tokio::test]
async fn hooks_run_in_the_order_in_which_they_were_added() {
    let spy = Spy::on(script(r#"[{"Bob": "r"}, {"Ann": "end"}]"#));
    let hooked = HookedModel::new(spy.model())
        .on_view(|mut entries, request| {
            assert_eq!(request.origin.who, &name("Bob"));
            entries.insert(0, Entry::user("(a reminder)"));
            entries
        })
        .on_received(appends(" 1"))
        .on_received(appends(" 2"))
        .on_reply(|reply| polylogue_core::Reply { parts: appends("!")(reply.parts), ..reply })
        .on_reply(|reply| polylogue_core::Reply { parts: appends("?")(reply.parts), ..reply });
    let bob = Assistant::new("Bob", AnyModel::new(hooked)).unwrap();
    let bob = before_send(before_send(bob, |parts, _| appends(" x")(parts)), |parts, turn| {
        appends(" y")(parts).into_iter().chain([Part::text(turn.me().as_str())]).collect()
    });
    let ann = Assistant::new("Ann", spy.model()).unwrap();
    let chat = Chat::builder("pair").participant(bob).participant(ann).policy(sequential()).build().unwrap();
    let (_, events) = run(&chat, "hi").await;
    let asked = spy.asked();
    assert_eq!(asked[0].entries, [Entry::user("(a reminder)"), Entry::user("hi 1 2")]);
    // What is sent is what both sides have.
    let text = printed(&events);
    assert!(text.contains("script:test replies to Bob (stop): r!?\n"), "{text}");
    assert!(text.contains("Bob says: r!? x y | Bob\n"), "{text}");
    let parts = vec![Part::text("r!? x y"), Part::text("Bob")];
    assert_eq!(asked[1].entries, [Entry::user("hi"), Entry::User { parts }]);
}

// Item 26, trap T9.
#[tokio::test]
async fn a_hook_on_received_messages_changes_the_request_and_not_the_log() {
    let spy = Spy::on(script(r#"[{"Bob": "one"}, {"Bob": "two"}]"#));
    let model = AnyModel::new(HookedModel::new(spy.model()).on_received(appends(" (be brief)")));
    let bob = Assistant::new("Bob", model).unwrap();
    let ann = Function::new("Ann", |_| Ok(Act::say("more"))).unwrap();
    let chat = pair_chat("pair", bob, ann, 3);
    let (_, events) = run(&chat, "hi").await;
    let asked = spy.asked();
    assert_eq!(asked[0].entries, [Entry::user("hi (be brief)")]);
    let second = [Entry::user("hi"), Entry::assistant("one"), Entry::user("more (be brief)")];
    assert_eq!(asked[1].entries, second);
    assert!(!serde_json::to_string(&events).unwrap().contains("be brief"));
}

// A hook that makes an invalid request is reported, and the request is not sent.
#[tokio::test]
async fn a_hook_that_makes_an_invalid_request_or_reply_is_reported() {
    async fn error(hook: impl Fn(HookedModel) -> HookedModel) -> Error {
        let model = AnyModel::new(hook(HookedModel::new(script(r#"[{"Bob": "r"}]"#))));
        let bob = Assistant::new("Bob", model).unwrap();
        let chat = Chat::builder("alone").participant(bob).policy(sequential()).build().unwrap();
        chat.run_in(&mut log().await, "hi").await.unwrap_err()
    }
    let spoilt = error(|model| model.on_view(|_, _| Vec::new())).await;
    assert_eq!(spoilt.fault(), Fault::Config);
    assert_eq!(
        spoilt.to_string(),
        "script:test: a hook made a request that no provider takes: the request has no entries"
    );
    let outcome = polylogue_core::ExecutedCall {
        to: name("Bob"),
        id: "c".into(),
        tool: "t".into(),
        result: polylogue_core::ToolResult::done("x"),
    };
    let spoilt = error(move |model| {
        let part = Part::ToolResult(outcome.clone());
        model.on_reply(move |reply| polylogue_core::Reply { parts: vec![part.clone()], ..reply })
    });
    assert_eq!(spoilt.await.to_string(), "script:test: a hook made a reply that holds the outcome of a call");
}

// Nothing is left to say after the hook: the agent passes.
#[tokio::test]
async fn a_hook_may_leave_nothing_to_send() {
    let bob = before_send(Function::new("Bob", |_| Ok(Act::say("x"))).unwrap(), |_, _| Vec::new());
    let chat = Chat::builder("alone").participant(bob).policy(sequential()).build().unwrap();
    assert!(printed(&run(&chat, "hi").await.1).contains("Bob passes"));
}

// A person, a whole chat and any agent are layers; who has nothing to say passes on.
#[tokio::test]
async fn agents_are_layers() {
    let inner = |text: &'static str| {
        let clerk = Function::new("Clerk", move |_| Ok(Act::say(text))).unwrap();
        Chat::builder("office")
            .participant(clerk)
            .opening(|_| Vec::new())
            .policy(sequential())
            .build()
            .unwrap()
    };
    let quiet = polylogue_core::AnyAgent::new(Function::new("Quiet", |_| Ok(Act::Pass)).unwrap());
    let whole = |text| {
        stack().then(Human::new("Bob").unwrap()).then(quiet.clone()).then(inner(text)).otherwise("none")
    };
    for (answer, office, said) in [("mine", "theirs", "mine"), (" ", "theirs", "theirs"), ("", "", "none")] {
        let chat = Chat::builder("group").participant(whole(office)).policy(sequential()).build().unwrap();
        let (status, _) = talk(&chat, "hi", &[answer]).await;
        assert_eq!(closed(&status).1, said);
    }
    let labels = whole("x").without("model").unwrap_err().hint();
    assert_eq!(labels.as_deref(), Some("use one of `person`, `Quiet`, `office`"));
}

// A stack is a layer, too, and passes on when it has nothing to say.
#[tokio::test]
async fn a_stack_is_a_layer_of_another() {
    let inner = stack().then(passes_on());
    assert_eq!(reply(stack().then(inner.clone()).then(says("after"))).await, "after");
    assert_eq!(reply(stack().then(inner.otherwise("inner")).then(says("after"))).await, "inner");
}

// A layer that fails leaves the turn open and the log whole; running the chat again tries it again.
#[tokio::test]
async fn a_failing_layer_is_logged_and_retried() {
    let broken = |is_broken: bool| {
        let fails = from_fn(move |_| if is_broken { Err(Error::agent("no luck")) } else { Ok(None) });
        let bob = stack().then(fails).otherwise("at last");
        Chat::builder("alone").participant(bob).policy(sequential()).build().unwrap()
    };
    let mut log = log().await;
    assert_eq!(broken(true).run_in(&mut log, "hi").await.unwrap_err().to_string(), "no luck");
    assert!(printed(&log.events().await).ends_with("Bob fails (config): no luck\n"));
    assert_eq!(closed(&broken(false).resume(&mut log).await.unwrap().status).1, "at last");
}

// Who watches sees what a hook made of the reply, and nothing of what it was before.
#[tokio::test]
async fn what_a_hook_takes_out_of_a_reply_is_not_shown_either() {
    let model = script(
        r#"[{"Bob": {"think": "hm", "say": "the key is 123", "calls": [{"tool": "get_history"}]}}, {"Bob": "456"}]"#,
    );
    let masked = HookedModel::new(model).on_reply(|mut reply| {
        reply.parts = map_text(|text| text.replace(char::is_numeric, "*"))(reply.parts);
        reply
    });
    let bob =
        Assistant::new("Bob", AnyModel::new(masked)).unwrap().tool(polylogue::tools::GetHistory::default());
    let chat = Chat::builder("alone").participant(bob).policy(sequential()).build().unwrap();
    let mut log = log().await;
    let mut watch = log.subscribe().await;
    chat.run_in(&mut log, "hi").await.unwrap();
    drop(log);
    let mut pieces = Vec::new();
    while let Some(signal) = watch.next().await {
        if let Update::Delta { delta, .. } = signal {
            pieces.push(delta);
        }
    }
    let call = Delta::Call { index: 0, tool: Some("get_history".into()), args: "{}".into() };
    let text = |text: &str| Delta::Text(text.into());
    assert_eq!(pieces, [Delta::Thought("hm".into()), text("the key is ***"), call, text("***")]);
}
