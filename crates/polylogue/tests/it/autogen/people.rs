//! People in the loop: items 27 to 37.

use std::sync::Arc;

use polylogue::layers::Executor;
use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::{Stack, from_fn};
use polylogue::policies::{with_summary_by, with_termination};
use polylogue::stop::{max_turns, says};
use polylogue::tools::FunctionTool;
use polylogue::{Act, Assistant, Chat, Function, Message, Name, Status, Step, Tool, Transcript, round_robin};
use polylogue_core::{
    AnswerChoice, AnswerEffect, Body, Entry, Event, Part, QuestionKind, StopReason, ToolStatus, TurnRequest,
};

use crate::common::{pair_chat, solo_chat};
use crate::stage::{Spy, closed, log, name, printed, run, script};

/// Runs `chat` to its end, with one answer to each question in turn.
pub(crate) async fn talk(chat: &Chat, task: &str, answers: &[&str]) -> (Status, Vec<Arc<Event>>) {
    let mut log = log().await;
    let mut status = chat.run_in(&mut log, task).await.unwrap().status;
    let mut answers = answers.iter();
    while let Status::Waiting(questions) = &status {
        let (at, question) = questions.first().expect("a person is asked");
        let Some(answer) = answers.next() else { panic!("no question was expected: {question:?}") };
        log.answer(at, &question.who, *answer).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    assert_eq!(answers.next(), None, "more was to be asked");
    (status, log.events().await)
}

/// What people were asked.
pub(crate) fn questions(events: &[Arc<Event>]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            Body::InputRequired(question) => Some(&*question.text),
            _ => None,
        })
        .collect()
}

/// Ann says `lines`, and Bob, whose person may step in, has an automatic reply to each. Ann begins.
fn pair(lines: &'static [&'static str], human_input: HumanInput, turns: u64) -> Chat {
    let ann = Function::new("Ann", move |turn| {
        let nth = turn.transcript().turns_of(turn.me());
        Ok(Act::say(lines[usize::try_from(nth).unwrap() % lines.len()]))
    });
    let bob = Stack::new("Bob").unwrap().then(human_input).otherwise("auto");
    pair_chat("pair", ann.unwrap(), bob, turns)
}

/// How often who was asked before each of Bob's replies, as `auto` or `asked: auto`.
fn replies(events: &[Arc<Event>]) -> Vec<String> {
    let mut asked = "";
    let mut replies = Vec::new();
    for event in events {
        match &event.body {
            Body::InputRequired(_) => asked = "asked: ",
            Body::Message(message) if message.from == name("Bob") => {
                replies.push(format!("{asked}{}", message.text()));
                asked = "";
            }
            Body::Passed { .. } => replies.push(format!("{asked}(nothing)")),
            _ => {}
        }
    }
    replies
}

