//! The society that ships, run and over all combinations of its roles.

use serde_json::Value;

use crate::home::{Home, shipped};

#[test]
fn the_society_that_ships_plays_itself_and_shows_what_each_was_sent() {
    let home = Home::new();
    let ran = home.run(&["run", &shipped("society")]).ok();
    for part in
        ["Specifier (aside): ", "Instruction: Define the configuration", "get_history", "<CAMEL_TASK_DONE>"]
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
    let run = last["run"].as_str().unwrap();
    let sent = home.run(&["show", run, "--as", "Instructor"]).ok();
    assert!(sent.out.contains("You are Economist, and I am Teacher of Mathematics."), "{}", sent.out);
}
