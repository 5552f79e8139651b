//! `show --as AGENT`: exactly what its model was sent, for every call.

use std::collections::BTreeMap;

use expect_test::expect;
use polylogue_test::server::{Answer, Behavior, History, Playbook, Received};
use serde_json::{Value, json};

use crate::home::{Home, serve};
use crate::models::{TALK, talk};

/// A chat within a chat, chats of three, a private opening, a prefix, windows, names shown and not, tools, an agent in
/// two rooms, reflected summaries.
const HOUSE: &str = r#"
name: house
task: Build a hut.
agents:
  - {name: Planner, system: "You are Planner. The task: {{task}}"}
  - {name: Ann, system: You are Ann., tools: [get_history], view: {window: {messages: 6}}}
  - {name: Bea, system: "You are Bea. The task: {{task}}", view: {prefix: {Ann: "Ann, who draws:"}}}
  - {name: Cleo, system: You are Cleo., view: {names: never, window: {tokens: 60}}}
chat:
  pattern: sequential
  participants: [Planner, room, Cleo]
  summary: {reflect: {prompt: What is the result?}}
chats:
  - name: room
    participants: [Ann, Bea, Cleo]
    opening: [{to: [Ann], text: You begin.}, {from: Bea, to: [Cleo], text: I follow.}]
    loop_detection: off
    stop: {max_turns: 12}
    summary: {reflect: {prompt: "What of {{task}}?"}}
"#;

const AGENTS: [&str; 8] =
    ["Planner", "Ann", "Bea", "Cleo", "Player", "Master", "room_summary", "house_summary"];

/// Which agent's model is asked. Those who sum up have no system text, and know the task of their chat.
fn who(received: &Received) -> &'static str {
    match received.system() {
        Some(system) => AGENTS.into_iter().find(|name| system.contains(&format!("You are {name}."))).unwrap(),
        None if received.last_text().contains("What is the result?") => "house_summary",
        None => "room_summary",
    }
}

/// Everyone says something of their own each time; Ann looks things up before.
fn builders() -> Playbook {
    Playbook::new(|received, nth| {
        let looked = received.messages().last().is_some_and(|message| message["role"] == "tool");
        match who(received) {
            "Ann" if !looked => {
                Answer::text("Let me see.").call("get_history", json!({"limit": nth % 3 + 1}))
            }
            name => Answer::text(format!("{name} says **{nth}** ü \"\\\n\nAnd more.")),
        }
    })
}

/// The messages of a request for `shown`, as a chat-completions server gets them.
fn messages(shown: &Value) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    messages.extend(shown["system"].as_str().map(|text| json!({"role": "system", "content": text})));
    for entry in shown["entries"].as_array().unwrap() {
        let role = entry["role"].as_str().unwrap();
        let parts = if role == "tool" { &entry["result"]["parts"] } else { &entry["parts"] };
        let text = texts(parts);
        messages.push(match role {
            "tool" => json!({"role": role, "tool_call_id": entry["id"], "content": text}),
            _ => with_calls(json!({"role": role, "content": text}), parts),
        });
    }
    messages
}

fn texts(parts: &Value) -> String {
    let texts = parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n\n")
}

