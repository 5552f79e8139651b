//! `fork`, `send`, and the list of conversations in pages.

use crate::home::{Home, assert_whole, of_type};

const TEAM: &str = "
name: talk
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 2}}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";

fn home() -> (Home, String) {
    let home = Home::new();
    home.file("talk.yaml", TEAM);
    home.run(&["run", "talk.yaml", "--offline"]).ok();
    let runs = home.run(&["runs", "--json"]).ok().lines();
    let id = runs[0]["id"].as_str().unwrap().to_owned();
    (home, id)
}

#[test]
fn a_fork_is_another_conversation_with_another_message() {
    let (home, id) = home();
    let events = home.run(&["show", &id, "--json"]).ok().lines();
    let second = events.iter().find(|event| event["type"] == "message" && event["from"] == "Bob").unwrap();
    let at = second["seq"].to_string();
    let forked = home.run(&["fork", &id, "--at", &at, "--say", "zwei"]).ok();
    let fork = forked.out.trim().to_owned();
    assert!(forked.err.contains(&format!("polylogue resume {fork}")), "{}", forked.err);
    let shown = home.run(&["show", &fork]).ok().out;
    assert!(shown.contains("Bob -> Ann:\nzwei") && !shown.contains("Bob -> Ann:\ntwo"), "{shown}");
    assert!(shown.contains(&format!("\nedited fork of {id} before event {at}")), "{shown}");
    let ended = home.run(&["resume", &fork]).ok();
    assert!(ended.out.contains("done"), "{}", ended.out);
    assert!(home.run(&["show", &id]).ok().out.contains("two"), "the original is as it was");
    let forks = home.run(&["runs", "--parent", &id, "--json"]).ok().lines();
    assert_eq!(forks.len(), 1);
    assert_eq!((&forks[0]["id"], &forks[0]["parent"]["id"]), (&fork.as_str().into(), &id.as_str().into()));
    assert!(home.run(&["runs"]).ok().out.contains(&format!("(edited fork of {id} before event {at})")));
    assert_eq!(forks[0]["parent"]["edited"], true);
    let plain = home.run(&["fork", &id, "--at", &at]).ok().out;
    let shown = home.run(&["show", plain.trim()]).ok().out;
    assert!(shown.contains(&format!("\nfork of {id} before event {at}")), "{shown}");
    let wrong = home.run(&["fork", &id, "--at", "99"]).exits(2);
    assert!(wrong.err.contains("cannot be forked before event 99"), "{}", wrong.err);
    let short = home.run(&["fork", &id, "--at", "1"]).ok().out;
    let newest = |key: &str| home.run(&["runs", "--json", "--limit", "1"]).ok().lines()[0][key].clone();
    assert_eq!((newest("id"), newest("status")), (short.trim().into(), "not begun".into()));
    let wrong = home.run(&["fork", short.trim(), "--at", "99"]).exits(2);
    assert!(wrong.err.contains("cannot be forked before event 99: it has 1 event\n"), "{}", wrong.err);
    let empty = home.run(&["fork", &id, "--at", &at, "--say", " "]).exits(2);
    assert!(empty.err.contains("there is no text to say"), "{}", empty.err);
}

#[test]
fn a_message_that_is_sent_to_a_closed_conversation_continues_it_with_resume() {
    let (home, id) = home();
    let sent = home.run(&["send", &id, "And now?"]).ok();
    assert!(sent.err.contains(&format!("`polylogue resume {id}` continues")), "{}", sent.err);
    let resumed = home.run(&["resume", &id]).ok();
    assert!(resumed.out.contains("three") && resumed.out.contains("four"), "{}", resumed.out);
    let shown = home.run(&["show", &id]).ok().out;
    assert!(shown.contains("And now?"), "{shown}");
    assert!(home.run(&["send", &id, " "]).exits(2).err.contains("no text to send"));
    assert!(home.run(&["send", "nothing", "x"]).exits(2).err.contains("there is no conversation `nothing`"));
}

