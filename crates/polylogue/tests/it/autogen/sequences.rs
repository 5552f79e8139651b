//! Sequential chats: items 48 to 57. An unknown key in a chat's settings (item 57, trap T27) is a matter of team files:
//! in the library there are no keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polylogue::policies::{Carryover, Dag, sequential, with_termination};
use polylogue::runs::Report;
use polylogue::stop::max_turns;
use polylogue::{
    Act, Agent, AnyModel, Assistant, Chat, Function, Message, Name, Policy, Result, Turn, round_robin,
};
use polylogue_core::{AnyAgent, Body, ConfigError, Entry, Error, Event, Media, Part, PatternError, TaskFrom};

use crate::stage::{Asked, Spy, closed, log, name, run, script};

/// A chat of `a` and `b` in which `a` says `carry`, and then `turns` turns are taken.
fn pair(chat: &str, agents: (&AnyAgent, &AnyAgent), turns: u64, carry: &Carryover) -> Chat {
    let (a, b) = agents;
    let builder = Chat::builder(chat)
        .participant(a.clone())
        .participant(b.clone())
        .policy(with_termination(round_robin(), max_turns(turns)));
    carry.clone().author(a.name().clone()).apply_to(builder).build().unwrap()
}

fn assistant(who: &str, model: AnyModel) -> AnyAgent {
    AnyAgent::new(Assistant::new(who, model).unwrap())
}

fn in_sequence(chats: impl IntoIterator<Item = Chat>) -> Chat {
    ordered(sequential(), chats)
}

fn ordered(policy: impl Policy, chats: impl IntoIterator<Item = Chat>) -> Chat {
    let work = chats.into_iter().fold(Chat::builder("work"), |work, chat| work.participant(chat));
    work.policy(policy).build().unwrap()
}

/// The first message of every chat within the outermost, with who says it, in order.
fn openings(events: &[Arc<Event>]) -> Vec<String> {
    let opened = events.iter().filter(|event| !event.chat.is_root()).filter_map(|event| match &event.body {
        Body::Opened(opening) => opening.messages.last(),
        _ => None,
    });
    opened.map(|message| format!("{}: {}", message.from, message.text())).collect()
}

