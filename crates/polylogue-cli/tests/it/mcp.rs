//! Tools of MCP servers: who may have them, when their servers start, and that these end with the run.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::home::{Home, KEY, Ran, of_type, shipped, until};
use crate::terminal::Terminal;

/// A server that misbehaves on request, of the tests of the client. It notes its starts in `notes`.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../polylogue-mcp/tests/it/server.py");

/// The usual document, with that server as `name`.
fn document(home: &Home, name: &str) -> String {
    let args = [SERVER.to_owned(), "fine".into(), home.path("notes").display().to_string()];
    let env = json!({"KEY": "${SERVER_KEY:-none}"});
    json!({"mcpServers": {name: {"command": "python3", "args": args, "env": env}}}).to_string()
}

/// A team whose `Ann` has `tools` and calls, one after the other, what `calls` are: a tool and its arguments.
fn team(home: &Home, more: &str, tools: &str, calls: &[(&str, &str)]) {
    let calls: String = (calls.iter())
        .map(|(tool, args)| format!("  - Ann: {{calls: [{{tool: {tool}, args: {args}}}]}}\n"))
        .collect();
    let text = format!(
        "name: t
task: go
{more}
agents: [{{name: Ann, tools: {tools}}}, {{name: Me, human: true}}]
chat: {{participants: [Ann, Me], stop: {{max_turns: 2}}}}
script:
{calls}  - Ann: It is done.
"
    );
    home.file("team.yaml", &text);
}

fn starts(home: &Home) -> usize {
    notes(home).matches("started").count()
}

fn notes(home: &Home) -> String {
    fs::read_to_string(home.path("notes")).unwrap_or_default()
}

/// Waits until no server that noted its start runs any more.
fn gone(home: &Home) {
    let notes = notes(home);
    for pid in notes.lines().filter_map(|line| line.strip_prefix("started ")) {
        until("the server is gone", || {
            let stat = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap().stdout;
            let stat = String::from_utf8_lossy(&stat).trim().to_owned();
            stat.is_empty() || stat.starts_with('Z')
        });
    }
}

const ECHO: (&str, &str) = ("s_echo", "{text: received}");

#[test]
fn servers_of_a_team_have_to_be_allowed_and_then_really_work() {
    let home = Home::new();
    let refused = home.run(&["run", &shipped("spare-parts"), "--offline"]).exits(2);
    assert!(refused.err.contains("parts: python3 data/parts_server.py (in /"), "{}", refused.err);
    assert!(refused.err.contains("add `--allow mcp`"), "{}", refused.err);
    assert!(!home.path("store.db").exists());
    let ran = home.run(&["run", &shipped("spare-parts"), "--offline", "--allow", "mcp"]).ok();
    assert!(
        ran.err
            .contains("`spare-parts` is allowed to use MCP servers, which run outside the sandbox: `parts: "),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("only 1 of `B-14` are left"), "{}", ran.out);
    // The specifications of the tools are known without their server.
    let shown = home.run(&["show", "last", "--as", "Storekeeper", "--json"]).ok();
    assert!(shown.out.contains("Takes so many of a part out of the store"), "{}", shown.out);
    assert!(!shown.err.contains("was changed"), "{}", shown.err);
}

#[test]
fn nothing_is_started_by_looking_and_only_what_agents_name_is_by_running() {
    let home = Home::new();
    let args = json!([SERVER, "fine", home.path("notes")]);
    let more = format!("mcp: {{s: {{command: python3, args: {args}}}, idle: {{command: /no/such/program}}}}");
    team(&home, &more, "[{mcp: s, include: [echo]}]", &[ECHO]);
    assert!(
        home.run(&["check", "team.yaml"]).ok().err.contains("no agent has tools of the MCP server `idle`")
    );
    home.run(&["doctor", "team.yaml"]);
    assert_eq!(starts(&home), 0);
    let ran = home.run(&["run", "team.yaml", "--offline", "--allow", "mcp"]).exits(5);
    assert!(ran.out.contains("received"), "{}", ran.out);
    assert_eq!(starts(&home), 1);
    gone(&home);
    home.run(&["show", "last", "--as", "Ann"]).ok();
    assert_eq!(starts(&home), 1);
}

