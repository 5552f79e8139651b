//! Debates and votes.

use expect_test::expect;
use polylogue::policies::debate::{Debate, Tie, VoteResult};
use polylogue::policies::with_late_joiner;
use polylogue::stop::says;
use polylogue::{Act, Chat, Function, Human, Message, Name, Status, Transcript};
use polylogue_core::{JoinHistory, Path, StopReason};

use crate::beyond::stage::{Cast, events, events_with, fails, log, name, play, print};

const OPTIONS: [&str; 3] = ["red", "dark red", "blue"];

fn council(cast: &Cast<'_>, debate: Debate) -> Chat {
    cast.chat(&["A", "B", "C"]).private_agent(cast.assistant("Chair")).policy(debate).build().unwrap()
}

fn debate() -> Debate {
    Debate::between(OPTIONS).unwrap()
}

#[tokio::test]
async fn all_argue_at_once_then_vote_in_secret() {
    let script = r#"[{"A": {"say": "Red is warm", "delay_ms": 20}}, {"B": "Blue is calm"}, {"C": "Dark red is both"},
        {"A": {"say": "dark red", "expect": {"last": "1. red\n2. dark red\n3. blue"}}},
        {"B": {"say": "3", "delay_ms": 20}}, {"C": "I choose **Dark red**."}]"#;
    let events = events(script, |cast| council(cast, debate())).await;
    let said = print(&events).replace(" \"Vote for one of these options:\\n1. red\\n2. dark red\\n3. blue\\nAnswer with the option, or its number, and nothing else.\"", "");
    expect![[r#"
        opened [A, B, C] "task" | user: task
        turn A | turn B | turn C
        A says: Red is warm
        B says: Blue is calm
        C says: Dark red is both
        turn A in private | turn B in private | turn C in private
        A says in private: dark red
        B says in private: 3
        C says in private: I choose **Dark red**.
        closed (the vote was for `dark red`): dark red"#]]
    .assert_eq(&said);
    let tallies = debate().tallies(&Transcript::from_events(&Path::root(), &events).unwrap());
    let votes = vec![(name("A"), Some(1)), (name("B"), Some(2)), (name("C"), Some(1))];
    assert_eq!(tallies, [VoteResult { votes, counts: vec![0, 2, 1] }]);
}

#[tokio::test]
async fn one_by_one_for_two_rounds_with_a_jury_of_private_agents() {
    let script = r#"[{"A": "1"}, {"B": {"say": "2", "expect": {"last": "A: 1"}}}, {"A": "3"}, {"B": "4"},
        {"C": "red"}, {"Chair": "red"}]"#;
    let said = play(script, |cast| {
        let debate = debate().rounds(2).one_by_one().debaters([name("A"), name("B")]);
        council(cast, debate.voters([name("C"), name("Chair")]))
    })
    .await;
    let spoken: Vec<_> = said.lines().filter_map(|line| line.split_once(" says: ")).collect();
    assert_eq!(spoken, [("A", "1"), ("B", "2"), ("A", "3"), ("B", "4")]);
    assert!(said.ends_with("closed (the vote was for `red`): red"), "{said}");
}

