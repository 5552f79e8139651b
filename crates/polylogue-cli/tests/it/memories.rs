//! What agents remember from one conversation to the next.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::home::{Home, serve, shipped};
use polylogue_test::server::{Answer, Playbook};

/// The events of the newest conversation that are of a type.
fn events(home: &Home, kind: &str) -> Vec<Value> {
    home.events().into_iter().filter(|event| event["type"] == kind).collect()
}

/// The texts of the facts, the newest first.
fn facts(home: &Home) -> Vec<Value> {
    home.run(&["memory", "list", "--json"]).ok().lines()
}

#[test]
fn the_team_that_ships_finds_in_its_second_run_what_its_first_wrote() {
    let home = Home::new();
    let team = shipped("remembers");
    let first = home.run(&["run", &team]).ok();
    assert!(first.out.contains("I have made a note of it."), "{}", first.out);
    assert!(events(&home, "prompted").is_empty(), "there was nothing to be reminded of");
    let looked_up: Vec<Value> =
        events(&home, "tool_returned").into_iter().map(|e| e["result"]["parts"].clone()).collect();
    assert_eq!(looked_up[1][0]["text"], "Nothing is remembered about that.");
    assert_eq!(looked_up[2][0]["text"], "Remembered as #1.");
    let first_id = home.id();
    let kept = facts(&home);
    assert_eq!(kept.len(), 1);
    for (key, value) in [
        ("id", json!(1)),
        ("scope", json!("guest Ann")),
        ("text", json!("Ann likes green tea without sugar.")),
        ("by", json!("Host")),
        ("conversation", json!(first_id)),
    ] {
        assert_eq!(kept[0][key], value, "{key}");
    }

    home.run(&["run", &team, "What may I offer Ann to drink?"]).ok();
    let shown = events(&home, "prompted");
    assert_eq!(shown.len(), 1);
    let text = shown[0]["text"].as_str().unwrap();
    assert!(text.contains("#1 (Host, 20") && text.ends_with("Ann likes green tea without sugar."), "{text}");
    let recalled = events(&home, "tool_returned");
    assert!(
        recalled[1]["result"]["parts"][0]["text"].as_str().unwrap().contains("green tea"),
        "{recalled:?}"
    );
    // What the model was sent: the reminder stands behind the question.
    let sent = home.run(&["show", "last", "--as", "Host", "--call", "1"]).ok().out;
    let (question, reminder) = (sent.find("What may I offer"), sent.find("green tea without sugar"));
    assert!(question.unwrap() < reminder.unwrap(), "{sent}");

    // Another guest has their own memory.
    home.run(&["run", &team, "--var", "guest=Bob"]).ok();
    assert!(events(&home, "prompted").is_empty());
    let whose: Vec<_> = facts(&home).iter().map(|fact| fact["scope"].as_str().unwrap().to_owned()).collect();
    assert_eq!(whose, ["guest Bob", "guest Ann"], "what is said again is kept once");
}