#[test]
fn commands_that_are_shown_name_the_store_that_the_command_line_names() {
    let home = Home::new();
    home.file("ask.yaml", "name: ask\ntask: Go.\nagents: [{name: A}, {name: Zoe, human: true}]\nchat: {participants: [A, Zoe], pattern: sequential}\nscript: [{A: Well?}]\n");
    let run = |args: &[&str]| home.run(&[args, &["--store", "my talks.db"]].concat());
    run(&["run", "ask.yaml", "--offline"]).exits(5);
    let id = run(&["runs", "--json"]).ok().lines()[0]["id"].as_str().unwrap().to_owned();
    let resume = |id: &str| format!("`polylogue resume {id} --store 'my talks.db'`");
    let fork = run(&["fork", "last"]).ok();
    assert!(fork.err.contains(&resume(fork.out.trim())), "{}", fork.err);
    for args in [&["pause", &id][..], &["send", &id, "Hurry."], &["answer", &id, "Well."]] {
        let ran = run(args).ok();
        assert!(ran.err.contains(&resume(&id)), "{args:?}: {}", ran.err);
    }
    let none = run(&["cancel", &id]).exits(2);
    assert!(none.err.contains(&resume(&id)), "{}", none.err);
    let resumed = home.shell(resume(&id).trim_matches('`'));
    assert_ne!(resumed.code, 2, "it is found: {}", resumed.err);
    // So do hints of errors.
    for (args, command) in [
        (&["show", "nothing"][..], "runs"),
        (&["answer", id.as_str(), "first", "Well."], "waiting"),
        (&["resume", "last", "--detach", "--answer", "x"], "answer"),
    ] {
        let refused = run(args).exits(2);
        let hint = format!("`polylogue {command} --store 'my talks.db'`");
        assert!(refused.err.contains(&hint), "{args:?}: {}", refused.err);
    }
}

#[test]
fn the_list_has_pages_and_filters() {
    let (home, _) = home();
    for _ in 0..2 {
        home.run(&["run", "talk.yaml", "--offline"]).ok();
    }
    let first = home.run(&["runs", "-n", "2"]).ok();
    assert_eq!(first.out.lines().count(), 2);
    let cursor = first.err.split("--after ").nth(1).unwrap().split('`').next().unwrap();
    let rest = home.run(&["runs", "-n", "2", "--after", cursor]).ok();
    assert_eq!(rest.out.lines().count(), 1, "{}", rest.out);
    assert!(!rest.err.contains("--after"), "{}", rest.err);
    assert_eq!(home.run(&["runs", "--state", "unfinished,waiting,failed"]).ok().out, "");
    assert_eq!(
        home.run(&["runs", "--state", "done", "--team", "talk", "--since", "1h"]).ok().out.lines().count(),
        3
    );
    assert_eq!(home.run(&["runs", "--task", "COUNT"]).ok().out.lines().count(), 3);
    assert_eq!(home.run(&["runs", "--task", "sing"]).ok().out, "");
    assert!(home.run(&["runs", "--after", "nonsense"]).exits(2).err.contains("expected the cursor"));
    assert!(home.run(&["runs", "--since", "3 weeks"]).exits(2).err.contains("expected a time"));
}

#[test]
fn what_the_program_does_is_logged_on_request_and_texts_only_at_the_level_trace() {
    let mut home = Home::new();
    home.file("talk.yaml", TEAM);
    let run =
        |home: &Home, option: &[&str]| home.run(&[&["run", "talk.yaml", "--offline"], option].concat()).ok();
    assert!(!run(&home, &[]).err.contains("INFO"));
    let brief = run(&home, &["-v"]);
    assert_eq!(brief.err.matches("model replied who=Ann").count(), 1, "{}", brief.err);
    assert!(brief.err.contains("run ended") && !brief.err.contains("appended"), "{}", brief.err);
    let more = run(&home, &["-vv"]);
    assert!(more.err.contains("appended") && more.err.contains("turn{at= who=Bob}"), "{}", more.err);
    assert!(!more.err.contains("two") && !more.out.contains("INFO"), "{}", more.err);
    home.set("RUST_LOG", "polylogue_core=trace");
    assert!(run(&home, &[]).err.contains("two"));
    home.set("RUST_LOG", "a=b=c");
    assert!(home.run(&["runs"]).exits(2).err.contains("`RUST_LOG` cannot be read"));
}

