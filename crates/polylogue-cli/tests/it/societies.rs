//! Teams that ship, over many roles and topics at once.

use polylogue_test::server::{Answer, Behavior, Playbook, Received};
use serde_json::Value;

use crate::home::{Home, KEY, serve, shipped};

#[test]
fn the_society_that_ships_plays_itself_and_shows_what_each_was_sent() {
    let home = Home::new();
    let ran = home.run(&["run", &shipped("society")]).ok();
    for part in
        ["Specifier (private): ", "Instruction: Define the configuration", "get_history", "<CAMEL_TASK_DONE>"]
    {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    let sent = home.run(&["show", "last", "--as", "Solver"]).ok();
    assert!(sent.out.contains("You are Python Programmer, and I am Stock Trader."), "{}", sent.out);
    assert!(!sent.err.contains("was changed"), "{}", sent.err);
}

#[test]
fn a_society_is_held_over_all_its_roles_and_tasks() {
    let home = Home::new();
    let (team, roles) = (shipped("society"), shipped("data/roles"));
    let batch = ["batch", &team, "--cross", &roles, "-o", "out.jsonl"];
    let ran = home.run(&batch).ok();
    assert!(ran.out.contains("\ndone            18 "), "{}", ran.out);
    let text = std::fs::read_to_string(home.path("out.jsonl")).unwrap();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [first, .., last] = &records[..] else { panic!("there are rows") };
    assert_eq!((&first["id"], &last["id"]), (&"001_001_001".into(), &"003_003_002".into()));
    let vars = serde_json::json!({"assistant": "Teacher of Mathematics", "user": "Economist"});
    assert_eq!((&last["vars"], &last["task"]), (&vars, &"Explain how a trading bot decides".into()));
    assert!(last["summary"].as_str().unwrap().starts_with("Solution: The program runs the bot"));
    let run = last["conversation"].as_str().unwrap();
    let sent = home.run(&["show", run, "--as", "Instructor"]).ok();
    assert!(sent.out.contains("You are Economist, and I am Teacher of Mathematics."), "{}", sent.out);
}

#[test]
fn a_blogger_writes_on_five_topics_at_once_each_in_a_conversation_of_its_own() {
    let home = Home::new();
    let (team, topics) = (shipped("blogger"), shipped("data/topics").replace(".yaml", ".jsonl"));
    let ran = home.run(&["batch", &team, "--over", &topics, "--at-once", "5", "-o", "posts.jsonl"]).ok();
    assert!(ran.out.contains("\ndone             5         35 "), "{}", ran.out);
    let text = std::fs::read_to_string(home.path("posts.jsonl")).unwrap();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let topics = ["AI", "Biotechnology", "New Energy", "Video Games", "Pop Music"];
    for (record, topic) in records.iter().zip(topics) {
        assert_eq!(record["vars"]["topic"], topic);
        let post = record["summary"].as_str().unwrap();
        assert!(post.starts_with(&format!("# Five minutes of {topic} a week")), "{post}");
        for other in topics.into_iter().filter(|other| *other != topic) {
            assert!(!record["messages"].to_string().contains(&format!("in {other}")), "{record}");
        }
    }
    // The critic reads drafts behind a prefix; in what was said it is not.
    let run = records[2]["conversation"].as_str().unwrap();
    let sent = home.run(&["show", run, "--as", "critic", "--call", "1"]).ok();
    assert!(sent.out.contains("Reflect and provide criticism"), "{}", sent.out);
    assert!(!records[2]["messages"].to_string().contains("Reflect and provide"));
}

#[test]
fn what_a_model_is_shown_before_a_conversation_is_shown_as_it_was_sent() {
    let home = Home::new();
    let ran = home.run(&["run", &shipped("few-shot")]).ok();
    assert!(ran.out.contains("【雨】") && !ran.out.contains("【晴】"), "{}", ran.out);
    let sent = home.run(&["show", "last", "--as", "Weather", "--json"]).ok();
    let entries = sent.lines()[0]["entries"].to_string();
    let at = |text: &str| entries.find(text).unwrap_or_else(|| panic!("{text}: {entries}"));
    assert!(at("今天天气") < at("【晴】") && at("【晴】") < at("昨天天气"));
    assert!(!sent.err.contains("was changed"), "{}", sent.err);
}

#[test]
fn a_society_is_held_at_an_endpoint_and_pays_no_reply_to_the_marker() {
    let play = |request: &Received, _: usize| {
        let messages = request.body["messages"].as_array().unwrap();
        let system = messages[0]["content"].as_str().unwrap_or_default();
        match (
            system.contains("RULES OF THE USER"),
            system.contains("RULES OF THE ASSISTANT"),
            messages.len(),
        ) {
            (true, _, 2) => Answer::text("Instruction: buy\nInput: None"),
            (true, ..) => Answer::text("<CAMEL_TASK_DONE>"),
            (_, true, _) => Answer::text("Solution: bought. Next request."),
            _ => Answer::text("Trade {wheat} for {{task}}."),
        }
    };
    let server = serve(Behavior::from(Playbook::new(play)).key(KEY));
    let home = Home::at(&server);
    let ran = home.run(&["run", &shipped("society"), "Trade {x}", "-m", "openai:test"]).ok();
    assert!(ran.out.contains("Trade {wheat} for {{task}}."), "{}", ran.out);
    let requests = server.requests();
    let system = |nth: usize| requests[nth].body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert_eq!(requests.len(), 1 + 2 * 2 - 1);
    let temperatures: Vec<_> = requests.iter().map(|request| request.body["temperature"].clone()).collect();
    assert_eq!(temperatures, [1.0, 0.2, 0.2, 0.2]);
    assert!(requests[0].body.to_string().contains("Trade {x}"));
    for nth in [1, 2, 3] {
        assert!(system(nth).contains("Never forget it:\nTrade {wheat} for {{task}}.\n"), "{}", system(nth));
    }
}