fn with_calls(mut message: Value, parts: &Value) -> Value {
    let call = |call: &Value| {
        let function = json!({"name": call["tool"], "arguments": call["args"].to_string()});
        json!({"id": call["id"], "type": "function", "function": function})
    };
    let calls = parts.as_array().unwrap().iter().filter_map(|part| part.get("call")).map(call);
    let calls: Vec<Value> = calls.collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

/// Compares every call of every agent with what the server got. Gives how often each was asked.
fn compare(home: &Home, requests: &[std::sync::Arc<Received>]) -> BTreeMap<&'static str, usize> {
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    for request in requests {
        let name = who(request);
        let nth = asked.entry(name).or_default();
        *nth += 1;
        let ran = home.run(&["show", "last", "--as", name, "--call", &nth.to_string(), "--json"]).ok();
        assert_eq!(ran.err, "", "{name}, call {nth}");
        let shown = &ran.lines()[0];
        assert_eq!(Value::from(messages(shown)), request.body["messages"], "{name}, call {nth}");
        assert_eq!(shown["model"], "openai:test");
        let tools: Vec<&Value> =
            shown["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        let sent = request.body.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(tools, sent.iter().map(|tool| &tool["function"]["name"]).collect::<Vec<_>>());
    }
    asked
}

#[test]
fn show_as_prints_the_request_of_every_call_of_every_agent() {
    let server = serve(builders());
    let home = Home::at(&server);
    home.file("house.yaml", HOUSE);
    home.run(&["run", "house.yaml", "--model", "openai:test"]).ok();
    assert_eq!(server.violations(), [""; 0]);
    let asked = compare(&home, &server.requests());
    let expected =
        [("Ann", 8), ("Bea", 4), ("Cleo", 5), ("Planner", 1), ("house_summary", 1), ("room_summary", 1)];
    assert_eq!(asked, BTreeMap::from(expected));
}

/// Ann's blocks end at a stop sequence, and are restored for her. Her example has its end.
const BLOCKS: &str = r#"
name: blocks
task: What is 2 + 2?
agents:
  - name: Ann
    system: You are Ann.
    examples: [{user: "What is 1 + 1?", assistant: "```calc\n1+1\n```\n"}]
    output_blocks: [{kind: calc, begin: "```calc\n", end: "\n```\n", restore: true}]
  - {name: Bob, model: none, default_reply: Continue.}
chat: {participants: [Ann, Bob], loop_detection: off, stop: {max_turns: 5}}
"#;

#[test]
fn received_shows_the_restored_blocks_of_an_agent() {
    let server = serve(Playbook::new(|_, nth| Answer::text(format!("I compute.\n```calc\n2+2+{nth}"))));
    let home = Home::at(&server);
    home.file("blocks.yaml", BLOCKS);
    home.run(&["run", "blocks.yaml", "--model", "openai:test"]).ok();
    let requests = server.requests();
    assert_eq!(compare(&home, &requests), BTreeMap::from([("Ann", 3)]));
    let restored = |request: &std::sync::Arc<Received>| {
        let contents = request.messages().iter().filter_map(|message| message["content"].as_str());
        contents.filter(|text| text.starts_with("I compute.") && text.ends_with("\n```\n")).count()
    };
    assert_eq!(requests.iter().map(restored).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn received_shows_the_separate_messages_of_an_endpoint_that_does_not_merge() {
    let server = serve(Behavior::from(builders()).history(History::Loose));
    let home = Home::at(&server);
    home.file("house.yaml", &format!("{HOUSE}endpoints: {{openai: {{merge: false}}}}\n"));
    home.run(&["run", "house.yaml", "--model", "openai:test"]).ok();
    let requests = server.requests();
    assert_eq!(compare(&home, &requests).values().sum::<usize>(), requests.len());
    let users = |message: &Value| message["role"] == "user";
    let twice =
        |request: &std::sync::Arc<Received>| request.messages().windows(2).any(|two| two.iter().all(users));
    assert!(requests.iter().any(twice), "no agent replied to another");
}

#[test]
fn resumed_runs_show_what_their_models_received() {
    let server = serve(builders());
    let home = Home::at(&server);
    home.file("house.yaml", HOUSE);
    let mut code =
        home.run(&["run", "house.yaml", "--model", "openai:test", "--max-turns", "1"]).exits(3).code;
    for _ in 2..40 {
        code = home.run(&["resume", "last", "--max-turns", "1"]).code;
        if code == 0 {
            break;
        }
    }
    assert_eq!(code, 0);
    assert_eq!(server.violations(), [""; 0]);
    assert_eq!(compare(&home, &server.requests()).values().sum::<usize>(), 20);
}

/// A group in a group, each with a picker: one is corrected, one prompts in the role of the system and must reply with JSON.
const PICKED: &str = r#"
name: outer
task: Build a hut.
agents:
  - {name: Ann, system: You are Ann., description: "draws {agentlist}"}
  - {name: Bob, system: You are Bob., description: builds}
  - {name: Cleo, system: You are Cleo.}
chat:
  participants: [Ann, room]
  pattern: {group: {select: {model: {system: "You pick: {roles}"}}, allow_repeat_speaker: true}}
  stop: {max_turns: 4}
chats:
  - name: room
    description: where it is built
    participants: [Bob, Cleo]
    pattern: {group: {select: {model: {constrained: true, role: system}}, allow_repeat_speaker: true}}
    stop: {max_turns: 3}
    summary: {reflect: {}}
"#;

fn picking(received: &Received, nth: usize) -> Answer {
    let text = received.body["messages"].to_string();
    let is_inner = received.body.get("response_format").is_some();
    let is_corrected = received.last_text().contains("You named");
    Answer::text(match (is_inner, text.contains("You pick")) {
        (true, _) => format!("{{\"speaker\": \"{}\"}}", ["Bob", "Cleo"][nth % 2]),
        (_, true) if !is_corrected && nth.is_multiple_of(3) => "Ann or room".into(),
        (_, true) => ["Ann", "room"][nth % 2].into(),
        _ => format!("Said {nth}."),
    })
}

#[test]
fn what_a_picker_was_sent_is_shown_for_every_choice() {
    let server = serve(Behavior::from(Playbook::new(picking)).history(History::Loose));
    let home = Home::at(&server);
    home.file("picked.yaml", PICKED);
    home.run(&["run", "picked.yaml", "--model", "openai:test"]).ok();
    let events: Vec<Value> = home.run(&["show", "last", "--json"]).ok().lines();
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for (request, event) in
        server.requests().iter().zip(events.iter().filter(|e| e["type"] == "model_replied"))
    {
        let name = event["who"].as_str().unwrap();
        let nth = asked.entry(name.to_owned()).or_default();
        *nth += 1;
        let ran = home.run(&["show", "last", "--as", name, "--call", &nth.to_string(), "--json"]).ok();
        assert_eq!(ran.err, "", "{name}, call {nth}");
        assert_eq!(Value::from(messages(&ran.lines()[0])), request.body["messages"], "{name}, call {nth}");
        let params = &ran.lines()[0]["params"];
        assert_eq!(params["schema"].is_object(), request.body.get("response_format").is_some(), "{name}");
    }
    assert!(
        asked["outer_selector"] > 4 && asked["room_selector"] >= 3 && asked.contains_key("room_summary"),
        "{asked:?}"
    );
    let shown = home.run(&["show", "last", "--as", "outer_selector", "--call", "1"]).ok().out;
    assert!(shown.contains("You pick: Ann: draws {agentlist}\nroom: where it is built"), "{shown}");
}

#[test]
fn people_read_it_verbatim() {
    let server = serve(talk());
    let home = Home::at(&server).with_team(TALK);
    home.run(&["run", "team.yaml", "--model", "openai:test"]).ok();
    let shown = home.run(&["show", "last", "--as", "Bob"]).ok().out;
    // The server makes the ids of calls from the request.
    let requests = server.requests();
    let calls = requests[2].messages()[2]["tool_calls"].as_array().unwrap().iter().zip(["FIRST", "SECOND"]);
    let shown = calls.fold(shown, |shown, (call, name)| shown.replace(call["id"].as_str().unwrap(), name));
    expect![[r#"
        [system]:
        You are Bob.

        [user]:
        Talk about the weather.

        It rains today.

        [assistant]:
        I look.
        call FIRST: get_history {"limit":2}
        call SECOND: get_history {"limit":1}

        [tool get_history (FIRST)]:
        user: Talk about the weather.
        Alice: It rains today.

        [tool get_history (SECOND)]:
        Alice: It rains today.

        [assistant]:
        It will be dry tomorrow.

        [user]:
        Then I take my umbrella along.
    "#]]
    .assert_eq(&shown);
    let all = home.run(&["show", "last", "--as", "Bob", "--call", "4"]).exits(2);
    assert_eq!(all.err, "error (config): `Bob` has made 3 model calls\n");
    let unknown = home.run(&["show", "last", "--as", "Eve"]).exits(2);
    assert_eq!(unknown.err, "error (config): no model speaks for `Eve`\n  hint: there are `Alice`, `Bob`\n");
}

#[test]
fn agents_of_one_name_in_several_teams_are_distinguished() {
    let server = serve(Playbook::echo());
    let home = Home::at(&server);
    let team = |name: &str, system: &str| {
        let agents = format!("agents: [{{name: Writer, system: {system}}}]\n");
        format!("name: {name}\n{agents}chat: {{pattern: sequential, participants: [Writer]}}\n")
    };
    home.file("prose.yaml", &team("prose", "You write prose."));
    home.file("verse.yaml", &team("verse", "You write verse."));
    let teams = "teams: [{name: prose, file: prose.yaml}, {name: verse, file: verse.yaml}]\n";
    let chat = "chat: {pattern: sequential, participants: [Lead, prose, verse]}\n";
    home.file("both.yaml", &format!("name: both\ntask: Go.\nagents: [{{name: Lead}}]\n{teams}{chat}"));
    home.run(&["run", "both.yaml", "-m", "openai:test"]).ok();
    for (call, system) in [("1", "You write prose."), ("2", "You write verse.")] {
        let ran = home.run(&["show", "last", "--as", "Writer", "--call", call, "--json"]).ok();
        assert_eq!((ran.err.as_str(), &ran.lines()[0]["system"]), ("", &json!(system)));
    }
}

/// Asked about tasks, prompted with tools in text, given schemas, asked to repair an answer: each is asked in another way, and each is
/// known by its digest.
#[test]
fn it_is_known_how_agents_were_asked_that_solve_tasks() {
    for (team, calls) in [("guess-high-low", 24), ("bill", 6), ("counting", 21)] {
        let home = Home::new();
        let file = format!("{}/../../teams/{team}.yaml", env!("CARGO_MANIFEST_DIR"));
        home.run(&["run", &file]).ok();
        let mut asked: BTreeMap<String, usize> = BTreeMap::new();
        for line in home.run(&["show", "last", "--json"]).ok().out.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            if event["type"] == "model_replied" {
                let of = asked.entry(event["who"].as_str().unwrap().to_owned()).or_default();
                *of += 1;
                let shown = home.run(&[
                    "show",
                    "last",
                    "--as",
                    event["who"].as_str().unwrap(),
                    "--call",
                    &of.to_string(),
                ]);
                assert_eq!(shown.ok().err, "", "{team}: {event}");
            }
        }
        assert_eq!(asked.values().sum::<usize>(), calls, "{team}");
    }
}

/// A player who is asked about its task, and a master with a prompted tool.
const GAME: &str = r#"
name: game
task: Play.
agents:
  - {name: Player, system: You are Player.}
  - {name: Master, system: You are Master., tools: [{tool: high_low, mandatory: true}], tool_calling: text, tool_history: full}
chat:
  participants: [Player, Master]
  pattern:
    group_solve:
      end: one_last_chat
      tasks:
        - {who: Player, prompt: Guess., self_terminating: true, keeps_reflections: KEEPS}
        - {who: Master, prompt: Compare each guess with 14.}
"#;

/// The player finds nothing left to do when it is asked for the second time.
fn players() -> Playbook {
    Playbook::new(|received, _| {
        let (reported, name) = (received.last_text(), who(received));
        let earlier = received.messages().iter().filter(|message| message["role"] == "assistant").count();
        Answer::text(match name {
            "Player" if reported.contains("NOT completed") => format!("Much after {earlier}."),
            "Player" if reported.contains("in one word") => if earlier < 4 { "yes" } else { "no" }.into(),
            "Player" => format!("I guess {earlier}"),
            _ if reported.contains("Output the arguments") => {
                format!("{{\"secret_number\": 14, \"guessed_number\": {earlier}}}")
            }
            _ => "I see.".into(),
        })
    })
}

/// What a history has is what the server got and replied: its requests are its beginnings.
#[test]
fn a_group_that_solves_tasks_is_shown_as_the_server_got_it() {
    for keeps in ["true", "false"] {
        let server = serve(players());
        let home = Home::at(&server);
        home.file("game.yaml", &GAME.replace("KEEPS", keeps));
        let ran = home.run(&["run", "game.yaml", "--model", "openai:test"]);
        assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
        assert_eq!(server.violations(), [""; 0]);
        let requests = server.requests();
        let asked = compare(&home, &requests);
        assert_eq!(asked["Player"], 7, "a task, two turns, twice two questions");
        let history = home.run(&["show", "last", "--as", "Player"]).ok().out;
        let last = requests.iter().rfind(|request| {
            who(request) == "Player"
                && !["NOT completed", "in one word"].iter().any(|asked| request.last_text().contains(asked))
        });
        let block = |message: &Value| {
            format!("[{}]:\n{}\n\n", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
        };
        let sent: String = last.unwrap().messages().iter().map(block).collect();
        assert!(history.starts_with(&sent), "{history}\n{sent}");
    }
}
