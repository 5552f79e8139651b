//! Trust: how the user is asked, what is remembered, and what is shown of it.

use polylogue_test::server::{Answer, Playbook};
use serde_json::{Value, json};

use crate::home::{Home, KEY, serve, shipped};
use crate::models::{CALLS, TALK, talk};
use crate::terminal::Terminal;

/// The talk at its own endpoint, with a key.
fn house(home: &Home, url: &str) {
    home.file(
        "team.yaml",
        &format!("{TALK}model: house:big\nendpoints:\n  house: {{base_url: \"{url}\", key: HOUSE_KEY}}\n"),
    );
}

#[test]
fn a_person_at_the_terminal_is_asked_once_and_again_when_the_file_changes() {
    let server = serve(talk());
    let home = Home::new().var("HOUSE_KEY", KEY);
    house(&home, &server.base_url());
    let open = |more: &[&str]| Terminal::open(&home, (110, 60), &[&["run", "team.yaml"], more].concat());
    for answer in ["no", "n", "", "y"] {
        // Typed ahead is not an answer, and there is no default.
        let mut terminal = open(&["--quiet"]);
        terminal.wait_for_question("`no` refuses");
        let seen = terminal.sees();
        assert!(seen.contains(&server.base_url()) && seen.contains("HOUSE_KEY ->"), "{seen}");
        if !answer.starts_with('n') {
            terminal.press(&format!("{answer}\r"));
            terminal.wait_for("Please write one of");
            terminal.wait_for_question("`no`.");
        }
        terminal.press(if answer == "n" { "n\r" } else { "no\r" });
        terminal.wait_for("is not trusted; nothing was run");
    }
    assert_eq!(server.count(), 0);
    let mut terminal = open(&[]);
    terminal.press_at("`no` refuses", "once\r");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(server.count(), CALLS);
    home.run(&["run", "team.yaml"]).exits(2);
    let mut terminal = open(&[]);
    terminal.press_at("`no` refuses", "yes\r");
    assert_eq!(terminal.end().0, 0);
    home.run(&["run", "team.yaml", "--quiet"]).ok();
    assert_eq!(server.count(), 3 * CALLS);
    // Another address is another content.
    let other = serve(Playbook::echo());
    house(&home, &other.base_url());
    home.run(&["run", "team.yaml"]).exits(2);
    house(&home, &server.base_url());
    home.run(&["run", "team.yaml"]).ok();
    assert_eq!(other.count(), 0);
}

#[test]
fn what_is_trusted_is_listed_and_forgotten_and_what_was_allowed_once_is_not_kept() {
    let server = serve(talk());
    let home = Home::new().var("HOUSE_KEY", KEY);
    house(&home, &server.base_url());
    assert_eq!(home.run(&["trust", "list"]).ok().out, "");
    let ran = home.run(&["run", "team.yaml", "--allow", "endpoints"]).exits(2);
    assert!(ran.err.contains("--allow env") && ran.err.contains("HOUSE_KEY -> 127.0.0.1"), "{}", ran.err);
    home.run(&["run", "team.yaml", "--allow", "endpoints,env"]).ok();
    assert_eq!(home.run(&["trust", "list"]).ok().out, "");
    let checked = home.run(&["check", "team.yaml"]).ok().out;
    assert!(checked.contains("not trusted yet") && checked.contains(&server.base_url()), "{checked}");
    home.run(&["check", "team.yaml", "--trust"]).ok();
    home.run(&["run", "team.yaml", "--quiet"]).ok();
    let listed = home.run(&["trust", "list", "--json"]).ok().lines();
    assert_eq!((listed.len(), &listed[0]["name"]), (1, &json!("talk")));
    let wants = home.run(&["check", "team.yaml", "--json"]).ok().lines();
    assert_eq!((&wants[0]["ok"], &wants[0]["trusted"]), (&json!(true), &json!(true)));
    assert_eq!(wants[0]["digest"], listed[0]["digest"]);
    assert_eq!(
        wants[0]["wants"],
        json!([
            {"permission": "endpoints", "what": server.base_url()},
            {"permission": "env", "what": format!("HOUSE_KEY -> {}", server.base_url().replace("http://", "").replace("/v1", ""))},
        ])
    );
    home.run(&["trust", "forget", "nothing"]).exits(2);
    home.run(&["trust", "forget", "team.yaml"]).ok();
    home.run(&["run", "team.yaml"]).exits(2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let file = home.path(".local/state/polylogue/trust.json");
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o077, 0);
    }
}

#[test]
fn rows_and_callers_get_nothing_that_the_team_did_not_ask_for_when_it_was_trusted() {
    let (server, other) = (serve(talk()), serve(Playbook::echo()));
    let home = Home::new().var("HOUSE_KEY", KEY);
    let text = format!(
        "{TALK}model: house:big\nendpoints:\n  house: {{base_url: \"{{{{url}}}}\", key: HOUSE_KEY}}\n"
    );
    let text = text.replace("vars: {", &format!("vars: {{url: \"{}\", ", server.base_url()));
    home.file("team.yaml", &text);
    home.file(
        "rows.jsonl",
        &format!("{{\"id\": \"a\"}}\n{{\"id\": \"b\", \"url\": \"{}\"}}\n", other.base_url()),
    );
    home.run(&["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl", "--trust"]).exits(1);
    let records = std::fs::read_to_string(home.path("out.jsonl")).unwrap();
    assert!(records.contains("requests permissions that were not granted"), "{records}");
    assert_eq!((server.count(), other.count()), (CALLS, 0));
    let line = |id: u32, method: &str, params: &Value| {
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}});
    let input = line(1, "initialize", &begin)
        + "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
        + &line(2, "tools/call", &json!({"name": "talk", "arguments": {"url": other.base_url()}}));
    let ran = home.run_reading(&input, &["mcp", "team.yaml"]);
    assert!(ran.out.contains("requests permissions that were not granted"), "{}\n{}", ran.out, ran.err);
    assert_eq!(other.count(), 0);
}

