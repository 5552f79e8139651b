//! `--thoughts`: what models reason, also of those that hide it.

use polylogue_test::server::{Answer, Behavior, Playbook, Received};
use serde_json::Value;

use crate::home::{Home, KEY, of_type, serve};
use crate::remote::use_server;
use crate::serving::Serving;

const TEAM: &str = "
name: t
model: openai-responses:gpt-5
task: How much?
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: sequential}
";

const THOUGHT: &str = "Six times seven.";

/// A model that shows a summary of what it reasons only when it is asked for one.
fn behavior() -> Behavior {
    let play = |asked: &Received, _: usize| match asked.body["reasoning"].get("summary") {
        Some(_) => Answer::text("It is 42.").think(THOUGHT),
        None => Answer::text("It is 42."),
    };
    Behavior::from(Playbook::new(play)).key(KEY)
}

/// The digests of the requests in the log of the newest conversation.
fn digests(home: &Home) -> Vec<Value> {
    of_type(&home.events(), "model_replied").iter().map(|event| event["request"].clone()).collect()
}

#[test]
fn a_model_that_hides_its_reasoning_is_asked_for_a_summary() {
    let server = serve(behavior());
    let home = Home::at(&server).with_team(TEAM);
    let hidden = home.run(&["run", "team.yaml"]).ok();
    assert!(hidden.out.contains("It is 42.") && !hidden.out.contains(THOUGHT), "{}", hidden.out);
    let requests = digests(&home);
    assert_eq!(requests.len(), 2);
    let shown = home.run(&["run", "team.yaml", "--thoughts"]).ok();
    assert_eq!(shown.out.matches(THOUGHT).count(), 2, "{}", shown.out);
    assert_eq!(digests(&home), requests, "they are the same for the log");
    // So a conversation can be continued with and without it.
    home.run(&["run", "team.yaml", "--thoughts", "--max-turns", "1"]).exits(3);
    let resumed = home.run(&["resume", "last", "--max-turns", "5"]).ok();
    assert!(!resumed.out.contains(THOUGHT), "{}", resumed.out);
    assert_eq!(digests(&home), requests);
    // What the team says counts more.
    home.file("hidden.yaml", &TEAM.replace("{name: Ann}", "{name: Ann, parameters: {thinking: hidden}}"));
    let one = home.run(&["run", "hidden.yaml", "--thoughts"]).ok();
    assert_eq!(one.out.matches(THOUGHT).count(), 1, "{}", one.out);
    assert_eq!(server.violations(), [""; 0]);
}

#[test]
fn a_server_asks_for_summaries_if_it_was_started_so() {
    let server = serve(behavior());
    let mut home = Home::at(&server).with_team(TEAM);
    let serving = Serving::with(&home, &["team.yaml", "--listen", "127.0.0.1:0", "--thoughts"], true);
    use_server(&mut home, &serving);
    let shown = home.run(&["run", "team", "--thoughts"]).ok();
    assert_eq!(shown.out.matches(THOUGHT).count(), 2, "{}", shown.out);
    let (code, log) = serving.end();
    assert_eq!(code, Some(0), "{log}");
}