#[test]
fn facts_are_listed_found_and_forgotten() {
    let home = Home::new();
    let none = home.run(&["memory", "list"]).ok();
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", "no facts found\n"));
    let team = shipped("remembers");
    home.run(&["run", &team]).ok();
    home.run(&["run", &team, "--var", "guest=Bob"]).ok();
    let listed = home.run(&["memory", "list"]).ok().out;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines[0].starts_with("#2 ") && lines[0].contains("guest Bob") && lines[0].contains("Host"),
        "{listed}"
    );
    assert!(lines[1].ends_with("Ann likes green tea without sugar."), "{listed}");
    let found = |args: &[&str]| {
        let args: Vec<&str> = ["memory", "search"].iter().chain(args).copied().collect();
        let lines: Vec<Value> = home.run(&[&args[..], &["--json"]].concat()).ok().lines();
        lines.iter().map(|fact| fact["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found(&["sugar tea"]), [1, 2]);
    assert_eq!(found(&["TEA*\" OR (", "--scope", "guest Bob"]), [2]);
    assert_eq!(found(&["Bob's tea", "--limit", "1", "--scope", "guest Ann"]), [1]);
    assert!(found(&["trains"]).is_empty() && found(&[""]).is_empty());
    let missing = home.run(&["memory", "forget", "#1", "9"]).exits(2);
    assert!(missing.err.contains("there is no fact #9"), "{}", missing.err);
    assert_eq!(facts(&home).len(), 2, "all or none");
    assert_eq!(home.run(&["memory", "forget", "#1"]).ok().out, "forgot #1\n");
    assert_eq!(facts(&home).len(), 1);
    home.run(&["memory", "forget", "1"]).exits(2);
    // The number is not given again, and the conversation still shows what was said.
    home.run(&["run", &team]).ok();
    assert_eq!(facts(&home)[0]["id"], 3);
    // Removing a conversation leaves its facts.
    let id = home.id();
    home.run(&["rm", &id]).ok();
    assert_eq!(facts(&home)[0]["conversation"].as_str().unwrap(), id);
}

#[test]
fn a_store_of_json_lines_has_no_memory_and_says_so() {
    let home = Home::new();
    let refused = home.run(&["run", &shipped("remembers"), "--store", "lines/"]).exits(2);
    assert!(refused.err.contains("as JSON lines, which have no memory"), "{}", refused.err);
    assert!(refused.err.contains("name a file for SQLite with `--store`"), "{}", refused.err);
    std::fs::create_dir(home.path("lines")).unwrap();
    home.run(&["memory", "list", "--store", "lines"]).exits(2);
    // A team without a memory does not mind.
    home.run(&["run", &shipped("two-people"), "--store", "lines"]).exits(5);
}

const CLERK: &str = "
name: clerk
model: openai:test
memory: {embed: openai:vectors}
agents: [{name: Clerk, memory: {auto_recall: 2}}]
chat: {participants: [Clerk], pattern: sequential}
";

/// The endpoint knows no embeddings: facts are found by their words, and the log says why that is all.
#[test]
fn a_server_without_embeddings_leaves_the_words() {
    let remembers = Answer::tool("remember", json!({"text": "The shop closes at six."}));
    let server = serve(Playbook::list([remembers, Answer::text("Noted."), Answer::text("At six.")]));
    let home = Home::at(&server);
    home.file("clerk.yaml", CLERK);
    home.run(&["run", "clerk.yaml", "The shop closes at six."]).ok();
    let ran = home.run(&["run", "clerk.yaml", "When does the shop close?"]).ok();
    let line = "\nfacts were looked for by words only: openai:vectors: the provider answered with status 404";
    assert_eq!(ran.out.matches(line).count(), 1, "{}", ran.out);
    let shown = events(&home, "prompted");
    assert!(shown[0]["text"].as_str().unwrap().contains("The shop closes at six."), "{shown:?}");
    let looked_up = events(&home, "tool_returned");
    let why = looked_up[0]["result"]["parts"][2]["text"].as_str().unwrap();
    assert!(
        why.starts_with("looked for by words only: openai:vectors: the provider answered with status 404"),
        "{why}"
    );
}

/// A resumed conversation takes the same path, even if facts were forgotten meanwhile.
#[test]
fn a_resumed_conversation_does_not_need_the_facts_it_recalled() {
    let home = Home::new();
    let team = "
name: pair
agents: [{name: Ann, memory: true}, {name: Me, human: true}]
chat: {participants: [Ann, Me], stop: {max_turns: 4}}
script:
  - Ann: {calls: [{tool: remember, args: {text: The tea is green.}}]}
  - Ann: Green, or black?
  - Ann: Then green it is.
";
    home.file("pair.yaml", team);
    home.run(&["run", "pair.yaml", "Which tea?"]).exits(5);
    let id = home.id();
    home.run(&["run", "pair.yaml", "Which tea is green?"]).exits(5);
    let second = home.id();
    assert_eq!(events(&home, "prompted").len(), 1);
    home.run(&["memory", "forget", "1"]).ok();
    for id in [id, second] {
        let resumed = home.run(&["resume", &id, "--answer", "Green tea"]).exits(5);
        assert!(resumed.out.contains("Then green it is."), "{}", resumed.out);
    }
    assert!(facts(&home).is_empty(), "what was forgotten is not written again");
}

/// An endpoint that makes vectors: the first number is drinks, the second opening hours. Returns its address.
fn senses() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the process of the test.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            embed(&stream.unwrap());
        }
    });
    format!("http://{address}/v1")
}