#[test]
fn a_document_of_ones_own_is_consent_and_is_found_again_from_elsewhere() {
    let mut home = Home::new();
    team(&home, "", "[{mcp: s}]", &[ECHO]);
    let missing = home.run(&["run", "team.yaml", "--offline"]).exits(2);
    assert!(missing.err.contains("`t` needs the MCP server `s`"), "{}", missing.err);
    assert!(missing.err.contains("`--mcp FILE`"), "{}", missing.err);
    home.file("servers.json", &document(&home, "s"));
    // What a server is handed is in no log: when the home is given up, nothing in it holds the key.
    home.set("SERVER_KEY", KEY);
    let ran = home.run(&["run", "team.yaml", "--offline", "--mcp", "servers.json"]).exits(5);
    assert!(ran.out.contains("received") && !ran.err.contains("warning"), "{}\n{}", ran.out, ran.err);
    gone(&home);
    fs::create_dir(home.path("elsewhere")).unwrap();
    let resumed = home.shell("cd elsewhere; polylogue resume last --answer 'Thank you.'");
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert_eq!(starts(&home), 2);
    gone(&home);
    fs::remove_file(home.path("servers.json")).unwrap();
    let lost = home.run(&["resume", "last", "--max-turns", "9"]).exits(2);
    assert!(lost.err.contains("servers.json"), "{}", lost.err);
}

#[test]
fn ones_own_server_goes_before_one_of_the_team() {
    let home = Home::new();
    team(&home, "mcp: {s: {command: /no/such/program}}", "[{mcp: s}]", &[ECHO]);
    home.file("servers.json", &document(&home, "s"));
    let ran = home.run(&["run", "team.yaml", "--offline", "--mcp", "servers.json"]).exits(5);
    assert!(ran.out.contains("received"), "{}", ran.out);
}

#[test]
fn a_team_can_name_a_document_next_to_it() {
    let home = Home::new();
    home.file("servers.json", &document(&home, "s"));
    team(&home, "mcp: servers.json", "[{mcp: s, exclude: [die]}]", &[ECHO]);
    assert!(home.run(&["run", "team.yaml", "--offline"]).exits(2).err.contains("SERVER_KEY -> "));
    home.run(&["run", "team.yaml", "--offline", "--allow", "mcp,env"]).exits(5);
    // What was allowed when it began is allowed still, and the team is what it was.
    fs::remove_file(home.path("servers.json")).unwrap();
    home.run(&["resume", "last", "--answer", "Thank you."]).ok();
    assert_eq!(starts(&home), 2);
    for (named, why) in [("../servers.json", "not below the folder"), ("none.json", "does not exist")] {
        team(&home, &format!("mcp: {named}"), "[{mcp: s}]", &[]);
        let wrong = home.run(&["check", "team.yaml"]).exits(2);
        assert!(wrong.err.contains(why) && wrong.err.contains("team.yaml:3:6"), "{}", wrong.err);
    }
    home.file("other.json", "{}");
    team(&home, "mcp: other.json", "[{mcp: s}]", &[]);
    assert!(home.run(&["check", "team.yaml"]).exits(2).err.contains("not an object with `mcpServers`"));
}

/// A server that is reached by HTTP, and ends with this.
struct Elsewhere(std::process::Child);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_remote_server_and_no_other_receives_a_key_from_a_variable() {
    let home = Home::new().var("SERVER_KEY", "hunter22");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../polylogue-mcp/tests/it/http_server.py");
    let mut command = Command::new("python3");
    command.args([script, "locked"]).arg(home.path("notes")).arg("0");
    let _server = Elsewhere(command.spawn().unwrap());
    until("it listens", || notes(&home).ends_with('\n'));
    let port = notes(&home).trim().rsplit(' ').next().unwrap().to_owned();
    let more = format!(
        "mcp: {{s: {{url: 'http://127.0.0.1:{port}/mcp', headers: {{Authorization: 'Bearer ${{SERVER_KEY}}'}}}}}}"
    );
    team(&home, &more, "[{mcp: s}]", &[ECHO, ("s_fail", "{}")]);
    let refused = home.run(&["run", "team.yaml", "--offline"]).exits(2);
    for wanted in [format!("s: http://127.0.0.1:{port}/mcp"), "SERVER_KEY -> the MCP server s".to_owned()] {
        assert!(refused.err.contains(&wanted), "{}", refused.err);
    }
    assert_eq!(notes(&home).matches("begun").count(), 0);
    let ran = home.run(&["run", "team.yaml", "--offline", "--allow", "mcp,env"]).exits(5);
    assert!(ran.out.contains("received") && ran.out.contains("the disk is on fire, key ***"), "{}", ran.out);
    assert!(!home.run(&["show", "last", "--json"]).ok().out.contains("hunter22"));
}

