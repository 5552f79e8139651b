//! Answers that are read from a standard input that is not a terminal: a line for each question.

use std::io::{PipeReader, Read, Write, pipe};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::home::{Home, PROGRAM, of_type, shipped, until};
use crate::pictures::can_enclose;

/// Two people who talk until one of them says `exit`, or five turns are over.
const HALL: &str = "name: hall
task: Who sweeps?
agents: [{name: Ann, human: true}, {name: Bob B, human: true}]
chat: {participants: [Ann, Bob B], stop: {max_turns: 5}}
";

fn hall() -> Home {
    Home::new().with_team(HALL)
}

/// What was answered in the newest conversation.
fn answers(home: &Home) -> Vec<String> {
    texts(&home.events())
}

fn texts(events: &[Value]) -> Vec<String> {
    of_type(events, "input_provided").iter().map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_question_takes_a_line_of_a_pipe_until_the_conversation_is_over() {
    let home = hall();
    let ran = home.run_reading("You.\n\n  No, you. \r\nexit\nnever read\n", &["run", "team.yaml"]).exits(6);
    assert_eq!(answers(&home), ["You.", "", "  No, you. ", "exit"]);
    assert!(ran.out.contains("Bob B left: said `exit`"), "{}", ran.out);
}

/// The conversation waits for the next input.
#[test]
fn when_the_input_ends_the_run_waits_and_is_resumed_with_the_rest() {
    let home = hall();
    let ran = home.run_reading("one\ntwo", &["run", "team.yaml"]).exits(5);
    assert!(ran.out.contains("waiting for Ann") && ran.out.contains("polylogue resume"), "{}", ran.out);
    assert_eq!(answers(&home), ["one", "two"], "a last line without an end counts");
    home.run(&["resume", "last"]).exits(5);
    home.run_reading("three\n", &["resume", "last", "--quiet"]).exits(5);
    let ran = home.run_reading("four\nfive\n", &["resume", "last", "--quiet"]).ok();
    assert_eq!(answers(&home), ["one", "two", "three", "four", "five"]);
    assert_eq!(ran.out, "five\n");
}

#[test]
fn json_and_quiet_runs_read_the_same_lines() {
    let home = hall();
    let lines =
        home.run_reading("one\ntwo\nthree\nfour\nfive\n", &["run", "team.yaml", "--json"]).ok().lines();
    assert_eq!(of_type(&lines, "input_required").len(), 5);
    assert_eq!(texts(&lines), ["one", "two", "three", "four", "five"]);
    let quiet = home.run_reading("1\n2\n3\n4\n5\n", &["run", "team.yaml", "--quiet"]).ok();
    assert_eq!(quiet.out, "5\n");
    assert_eq!(quiet.err, "");
}

#[test]
fn a_fence_makes_an_answer_of_several_lines_and_half_of_one_is_no_answer() {
    let home = hall();
    let input = "```\ntwo\nlines\n```\nBob\n```\nno end\n";
    let ran = home.run_reading(input, &["run", "team.yaml", "--quiet"]).exits(1);
    assert_eq!(answers(&home), ["```\ntwo\nlines\n```", "Bob"]);
    assert!(
        ran.err.contains("the input ends within a block of code") && ran.err.contains("polylogue resume"),
        "{}",
        ran.err
    );
    home.run(&["resume", "last", "--quiet"]).exits(5);
}

#[test]
fn an_answer_that_is_no_text_or_too_long_ends_the_run_and_the_question_stays() {
    let home = hall();
    let script = "printf 'one\\n\\377\\n' | polylogue run team.yaml --quiet; echo $?; polylogue resume last --quiet; echo $?
        head -c 5000000 /dev/zero | tr '\\0' x | polylogue resume last --quiet; echo $?";
    let ran = home.shell(script).ok();
    assert_eq!(
        ran.out.split_whitespace().collect::<Vec<_>>(),
        ["1", "one", "5", "1"],
        "{}\n{}",
        ran.out,
        ran.err
    );
    assert!(
        ran.err.contains("it is not UTF-8") && ran.err.contains("it is longer than 4 MiB"),
        "{}",
        ran.err
    );
    assert_eq!(answers(&home), ["one"]);
}

#[test]
fn input_that_is_the_task_or_stands_next_to_an_answer_is_no_answer() {
    let home = hall();
    home.run_reading("Who cooks?\nAnn\n", &["run", "team.yaml", "-", "--quiet"]).exits(5);
    assert_eq!(answers(&home), [""; 0]);
    let refused = home.run_reading("x\n", &["run", "team.yaml", "-", "--input", "answers"]).exits(2);
    assert!(refused.err.contains("cannot be both"), "{}", refused.err);
    // The lines of a loop of the shell are the loop's.
    let looped = home.shell("printf 'one\\ntwo\\n' | while read -r line; do polylogue resume last --quiet --answer \"$line\"; done");
    assert_eq!(looped.code, 5, "{}", looped.err);
    assert_eq!(answers(&home), ["one", "two"]);
    home.run_reading("three\n", &["resume", "last", "--input", "none"]).exits(5);
    assert_eq!(answers(&home), ["one", "two"]);
}

/// What stands behind the answers belongs to the next program.
#[test]
fn no_byte_behind_the_last_answer_is_read() {
    let home = hall();
    let script = "printf '1\\n2\\n3\\n4\\n5\\nrest\\nof it\\n' | { polylogue run team.yaml --quiet; cat; }";
    assert_eq!(home.shell(script).ok().out, "5\nrest\nof it\n");
    assert_eq!(
        home.shell("printf 'not a question\\n' | { polylogue runs >/dev/null; cat; }").ok().out,
        "not a question\n"
    );
}

/// A line that happens to be `yes` must not run anything.
#[test]
fn a_line_approves_nothing_unless_it_was_said_that_lines_do() {
    if !can_enclose() {
        return;
    }
    let home = Home::new().with_team("{name: t, task: x, agents: [{name: A}, {name: R, model: none, code_execution: {approval: always}}, {name: Kim, human: true}],
          chat: {participants: [A, R, Kim], pattern: sequential}, script: [{A: \"```sh\\necho ran\\n```\"}]}");
    let ran = home.run_reading("yes\nthanks\n", &["run", "team.yaml", "--offline"]).exits(5);
    assert!(ran.err.contains("waits for approval") && ran.err.contains("--input approvals"), "{}", ran.err);
    assert_eq!(answers(&home), [""; 0]);
    let ran = home.run_reading("yes\nthanks\n", &["resume", "last", "--input", "approvals"]).ok();
    assert_eq!(answers(&home), ["yes", "thanks"]);
    assert!(ran.out.contains("ran"), "{}", ran.out);
}

/// A run whose input is a pipe that this test holds.
fn on_pipe(home: &Home, input: &PipeReader, args: &[&str]) -> Child {
    let mut command = home.command(PROGRAM, args);
    command.stdin(input.try_clone().unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn wait_for_answers(home: &Home, count: usize) {
    until("the answers are taken", || {
        let shown = home.run(&["show", "last", "--json"]);
        shown.out.lines().filter(|line| line.contains(r#""type":"input_provided""#)).count() >= count
    });
}

#[test]
fn a_run_that_is_killed_between_two_answers_continues_with_the_rest_of_the_pipe() {
    let home = hall();
    let (read, mut write) = pipe().unwrap();
    let mut first = on_pipe(&home, &read, &["run", "team.yaml"]);
    write.write_all(b"one\ntwo\n").unwrap();
    wait_for_answers(&home, 2);
    first.kill().unwrap();
    first.wait().unwrap();
    write.write_all(b"three\nfour\nfive\nleft\n").unwrap();
    let mut second = on_pipe(&home, &read, &["resume", "last"]);
    assert_eq!(second.wait().unwrap().code(), Some(0));
    assert_eq!(answers(&home), ["one", "two", "three", "four", "five"]);
    drop(write);
    let mut rest = String::new();
    let mut read = read;
    read.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "left\n");
}

#[test]
fn a_run_that_waits_for_a_line_is_stopped_by_a_signal_and_can_be_resumed() {
    let home = hall();
    let (read, mut write) = pipe().unwrap();
    let mut run = on_pipe(&home, &read, &["run", "team.yaml"]);
    write.write_all(b"one\n").unwrap();
    wait_for_answers(&home, 1);
    rustix::process::kill_process(rustix::process::Pid::from_child(&run), rustix::process::Signal::INT)
        .unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(5));
    home.run_reading("2\n3\n4\n5\n", &["resume", "last"]).ok();
    assert_eq!(answers(&home), ["one", "2", "3", "4", "5"]);
}

#[test]
fn a_team_learns_from_lines_that_are_piped_into_it() {
    if !can_enclose() {
        return;
    }
    let home = Home::new();
    let lines = "2024-03-01 48.00\n2024-03-08 51.00\nEND\n";
    let ran = home.run_reading(lines, &["run", &shipped("continual-learning"), "--offline"]).ok();
    for known in ["1 prices, change 0.0", "2 prices, change 3.0", "\ndone: "] {
        assert!(ran.out.contains(known), "{known}: {}\n{}", ran.out, ran.err);
    }
    let lines = "17, 18, 19\nAll by day. In the rush hour it was 28 and 28.\nEND\n";
    home.run_reading(lines, &["run", &shipped("data-stream"), "--offline"]);
    assert_eq!(answers(&home).last().map(String::as_str), Some("END"));
}
