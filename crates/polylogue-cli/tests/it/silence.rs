//! Replies without words and replies that are cut off, as the user of the program meets them.

use std::fs;

use polylogue_test::server::{Answer, Behavior, History, Playbook, Server};
use serde_json::{Value, json};

use crate::home::{Home, KEY, serve};

const PAIR: &str =
    "name: pair\nmodel: openai:test\nagents: [{name: Ann}, {name: Bob}]\nchat: {participants: [Ann, Bob]}\n";
const ALONE: &str = "name: room\nmodel: openai:test\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\n";

fn home(server: &Server, team: &str) -> Home {
    Home::at(server).with_team(team)
}

fn answering(answer: Answer) -> Server {
    serve(Playbook::always(answer))
}

fn batch(home: &Home, code: i32) -> Value {
    home.file("rows.jsonl", "{\"task\": \"What is 2 + 2?\"}\n");
    home.run(&["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl"]).exits(code);
    let records = fs::read_to_string(home.path("out.jsonl")).unwrap();
    serde_json::from_str(records.lines().next().unwrap()).unwrap()
}

#[test]
fn a_run_without_any_message_has_its_own_exit_code_and_no_result() {
    for answer in [Answer::text(""), Answer::text(" \n"), Answer::text("").think("Hm.")] {
        let server = answering(answer);
        let home = home(&server, PAIR);
        let ran = home.run(&["run", "team.yaml", "What is 2 + 2?"]).exits(7);
        assert!(
            ran.out.contains(
                "\nno output: no participant said anything; loop detected: empty replies · 2 turns"
            ),
            "{}",
            ran.out
        );
        assert_eq!(server.count(), 2);
        assert_eq!(home.run(&["run", "team.yaml", "What is 2 + 2?", "--quiet"]).exits(7).out.trim(), "");
        let record = batch(&home, 7);
        assert_eq!((&record["state"], &record["summary"]), (&json!("no_output"), &json!("")));
        let listed = &home.listed()[0];
        assert_eq!(listed["state"], "no_output");
        assert!(listed["status"].as_str().unwrap().starts_with("no output: "), "{listed}");
    }
}

#[test]
fn a_cut_reply_is_continued_or_marked_in_the_message_the_record_the_last_line_and_the_exit_code() {
    let server = answering(Answer::text("and on ").finish("length"));
    let home = home(&server, ALONE);
    let ran = home.run(&["run", "team.yaml", "Go on"]).exits(8);
    assert_eq!(server.count(), 4, "it is asked for the rest three times");
    assert!(
        ran.out.contains("done: Ann replied · the result is cut off at the limit on tokens · 1 turn"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("(cut off at the limit on tokens)"), "{}", ran.out);
    let record = batch(&home, 0);
    assert_eq!((&record["cut"], &record["messages"][1]["cut"]), (&json!("length"), &json!("length")));

    let server = answering(Answer::text("I would").finish("content_filter"));
    let home = self::home(&server, ALONE);
    let ran = home.run(&["run", "team.yaml", "Go on"]).exits(8);
    assert_eq!(server.count(), 1);
    assert!(ran.out.contains("· the result is cut off by the provider's filter ·"), "{}", ran.out);
    assert_eq!(batch(&home, 0)["cut"], "filter");
}

#[test]
fn a_cut_reply_that_is_not_the_result_does_not_change_the_exit_code() {
    let server =
        serve(Playbook::list([Answer::text("I would").finish("content_filter"), Answer::text("It is 4.")]));
    let home = home(&server, &PAIR.replace("[Ann, Bob]}", "[Ann, Bob], pattern: sequential}"));
    let ran = home.run(&["run", "team.yaml", "What is 2 + 2?"]).ok();
    assert!(ran.out.contains("(cut off by the provider's filter)"), "{}", ran.out);
}

// `{model: none, human_input: always}` is AutoGen's user proxy, and what an import writes.
#[test]
fn enter_at_the_question_of_a_user_proxy_continues_the_chat() {
    let server = answering(Answer::text("Well?"));
    let proxy = "name: pair\nmodel: openai:test\nagents: [{name: Ann}, {name: Me, model: none, human_input: always}]\n\
                 chat: {participants: [Ann, Me], stop: {max_turns: 3}}\n";
    let home = home(&server, proxy);
    home.run(&["run", "team.yaml", "Hello"]).exits(5);
    let ran = home.run(&["resume", "last", "--answer", ""]).ok();
    assert!(ran.out.contains("done: 3 of 3 turns · "), "{}", ran.out);
    assert_eq!(server.count(), 2, "Ann is asked again");
    assert!(!ran.out.contains(KEY));
}

// What `role` says of a group's selector reaches the wire. The strictest servers know no system text within a conversation, which is
// why it is not the default.
#[test]
fn a_selector_is_asked_in_the_role_that_is_set() {
    for (role, expected) in [("", "user"), (", role: system", "system")] {
        let server = serve(Behavior::from(Playbook::always(Answer::text("Bob"))).history(History::Any));
        let team = format!(
            "name: group\nmodel: openai:test\nagents: [{{name: Ann}}, {{name: Bob}}, {{name: Cem}}]\nchat:\n  \
             participants: [Ann, Bob, Cem]\n  pattern: {{group: {{select: {{model: {{prompt: Who is next?{role}}}}}}}}}\n  stop: {{max_turns: 1}}\n"
        );
        home(&server, &team).run(&["run", "team.yaml", "Hello"]).ok();
        let asked = server.requests();
        let last = asked[0].messages().last().unwrap();
        assert_eq!(
            (&last["role"], asked[0].last_text().contains("Who is next?")),
            (&json!(expected), true),
            "{last}"
        );
    }
}
