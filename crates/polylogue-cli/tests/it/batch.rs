//! Batches: a team over many rows, killed and run again.

use std::fs;

use expect_test::expect;
use polylogue_test::server::{Answer, Behavior, Playbook, Received};
use rustix::process::Signal;
use serde_json::Value;

use crate::home::{Home, KEY, serve, until};

/// Two roles that talk for four turns.
const SOCIETY: &str = r#"
name: society
task: Do it
vars: {assistant: Poet, user: Thief}
prices: {"openai:test": {input: 1000, output: 1000}}
agents:
  - {name: A, system: "You are A, a {{assistant}}. The task: {{task}}"}
  - {name: B, system: "You are B, a {{user}}."}
chat: {participants: [A, B], stop: {max_turns: 4}}
script:
  - A: {say: one, expect: {last: "task"}}
  - B: two
  - A: three
  - B: four
"#;

const CROSS: &str = "assistant: [Poet, Cook]\nuser: [Thief, King, Fool]\ntask: [task 1, task 2]\n";

fn home() -> Home {
    let home = Home::new().with_team(SOCIETY);
    home.file("cross.yaml", CROSS);
    home
}

fn over_cross<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["batch", "team.yaml", "--cross", "cross.yaml", "-o", "out.jsonl"], more].concat()
}

fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(home.path(name)).unwrap()
}

