//! The lines of agents that solve tasks.

use expect_test::expect;
use polylogue_core::{Audience, Body, Message, Part, TurnRequest};
use serde_json::{Value, json};

use super::{PLAIN, Stage, name, opened, sampled};
use crate::screen::picture::Pictures;
use crate::screen::{Format, document};

fn begins(stage: &mut Stage, who: &str, to: &[&str]) {
    let to = Audience::Only(to.iter().map(|who| name(who)).collect());
    stage.root(Body::TurnStarted {
        turns: vec![TurnRequest { who: name(who), prompt: Some("P".into()), to, choice: None }],
    });
}

fn says(stage: &mut Stage, who: &str, to: &[&str], parts: Vec<Part>) {
    let to = Audience::Only(to.iter().map(|who| name(who)).collect());
    stage.root(Body::Message(Message { from: name(who), to, parts, outside: Vec::new() }));
}

/// An agent that is asked about its task thinks about it, and decides.
fn asked(stage: &mut Stage, to: &[&str], verdict: &Value) {
    begins(stage, "A", to);
    stage.text("A", "There is more.");
    stage.root(sampled("A", vec![Part::text("There is more.")]));
    stage.root(Body::Prompted { who: name("A"), text: "Yes or no?".into() });
    let reply = verdict["reply"].as_str().unwrap();
    stage.text("A", reply);
    stage.root(sampled("A", vec![Part::text(reply)]));
    says(stage, "A", to, vec![Part::text("There is more."), Part::Data(json!({ "verdict": verdict }))]);
}

fn talk(stage: &mut Stage) {
    stage.root(opened(&["A", "B"], "user", "hi"));
    asked(stage, &[], &json!({"complete": false, "reply": "yes"}));
    asked(stage, &[], &json!({"complete": false, "reply": "hard\nto say", "unclear": true}));
    asked(stage, &["A"], &json!({"complete": true, "reply": "No."}));
    // A task with a tool, solved alone: the explanation of the tool is shown before its result.
    begins(stage, "B", &["B"]);
    stage.root(Body::Prompted { who: name("B"), text: "There is a tool.".into() });
    stage.root(sampled("B", vec![Part::text("I see.")]));
    stage.root(Body::Prompted { who: name("B"), text: "Write JSON.".into() });
    let value = json!({"n": 1});
    stage.root(sampled("B", vec![Part::text(value.to_string())]));
    // What is JSON of a form is a text and a value, and is shown once.
    says(stage, "B", &["B"], vec![Part::text(value.to_string()), Part::Data(value)]);
}