/// What Bob does at a message: `over` is whether he has reached the limit on automatic replies, `ends` whether the
/// message terminates the conversation. Returns whether his person was asked, and what he said or why it ended.
async fn cell(human_input: HumanInput, over: bool, ends: bool, answer: &str) -> (bool, String) {
    let lines: &[&str] = if ends { &["hello", "TERMINATE"] } else { &["hello", "hello again"] };
    let chat = pair(lines, human_input.max_auto_replies(if over { 1 } else { 9 }), 4);
    let mut log = log().await;
    let mut status = chat.run_in(&mut log, "").await.unwrap().status;
    let mut asked = false;
    while let Status::Waiting(questions) = &status {
        // The first time leads up to the message that counts.
        asked = log.transcript().await.unwrap().turns() == 3;
        log.answer(&questions[0].0, &name("Bob"), if asked { answer } else { "" }).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    let (reason, summary) = closed(&status);
    (asked, if reason == "4 of 4 turns" { summary } else { reason })
}

const ENDED: &str = "Ann said `TERMINATE`";
const LEFT: &str = "Bob left: said `exit`";
const LIMIT: &str = "Bob's limit of 1 reply without human input";

// Items 27 to 32: the whole table of modes, conditions and answers.
#[tokio::test]
async fn every_cell_of_the_table_of_modes() {
    let (always, terminate, never) = (HumanInput::always(), HumanInput::terminate(), HumanInput::never());
    // The mode, whether the limit is met, whether the message ends the conversation; then whether anyone is asked, and
    // the results of no answer, of `exit` and of a text.
    for (mode, over, ends, asked, [nothing, exit, text]) in [
        (&always, false, false, true, ["auto", LEFT, "mine"]),
        (&always, true, false, true, ["auto", LEFT, "mine"]),
        (&always, false, true, true, [ENDED, LEFT, "mine"]),
        (&always, true, true, true, [ENDED, LEFT, "mine"]),
        (&terminate, false, false, false, ["auto", "auto", "auto"]),
        (&terminate, true, false, true, ["auto", LEFT, "mine"]),
        (&terminate, false, true, true, [ENDED, LEFT, "mine"]),
        (&terminate, true, true, true, [ENDED, LEFT, "mine"]),
        (&never, false, false, false, ["auto", "auto", "auto"]),
        (&never, true, false, false, [LIMIT, LIMIT, LIMIT]),
        (&never, false, true, false, [ENDED, ENDED, ENDED]),
        (&never, true, true, false, [ENDED, ENDED, ENDED]),
    ] {
        for (answer, expected) in [("", nothing), ("exit", exit), ("mine", text)] {
            let cell = cell(mode.clone(), over, ends, answer).await;
            let what = format!("{mode:?} over {over} ends {ends} `{answer}`");
            assert_eq!(cell, (asked, expected.to_owned()), "{what}");
        }
    }
}

// Item 27.
#[tokio::test]
async fn always_says_what_the_person_says_or_replies_by_itself() {
    let chat = pair(&["hello"], HumanInput::always(), 4);
    let (_, events) = talk(&chat, "", &["", "  my own\n words "]).await;
    assert_eq!(replies(&events), ["asked: auto", "asked:   my own\n words "]);
}

// Items 27 and 30: automatic replies count up to the limit, and a person's text counts from zero (trap T5: each once).
#[tokio::test]
async fn a_text_of_the_person_counts_the_automatic_replies_again() {
    let chat = pair(&["hello"], HumanInput::terminate().max_auto_replies(2), 18);
    let (_, events) = talk(&chat, "", &["mine", "", "also mine"]).await;
    let expected =
        ["auto", "auto", "asked: mine", "auto", "auto", "asked: auto", "asked: also mine", "auto", "auto"];
    assert_eq!(replies(&events), expected);
}

// Item 28.
#[tokio::test]
async fn exit_ends_the_chat_with_no_further_message() {
    let (status, events) = talk(&pair(&["hello"], HumanInput::always(), 9), "", &["exit"]).await;
    let Status::Closed { reason, summary } = status else { panic!("it is over") };
    assert_eq!(reason, StopReason::Left { who: name("Bob"), why: "said `exit`".into() });
    assert_eq!(&*summary, "hello");
    let [.., stopped, _] = &*events else { panic!("something happened") };
    assert!(matches!(&stopped.body, Body::Stopped { who, .. } if *who == name("Bob")));
    assert_eq!(replies(&events), [""; 0]);
}

// Item 29.
#[tokio::test]
async fn human_input_always_ignores_max_auto_replies() {
    let chat = pair(&["hello"], HumanInput::always().max_auto_replies(1), 8);
    let (_, events) = talk(&chat, "", &["", "", "", ""]).await;
    assert_eq!(replies(&events), ["asked: auto"; 4]);
}

// Item 30: at the limit the person is asked at every message, until they say something.
#[tokio::test]
async fn at_the_limit_the_person_is_asked_until_they_say_something() {
    let chat = pair(&["hello"], HumanInput::terminate().max_auto_replies(1), 20);
    let (status, events) = talk(&chat, "", &["", "", "mine", "exit"]).await;
    assert_eq!(replies(&events), ["auto", "asked: auto", "asked: auto", "asked: mine", "auto"]);
    assert_eq!(closed(&status).0, LEFT);
}

// Item 31.
#[tokio::test]
async fn a_person_can_continue_after_a_terminating_message() {
    let chat = pair(&["TERMINATE", "bye"], HumanInput::terminate(), 4);
    let (status, events) = talk(&chat, "", &["Wait, one more thing"]).await;
    assert_eq!(replies(&events), ["asked: Wait, one more thing", "auto"]);
    assert_eq!(closed(&status).0, "4 of 4 turns");
}

// Items 32 and 37. With no automatic reply at all, none is even made.
#[tokio::test]
async fn a_limit_of_none_makes_no_reply_at_all() {
    let ann = Function::new("Ann", |_| Ok(Act::say("hello"))).unwrap();
    let model = script("[]");
    let bob = Stack::new("Bob").unwrap();
    let bob = bob.then(HumanInput::never().max_auto_replies(0)).then(Assistant::new("Bob", model).unwrap());
    let chat = Chat::builder("pair").participant(ann).participant(bob).policy(round_robin()).build().unwrap();
    let (status, _) = run(&chat, "").await;
    assert_eq!(closed(&status).0, "Bob's limit of 0 replies without human input");
    // Where a person is asked, no answer is none.
    let chat = pair(&["hello"], HumanInput::terminate().max_auto_replies(0), 4);
    assert_eq!(replies(&talk(&chat, "", &["", "mine"]).await.1), ["asked: (nothing)", "asked: mine"]);
}

// Item 33.
#[tokio::test]
async fn a_person_who_speaks_while_calls_wait_answers_each_of_them() {
    let clock = || FunctionTool::new("clock", "Tells the time.", async |_: ()| Ok("noon"));
    let spy = Spy::on(script(
        r#"[{"Ann": {"say": "Let me see.", "calls": [{"tool": "clock", "id": "c1"}, {"tool": "clock", "id": "c2"}]}},
            {"Ann": "As you like."}]"#,
    ));
    let ann = Assistant::new("Ann", spy.model()).unwrap().suggest_tool(clock().spec().clone());
    let bob = Stack::new("Bob").unwrap().then(HumanInput::always()).then(Executor::new().tool(clock()));
    let chat = pair_chat("pair", ann, bob, 3);
    let (_, events) = talk(&chat, "time?", &["Never mind"]).await;
    assert!(
        questions(&events)[0]
            .contains("`Ann` waits for `clock`, `clock`: a reply takes the place of running")
    );
    assert!(!events.iter().any(|event| matches!(event.body, Body::ToolCalled { .. })), "no tool ran");
    let entries = &spy.asked()[1].entries;
    let answers: Vec<_> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Tool { id, result: outcome, .. } => {
                Some((&**id, outcome.status, outcome.text().into_owned()))
            }
            _ => None,
        })
        .collect();
    let interrupted = |id| (id, ToolStatus::Failed, "USER INTERRUPTED".to_owned());
    assert_eq!(answers, [interrupted("c1"), interrupted("c2")]);
    assert_eq!(entries.last(), Some(&Entry::user("Never mind")));
    // Who has nothing to say lets the tools run.
    let (_, events) = talk(&chat, "time?", &[""]).await;
    let text = printed(&events);
    assert!(text.contains("Bob says: clock #c1 of Ann: noon | clock #c2 of Ann: noon"), "{text}");
}

