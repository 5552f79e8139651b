//! The same commands against a server: what a person sees is the same.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::home::{
    Home, PROGRAM, Ran, UNREACHABLE, assert_whole, of_type, serve, shipped, timeless, until, wait,
};
use crate::models::{CALLS, SAID, TALK, said, talk};
use crate::serving::Serving;
use crate::terminal::Terminal;

const TEAMS: [(&str, &str); 4] = [
    (
        "pair",
        "
name: pair
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 3}}
script: [{Ann: '**one**'}, {Bob: two}, {Ann: three}, {Bob: four}, {Ann: five}]
",
    ),
    (
        "once",
        "
name: once
task: Greet.
agents: [{name: Ann}]
chat: {participants: [Ann], pattern: sequential}
script: [{Ann: Hello.}]
",
    ),
    (
        "ask",
        "
name: ask
task: Help.
agents: [{name: Ann}, {name: Pat, human: true}]
chat: {participants: [Pat, Ann], pattern: sequential}
script: [{Ann: Thanks.}]
",
    ),
    (
        "short",
        "
name: short
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin}
limits: {calls: 3}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}, {Ann: five}, {Bob: six}]
",
    ),
];

/// A home with these teams.
fn home() -> Home {
    let home = Home::new();
    fs::create_dir(home.path("teams")).unwrap();
    for (name, text) in TEAMS {
        fs::write(home.path(&format!("teams/{name}.yaml")), text).unwrap();
    }
    home
}

/// A server of these teams, and a home whose commands are for it.
fn served() -> (Home, Serving) {
    let mut home = home();
    let serving = Serving::of(&home, "teams", true);
    use_server(&mut home, &serving);
    (home, serving)
}

pub(crate) fn use_server(home: &mut Home, serving: &Serving) {
    home.set("POLYLOGUE_SERVER", &format!("http://{}", serving.address()));
    home.set("POLYLOGUE_TOKEN", serving.token());
}

/// The output without what differs from run to run, and the exit code.
fn shown(ran: &Ran, home: &Home) -> String {
    let text = ran.masked(home);
    let (out, rest) = text.split_once("--- ").unwrap();
    format!("{out}--- {}", rest.lines().next().unwrap())
}

/// The text without how long ago something was.
fn ageless(text: &str) -> String {
    let mut parts: Vec<&str> = text.split(" s ago").collect();
    let last = parts.pop().unwrap_or_default();
    let is_age = |c: char| c.is_ascii_digit() || c == ' ';
    let before = parts.iter().map(|part| format!("{} N ago", part.trim_end_matches(is_age)));
    before.collect::<String>() + last
}

/// The lines of `--json` without what differs.
fn lines(ran: &Ran) -> Vec<Value> {
    let mut lines = timeless(&ran.lines());
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        for key in ["id", "elapsed_ms", "continue"] {
            line.shift_remove(key);
        }
    }
    lines
}

#[test]
fn a_run_looks_the_same_on_a_server() {
    let (here, (there, serving)) = (home(), served());
    for team in ["pair", "once", "ask", "short"] {
        let path = format!("teams/{team}.yaml");
        for options in [&[][..], &["--quiet"], &["--style", "autogen"], &["--max-turns", "2"]] {
            let local: Vec<&str> = ["run", &path, "--offline"].iter().chain(options).copied().collect();
            let remote: Vec<&str> = ["run", team].iter().chain(options).copied().collect();
            let (local, remote) = (here.run(&local), there.run(&remote));
            assert_eq!(shown(&local, &here), shown(&remote, &there), "{team} {options:?}: {}", remote.err);
        }
        let (local, remote) =
            (here.run(&["run", &path, "--offline", "--json"]), there.run(&["run", team, "--json"]));
        assert_eq!((local.code, lines(&local)), (remote.code, lines(&remote)), "{team}: {}", remote.err);
    }
    // Answers come from a pipe, as they do here.
    let local = here.run_reading("I am stuck.\n", &["run", "teams/ask.yaml", "--offline"]);
    let remote = there.run_reading("I am stuck.\n", &["run", "teams/ask.yaml"]);
    assert_eq!((local.code, remote.code), (0, 0), "{}", remote.err);
    assert_eq!(shown(&local, &here), shown(&remote, &there));
    // What waits is answered later, and what has ended continues.
    for (home, run) in [(&here, &["run", "teams/ask.yaml", "--offline"][..]), (&there, &["run", "ask"])] {
        home.run(run).exits(5);
    }
    let both = |args: &[&str]| {
        let (local, remote) = (here.run(args), there.run(args));
        assert_eq!(shown(&local, &here), shown(&remote, &there), "{args:?}: {}", remote.err);
        local
    };
    assert_eq!(both(&["resume", "last", "--answer", "I am stuck."]).code, 0);
    for (home, run) in [(&here, &["run", "teams/short.yaml", "--offline"][..]), (&there, &["run", "short"])] {
        home.run(run).exits(3);
    }
    let more = both(&["resume", "last", "--max-calls", "2"]);
    assert!(more.code == 3 && more.out.contains("five"), "{}", more.out);
    serving.end();
}

