//! What holds of a group as a whole: items 74, 75, 86 to 88, and 91 to 96.

use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::Stack;
use polylogue::policies::group::introduce;
use polylogue::policies::{Selector, with_late_joiner, with_termination};
use polylogue::stop::LibraryStopReason;
use polylogue::stop::{max_messages, max_turns, says};
use polylogue::{Error, Group, Human, Log, Message, Status, round_robin};
use polylogue_core::{AnyStore, JoinHistory, LogId, Media, Part, StopReason, TaskFrom};
use polylogue_store::Memory;

use super::*;
use crate::autogen::people::talk;
use crate::common::solo_chat;
use crate::stage::{Spy, closed, log};

/// A group of agents that speak by one script, with what is sent to them.
fn scripted(spy: &Spy, names: &[&str], policy: impl Policy) -> ChatBuilder {
    let add = |chat: ChatBuilder, who: &&str| chat.participant(Assistant::new(who, spy.model()).unwrap());
    names.iter().fold(Chat::builder("group"), add).policy(policy)
}

// Items 74 and 75. All participants see the same text; the opening counts as a message.
#[tokio::test]
async fn all_participants_speak_in_order_and_see_the_same_with_names() {
    let spy =
        Spy::on(script(r#"[{"Bob": "b1"}, {"Cid": "c1"}, {"Ann": "a2"}, {"Bob": "b2"}, {"Cid": "c2"}]"#));
    let policy = with_termination(Group::round_robin(), max_messages(6));
    let (status, events) = run(&begun_by_ann(scripted(&spy, &["Ann", "Bob", "Cid"], policy)), "hi").await;
    assert_eq!(speakers(&events), "Ann Bob Cid Ann Bob Cid");
    assert_eq!(closed(&status), ("6 of 6 messages".into(), "c2".into()));
    assert_eq!(
        sent(&spy.asked()[4].entries),
        ["user: Ann: hi", "user: Bob: b1", "assistant: c1", "user: Ann: a2", "user: Bob: b2"]
    );
    // Where roles must alternate, the encoder writes a word of others before it.
    let begin = sent(&spy.asked()[2].entries);
    assert_eq!(begin, ["assistant: hi", "user: Bob: b1", "user: Cid: c1"]);
}

// Item 86. In AutoGen's asynchronous runs the others never saw it (T19).
#[tokio::test]
async fn a_terminating_message_ends_the_chat_before_the_next_selection() {
    let selector = Spy::on(script(r#"[{"sel": "Bob"}]"#));
    let policy = with_termination(Group::select_by_name(name("sel")), says("TERMINATE"));
    let bob = Function::new("Bob", |_| Ok(Act::say("done TERMINATE"))).unwrap();
    let chat = Chat::builder("group")
        .participant(speaker("Ann"))
        .participant(bob)
        .participant(speaker("Cid"))
        .policy(policy);
    let chat = begun_by_ann(chat.private_agent(Selector::new("sel", selector.model()).unwrap()));
    let (status, events) = run(&chat, "hi").await;
    assert_eq!(closed(&status).0, "Bob said `TERMINATE`");
    assert_eq!(selector.asked().len(), 1);
    for who in ["Ann", "Cid"] {
        let view =
            polylogue_core::View::of(&folded(&events), &name(who), polylogue_core::ViewOptions::default());
        assert_eq!(sent(view.entries()).last().unwrap(), "user: Bob: done TERMINATE");
    }
}

// Item 87.
#[tokio::test]
async fn a_persons_exit_and_a_participants_limit_end_the_run() {
    let bob = |human_input| Stack::new("Bob").unwrap().then(human_input).otherwise("auto");
    let trio = |human_input| {
        let chat = Chat::builder("group")
            .participant(speaker("Ann"))
            .participant(bob(human_input))
            .participant(speaker("Cid"));
        chat.policy(with_termination(Group::round_robin(), max_turns(20))).build().unwrap()
    };
    let (status, events) = talk(&trio(HumanInput::always()), "hi", &["well", "exit"]).await;
    assert!(
        matches!(&status, Status::Closed { reason: StopReason::Left { who, .. }, .. } if *who == "Bob"),
        "{status:?}"
    );
    assert_eq!(speakers(&events), "user Ann Bob Cid Ann");
    let (status, events) = run(&trio(HumanInput::never().max_auto_replies(1)), "hi").await;
    let limit = StopReason::from(LibraryStopReason::AutoReplies { who: name("Bob"), limit: 1 });
    assert!(matches!(&status, Status::Closed { reason, .. } if *reason == limit), "{status:?}");
    assert_eq!(speakers(&events), "user Ann Bob Cid Ann");
}

// Item 88, trap T23: introductions come first and once, also when the conversation continues.
#[tokio::test]
async fn participants_are_introduced_once_and_before_all_else() {
    let spy = Spy::on(script(r#"[{"Ann": "a1"}, {"Bob": "b1"}, {"Ann": "a2"}, {"Bob": "b2"}]"#));
    let member = |who: &str, about: &str| Assistant::new(who, spy.model()).unwrap().description(about);
    let chat = Chat::builder("group")
        .participant(member("Ann", "adds\nnumbers"))
        .participant(member("Bob", ""))
        .introduction_of(introduce)
        .policy(with_termination(Group::round_robin(), max_turns(2)))
        .build()
        .unwrap();
    let mut log = log().await;
    chat.run_in(&mut log, "hi").await.unwrap();
    chat.continue_with(&mut log, Message::new(polylogue::Name::user(), "more")).await.unwrap();
    let introduction = "user: Who is in this conversation:\nAnn: adds numbers\nBob";
    for asked in spy.asked() {
        let entries = sent(&asked.entries);
        assert_eq!(entries[0], introduction);
        assert_eq!(entries.iter().filter(|entry| *entry == introduction).count(), 1);
    }
    let transcript = folded(&log.events().await);
    assert_eq!(transcript.last_of(&name("Ann")).unwrap().message.text(), "a2");
    assert!(!transcript.messages().any(|line| line.message.text().contains("Who is in")));
}

/// The group of the document, as a participant of another chat: adds one and doubles.
fn numbers(spy: &Spy) -> ChatBuilder {
    scripted(spy, &["Adder", "Doubler"], with_termination(Group::round_robin(), max_turns(2)))
        .task_from(TaskFrom::Last)
}

const TWO_RUNS: &str = r#"[{"Adder": "4"}, {"Doubler": "8"}, {"Adder": "9"}, {"Doubler": "18"}]"#;

// Item 91.
#[tokio::test]
async fn a_group_twice_in_a_sequence_starts_again_with_the_first_result() {
    let spy = Spy::on(script(TWO_RUNS));
    let outer = Chat::builder("twice")
        .participant(numbers(&spy).build().unwrap())
        .policy(with_termination(round_robin(), max_turns(2)));
    let (status, _) = run(&outer.build().unwrap(), "3").await;
    assert_eq!(closed(&status).1, "18");
    assert_eq!(sent(&spy.asked()[2].entries), ["user: 8"]);
}

// Item 91.
#[tokio::test]
async fn a_group_twice_in_a_sequence_can_continue() {
    let spy = Spy::on(script(TWO_RUNS));
    let group = numbers(&spy).continues(name("group")).build().unwrap();
    let outer = solo_chat("twice", group, 2);
    let (status, _) = run(&outer, "3").await;
    assert_eq!(closed(&status).1, "18");
    assert_eq!(sent(&spy.asked()[2].entries), ["user: 3", "assistant: 4", "user: 8", "user: 8"]);
}

// Item 92, trap T20: an outsider begins, and the summary is the last message of the run all the same.
#[tokio::test]
async fn the_summary_is_the_last_message_whichever_agent_started() {
    let chat = group_chat(with_termination(Group::round_robin(), max_turns(2)));
    let (status, _) = run(&chat.build().unwrap(), "from outside").await;
    assert_eq!(closed(&status).1, "Bob 2");
    let (status, _) =
        run(&begun_by_ann(group_chat(with_termination(Group::round_robin(), max_turns(2)))), "from within")
            .await;
    assert_eq!(closed(&status).1, "Cid 2");
}

// Item 93, trap T22.
#[tokio::test]
async fn a_group_in_a_group_contributes_its_summary_and_the_outer_continues() {
    let inner = group_chat(with_termination(Group::round_robin(), max_turns(2))).build().unwrap();
    let outer = Chat::builder("house")
        .participant(speaker("Dan"))
        .participant(inner)
        .participant(speaker("Eve"))
        .policy(with_termination(Group::round_robin(), max_turns(3)));
    let (_, events) = run(&outer.build().unwrap(), "hi").await;
    let transcript = folded(&events);
    let said: Vec<_> = transcript.messages().map(|line| line.message.text().into_owned()).collect();
    assert_eq!(said, ["hi", "Dan 1", "Bob 2", "Eve 3"]);
}

// Item 94, trap T24.
#[tokio::test]
async fn pictures_survive() {
    let picture =
        || Part::Media(Media { media_type: "image/png".into(), url: "https://example.org/a.png".into() });
    let spy = Spy::on(script(r#"[{"Bob": "I see"}, {"Cid": "me too"}]"#));
    let ann = Function::new("Ann", move |_| Ok(Act::Say(vec![Part::text("look"), picture()]))).unwrap();
    let chat = Chat::builder("group")
        .participant(ann)
        .participant(Assistant::new("Bob", spy.model()).unwrap())
        .participant(Assistant::new("Cid", spy.model()).unwrap())
        .policy(with_termination(Group::round_robin(), max_turns(3)))
        .build()
        .unwrap();
    run(&chat, "hi").await;
    assert_eq!(spy.asked().len(), 2);
    for asked in spy.asked() {
        assert!(asked.entries.iter().any(|entry| entry.parts().contains(&picture())), "{asked:?}");
    }
}

// Item 95, trap T25: the next request is that of an uninterrupted run, with tools and late joiners.
#[tokio::test]
async fn a_group_continues_from_its_log() {
    const SCRIPT: &str = r#"[{"Ann": {"calls": [{"tool": "get_history", "args": {"limit": 1}}]}}, {"Ann": "a1"}, {"Bob": "b1"},
        {"Cid": "c1"}, {"Ann": "a2"}, {"Bob": "b2"}, {"sel": "Ann"}, {"sel": "Bob"}, {"sel": "Cid"}, {"sel": "Ann"}, {"sel": "Bob"}]"#;
    let build = |spy: &Spy, turns| {
        let member =
            |who| Assistant::new(who, spy.model()).unwrap().tool(polylogue::tools::GetHistory::default());
        let group =
            with_late_joiner(Group::select_by_name(name("sel")), name("Cid"), max_turns(2), JoinHistory::All);
        Chat::builder("group")
            .participant(member("Ann"))
            .participant(member("Bob"))
            .late_joiner(member("Cid"))
            .private_agent(Selector::new("sel", spy.model()).unwrap())
            .introduction_of(introduce)
            .policy(with_termination(group, max_turns(turns)))
            .build()
            .unwrap()
    };
    let whole = Spy::on(script(SCRIPT));
    run(&build(&whole, 5), "hi").await;
    let whole = whole.asked();
    for turns in 1..5 {
        let store = AnyStore::new(Memory::new());
        let (id, first, second) =
            (LogId::new("saved").unwrap(), Spy::on(script(SCRIPT)), Spy::on(script(SCRIPT)));
        let mut log = Log::create(store.clone(), id.clone()).await.unwrap();
        build(&first, turns).run_in(&mut log, "hi").await.unwrap();
        log.release().await.unwrap();
        let mut log = Log::open(store, id).await.unwrap();
        log.reopen().await.unwrap();
        build(&second, 5).resume(&mut log).await.unwrap();
        let asked: Vec<_> = first.asked().into_iter().chain(second.asked()).collect();
        assert_eq!(asked.len(), whole.len());
        for (one, other) in asked.iter().zip(&whole) {
            assert_eq!((&one.who, &one.system, &one.entries), (&other.who, &other.system, &other.entries));
        }
    }
}

// Item 96, trap T35.
#[test]
fn two_agents_of_a_group_cannot_have_the_same_name() {
    let twice = Chat::builder("group")
        .participant(speaker("Ann"))
        .participant(speaker("Ann"))
        .policy(Group::round_robin());
    let Err(Error::Config(why)) = twice.build() else { panic!("two agents have one name") };
    assert_eq!(why.to_string(), "two agents of `group` are named `Ann`");
    let selector = Selector::new("Ann", script("[]")).unwrap();
    let twice = Chat::builder("group")
        .participant(speaker("Ann"))
        .private_agent(selector)
        .policy(Group::round_robin());
    assert!(twice.build().is_err());
    let Err(Error::Config(why)) = Chat::builder("group").policy(Group::round_robin()).build() else {
        panic!("a group without participants")
    };
    assert_eq!(why.to_string(), "`group` has no participants");
}

// Members join when they are called, see what the rule says, and leave; the conversation continues (issue: joining and
// leaving).
#[tokio::test]
async fn late_joiners_see_the_configured_history() {
    let seen_by_cid = async |sees| {
        let spy = Spy::on(script(r#"[{"Ann": "a1"}, {"Bob": "b1 Cid!"}, {"Cid": "c1"}]"#));
        let member = |who| Assistant::new(who, spy.model()).unwrap();
        let chat = Chat::builder("group")
            .participant(member("Ann"))
            .participant(member("Bob"))
            .late_joiner(member("Cid"));
        let group = with_late_joiner(Group::round_robin(), name("Cid"), says("Cid!"), sees);
        let (_, events) =
            run(&chat.policy(with_termination(group, max_turns(3))).build().unwrap(), "hi").await;
        assert_eq!(speakers(&events), "user Ann Bob Cid");
        sent(&spy.asked()[2].entries)
    };
    assert_eq!(
        seen_by_cid(JoinHistory::All).await,
        ["user: user: hi", "user: Ann: a1", "user: Bob: b1 Cid!"]
    );
    assert_eq!(seen_by_cid(JoinHistory::New).await, ["user: Begin."]);
}

// A group of one has no other participant to talk to; one of two continues.
#[tokio::test]
async fn a_group_continues_until_one_is_left() {
    let human = |who: &str| Human::new(who).unwrap();
    let chat = Chat::builder("group")
        .participant(speaker("Ann"))
        .participant(human("Bob"))
        .participant(human("Cid"));
    let chat = chat.policy(with_termination(Group::round_robin(), max_turns(20))).build().unwrap();
    let (status, events) = talk(&chat, "hi", &["exit", "well", "exit"]).await;
    assert_eq!(speakers(&events), "user Ann Cid Ann");
    assert_eq!(closed(&status).0, "Cid left: said `exit`");
}

// A late joiner that was never added is a configuration error.
#[tokio::test]
async fn an_agent_that_is_no_participant_cannot_join() {
    let group = with_late_joiner(Group::round_robin(), name("Zoe"), max_turns(1), JoinHistory::All);
    let error = group_chat(group).build().unwrap().run_in(&mut log().await, "hi").await.unwrap_err();
    assert_eq!(error.to_string(), "the policy of `group` admits `Zoe`, who is not waiting to join");
}
