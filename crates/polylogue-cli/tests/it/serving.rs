//! `polylogue serve` and `polylogue token`: the program around the server, which has tests of its own.

use std::io::{BufRead as _, BufReader, Read as _, read_to_string};
use std::process::{Child, Stdio};
use std::time::Duration;

use polylogue_test::http::send;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::home::{Home, PROGRAM, events_of, serve, until, wait};
use crate::models::{TALK, talk};

pub(crate) const TEAM: &str = "
name: pair
task: Say hello.
agents: [{name: Ann}]
chat: {participants: [Ann], pattern: sequential}
script: [{Ann: Hello.}]
";

/// A server, with what it has printed.
pub(crate) struct Serving {
    child: Child,
    /// Without the scheme.
    address: String,
    token: Option<String>,
    /// A link to the page.
    page: String,
}

impl Serving {
    /// Starts `polylogue serve` at a free port.
    fn start(home: &Home, is_first: bool) -> Self {
        Self::of(home, home.file("pair.yaml", TEAM), is_first)
    }

    /// The same of a team file or a folder.
    pub(crate) fn of(home: &Home, teams: &str, is_first: bool) -> Self {
        Self::with(home, &[teams, "--offline", "--listen", "127.0.0.1:0"], is_first)
    }

    /// The same with these arguments.
    pub(crate) fn with(home: &Home, args: &[&str], is_first: bool) -> Self {
        let args: Vec<&str> = ["serve"].iter().chain(args).copied().collect();
        let mut command = home.command(PROGRAM, &args);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.next().unwrap();
        let address = url.strip_prefix("http://").unwrap_or_else(|| panic!("no URL: {url}")).to_owned();
        let token = is_first.then(|| lines.next().unwrap().strip_prefix("token ").unwrap().to_owned());
        let page = lines.next().unwrap().strip_prefix("page ").unwrap().to_owned();
        Self { child, address, token, page }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The first token.
    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap()
    }

    /// The most memory that it has taken, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap()
    }

    /// Where its sockets take connections and datagrams, as the system lists them: addresses and ports in hexadecimal.
    #[cfg(target_os = "linux")]
    fn listens(&self) -> Vec<String> {
        let process = format!("/proc/{}", self.child.id());
        let files = std::fs::read_dir(format!("{process}/fd")).unwrap();
        let links = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
        let own: Vec<String> = links.map(|link| link.display().to_string()).collect();
        let mut found = Vec::new();
        for (table, is_listening) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", ""), ("udp6", "")] {
            let rows = std::fs::read_to_string(format!("{process}/net/{table}")).unwrap();
            for row in rows.lines().skip(1) {
                let fields: Vec<&str> = row.split_whitespace().collect();
                let is_own = own.contains(&format!("socket:[{}]", fields[9]));
                if is_own && fields[3].contains(is_listening) {
                    found.push(fields[1].to_owned());
                }
            }
        }
        found
    }

    /// The body of the response to `GET path`, with the first token.
    fn document(&self, path: &str) -> Value {
        let response = self.get(path, self.token());
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {response}"))
    }

    /// Kills it at once.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The response to `GET path`.
    pub(crate) fn get(&self, path: &str, token: &str) -> String {
        read_to_string(send(&self.address, token, ("GET", path), "", "").unwrap()).unwrap()
    }

    /// The response to `POST path`.
    fn post(&self, path: &str, token: &str, body: &str) -> String {
        read_to_string(send(&self.address, token, ("POST", path), "", body).unwrap()).unwrap()
    }

    /// Ends it by a signal. Returns the exit code and what it has logged.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (wait(&mut self.child).code(), log)
    }
}