#[test]
fn lists_and_conversations_look_the_same_through_a_server() {
    let (there, serving) = served();
    let url = format!("http://{}", serving.address());
    there.run(&["run", "pair"]).ok();
    there.run(&["run", "ask"]).exits(5);
    there.run(&["run", "once", "Greet all."]).ok();
    // The same store without the server.
    let mut here = home();
    here.set("POLYLOGUE_STORE", &there.path("store.db").display().to_string());
    let id = there.listed()[2]["id"].as_str().unwrap().to_owned();
    until("the server has left it", || here.run(&["archive", &id]).code == 0);
    let archived: Vec<bool> = there.listed().iter().map(|row| row["archived"] == true).collect();
    assert_eq!(archived, [false, false, true]);
    for args in [
        &["runs"][..],
        &["runs", "--json"],
        &["runs", "--state", "waiting"],
        &["runs", "--team", "pair", "--limit", "1"],
        &["runs", "--task", "greet"],
        &["waiting"],
        &["waiting", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["show", &id, "--markdown"],
        &["show", &id, "--style", "autogen"],
        &["show", &id, "--cost"],
        &["show", &id, "--as", "Bob"],
        &["show", &id, "--history"],
        &["show", &id, "--history", "--as", "Bob"],
        &["show", &id, "--history", "--json"],
        &["show", &id, "--side-by-side"],
        &["show", &id, "--as", "Ann", "--call", "1", "--json"],
        &["show", "last"],
        &["verify"],
        &["verify", &id],
        &["verify", "--json"],
        &["memory", "list"],
        &["memory", "search", "tea", "--json"],
    ] {
        let remote = there.run(args);
        let local = here.run(args).ok();
        assert_eq!((ageless(&local.out), 0), (ageless(&remote.out), remote.code), "{args:?}: {}", remote.err);
        assert!(!remote.err.contains("warning"), "{}", remote.err);
    }
    // The option is as good as the variable, and counts for what is printed.
    here.set("POLYLOGUE_TOKEN", serving.token());
    let ran = here.run(&["run", "ask", "--server", &url]).exits(5);
    assert!(ran.out.contains(&format!("--answer TEXT --server {url}`")), "{}", ran.out);
    let fork = here.run(&["fork", "last", "--server", &url]).ok();
    let resume = format!("`polylogue resume {} --server {url}`", fork.out.trim());
    assert!(fork.err.contains(&resume), "{}", fork.err);
}

#[test]
fn a_batch_is_the_same_on_a_server_and_continues_where_it_was() {
    let (here, (there, serving)) = (home(), served());
    let rows = "id,task\na,Count up.\nb,Count down.\nc,Count sheep.\n";
    let records = |home: &Home| -> Vec<Value> {
        let text = fs::read_to_string(home.path("out.jsonl")).unwrap();
        let mut records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for record in &mut records {
            // Of the conversation and of the team as it was identified.
            record.as_object_mut().unwrap().retain(|key, _| key != "conversation" && key != "team");
        }
        records
    };
    for home in [&here, &there] {
        fs::write(home.path("rows.csv"), rows).unwrap();
    }
    let rest = ["--over", "rows.csv", "-o", "out.jsonl", "--at-once", "2"];
    for (team, code) in [("once", 0), ("short", 3), ("ask", 5)] {
        let path = format!("teams/{team}.yaml");
        let local = here.run(&[&["batch", &path, "--offline"], &rest[..]].concat());
        let remote = there.run(&[&["batch", team], &rest[..]].concat());
        assert_eq!((local.code, remote.code), (code, code), "{team}: {}", remote.err);
        assert_eq!(records(&here), records(&there), "{team}");
        assert!(
            remote.out.contains(&format!("conversations: http://{}", serving.address())),
            "{}",
            remote.out
        );
        let begun = there.listed().len();
        // Again: what is over is not run again, and what waits waits in the same conversation.
        let again = there.run(&[&["batch", team], &rest[..]].concat());
        assert_eq!((again.code, there.listed().len()), (code, begun), "{team}: {}", again.err);
        assert_eq!(records(&here), records(&there), "{team}");
        for home in [&here, &there] {
            fs::remove_file(home.path("out.jsonl")).unwrap();
        }
    }
    // What was answered meanwhile is taken up.
    let waiting = there.run(&[&["batch", "ask"], &rest[..]].concat()).exits(5);
    assert!(
        waiting.out.contains("who is waited for answers by `polylogue resume ID --answer TEXT`"),
        "{}",
        waiting.out
    );
    let ids: Vec<Value> = fs::read_to_string(there.path("out.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["conversation"].clone())
        .collect();
    for id in &ids {
        there.run(&["resume", id.as_str().unwrap(), "--answer", "I am stuck."]).ok();
    }
    there.run(&[&["batch", "ask"], &rest[..]].concat()).ok();
    assert!(records(&there).iter().all(|record| record["summary"] == "Thanks."), "{:?}", records(&there));
    // A mistake of a row is one of the command.
    fs::write(there.path("rows.csv"), "id,color\na,red\n").unwrap();
    let wrong = there.run(&["batch", "once", "--over", "rows.csv", "-o", "other.jsonl"]).exits(2);
    assert!(wrong.err.contains("the row `a` cannot be begun"), "{}", wrong.err);
    serving.end();
}

#[test]
fn a_chat_with_a_team_of_a_server_is_held_line_by_line() {
    let (here, mut there) = (home(), home());
    let twice = "name: twice\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\nscript: [{Ann: One.}, {Ann: Two.}]\n";
    fs::write(there.path("teams/twice.yaml"), twice).unwrap();
    let serving = Serving::of(&there, "teams", true);
    use_server(&mut there, &serving);
    for input in ["Greet.\n", "Greet.\n\nAnd again.\n"] {
        let local = here.run_reading(input, &["chat", "teams/once.yaml", "--offline"]);
        let remote = there.run_reading(input, &["chat", "once"]);
        assert_eq!((local.code, &local.out), (remote.code, &remote.out), "{input:?}: {}", remote.err);
    }
    assert_whole(&[there.run_reading("Greet.\n", &["chat", "once", "--json"]).ok().lines()], &there.events());
    // Each line is a message of the same conversation, also after the program has ended.
    let first = there.run_reading("Count.\n", &["chat", "twice"]).ok();
    assert_eq!(first.out, "One.\n", "{}", first.err);
    let id = there.id();
    let more = there.run_reading("Go on.\n", &["chat", "--resume", &id]).ok();
    assert_eq!(more.out, "Two.\n", "{}", more.err);
    assert_eq!(there.id(), id, "no other conversation has begun");
    let events = there.events();
    assert_eq!(of_type(&events, "reopened")[0]["message"]["parts"][0]["text"], "Go on.");
    let asked = there.run_reading("Help.\n", &["chat", "ask"]).exits(5);
    assert!(asked.err.contains("Pat is asked"), "{}", asked.err);
    let none = there.run_reading("Hi.\n", &["chat"]).exits(2);
    assert!(none.err.contains("the server has `ask`, `once`"), "{}", none.err);
    serving.end();
}

/// The model has no bound on tokens, but one on calls, which the longer answer ends.
#[test]
fn where_a_run_on_a_server_ends_or_waits_it_is_said_once_that_its_bound_does_not_apply() {
    let (home, serving) = served();
    let line = "the maximum computed before the run no longer applies: ";
    let said = |ran: &Ran| ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let waits = home.run(&["run", "ask"]).exits(5);
    assert!(!said(&waits).contains(line), "{}", waits.err);
    let long = home.run(&["resume", "last", "--answer", &"x".repeat(4_001)]).ok();
    assert!(said(&long).contains(&format!("{line}a person wrote more than 4,000 bytes")), "{}", long.err);
    let again = home.run(&["resume", "last", "And now?", "--json"]).exits(5);
    assert!(of_type(&again.lines(), "bound_ended").is_empty(), "it was said: {}", again.out);
    serving.end();
}

#[test]
fn conversations_of_a_server_are_steered() {
    let (home, serving) = served();
    home.run(&["run", "ask"]).exits(5);
    let fork = home.run(&["fork", "last"]).ok().out.trim().to_owned();
    let none = home.run(&["cancel", &fork]).exits(2);
    assert!(none.err.contains("so there is nothing to cancel"), "{}", none.err);
    let many = home.run(&["answer", &fork, "7", "yes"]).exits(2);
    assert!(many.err.contains("has no open question 7"), "{}", many.err);
    for author in [&["--as", "Ann"][..], &["--system"]] {
        assert_eq!(home.run(&[&["send", &fork, "Hurry."], author].concat()).ok().err, "sent\n");
    }
    let events = home.events();
    let from: Vec<&Value> = of_type(&events, "sent").iter().map(|event| &event["from"]).collect();
    assert_eq!(from, ["Ann", "system"]);
    assert_eq!(home.run(&["answer", &fork, "I am stuck."]).ok().err, "answered\n");
    until("it ends", || home.listed()[0]["status"].as_str().unwrap().starts_with("done"));
    let ended = home.run(&["pause", &fork]).exits(2).err;
    let why = format!("`{fork}` has ended, so there is nothing to pause");
    assert!(ended.contains(&why) && ended.contains("continues it: `polylogue send "), "{ended}");
    assert_eq!(home.run(&["send", &fork, "And now?"]).ok().err, "sent\n");
    until("it asks again", || home.listed()[0]["status"] == "waiting for Pat");
    let open = home.run(&["resume", &fork, "Hi"]).exits(2);
    assert!(open.err.contains("--answer TEXT"), "{}", open.err);
    let lower = home.run(&["raise", &fork, "--max-turns", "3"]).exits(2);
    assert!(lower.err.contains("it would lower the limit of 100 turns to "), "{}", lower.err);
    let unknown = home.run(&["next", &fork, "Eve"]).exits(2);
    assert!(
        unknown.err.contains("there is no participant `Eve`") && unknown.err.contains("`Pat`, `Ann`"),
        "{}",
        unknown.err
    );
    assert_eq!(home.run(&["rm", &fork, &fork]).ok().out, format!("removed {fork}\n"));
    let gone = home.run(&["show", &fork]).exits(2);
    assert!(gone.err.contains(&format!("there is no conversation `{fork}`")), "{}", gone.err);
    serving.end();
}

#[test]
fn a_run_on_a_server_that_waits_for_a_higher_limit_continues_when_it_is_raised() {
    let mut home = home();
    let asks = TEAMS[3].1.replace("name: short", "name: asks").replace("calls: 3", "calls: 2, on_limit: ask");
    fs::write(home.path("teams/asks.yaml"), asks).unwrap();
    let serving = Serving::of(&home, "teams", true);
    use_server(&mut home, &serving);
    home.run(&["run", "asks"]).exits(5);
    assert_eq!(home.run(&["raise", "last", "--max-calls", "1"]).ok().err, "raised\n");
    until("it asks again", || of_type(&home.events(), "input_required").len() == 2);
    assert_eq!(said(&home.events()), ["Count.", "one", "two", "three"]);
    serving.end();
}

#[test]
fn the_limits_of_one_agent_are_raised_at_a_server() {
    let mut home = home();
    let few = TEAMS[0].1.replace("name: pair", "name: few");
    fs::write(home.path("teams/few.yaml"), few.replace("{name: Ann}", "{name: Ann, limits: {calls: 1}}"))
        .unwrap();
    let serving = Serving::of(&home, "teams", true);
    use_server(&mut home, &serving);
    home.run(&["run", "few"]).exits(3);
    let other = home.run(&["raise", "last", "--agent", "Bob", "--max-calls", "1"]).exits(2);
    assert!(other.err.contains("agents with limits: `Ann`"), "{}", other.err);
    assert!(
        home.run(&["raise", "last", "--agent", "Ann", "--max-calls", "1"]).ok().err.starts_with("raised; ")
    );
    home.run(&["resume", "last"]).ok();
    assert_eq!(said(&home.events()), ["Count.", "**one**", "two", "three"]);
    serving.end();
}

#[test]
fn the_limits_of_a_nested_chat_are_raised_at_a_server() {
    let mut home = home();
    let team = "name: office\ntask: Count.\nlimits: {on_limit: ask}\nagents: [{name: Ann}, {name: Bob}]\n\
                chat: {pattern: sequential, participants: [desk]}\n\
                chats: [{name: desk, participants: [Ann, Bob], limits: {calls: 1}, stop: {max_turns: 2}}]\n\
                script: [{Ann: one}, {Bob: two}]\n";
    fs::write(home.path("teams/office.yaml"), team).unwrap();
    let serving = Serving::of(&home, "teams", true);
    use_server(&mut home, &serving);
    home.run(&["run", "office"]).exits(5);
    let other = home.run(&["raise", "last", "--chat", "office", "--max-calls", "1"]).exits(2);
    assert!(other.err.contains("open are: `desk`"), "{}", other.err);
    assert_eq!(home.run(&["raise", "last", "--chat", "desk", "--max-calls", "1"]).ok().err, "raised\n");
    until("it has ended", || home.events().last().is_some_and(|event| event["type"] == "closed"));
    assert_eq!(of_type(&home.events(), "own_limits_raised").len(), 1);
    serving.end();
}

#[test]
fn a_run_on_a_server_that_no_one_answers_ends_when_others_have_had_their_turns() {
    let model =
        serve(Behavior::from(Playbook::always(Answer::text("I agree."))).latency(Duration::from_secs(1)));
    let mut home = Home::at(&model);
    let team = "name: team\ntask: Decide.\nagents: [{name: Kim, human: true}, {name: Bot, system: b}]\n\
                chat: {participants: [Kim, Bot], pattern: parallel}\n";
    home.file("team.yaml", team);
    let serving =
        Serving::with(&home, &["team.yaml", "--model", "openai:test", "--listen", "127.0.0.1:0"], true);
    use_server(&mut home, &serving);
    let ran = home.run(&["run", "team"]).exits(5);
    assert!(ran.out.contains("\nwaiting for Kim · "), "{}", ran.out);
    assert_eq!(of_type(&home.events(), "model_replied").len(), 1, "{}", ran.out);
    serving.end();
}

#[test]
fn a_server_that_cannot_be_used_is_an_error_with_a_hint_and_no_token() {
    let (mut home, serving) = served();
    let token = serving.token().to_owned();
    for (args, hint) in [
        (
            &["run", "nothing"][..],
            "hint: the server has `ask`, `once`, `pair`, `short`; it runs no team files of this",
        ),
        (&["run", "pair", "--model", "openai:x"], "`--model` does not work with a server"),
        (
            &["batch", "pair", "--over", "rows.csv", "-o", "x", "--budget", "1"],
            "`--budget` does not work with a server",
        ),
        (&["run", "pair", "--max-turns", "0"], "at least 1"),
        (&["show", "nothing"], "`polylogue runs` lists them"),
    ] {
        let ran = home.run(args).exits(2);
        assert!(ran.err.contains(hint), "{args:?}: {}", ran.err);
    }
    // What is about files of this machine does not ask the server.
    home.run(&["check", "teams/pair.yaml"]).ok();
    home.set("POLYLOGUE_TOKEN", "ply_wrong");
    let wrong = home.run(&["runs"]).exits(2);
    assert!(wrong.err.contains("token") && !wrong.err.contains("ply_wrong"), "{}", wrong.err);
    home.set("POLYLOGUE_TOKEN", "");
    let none = home.run(&["runs"]).exits(2);
    assert!(
        none.err.contains("there is no token for the server") && none.err.contains("hint: set"),
        "{}",
        none.err
    );
    // The user's file of tokens, which no one else may read.
    fs::create_dir_all(home.path(".config/polylogue")).unwrap();
    let file = home.path(".config/polylogue/servers.yaml");
    fs::write(&file, format!("http://{}: {token}\n", serving.address())).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let open = home.run(&["runs"]).exits(2);
    assert!(open.err.contains("others can read the tokens") && !open.err.contains(&token), "{}", open.err);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    home.run(&["runs"]).ok();
    let ran = home.run(&["runs", "--server", "http://user:secret@127.0.0.1:1"]).exits(2);
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    serving.end();
    home.set("POLYLOGUE_TOKEN", &token);
    home.set("POLYLOGUE_SERVER", UNREACHABLE);
}

/// A server whose model takes its time.
fn slow(latency: Duration) -> (Home, Server, Serving) {
    let model = serve(talk().latency(latency));
    let mut home = Home::at(&model).with_team(TALK);
    let serving =
        Serving::with(&home, &["team.yaml", "--model", "openai:test", "--listen", "127.0.0.1:0"], true);
    use_server(&mut home, &serving);
    (home, model, serving)
}

#[test]
fn s20_s39_a_client_goes_through_a_kill_and_a_restart_of_its_server() {
    let (home, model, serving) = slow(Duration::from_millis(300));
    let address = serving.address().to_owned();
    let running = home.start(&["run", "team", "--json"]);
    until("the model is asked", || model.count() >= 3);
    serving.kill();
    let serving = Serving::with(&home, &["team.yaml", "--model", "openai:test", "--listen", &address], false);
    let ran = running.end().ok();
    assert!(
        ran.err.contains("the connection to the server was lost") && ran.err.contains("connected again"),
        "{}",
        ran.err
    );
    let lines = ran.lines();
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!(
        (&first["type"], &last["type"], &last["state"]),
        (&"run_started".into(), &"run_ended".into(), &"done".into())
    );
    let events = home.events();
    assert_whole(std::slice::from_ref(&lines), &events);
    assert_eq!(said(&events), SAID);
    assert_eq!(of_type(&events, "model_replied").len(), CALLS);
    serving.end();
}

#[test]
fn a_run_of_a_server_is_paused_and_resumed() {
    let (home, model, serving) = slow(Duration::from_millis(400));
    let running = home.start(&["run", "team"]);
    until("the model is asked", || model.count() >= 2);
    let paused = home.run(&["pause", "last"]).ok();
    assert!(paused.err.starts_with("paused; `polylogue resume "), "{}", paused.err);
    assert_eq!(of_type(&home.events(), "paused").len(), 1);
    assert_eq!(home.listed()[0]["status"], "paused");
    let resumed = home.run(&["resume", "last"]).ok();
    assert!(resumed.out.contains("\ndone: Bob said `GOODBYE` · "), "{}", resumed.out);
    running.end().ok();
    let events = home.events();
    assert_eq!(said(&events), SAID);
    assert_eq!(of_type(&events, "resumed").len(), 1);
    serving.end();
}

#[test]
fn a_run_of_a_server_is_steered_by_key() {
    let (home, _model, serving) = slow(Duration::from_millis(600));
    let mut terminal = Terminal::open(&home, (100, 80), &["run", "team"]);
    terminal.wait_for("participants: Alice, Bob");
    terminal.press("\u{1c}");
    terminal.wait_for("steer>");
    terminal.press("/pause\r");
    until("it is paused", || of_type(&home.events(), "paused").len() == 1);
    terminal.wait_for("no other begins");
    terminal.press("\u{1c}");
    terminal.press_at("no other begins", "be brief\r");
    until("the message is posted", || of_type(&home.events(), "sent").len() == 1);
    terminal.press("\u{1c}");
    terminal.press_at("be brief", "/resume\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let events = home.events();
    assert_eq!(["paused", "sent", "resumed"].map(|kind| of_type(&events, kind).len()), [1, 1, 1], "{seen}");
    assert_eq!(of_type(&events, "message").len(), SAID.len() - 1, "nothing is lost: {seen}");
    serving.end();
}

#[test]
fn a_question_of_a_server_can_be_steered_before_it_is_answered() {
    let (home, serving) = served();
    let mut terminal = Terminal::open(&home, (100, 60), &["run", "ask"]);
    terminal.wait_for("\nPat>");
    terminal.press("\u{1c}");
    terminal.wait_for("steer>");
    terminal.press("hurry\r");
    until("the message is posted", || of_type(&home.events(), "sent").len() == 1);
    terminal.press_at("hurry", "fine\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert_eq!(of_type(&home.events(), "input_provided")[0]["text"], "fine", "{seen}");
    serving.end();
}

#[test]
fn facts_of_a_server_are_listed_found_and_forgotten() {
    let (mut home, text) = (home(), fs::read_to_string(shipped("remembers")).unwrap());
    fs::write(home.path("teams/remembers.yaml"), text).unwrap();
    let serving = Serving::of(&home, "teams", true);
    use_server(&mut home, &serving);
    home.run(&["run", "remembers"]).ok();
    // The same store without the server.
    let mut here = self::home();
    here.set("POLYLOGUE_STORE", &home.path("store.db").display().to_string());
    for args in [
        &["memory", "list"][..],
        &["memory", "list", "--json"],
        &["memory", "list", "--scope", "guest Ann"],
        &["memory", "search", "tea"],
        &["memory", "search", "tea", "--scope", "nothing", "--json"],
    ] {
        let (local, remote) = (here.run(args).ok(), home.run(args).ok());
        assert_eq!(ageless(&local.out), ageless(&remote.out), "{args:?}");
    }
    assert_eq!(home.run(&["memory", "forget", "#1"]).ok().out, "forgot #1\n");
    assert_eq!(here.run(&["memory", "list"]).ok().out, "");
    let gone = home.run(&["memory", "forget", "1"]).exits(2);
    assert!(gone.err.contains("there is no fact #1"), "{}", gone.err);
    serving.end();
}

#[test]
fn a_server_that_does_not_run_is_reported_at_once_and_ctrl_c_ends_the_wait() {
    let mut home = home();
    home.set("POLYLOGUE_SERVER", UNREACHABLE.trim_end_matches("/v1"));
    home.set("POLYLOGUE_TOKEN", "ply_none");
    let mut child = home.command(PROGRAM, &["runs"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("the server at `http://127.0.0.1:1` cannot be reached: "), "{line}");
    assert!(line.ends_with("; trying again for at most 30 s, until Ctrl-C\n"), "{line}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(wait(&mut child).signal(), Some(2), "it waits no longer");
}

#[test]
fn ctrl_c_stops_the_run_on_the_server_and_resume_continues_it() {
    let (home, model, serving) = slow(Duration::from_millis(400));
    let running = home.start(&["run", "team"]);
    until("the model is asked", || model.count() >= 2);
    running.signal(Signal::INT);
    let ran = running.end().exits(6);
    assert!(ran.err.contains("the server finishes this step; Ctrl-C again stops now\n"), "{}", ran.err);
    assert!(ran.out.contains("\nstopped: it can be resumed · "), "{}", ran.out);
    let before = said(&home.events()).len();
    assert!(before < SAID.len());
    let ran = home.run(&["resume", "last"]).ok();
    assert!(ran.out.contains("\ndone: Bob said `GOODBYE` · "), "{}", ran.out);
    assert_eq!(said(&home.events()), SAID);
    serving.end();
}

#[test]
fn the_cluster_of_a_server_is_shown_as_that_of_its_store() {
    let mut home = home();
    let serving = Serving::of(&home, "teams", true);
    home.run(&["run", "teams/pair.yaml", "--detach", "--needs", "gpu"]).ok();
    let rows = |home: &Home| {
        let mut rows = home.run(&["cluster", "--json"]).ok().lines();
        rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().shift_remove("overdue_ms")));
        rows
    };
    let (local, told) = (rows(&home), home.run(&["cluster"]).ok());
    assert_eq!((local.len(), &local[0]["state"]), (1, &Value::from("ready")));
    let not_begun = home.run(&["pause", "last"]).exits(2).err;
    assert!(not_begun.contains("has not begun: it waits for a worker"), "{not_begun}");
    use_server(&mut home, &serving);
    assert_eq!(rows(&home), local);
    assert_eq!(home.run(&["pause", "last"]).exits(2).err, not_begun);
    let remote = home.run(&["cluster"]).ok();
    assert!(
        remote.out.starts_with("ready ") && remote.out.contains("no worker offers gpu"),
        "{}",
        remote.out
    );
    assert_eq!(remote.err, told.err);
    // What a worker would continue is cancelled, once.
    assert_eq!(home.run(&["cancel", "last"]).ok().err, "cancelled\n");
    assert!(rows(&home).is_empty());
    let none = home.run(&["cancel", "last"]).exits(2);
    assert!(none.err.contains("so there is nothing to cancel"), "{}", none.err);
    let refused = home.run(&["--server", "http://127.0.0.1:1", "cluster", "--recount", "x"]).exits(2);
    assert!(refused.err.contains("`--recount`") && refused.err.contains("hint: "), "{}", refused.err);
}
