//! Large results of tools are stored with the conversation, read again by the agent, and shown whole by `show -v`.

use crate::home::Home;

const TEAM: &str = r#"name: t
task: Read the list.
files: [list.txt]
agents:
  - name: Ann
    tools: [read_file]
    tool_limits: {max_output_bytes: 2000, large_results: store}
chat: {participants: [Ann], pattern: sequential}
script:
  - Ann: {calls: [{tool: read_file, args: {path: list.txt}}], expect: {tools: [read_file, read_result]}}
  - Ann: {calls: [{tool: read_result, args: {id: ID, search: "item 300 "}}]}
  - Ann: It is there.
"#;

/// The id in the line that `show` has of a stored result.
fn id_in(shown: &str) -> &str {
    shown.split("lines are stored as ").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default()
}

#[test]
fn a_large_result_is_stored_read_again_and_shown_whole() {
    let home = Home::new();
    let list: String = (1..=400).map(|nth| format!("item {nth} is here\n")).collect();
    home.file("list.txt", &list);
    // A first run tells the id, which depends on the text alone.
    home.file("team.yaml", TEAM);
    let first = home.run(&["run", "team.yaml", "--offline"]).ok().out;
    assert!(first.contains("`id` must be the 32 digits"), "{first}");
    let shown = home.run(&["show", "last"]).ok().out;
    let id = id_in(&shown);
    assert_eq!(id.len(), 32, "{shown}");
    home.file("team.yaml", &TEAM.replace("ID", id));
    home.run(&["run", "team.yaml", "--offline"]).ok();
    let shown = home.run(&["show", "last"]).ok().out;
    assert!(shown.contains("item 1 is here") && !shown.contains("item 200 is here"), "{shown}");
    assert!(shown.contains("item 300 is here"), "found by the search: {shown}");
    let whole = home.run(&["show", "last", "-v"]).ok().out;
    assert!((1..=400).all(|nth| whole.contains(&format!("item {nth} is here"))), "{whole}");
}
