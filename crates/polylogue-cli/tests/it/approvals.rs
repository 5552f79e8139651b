//! A person who is asked before tools are called: at the terminal, later, and in a process that was killed meanwhile.
//!
//! The tool is a command that appends a line to a file: what was done is counted there.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::home::{Home, of_type, until};
use crate::terminal::Terminal;

/// A team whose Ann takes three notes, by herself (`tools`) or by the hands of Bob (`runs`).
fn team(home: &Home, approve: &str, by_herself: bool) {
    let (ann, bob) = match by_herself {
        true => (format!("tools: [note], approval: {approve}"), "default_reply: Noted.".to_owned()),
        false => {
            ("suggests_tools: [note]".to_owned(), format!("executes_tools: [note], approval: {approve}"))
        }
    };
    let call =
        |nth: u32, text: &str| json!({"tool": "note", "args": {"text": text}, "id": format!("c{nth}")});
    let calls =
        json!({"Ann": {"say": "I note.", "calls": [call(1, "one"), call(2, "two"), call(3, "three")]}});
    let closing = if by_herself { ", {Ann: It is noted.}" } else { "" };
    let text = format!(
        r#"
name: notes
task: go
sandbox: {{backend: none}}
agents: [{{name: Ann, {ann}}}, {{name: Bob, model: none, {bob}}}]
commands:
  - name: note
    description: Takes a note
    command: [sh, -c, 'echo "$1" >> notes.txt', note, "{{text}}"]
    arguments: {{text: {{type: string}}}}
chat: {{participants: [Ann, Bob], pattern: sequential}}
script: [{calls}{closing}]
"#
    );
    home.file("team.yaml", &text);
}

const RUN: [&str; 5] = ["run", "team.yaml", "--offline", "--allow", "unsafe-host"];

fn notes(home: &Home) -> PathBuf {
    home.path("store.db.work").join(home.id()).join("notes.txt")
}