// Item 34: who asks, whom they answer, what an empty answer and `exit` do.
#[tokio::test]
async fn the_question_says_who_asks_and_has_its_answers_as_data() {
    async fn asked(
        human_input: HumanInput,
        lines: &'static [&'static str],
        task: &str,
    ) -> (String, AnswerEffect) {
        let mut log = log().await;
        let status = pair(lines, human_input, 9).run_in(&mut log, task).await.unwrap().status;
        let Status::Waiting(questions) = status else { panic!("a person is asked") };
        let question = &questions[0].1;
        assert_eq!((&question.who, question.kind), (&name("Bob"), QuestionKind::Reply));
        let [empty, exit] = question.choices.as_slice() else { panic!("{question:?}") };
        assert_eq!((&*empty.answer, exit), ("", &AnswerChoice::new("exit", AnswerEffect::End)));
        (question.text.to_string(), empty.effect)
    }
    const HELLO: &[&str] = &["hello"];
    const ENDED: &[&str] = &["hello", "TERMINATE"];
    let terminate = HumanInput::terminate;
    for (human_input, lines, text, effect) in [
        (HumanInput::always(), HELLO, "You speak as `Bob` to `Ann`.", AnswerEffect::AutomaticReply),
        (
            terminate().max_auto_replies(2),
            HELLO,
            "You speak as `Bob`, which replied by itself 2 times in a row, to `Ann`.",
            AnswerEffect::AutomaticReply,
        ),
        (terminate(), ENDED, "You speak as `Bob`; `Ann` ended the conversation.", AnswerEffect::End),
        (
            terminate().max_auto_replies(0).clear_command(),
            HELLO,
            "You speak as `Bob`, which never replies by itself, to `Ann`. `clear history`, with a name or a number, hides the \
             earlier messages.",
            AnswerEffect::NoMessage,
        ),
    ] {
        assert_eq!(asked(human_input, lines, "").await, (text.to_owned(), effect));
    }
}