#[test]
fn a_decision_about_a_task_is_shown_in_a_few_words() {
    let mut stage = Stage::live(70, 40);
    talk(&mut stage);
    expect![[r#"
        participants: A, B

        user → all
        hi

        A (private): the task is not complete; the answer was: yes
        A (private): the task counts as not complete, as the answer says
        neither: hard (+1 line)

        A → itself
        There is more.
        (the task is complete; the answer was: No.)

        B → itself
        {"n":1}
    "#]]
    .assert_eq(&stage.sees());
    let mut plain = Stage::new(PLAIN, 70, 40);
    talk(&mut plain);
    expect![[r#"
        participants: A, B

        user -> all:
        hi

        A (private): the task is not complete; the answer was: yes
        A (private): the task counts as not complete, as the answer says neither: hard (+1 line)

        A -> itself:
        There is more.
        (the task is complete; the answer was: No.)

        B -> itself:
        {"n":1}
    "#]]
    .assert_eq(&plain.written.text());
}

#[test]
fn a_failed_turn_shows_what_was_streamed_in_it() {
    let mut stage = Stage::live(70, 40);
    stage.root(opened(&["A", "B"], "user", "hi"));
    begins(&mut stage, "A", &[]);
    stage.root(Body::Prompted { who: name("A"), text: "Yes or no?".into() });
    let error = polylogue_core::Failure {
        fault: polylogue_core::Fault::Provider,
        message: "status 429".into(),
        hint: None,
        unsent: false,
        postponed: false,
        permanent: false,
    };
    stage.root(Body::Failed { who: name("A"), error });
    assert!(
        stage.sees().contains("A is prompted: Yes or no?\n\n✗ A failed (provider): status 429"),
        "{}",
        stage.sees()
    );
}

#[test]
fn agents_that_learn_of_their_task_are_shown_in_whole_output_and_speakers_are_no_recipients() {
    let mut stage = Stage::live(70, 40);
    let learns = |stage: &mut Stage| {
        stage.root(opened(&["A", "B", "C"], "user", "hi"));
        begins(stage, "A", &["A"]);
        let words = vec![polylogue_core::HistoryEntry::Sent("I am A.".into())];
        stage.root(Body::Remembered { who: name("A"), entries: words });
        stage.root(Body::Passed { who: name("A") });
        says(stage, "A", &["A", "B"], vec![Part::text("Hello")]);
        // An agent that just passes is shown to.
        stage.root(Body::Passed { who: name("A") });
    };
    learns(&mut stage);
    expect![[r#"
        participants: A, B, C

        user → all
        hi

        A → B
        Hello

        A passes
    "#]]
    .assert_eq(&stage.sees());
    let root = polylogue_core::Path::root();
    let words = vec![polylogue_core::HistoryEntry::Sent("I am A.".into())];
    let request = TurnRequest {
        who: name("A"),
        prompt: Some("P".into()),
        to: Audience::Only(vec![name("A")]),
        choice: None,
    };
    let bodies = [
        opened(&["A", "B", "C"], "user", "hi"),
        Body::TurnStarted { turns: vec![request] },
        Body::Remembered { who: name("A"), entries: words },
        Body::Passed { who: name("A") },
    ];
    let events: Vec<_> = bodies.into_iter().map(|body| stage.event_at(&root, body)).collect();
    expect![[r#"
        participants: A, B, C

        user -> all:
        hi

        A is prompted in private: P
        A remembers to have said: I am A.
    "#]]
    .assert_eq(&document::shown(&events, Format::WHOLE, Pictures::default()));
}

#[test]
fn decisions_are_words_in_documents_too() {
    let message = |parts| {
        Body::Message(Message {
            from: name("A"),
            to: Audience::Only(vec![name("A")]),
            parts,
            outside: Vec::new(),
        })
    };
    let verdict = json!({"verdict": {"complete": true, "reply": "no"}});
    let decided = message(vec![Part::text("Nothing."), Part::Data(verdict)]);
    let formed = message(vec![Part::text("{\"n\":1}"), Part::Data(json!({"n": 1}))]);
    let mut stage = Stage::live(70, 40);
    let events = [opened(&["A", "B"], "user", "hi"), decided, formed];
    let root = polylogue_core::Path::root();
    let events: Vec<_> = events.into_iter().map(|body| stage.event_at(&root, body)).collect();
    expect![[r##"
        # talk

        *Participants: A, B*

        ### user

        hi

        ### A → itself

        Nothing.

        *the task is complete; the answer was: no*

        ### A → itself

        {"n":1}
    "##]]
    .assert_eq(&document::markdown("talk", &events, Pictures::default()));
    expect![[r#"
        user (to talk):

        hi

        --------------------------------------------------------------------------------
        A (to A):

        Nothing.
        (the task is complete; the answer was: no)

        --------------------------------------------------------------------------------
        A (to A):

        {"n":1}

        --------------------------------------------------------------------------------
    "#]]
    .assert_eq(&document::autogen("talk", &events, false));
}

#[test]
fn a_private_reply_takes_a_few_rows_and_a_ledger_in_json_one() {
    let mut stage = Stage::live(40, 40);
    stage.root(opened(&["A", "B"], "user", "hi"));
    let task = "Develop a bot that trades one stock. ".repeat(5);
    for text in [task.as_str(), r#"{"is_request_satisfied": {"answer": false}, "next_speaker": "B"}"#] {
        begins(&mut stage, "Lead", &[]);
        says(&mut stage, "Lead", &[], vec![Part::text(text)]);
    }
    stage.root(crate::screen::tests::turn_started("A"));
    expect![[r#"
        participants: A, B

        user → all
        hi

        Lead (private): Develop a bot that
        trades one stock. Develop a bot that
        trades one stock. Develop a bot that
        trades …
        Lead (private): {"is_request_satisfied…

        A is thinking... 0.0s
    "#]]
    .assert_eq(&stage.sees());
}
