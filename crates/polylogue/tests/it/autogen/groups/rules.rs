//! Who may follow whom: items 81 to 84.

use polylogue::policies::group::{Repeat, Transitions, Warning};
use polylogue::policies::{Selector, with_termination};
use polylogue::stop::max_turns;
use polylogue::{Error, Group, Name};
use polylogue_core::Chooser;

use super::*;
use crate::stage::{Spy, closed, log};

fn after(who: &str, names: &[&str]) -> (Name, Vec<Name>) {
    (name(who), names.iter().map(|who| name(who)).collect())
}

fn members() -> Vec<Name> {
    ["Ann", "Bob", "Cid"].map(name).to_vec()
}

fn error(group: &Group) -> String {
    match group.check(&members()).unwrap_err() {
        Error::Config(why) => why.to_string(),
        other => panic!("{other}"),
    }
}

// Item 81.
#[tokio::test]
async fn a_chain_ends_without_candidates_and_asks_no_model_with_a_single_one() {
    let spy = Spy::on(script("[]"));
    let chain = Transitions::allowed([after("Ann", &["Bob"]), after("Bob", &["Cid"])]);
    let group = Group::select_by_name(name("sel")).transitions(chain);
    let chat = begun_by_ann(group_chat(group).private_agent(Selector::new("sel", spy.model()).unwrap()));
    let (status, events) = run(&chat, "hi").await;
    assert_eq!(speakers(&events), "Ann Bob Cid");
    assert_eq!(closed(&status).0, "no participant may speak after Cid");
    assert!(choices(&events).iter().all(|choice| choice.by == Chooser::Only));
    assert!(spy.asked().is_empty());
}

// Item 82.
#[tokio::test]
async fn disallowed_transitions_are_the_complement() {
    // Ann may not follow herself, and Bob not her; Bob is followed by himself alone.
    let graph = Transitions::disallowed([after("Ann", &["Ann", "Bob"]), after("Bob", &["Ann", "Cid"])]);
    let chat = group_chat(with_termination(Group::round_robin().transitions(graph), max_turns(3)));
    let (_, events) = run(&begun_by_ann(chat), "hi").await;
    let among: Vec<Vec<Name>> = choices(&events).into_iter().map(|choice| choice.of).collect();
    // Nothing is said of Cid, so anyone may follow.
    assert_eq!(among, [vec![name("Cid")], members(), vec![name("Cid")]]);
    assert_eq!(speakers(&events), "Ann Cid Ann Cid");
}

// Item 82.
#[tokio::test]
async fn participants_who_may_speak_twice_can_be_listed() {
    let among = async |repeat| {
        let chat = group_chat(with_termination(Group::round_robin().repeat(repeat), max_turns(2)));
        let (_, events) = run(&begun_by_ann(chat), "hi").await;
        choices(&events).into_iter().map(|choice| choice.of).collect::<Vec<_>>()
    };
    let but = |who: &str| members().into_iter().filter(|name| *name != *who).collect::<Vec<_>>();
    assert_eq!(among(Repeat::Yes).await, [members(), members()]);
    assert_eq!(among(Repeat::No).await, [but("Ann"), but("Bob")]);
    assert_eq!(among(Repeat::Only(vec![name("Bob")])).await, [but("Ann"), members()]);
}

// Items 82 and 83. That a list is a list, and the kind of a graph given, the types see to.
#[test]
fn rules_that_contradict_or_name_unknown_participants_are_errors() {
    let graph = Transitions::allowed([after("Ann", &["Bob"])]);
    let both = Group::round_robin().transitions(graph).repeat(Repeat::Yes);
    assert_eq!(error(&both), "the group has transitions, but also a rule of repeats");
    let unknown = "unknown participant `Zoe` in the transitions of the group";
    let graph = |after| Group::round_robin().transitions(Transitions::allowed([after]));
    assert_eq!(error(&graph(after("Zoe", &["Ann"]))), unknown);
    assert_eq!(error(&graph(after("Ann", &["Zoe"]))), unknown);
    let repeat = Group::round_robin().repeat(Repeat::Only(vec![name("Zoe")]));
    assert_eq!(error(&repeat), "unknown participant `Zoe` in the rule of repeats of the group");
}

// Item 83: missing checks are reported before the first turn.
#[tokio::test]
async fn a_chat_checks_its_rules_before_the_first_turn() {
    let group = Group::round_robin().transitions(Transitions::allowed([after("Zoe", &["Ann"])]));
    let mut log = log().await;
    let error = group_chat(with_termination(group, max_turns(3)))
        .build()
        .unwrap()
        .run_in(&mut log, "hi")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the policy of `group` is invalid: unknown participant `Zoe` in the transitions of the group"
    );
    assert_eq!(log.events().await.len(), 1, "no participant had a turn");
}

// Item 83.
#[test]
fn what_is_hardly_meant_is_a_warning() {
    let graph = Transitions::allowed([after("Ann", &["Bob", "Bob", "Bob"]), after("Bob", &["Ann"])]);
    let warnings = Group::round_robin().transitions(graph).check(&members()).unwrap();
    let isolated = Warning::Isolated { who: name("Cid") };
    assert_eq!(warnings, [isolated, Warning::Twice { after: name("Ann"), next: name("Bob") }]);
    assert_eq!(warnings[0].to_string(), "the transitions lead no participant to `Cid`, and `Cid` to none");
    assert_eq!(warnings[1].to_string(), "the transition from `Ann` to `Bob` is listed twice");
    let fine = Transitions::disallowed([after("Ann", &["Ann"])]);
    assert_eq!(Group::round_robin().transitions(fine).check(&members()).unwrap(), []);
}

// Item 84, trap T11; that no way of choosing leads out of the graph is shown next to the ways of choosing.
#[tokio::test]
async fn an_empty_list_ends_the_run() {
    let graph = || Transitions::allowed([after("Ann", &[]), after("Bob", &["Ann"]), after("Cid", &["Ann"])]);
    for group in [Group::round_robin(), Group::random(Some(1)), Group::custom(|_, of| of[0].clone().into())] {
        let (status, events) = run(&begun_by_ann(group_chat(group.transitions(graph()))), "hi").await;
        assert_eq!(speakers(&events), "Ann");
        assert_eq!(closed(&status).0, "no participant said anything; no participant may speak after Ann");
    }
}

// Item 84, trap T11: a rule that leads out of the graph is an error.
#[tokio::test]
async fn a_custom_rule_cannot_leave_the_graph() {
    let graph = Transitions::allowed([after("Ann", &["Bob"])]);
    let group = Group::custom(|_, _| name("Cid").into()).transitions(graph);
    let error = begun_by_ann(group_chat(group)).run_in(&mut log().await, "hi").await.unwrap_err();
    assert_eq!(error.to_string(), "the policy of `group` picks `Cid` where only Bob may speak");
}
