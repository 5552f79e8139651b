//! What is kept is what was written: damaged conversations, stores that are replaced, processes that hang.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use crate::home::{Home, of_type, serve, shipped, until};
use crate::models::{CALLS, SAID, TALK, said, talk};

const RUN: [&str; 4] = ["run", "team.yaml", "--model", "openai:test"];

/// A home that keeps its conversations as JSON lines.
fn with_lines() -> Home {
    Home::new().var("POLYLOGUE_STORE", "talks/")
}

/// The only log among the JSON lines.
fn log(home: &Home) -> PathBuf {
    let files = fs::read_dir(home.path("talks")).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap()
}

#[test]
fn verify_tells_the_first_bad_event_and_the_intact_beginning() {
    let home = with_lines();
    home.run(&["run", &shipped("writer-critic")]).ok();
    let whole = home.run(&["verify"]).ok();
    assert!(whole.out.contains("intact       20 events"), "{}", whole.out);
    let (path, id) = (log(&home), home.id());
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // Event 5 is behind the two lines of the header.
    lines[7] = lines[7].replacen("\"time_ms\":1", "\"time_ms\":2", 1);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let reported = home.run(&["verify", &id]).exits(1);
    let wanted =
        "damaged       5 events are intact; the first bad one is event 5: event 5 is not what was written\n";
    assert!(reported.out.ends_with(wanted), "{}", reported.out);
    assert!(
        reported.err.starts_with("hint: `polylogue show` shows the events before the damage"),
        "{}",
        reported.err
    );
    let row = &home.run(&["verify", "last", "--json"]).exits(1).lines()[0];
    assert_eq!((&row["state"], &row["intact"], &row["first_bad"]), (&"damaged".into(), &5.into(), &5.into()));
    // Everything else that reads it says so, too.
    assert!(home.run(&["show", "last"]).exits(1).err.contains("event 5 is not what was written"));
    assert!(home.run(&["resume", "last"]).exits(1).err.contains("event 5 is not what was written"));
    home.run(&["verify", "last", "--repair"]).ok();
    home.run(&["resume", "last"]).ok();
    // One more than before: the call that may have been in flight where the log ends is counted.
    assert_eq!(home.run(&["verify", "last", "--json"]).ok().lines()[0]["events"], 21);
}

#[test]
fn a_conversation_whose_header_was_damaged_is_repaired_with_its_team_and_resumes() {
    let home = with_lines();
    home.run(&["run", &shipped("writer-critic"), "--max-turns", "2"]).exits(3);
    let (path, id) = (log(&home), home.id());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("garbage\n{}", text.split_once('\n').unwrap().1)).unwrap();
    let events = text.lines().count() - 2;
    let reported = home.run(&["verify", &id]).exits(1);
    let wanted = format!(
        "damaged  all {events} events are intact, but the header is not: the first line is not a header"
    );
    assert!(reported.out.contains(&wanted), "{}", reported.out);
    assert_eq!(
        home.run(&["verify", &id, "--json"]).exits(1).lines()[0]["first_bad"],
        serde_json::Value::Null
    );
    home.run(&["verify", &id, "--repair"]).ok();
    let row = &home.listed()[0];
    assert_eq!(row["created_ms"], row["started_ms"], "{row}");
    home.run(&["resume", &id, "--max-turns", "1"]).exits(3);
    assert_eq!(of_type(&home.events(), "message").len(), 3);
}