/// A test that fails leaves none behind.
impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn s1_the_program_prints_its_url_and_a_first_token_and_ends_by_a_signal() {
    let home = Home::new();
    let first = Serving::start(&home, true);
    let token = first.token.clone().unwrap();
    assert!(first.get("/healthz", "").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(first.get("/api/v1/teams", "").starts_with("HTTP/1.1 401"));
    assert!(first.page.starts_with(&format!("http://{}/#login=ply_", first.address)), "{}", first.page);
    assert!(first.get("/", "").contains("<title>Polylogue</title>"));
    let link = home.run(&["token", "link", "--url", "https://teams.example"]).ok().out;
    assert!(link.starts_with("https://teams.example/#login=ply_"), "{link}");
    let teams = first.get("/api/v1/teams", &token);
    assert!(teams.contains("\"id\":\"pair\"") && teams.contains("\"scripted\":true"), "{teams}");
    let (code, log) = first.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("route=\"/api/v1/teams\" status=200") && log.contains("request_id="), "{log}");
    assert!(!log.contains(&token), "S10: {log}");
    // The second start makes no token, and the first one is still valid.
    let second = Serving::start(&home, false);
    assert!(second.get("/api/v1/teams", &token).starts_with("HTTP/1.1 200"));
    let listed = home.run(&["token", "list"]).ok().out;
    let id = listed.split_whitespace().next().unwrap();
    assert!(listed.ends_with("local  read,run,answer,edit,admin,metrics  first\n"), "{listed}");
    home.run(&["token", "revoke", id]).ok();
    assert!(second.get("/api/v1/teams", &token).starts_with("HTTP/1.1 401"), "a running server refuses it");
    assert_eq!(second.end().0, Some(0));
}