#[tokio::test]
async fn an_unclear_voter_is_asked_once_more_and_then_abstains() {
    let script = r#"[{"A": "red or blue"}, {"B": ""}, {"C": "blue"},
        {"A": {"say": "green", "expect": {"last": "It is not clear which option `red or blue` is."}}}, {"B": "1"}]"#;
    let events = events(script, |cast| council(cast, debate().rounds(0).ask(|o| o.join("/")))).await;
    let said = print(&events);
    assert!(said.contains(r#"turn A in private "red/dark red/blue""#), "{said}");
    assert!(said.ends_with("closed (the vote was for `red`): red"), "the first of those tied: {said}");
    let tallies = debate().rounds(0).tallies(&Transcript::from_events(&Path::root(), &events).unwrap());
    assert_eq!(tallies[0].votes, [(name("A"), None), (name("B"), Some(0)), (name("C"), Some(2))]);
    assert_eq!(tallies[0].first(), [0, 2]);
}

const TIED: &str = r#"[{"A": "red"}, {"B": "blue"}, {"C": "hm"}, {"C": "hm"}"#;

#[tokio::test]
async fn the_chair_decides_a_tie_or_it_stays_undecided() {
    for (chair, end) in [
        (
            r#"{"Chair": {"say": "2", "expect": {"last": "1. red\n2. blue"}}}"#,
            "closed (the vote was tied, and Chair chose `blue`): blue",
        ),
        (
            r#"{"Chair": "dark red or not"}, {"Chair": "red"}"#,
            "closed (the vote was tied, and Chair chose `red`): red",
        ),
        (
            r#"{"Chair": "dark"}, {"Chair": "green"}"#,
            "closed (the vote was undecided): Undecided (red: 1; dark red: 0; blue: 1)",
        ),
    ] {
        let script = format!("{TIED}, {chair}]");
        let said =
            play(&script, |cast| council(cast, debate().rounds(0).tie(Tie::Chair(name("Chair"))))).await;
        assert!(said.ends_with(end), "{said}");
    }
    let said = play(&format!("{TIED}]"), |cast| council(cast, debate().rounds(0).tie(Tie::Undecided))).await;
    assert!(said.ends_with("Undecided (red: 1; dark red: 0; blue: 1)"), "{said}");
}

#[tokio::test]
async fn after_a_tie_they_argue_once_more_and_vote_again() {
    let again = r#"{"A": {"say": "warm", "expect": {"last": "The vote is tied (red: 1; dark red: 0; blue: 1)."}}},
        {"B": "calm"}, {"C": "both"}, {"A": "red"}, {"B": "red"}, {"C": "blue"}"#;
    let tie = |rounds| debate().rounds(0).tie(Tie::Again(rounds));
    let events = events(&format!("{TIED}, {again}]"), |cast| council(cast, tie(2))).await;
    assert!(print(&events).ends_with("closed (the vote was for `red`): red"));
    let tallies = tie(2).tallies(&Transcript::from_events(&Path::root(), &events).unwrap());
    assert_eq!(tallies.iter().map(|tally| tally.counts.clone()).collect::<Vec<_>>(), [[1, 0, 1], [2, 0, 1]]);
    let still = r#"{"A": "x"}, {"B": "y"}, {"C": "z"}, {"A": "red"}, {"B": "blue"}, {"C": ""}, {"C": "?"}"#;
    let said = play(&format!("{TIED}, {still}]"), |cast| council(cast, tie(1))).await;
    assert!(
        said.ends_with("closed (the vote was undecided): Undecided (red: 1; dark red: 0; blue: 1)"),
        "{said}"
    );
}

#[tokio::test]
async fn without_votes_it_is_undecided() {
    let script = r#"[{"A": ""}, {"B": ""}, {"C": ""}, {"A": ""}, {"B": ""}, {"C": ""}]"#;
    let said = play(script, |cast| council(cast, debate().rounds(0))).await;
    assert!(said.ends_with("closed (no participant said anything; the vote was undecided): "), "{said}");
}

#[tokio::test]
async fn a_participant_who_left_is_not_asked_again_and_an_earlier_vote_still_counts() {
    // Me votes in a tie, then leaves in the round after it.
    let script = r#"[{"A": "red"}, {"B": "x"}, {"B": "x"}, {"A": "still red"}, {"B": "oh"}, {"A": "red"}, {"B": "red"}]"#;
    let answers = |nth| ["blue", "exit"][nth];
    let events = events_with(script, &answers, |cast| {
        let builder = cast.chat(&["A", "B"]).participant(Human::new("Me").unwrap());
        builder.policy(debate().rounds(0).tie(Tie::Again(3))).build().unwrap()
    })
    .await;
    let tallies = debate()
        .rounds(0)
        .tie(Tie::Again(3))
        .tallies(&Transcript::from_events(&Path::root(), &events).unwrap());
    assert_eq!(tallies.iter().map(|tally| tally.counts.clone()).collect::<Vec<_>>(), [[1, 0, 1], [2, 0, 0]]);
}

#[tokio::test]
async fn a_debate_that_all_leave_or_one_stops_ends() {
    let leave = |who: &str| Function::new(who, |_| Ok(Act::Leave("bored".into()))).unwrap();
    let said = play("[]", |_| {
        Chat::builder("group")
            .participant(leave("A"))
            .participant(leave("B"))
            .policy(debate())
            .build()
            .unwrap()
    })
    .await;
    assert!(said.ends_with("closed (no participant is left; B left last: bored): "), "{said}");
    let stop = |_: &polylogue::Turn<'_>| Ok(Act::Stop(StopReason::Stopped { by: "fire".into() }));
    let said = play("[]", |_| {
        let builder = Chat::builder("group").participant(Function::new("A", stop).unwrap());
        builder.policy(debate()).build().unwrap()
    })
    .await;
    assert!(said.ends_with("closed (stopped by fire): "), "{said}");
}

#[tokio::test]
async fn a_second_debate_in_the_same_conversation_is_a_new_one() {
    let script: polylogue_models::Script =
        serde_json::from_str(r#"[{"A": "1"}, {"A": "red"}, {"A": "2"}, {"A": "blue"}]"#).unwrap();
    let a = polylogue::Assistant::new("A", polylogue::AnyModel::new(script.model("test"))).unwrap();
    let chat = Chat::builder("group").participant(a).policy(debate()).build().unwrap();
    let mut log = log().await;
    let red = chat.run_in(&mut log, "task").await.unwrap().status;
    let blue = chat.continue_with(&mut log, Message::new(Name::user(), "and now?")).await.unwrap().status;
    assert!(matches!(red, Status::Closed { summary, .. } if &*summary == "red"));
    assert!(matches!(blue, Status::Closed { summary, .. } if &*summary == "blue"));
}

#[tokio::test]
async fn invalid_debates_are_refused() {
    let refused = |options: &[&str]| Debate::between(options.to_vec()).unwrap_err().to_string();
    assert_eq!(refused(&["one"]), "a vote needs at least 2 options");
    assert_eq!(refused(&["one", " "]), "an option of a vote is blank");
    assert_eq!(refused(&["One", "two", "`one` "]), "the option ``one`` is listed twice");
    let error = fails("[]", |cast| council(cast, debate().rounds(0).voters([name("Absent")]))).await;
    assert!(error.contains("`Absent`, who is not a participant"), "{error}");
}

/// Who joins takes part from then on: in the round that is under way, and in no round that is over.
#[tokio::test]
async fn a_late_joiner_argues_and_votes_from_then_on() {
    let spoken = async |arguments: &str, debate: Debate| {
        let votes = ["A", "B", "L"].map(|who| format!(r#"{{"{who}": "red"}}"#)).join(", ");
        let script = format!("[{arguments}, {votes}]");
        let said = play(&script, |cast| {
            let policy = with_late_joiner(debate.clone(), name("L"), says("lawyer"), JoinHistory::All);
            cast.chat(&["A", "B"]).late_joiner(cast.assistant("L")).policy(policy).build().unwrap()
        })
        .await;
        assert_eq!(said.matches(" says in private: red").count(), 3, "{said}");
        let spoken = said.lines().filter_map(|line| line.split_once(" says: "));
        spoken.map(|(who, text)| format!("{who}{text}")).collect::<Vec<_>>().join(" ")
    };
    let rounds = |rounds| debate().rounds(rounds);
    let first = r#"{"A": "1"}, {"B": "1"}, {"A": "2 lawyer"}, {"B": "2"}"#;
    assert_eq!(spoken(first, rounds(2)).await, "A1 B1 A2 lawyer B2");
    let second = r#"{"A": "1 lawyer"}, {"B": "1"}, {"A": "2"}, {"B": "2"}, {"L": "2"}"#;
    assert_eq!(spoken(second, rounds(2)).await, "A1 lawyer B1 A2 B2 L2");
    let in_turn = r#"{"A": "1 lawyer"}, {"B": "1"}, {"L": "1"}, {"A": "2"}, {"B": "2"}, {"L": "2"}"#;
    assert_eq!(spoken(in_turn, rounds(2).one_by_one()).await, "A1 lawyer B1 L1 A2 B2 L2");
}
