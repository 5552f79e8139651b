//! Results of chats: items 42 to 45.

use polylogue::policies::order::{SUMMARY_PROMPT, last_reply, with_summarizer};
use polylogue::policies::{last_message_without, with_summary, with_termination};
use polylogue::runs::Report;
use polylogue::stop::{max_turns, says};
use polylogue::{Act, Assistant, Chat, Error, Function, Message, round_robin};
use polylogue_core::{ChatBuilder, Entry, PromptRole, ViewOptions};

use crate::common::solo_chat;
use crate::stage::{Spy, closed, log, name, run, script};

/// Ann opens, and Bob replies with `text`.
async fn summary_of(text: &'static str) -> (String, String) {
    let ann = Function::new("Ann", |_| Ok(Act::Pass)).unwrap();
    let bob = Function::new("Bob", move |_| Ok(Act::say(text))).unwrap();
    let chat = Chat::builder("pair")
        .participant(ann)
        .participant(bob)
        .opening(|task| vec![Message::new(name("Ann"), task)]);
    let policy = with_termination(round_robin(), says("TERMINATE") | max_turns(1));
    let chat = chat.policy(with_summary(policy, last_message_without("TERMINATE"))).build().unwrap();
    let (status, events) = run(&chat, "go").await;
    (closed(&status).1, Report::of_last_run(&events).messages.last().unwrap().text().into_owned())
}

#[tokio::test]
async fn the_summary_is_the_last_message_without_the_word_that_ended_it() {
    // item 42
    assert_eq!(summary_of("Done. TERMINATE").await, ("Done.".into(), "Done. TERMINATE".into()));
    assert_eq!(summary_of("TERMINATE Done TERMINATE.").await.0, "Done .");
    assert_eq!(summary_of("TERMINATE").await.0, "");
    assert_eq!(summary_of("Done.").await.0, "Done.");
}

#[tokio::test]
async fn the_opening_of_a_chat_need_not_be_its_summary() {
    let ann = Function::new("Ann", |_| Ok(Act::Pass)).unwrap();
    let chat = Chat::builder("solo")
        .participant(ann)
        .policy(with_summary(with_termination(round_robin(), max_turns(1)), last_reply));
    assert_eq!(closed(&run(&chat.build().unwrap(), "go").await.0).1, "");
}