// Items 34 and 35, trap T8: several people in one chat, each asked in their own name, and each answer with whose it is.
#[tokio::test]
async fn several_people_are_asked_each_in_their_own_name() {
    let person = |who| Stack::new(who).unwrap().then(HumanInput::always()).otherwise("auto");
    let chat = Chat::builder("three")
        .participant(person("Ann"))
        .participant(person("Bob"))
        .participant(person("Cem"))
        .policy(with_termination(round_robin(), max_turns(4)))
        .build()
        .unwrap();
    let (_, events) = talk(&chat, "hi", &["a", "", "c", ""]).await;
    let answers: Vec<(&Name, &str)> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::InputProvided { to, text, .. } => Some((to, &**text)),
            _ => None,
        })
        .collect();
    let (ann, bob, cem) = (name("Ann"), name("Bob"), name("Cem"));
    assert_eq!(answers, [(&ann, "a"), (&bob, ""), (&cem, "c"), (&ann, "")]);
    let text = printed(&events);
    assert!(text.contains("Bob asks: You speak as `Bob` to `Ann`."), "{text}");
    assert!(text.contains("Cem asks: You speak as `Cem` to `Bob`."), "{text}");
}

// Item 36, trap T40.
#[tokio::test]
async fn exit_is_forgiven_its_case_and_spaces() {
    for exit in ["exit", "EXIT", " exit ", "Exit\n"] {
        let (status, _) = talk(&pair(&["hello"], HumanInput::always(), 9), "", &[exit]).await;
        assert_eq!(closed(&status).0, LEFT, "{exit:?}");
    }
    for text in ["exit now", "\"exit\"", "exits"] {
        let (_, events) = talk(&pair(&["hello"], HumanInput::always(), 2), "", &[text]).await;
        assert_eq!(replies(&events), [format!("asked: {text}")]);
    }
}

// Item 38, traps T1 and T41: only a message that is nothing but the word, and never the task.
#[tokio::test]
async fn texts_and_limits_that_end_a_conversation_of_two() {
    let never = HumanInput::never;
    let word = |line: &polylogue_core::TranscriptMessage| line.message.text().contains("DONE");
    for (human_input, said, expected) in [
        (never(), "TERMINATE", ENDED),
        (never(), " TERMINATE\n", ENDED),
        (never(), "ok TERMINATE", "2 of 2 turns"),
        (never(), "terminate", "2 of 2 turns"),
        (never().terminate_on(says("TERMINATE")), "ok TERMINATE", ENDED),
        (never().terminate_on(says("TERMINATE").by(name("Cem"))), "ok TERMINATE", "2 of 2 turns"),
        (never().terminate_on(says("DONE")), "TERMINATE", "2 of 2 turns"),
        (never().terminate_when("work done", word), "It is DONE", "the condition `work done` held"),
    ] {
        let lines: &'static [&'static str] = Box::leak(Box::new([said]));
        let (status, _) = run(&pair(lines, human_input, 2), "Say DONE, then TERMINATE").await;
        assert_eq!(closed(&status).0, expected, "{said}");
    }
    let bob = Stack::new("Bob")
        .unwrap()
        .then(HumanInput::never().terminate_on(says("TERMINATE")))
        .otherwise("auto");
    let chat = solo_chat("alone", bob, 1);
    assert_eq!(closed(&run(&chat, "Say TERMINATE").await.0).0, "1 of 1 turn");
}

// Trap T1: a message without a text terminates nothing, and is not an error.
#[tokio::test]
async fn a_message_without_text_ends_nothing() {
    let call =
        polylogue_core::ToolCall { id: "c".into(), tool: "TERMINATE".into(), args: serde_json::json!({}) };
    let ann = from_fn(move |_| Ok(Some(Act::Say(vec![Part::ToolCall(call.clone())]))));
    let ann = Stack::new("Ann").unwrap().then(ann);
    let bob = Stack::new("Bob")
        .unwrap()
        .then(HumanInput::never().terminate_on(says("TERMINATE")))
        .otherwise("auto");
    let chat = pair_chat("pair", ann, bob, 2);
    assert_eq!(closed(&run(&chat, "").await.0).1, "auto");
}

