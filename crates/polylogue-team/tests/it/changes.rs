//! What differs between two versions of a team.

use std::fs;
use std::path::Path;

use polylogue_team::{Overrides, Team, TeamChange, load};

const TEAM: &str = "name: t
description: A team.
task: Talk.
agents:
  - name: Ann
    system: You are brief.
    parameters: {temperature: 0.5}
  - name: Bob
chat: {participants: [Ann, Bob, desk], stop: {max_turns: 4}}
teams: [{name: desk, file: desk.yaml}]
files: [notes.txt]
";

const DESK: &str =
    "{name: desk, agents: [{name: Cy, system: On it}], chat: {participants: [Cy], pattern: sequential}}";

fn write(folder: &Path, team: &str, desk: &str, notes: &str) -> Team {
    fs::write(folder.join("t.yaml"), team).unwrap();
    fs::write(folder.join("desk.yaml"), desk).unwrap();
    fs::write(folder.join("notes.txt"), notes).unwrap();
    load(folder.join("t.yaml"), &Overrides::default()).unwrap_or_else(|e| panic!("{e}")).team
}

/// The changes to these texts, each harmless one in parentheses.
fn changes(team: &str, desk: &str, notes: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let old = write(folder.path(), TEAM, DESK, "one");
    write(folder.path(), team, desk, notes);
    let new = old.reload().unwrap().unwrap_or_else(|e| panic!("{e}")).team;
    let text = |change: &TeamChange| {
        let text = change.to_string().replace(&folder.path().display().to_string(), "");
        if change.is_harmless { format!("({text})") } else { text }
    };
    old.changes_to(&new).iter().map(text).collect()
}

#[test]
fn layout_and_comments_are_no_change() {
    assert_eq!(changes(&format!("# A comment.\n{TEAM}"), DESK, "one"), [""; 0]);
}

#[test]
fn changes_are_said_by_agent_and_key() {
    let team = TEAM
        .replace("You are brief.", "You are long, and like to explain everything twice.")
        .replace("temperature: 0.5", "temperature: 0.7, seed: 3")
        .replace("  - name: Bob\n", "  - name: Bo\n")
        .replace("Bob, desk", "Bo, desk")
        .replace("max_turns: 4", "max_turns: 6");
    assert_eq!(
        changes(&team, &DESK.replace("On it", "Off"), "two"),
        [
            "agent `Ann`: `system` has changed",
            "agent `Ann`: `parameters.temperature`: 0.5 -> 0.7",
            "agent `Ann`: `parameters.seed` was added",
            "agent `Bo` was added",
            "agent `Bob` was removed",
            "`chat.participants` has changed",
            "`chat.stop.max_turns`: 4 -> 6",
            "team `desk`: agent `Cy`: `system`: \"On it\" -> \"Off\"",
            "the file `/notes.txt` has changed",
        ]
    );
}

#[test]
fn what_a_begun_conversation_does_not_read_is_harmless() {
    let team = TEAM.replace("A team.", "The team.").replace("Talk.", "Speak.");
    let team = format!("{team}prices: {{'a:b': {{input: 1, output: 2}}}}\n");
    let found = changes(&team, DESK, "one");
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|change| change.starts_with('(')), "{found:?}");
}

/// The agents around it read its description when they choose or are introduced to each other.
#[test]
fn the_description_of_a_team_within_the_team_is_not_harmless() {
    let desk = DESK.replace("{name: desk,", "{name: desk, description: Knows all, task: Ask.,");
    assert_eq!(
        changes(TEAM, &desk, "one"),
        ["team `desk`: `description` was added", "(team `desk`: `task` was added)"]
    );
}

/// By the window a history is compacted: what the model receives depends on it.
#[test]
fn limits_of_models_among_prices_are_not_harmless() {
    let found = |old: &str, new: &str| {
        let folder = tempfile::tempdir().unwrap();
        let team = |price: &str| format!("{TEAM}prices: {{'a:b.c': {price}}}\n");
        let old = write(folder.path(), &team(old), DESK, "one");
        let new = write(folder.path(), &team(new), DESK, "one");
        old.changes_to(&new).iter().map(|change| (change.to_string(), change.is_harmless)).collect::<Vec<_>>()
    };
    let plain = "{input: 1, output: 2}";
    for (old, new, changes) in [
        (plain, "{input: 3, output: 2}", vec![("`prices.a:b.c.input`: 1.0 -> 3.0", true)]),
        (
            "{input: 1, output: 2, window: 100000}",
            "{input: 3, output: 2, window: 700}",
            vec![("`prices.a:b.c.input`: 1.0 -> 3.0", true), ("`prices.a:b.c.window`: 100000 -> 700", false)],
        ),
        (plain, "{input: 1, output: 2, max_output: 9}", vec![("`prices.a:b.c.max_output` was added", false)]),
        (
            plain,
            "[{input: 1, output: 2, window: 9, until: 2026-01-31}, {input: 1, output: 2, from: 2026-02-01}]",
            vec![("`prices.a:b.c` has changed", false)],
        ),
    ] {
        let changes: Vec<(String, bool)> =
            changes.into_iter().map(|(text, is_harmless)| (text.to_owned(), is_harmless)).collect();
        assert_eq!(found(old, new), changes, "{new}");
    }
}

#[test]
fn a_variable_is_a_change_where_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let with = |tone: &str| {
        let vars = format!("vars: {{tone: {tone}}}\ntask:");
        TEAM.replace("task:", &vars).replace("You are brief.", "You are {{tone}}.")
    };
    let found = |overrides: &Overrides| {
        write(folder.path(), &with("calm"), DESK, "one");
        let old = load(folder.path().join("t.yaml"), overrides).unwrap().team;
        write(folder.path(), &with("mild"), DESK, "one");
        let new = old.reload().unwrap().unwrap().team;
        let changes = old.changes_to(&new);
        changes.iter().map(|change| (change.to_string(), change.is_harmless)).collect::<Vec<_>>()
    };
    let of_variable = ("`vars.tone`: \"calm\" -> \"mild\"".to_owned(), true);
    let used = "agent `Ann`: `system`: \"You are calm.\" -> \"You are mild.\"".to_owned();
    assert_eq!(found(&Overrides::default()), [of_variable.clone(), (used, false)]);
    // The caller gave another value.
    let vars = [("tone".to_owned(), "wild".to_owned())].into();
    assert_eq!(found(&Overrides { vars, ..Overrides::default() }), [of_variable]);
}

#[test]
fn a_file_that_is_gone_or_wrong_is_no_other_version() {
    let folder = tempfile::tempdir().unwrap();
    let team = write(folder.path(), TEAM, DESK, "one");
    fs::remove_file(folder.path().join("desk.yaml")).unwrap();
    assert!(team.reload().is_none(), "what is there has not changed");
    fs::create_dir(folder.path().join("desk.yaml")).unwrap();
    assert!(team.reload().unwrap().is_err(), "what is there and no file has changed");
    fs::remove_dir(folder.path().join("desk.yaml")).unwrap();
    fs::write(folder.path().join("t.yaml"), TEAM.to_owned() + "# Changed.\n").unwrap();
    assert!(team.reload().unwrap().is_err(), "what else has changed is not passed over");
    fs::write(folder.path().join("t.yaml"), "name: t\nagent: []\n").unwrap();
    assert!(team.reload().unwrap().is_err());
    fs::remove_file(folder.path().join("t.yaml")).unwrap();
    assert!(team.reload().is_none());
}