#[test]
fn memory_that_another_team_wrote_is_asked_for_and_that_of_the_same_content_is_not() {
    let home = Home::new();
    home.run(&["run", &shipped("remembers")]).ok();
    home.run(&["run", &shipped("remembers"), "What may I offer Ann?"]).ok();
    let text = std::fs::read_to_string(shipped("remembers")).unwrap();
    for evil in [text.replace("name: remembers", "name: evil"), text.replace("A host who", "A guest who")] {
        home.file("evil.yaml", &evil);
        for args in [
            &["run", "evil.yaml"][..],
            &["run", "evil.yaml", "--offline", "--quiet"],
            &["mcp", "evil.yaml", "--offline"],
        ] {
            let ran = home.run(args).exits(2);
            assert!(ran.err.contains("guest Ann") && ran.err.contains("--allow memory"), "{}", ran.err);
        }
    }
    // The memory of others than Ann is empty.
    home.run(&["run", "evil.yaml", "--var", "guest=Eve"]).ok();
    home.run(&["run", "evil.yaml", "--allow", "memory"]).ok();
    // Now two have written there: the first is asked, too.
    let ran = home.run(&["run", &shipped("remembers"), "--var", "guest=Eve"]).exits(2);
    assert!(ran.err.contains("guest Eve"), "{}", ran.err);
}

#[test]
fn team_files_outside_the_folder_are_part_of_what_is_asked_for() {
    let home = Home::new();
    std::fs::create_dir(home.path("team")).unwrap();
    let inner = "name: inner\nagents: [{name: Bob}]\nchat: {participants: [Bob], pattern: sequential}\nscript: [{Bob: hi}]\n";
    home.file("inner.yaml", inner);
    home.file("secret.yaml", "password: hunter22\n");
    let outer = |file: &str| {
        let text = format!(
            "name: outer\nteams: [{{name: Inner, file: \"{file}\"}}]\nchat: {{participants: [Inner], pattern: sequential}}\nscript: [{{Bob: hi}}]\n"
        );
        home.file("team/t.yaml", &text);
    };
    outer("../secret.yaml");
    for command in ["run", "check", "doctor"] {
        let ran = home.run(&[command, "team/t.yaml"]).exits(2);
        assert!(ran.err.contains("outside the folder") && !ran.err.contains("hunter22"), "{}", ran.err);
    }
    outer("../inner.yaml");
    let ran = home.run(&["run", "team/t.yaml", "go"]).exits(2);
    assert!(ran.err.contains("../inner.yaml") && ran.err.contains("--allow outside-files"), "{}", ran.err);
    home.run(&["run", "team/t.yaml", "go", "--allow", "outside-files"]).ok();
    home.run(&["run", "team/t.yaml", "go", "--trust"]).ok();
    home.run(&["run", "team/t.yaml", "go"]).ok();
    home.file("inner.yaml", &inner.replace("hi", "ho"));
    home.run(&["run", "team/t.yaml", "go"]).exits(2);
}

/// A team that says that a model of known price costs nothing.
const CHEAP: &str = "
name: cheap
task: Hello
prices: {openai:gpt-4o: free, mine:gpt-4o: free, openai:own: {input: 1, output: 1}}
endpoints: {mine: {base_url: https://api.openai.com/v1}}
agents: [{name: A, model: openai:gpt-4o, parameters: {max_tokens: 100}}]
chat: {participants: [A], pattern: sequential}
";

#[test]
fn prices_of_a_team_below_the_list_prices_do_not_weaken_a_limit_on_cost() {
    let server = serve(Playbook::always(Answer::text("Hi.")));
    let home = Home::at(&server).with_team(CHEAP);
    let state = || {
        let checked = home.run(&["check", "team.yaml"]).ok().out;
        checked.lines().find(|line| line.ends_with("asks to")).unwrap().trim().to_owned()
    };
    assert_eq!(state(), "not needed for a run, but it asks to");
    let limited = ["run", "team.yaml", "--max-cost", "0.0005"];
    let ran = home.run(&limited).exits(4);
    let reported = "The prices of `cheap` for `openai:gpt-4o` are below yours or the list prices, which count unless you add `--allow prices`.";
    assert!(ran.err.replace('\n', " ").contains(reported), "{}", ran.err);
    assert_eq!(server.count(), 0, "a call can take more than the limit");
    home.run(&["run", "team.yaml", "--max-cost", "0.5"]).ok();
    // What is allowed once counts in its conversation, also when that is resumed, and in no other.
    home.run(&[&limited[..], &["--allow", "prices", "--max-calls", "1"]].concat()).ok();
    home.run(&limited).exits(4);
    home.run(&[&limited[..], &["--trust"]].concat()).ok();
    assert_eq!(state(), "trusted, and asks to");
    home.run(&limited).ok();
    home.file("team.yaml", &format!("{CHEAP}# Another content.\n"));
    home.run(&limited).exits(4);
    assert_eq!(server.count(), 4);
}

#[test]
fn the_list_price_counts_at_the_host_of_a_provider_whatever_the_endpoint_is_called() {
    let home = Home::new();
    for (model, lower) in [("openai:gpt-4o", true), ("mine:gpt-4o", true), ("openai:own", false)] {
        home.file("team.yaml", &CHEAP.replace("model: openai:gpt-4o", &format!("model: '{model}'")));
        let checked = home.run(&["check", "team.yaml", "--json"]).ok();
        assert_eq!(checked.out.contains("\"prices\""), lower, "{model}: {}", checked.out);
    }
}