/// What it takes is of this machine alone, by the lists of the system.
#[cfg(target_os = "linux")]
#[test]
fn s1_the_program_listens_on_loopback_only() {
    let home = Home::new();
    let serving = Serving::start(&home, true);
    let begun = serving.post("/api/v1/conversations", serving.token(), r#"{"team": "pair"}"#);
    assert!(begun.starts_with("HTTP/1.1 201"), "{begun}");
    until("it has ended", || {
        serving.document("/api/v1/conversations")["conversations"][0]["state"] == "closed"
    });
    let port: u16 = serving.address.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
    assert_eq!(serving.listens(), [format!("0100007F:{port:04X}")]);
    assert_eq!(serving.end().0, Some(0));
}

/// What the commands show of a conversation is what its server sends of it.
#[test]
fn s18_s31_the_commands_show_what_the_server_sends() {
    const TALK: &str = "
name: talk
task: Count.
agents: [{name: Ann, system: Count., tools: [get_history]}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
script: [{Ann: {calls: [{tool: get_history}]}}, {Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";
    let home = Home::new();
    let serving = Serving::of(&home, home.file("talk.yaml", TALK), true);
    serving.post("/api/v1/conversations", serving.token(), r#"{"team": "talk"}"#);
    let listed = || serving.document("/api/v1/conversations")["conversations"][0].clone();
    until("it has ended", || listed()["state"] == "closed");
    let id = listed()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/conversations/{id}");
    let shown = events_of(home.run(&["show", &id, "--json"]).ok().lines());
    assert_eq!(serving.document(&format!("{path}/events"))["events"], json!(shown));
    for (agent, calls) in [("Ann", 3), ("Bob", 2)] {
        for call in 1..=calls {
            let view = serving.document(&format!("{path}/views/{agent}?call={call}"));
            assert_eq!((&view["exact"], &view["calls"]), (&json!(true), &json!(calls)), "{view}");
            let args = ["show", &id, "--as", agent, "--call", &call.to_string(), "--json"];
            assert_eq!(view["request"], home.run(&args).ok().lines()[0], "call {call} of {agent}");
        }
    }
    assert_eq!(serving.end().0, Some(0));
}

#[test]
fn a_script_speaks_at_its_pace_on_a_server() {
    let home = Home::new();
    let team = TEAM.replace("Hello.", "one two three four") + "script_pace: 200\n";
    let serving = Serving::of(&home, home.file("pair.yaml", &team), true);
    let body = r#"{"model": "pair", "stream": true, "messages": [{"role": "user", "content": "Count."}]}"#;
    let response = serving.post("/v1/chat/completions", serving.token(), body);
    let chunks = response.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = chunks.filter_map(|json| serde_json::from_str::<Value>(json).ok());
    let pieces: Vec<String> = chunks
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .filter(|piece| !piece.is_empty())
        .collect();
    assert_eq!(pieces.concat(), "one two three four", "{response}");
    assert!(pieces.len() > 1, "it came at once: {response}");
}

/// What a check over HTTP finds in `text`.
fn found_over_http(serving: &Serving, text: &str) -> Value {
    let response = serving.post("/api/v1/teams/check", serving.token(), &json!({"text": text}).to_string());
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

/// A team whose agent receives a sound.
const HEARS: &str = "
name: t
agents: [{name: Ann, model: 'MODEL'}]
chat:
  participants: [Ann]
  pattern: sequential
  opening: {text: Hi., media: [{type: audio/wav, url: 'data:audio/wav;base64,AA=='}]}
";

#[test]
fn a_check_over_http_finds_in_models_what_the_command_finds() {
    let home = Home::new();
    let serving = Serving::start(&home, true);
    let team = |model: &str, more: &str| {
        format!(
            "name: t\nmodel: {model}\nagents: [{{name: Ann}}]\nchat: {{participants: [Ann], pattern: sequential}}\n{more}"
        )
    };
    for (text, finding) in [
        (team("acme:big", ""), "there is no provider `acme`"),
        (HEARS.replace("MODEL", "anthropic:claude-sonnet-5"), "`anthropic:claude-sonnet-5` cannot read it"),
        (team("openai:test", "limits: {cost: 1}\n"), "`openai:test`: there is a limit on cost"),
    ] {
        home.file("team.yaml", &text);
        let by_command = home.run(&["check", "team.yaml", "--json"]).exits(2).lines().remove(0);
        let found = found_over_http(&serving, &text);
        assert_eq!((&found["ok"], &found["problems"]), (&json!(false), &by_command["problems"]));
        assert!(found["problems"].to_string().contains(finding), "{found}");
    }
    assert_eq!(found_over_http(&serving, &team("openai:gpt-4o", "limits: {cost: 1}\n"))["ok"], true);
    assert_eq!(serving.end().0, Some(0));
    // What the server allows and limits counts, too.
    let unpriced = team("openai:test", "limits: {cost: 1}\n");
    let unlimited = team("openai:test", "");
    for (option, text, is_right) in [
        (["--allow", "unknown-price"], unpriced, true),
        (["--budget", "1"], unlimited.clone(), false),
        (["--max-cost", "1"], unlimited, false),
    ] {
        let args = ["pair.yaml", "--offline", "--listen", "127.0.0.1:0", option[0], option[1]];
        let home = Home::new();
        home.file("pair.yaml", TEAM);
        let serving = Serving::with(&home, &args, true);
        let found = found_over_http(&serving, &text);
        assert_eq!(found["ok"], is_right, "{option:?}: {found}");
        serving.end();
    }
}

/// What it found would tell which variables are set on the machine of the server.
#[test]
fn a_check_over_http_looks_up_no_variable_that_a_text_names() {
    let home = Home::new().var("MINE", "words");
    let endpoint =
        "endpoints: {own: {api: messages, base_url: 'http://127.0.0.1:1', headers: {X-Mine: {env: MINE}}}}\n";
    let text = HEARS.replace("MODEL", "own:any") + endpoint;
    home.file("team.yaml", &text);
    let allow = ["--allow", "endpoints,env"];
    let by_command = home.run(&[&["check", "team.yaml"][..], &allow].concat()).exits(2);
    assert!(by_command.err.contains("`own:any` cannot read it"), "{}", by_command.err);
    home.file("pair.yaml", TEAM);
    let args = [&["pair.yaml", "--offline", "--listen", "127.0.0.1:0"][..], &allow].concat();
    let serving = Serving::with(&home, &args, true);
    let found = found_over_http(&serving, &text);
    assert_eq!(found["ok"], true, "{found}");
    assert_eq!(serving.end().0, Some(0));
}

/// Waits until the list of teams satisfies `is_there`.
fn teams_until(serving: &Serving, is_there: impl Fn(&str) -> bool) -> String {
    for _ in 0..600 {
        let teams = serving.get("/api/v1/teams", serving.token.as_deref().unwrap());
        if is_there(&teams) {
            return teams;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it does not come");
}

#[test]
fn s41_files_of_a_folder_come_change_and_go_while_the_server_runs() {
    let home = Home::new();
    let folder = home.path("teams");
    std::fs::create_dir(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("pair.yaml", TEAM);
    let mut serving = Serving::of(&home, folder.to_str().unwrap(), true);
    // What an editor keeps while it writes a file, and a name that cannot be an id, do not keep the others from being read.
    write(".#more.yaml", "name: [");
    write("ä.yaml", TEAM);
    write("more.yaml", &TEAM.replace("pair", "more"));
    teams_until(&serving, |teams| teams.contains("\"id\":\"more\""));
    write("pair.yaml", "name: [");
    let teams = teams_until(&serving, |teams| teams.contains("\"changed\":{"));
    assert!(teams.contains("\"name\":\"pair\"") && teams.contains("--> pair.yaml:1:7"), "{teams}");
    // The content is wrong, and the signal does not wait until it is looked at again.
    write("pair.yaml", &TEAM.replace("Say hello.", "Say good night."));
    kill_process(Pid::from_child(&serving.child), Signal::HUP).unwrap();
    let teams = teams_until(&serving, |teams| teams.contains("Say good night."));
    assert!(!teams.contains("\"changed\":{"), "{teams}");
    std::fs::remove_file(folder.join("more.yaml")).unwrap();
    teams_until(&serving, |teams| !teams.contains("\"id\":\"more\""));
    // Also the last one.
    std::fs::remove_file(folder.join("ä.yaml")).unwrap();
    std::fs::remove_file(folder.join("pair.yaml")).unwrap();
    teams_until(&serving, |teams| !teams.contains("\"id\":\"pair\""));
    assert!(serving.child.try_wait().unwrap().is_none(), "it still runs");
    let (code, log) = serving.end();
    assert_eq!((code, log.matches("ä.yaml` cannot be part of a URL").count()), (Some(0), 1), "{log}");
    assert!(!log.contains(".#more"), "{log}");
}

#[test]
fn an_answer_and_a_message_in_the_store_continue_what_the_server_has_begun() {
    const ASKING: &str = "
name: ask
task: Help.
agents: [{name: Ann}, {name: Pat, human: true}]
chat: {participants: [Pat, Ann], pattern: sequential}
script: [{Ann: Thanks.}, {Ann: Well.}]
";
    let home = Home::new();
    let serving = Serving::of(&home, home.file("ask.yaml", ASKING), true);
    let made = serving.post("/api/v1/conversations", serving.token(), "{\"team\": \"ask\"}");
    let (_, made) = made.split_once("\r\n\r\n").unwrap();
    let made: Value = serde_json::from_str(made).unwrap();
    let id = made["id"].as_str().unwrap();
    let is = |state: &str| {
        until(state, || serving.document(&format!("/api/v1/conversations/{id}"))["state"] == state);
    };
    is("waiting");
    let answered = home.run(&["answer", id, "Yes."]).ok();
    assert!(answered.err.contains("answered; the server continues the conversation"), "{}", answered.err);
    is("closed");
    let sent = home.run(&["send", id, "And now?"]).ok();
    assert!(sent.err.contains("sent; the server continues the conversation"), "{}", sent.err);
    is("waiting");
    serving.end();
    let answered = home.run(&["answer", id, "No."]).ok();
    assert!(answered.err.contains(&format!("resume {id}` continues the conversation")), "{}", answered.err);
}

#[test]
fn one_that_waits_in_a_server_says_so_and_is_cancelled_in_the_store() {
    // No call ends while the test runs.
    let model = serve(talk().latency(Duration::from_hours(1)));
    let home = Home::at(&model);
    home.file("team.yaml", TALK);
    let args = ["team.yaml", "--model", "openai:test", "--listen", "127.0.0.1:0", "--limit", "running=1"];
    let serving = Serving::with(&home, &args, true);
    for _ in 0..2 {
        serving.post("/api/v1/conversations", serving.token(), "{\"team\": \"team\"}");
    }
    // The next process continues both, one at a time.
    serving.kill();
    let serving = Serving::with(&home, &args, false);
    let states = || -> Vec<[String; 3]> {
        let mut rows = home.listed();
        rows.sort_by_key(|row| row["status"].to_string());
        rows.iter()
            .map(|row| ["id", "state", "status"].map(|key| row[key].as_str().unwrap().to_owned()))
            .collect()
    };
    let is_waiting = |rows: &[[String; 3]]| rows[0][2] == "running" && rows[1][2] == "waiting for the server";
    until("one runs, and the other one waits", || is_waiting(&states()));
    let [id, state, _] = states().pop().unwrap();
    assert_eq!(state, "queued");
    let shown = home.run(&["show", &id]).ok();
    assert!(shown.err.contains("It waits for the server"), "{}", shown.err);
    let cancelled = home.run(&["cancel", &id]).ok();
    assert!(cancelled.err.starts_with("cancelled: "), "{}", cancelled.err);
    assert_eq!(states()[0], [id.as_str(), "cancelled", "cancelled"].map(str::to_owned));
    let none = home.run(&["cancel", &id]).exits(2);
    assert!(none.err.contains("no process runs"), "{}", none.err);
    serving.kill();
}

#[test]
fn what_is_not_cancelled_says_why() {
    const ASKING: &str = "
name: ask
task: Help.
agents: [{name: Ann}, {name: Pat, human: true}]
chat: {participants: [Pat, Ann], pattern: sequential}
script: [{Ann: Thanks.}]
";
    let home = Home::new();
    let serving = Serving::of(&home, home.file("ask.yaml", ASKING), true);
    serving.post("/api/v1/conversations", serving.token(), "{\"team\": \"ask\"}");
    let is = |state: &str| until(state, || home.listed()[0]["state"] == state);
    is("waiting");
    serving.end();
    let id = home.id();
    let asked = home.run(&["cancel", &id]).exits(2);
    assert!(
        asked.err.contains(&format!("`{id}` waits for Pat, so there is nothing to cancel")),
        "{}",
        asked.err
    );
    home.run(&["resume", &id, "--answer", "Yes."]).ok();
    let ended = home.run(&["cancel", &id]).exits(2);
    assert!(ended.err.contains(&format!("`{id}` has ended, so there is nothing to cancel")), "{}", ended.err);
}

#[test]
fn s41_a_folder_that_cannot_be_read_keeps_its_teams_and_leaves_those_of_others() {
    let home = Home::new();
    let [own, other, away] = ["own", "other", "away"].map(|name| home.path(name));
    for (folder, id) in [(&own, "pair"), (&other, "more")] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join(format!("{id}.yaml")), TEAM.replace("pair", id)).unwrap();
    }
    std::fs::write(own.join("broken.yaml"), "name: [").unwrap();
    let folders = [&own, &other].map(|folder| folder.to_str().unwrap());
    let args = [folders[0], folders[1], "--offline", "--listen", "127.0.0.1:0"];
    let serving = Serving::with(&home, &args, true);
    // As when its disk is removed.
    std::fs::rename(&own, &away).unwrap();
    let teams = teams_until(&serving, |teams| teams.contains("\"changed\":{"));
    assert!(teams.contains("\"id\":\"pair\"") && teams.contains("\"name\":\"pair\""), "{teams}");
    let text = TEAM.replace("pair", "more").replace("Say hello.", "Say good night.");
    std::fs::write(other.join("more.yaml"), text).unwrap();
    teams_until(&serving, |teams| teams.contains("Say good night."));
    std::fs::rename(&away, &own).unwrap();
    let teams = teams_until(&serving, |teams| !teams.contains("\"changed\":{"));
    assert!(teams.contains("\"id\":\"pair\"") && !teams.contains("broken"), "{teams}");
    let (code, log) = serving.end();
    let said = |text: &str| log.matches(text).count();
    assert_eq!((code, said("teams of a folder stay as they were")), (Some(0), 1), "{log}");
    assert_eq!(said("a folder of teams can be read again"), 1, "{log}");
}

#[test]
fn a_second_file_with_the_id_of_a_served_team_is_reported_once_and_leaves_the_others() {
    let home = Home::new();
    let folder = home.path("teams");
    std::fs::create_dir(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    // The one that is served is used, and not the first by name.
    write("pair.yml", TEAM);
    let serving = Serving::of(&home, folder.to_str().unwrap(), true);
    write("pair.yaml", &TEAM.replace("Say hello.", "Say nothing."));
    write("more.yaml", &TEAM.replace("pair", "more"));
    teams_until(&serving, |teams| teams.contains("\"id\":\"more\""));
    write("pair.yml", &TEAM.replace("Say hello.", "Say good night."));
    let teams = teams_until(&serving, |teams| teams.contains("Say good night."));
    assert!(!teams.contains("Say nothing."), "{teams}");
    // A server that starts cannot tell which is meant.
    let refused = home.run(&["serve", folder.to_str().unwrap(), "--offline"]).exits(2);
    assert!(refused.err.contains("would both be the team `pair`"), "{}", refused.err);
    std::fs::remove_file(folder.join("pair.yml")).unwrap();
    teams_until(&serving, |teams| teams.contains("Say nothing."));
    let (code, log) = serving.end();
    assert_eq!((code, log.matches("would both be the team `pair`").count()), (Some(0), 1), "{log}");
    assert!(log.contains("give one of the files another name"), "{log}");
}

#[test]
fn a_team_of_a_folder_that_cannot_be_served_leaves_the_others() {
    let home = Home::new();
    let folder = home.path("teams");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("pair.yaml"), TEAM).unwrap();
    let wants_more = TEAM.replace("{name: Ann}", "{name: Ann, tools: [{mcp: parts}]}")
        + "mcp: {parts: {command: python3, args: [x.py]}}\n";
    std::fs::write(folder.join("wants.yaml"), wants_more).unwrap();
    std::fs::write(folder.join("broken.yaml"), "name: [").unwrap();
    std::fs::write(folder.join("ä.yaml"), TEAM).unwrap();
    std::fs::write(folder.join(".pair.yaml"), "name: [").unwrap();
    let serving = Serving::of(&home, folder.to_str().unwrap(), true);
    let teams = serving.get("/api/v1/teams", serving.token.as_deref().unwrap());
    assert!(teams.contains("\"id\":\"pair\"") && !teams.contains("wants"), "{teams}");
    let (code, log) = serving.end();
    assert_eq!(code, Some(0));
    for file in ["wants.yaml` is not served", "broken.yaml` is not served: this is ", "ä.yaml` is not served"]
    {
        assert!(log.contains(file), "{log}");
    }
    assert!(!log.contains(".pair.yaml"), "{log}");
    // One that is named must be in order, and so must be the only one of a folder.
    home.run(&["serve", folder.join("wants.yaml").to_str().unwrap(), "--offline"]).exits(2);
    std::fs::remove_file(folder.join("pair.yaml")).unwrap();
    std::fs::remove_file(folder.join("wants.yaml")).unwrap();
    home.run(&["serve", folder.to_str().unwrap(), "--offline"]).exits(2);
}

#[test]
fn a_token_is_printed_once_and_listed_without_its_text() {
    let home = Home::new();
    let made = home
        .run(&["token", "new", "for CI", "--scope", "read,run", "--tenant", "ci", "--expires", "1h"])
        .ok();
    let text = made.out.trim();
    assert!(text.starts_with("ply_") && text.len() == 68, "{text}");
    let listed = home.run(&["token", "list", "--json"]).ok().lines().remove(0);
    assert_eq!((&listed["name"], &listed["tenant"]), (&"for CI".into(), &"ci".into()));
    assert_eq!(listed["scopes"], serde_json::json!(["read", "run"]));
    assert!(listed["expires_ms"].as_u64() > listed["created_ms"].as_u64());
    assert!(!listed.to_string().contains(text));
    let wrong = home.run(&["token", "new", "x", "--tenant", "../x"]).exits(2);
    assert!(wrong.err.contains("is not a tenant"), "{}", wrong.err);
    home.run(&["token", "revoke", "tok-none"]).exits(2);
}

#[test]
fn s5_other_machines_are_not_served_without_a_token() {
    let home = Home::new();
    let args = ["serve", home.file("pair.yaml", TEAM), "--offline", "--listen", "0.0.0.0:0"];
    let ran = home.run(&args).exits(2);
    assert!(
        ran.err.contains("no token was made yet") && ran.err.contains("hint: make one with"),
        "{}",
        ran.err
    );
    assert_eq!(ran.out, "");
    let empty = home.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let ran = home.run(&["serve", empty.to_str().unwrap()]).exits(2);
    assert!(ran.err.contains("has no team files"), "{}", ran.err);
}

#[test]
fn a_limit_is_changed_by_its_name() {
    let home = Home::new();
    let team = home.file("pair.yaml", TEAM);
    for (given, said) in [
        ("runing=3", "there is no limit `runing`; there are `"),
        ("head_bytes=1", "the limit `head_bytes` is a whole number from 8192 to 1000000000"),
        ("running", "it must be `NAME=NUMBER`"),
        ("running=0", "a whole number of at least 1"),
    ] {
        let ran = home.run(&["serve", team, "--offline", "--limit", given]).exits(2);
        assert!(ran.err.contains(said), "{given}: {}", ran.err);
    }
    // A request of these tests has four header fields.
    for (limit, is_served) in [("header_fields=4", true), ("header_fields=3", false)] {
        let args = [team, "--offline", "--listen", "127.0.0.1:0", "--limit", limit];
        let server = Serving::with(&home, &args, is_served);
        assert_eq!(server.get("/healthz", "").starts_with("HTTP/1.1 200 OK"), is_served, "{limit}");
    }
}

#[test]
fn options_of_a_server_that_cannot_be_are_refused_with_what_they_must_be() {
    let home = Home::new();
    let team = home.file("pair.yaml", TEAM).to_owned();
    for (option, value, expected) in [
        ("--trusted-proxy", "10.0/8", "an address or a network, such as `10.0.0.7` or `10.0.0.0/8`"),
        ("--trusted-proxy", "10.0.0.0/40", "an address or a network, such as `10.0.0.7` or `10.0.0.0/8`"),
        ("--chat-show", "all", "expected one of result, transcript, none"),
        ("--conversation-header", "X Chat:", "`X Chat:` is not the name of a header"),
        ("--conversation-header", "Cookie", "the header `Cookie` does not identify a chat"),
    ] {
        let refused =
            home.run(&["serve", &team, "--offline", "--listen", "127.0.0.1:0", option, value]).exits(2);
        let words = refused.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{option} {value}: {}", refused.err);
    }
}
