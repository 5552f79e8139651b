//! Teams as agents and chats that run.

use std::cell::RefCell;
use std::fs;

use polylogue::stop::LibraryStopReason;
use polylogue::{Agent as _, AnyModel, Limits, Log, Status};
use polylogue_core::{ChatLimits, Money, Window};
use polylogue_models::Script;
use polylogue_team::{Overrides, Team, load};

use crate::common::team;

/// A team of two files: the inner one names no model.
fn of_two_files() -> Team {
    let folder = tempfile::tempdir().unwrap();
    let outer = "
name: outer
model: test:outer
agents: [{name: Ann, model: 'test:own'}, {name: Zoe}]
chat: {pattern: sequential, participants: [Ann, desk]}
teams: [{name: desk, file: inner.yaml}]
";
    let inner = "
name: inner
agents: [{name: Bob, system: 'On {{task}}'}]
chat: {pattern: sequential, participants: [Bob], summary: {reflect: {}}}
";
    fs::write(folder.path().join("outer.yaml"), outer).unwrap();
    fs::write(folder.path().join("inner.yaml"), inner).unwrap();
    load(folder.path().join("outer.yaml"), &Overrides::default()).unwrap_or_else(|e| panic!("{e}")).team
}

#[test]
fn a_model_comes_from_the_agent_its_team_or_the_team_around_it() {
    let asked = RefCell::new(Vec::new());
    let provide = |name: &str| {
        asked.borrow_mut().push(name.to_owned());
        Ok(AnyModel::new(Script::default().model("x")))
    };
    let assistants = of_two_files().assistants(&provide).unwrap();
    let names: Vec<_> = assistants.iter().map(|assistant| assistant.name().to_string()).collect();
    assert_eq!(names, ["Ann", "Zoe", "Bob", "desk_summary"]);
    assert_eq!(*asked.borrow(), ["test:own", "test:outer", "test:outer", "test:outer"]);
    assert_eq!(assistants[2].system_for("tides").as_deref(), Some("On tides"));
}

#[tokio::test]
async fn a_team_within_a_team_runs_as_one_participant() {
    let script: Script =
        serde_json::from_str(r#"[{"Ann": "Tides."}, {"Bob": "The moon."}, {"desk_summary": "Moon."}]"#)
            .unwrap();
    let model = script.model("x");
    let chat = of_two_files().build(&|_| Ok(AnyModel::new(model.clone()))).unwrap();
    let mut log = Log::in_memory();
    let status = chat.run_in(&mut log, "Why?").await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed { reason: LibraryStopReason::AllSpoken.into(), summary: "Moon.".into() }
    );
    model.finish().unwrap();
}

#[test]
fn a_team_without_a_model_cannot_be_built() {
    let team = team("{name: t, agents: [{name: Ann}], chat: {pattern: sequential, participants: [Ann]}}");
    let error = team.build(&|_| Ok(AnyModel::new(Script::default().model("x")))).unwrap_err();
    assert_eq!(error.to_string(), "`Ann` has no model");
}

#[test]
fn limits_and_views_arrive() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: Ann, view: {window: {messages: 9}}}],
          chat: {pattern: sequential, participants: [Ann], max_turns: 30,
                 stop: {max_turns: 40, any: [{max_tokens: 9}, {max_tokens: 8}], all: [{max_messages: 7}, {max_cost: 3.0}]}},
          limits: {calls: 5, tokens: 6, cost: 0.5, depth: 2}}",
    );
    let cost = Some(Money::dollars(0.5));
    let own = Some(Money::dollars(3.0));
    let chat = ChatLimits { turns: Some(30), messages: Some(7), tokens: Some(8), cost: own };
    assert_eq!(
        team.limits(),
        Limits { turns: None, calls: Some(5), tokens: Some(6), cost, depth: 2, chat, ..Limits::default() }
    );
    let assistants = team.assistants(&|_| Ok(AnyModel::new(Script::default().model("x")))).unwrap();
    assert_eq!(assistants[0].view_options().window, Window::Messages(9));
}

#[test]
fn a_team_may_be_made_of_other_teams_alone() {
    let folder = tempfile::tempdir().unwrap();
    let outer = "{name: all, model: 'a:b', chat: {pattern: sequential, participants: [desk]}, teams: [{name: desk, file: desk.yaml}]}";
    let desk = "{name: desk, agents: [{name: Ann}], chat: {pattern: sequential, participants: [Ann]}}";
    fs::write(folder.path().join("all.yaml"), outer).unwrap();
    fs::write(folder.path().join("desk.yaml"), desk).unwrap();
    let loaded =
        load(folder.path().join("all.yaml"), &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.warnings.to_string(), "");
    loaded.team.build(&|_| Ok(AnyModel::new(Script::default().model("x")))).unwrap();
}
