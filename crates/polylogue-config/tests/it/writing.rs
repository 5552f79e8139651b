//! What is written is read back as the same.

use polylogue_config::Config;
use polylogue_config::yaml;
use serde_json::json;

use super::team::{Refine, Team, WHOLE, read};

#[test]
fn a_team_is_written_and_read_back() {
    let team = read(WHOLE).0.unwrap();
    let written = team.write().to_string();
    let (again, found) = read(&written);
    assert_eq!(found, "");
    assert_eq!(again.unwrap().write(), team.write());
}

#[test]
fn defaults_are_not_written() {
    let team = read("name: x\nagents: [{name: A, human: false, description: '', memory: false}]\nchat: {participants: [A], max_turns: 100}\n").0.unwrap();
    assert_eq!(
        team.write(),
        json!({ "name": "x", "agents": [{ "name": "A" }], "chat": { "participants": ["A"] } })
    );
}

#[test]
fn a_hole_is_a_value_of_its_type() {
    let hole = Refine::hole();
    assert_eq!(hole.write(), json!({}));
    assert_eq!(Team::hole().agents.len(), 0);
    let source = polylogue_config::source::Source::new("x", "[1, 2]");
    let mut report = polylogue_config::diagnostic::Report::new(&source);
    assert!(yaml::parse(&mut report).is_some());
}
