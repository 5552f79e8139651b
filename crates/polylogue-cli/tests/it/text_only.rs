//! Servers that can do nothing but text: teams whose agents call tools work on them all the same.

use expect_test::expect;
use polylogue_team::{Agent, Overrides, Team, load, parse};
use polylogue_test::server::{Behavior, Received, Server};
use serde_json::json;

use crate::home::{Home, Ran, of_type, serve, shipped};
use crate::models::TALK;
use crate::small::{of_own_models, small_model};

/// The teams that ship and have tools of whatever kind, but for those of servers, which have to be allowed.
fn teams_with_tools() -> Vec<Team> {
    let folder = shipped("x");
    let files = std::fs::read_dir(std::path::Path::new(&folder).parent().unwrap()).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let team = |file: &std::path::PathBuf| load(file, &Overrides::default()).unwrap().team;
    let has_tools = |team: &Team| {
        team.agents.iter().filter_map(Agent::model).any(|keys| {
            !(keys.tools.is_empty() && keys.suggests_tools.is_empty() && keys.handoffs.is_empty())
        })
    };
    files.iter().map(team).filter(has_tools).filter(|team| team.mcp_wanted().is_empty()).collect()
}

/// What people answer, one after the other; then `END`.
const ANSWERS: [&str; 2] = ["17, 18, 19", "In the rush hour 28 and 28"];

/// Runs `command`, and answers for people until the run is over.
fn play(home: &Home, command: &[&str]) -> Ran {
    let mut ran = home.run(command);
    let mut answers = ANSWERS.into_iter();
    while ran.code == 5 {
        ran = home.run(&["resume", "last", "--answer", answers.next().unwrap_or("END")]);
    }
    ran
}

/// Why the run ended, as its last line says.
fn reason(ran: &Ran) -> &str {
    let end = ran.out.lines().rev().find(|line| line.starts_with("done: "));
    end.and_then(|line| line.split(" · ").next()).unwrap_or_else(|| panic!("{}\n{}", ran.out, ran.err))
}

/// Puts what teams bring along, files and pages, where copies of them look for it.
fn bring_data(home: &Home) {
    let shipped = std::path::PathBuf::from(shipped("x"));
    let mut folders = vec!["data".to_owned()];
    while let Some(folder) = folders.pop() {
        std::fs::create_dir_all(home.path(&folder)).unwrap();
        for entry in std::fs::read_dir(shipped.with_file_name(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().display());
            if entry.file_type().unwrap().is_dir() {
                folders.push(name);
            } else {
                std::fs::copy(entry.path(), home.path(&name)).unwrap();
            }
        }
    }
}

#[test]
fn teams_with_tools_work_on_a_server_of_plain_text() {
    let teams = teams_with_tools();
    assert!(teams.len() > 4, "{}", teams.len());
    for team in &teams {
        let server = serve(small_model(team));
        let home = Home::at(&server);
        let file = std::fs::read_to_string(shipped(team.name.as_str())).unwrap();
        let file = of_own_models(team, &file);
        bring_data(&home);
        let reported = format!("{}\n", team.name);
        let offline = play(&Home::new(), &["run", &shipped(team.name.as_str()), "--offline"]).ok();
        let ran = play(&home, &["run", home.file("team.yaml", &file)]);
        assert_eq!(ran.code, 0, "{reported}{}\n{}\n{:?}", ran.out, ran.err, server.violations());
        assert_eq!(server.violations(), [""; 0], "{reported}{}", ran.out);
        assert_eq!(reason(&ran), reason(&offline), "{reported}{}", ran.out);
        let events = home.events();
        assert!(!of_type(&events, "capability_missing").is_empty(), "{reported}{}", ran.out);
        let called = of_type(&events, "tool_called").len();
        let asked = events.iter().filter(|event| event.to_string().contains("\"type\":\"call\"")).count();
        assert!(called + asked > 0, "{reported}{}", ran.out);
        let with_tools =
            server.requests().iter().filter(|request| request.body.get("tools").is_some()).count();
        assert!(with_tools <= team.agents.len(), "each model is asked in vain once: {reported}{with_tools}");
    }
}