#[test]
fn resume_shows_what_was_sent_since_and_not_what_was_shown_before() {
    let home = Home::new();
    let script = "script: [{A: one}, {B: two}, {A: three}, {B: four}]";
    let chat = "chat: {participants: [A, B], pattern: round_robin, stop: {max_turns: 4}}";
    home.file(
        "talk.yaml",
        &format!("name: talk\ntask: Go.\nagents: [{{name: A}}, {{name: B}}]\n{chat}\n{script}\n"),
    );
    home.run(&["run", "talk.yaml", "--offline", "--max-turns", "2"]).exits(3);
    home.run(&["send", "last", "Hurry up, please."]).ok();
    let resumed = home.run(&["resume", "last", "--max-turns", "2"]).exits(3).out;
    let sent = resumed.find("user -> all:\nHurry up, please.\n\nA -> B:\n").expect(&resumed);
    assert!(sent < resumed.find("A -> B:\nthree").unwrap(), "{resumed}");
    assert!(!resumed.contains("one") && !resumed.contains("two"), "{resumed}");
    // Programs get every event, once.
    let run = home.run(&["run", "talk.yaml", "--offline", "--json", "--max-turns", "2"]).exits(3).lines();
    home.run(&["send", "last", "Hurry up, please."]).ok();
    let [resumed, again] =
        [1, 2].map(|_| home.run(&["resume", "last", "--json", "--max-turns", "1"]).lines());
    assert_eq!(of_type(&resumed, "message")[0]["parts"][0]["text"], "three");
    assert_whole(&[run, resumed, again], &home.events());
    let run = home.run(&["run", "talk.yaml", "--offline", "--json", "--max-calls", "2"]).exits(3).lines();
    let refused = home.run(&["resume", "last", "More.", "--json"]).exits(3).lines();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_whole(&[run, refused], &home.events());
    // While a person is waited for, and with the question, which comes first.
    home.file("ask.yaml", "name: ask\ntask: Go.\nagents: [{name: A}, {name: Zoe, human: true}]\nchat: {participants: [A, Zoe], pattern: sequential}\nscript: [{A: Well?}]\n");
    home.run(&["run", "ask.yaml", "--offline"]).exits(5);
    home.run(&["send", "last", "Think twice."]).ok();
    let resumed = home.run(&["resume", "last"]).exits(5).out;
    let (asked, sent) =
        (resumed.find("Zoe, it is your turn.").unwrap(), resumed.find("Think twice.").expect(&resumed));
    assert!(asked < sent, "{resumed}");
}

/// What commands add to a conversation while no process runs it is in the next output for programs.
#[test]
fn json_of_resume_has_what_other_commands_have_added() {
    let home = Home::new();
    let team = "name: talk\ntask: Go.\nagents: [{name: A}, {name: B}]\n\
                chat: {participants: [A, B], pattern: round_robin, stop: {max_turns: 4}}\n\
                script: [{A: one}, {B: two}, {A: three}, {B: four}]\n";
    home.file("talk.yaml", team);
    home.file("new.yaml", &team.replace("{name: B}", "{name: B, system: Be brief.}"));
    let run = home.run(&["run", "talk.yaml", "--offline", "--json", "--max-turns", "2"]).exits(3).lines();
    home.run(&["move", "last", "--team", "new.yaml"]).ok();
    let moved = home.run(&["resume", "last", "--json", "--max-turns", "1"]).exits(3).lines();
    assert_eq!(of_type(&moved, "team_changed").len(), 1, "{moved:?}");
    home.run(&["resume", "last", "--detach", "--max-turns", "1"]).ok();
    home.run(&["cancel", "last"]).ok();
    let resumed = home.run(&["resume", "last", "--json"]).ok().lines();
    for kind in ["limits_changed", "reopened", "cancelled"] {
        assert_eq!(of_type(&resumed, kind).len(), 1, "{kind}: {resumed:?}");
    }
    assert_whole(&[run, moved, resumed], &home.events());
}