fn records(home: &Home) -> Vec<Value> {
    read(home, "out.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(home: &Home) -> Vec<String> {
    records(home).iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect()
}

/// Answers everything with a text of a known size; where the system text or a message holds `fails`, with an error.
fn echo(fails: Option<&'static str>) -> Behavior {
    let play = move |request: &Received, _: usize| {
        let body = request.body.to_string();
        match fails.filter(|word| body.contains(word)) {
            Some(_) => Answer::unexpected("this one fails".to_owned()),
            None => Answer::text("I see."),
        }
    };
    Behavior::from(Playbook::new(play)).key(KEY)
}

// Item 89 of the list of CAMEL.
#[test]
fn every_combination_is_a_conversation_and_a_record_with_a_reason() {
    let home = home();
    let ran = home.run(&over_cross(&[])).ok();
    expect![[r#"
                      rows      calls        tokens  cost
        done            12         48       unknown  $0
        all             12         48       unknown  $0

              12  4 of 4 turns

        records: out.jsonl · conversations: STORE
    "#]]
    .assert_eq(&ran.out.replace(&home.path("store.db").display().to_string(), "STORE"));
    assert!(ran.err.contains("society: 12 rows, 8 at once\n"), "{}", ran.err);
    let records = records(&home);
    assert_eq!(ids(&home)[..3], ["001_001_001", "001_001_002", "001_002_001"]);
    let record = &records[11];
    assert_eq!(record["vars"], serde_json::json!({"assistant": "Cook", "user": "Fool"}));
    assert_eq!((&record["task"], &record["state"]), (&"task 2".into(), &"done".into()));
    assert!(records.iter().all(|record| record["reason"] == "4 of 4 turns" && record["calls"] == 4));
    let said: Vec<_> =
        record["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!(said, ["task 2", "one", "two", "three", "four"]);
    let shown = home.run(&["show", record["conversation"].as_str().unwrap()]).ok();
    assert!(shown.out.contains("three"), "{}", shown.out);
}

/// What a society talks about is not its idea, but what its specifier made of that.
#[test]
fn a_record_tells_the_task_as_it_was_specified() {
    let home = Home::new();
    let chat = "chat: {participants: [A, B], pattern: {role_play: {user: A, assistant: B, specifier: C}}}";
    let script = r#"script: [{C: "Trade wheat"}, {A: "<CAMEL_TASK_DONE>"}]"#;
    let agents = "agents: [{name: A}, {name: B}, {name: C}]";
    home.file("team.yaml", &format!("name: society\n{agents}\n{chat}\n{script}\n"));
    home.file("rows.jsonl", "{\"task\": \"Trade\"}\n");
    home.run(&["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl"]).ok();
    let record = &records(&home)[0];
    assert_eq!((&record["task"], &record["state"]), (&"Trade".into(), &"done".into()));
    assert_eq!(record["private_messages"], serde_json::json!([{"from": "C", "text": "Trade wheat"}]));
}

#[test]
fn the_records_are_the_same_however_many_are_held_at_once() {
    let mut before = None;
    for at_once in ["1", "3", "100"] {
        let home = home();
        home.run(&over_cross(&["--at-once", at_once])).ok();
        let records = read(&home, "out.jsonl");
        assert_eq!(before.get_or_insert_with(|| records.clone()), &records);
    }
}

#[test]
fn finished_rows_are_not_run_again() {
    let (home, server) = (home().var("OPENAI_API_KEY", KEY), serve(echo(None)));
    let home = home.var("OPENAI_BASE_URL", &server.base_url());
    home.run(&over_cross(&["-m", "openai:test"])).ok();
    assert_eq!(server.count(), 48);
    let first = read(&home, "out.jsonl");
    let again = home.run(&over_cross(&["-m", "openai:test"])).ok();
    assert!(again.err.contains("12 rows, 12 already finished"), "{}", again.err);
    assert_eq!((server.count(), read(&home, "out.jsonl")), (48, first.clone()));
    // Records that are lost come out of the conversations, and cost nothing.
    fs::remove_file(home.path("out.jsonl")).unwrap();
    let again = home.run(&over_cross(&["-m", "openai:test"])).ok();
    assert!(again.err.contains("12 rows, 12 already finished"), "{}", again.err);
    assert_eq!((server.count(), read(&home, "out.jsonl")), (48, first));
}

#[test]
fn the_record_of_a_row_that_fails_has_the_hint_of_its_error() {
    let (home, server) = (home().var("OPENAI_API_KEY", "another-key"), serve(echo(None)));
    let home = home.var("OPENAI_BASE_URL", &server.base_url());
    home.run(&over_cross(&["-m", "openai:test"])).exits(1);
    let records = records(&home);
    let names_the_key = |record: &serde_json::Value| {
        record["hint"].as_str().is_some_and(|hint| hint.contains("OPENAI_API_KEY"))
    };
    assert!(!records.is_empty() && records.iter().all(names_the_key), "{records:?}");
}

#[test]
fn a_row_that_fails_is_listed_stops_no_other_and_is_taken_up_again() {
    let (home, server) = (home().var("OPENAI_API_KEY", KEY), serve(echo(Some("King"))));
    let mut home = home.var("OPENAI_BASE_URL", &server.base_url());
    let ran = home.run(&over_cross(&["-m", "openai:test"])).exits(1);
    assert!(ran.out.contains("\ndone             8 "), "{}", ran.out);
    assert!(ran.out.contains("\n  failed  001_002_001: openai:test: "), "{}", ran.out);
    assert!(
        ran.out.ends_with("\nrun it again to continue: finished rows are not run again\n"),
        "{}",
        ran.out
    );
    let failed = &records(&home)[2];
    assert_eq!((&failed["id"], &failed["state"]), (&"001_002_001".into(), &"failed".into()));
    assert_eq!(failed["messages"].as_array().unwrap().len(), 2, "what A said is there: {failed}");
    let quick = serve(echo(None));
    home.set("OPENAI_BASE_URL", &quick.base_url());
    home.run(&over_cross(&["-m", "openai:test"])).ok();
    assert_eq!(quick.count(), 4 * 3, "what A had said first was not asked again");
    assert!(ids(&home).is_sorted());
    assert!(records(&home).iter().all(|record| record["state"] == "done"));
}

#[test]
fn a_budget_is_for_all_and_for_all_runs() {
    let (home, server) = (home().var("OPENAI_API_KEY", KEY), serve(echo(None)));
    let home = home.var("OPENAI_BASE_URL", &server.base_url());
    let whole = home.run(&[&over_cross(&["-m", "openai:test"])[..], &["--budget", "1000"]].concat()).ok();
    assert!(whole.err.contains(", $1000.00 for all"), "{}", whole.err);
    let cost: f64 = records(&home).iter().map(|record| record["cost"].as_f64().unwrap()).sum();
    let calls = server.count();
    let (home, server) = (self::home().var("OPENAI_API_KEY", KEY), serve(echo(None)));
    let home = home.var("OPENAI_BASE_URL", &server.base_url());
    let half = (cost / 2.0).to_string();
    let budget = ["-m", "openai:test", "--at-once", "2", "--budget", &half];
    let ran = home.run(&over_cross(&budget)).exits(4);
    assert!(ran.out.ends_with(": run it again with a higher `--budget` to continue\n"), "{}", ran.out);
    let reported = format!(
        "\nthe budget of the batch has reached the limit of {} ",
        polylogue_core::Money::dollars(cost / 2.0)
    );
    assert!(ran.out.contains(&reported), "{reported}\n{}", ran.out);
    assert!(ran.err.contains("`openai:test` has no known limit on the length of a reply"), "{}", ran.err);
    let paid = server.count();
    assert!((calls / 3..calls * 2 / 3).contains(&paid), "{paid} of {calls}");
    let again = home.run(&[&over_cross(&budget)[..], &["--json"]].concat()).exits(4);
    // What is left may pay for a row whose request is shorter than that of the row which found too little.
    assert!(server.count() <= paid + 1, "the budget is of all runs: {} after {paid}", server.count());
    let reported = &again.lines()[0];
    assert_eq!((&reported["rows"], &reported["records"]), (&12.into(), &"out.jsonl".into()));
    let over = reported["states"]["done"]["rows"].as_u64().unwrap();
    assert_eq!(reported["not_over"].as_u64().unwrap() + over, 12);
    assert_eq!(reported["reasons"], serde_json::json!([{"reason": "4 of 4 turns", "rows": over}]));
    let most = cost / 2.0 + cost / calls as f64;
    assert!(
        reported["used"]["cost"].as_f64().unwrap() <= most,
        "no more than one reply of unknown length over: {reported}"
    );
    home.run(&over_cross(&["-m", "openai:test", "--budget", "1000"])).ok();
    assert_eq!(server.count(), calls, "nothing was paid twice");
    let unknown = home.run(&over_cross(&["-m", "openai:other", "--budget", "1", "--keep"])).exits(2);
    assert!(unknown.err.contains("its price is unknown"), "{}", unknown.err);
}

#[test]
fn calls_and_tokens_and_time_are_limited_for_all_rows_too() {
    let (home, server) = (home().var("OPENAI_API_KEY", KEY), serve(echo(None)));
    let home = home.var("OPENAI_BASE_URL", &server.base_url());
    let model = ["-m", "openai:test"];
    let batch = |budget: &[&str]| home.run(&[&over_cross(&model)[..], budget].concat());
    let ran = batch(&["--budget-calls", "7"]).exits(3);
    assert_eq!(server.count(), 7);
    let last = "\nthe budget of the batch has reached the limit of 7 model calls: run it again with a higher `--budget-calls` to continue\n";
    assert!(ran.out.ends_with(last), "{}", ran.out);
    // All runs of the command count together.
    batch(&["--budget-calls", "7"]).exits(3);
    assert_eq!(server.count(), 7);
    batch(&["--budget-tokens", "20", "--json"]).exits(4);
    assert_eq!(server.count(), 7, "the tokens of earlier runs count");
    let ran = batch(&["--budget-time", "1ms", "--json"]).exits(3);
    let reported = &ran.lines()[0];
    assert_eq!(reported["reached"], "the budget of the batch has reached the limit of 1 ms of running time");
    assert_eq!((&reported["budget"]["time_ms"], &reported["used"]["calls"]), (&1.into(), &7.into()));
    assert_eq!(server.count(), 7);
    batch(&["--budget-calls", "1000", "--budget-tokens", "10000000", "--budget-time", "1h"]).ok();
    assert_eq!(server.count(), 12 * 4, "no finished call was made again");
}

#[test]
fn a_file_of_rows_without_an_option_is_answered_with_it() {
    let ran = home().run(&["batch", "team.yaml", "rows.csv", "-o", "out.jsonl"]).exits(2);
    assert!(ran.err.contains("the rows of a batch follow `--over`: `--over rows.csv`"), "{}", ran.err);
}

#[test]
fn a_batch_that_is_killed_loses_no_row_and_pays_none_twice() {
    let undisturbed = home();
    undisturbed.run(&over_cross(&["--offline"])).ok();
    for asked in [3, 11, 29, 40] {
        let (home, server) = (home().var("OPENAI_API_KEY", KEY), serve(echo(None)));
        let home = home.var("OPENAI_BASE_URL", &server.base_url());
        let mut running = home.start(&over_cross(&["-m", "openai:test", "--at-once", "3"]));
        until("it is under way", || server.count() >= asked || running.is_over());
        running.signal(Signal::KILL);
        running.end();
        // What was being written when the power went.
        let torn = fs::read_to_string(home.path("out.jsonl")).unwrap_or_default() + "{\"id\":\"001_0";
        fs::write(home.path("out.jsonl"), torn).unwrap();
        home.run(&over_cross(&["-m", "openai:test", "--at-once", "3"])).ok();
        assert_eq!(ids(&home), ids(&undisturbed));
        assert!(records(&home).iter().all(|record| record["calls"] == 4 && record["state"] == "done"));
        // A reply that arrived and was not written yet is asked for again: at most one for each that was held.
        assert!((48..=51).contains(&server.count()), "{} calls", server.count());
    }
}

#[test]
fn ctrl_c_ends_it_after_the_turns_that_have_begun() {
    let (home, server) =
        (home().var("OPENAI_API_KEY", KEY), serve(echo(None).latency(std::time::Duration::from_millis(50))));
    let home = home.var("OPENAI_BASE_URL", &server.base_url());
    let running = home.start(&over_cross(&["-m", "openai:test", "--at-once", "2"]));
    until("it is under way", || server.count() >= 9);
    running.signal(Signal::INT);
    let ran = running.end().exits(6);
    assert!(ran.err.contains("finishing this step; Ctrl-C again stops now"), "{}", ran.err);
    // The figures are those of rows that are over, not of all.
    assert!(ran.out.contains("\nover ") && ran.out.contains("\nnot over"), "{}", ran.out);
    assert!(!ran.out.contains("\nall "), "{}", ran.out);
    home.run(&over_cross(&["-m", "openai:test"])).ok();
    assert_eq!((server.count(), records(&home).len()), (48, 12));
}

#[test]
fn rows_wait_for_people_and_are_taken_up_when_they_have_answered() {
    let home = Home::new().with_team(
        "name: asks\nagents: [{name: A}, {name: Eve, human: true}]\nchat: {pattern: sequential, participants: [A, Eve]}\nscript: [{A: Well?}]\n",
    );
    home.file("rows.jsonl", "{\"task\": \"a\"}\n{\"task\": \"b\"}\n");
    let batch = ["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl"];
    let ran = home.run(&batch).exits(5);
    assert!(ran.out.contains("\n waiting  00001: waiting for Eve\n"), "{}", ran.out);
    assert!(ran.out.contains("answers by `polylogue resume ID --answer TEXT --store "), "{}", ran.out);
    for record in records(&home) {
        home.run(&["resume", record["conversation"].as_str().unwrap(), "--answer", "Yes."]).ok();
    }
    home.run(&batch).ok();
    assert!(records(&home).iter().all(|record| record["state"] == "done"));
    assert_eq!(records(&home)[1]["messages"][2]["text"], "Yes.");
}

#[test]
fn invalid_options_and_rows_of_a_batch_are_refused_before_the_run() {
    let home = home();
    let refused = |args: &[&str], holds: &str| {
        let ran = home.run(args).exits(2);
        assert!(ran.err.contains(holds), "{args:?}\n{}", ran.err);
        assert!(home.listed().is_empty());
    };
    refused(&["batch", "team.yaml", "-o", "out.jsonl"], "required arguments were not provided");
    refused(&["batch", "team.yaml", "--over", "no.jsonl", "-o", "o"], "the rows `no.jsonl` cannot be read");
    home.file("bad.jsonl", "{\"task\": 1}\n{\"task\": []}\n");
    let bad = "error: `task` is neither a text nor a number\n --> bad.jsonl:2:1\n";
    refused(&["batch", "team.yaml", "--over", "bad.jsonl", "-o", "o"], bad);
    home.file("vars.jsonl", "{\"task\": 1}\n{\"usr\": \"x\"}\n");
    let unknown = "the team cannot be run over the row `00002`:\n";
    refused(&["batch", "team.yaml", "--over", "vars.jsonl", "-o", "o"], unknown);
    refused(&["batch", "team.yaml", "--over", "vars.jsonl", "-o", "o"], "did you mean `user`?");
    home.file("notes.txt", "my notes\n");
    let notes = "line 1 of `notes.txt` is not a record of a batch";
    refused(&["batch", "team.yaml", "--cross", "cross.yaml", "-o", "notes.txt"], notes);
    assert_eq!(read(&home, "notes.txt"), "my notes\n");
    // Files whose last line has no end: no piece of a record, however much it looks like one.
    for mine in ["my notes", r#"{"id": 1}"#, r#"{"id":"a","task":"x"}"#, "{\n  \"id\""] {
        home.file("notes.txt", mine);
        refused(
            &["batch", "team.yaml", "--cross", "cross.yaml", "-o", "notes.txt"],
            "not a record of a batch",
        );
        assert_eq!(read(&home, "notes.txt"), mine);
    }
    for no_file in ["-", "/dev/null", "."] {
        let what = format!("cannot be written to `{no_file}`, which is not a file");
        refused(&["batch", "team.yaml", "--cross", "cross.yaml", "-o", no_file], &what);
    }
    let nowhere = home.run(&["batch", "team.yaml", "--cross", "cross.yaml", "-o", "no/such/folder"]).exits(1);
    assert!(nowhere.err.contains("the records `no/such/folder` cannot be written"), "{}", nowhere.err);
}

#[test]
fn records_of_another_team_are_kept_only_if_that_is_wanted() {
    let home = home();
    home.run(&over_cross(&[])).ok();
    home.file("team.yaml", &SOCIETY.replace("You are B", "You are the other one"));
    let ran = home.run(&over_cross(&[])).exits(2);
    assert!(ran.err.contains("is of another team, model or setting"), "{}", ran.err);
    home.file("cross.yaml", &CROSS.replace("Fool", "Fool, Knight"));
    home.run(&over_cross(&["--keep"])).ok();
    assert_eq!(ids(&home).len(), 16);
    assert!(ids(&home).is_sorted());
}

/// Rows without an id are named by their lines, so an edited file has other rows with the ids of finished ones.
#[test]
fn the_record_of_a_row_that_has_changed_since_is_not_that_of_the_new_one() {
    let home = home();
    let batch = ["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl"];
    home.file("rows.jsonl", "{\"task\": \"task 1\"}\n{\"task\": \"task 2\"}\n");
    home.run(&batch).ok();
    let before = read(&home, "out.jsonl");
    home.file("rows.jsonl", "{\"task\": \"task 1\"}\n{\"task\": \"task 3\"}\n");
    let refused = home.run(&batch).exits(2);
    let what = "the record of `00002` in `out.jsonl` is of another task or other variables";
    assert!(refused.err.contains(what), "{}", refused.err);
    home.file("rows.jsonl", "{\"task\": \"task 1\", \"user\": \"King\"}\n{\"task\": \"task 2\"}\n");
    assert!(home.run(&batch).exits(2).err.contains("the record of `00001`"));
    assert_eq!(read(&home, "out.jsonl"), before);
    home.run(&[&batch[..], &["--keep"]].concat()).ok();
    assert_eq!(read(&home, "out.jsonl"), before);
    // What was finished is of no row here, and no row is finished.
    home.file("rows.jsonl", "{\"id\": \"a\", \"task\": \"task 1\"}\n");
    let other = home.run(&batch).ok();
    assert!(other.err.contains("society: 1 row, 8 at once\n"), "{}", other.err);
    assert!(other.out.contains(&format!("{:<8}  {:>8}", "all", 1)), "{}", other.out);
    assert_eq!(ids(&home), ["a", "00001", "00002"]);
}

#[test]
fn the_end_has_the_share_of_prompt_caches_and_what_they_saved() {
    let reply = Answer::text("I see.").usage(1000, 100).usage_details(800, 0);
    let server = serve(Behavior::from(Playbook::always(reply)).key(KEY));
    let home = Home::at(&server);
    home.file(
        "team.yaml",
        "name: t\nagents: [{name: A}]\nchat: {participants: [A], pattern: sequential}\n\
         prices: {'openai:test': {input: 10, cached: 1, output: 10}}\n",
    );
    home.file("rows.jsonl", "{\"task\": \"one\"}\n{\"task\": \"two\"}\n");
    let args = ["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl", "-m", "openai:test"];
    let ran = home.run(&args).ok();
    let share = "\n\n80% of input from prompt caches ($0.0144 saved)\n\n";
    assert!(ran.out.contains(share), "{}", ran.out);
    let cache = serde_json::json!({"read": 800, "written": 0, "cost": 0.0038, "uncached": 0.011});
    assert!(
        records(&home).iter().all(|record| record["input"] == 1000 && record["prompt_cache"] == cache),
        "{:?}",
        records(&home)
    );
    // The records of finished rows have it, too.
    let again = home.run(&[&args[..], &["--json"]].concat()).ok();
    let cache = serde_json::json!({"read": 1600, "written": 0, "cost": 0.0076, "uncached": 0.022});
    assert_eq!((&again.lines()[0]["input"], &again.lines()[0]["prompt_cache"]), (&2000.into(), &cache));
    assert_eq!(server.count(), 2);
}

#[test]
fn the_end_and_the_records_have_what_a_cache_of_replies_saved() {
    let server = serve(Behavior::from(Playbook::always(Answer::text("I see.").usage(1000, 0))).key(KEY));
    let home = Home::at(&server);
    home.file(
        "team.yaml",
        "name: t\nagents: [{name: A}]\nchat: {participants: [A], pattern: sequential}\n\
         prices: {'openai:test': {input: 10, output: 10}}\n",
    );
    home.file("rows.jsonl", "{\"task\": \"one\"}\n{\"task\": \"one\"}\n{\"task\": \"two\"}\n");
    let args = ["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl", "-m", "openai:test"];
    let args = [&args[..], &["--cache", "replies.jsonl", "--at-once", "1"]].concat();
    let ran = home.run(&args).ok();
    let saved = "\n\n1 of 3 calls from the cache (1,000 tokens, $0.01 saved)\n\n";
    assert!(ran.out.contains(saved), "{}", ran.out);
    let saved = serde_json::json!({"calls": 1, "tokens": 1000, "cost": 0.01});
    let of_rows: Vec<Option<Value>> =
        records(&home).iter().map(|record| record.get("saved").cloned()).collect();
    assert_eq!(of_rows, [None, Some(saved.clone()), None]);
    // The records of finished rows have it, too.
    let again = home.run(&[&args[..], &["--json"]].concat()).ok();
    assert_eq!(again.lines()[0]["saved"], saved);
    assert_eq!(server.count(), 2);
}

#[test]
fn two_at_a_time_do_not_write_the_same_records() {
    let home = home();
    let file = fs::File::create(home.path("out.jsonl")).unwrap();
    file.lock().unwrap();
    let ran = home.run(&over_cross(&[])).exits(2);
    assert!(ran.err.contains("are being written by another process"), "{}", ran.err);
}

#[test]
fn a_batch_in_which_rows_met_their_own_limits_does_not_report_success() {
    let home = home();
    let ran = home.run(&over_cross(&["--max-calls", "2"])).exits(3);
    assert!(ran.out.contains("\n      12  the limit of 2 model calls\n"), "{}", ran.out);
    assert!(ran.out.contains("\n12 rows met their own limit: "), "{}", ran.out);
    assert!(records(&home).iter().all(|record| record["state"] == "limit"));
    let again = home.run(&over_cross(&["--json"])).exits(3);
    assert_eq!(again.lines()[0]["states"]["limit"]["rows"], 12, "they are not run again");
    let (home, server) = (self::home().var("OPENAI_API_KEY", KEY), serve(echo(None)));
    let home = home.var("OPENAI_BASE_URL", &server.base_url());
    let ran = home.run(&over_cross(&["-m", "openai:test", "--max-cost", "0.0001"])).exits(4);
    assert!(ran.out.contains("budget          12 "), "{}", ran.out);
    assert_eq!(server.count(), 0);
}

#[test]
fn a_table_of_results_continues_as_records_do() {
    let home = home();
    home.file("rows.csv", "user,id,task,assistant\nThief,b,task 1,=Poet\nKing,a,task 2,\"Cook, chef\"\n");
    let batch = ["batch", "team.yaml", "--over", "rows.csv", "-o", "out.csv", "--offline"];
    let ran = home.run(&batch).ok();
    assert!(ran.out.contains("\nrecords: out.csv · conversations: "), "{}", ran.out);
    let table = read(&home, "out.csv");
    let mut cells = csv::Reader::from_reader(table.as_bytes());
    let names: Vec<String> = cells.headers().unwrap().iter().map(str::to_owned).collect();
    let expected = ["user", "id", "task", "assistant", "state", "reason", "hint", "summary", "cut", "calls"];
    assert_eq!(names[..10], expected, "{table}");
    let rows: Vec<Vec<String>> =
        cells.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!(rows[0][..5], ["Thief", "b", "task 1", "'=Poet", "done"]);
    assert_eq!(rows[1][..5], ["King", "a", "task 2", "Cook, chef", "done"]);
    assert!(rows.iter().all(|row| row[7] == "four" && row[9] == "4"), "{table}");
    // It is written again from the records: a row whose record is gone is taken from its conversation.
    let records = read(&home, "out.csv.jsonl");
    let (first, _) = records.split_once('\n').unwrap();
    home.file("out.csv.jsonl", &format!("{first}\n{{\"id\":\"a"));
    fs::remove_file(home.path("out.csv")).unwrap();
    let again = home.run(&batch).ok();
    assert!(again.err.contains("2 rows, 2 already finished"), "{}", again.err);
    assert_eq!((read(&home, "out.csv"), read(&home, "out.csv.jsonl")), (table, records));
    // No file of anything else is replaced, not even by mistake the rows.
    let over_itself = ["batch", "team.yaml", "--over", "rows.csv", "-o", "rows.csv", "--offline"];
    let refused = home.run(&over_itself).exits(2);
    assert!(refused.err.contains("`rows.csv` would be replaced"), "{}", refused.err);
    assert!(read(&home, "rows.csv").starts_with("user,id") && !home.path("rows.csv.jsonl").exists());
}