/// What was noted, in no order: calls of one message are made at the same time.
fn noted(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(notes(home)).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_person_at_the_terminal_lets_a_call_be_made_rejects_one_and_changes_one() {
    for by_herself in [true, false] {
        let home = Home::new();
        team(&home, "always", by_herself);
        let mut terminal = Terminal::open(&home, (110, 60), &RUN);
        terminal.wait_for_question("`exit` ends the conversation.");
        let seen = terminal.sees();
        assert!(seen.contains("`Ann` calls `note` with:\n\n── 1 line\n{\"text\":\"one\"}\n──\n"), "{seen}");
        assert!(noted(&home).is_empty());
        terminal.press("yes\r");
        terminal.wait_for("\n{\"text\":\"two\"}\n──");
        terminal.press_at("`exit` ends the conversation.", "no, that is a secret\r");
        terminal.wait_for("\n{\"text\":\"three\"}\n──");
        terminal.wait_for_question("`exit` ends the conversation.");
        let hints = terminal.bytes().matches("`always` runs it").count();
        assert_eq!(hints, 1, "it is said once: {}", terminal.sees());
        terminal.press("```json\r{\"text\":\r \"3\"}\r```\r");
        let (code, seen) = terminal.end();
        assert_eq!((code, noted(&home)), (0, vec!["3".to_owned(), "one".to_owned()]), "{seen}");
        assert!(seen.contains("it was rejected. that is a secret"), "{seen}");
        let shown = home.run(&["show", "last"]).ok();
        assert!(shown.out.contains("it was rejected. that is a secret"), "{}", shown.out);
    }
}

#[test]
fn without_a_terminal_it_waits_and_no_answer_is_asked_for_twice() {
    for by_herself in [true, false] {
        let home = Home::new();
        team(&home, "{when: \"args.text != 'two'\"}", by_herself);
        // There is no sandbox: only the user can let one run without a question.
        home.rules("- allow: {tool: note, command: '*two*'}\n");
        let waiting = home.run(&RUN).exits(5);
        assert!(waiting.out.contains("polylogue resume"), "{}", waiting.out);
        home.run(&["resume", "last", "--answer", "{\"text\": \"1\"}"]).exits(5);
        // Nothing is made before all is decided.
        assert!(noted(&home).is_empty());
        home.run(&["resume", "last"]).exits(5);
        home.run(&["resume", "last", "--answer", "yes"]).ok();
        assert_eq!(noted(&home), ["1", "three", "two"]);
        let events = home.events();
        assert_eq!(
            (of_type(&events, "input_required").len(), of_type(&events, "input_provided").len()),
            (2, 2)
        );
        let asked = of_type(&events, "input_required");
        assert!(
            asked.iter().all(|event| event["text"].as_str().unwrap().starts_with("`Ann` calls `note` with"))
        );
    }
}

#[test]
fn y_and_n_answer_the_option_and_a_pipe_as_they_do_a_terminal_and_an_empty_line_answers_nothing() {
    let home = Home::new();
    team(&home, "always", true);
    home.run(&RUN).exits(5);
    home.run(&["resume", "last", "--answer", ""]).exits(5);
    home.run(&["resume", "last", "--answer", "y"]).exits(5);
    assert_eq!(of_type(&home.events(), "input_required").len(), 3, "the first question, again, the second");
    home.run_reading("\nN, too risky\nY\n", &["resume", "last", "--input", "approvals"]).ok();
    assert_eq!(noted(&home), ["one", "three"]);
    let shown = home.run(&["show", "last"]).ok().out;
    assert!(shown.contains("it was rejected. too risky"), "{shown}");
}

#[test]
fn exit_ends_the_conversation_and_nothing_was_called() {
    let home = Home::new();
    team(&home, "{tools: ['no*']}", true);
    home.run(&RUN).exits(5);
    let ended = home.run(&["resume", "last", "--answer", "exit"]);
    assert!(
        ended.out.contains("Ann left: said `exit`") || ended.err.contains("said `exit`"),
        "{}",
        ended.out
    );
    assert!(noted(&home).is_empty());
}

#[test]
fn what_nothing_encloses_is_asked_about_whatever_the_team_file_says_unless_the_user_allows_it() {
    for approve in ["never", "{matches: four}", "{when: 'false'}"] {
        for by_herself in [true, false] {
            let home = Home::new();
            team(&home, approve, by_herself);
            home.run(&RUN).exits(5);
            assert!(noted(&home).is_empty(), "{approve}");
            home.allow_programs();
            home.run(&RUN).ok();
            assert_eq!(noted(&home), ["one", "three", "two"], "{approve}");
        }
    }
}

#[test]
fn a_default_answer_of_a_team_file_approves_nothing_and_may_reject() {
    for by_herself in [true, false] {
        for text in ["yes", "{\"text\": \"4\"}"] {
            let home = Home::new();
            let default = json!({"timeout": "1 ms", "text": text});
            // There is no sandbox: a person is asked, whatever else the file says.
            team(&home, &format!("never, default_answer: {default}"), by_herself);
            home.run(&RUN).exits(5);
            home.run(&["resume", "last"]).exits(5);
            assert!(noted(&home).is_empty(), "{text}");
            assert!(of_type(&home.events(), "input_provided").is_empty(), "{text}");
        }
        let home = Home::new();
        team(&home, "never, default_answer: {timeout: 1 ms, text: 'no, not at night'}", by_herself);
        home.run(&RUN).exits(5);
        until("all calls are rejected", || home.run(&["resume", "last"]).code == 0);
        assert!(noted(&home).is_empty());
        assert_eq!(of_type(&home.events(), "input_provided").len(), 3);
        assert!(home.run(&["show", "last"]).ok().out.contains("it was rejected. not at night"));
    }
}

#[test]
fn arguments_that_a_person_changes_must_not_match_a_deny_rule() {
    let home = Home::new();
    team(&home, "{when: \"args.text == 'two'\"}", true);
    home.rules("- deny: {command: '*rm -rf*'}\n- ask: {command: '*two*'}\n- allow: {command: '*'}\n");
    home.run(&RUN).exits(5);
    home.run(&["resume", "last", "--answer", "{\"text\": \"rm -rf build\"}"]).exits(5);
    let events = home.events();
    let asked = of_type(&events, "input_required");
    let again = asked[1]["text"].as_str().unwrap();
    assert!(
        again.starts_with("That change was refused: A rule of the user denies it. `Ann` calls"),
        "{again}"
    );
    assert!(asked.len() == 2 && noted(&home).is_empty(), "{asked:?}");
    home.run(&["resume", "last", "--answer", "{\"text\": \"2\"}"]).ok();
    assert_eq!(noted(&home), ["2", "one", "three"]);
}

#[test]
fn rules_of_the_user_count_before_the_team_file_deny_before_ask_before_allow() {
    let returned = |home: &Home| -> Vec<String> {
        of_type(&home.events(), "tool_returned")
            .iter()
            .map(|event| event["result"]["status"].to_string())
            .collect()
    };
    let home = Home::new();
    team(&home, "never", true);
    home.rules("- allow: {command: '*'}\n- deny: {tool: note, command: '*two*'}\n- ask: {tool: 'no*', command: '*three*'}\n- ask: {command: '*two*'}\n");
    home.run(&RUN).exits(5);
    assert_eq!(of_type(&home.events(), "input_required").len(), 1);
    home.run(&["resume", "last", "--answer", "yes"]).ok();
    assert_eq!(noted(&home), ["one", "three"]);
    assert!(home.run(&["show", "last"]).ok().out.contains("A rule of the user denies it."));
    assert!(returned(&home).iter().any(|status| status == "\"failed\""));
    // The name that a team file gave a tool says nothing of what it does: it takes more to allow it.
    let home = Home::new();
    team(&home, "never", true);
    home.rules("- allow: {tool: note}\n");
    home.run(&RUN).exits(5);
    home.rules("- allow: {tool: note}\n- alow: {tool: x}\n- deny: {}\n");
    let wrong = home.run(&RUN).exits(2);
    assert!(
        wrong.err.contains("approvals.yaml:2:3") && wrong.err.contains("the rule matches nothing"),
        "{}",
        wrong.err
    );
}

#[test]
fn an_always_answer_applies_to_the_same_call_of_the_same_team() {
    let home = Home::new();
    team(&home, "always", true);
    home.rules("# My rules\n- deny: {command: '*nothing*'}");
    let mut terminal = Terminal::open(&home, (110, 60), &RUN);
    for answer in ["always", "yes", "yes"] {
        terminal.wait_for_question("ends the conversation.");
        let asked = of_type(&home.events(), "input_required").len();
        terminal.press(&format!("{answer}\r"));
        until("it continues", || of_type(&home.events(), "input_provided").len() == asked);
    }
    assert_eq!(terminal.end().0, 0);
    assert_eq!(noted(&home).len(), 3);
    let kept = fs::read_to_string(home.path(".config/polylogue/approvals.yaml")).unwrap();
    assert!(kept.starts_with("# My rules\n- deny: {command: '*nothing*'}\n- {\"allow\":"), "{kept}");
    assert!(kept.contains("\"one\"") && !kept.contains("\"two\""), "{kept}");
    assert!(home.run(&["trust", "rules"]).ok().out.starts_with("2 rules in "));
    // The first call is made without a question, the others are not.
    home.run(&RUN).exits(5);
    let asked = of_type(&home.events(), "input_required")[0]["text"].as_str().unwrap().to_owned();
    assert!(asked.contains("two") && !asked.contains("one"), "{asked}");
    home.run(&["resume", "last", "--answer", "yes"]).exits(5);
    home.run(&["resume", "last", "--answer", "yes"]).ok();
    assert_eq!(noted(&home), ["one", "three", "two"]);
    // Another team that calls its own tool the same is asked.
    let text = fs::read_to_string(home.path("team.yaml")).unwrap();
    home.file("team.yaml", &text.replace("notes.txt", "other.txt"));
    home.run(&RUN).exits(5);
    assert!(of_type(&home.events(), "input_required")[0]["text"].as_str().unwrap().contains("one"));
}

#[test]
fn a_call_that_was_approved_and_runs_when_the_process_is_killed_is_not_made_again() {
    let home = Home::new();
    team(&home, "always", true);
    let text = fs::read_to_string(home.path("team.yaml"))
        .unwrap()
        .replace(">> notes.txt'", ">> notes.txt; sleep 2'");
    home.file("team.yaml", &text);
    home.run(&RUN).exits(5);
    home.run(&["resume", "last", "--answer", "yes"]).exits(5);
    home.run(&["resume", "last", "--answer", "no"]).exits(5);
    let running = home.start(&["resume", "last", "--answer", "yes"]);
    // Commands of one message run one after the other: the first is done when the second takes its note.
    until("both notes are taken", || noted(&home).len() == 2);
    running.signal(Signal::KILL);
    running.end();
    let resumed = home.run(&["resume", "last"]).ok();
    assert!(resumed.out.contains("unknown"), "{}", resumed.out);
    assert_eq!(noted(&home), ["one", "three"]);
    let events = home.events();
    let status = |event: &Value| event["result"]["status"].as_str().unwrap().to_owned();
    let mut ended: Vec<String> =
        of_type(&events, "tool_returned").iter().map(|event| status(event)).collect();
    ended.sort();
    assert_eq!(
        (ended, of_type(&events, "input_required").len()),
        (["done", "failed", "unknown"].map(String::from).to_vec(), 3)
    );
}

/// A team whose Ann waits until there is a file `go` next to the work directories, and then takes one note with this text.
fn one_note(home: &Home, text: &str) {
    let call =
        |tool: &str, args: Value| json!({"Ann": {"calls": [{"tool": tool, "args": args, "id": tool}]}});
    let (wait, note) = (call("wait", json!({})), call("note", json!({"text": text})));
    let team = format!(
        r#"
name: notes
task: go
sandbox: {{backend: none}}
agents: [{{name: Ann, tools: [wait, note], approval: {{tools: [note]}}}}]
commands:
  - name: wait
    description: Waits
    command: [sh, -c, 'touch ../begun; while ! test -e ../go; do sleep 0.05; done']
  - name: note
    description: Takes a note
    command: [sh, -c, 'echo noted >> notes.txt', note, "{{text}}"]
    arguments: {{text: {{type: string}}}}
chat: {{participants: [Ann], pattern: sequential}}
script: [{wait}, {note}, {{Ann: It is noted.}}]
"#
    );
    home.file("team.yaml", &team);
    // There is no sandbox: only the user can let one run without a question.
    home.rules("- allow: {tool: wait, command: '*'}\n");
    fs::create_dir(home.path("store.db.work")).unwrap();
}

#[test]
fn enter_alone_and_what_was_typed_before_the_question_approve_nothing() {
    let home = Home::new();
    one_note(&home, "one");
    let mut terminal = Terminal::open(&home, (100, 50), &RUN);
    let works = home.path("store.db.work");
    until("the first turn runs", || works.join("begun").exists());
    // A whole line, and one that waits for its Enter.
    terminal.press("yes\ry");
    terminal.wait_for("yes");
    fs::write(works.join("go"), "").unwrap();
    terminal.wait_for_question("`exit` ends the conversation.");
    assert!(
        terminal.sees().contains("(What was typed before this question does not count.)"),
        "{}",
        terminal.sees()
    );
    assert!(of_type(&home.events(), "input_provided").is_empty() && noted(&home).is_empty());
    assert!(terminal.sees().trim_end().ends_with("Allow Ann to call `note`? [y/N]"), "{}", terminal.sees());
    terminal.press("\r");
    let (code, seen) = terminal.end();
    assert_eq!((code, noted(&home).len()), (0, 0), "{seen}");
    assert!(seen.contains("it was rejected."), "{seen}");
}

/// What a person has to see of a command that hides something when it is rendered.
const HIDING: &str =
    "echo `touch pwned` [build](http://a.example/x) *a* \u{202e}cod.txt\u{200b} \u{1b}]52;c;eA==\u{7} # ";

#[test]
fn a_question_at_the_terminal_is_verbatim_whole_and_the_same_when_it_is_resumed() {
    let home = Home::new();
    let text = format!("{HIDING}{}END", "word ".repeat(40));
    one_note(&home, &text);
    fs::write(home.path("store.db.work/go"), "").unwrap();
    let shown = "\"text\": \"echo `touch pwned` [build](http://a.example/x) *a* ⟨U+202E⟩cod.txt⟨U+200B⟩ \\u001b]52;c;eA==\\u0007 # ";
    let is_whole = |seen: &str| {
        // Only the terminal breaks long lines: what is copied is what runs.
        let expected = format!("── 3 lines\n{{\n  {shown}{}END\"\n}}\n──\n", "word ".repeat(40));
        assert!(seen.contains(&expected), "{seen}\n{expected}");
    };
    let mut terminal = Terminal::open(&home, (60, 60), &RUN);
    terminal.wait_for_question("conversation.");
    is_whole(&terminal.sees());
    assert!(!terminal.bytes().contains("\u{1b}]52"));
    terminal.press("\u{4}");
    let (code, _) = terminal.end();
    assert_eq!(code, 5);
    let mut terminal = Terminal::open(&home, (60, 60), &["resume", "last"]);
    terminal.wait_for_question("conversation.");
    is_whole(&terminal.sees());
    terminal.press("no\r");
    terminal.end();
    let whole = format!("\n{{\n  {shown}word word ");
    for args in
        [&["show", "last"][..], &["show", "last", "--markdown"], &["show", "last", "--style", "autogen"]]
    {
        let out = home.run(args).ok().out;
        assert!(out.contains(&whole), "{out}");
        assert!(!out.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{7}']), "{out:?}");
    }
}

#[test]
fn a_call_without_arguments_is_asked_about_without_a_block() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: t\ntask: Go\nagents: [{name: A, tools: [get_history], approval: always}]\n\
         chat: {participants: [A], pattern: sequential}\nscript: [{A: {calls: [{tool: get_history}]}}, {A: Done.}]\n",
    );
    let ran = home.run(&["run", "team.yaml", "--offline"]).exits(5);
    let asked = "\n`A` calls `get_history` without arguments. `yes` runs it; `no`, ";
    assert!(ran.out.contains(asked), "{}", ran.out);
    home.run(&["resume", "last", "--answer", "yes", "--offline"]).ok();
}