/// Two agents, one with a tool, and what they reply by the script.
const SCRIPT: &str = r#"
script:
  - Alice: It rains today.
  - Bob: {calls: [{tool: get_history, args: {limit: 1}}]}
  - Bob: It will be dry tomorrow.
  - Alice: {think: "GOODBYE, perhaps?", say: Then I take my umbrella along.}
  - Bob: GOODBYE
"#;

fn talk() -> (Behavior, String) {
    let file = format!("{TALK}{SCRIPT}");
    let team = parse(&file, "team.yaml", &Overrides::default()).unwrap().team;
    let file = file
        .replace("{name: Alice,", "{name: Alice, model: \"openai:Alice\",")
        .replace("{name: Bob,", "{name: Bob, model: \"openai:Bob\",");
    (small_model(&team), file)
}

fn asked_with(server: &Server, field: &str) -> usize {
    server.requests().iter().filter(|request| request.body.get(field).is_some()).count()
}

#[test]
fn a_run_shows_which_capability_is_missing_and_continues() {
    let (behavior, file) = talk();
    let server = serve(behavior);
    let home = Home::at(&server);
    let ran = home.run(&["run", home.file("team.yaml", &file)]).ok();
    let (talk, end) = ran.out.split_once("\ndone: ").unwrap();
    assert!(end.starts_with("Bob said `GOODBYE` · 4 turns · "), "{end}");
    let reported = talk.lines().filter(|line| !line.is_empty() && !line.starts_with("Bob is prompted"));
    let reported: String = reported.map(|line| format!("{line}\n")).collect();
    expect![[r#"
        participants: Alice, Bob
        user -> all:
        Talk about the weather.
        Alice -> Bob:
        It rains today.
        Bob finds that `openai:Bob` does not support calling tools, and continues without it: the provider answered with status 400: Unsupported parameter: 'tools' is not supported with this model
        Bob finds that `openai:Bob` does not support output by a JSON Schema, and continues without it: the provider answered with status 400: Unsupported parameter: 'response_format' is not supported with this model
        Bob finds that `openai:Bob` does not support writing nothing but JSON, and continues without it: the provider answered with status 400: Unsupported parameter: 'response_format' is not supported with this model
        Bob -> Alice:
        ⚙ get_history(limit: 1) → Alice: It rains today.
        It will be dry tomorrow.
        Alice -> Bob:
        Then I take my umbrella along.
        Bob -> Alice:
        GOODBYE
    "#]]
    .assert_eq(&reported);
    assert_eq!(server.violations(), [""; 0]);
    assert_eq!((asked_with(&server, "tools"), asked_with(&server, "response_format")), (1, 2));
    let thoughts = |body: &str| body.contains("GOODBYE, perhaps?");
    assert!(!server.requests().iter().any(|request| thoughts(&request.body.to_string())));
    assert!(thoughts(&home.run(&["show", "last", "--json"]).ok().out), "the log has them");
    for args in [&["--markdown"][..], &["--style", "autogen"]] {
        let shown = home.run(&[&["show", "last"], args].concat()).ok().out;
        assert!(shown.contains("does not support calling tools, and continues without it"), "{shown}");
    }
}

/// A home in which `capabilities` is what is remembered of models.
fn home_that_remembers(server: &Server, team: &str, capabilities: &str) -> Home {
    let home = Home::at(server);
    std::fs::create_dir_all(home.path(".cache/polylogue")).unwrap();
    home.file(".cache/polylogue/capabilities.json", capabilities);
    home.file("team.yaml", team);
    home
}

// What a run found out, the next one knows. It is a cache: whatever the file is, no run fails for it.
#[test]
fn capabilities_found_in_a_run_are_known_in_the_next() {
    let (behavior, file) = talk();
    let first = serve(behavior);
    let home = Home::at(&first);
    home.run(&["run", home.file("team.yaml", &file)]).ok();
    let known = std::fs::read_to_string(home.path(".cache/polylogue/capabilities.json")).unwrap();
    let server = serve(talk().0);
    let known = known.replace(&first.base_url(), &server.base_url());
    let ran = home_that_remembers(&server, &file, &known).run(&["run", "team.yaml"]).ok();
    assert!(ran.out.contains("continues without it: as it was found before: "), "{}", ran.out);
    assert_eq!(server.count(), first.count() - 3, "it is not refused three times more");
    assert_eq!((asked_with(&server, "tools"), server.violations()), (0, Vec::new()));
    for broken in ["{", "[]", "{\"polylogue_capabilities\": 7}", ""] {
        let server = serve(talk().0);
        home_that_remembers(&server, &file, broken).run(&["run", "team.yaml"]).ok();
        assert_eq!(asked_with(&server, "tools"), 1);
    }
    let server = serve(crate::models::talk());
    let stale = json!({"polylogue_capabilities": 1, "models": {server.base_url(): {"test": {
        "tools": {"has": false, "why": "it could not", "time_ms": 0}
    }}}});
    let home = home_that_remembers(&server, TALK, &stale.to_string());
    home.run(&["run", "team.yaml", "-m", "openai:test"]).ok();
    assert_eq!(asked_with(&server, "tools"), 3, "what is old does not count");
}

#[test]
fn what_is_said_to_be_impossible_is_not_tried_not_even_after_a_break() {
    let (behavior, file) = talk();
    let server = serve(behavior);
    let home = Home::at(&server);
    // Stopped in the middle of Bob's turn.
    let run = [
        "run",
        home.file("team.yaml", &file),
        "--capabilities",
        "text",
        "--max-calls",
        "3",
        "--record",
        "c.jsonl",
    ];
    home.run(&run).exits(3);
    let ran = home.run(&["resume", "last", "--max-calls", "100", "--record", "c.jsonl"]).ok();
    assert!(ran.out.contains("\ndone: Bob said `GOODBYE`"), "{}", ran.out);
    assert_eq!((asked_with(&server, "tools"), asked_with(&server, "response_format")), (0, 0));
    assert!(of_type(&home.events(), "capability_missing").is_empty());
    // Neither is it in a replay, which knows nothing of the option.
    let count = server.count();
    let ran = home.run(&["run", "team.yaml", "--replay", "c.jsonl"]).ok();
    assert!(ran.out.contains("\ndone: Bob said `GOODBYE`"), "{}", ran.out);
    assert_eq!(server.count(), count);
    let ran = home.run(&["run", "team.yaml", "--capabilities", "toools"]).exits(2);
    assert!(ran.err.contains("expected `text`, or some of `tools,schema,json,vision`"), "{}", ran.err);
}

#[test]
fn forms_that_are_said_to_be_refused_are_not_sent() {
    let server = serve(Behavior::from("GOODBYE").plain_template());
    let home = Home::at(&server);
    let run = ["run", home.file("team.yaml", &talk().1), "--capabilities", "no-system-role,no-null-content"];
    home.run(&run).ok();
    assert!(of_type(&home.events(), "capability_missing").is_empty());
    let is_system = |request: &Received| request.messages().iter().any(|message| message["role"] == "system");
    assert!(server.count() > 0 && !server.requests().iter().any(|request| is_system(request)));
    assert_eq!(server.violations(), [""; 0]);
}

/// Without what is remembered of models, the log says what was refused.
#[test]
fn forms_that_were_refused_are_not_sent_again_by_a_process_that_resumes() {
    let server = serve(Behavior::from("Well.").plain_template());
    let home = Home::at(&server);
    let team = talk().1.replace("openai:Bob", "openai:Alice");
    let run = ["run", home.file("team.yaml", &team), "--max-turns", "1"];
    home.run(&run).exits(3);
    std::fs::remove_file(home.path(".cache/polylogue/capabilities.json")).unwrap();
    let is_system = |request: &Received| request.messages().iter().any(|message| message["role"] == "system");
    let refused = || server.requests().iter().filter(|request| is_system(request)).count();
    let (before, count) = (refused(), server.count());
    assert!(before > 0, "it is found out once");
    home.run(&["resume", "last", "--max-turns", "1"]).exits(3);
    assert_eq!(refused(), before);
    assert!(server.count() > count);
}
