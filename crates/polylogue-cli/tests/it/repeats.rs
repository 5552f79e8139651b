//! No paragraph is printed twice, unless participants said it twice.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::home::{Home, shipped};

/// From so many characters on, a single line is more than a line of most terminals.
const LONG: usize = 200;

/// The teams that ship.
pub(crate) fn teams() -> BTreeSet<String> {
    let folder = shipped("x").replace("x.yaml", "");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned)).collect()
}

/// A text that the log has.
struct Text {
    at: String,
    text: String,
    is_private: bool,
}

/// What participants said, each text once: what a chat passes on from the chats within it, or to them, is not said again.
fn said(events: &[Value]) -> Vec<Text> {
    let mut all: Vec<Text> = Vec::new();
    for event in events {
        let at = event["chat"].as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let messages = match event["type"].as_str().unwrap() {
            "message" | "posted" | "sent" => vec![event.clone()],
            "opened" => list(&event["messages"]),
            "reopened" if !event["message"].is_null() => vec![event["message"].clone()],
            _ => Vec::new(),
        };
        for message in messages {
            let parts = list(&message["parts"]);
            let text: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            let is_private = message["to"]["only"].as_array().is_some_and(Vec::is_empty);
            let is_below = |one: &str, other: &str| one.len() > other.len() && one.starts_with(other);
            let is_passed_on =
                |known: &Text| known.text == text && (is_below(&known.at, &at) || is_below(&at, &known.at));
            if !all.iter().any(is_passed_on) {
                all.push(Text { at: at.clone(), text, is_private });
            }
        }
    }
    all
}

/// The prompts, which are shown with `--verbose`.
fn prompts(events: &[Value]) -> Vec<String> {
    let of = |event: &Value| {
        let turns = event["turns"].as_array().cloned().unwrap_or_default();
        let private = turns.iter().filter_map(|turn| turn["prompt"].as_str().map(str::to_owned));
        let own = event["text"].as_str().filter(|_| event["type"] == "prompted").map(str::to_owned);
        private.chain(own).collect::<Vec<_>>()
    };
    events.iter().flat_map(of).collect()
}

/// The results of tools.
fn results(events: &[Value]) -> Vec<String> {
    let returned = events.iter().filter(|event| event["type"] == "tool_returned");
    let parts = |event: &Value| event["result"]["parts"].as_array().cloned().unwrap_or_default();
    returned.map(|event| parts(event).into_iter().filter_map(text_of).collect()).collect()
}

/// Lines without the blanks around them, and without blank lines.
fn normal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// The paragraphs of more than a line in everything that models, people and policies wrote; of a long line its beginning.
fn paragraphs(events: &[Value]) -> BTreeSet<String> {
    let mut texts = prompts(events);
    texts.extend(said(events).into_iter().map(|said| said.text));
    let replies = events.iter().filter(|event| event["type"] == "model_replied");
    texts.extend(replies.flat_map(|event| event["parts"].as_array().unwrap().clone()).filter_map(text_of));
    texts.extend(events.iter().filter_map(|event| event["summary"].as_str().map(str::to_owned)));
    let long = |paragraph: &str| match paragraph.contains('\n') {
        true => Some(paragraph.to_owned()),
        false => (paragraph.chars().count() > LONG).then(|| paragraph.chars().take(LONG / 2).collect()),
    };
    texts.iter().flat_map(|text| text.split("\n\n")).map(normal).filter_map(|text| long(&text)).collect()
}

fn text_of(part: Value) -> Option<String> {
    part["text"].as_str().map(str::to_owned)
}

/// The paragraphs that `out` has more often than participants said them.
fn repeated(out: &str, events: &[Value], verbose: bool) -> Vec<String> {
    let out = normal(out);
    let mut known: Vec<String> = said(events)
        .iter()
        .filter(|said| verbose || !said.is_private)
        .map(|said| normal(&said.text))
        .collect();
    if verbose {
        known.extend(prompts(events).iter().map(|prompt| normal(prompt)));
        let results = results(events).into_iter().map(|result| normal(&result));
        let news: Vec<String> = results.filter(|result| !known.contains(result)).collect();
        known.extend(news);
    }
    let count = |text: &str, paragraph: &str| text.matches(paragraph).count();
    let is_repeated = |paragraph: &String| {
        let said: usize = known.iter().map(|text| count(text, paragraph)).sum();
        count(&out, paragraph) > said.max(1)
    };
    paragraphs(events).into_iter().filter(is_repeated).collect()
}

fn check(options: &[&str]) {
    let verbose = options.contains(&"-v");
    let mut wrong = Vec::new();
    for team in teams() {
        let home = Home::new();
        let file = shipped(&team);
        let ran = home.run(&[&["run", &file, "--offline", "--allow", "mcp"], options].concat());
        assert!([0, 5].contains(&ran.code), "{team}: {}", ran.err);
        let events = home.events();
        let shown = if verbose { home.run(&["show", "last"]).ok().out } else { String::new() };
        for out in [&ran.out, &shown] {
            let twice = repeated(out, &events, verbose).into_iter();
            wrong.extend(twice.map(|text| format!("{team}: {text}")));
        }
    }
    assert!(wrong.is_empty(), "printed twice: {wrong:#?}");
}

#[test]
fn no_team_that_ships_prints_a_paragraph_twice() {
    check(&[]);
}

#[test]
fn no_team_that_ships_prints_a_paragraph_twice_when_it_is_verbose() {
    check(&["-v"]);
}

/// The check above finds what a fold that repeats itself would print.
#[test]
fn a_paragraph_that_is_printed_twice_is_found() {
    let home = Home::new();
    let plan =
        "1. Scout: length, climb and time of the path.\n2. Cook: food and water for that.\n3. Sum up.\n";
    let ran = home.run(&["run", &shipped("expedition"), "--offline"]).ok();
    let (head, rest) = ran.out.split_once("Leader -> all:").unwrap();
    let broken = format!("{head}Leader (private): {plan}\nLeader -> all:{rest}");
    let events = home.events();
    assert_eq!(repeated(&broken, &events, false), [plan.trim()]);
    let ledger = events.iter().find_map(|event| event["turns"][0]["choice"]["reply"].as_str()).unwrap();
    let broken = format!("{}Leader (private): {ledger}\n\nthe reply was: {ledger}\n", ran.out);
    assert_eq!(repeated(&broken, &events, false).len(), 1);
    home.run(&["run", &shipped("planner-coder"), "--offline"]).ok();
    let events = home.events();
    let plan = said(&events).into_iter().find(|said| said.text.starts_with("1. ")).unwrap().text;
    let broken = format!("Planner:\n{plan}\n\nDesk -> Coder:\n{plan}\n");
    assert_eq!(repeated(&broken, &events, false), [plan.trim()]);
}