fn embed(mut stream: &TcpStream) {
    let (mut reader, mut line, mut length) = (BufReader::new(stream), String::new(), 0);
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(bytes) = line.to_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let has = |text: &str, words: [&str; 2]| i32::from(words.iter().any(|word| text.contains(word)));
    // Of any length that is at least 2.
    let length = body["dimensions"].as_u64().unwrap_or(2).max(2);
    let vector = |text: &str| {
        let senses = [has(text, ["tea", "beverage"]), has(text, ["closes", "evening"])];
        (0..length)
            .map(|at| senses.get(usize::try_from(at).unwrap()).copied().unwrap_or(0))
            .collect::<Vec<_>>()
    };
    let texts = body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let rows: Vec<Value> = texts.map(|text| json!({"embedding": vector(text)})).collect();
    let answer = json!({"data": rows, "usage": {"prompt_tokens": 7}}).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
}

/// Facts get vectors of the new length, and a length that the model does not have is an error that the log tells.
#[test]
fn the_team_sets_the_length_of_the_vectors() {
    let writes = Answer::tool("remember", json!({"text": "Ann is fond of tea."}));
    let answers =
        [writes, Answer::text("Noted."), Answer::text("Tea."), Answer::text("Tea."), Answer::text("?")];
    let server = serve(Playbook::list(answers));
    let home = Home::at(&server);
    let own = format!("endpoints: {{senses: {{base_url: \"{}\"}}}}\n", senses());
    let looks_up = |length: &str| {
        let keys = format!("embed: senses:toy{length}");
        home.file("clerk.yaml", &(own.clone() + &CLERK.replace("embed: openai:vectors", &keys)));
        home.run(&["run", "clerk.yaml", "Which beverage?", "--trust"]).ok();
        events(&home, "tool_returned")[0]["result"]["parts"].to_string()
    };
    looks_up("");
    for length in ["", ", dimensions: 5"] {
        let found = looks_up(length);
        assert!(found.contains("Ann is fond of tea."), "{length}: {found}");
    }
    let refused = looks_up(", dimensions: 1");
    assert!(refused.contains("its vectors have 2 dimensions instead of 1"), "{refused}");
}

/// No word of the question is in the fact.
#[test]
fn with_vectors_facts_are_found_by_what_they_mean() {
    let remember = |text: &str| json!({"text": text});
    let writes = Answer::tool("remember", remember("Ann is fond of tea."))
        .call("remember", remember("The shop closes at six."));
    let server = serve(Playbook::list([writes, Answer::text("Noted."), Answer::text("Tea.")]));
    let home = Home::at(&server);
    let own = format!("endpoints: {{senses: {{base_url: \"{}\"}}}}\n", senses());
    home.file("clerk.yaml", &(own + &CLERK.replace("openai:vectors", "senses:toy")));
    home.run(&["run", "clerk.yaml", "Good morning", "--trust"]).ok();
    home.run(&["run", "clerk.yaml", "Some beverage for the lady?"]).ok();
    let shown = events(&home, "prompted");
    let text = shown[0]["text"].as_str().unwrap();
    assert!(text.contains("Ann is fond of tea.") && !text.contains("closes"), "{text}");
}