#[test]
fn unknown_tools_and_missing_mcp_servers_are_errors_before_the_run() {
    let home = Home::new();
    home.file("servers.json", &document(&home, "s"));
    let run = || home.run(&["run", "team.yaml", "--offline", "--mcp", "servers.json"]);
    team(&home, "", "[calculator]", &[]);
    assert!(run().exits(2).err.contains("no agent of `t` has tools of MCP servers"));
    team(&home, "", "[{mcp: s, include: [ekko]}]", &[]);
    let wrong = run().exits(1);
    assert!(
        wrong.err.contains("unknown tool `ekko` of the MCP server `s`\n  hint: use one of `echo`, `fail`"),
        "{}",
        wrong.err
    );
    home.file("servers.json", r#"{"mcpServers": {"s": {"command": "/no/such/program"}}}"#);
    team(&home, "", "[{mcp: s}]", &[]);
    assert!(run().exits(1).err.contains("the MCP server `s` cannot be started"));
    home.file("servers.json", "[");
    assert!(run().exits(2).err.contains("no MCP servers are in `servers.json`"));
    assert!(!home.path("store.db").exists());
}

#[test]
fn a_server_that_dies_costs_a_call_and_the_run_continues() {
    let home = Home::new();
    home.file("servers.json", &document(&home, "s"));
    team(&home, "", "[{mcp: s}]", &[("s_die", "{}"), ECHO]);
    let ran = home.run(&["run", "team.yaml", "--offline", "--mcp", "servers.json"]).exits(5);
    assert!(ran.out.contains("It is done."), "{}", ran.out);
    let events = home.events();
    let returned = of_type(&events, "tool_returned");
    assert_eq!(returned[0]["result"]["status"], "failed");
    assert!(returned[0].to_string().contains("it is started again for the next call"), "{}", returned[0]);
    assert_eq!(returned[1]["result"]["status"], "done");
    assert_eq!(starts(&home), 2);
}

#[test]
fn progress_is_shown_at_a_terminal_and_ctrl_c_gives_the_call_up() {
    let home = Home::new();
    home.file("servers.json", &document(&home, "s"));
    team(&home, "", "[{mcp: s}]", &[("s_steady", "{steps: 900, pause: 0.05}")]);
    let command = ["run", "team.yaml", "--offline", "--mcp", "servers.json"];
    let mut terminal = Terminal::open(&home, (100, 30), &command);
    terminal.wait_for("s: steady ");
    terminal.wait_for("s: steady 9 of 900 (xxx");
    // It is in one place, and leaves nothing behind.
    let screen = terminal.sees();
    assert!(screen.matches("s: steady").count() <= 1, "{screen}");
    terminal.press("\x03");
    terminal.wait_for("Ctrl-C again stops now");
    terminal.press("\x03");
    let (code, screen) = terminal.end();
    assert_eq!((code, screen.matches("s: steady").count()), (6, 0), "{screen}");
    gone(&home);
}

#[test]
fn a_call_in_flight_when_the_program_is_killed_is_reported_and_the_server_ends_too() {
    let home = Home::new();
    home.file("servers.json", &document(&home, "s"));
    team(&home, "", "[{mcp: s}]", &[("s_slow", "{}")]);
    let running = home.start(&["run", "team.yaml", "--offline", "--mcp", "servers.json"]);
    until("the call is there", || notes(&home).contains("begun"));
    running.signal(Signal::KILL);
    running.end();
    gone(&home);
    let resumed = home.run(&["resume", "last"]).exits(5);
    assert!(resumed.out.contains("It is done."), "{}", resumed.out);
    let events = home.events();
    let returned = of_type(&events, "tool_returned");
    assert_eq!((of_type(&events, "tool_called").len(), returned.len()), (1, 1));
    assert_eq!(returned[0]["result"]["status"], "unknown");
    assert_eq!(notes(&home).matches("begun").count(), 1);
}

#[test]
fn a_call_in_flight_that_reads_only_is_made_again() {
    let home = Home::new();
    home.file("servers.json", &document(&home, "s"));
    team(&home, "", "[{mcp: s}]", &[("s_peek", "{}")]);
    let running = home.start(&["run", "team.yaml", "--offline", "--mcp", "servers.json"]);
    until("the call is there", || notes(&home).contains("peeked"));
    running.signal(Signal::KILL);
    running.end();
    home.run(&["resume", "last"]).exits(5);
    let events = home.events();
    let returned = of_type(&events, "tool_returned");
    assert_eq!((returned.len(), &returned[0]["result"]["status"]), (1, &json!("done")), "{returned:?}");
    assert_eq!(notes(&home).matches("peeked").count(), 2);
}

#[test]
fn a_team_within_a_team_brings_its_servers_along_under_names_of_their_own() {
    let home = Home::new();
    let args = json!([SERVER, "fine", home.path("notes")]);
    let inner = format!(
        "name: inner
mcp: {{s: {{command: python3, args: {args}}}}}
agents: [{{name: Ann, tools: [{{mcp: s}}]}}]
chat: {{participants: [Ann], pattern: sequential}}
"
    );
    home.file("inner.yaml", &inner);
    let outer = |more: &str| {
        format!(
            "name: outer
task: go
{more}
teams: [{{name: Inner, file: inner.yaml}}]
chat: {{participants: [Inner], pattern: sequential}}
script: [{{Ann: {{calls: [{{tool: s_echo, args: {{text: received}}}}]}}}}, {{Ann: It is done.}}]
"
        )
    };
    home.file("outer.yaml", &outer(""));
    assert!(home.run(&["run", "outer.yaml", "--offline"]).exits(2).err.contains("add `--allow mcp`"));
    let ran = home.run(&["run", "outer.yaml", "--offline", "--allow", "mcp"]).ok();
    assert!(ran.out.contains("received"), "{}", ran.out);
    home.file("outer.yaml", &outer("mcp: {s: {command: other}}"));
    let twice = home.run(&["check", "outer.yaml"]).exits(2);
    assert!(
        twice.err.contains("this team has an MCP server `s`, and this file another of that name"),
        "{}",
        twice.err
    );
}

#[test]
fn the_rows_of_a_batch_share_their_servers() {
    let home = Home::new();
    let args = json!([SERVER, "{{manner}}", home.path("notes")]);
    let text = format!(
        "name: t
vars: {{manner: fine}}
mcp: {{s: {{command: python3, args: {args}}}}}
agents: [{{name: Ann, tools: [{{mcp: s}}]}}]
chat: {{participants: [Ann], pattern: sequential}}
script: [{{Ann: {{calls: [{{tool: s_echo, args: {{text: received}}}}]}}}}, {{Ann: It is done.}}]
"
    );
    home.file("team.yaml", &text);
    home.file(
        "rows.jsonl",
        "{\"task\": \"one\"}\n{\"task\": \"two\"}\n{\"task\": \"three\", \"manner\": \"pages\"}\n",
    );
    let args = ["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl", "--offline"];
    assert!(home.run(&args).exits(2).err.contains("add `--allow mcp`"));
    let ran = home.run(&[&args[..], &["--allow", "mcp"]].concat());
    let records = Ran { out: fs::read_to_string(home.path("out.jsonl")).unwrap(), ..ran }.lines();
    let ends: Vec<String> = records.iter().map(|record| record["status"].to_string()).collect();
    assert_eq!(records.len(), 3, "{ends:?}");
    let changed = records
        .iter()
        .filter(|record| record.to_string().contains("which all its conversations share"))
        .count();
    assert_eq!((changed, starts(&home)), (1, 1), "{records:?}");
    gone(&home);
}