/// Three chats of Ann and Bob, in which Bob says "one", "two" and "three".
async fn three(second: Carryover, third: Carryover) -> Vec<String> {
    let model = script(r#"[{"Bob": "one"}, {"Bob": "two"}, {"Bob": "three"}]"#);
    let (ann, bob) = (assistant("Ann", model.clone()), assistant("Bob", model));
    let chat = |name, carry: &Carryover| pair(name, (&ann, &bob), 1, carry);
    let first = Carryover::message("A");
    let work = in_sequence([chat("first", &first), chat("second", &second), chat("third", &third)]);
    let (status, events) = run(&work, "").await;
    assert_eq!(closed(&status), ("every participant has spoken".into(), "three".into()));
    openings(&events)
}

#[tokio::test]
async fn results_of_earlier_chats_are_carried_over_one_per_line() {
    // item 48
    let said = three(Carryover::message("B"), Carryover::message("C")).await;
    assert_eq!(said, ["Ann: A", "Ann: B\nContext: \none", "Ann: C\nContext: \none\ntwo"]);
}

#[tokio::test]
async fn its_own_context_comes_first_and_excluded_chats_are_omitted() {
    // item 49
    let said =
        three(Carryover::message("B").context("extra"), Carryover::message("C").exclude([name("first")]))
            .await;
    assert_eq!(said, ["Ann: A", "Ann: B\nContext: \nextra\none", "Ann: C\nContext: \ntwo"]);
    let said = three(
        Carryover::message("B").exclude([name("first")]),
        Carryover::message("C").include([name("first")]),
    )
    .await;
    assert_eq!(said, ["Ann: A", "Ann: B", "Ann: C\nContext: \none"]);
}

#[tokio::test]
async fn results_come_in_order_and_each_chat_may_have_another_sender() {
    // item 50
    let model = script(r#"[{"Bob": "one"}, {"Cid": "two"}]"#);
    let agents = ["Ann", "Bob", "Cid"].map(|who| assistant(who, model.clone()));
    let [ann, bob, cid] = &agents;
    let work = in_sequence([
        pair("first", (ann, bob), 1, &Carryover::message("A")),
        pair("second", (bob, cid), 1, &Carryover::message("B")),
    ]);
    let (_, events) = run(&work, "").await;
    assert_eq!(openings(&events), ["Ann: A", "Bob: B\nContext: \none"]);
    let results: Vec<String> = Report::chats(&events)
        .iter()
        .map(|chat| {
            let (messages, calls) = (chat.messages.len(), chat.usage.calls);
            format!("{}: {}, {messages} messages, {calls} call", chat.chat, chat.summary)
        })
        .collect();
    assert_eq!(results, ["/first.1: one, 2 messages, 1 call", "/second.1: two, 2 messages, 1 call"]);
}

#[test]
fn a_chat_without_participants_fails_before_anything_runs() {
    // item 50
    let error =
        Carryover::message("A").apply_to(Chat::builder("first")).policy(round_robin()).build().unwrap_err();
    assert_eq!(error.to_string(), "`first` has no participants");
}

#[tokio::test]
async fn a_message_of_parts_gets_the_carryover_as_its_first_part() {
    // item 51, trap T24
    let picture =
        Part::Media(Media { media_type: "image/png".into(), url: "data:image/png;base64,AA==".into() });
    let spy = Spy::on(script(r#"[{"Bob": "one"}, {"Bob": "two"}]"#));
    let (ann, bob) = (assistant("Ann", spy.model()), assistant("Bob", spy.model()));
    let parts = vec![Part::text("What is this?"), picture.clone()];
    let work = in_sequence([
        pair("first", (&ann, &bob), 1, &Carryover::parts(parts.clone())),
        pair("second", (&ann, &bob), 1, &Carryover::parts(parts.clone())),
    ]);
    run(&work, "").await;
    let seen: Vec<Vec<Entry>> = spy.asked().into_iter().map(|asked| asked.entries).collect();
    let context = Part::text("\nContext: \none");
    let with_context = [vec![context], parts.clone()].concat();
    assert_eq!(seen, [vec![Entry::User { parts }], vec![Entry::User { parts: with_context }]]);
}

#[tokio::test]
async fn a_function_makes_the_whole_message_and_may_read_what_would_be_carried_over() {
    // item 51
    let alone = Carryover::custom(|_, me| format!("I am {me}"));
    let reading = Carryover::custom(|around, me| {
        let items = Carryover::message("").context("extra").items(around, me);
        format!("read {}", items.join("+"))
    });
    assert_eq!(three(alone, reading).await, ["Ann: A", "Ann: I am second", "Ann: read extra+one+two"]);
}

#[tokio::test]
async fn the_task_and_the_last_message_can_begin_a_chat() {
    let model = script(r#"[{"Bob": "one"}, {"Bob": "two"}, {"Bob": "three"}]"#);
    let (ann, bob) = (assistant("Ann", model.clone()), assistant("Bob", model));
    let work = in_sequence([
        pair("first", (&ann, &bob), 1, &Carryover::task()),
        pair("second", (&ann, &bob), 1, &Carryover::last()),
        pair("third", (&ann, &bob), 1, &Carryover::last()),
    ]);
    let (_, events) = run(&work, "go").await;
    // The last message is not carried over a second time.
    assert_eq!(openings(&events), ["Ann: go", "Ann: one", "Ann: two\nContext: \none"]);
}

#[tokio::test]
async fn a_chat_of_a_sequence_can_be_run_alone() {
    let said = async |task| {
        let bob = assistant("Bob", script(r#"[{"Bob": "one"}]"#));
        let ann = AnyAgent::new(Function::new("Ann", |_| Ok(Act::Pass)).unwrap());
        let (_, events) = run(&pair("first", (&ann, &bob), 1, &Carryover::message("A")), task).await;
        Report::of_last_run(&events).messages[0].text().into_owned()
    };
    assert_eq!((said("").await, said("go").await), ("A".to_owned(), "go".to_owned()));
}

/// What is asked in the second of two chats with the same recipient.
async fn second_start(keeps: bool) -> Vec<Entry> {
    let spy = Spy::on(script(r#"[{"Bob": "one"}, {"Bob": "two"}]"#));
    let (ann, bob) = (assistant("Ann", spy.model()), assistant("Bob", spy.model()));
    let chat = Chat::builder("second")
        .participant(ann.clone())
        .participant(bob.clone())
        .policy(with_termination(round_robin(), max_turns(1)));
    let chat = Carryover::message("B").author(name("Ann")).apply_to(chat);
    let second = if keeps { chat.continues(name("first")) } else { chat };
    let work =
        in_sequence([pair("first", (&ann, &bob), 1, &Carryover::message("A")), second.build().unwrap()]);
    run(&work, "").await;
    spy.asked().pop().unwrap().entries
}

#[tokio::test]
async fn a_repeated_recipient_begins_again_at_its_second_start_unless_that_chat_says_otherwise() {
    // item 52
    let last = Entry::user("B\nContext: \none");
    assert_eq!(second_start(false).await, std::slice::from_ref(&last));
    assert_eq!(second_start(true).await, [Entry::user("A"), Entry::assistant("one"), last]);
}

#[tokio::test]
async fn running_the_same_sequence_twice_says_the_same() {
    // item 53, trap T9
    let model = || script(r#"[{"Bob": "one"}, {"Bob": "two"}]"#);
    let (ann, bob) = (assistant("Ann", model()), assistant("Bob", model()));
    let work = in_sequence([
        pair("first", (&ann, &bob), 1, &Carryover::message("A").context("x")),
        pair("second", (&ann, &bob), 1, &Carryover::message("B").context("y")),
    ]);
    let (_, first) = run(&work, "").await;
    let (_, second) = run(&work, "").await;
    assert_eq!(first, second);
    assert_eq!(openings(&first), ["Ann: A\nContext: \nx", "Ann: B\nContext: \ny\none"]);
}

#[tokio::test]
async fn a_continued_sequence_carries_over_new_results() {
    let model = script(r#"[{"Bob": "one"}, {"Bob": "two"}, {"Bob": "three"}, {"Bob": "four"}]"#);
    let (ann, bob) = (assistant("Ann", model.clone()), assistant("Bob", model));
    let work = in_sequence([
        pair("first", (&ann, &bob), 1, &Carryover::last()),
        pair("second", (&ann, &bob), 1, &Carryover::message("B")),
    ]);
    let mut log = log().await;
    work.run_in(&mut log, "go").await.unwrap();
    work.continue_with(&mut log, Message::new(Name::user(), "more")).await.unwrap();
    let said = openings(&log.events().await);
    assert_eq!(said, ["Ann: go", "Ann: B\nContext: \none", "Ann: more", "Ann: B\nContext: \nthree"]);
}

/// An agent that does arithmetic on every number it is given, as the document's agents do.
fn operator(who: &str, operation: fn(i64) -> i64) -> AnyAgent {
    let act = move |turn: &Turn<'_>| {
        let said = turn.last_message().map(|line| line.message.text().into_owned()).unwrap_or_default();
        let numbers = said.lines().filter_map(|line| line.trim().parse::<i64>().ok());
        let results: Vec<String> = numbers.map(|number| operation(number).to_string()).collect();
        Ok(Act::say(results.join("\n")))
    };
    AnyAgent::new(Function::new(who, act).unwrap())
}

#[tokio::test]
async fn the_arithmetic_of_the_document() {
    // item 54
    let number = operator("Number_Agent", |number| number);
    let [adder, multiplier, subtracter, divider] = [
        operator("Adder_Agent", |number| number + 1),
        operator("Multiplier_Agent", |number| number * 2),
        operator("Subtracter_Agent", |number| number - 1),
        operator("Divider_Agent", |number| number / 2),
    ];
    let numbers = Carryover::message("These are my numbers");
    // Two turns of each: the sender's message, and three turns more.
    let work = in_sequence([
        pair("add", (&number, &adder), 3, &Carryover::message("14")),
        pair("multiply", (&number, &multiplier), 3, &numbers),
        pair("subtract", (&number, &subtracter), 3, &numbers),
        pair("divide", (&number, &divider), 3, &numbers),
    ]);
    let (_, events) = run(&work, "").await;
    let results: Vec<String> = Report::chats(&events).iter().map(|chat| chat.summary.to_string()).collect();
    assert_eq!(results, ["16", "64", "14\n62", "4\n16\n3\n15"]);
    assert_eq!(openings(&events)[3], "Number_Agent: These are my numbers\nContext: \n16\n64\n14\n62");
}

/// Speaks after a while, and knows how many spoke at the same time.
struct Slow(Name, Arc<AtomicU64>, Arc<AtomicU64>);

impl Agent for Slow {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, _: &mut Turn<'_>) -> Result<Act> {
        let now = self.1.fetch_add(1, Ordering::SeqCst) + 1;
        self.2.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.1.fetch_sub(1, Ordering::SeqCst);
        Ok(Act::say(format!("by {}", self.0)))
    }
}

#[tokio::test(start_paused = true)]
async fn chats_begin_when_their_prerequisites_are_finished_and_independent_ones_overlap() {
    // item 55
    let (now, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let slow = |who: &str| AnyAgent::new(Slow(name(who), Arc::clone(&now), Arc::clone(&most)));
    let order = Dag::new([
        ("facts", vec![]),
        ("prices", vec![]),
        ("report", vec!["facts", "prices"]),
        ("checks", vec!["report", "prices"]),
        ("notes", vec![]),
    ])
    .unwrap();
    let ann = slow("Ann");
    // `report` comes first, and no chat waits for it without need.
    let chats = ["report", "facts", "prices", "checks", "notes"].map(|chat| {
        let carry = Carryover::message(format!("Do {chat}")).dependencies_of(&order);
        let carry = if chat == "checks" { carry.exclude([name("prices")]) } else { carry };
        pair(chat, (&ann, &slow(&format!("{chat}er"))), 1, &carry)
    });
    let begun = tokio::time::Instant::now();
    let (_, events) = run(&ordered(order, chats), "").await;
    assert_eq!((begun.elapsed().as_secs(), most.load(Ordering::SeqCst)), (3, 3));
    let mut said = openings(&events);
    said[..3].sort();
    assert_eq!(
        said,
        [
            "Ann: Do facts",
            "Ann: Do notes",
            "Ann: Do prices",
            "Ann: Do report\nContext: \nby factser\nby priceser",
            // Not what the prerequisites of its prerequisites came to.
            "Ann: Do checks\nContext: \nby reporter",
        ]
    );
}

#[tokio::test]
async fn impossible_dependencies_are_an_error_before_anything_runs() {
    // item 56, trap T37
    let refused = |chats: &[(&str, Vec<&str>)]| Dag::new(chats.to_vec()).unwrap_err().to_string();
    let cycle = Dag::new([("a", vec!["b"]), ("b", vec!["a"])]).unwrap_err();
    assert!(
        matches!(&cycle, Error::Config(ConfigError::Pattern(PatternError::Cycle { chats })) if chats.len() == 3),
        "a program can tell the cause: {cycle:?}"
    );
    assert_eq!(refused(&[("a", vec!["b"]), ("b", vec!["a"])]), "chats depend on each other: a -> b -> a");
    assert_eq!(refused(&[("a", vec!["z"])]), "unknown chat `z` in the dependencies of `a`");
    assert_eq!(refused(&[("a", vec![]), ("a", vec![])]), "the chat `a` is listed twice");

    let spy = Spy::on(script("[]"));
    let (ann, bob) = (assistant("Ann", spy.model()), assistant("Bob", spy.model()));
    let order = Dag::new([("first", vec![]), ("second", vec!["first"])]).unwrap();
    let work = ordered(order, [pair("first", (&ann, &bob), 1, &Carryover::message("A"))]);
    let error = work.run_in(&mut log().await, "").await.unwrap_err();
    assert_eq!(error.to_string(), "the policy of `work` has `second` in its order, who is not a participant");
    let asked: Vec<Asked> = spy.asked();
    assert!(asked.is_empty());
}

#[tokio::test]
async fn a_participant_that_is_not_listed_waits_for_none() {
    // item 56: nothing is dropped in silence
    let model = script(r#"[{"Bob": "one"}, {"Cid": "two"}]"#);
    let agents = ["Ann", "Bob", "Cid"].map(|who| assistant(who, model.clone()));
    let [ann, bob, cid] = &agents;
    let order = Dag::new([("first", vec![])]).unwrap();
    let chats = [
        pair("first", (ann, bob), 1, &Carryover::message("A")),
        pair("other", (ann, cid), 1, &Carryover::message("B")),
    ];
    let (status, _) = run(&ordered(order, chats), "").await;
    assert_eq!(closed(&status).1, "two");
}

#[tokio::test]
async fn private_messages_are_carried_over_to_those_they_are_for() {
    let model = script(r#"[{"Bob": "one"}]"#);
    let (ann, bob) = (assistant("Ann", model.clone()), assistant("Bob", model));
    let whisper = Function::new("whisper", |_| Ok(Act::say("psst"))).unwrap();
    let policy = |chat: &polylogue::Transcript| match chat.turns() {
        0 => polylogue::Step::Turn(polylogue_core::TurnRequest {
            to: polylogue_core::Audience::Only(vec![name("first")]),
            ..polylogue_core::TurnRequest::to_all(name("whisper"))
        }),
        _ => sequential().next(chat),
    };
    let first = pair("first", (&ann, &bob), 1, &Carryover::message("A"));
    let second = Chat::builder("second").participant(Function::new("Cid", |_| Ok(Act::say("x"))).unwrap());
    let second = second
        .policy(with_termination(round_robin(), max_turns(1)))
        .task_from(Carryover::message("B").task_from());
    let work = Chat::builder("work")
        .participant(whisper)
        .participant(first)
        .participant(second.build().unwrap())
        .policy(policy);
    let (_, events) = run(&work.build().unwrap(), "").await;
    assert_eq!(openings(&events), ["Ann: A\nContext: \npsst", "user: B\nContext: \none"]);
    let _: TaskFrom = Carryover::task().task_from();
}

#[tokio::test]
async fn a_participant_that_left_is_not_waited_for() {
    let leaves = || Function::new("first", |_| Ok(Act::Leave("tired".into()))).unwrap();
    let says = |who: &str| Function::new(who, |_| Ok(Act::say("here"))).unwrap();
    let order = Dag::new([("first", vec![]), ("second", vec!["first"]), ("third", vec!["second"])]).unwrap();
    let chat =
        Chat::builder("work").participant(leaves()).participant(says("second")).participant(says("third"));
    let chat = chat.policy(order).build().unwrap();
    let turns = |events: &[Arc<Event>]| {
        let requests = events.iter().filter_map(|event| match &event.body {
            Body::TurnStarted { turns } => Some(turns),
            _ => None,
        });
        requests.flatten().map(|turn| turn.who.to_string()).collect::<Vec<_>>()
    };
    let mut log = log().await;
    let ended = chat.run_in(&mut log, "").await.unwrap();
    assert_eq!(turns(ended.events()), ["first", "second", "third"]);
    assert_eq!(closed(&ended.status).1, "here");
    // When the conversation continues, it is still gone, and the others have their turns again.
    let again = chat.continue_with(&mut log, "again").await.unwrap();
    assert_eq!(turns(again.events())[3..], ["second", "third"]);
}
