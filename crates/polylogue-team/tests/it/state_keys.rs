//! The keys of the shared state: which ones agents can set, and which ones conditions read.

use std::fs;

use polylogue_team::{Overrides, load, parse};

use crate::common;

/// A team with these tools of its first agent, whose condition is `when`.
fn warnings(tools: &str, when: &str, overrides: &Overrides) -> String {
    let text = format!(
        "name: t\nmodel: openai:gpt-4o\nagents: [{{name: A, tools: [{tools}]}}, {{name: B}}]\n\
         chat: {{participants: [A, B], stop: {{when: \"{when}\", max_turns: 4}}}}\n"
    );
    parse(&text, "t.yaml", overrides).unwrap_or_else(|errors| panic!("{errors}")).warnings.to_string()
}

#[test]
fn a_condition_on_a_key_that_no_tool_sets_is_found_however_it_reads_the_key() {
    let keys = "{tool: set_state, keys: [approved, score]}";
    for when in ["has(state.aproved)", "state.aproved", "state['aproved'] == true", "'aproved' in state"] {
        let found = warnings(keys, when, &Overrides::default());
        assert!(found.contains("no agent can set `aproved` in `state`"), "{when}: {found}");
        assert!(found.contains("hint: did you mean `approved`?"), "{when}: {found}");
        let right = when.replace("aproved", "approved");
        assert_eq!(warnings(keys, &right, &Overrides::default()), "", "{right}");
    }
}

#[test]
fn nothing_is_said_where_a_tool_can_set_any_key() {
    let own = Overrides { tools: vec!["mine".to_owned()], ..Overrides::default() };
    let when = "has(state.aproved)";
    for (tools, overrides) in [("set_state", &Overrides::default()), ("chess, mine", &own)] {
        assert_eq!(warnings(tools, when, overrides), "", "{tools}");
    }
    assert!(warnings("chess", when, &own).contains("there are `chess_result`, `chess_to_move`"));
    assert!(warnings("calculator", when, &own).contains("`state` is always empty"));
}

#[test]
fn an_included_team_reads_what_the_teams_around_it_set() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let chat = "stop: {when: has(state.done), max_turns: 4}}\n";
    let inner =
        file("inner.yaml", &format!("name: i\nagents: [{{name: A}}]\nchat: {{participants: [A], {chat}"));
    let outer = file(
        "outer.yaml",
        "name: t\nagents: [{name: B, tools: [{tool: set_state, keys: [done]}]}]\nteams: [{name: i, file: inner.yaml}]\n\
         chat: {participants: [B, i], stop: {max_turns: 4}}\n",
    );
    let found =
        |path| load(path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}")).warnings.to_string();
    assert_eq!(found(&outer), "");
    assert!(found(&inner).contains("`state` is always empty"));
}

#[test]
fn keys_of_another_tool_are_an_error() {
    let text = "name: t\nagents: [{name: A, tools: [{tool: calculator, keys: [sum]}]}]\n\
                chat: {participants: [A], stop: {max_turns: 1}}\n";
    let error = common::wrong(text);
    assert!(
        error.starts_with("error: `calculator` sets no keys of the state\n --> t.yaml:2:47\n"),
        "{error}"
    );
    assert!(error.contains("hint: `set_state` has `keys`; leave them out here"), "{error}");
}
