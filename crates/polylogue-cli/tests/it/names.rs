//! Agents whose names have spaces and letters of any script, wherever the program takes or shows a name.

use expect_test::expect;
use polylogue_test::server::{Answer, Playbook, Received};
use serde_json::Value;

use crate::home::{Home, of_type, serve};

const TEAM: &str = "name: Mein Büro
task: Decide.
agents:
  - {name: Ai assistant 1, handoffs: [研究员], agent_tools: [Élodie]}
  - {name: 研究员, handoffs: [Ai assistant 1]}
  - {name: Élodie, description: Advises.}
  - {name: Kim O'Brien, human: true}
chat: {participants: [Ai assistant 1, 研究员, Kim O'Brien], pattern: {handoffs: {start: Kim O'Brien, then: Ai assistant 1}}, stop: {max_turns: 6}}
";

fn tools(request: &Received) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// An agent that can hand over does so, by the name of the tool; others say something.
fn reply(request: &Received, nth: usize) -> Answer {
    match tools(request).into_iter().find(|name| name.starts_with("transfer_to")) {
        Some(tool) if nth < 2 => Answer::text("").call(&tool, serde_json::json!({})),
        _ => Answer::text("Well."),
    }
}

#[test]
fn a_strict_server_takes_all_requests_and_a_resumed_run_names_tools_the_same() {
    for store in ["store.db", "talks/"] {
        let server = serve(Playbook::new(reply));
        let home = Home::at(&server).var("POLYLOGUE_STORE", store).with_team(TEAM);
        home.run(&["run", "team.yaml", "-m", "openai:test"]).exits(5);
        let ran = home.run(&["resume", "last", "--answer", "Begin.", "--quiet"]);
        assert!([0, 3, 5].contains(&ran.code), "{}\n{}", ran.out, ran.err);
        let offered: Vec<Vec<String>> = server.requests().iter().map(|request| tools(request)).collect();
        let first = ["Elodie-", "transfer_to-"];
        assert!(offered[0].iter().zip(first).all(|(name, begins)| name.starts_with(begins)), "{offered:?}");
        assert!(offered.iter().flatten().all(|name| name.is_ascii() && name.len() <= 64), "{offered:?}");
        assert_eq!(server.violations(), [""; 0]);
        let events: Vec<Value> = home.run(&["show", "last", "--json"]).ok().lines();
        let said: Vec<&str> =
            of_type(&events, "message").iter().map(|said| said["from"].as_str().unwrap()).collect();
        assert_eq!(&said[..2], ["Kim O'Brien", "Ai assistant 1"]);
        assert!(said.contains(&"研究员"), "{said:?}");
    }
}

/// What is kept and shown has the names as they are written.
#[test]
fn names_are_shown_looked_up_and_spoken_for() {
    let home = Home::new();
    let team = "name: Mein Büro
task: Decide.
agents: [{name: Ai assistant 1}, {name: Élodie}, {name: 研究员}]
chat: {participants: [Ai assistant 1, Élodie, 研究员], pattern: sequential}
script: [{Ai assistant 1: one}, {Élodie: two}, {研究员: three}, {Ai assistant 1: four}, {Élodie: five}, {研究员: six}]
";
    home.file("team.yaml", team);
    let ran = home.run(&["run", "team.yaml", "--offline"]).ok();
    expect![[r"
        participants: Ai assistant 1, Élodie, 研究员

        user -> all:
        Decide.

        Ai assistant 1 -> all:
        one

        Élodie -> all:
        two

        研究员 -> all:
        three
    "]]
    .assert_eq(&format!("{}\n", ran.out.split("\n\ndone").next().unwrap()));
    assert_eq!(home.listed()[0]["title"], "Mein Büro");
    let seen = home.run(&["show", "last", "--as", "E\u{301}lodie"]).ok();
    assert!(seen.out.contains("Ai assistant 1: one"), "{}", seen.out);
    let table = home.run(&["show", "last", "--side-by-side"]).ok();
    assert!(
        ["Ai assistant 1", "Élodie", "研究员"].iter().all(|name| table.out.contains(name)),
        "{}",
        table.out
    );
    let familiar = home.run(&["show", "last", "--style", "autogen"]).ok();
    assert!(familiar.out.contains("Ai assistant 1 (to "), "{}", familiar.out);
    let unknown = home.run(&["show", "last", "--as", "Ai assistant 2"]).exits(2);
    assert!(unknown.err.contains("Ai assistant 1"), "{}", unknown.err);
    home.run(&["resume", "last", "And now?", "--as", "Ai assistant 1", "--quiet"]).ok();
    let events = home.events();
    let from = |event: &&&Value| event["text"] == "And now?" || event.to_string().contains("And now?");
    let more = events.iter().collect::<Vec<_>>();
    assert!(more.iter().any(|event| from(&event) && event.to_string().contains("Ai assistant 1")));
    let refused = home.run(&["resume", "last", "x", "--as", "Ai assistant 9"]).exits(2);
    assert!(refused.err.contains("`Ai assistant 1`"), "{}", refused.err);
}