/// What vectors cost is part of what the run cost, and of its budget.
#[test]
fn the_cost_of_embeddings_counts() {
    let playbook =
        || Playbook::list([Answer::tool("remember", json!({"text": "Tea."})), Answer::text("Noted.")]);
    let server = serve(playbook());
    let home = Home::at(&server);
    let own = format!("endpoints: {{senses: {{base_url: \"{}\"}}}}\n", senses());
    let team = own + &CLERK.replace("openai:vectors", "senses:toy");
    home.file("clerk.yaml", &format!("prices: {{\"openai:test\": free}}\n{team}"));
    let unknown = home.run(&["run", "clerk.yaml", "Good morning", "--max-cost", "1", "--trust"]).exits(2);
    assert!(unknown.err.contains("senses:toy"), "{}", unknown.err);
    assert_eq!(server.requests().len(), 0, "nothing was asked");

    // A dollar for 7 tokens, and every byte may be one.
    let prices = "prices: {\"senses:toy\": {input: 142857.142857, output: 0}, \"openai:test\": {input: 0, output: 0}}\n";
    home.file("priced.yaml", &(prices.to_owned() + &team));
    let over = home.run(&["run", "priced.yaml", "Good morning", "--max-cost", "0.5", "--trust"]).exits(4);
    assert!(over.out.contains("($0.00 spent, and the next call could cost up to $6.29)"), "{}", over.out);
    assert_eq!(server.requests().len(), 0, "looking facts up could take more than there is");
    // The same by a budget of the process, and by any of several at once.
    for (options, reason) in [
        (
            &["--budget", "0.5"][..],
            "the budget of this process has reached the limit of $0.50 ($0.00 spent, and the next call could cost up to $6.29)",
        ),
        (
            &["--budget", "7", "--max-cost", "0.5"],
            "limit: $0.50 ($0.00 spent, and the next call could cost up to $6.29)",
        ),
        (
            &["--budget", "7", "--budget-tokens", "20"],
            "the budget of this process has reached the limit of 20 tokens (0 used, ",
        ),
    ] {
        let over = home.run(&[&["run", "priced.yaml", "Good morning"][..], options].concat()).exits(4);
        assert!(over.out.contains(reason), "{options:?}: {}", over.out);
        assert_eq!(server.requests().len(), 0, "{options:?}");
    }
    let both = ["run", "priced.yaml", "Good morning", "--budget", "7", "--max-cost", "7"];
    let within = home.run(&both).ok();
    assert!(within.out.contains("$1.00"), "{}", within.out);
}

/// The digest that is stored with the newest conversation.
fn digest(home: &Home) -> Value {
    let store = polylogue_store::Sqlite::open(home.path("store.db")).unwrap();
    let id = polylogue_core::LogId::new(&home.id()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let meta = runtime.block_on(async { polylogue_core::Store::meta(&store, &id).await.unwrap() });
    meta.team["digest"].clone()
}

#[test]
fn a_demo_remembers_across_versions_of_the_program_unless_its_file_is_changed() {
    let home = Home::new();
    home.run(&["run", "demo:remembers"]).ok();
    assert_eq!(digest(&home), "demo:remembers", "whatever the content of this version");
    let second = home.run(&["run", "demo:remembers", "What may I offer Ann?"]).ok();
    assert!(!events(&home, "prompted").is_empty(), "{}", second.out);
    let demos = std::fs::read_dir(home.path(".cache/polylogue/demos")).unwrap().next().unwrap().unwrap();
    let file = demos.path().join("remembers.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("green tea", "black tea")).unwrap();
    let changed = home.run(&["run", file.to_str().unwrap(), "--offline"]).exits(2);
    assert!(changed.err.contains("is not trusted"), "{}", changed.err);
    // By its name it is the demo of the program again.
    home.run(&["run", "demo:remembers"]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}
