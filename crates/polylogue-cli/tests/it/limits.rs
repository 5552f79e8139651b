//! The limits of the command line are kept with a conversation.

use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Playbook};
use rustix::process::Signal;

use crate::home::{Home, KEY, of_type, serve, until};

/// Two who would talk for long, at a price.
const TEAM: &str = r#"
name: pair
task: Talk
prices: {"openai:test": {input: 1000, output: 1000}}
agents:
  - {name: Ann, system: You are Ann., parameters: {max_tokens: 10}}
  - {name: Bob, system: You are Bob., parameters: {max_tokens: 10}}
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 12}}
"#;

const RUN: [&str; 4] = ["run", "team.yaml", "--model", "openai:test"];

fn talker() -> Behavior {
    Behavior::from(Playbook::new(|_, nth| Answer::text(format!("words {nth}")).usage(100, 10))).key(KEY)
}

/// The state of the only conversation.
fn state(home: &Home) -> String {
    home.listed()[0]["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_limit_of_the_command_line_holds_for_a_bare_resume_until_another_value_is_given() {
    for (option, low, mid, high, code) in [
        ("--max-turns", "2", "4", "100", 3),
        ("--max-calls", "2", "4", "100", 3),
        ("--max-tokens", "500", "800", "100000", 4),
        ("--max-cost", "0.5", "0.8", "1000", 4),
    ] {
        let server = serve(talker());
        let home = Home::at(&server);
        home.file("team.yaml", TEAM);
        let ended = home.run(&[&RUN[..], &[option, low]].concat()).exits(code);
        assert!(ended.out.contains(&format!("polylogue resume {} {option} ", home.id())), "{}", ended.out);
        let (calls, events) = (server.count(), home.events());
        assert!(calls > 0 && calls < 12, "{option}: {calls}");
        let bare = home.run(&["resume", "last"]).exits(code);
        assert!(bare.err.contains("would end again at once: the "), "{option}: {}", bare.err);
        assert!(bare.err.contains(&format!("a higher limit (`{option} ")), "{option}: {}", bare.err);
        assert_eq!((server.count(), &home.events()), (calls, &events), "{option}: nothing is done");
        // A higher value is kept, too.
        home.run(&["resume", "last", option, mid]).exits(code);
        let more = server.count();
        assert!(more > calls && more < 12, "{option}: {more}");
        home.run(&["resume", "last"]).exits(code);
        assert_eq!(server.count(), more, "{option}: the higher value is kept");
        home.run(&["resume", "last", option, high]).ok();
        assert_eq!((server.count(), of_type(&home.events(), "limits_changed").len()), (12, 2), "{option}");
    }
}

#[test]
fn the_limits_of_a_run_that_was_killed_hold_in_the_process_that_resumes_it() {
    for store in ["talks/", "store.db"] {
        let slow = serve(talker().latency(Duration::from_secs(600)));
        let mut home = Home::at(&slow).var("POLYLOGUE_STORE", store);
        home.file("team.yaml", TEAM);
        let running = home.start(&[&RUN[..], &["--max-calls", "3"]].concat());
        until("the model is asked", || slow.count() >= 1);
        running.signal(Signal::KILL);
        running.end().exits(-1);
        // Another value, given while a turn is open, holds from then on, also when it is not given again.
        let stuck = serve(talker().latency(Duration::from_secs(600)));
        home.set("OPENAI_BASE_URL", &stuck.base_url());
        let running = home.start(&["resume", "last", "--max-calls", "4"]);
        until("the model is asked again", || stuck.count() >= 1);
        running.signal(Signal::KILL);
        running.end().exits(-1);
        let quick = serve(talker());
        home.set("OPENAI_BASE_URL", &quick.base_url());
        let ended = home.run(&["resume", "last"]).exits(3);
        assert!(ended.out.contains("limit: the limit of 4 model calls"), "{store}: {}", ended.out);
        // Two that were in flight count.
        assert_eq!(quick.count(), 2, "{store}");
        home.run(&["verify"]).ok();
    }
}

#[test]
fn a_limit_that_is_changed_while_a_person_is_waited_for_holds_when_the_person_has_answered() {
    let server = serve(talker());
    let home = Home::at(&server);
    home.file(
        "team.yaml",
        &TEAM.replace(
            "  - {name: Bob, system: You are Bob., parameters: {max_tokens: 10}}",
            "  - {name: Bob, human: true}",
        ),
    );
    home.run(&[&RUN[..], &["--max-turns", "9"]].concat()).exits(5);
    assert_eq!(state(&home), "waiting for Bob");
    home.run(&["resume", "last", "--max-turns", "2"]).exits(5);
    assert_eq!(state(&home), "waiting for Bob", "a change of limits changes nothing else");
    let ended = home.run(&["resume", "last", "--answer", "Hello"]).exits(3);
    assert!(ended.out.contains("limit: the limit of 2 turns"), "{}", ended.out);
}

#[test]
fn rows_of_a_batch_continue_under_the_limits_that_they_began_with() {
    let slow = serve(talker().latency(Duration::from_secs(600)));
    let mut home = Home::at(&slow);
    home.file("team.yaml", TEAM);
    home.file("rows.jsonl", "{\"task\": \"One\"}\n");
    let batch = ["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl", "-m", "openai:test"];
    let running = home.start(&[&batch[..], &["--max-calls", "3"]].concat());
    until("the model is asked", || slow.count() >= 1);
    running.signal(Signal::KILL);
    running.end().exits(-1);
    let quick = serve(talker());
    home.set("OPENAI_BASE_URL", &quick.base_url());
    home.run(&batch).exits(3);
    assert_eq!(quick.count(), 2, "the call that was in flight counts");
}

#[test]
fn limits_of_one_are_in_the_singular() {
    let server = serve(talker());
    let home = Home::at(&server);
    home.file("team.yaml", TEAM);
    let ended = home.run(&[&RUN[..], &["--max-turns", "1", "--max-calls", "1"]].concat()).exits(3);
    assert!(ended.err.contains("pair: at most 1 turn in all, 1 model call;"), "{}", ended.err);
}

#[test]
fn after_a_limit_of_the_team_the_last_line_says_how_to_continue() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: pair\ntask: Talk\nagents: [{name: Ann}, {name: Bob}]\nchat: {participants: [Ann, Bob], max_turns: 2}\n\
         script: [{Ann: A1}, {Bob: B1}, {Ann: A2}, {Bob: B2}]\n",
    );
    let ended = home.run(&["run", "team.yaml", "--offline"]).exits(3);
    let command = format!("polylogue resume {} \"Continue.\"", home.id());
    assert!(ended.out.contains(&format!("`{command}`")), "{}", ended.out);
    let bare = home.run(&["resume", "last"]).exits(3);
    assert!(bare.err.contains(&format!("`{command}` continues it")), "{}", bare.err);
    let more = home.shell(&command).exits(3);
    assert!(more.out.contains("A2") && more.out.contains("B2"), "{}", more.out);
    // One that reached its goal says so, too.
    home.file("done.yaml", "name: one\ntask: Talk\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\nscript: [{Ann: A1}]\n");
    home.run(&["run", "done.yaml", "--offline"]).ok();
    let over = home.run(&["resume", "last"]).ok();
    assert!(
        over.err.contains(&format!("is over; `polylogue resume {} \"Continue.\"`", home.id())),
        "{}",
        over.err
    );
}

#[test]
fn a_person_who_was_handed_to_gives_the_turn_back() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: desk\ntask: Refund me\nagents: [{name: Bot, handoffs: [Clerk]}, {name: Clerk, handoffs: [Kim]}, {name: Kim, human: true}]\n\
         chat: {participants: [Bot, Clerk, Kim], pattern: {handoffs: {start: Bot, then: stay}}, stop: {says: {text: Refunded, by: Clerk}, max_turns: 8}}\n\
         script: [{Bot: {calls: [{tool: transfer_to_Clerk, args: {note: Please look.}}]}}, {Clerk: {calls: [{tool: transfer_to_Kim, args: {note: May I?}}]}}, {Clerk: Refunded}]\n",
    );
    let ran = home.run_reading("Yes, you may.\n", &["run", "team.yaml", "--offline"]).ok();
    let events = home.events();
    let said = of_type(&events, "message");
    let names: Vec<&str> = said.iter().map(|event| event["from"].as_str().unwrap()).collect();
    assert!(names.ends_with(&["Kim", "Clerk"]), "{names:?}\n{}", ran.out);
}