/// Replaces the words `from` by `to` in one event of the only conversation.
fn alter(home: &Home, store: &str, (from, to): (&str, &str)) {
    if store == "talks/" {
        let text = fs::read_to_string(log(home)).unwrap();
        assert!(text.contains(from));
        return fs::write(log(home), text.replacen(from, to, 1)).unwrap();
    }
    let place = home.path(store);
    let bytes = fs::read(&place).unwrap();
    assert_eq!(from.len(), to.len());
    let mut at = bytes.windows(from.len()).enumerate().filter(|(_, window)| *window == from.as_bytes());
    let at = at.next().expect("the words are in the file").0;
    let altered = [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat();
    fs::write(&place, altered).unwrap();
}

#[test]
fn nothing_from_the_first_damaged_event_on_is_shown_as_genuine() {
    const TEAM: &str = "name: pair\ntask: Count.\nagents: [{name: Ann}, {name: Bob}]\n\
        chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}\n\
        script: [{Ann: the first}, {Bob: the second}, {Ann: the third}, {Bob: the fourth}]\n";
    for store in ["talks/", "store.db"] {
        let home = Home::new().var("POLYLOGUE_STORE", store);
        home.run(&["run", home.file("team.yaml", TEAM), "--offline"]).ok();
        alter(&home, store, (r#"{"text":"the second"}"#, r#"{"text":"the forged"}"#));
        let id = home.id();
        for args in [
            &[][..],
            &["--markdown"],
            &["--style", "autogen"],
            &["--json"],
            &["--history"],
            &["--side-by-side"],
            &["--as", "Ann", "--call", "1"],
        ] {
            let ran = home.run(&[&["show", "last"], args].concat()).exits(1);
            for words in ["the forged", "the third", "the fourth"] {
                assert!(!ran.out.contains(words), "{store} {args:?}: {}", ran.out);
            }
            let first = !args.contains(&"--as");
            assert_eq!(ran.out.contains("the first"), first, "{store} {args:?}: {}", ran.out);
            assert!(ran.err.contains("is not what was written"), "{store} {args:?}: {}", ran.err);
            let last = ran.out.lines().last().unwrap();
            if args == ["--json"] {
                assert!(last.starts_with('{'), "{last}");
            } else {
                let todo = format!("`polylogue verify {id}` checks it, and with `--repair` keeps");
                assert!(
                    last.starts_with("DAMAGED: event ") && last.contains(&todo),
                    "{store} {args:?}: {last}"
                );
            }
        }
        assert!(home.run(&["show", "last", "--cost"]).exits(1).out.contains("DAMAGED: event "));
    }
}

#[test]
fn lists_say_which_conversations_are_damaged() {
    let home = with_lines();
    home.run(&["run", &shipped("writer-critic")]).ok();
    let path = log(&home);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&path, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    let state = home.listed()[0]["status"].as_str().unwrap().to_owned();
    assert!(state.starts_with("damaged: `polylogue verify "), "{state}");
    let reported = home.run(&["verify"]).exits(1);
    assert!(
        reported.out.contains("it has 19 events, and 20 were acknowledged: the last are lost"),
        "{}",
        reported.out
    );
}

#[test]
fn resuming_what_a_limit_ended_changes_nothing_unless_it_is_raised() {
    let home = Home::new();
    let team = shipped("student-teacher");
    home.run(&["run", &team, "--max-turns", "2"]).exits(3);
    let before = home.run(&["show", "last", "--json"]).ok().out;
    // The limit holds until more of what it counts is allowed; more of something else is no reason to continue.
    for options in [&[][..], &["--max-calls", "9"], &["--max-tokens", "1000000"]] {
        let again = home.run(&[&["resume", "last"], options].concat()).exits(3);
        assert!(again.err.contains("would end again at once: the limit of 2 turns"), "{}", again.err);
        assert_eq!(home.run(&["show", "last", "--json"]).ok().out, before);
    }
    home.run(&["resume", "last", "--max-turns", "3"]).exits(3);
    assert!(home.events().len() > before.lines().count());
}

#[test]
fn a_store_that_is_replaced_while_a_conversation_runs_ends_it_and_nothing_finished_is_paid_twice() {
    for store in ["talks/", "store.db"] {
        let server = serve(talk().latency(Duration::from_millis(400)));
        let mut home = Home::at(&server).var("POLYLOGUE_STORE", store).with_team(TALK);
        let running = home.start(&RUN);
        until("the model is asked a second time", || server.count() >= 2);
        // What `sed -i`, editors and synchronizers do: the same bytes in another file of the same name.
        let file = if store == "talks/" { log(&home) } else { home.path(store) };
        let copy = home.path("copy");
        fs::copy(&file, &copy).unwrap();
        fs::rename(&copy, &file).unwrap();
        let ended = running.end().exits(1);
        assert!(ended.err.contains("was replaced, changed or removed while it was written"), "{}", ended.err);
        let kept = home.events();
        let shown: Vec<&str> = SAID.into_iter().filter(|words| ended.out.contains(words)).collect();
        assert!(shown.iter().all(|words| said(&kept).contains(&(*words).to_owned())), "{store}: {shown:?}");
        let finished = of_type(&kept, "model_replied").len();
        let quick = serve(talk());
        home.set("OPENAI_BASE_URL", &quick.base_url());
        home.run(&["resume", "last"]).ok();
        assert_eq!(quick.count(), CALLS - finished, "{store}: what is kept is not asked again");
        assert_eq!(said(&home.events()), SAID);
        home.run(&["verify"]).ok();
    }
}

#[test]
fn a_conversation_of_a_live_process_is_not_taken_over_before_its_lease_has_run_out() {
    for store in ["talks/", "store.db"] {
        let server = serve(talk().latency(Duration::from_secs(600)));
        let home = Home::at(&server).var("POLYLOGUE_STORE", store).with_team(TALK);
        let running = home.start(&RUN);
        until("the model is asked", || server.count() >= 1);
        running.signal(Signal::STOP);
        let refused = home.run(&["resume", "last", "--take-over"]).exits(1);
        assert!(refused.err.contains("whose lease expires in"), "{}", refused.err);
        let command = format!("`polylogue resume {} --take-over`", home.id());
        assert!(refused.err.contains(&command), "{}", refused.err);
        running.signal(Signal::KILL);
        running.signal(Signal::CONT);
        running.end().exits(-1);
    }
}