/// Ann and Bob say a word each; the summary is requested with the given view. Every request, and the summary.
async fn reflection(options: ViewOptions) -> (Vec<crate::stage::Asked>, String) {
    let spy = Spy::on(script(r#"[{"Ann": "two"}, {"Bob": "one"}, {"Bobs_summary": "They counted."}]"#));
    let [ann, bob] = ["Ann", "Bob"].map(|who| Assistant::new(who, spy.model()).unwrap().system("Count."));
    // On Bob's model: who it is on is said, and not searched for.
    let summary = Assistant::new("Bobs_summary", spy.model()).unwrap().view(options);
    let chat = Chat::builder("pair")
        .participant(ann)
        .participant(bob)
        .opening(|task| vec![Message::new(name("Ann"), task)]);
    let chat = with_summarizer(chat, summary, SUMMARY_PROMPT, with_termination(round_robin(), max_turns(2)))
        .build()
        .unwrap();
    let (status, _) = run(&chat, "three").await;
    (spy.asked(), closed(&status).1)
}

#[tokio::test]
async fn a_reflection_is_one_call_more_with_the_history_and_the_prompt_last() {
    // item 43, trap T21: as a user message, which every model accepts at the end
    let history = ["Ann: three", "Bob: one", "Ann: two"].map(Entry::user);
    let (asked, summary) = reflection(ViewOptions::default()).await;
    assert_eq!((asked.len(), summary.as_str()), (3, "They counted."));
    assert_eq!((asked[2].who.as_str(), asked[2].system.as_deref()), ("Bobs_summary", None));
    assert_eq!(asked[2].entries, [&history[..], &[Entry::user(SUMMARY_PROMPT)]].concat());

    // In the role that AutoGen has by default, if it is wanted.
    let (asked, _) =
        reflection(ViewOptions { prompt_role: PromptRole::System, ..ViewOptions::default() }).await;
    let prompt = Entry::System { parts: vec![polylogue_core::Part::text(SUMMARY_PROMPT)] };
    assert_eq!(asked[2].entries, [&history[..], &[prompt]].concat());
}

/// Ann and Bob say a word each, in a chat that a builder ends by more than its policy.
#[tokio::test]
async fn a_summary_is_written_however_the_chat_ends() {
    let ends: [fn(ChatBuilder) -> ChatBuilder; 3] =
        [|chat| chat.max_turns(2), |chat| chat.stop(max_turns(2)), |chat| chat.stop(says("one"))];
    for end in ends {
        let spy = Spy::on(script(r#"[{"Ann": "two"}, {"Bob": "one"}, {"Sum": "They counted."}]"#));
        let [ann, bob, sum] = ["Ann", "Bob", "Sum"].map(|who| Assistant::new(who, spy.model()).unwrap());
        let chat = end(Chat::builder("pair").participant(ann).participant(bob));
        let chat = with_summarizer(chat, sum, SUMMARY_PROMPT, round_robin()).build().unwrap();
        let (status, _) = run(&chat, "three").await;
        assert_eq!((spy.asked().len(), closed(&status).1.as_str()), (3, "They counted."));
    }
}

#[test]
fn the_author_of_a_reflection_is_no_participant() {
    let bob = || Function::new("Bob", |_| Ok(Act::Pass)).unwrap();
    let twice =
        with_summarizer(Chat::builder("solo").participant(bob()), bob(), SUMMARY_PROMPT, round_robin())
            .build();
    assert!(
        matches!(twice, Err(Error::Config(why)) if why.to_string() == "two agents of `solo` are named `Bob`")
    );
}

#[tokio::test]
async fn a_custom_summary_is_made_of_the_whole_chat() {
    // item 45: it reads sender, recipient and messages; its arguments are what it captures
    let chat = |args: Option<&'static str>| {
        let [ann, bob] = ["Ann", "Bob"].map(|who| Function::new(who, |_| Ok(Act::say("well"))).unwrap());
        let policy = with_summary(with_termination(round_robin(), max_turns(2)), move |chat| match args {
            Some(args) => {
                format!("{args}: {} messages of {} members", chat.message_count(), chat.participants().len())
            }
            None => String::new(),
        });
        Chat::builder("pair").participant(ann).participant(bob).policy(policy).build().unwrap()
    };
    assert_eq!(closed(&run(&chat(Some("in short")), "go").await.0).1, "in short: 3 messages of 2 members");
    assert_eq!(closed(&run(&chat(None), "go").await.0).1, "");
}

#[tokio::test]
async fn an_earlier_result_is_not_changed_by_a_later_run() {
    // item 14, trap T6
    let model = script(r#"[{"Bob": "one"}, {"Bob": "two"}]"#);
    let bob = Assistant::new("Bob", model).unwrap();
    let chat = solo_chat("solo", bob, 1);
    let mut log = log().await;
    chat.run_in(&mut log, "go").await.unwrap();
    let first = Report::of_last_run(&log.events().await);
    let before = first.clone();
    chat.continue_with(&mut log, Message::new(polylogue::Name::user(), "more")).await.unwrap();
    assert_eq!(first, before);
    let texts = |report: &Report| -> Vec<String> {
        report.messages.iter().map(|message| message.text().into_owned()).collect()
    };
    let events = log.events().await;
    assert_eq!(texts(&first), ["go", "one"]);
    assert_eq!(texts(&Report::of_last_run(&events)), ["more", "two"]);
    assert_eq!(texts(&Report::of_all_runs(&events)), ["go", "one", "more", "two"]);
}