// A summary is asked of the model, and not of the person who watches over the conversation.
#[tokio::test]
async fn private_turns_do_not_ask_the_person() {
    let model = script(r#"[{"Bob": "They said hello."}]"#);
    let ann = Function::new("Ann", |_| Ok(Act::say("hello"))).unwrap();
    let bob = Stack::new("Bob").unwrap().then(HumanInput::always());
    let bob = bob.then(Assistant::new("Bob", model).unwrap());
    let policy =
        with_summary_by(with_termination(round_robin(), max_turns(2)), name("Bob"), |_| "Sum up.".into());
    let chat = Chat::builder("pair").participant(ann).participant(bob).policy(policy).build().unwrap();
    assert_eq!(closed(&talk(&chat, "", &["hi"]).await.0).1, "They said hello.");
}

/// A chat of a model and of a person who may clear the history.
fn clearing(spy: &Spy) -> Chat {
    let bob = Stack::new("Bob").unwrap().then(HumanInput::always().clear_command()).otherwise("auto");
    pair_chat("pair", Assistant::new("Ann", spy.model()).unwrap(), bob, 5)
}

// Item 89: plain, with a name, with a number, with both; the command is not part of the message.
#[tokio::test]
async fn a_person_clears_the_history_and_continues() {
    let entries = |texts: &[&str]| -> Vec<Entry> {
        let own = |text: &str| text.starts_with('a');
        texts
            .iter()
            .map(|text| if own(text) { Entry::assistant(*text) } else { Entry::user(*text) })
            .collect()
    };
    for (command, read) in [
        ("Enough. clear history", &["Enough."][..]),
        ("clear history Ann, once more", &["once more"]),
        ("CLEAR HISTORY 1 once more", &["one", "a2", "once more"]),
        ("clear history 2 Ann once more", &["one", "a2", "once more"]),
        ("clear history Bob once more", &["task", "a1", "one", "a2", "once more"]),
    ] {
        let spy = Spy::on(script(r#"[{"Ann": "a1"}, {"Ann": "a2"}, {"Ann": "a3"}]"#));
        let (_, events) = talk(&clearing(&spy), "task", &["one", command]).await;
        assert_eq!(spy.asked()[2].entries, entries(read), "{command}");
        assert!(!printed(&events).contains("Bob says: clear"), "{command}");
    }
}

// Item 89: with nothing else to say, the person is asked again.
#[tokio::test]
async fn after_a_bare_command_the_person_is_asked_again() {
    let spy = Spy::on(script(r#"[{"Ann": "a1"}, {"Ann": "a2"}, {"Ann": "a3"}]"#));
    let (_, events) = talk(&clearing(&spy), "task", &["one", "clear history 1.", "two"]).await;
    let text = printed(&events);
    assert!(text.contains("Bob clears the history of all, keeping 1"), "{text}");
    assert_eq!(replies(&events), ["asked: one", "asked: two"]);
    // Without the option it is a text as any other.
    let (_, events) = talk(&pair(&["hello"], HumanInput::always(), 2), "", &["clear history"]).await;
    assert_eq!(replies(&events), ["asked: clear history"]);
}

// A reopened chat counts from zero; one that continues under a higher limit does not.
#[tokio::test]
async fn automatic_replies_are_counted_again_when_the_chat_continues() {
    let chat = pair(&["hello"], HumanInput::never().max_auto_replies(2), 99);
    let mut log = log().await;
    chat.run_in(&mut log, "").await.unwrap();
    assert_eq!(replies(&log.events().await).len(), 2);
    chat.continue_with(&mut log, Message::new(Name::user(), "more")).await.unwrap();
    assert_eq!(replies(&log.events().await).len(), 4);
    log.reopen().await.unwrap();
    assert!(closed(&chat.resume(&mut log).await.unwrap().status).0.starts_with("Bob's limit of 2"));
    assert_eq!(replies(&log.events().await).len(), 4);
}

// The person first sees the prompt of the policy.
#[tokio::test]
async fn a_prompt_of_the_policy_is_shown_to_the_person() {
    let bob = Stack::new("Bob").unwrap().then(HumanInput::always());
    let policy = |chat: &Transcript| match chat.turns() {
        0 => Step::Turn(TurnRequest {
            prompt: Some("Name a city.".into()),
            ..TurnRequest::to_all(name("Bob"))
        }),
        _ => Step::close(StopReason::Finished, chat),
    };
    let chat = Chat::builder("alone").participant(bob).policy(policy).build().unwrap();
    let (status, events) = talk(&chat, "hi", &["Oslo"]).await;
    assert!(questions(&events)[0].starts_with("Name a city. You speak as `Bob` to `user`."));
    assert_eq!(closed(&status).1, "Oslo");
}
