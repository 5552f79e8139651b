//! The limits of the command line are kept with a conversation.

use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Playbook};
use rustix::process::Signal;

use crate::home::{Home, KEY, of_type, serve, until};

/// Two who would talk for long, at a price.
pub(crate) const TEAM: &str = r#"
name: pair
task: Talk
prices: {"openai:test": {input: 1000, output: 1000}}
agents:
  - {name: Ann, system: You are Ann., parameters: {max_tokens: 10}}
  - {name: Bob, system: You are Bob., parameters: {max_tokens: 10}}
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 12}}
"#;

pub(crate) const RUN: [&str; 4] = ["run", "team.yaml", "--model", "openai:test"];

pub(crate) fn talker() -> Behavior {
    Behavior::from(Playbook::new(|_, nth| Answer::text(format!("words {nth}")).usage(100, 10))).key(KEY)
}

/// The state of the only conversation.
fn state(home: &Home) -> String {
    home.listed()[0]["status"].as_str().unwrap().to_owned()
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
        let home = Home::at(&server).with_team(TEAM);
        let ended = home.run(&[&RUN[..], &[option, low]].concat()).exits(code);
        assert!(ended.out.contains(&format!("polylogue resume {} {option} ", home.id())), "{}", ended.out);
        let (calls, events) = (server.count(), home.events());
        assert!(calls > 0 && calls < 12, "{option}: {calls}");
        let bare = home.run(&["resume", "last"]).exits(code);
        assert!(bare.err.contains("would end again at once: the "), "{option}: {}", bare.err);
        let command = format!("`polylogue resume {} {option} {low}` continues it", home.id());
        assert!(bare.err.contains(&command), "{option}: {}", bare.err);
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

/// A condition ends a chat after a call that used too much. What is advised then makes the next call, though that can take more.
#[test]
fn what_is_advised_after_a_condition_on_tokens_or_cost_continues() {
    for stop in ["stop: {max_tokens: 200}", "stop: {max_cost: 0.0001}"] {
        let server = serve(talker());
        let home = Home::at(&server);
        let prices = "prices: {'openai:test': {input: 1, output: 1}}";
        home.file(
            "team.yaml",
            &format!(
                "name: t\ntask: Go.\nagents: [{{name: A}}]\nchat: {{participants: [A], {stop}}}\n{prices}\n"
            ),
        );
        let ended = home.run(&RUN).exits(4);
        let advised = format!("polylogue resume {} \"Continue.\"", home.id());
        assert!(ended.out.contains(&advised), "{stop}: {}", ended.out);
        let calls = server.count();
        home.run(&["resume", "last", "Continue."]).exits(4);
        assert!(server.count() > calls, "{stop}: {calls}");
    }
}

#[test]
fn the_limits_of_a_run_that_was_killed_hold_in_the_process_that_resumes_it() {
    for store in ["talks/", "store.db"] {
        let slow = serve(talker().latency(Duration::from_secs(600)));
        let mut home = Home::at(&slow).var("POLYLOGUE_STORE", store).with_team(TEAM);
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
        assert!(ended.out.contains("limit: 4 model calls"), "{store}: {}", ended.out);
        // Two that were in flight count.
        assert_eq!(quick.count(), 2, "{store}");
        home.run(&["verify"]).ok();
    }
}

#[test]
fn a_limit_that_is_changed_while_a_person_is_waited_for_holds_when_the_person_has_answered() {
    let server = serve(talker());
    let home = Home::at(&server).with_team(&TEAM.replace(
        "  - {name: Bob, system: You are Bob., parameters: {max_tokens: 10}}",
        "  - {name: Bob, human: true}",
    ));
    home.run(&[&RUN[..], &["--max-turns", "9"]].concat()).exits(5);
    assert_eq!(state(&home), "waiting for Bob");
    // Ann had a turn: with the two that are allowed from here on, these are three.
    home.run(&["resume", "last", "--max-turns", "2"]).exits(5);
    assert_eq!(state(&home), "waiting for Bob", "a change of limits changes nothing else");
    let ended = home.run(&["resume", "last", "--answer", "Hello"]).exits(3);
    assert!(ended.out.contains("limit: 3 turns"), "{}", ended.out);
}

/// It begins with the process, which has not paid for that call.
#[test]
fn a_call_that_an_earlier_process_has_lost_does_not_count_in_the_budget_of_the_next_one() {
    let stuck = serve(talker().latency(Duration::from_secs(600)));
    let mut home = Home::at(&stuck).with_team(TEAM);
    let running = home.start(&RUN);
    until("the model is asked", || stuck.count() >= 1);
    running.signal(Signal::KILL);
    running.end().exits(-1);
    let quick = serve(talker());
    home.set("OPENAI_BASE_URL", &quick.base_url());
    let ended = home.run(&["resume", "last", "--budget-calls", "2"]).exits(3);
    assert!(
        ended.out.contains("the budget of this process has reached the limit of 2 model calls"),
        "{}",
        ended.out
    );
    assert_eq!(quick.count(), 2);
    let events = home.events();
    let charged = of_type(&events, "charged");
    assert!(charged.iter().any(|charge| charge["why"] == "crashed" && charge["calls"] == 1), "{charged:?}");
}

#[test]
fn at_a_limit_a_person_is_asked_and_the_raise_survives_a_process_that_is_killed() {
    let server = serve(talker());
    let mut home = Home::at(&server).with_team(TEAM);
    home.run(&[&RUN[..], &["--max-calls", "2", "--max-turns", "9", "--on-limit", "ask"]].concat()).exits(5);
    assert_eq!((state(&home), server.count()), ("waiting for pair".to_owned(), 2));
    let waiting = home.run(&["waiting"]).ok();
    assert!(waiting.out.contains("The run has reached the limit of 2 model calls."), "{}", waiting.out);
    // The run is killed after the answer, in the first call that it allows.
    let stuck = serve(talker().latency(Duration::from_secs(600)));
    home.set("OPENAI_BASE_URL", &stuck.base_url());
    let running = home.start(&["resume", "last", "--answer", "3"]);
    until("the model is asked again", || stuck.count() >= 1);
    running.signal(Signal::KILL);
    running.end().exits(-1);
    assert_eq!(of_type(&home.events(), "limits_changed").len(), 1);
    // The call that was in flight counts, so that two are left of the three; then a person is asked again.
    let quick = serve(talker());
    home.set("OPENAI_BASE_URL", &quick.base_url());
    home.run(&["resume", "last"]).exits(5);
    assert_eq!((state(&home), quick.count()), ("waiting for pair".to_owned(), 2));
    // The other limit that the run was begun with holds, too, and asks.
    home.run(&["resume", "last", "--answer", "100"]).exits(5);
    let waiting = home.run(&["waiting"]).ok();
    assert!(waiting.out.contains("The run has reached the limit of 9 turns."), "{}", waiting.out);
    let ended = home.run(&["resume", "last", "--answer", "no"]).exits(3);
    assert!(ended.out.contains("limit: 9 turns"), "{}", ended.out);
    assert_eq!(quick.count(), 7);
    home.run(&["verify"]).ok();
}

#[test]
fn a_conversation_that_waits_at_a_limit_ends_there_when_it_is_resumed_without_questions() {
    let server = serve(talker());
    let home = Home::at(&server).with_team(TEAM);
    home.run(&[&RUN[..], &["--max-calls", "2", "--on-limit", "ask"]].concat()).exits(5);
    let ended = home.run(&["resume", "last", "--on-limit", "stop"]).exits(3);
    assert!(ended.out.contains("limit: 2 model calls"), "{}", ended.out);
    assert_eq!(server.count(), 2);
    // Later limits end it, too.
    home.run(&["resume", "last", "--max-calls", "1"]).exits(3);
    assert_eq!((server.count(), of_type(&home.events(), "input_required").len()), (3, 1));
}

#[test]
fn standard_input_raises_a_limit_only_where_it_may_approve() {
    let server = serve(talker());
    let home = Home::at(&server).with_team(
        &TEAM.replace("task: Talk", "task: Talk\nlimits: {calls: 2, on_limit: ask, ceiling: {calls: 3}}"),
    );
    let asked = home.run_reading("yes\n", &RUN).exits(5);
    assert!(asked.err.contains("`pair` waits for a higher limit."), "{}", asked.err);
    assert_eq!(server.count(), 2);
    let ended = home.run_reading("yes\nyes\n", &[&RUN[..], &["--input", "approvals"]].concat()).exits(3);
    assert!(ended.out.contains("limit: 3 model calls"), "{}", ended.out);
    assert_eq!(server.count(), 5, "the ceiling holds");
}

#[test]
fn rows_of_a_batch_continue_under_the_limits_that_they_began_with() {
    let slow = serve(talker().latency(Duration::from_secs(600)));
    let mut home = Home::at(&slow).with_team(TEAM);
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
fn limits_that_are_no_whole_numbers_and_empty_tasks_are_refused_with_what_is_expected() {
    let home = Home::new().with_team(TEAM);
    for (given, why) in [
        ("0", "it must be a whole number of at least 1"),
        ("abc", "it must be a whole number of at least 1"),
        ("99999999999999999999", "the number is too large"),
    ] {
        let refused = home.run(&["run", "team.yaml", "--max-turns", given]).exits(2);
        let line = format!("error: invalid value '{given}' for '--max-turns <N>': {why}");
        assert!(refused.err.contains(&line), "{}", refused.err);
    }
    let empty = home.run(&["run", "team.yaml", " "]).exits(2);
    assert!(empty.err.contains("error (config): the task is empty\n"), "{}", empty.err);
}

#[test]
fn limits_of_one_are_in_the_singular() {
    let server = serve(talker());
    let home = Home::at(&server).with_team(TEAM);
    let ended = home.run(&[&RUN[..], &["--max-turns", "1", "--max-calls", "1"]].concat()).exits(3);
    let said = &ended.err;
    assert!(
        said.contains("pair: at most 1 turn in all and $") && said.contains(" in 1 model call;"),
        "{said}"
    );
}

#[test]
fn after_a_limit_of_the_team_the_last_line_has_the_command_that_continues() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: pair\ntask: Talk\nagents: [{name: Ann}, {name: Bob}]\nchat: {participants: [Ann, Bob], max_turns: 2}\n\
         script: [{Ann: A1}, {Bob: B1}, {Ann: A2}, {Bob: B2}]\n",
    );
    let ended = home.run(&["run", "team.yaml", "--offline"]).exits(3);
    let command = format!("polylogue resume {} --max-turns 2", home.id());
    assert!(ended.out.contains(&format!("`{command}`")), "{}", ended.out);
    let bare = home.run(&["resume", "last"]).exits(3);
    assert!(bare.err.contains(&format!("`{command}` continues it")), "{}", bare.err);
    let more = home.shell(&command).exits(3);
    assert!(more.out.contains("A2") && more.out.contains("B2"), "{}", more.out);
    // One that reached its goal says so, too.
    home.file("done.yaml", "name: one\ntask: Talk\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\nscript: [{Ann: A1}]\n");
    home.run(&["run", "done.yaml", "--offline"]).ok();
    let over = home.run(&["resume", "last"]).ok();
    let command = format!("polylogue resume {} \"Continue.\"", home.id());
    assert!(over.err.contains(" is over: "), "{}", over.err);
    assert!(over.err.ends_with(&format!("; `{command}` continues it\n")), "{}", over.err);
}

/// The team of two with these conditions, and words without end.
fn scripted(home: &Home, chat: &str) {
    let words: Vec<String> = (1..20).map(|nth| format!("{{Ann: A{nth}}}, {{Bob: B{nth}}}")).collect();
    home.file(
        "team.yaml",
        &format!(
            "name: pair\ntask: Talk\nagents: [{{name: Ann}}, {{name: Bob}}]\nchat: {{participants: [Ann, Bob], {chat}}}\nscript: [{}]\n",
            words.join(", ")
        ),
    );
}

fn turns(home: &Home) -> usize {
    of_type(&home.events(), "message").len()
}

#[test]
fn resume_continues_for_more_turns_than_the_team_allows() {
    for chat in [
        "stop: {max_turns: 2}",
        "stop: {max_messages: 3}",
        "max_turns: 2",
        "stop: {any: [{says: DONE}, {max_turns: 2}]}",
        "stop: {all: [{says: B1}, {max_turns: 2}]}",
    ] {
        let home = Home::new();
        scripted(&home, chat);
        let first = home.run(&["run", "team.yaml", "--offline"]);
        let (id, count) = (home.id(), if chat.contains("messages") { 3 } else { 2 });
        let command = format!("polylogue resume {id} --max-turns {count}`");
        assert!(first.out.ends_with(&format!("`{command}\n")), "{chat}: {}", first.out);
        assert_eq!(turns(&home), 2, "{chat}");
        let more = home.run(&["resume", &id, "--max-turns", "3"]);
        assert_eq!(turns(&home), 5, "{chat}: {}", more.out);
        // As much again as was allowed last: not the sum, which would grow with each resumption.
        let again = format!("polylogue resume {id} --max-turns 3`");
        assert!(more.out.contains(&again), "{chat}: {}", more.out);
        // What was allowed is in the log: neither a bare resume nor a look at it takes more.
        let before = home.events();
        let bare = home.run(&["resume", &id]);
        assert!(bare.err.ends_with(&format!("{again} continues it\n")), "{chat}: {}", bare.err);
        assert_eq!((home.events(), bare.code), (before, more.code), "{chat}");
        let reopened = of_type(&home.events(), "reopened")[0].clone();
        assert_eq!(reopened["more"]["turns"], 3, "{chat}: {reopened}");
        home.run(&["resume", &id, "--max-turns", "1"]);
        assert_eq!(turns(&home), 6, "{chat}");
        // Under the limit of a run no agent could reply, so the message is not added.
        let before = home.events();
        let refused = home.run(&["resume", &id, "Continue."]);
        assert!(refused.err.contains("the message was not added: no agent of"), "{chat}: {}", refused.err);
        let command = format!("`polylogue resume {id} Continue. --max-turns ");
        assert!(refused.err.contains(&command), "{chat}: {}", refused.err);
        assert_eq!((home.events(), refused.code, &*refused.out), (before, 3, ""), "{chat}");
        // After a message, the team's limits count from 0.
        home.run(&["resume", &id, "Continue.", "--max-turns", "100"]);
        assert_eq!(turns(&home), 8, "{chat}");
    }
}

#[test]
fn a_limit_that_did_not_end_the_run_does_not_continue_it() {
    let home = Home::new();
    scripted(&home, "stop: {any: [{says: {text: B1, by: Bob}}, {max_turns: 9}]}");
    home.run(&["run", "team.yaml", "--offline"]).ok();
    let before = home.events();
    for option in ["--max-turns", "--max-calls", "--max-tokens"] {
        let ran = home.run(&["resume", "last", option, "5"]).ok();
        assert!(ran.err.contains("is over: Bob said `B1`; `polylogue resume "), "{option}: {}", ran.err);
        assert!(ran.err.contains(" \"Continue.\"` continues it"), "{option}: {}", ran.err);
    }
    assert_eq!(home.events(), before);
}

#[test]
fn a_message_that_ends_the_chat_at_once_is_refused_and_not_for_a_reason_of_success() {
    let home = Home::new();
    scripted(&home, "stop: {any: [{when: \"last.text.contains('B1')\"}, {max_turns: 9}]}");
    home.run(&["run", "team.yaml", "--offline"]).ok();
    let before = home.events();
    let refused = home.run(&["resume", "last", "And B1?"]).exits(7);
    assert!(refused.err.contains("the message was not added: no agent of"), "{}", refused.err);
    assert!(refused.err.ends_with("; another message can continue it\n"), "{}", refused.err);
    assert_eq!((home.events(), &*refused.out), (before, ""));
    home.run(&["resume", "last", "And more?"]);
    assert!(turns(&home) > 2);
}

#[test]
fn no_command_is_offered_that_cannot_continue_after_a_person_has_left() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: desk\ntask: Talk\nagents: [{name: Bot}, {name: Kim, human: true}]\n\
         chat: {participants: [Bot, Kim], pattern: round_robin}\nscript: [{Bot: B1}, {Bot: B2}, {Bot: B3}]\n",
    );
    let left = home.run_reading("exit\n", &["run", "team.yaml", "--offline"]).exits(6);
    assert!(left.out.ends_with(&format!("`polylogue show {}`\n", home.id())), "{}", left.out);
    let before = home.events();
    let refused = home.run(&["resume", "last", "Continue."]).exits(6);
    assert!(refused.err.contains("neither a higher limit nor a message continues it"), "{}", refused.err);
    assert_eq!(home.events(), before);
}

#[test]
fn turns_in_parallel_take_no_more_than_the_option_allows() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: four\ntask: Talk\nagents: [{name: A}, {name: B}, {name: C}, {name: D}]\n\
         chat: {participants: [A, B, C, D], pattern: parallel}\nscript: [{A: a}, {B: b}, {C: c}, {D: d}]\n",
    );
    let ran = home.run(&["run", "team.yaml", "--offline", "--max-turns", "2"]).exits(3);
    assert_eq!(turns(&home), 0);
    let why = "limit: 2 turns (the next step has 4 parallel turns, all or none)";
    assert!(ran.out.contains(why), "{}", ran.out);
    let command = format!("polylogue resume {} --max-turns 4", home.id());
    assert!(ran.out.contains(&format!("`{command}`")), "{}", ran.out);
    let few = home.run(&["resume", "last", "--max-turns", "3"]).exits(3);
    assert!(few.err.contains("would end again at once: the limit of 3 turns"), "{}", few.err);
    home.shell(&command).ok();
    assert_eq!(turns(&home), 4);
}

/// Three who speak in parallel, in a chat with `chat`.
fn parallel(home: &Home, chat: &str) {
    let words: Vec<String> =
        (1..9).map(|nth| format!("{{A: a{nth}}}, {{B: b{nth}}}, {{C: c{nth}}}")).collect();
    home.file(
        "team.yaml",
        &format!(
            "name: three\ntask: Talk\nagents: [{{name: A}}, {{name: B}}, {{name: C}}]\n\
             chat: {{participants: [A, B, C], pattern: {chat}}}\nscript: [{}]\n",
            words.join(", ")
        ),
    );
}

#[test]
fn a_message_to_which_the_limit_leaves_too_few_parallel_turns_is_not_added() {
    let home = Home::new();
    parallel(&home, "parallel");
    home.run(&["run", "team.yaml", "--offline", "--max-turns", "4"]).ok();
    let (id, before) = (home.id(), home.events());
    // The command is the same whatever was tried, and what was tried is not kept.
    for tried in [&["resume", &id, "more"][..], &["resume", &id, "more", "--max-turns", "2"]] {
        let refused = home.run(tried).exits(3);
        assert!(refused.err.contains("the message was not added: no agent of"), "{}", refused.err);
        let command = format!("; `polylogue resume {id} more --max-turns 3` continues it\n");
        assert!(refused.err.ends_with(&command), "{}", refused.err);
        assert_eq!((home.events(), &*refused.out), (before.clone(), ""), "{tried:?}");
    }
    home.run(&["resume", &id, "more", "--max-turns", "3"]).ok();
    assert_eq!(turns(&home), 6);
}

#[test]
fn the_command_that_continues_does_not_grow_with_what_was_tried() {
    let home = Home::new();
    parallel(&home, "parallel, max_turns: 9, stop: {says: {text: never, by: A}}");
    let ended = home.run(&["run", "team.yaml", "--offline", "--max-turns", "2"]).exits(3);
    let (id, before) = (home.id(), home.events());
    let command = format!("`polylogue resume {id} --max-turns 3`");
    assert!(ended.out.ends_with(&format!("{command}\n")), "{}", ended.out);
    for tried in ["1", "2", "2"] {
        let refused = home.run(&["resume", &id, "--max-turns", tried]).exits(3);
        assert!(refused.err.ends_with(&format!("; {command} continues it\n")), "{tried}: {}", refused.err);
        assert_eq!(home.events(), before, "{tried}");
    }
}

#[test]
fn a_message_after_the_end_of_a_chat_that_used_all_turns_names_the_limit_that_adds_it() {
    let home = Home::new();
    parallel(&home, "parallel");
    home.run(&["run", "team.yaml", "--offline", "--max-turns", "3"]).ok();
    let (id, before) = (home.id(), home.events());
    let refused = home.run(&["resume", &id, "And then?"]).exits(3);
    let command = format!("polylogue resume {id} 'And then?' --max-turns 3");
    assert!(
        refused.err.ends_with(&format!("the limit of 3 turns; `{command}` continues it\n")),
        "{}",
        refused.err
    );
    assert_eq!(home.events(), before);
    home.shell(&command).ok();
    assert_eq!(turns(&home), 6);
}

#[test]
fn the_command_that_continues_allows_all_turns_of_a_parallel_step_after_a_single_one() {
    let home = Home::new();
    parallel(&home, "{graph: {start: A, edges: {A: [B, C]}}}");
    let ended = home.run(&["run", "team.yaml", "--offline", "--max-turns", "1"]).exits(3);
    let command = format!("polylogue resume {} --max-turns 2", home.id());
    assert!(ended.out.ends_with(&format!("`{command}`\n")), "{}", ended.out);
    home.shell(&command).ok();
    assert_eq!(turns(&home), 3);
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

#[test]
fn a_limit_of_an_agent_or_of_a_chat_is_named_and_raised_by_resume() {
    let prices = "prices: {\"openai:test\": {input: 1000, output: 1000}}";
    for (of, agent, chat) in
        [("the agent `Ann`", ", limits: {calls: 2}", ""), ("the chat `pair`", "", ", limits: {calls: 3}")]
    {
        let server = serve(talker());
        let home = Home::at(&server);
        home.file(
            "team.yaml",
            &format!(
                "name: pair\ntask: Talk\n{prices}\nagents: [{{name: Ann{agent}}}, {{name: Bob}}]\n\
                 chat: {{participants: [Ann, Bob], stop: {{max_turns: 12}}{chat}}}\n"
            ),
        );
        let ended = home.run(&RUN).exits(3);
        let (limit, calls) = if agent.is_empty() { (3, 3) } else { (2, 4) };
        assert_eq!(server.count(), calls, "{of}");
        assert!(
            ended.out.contains(&format!("{of} has reached the limit of {limit} model calls")),
            "{}",
            ended.out
        );
        let command = format!("`polylogue resume {} --max-calls {limit}`", home.id());
        assert!(ended.out.contains(&command), "{}", ended.out);
        let bare = home.run(&["resume", "last"]).exits(3);
        assert!(bare.err.contains(&format!("{command} continues it")), "{}", bare.err);
        assert_eq!(server.count(), calls, "{of}: nothing is done");
        // Twice: Ann's third call is followed by one of Bob.
        for _ in 0..2 {
            home.run(&["resume", "last", "--max-calls", "2"]).exits(3);
        }
        assert_eq!(server.count(), calls + 4, "{of}");
        home.run(&["resume", "last", "--max-calls", "100"]).ok();
        assert_eq!(server.count(), 12, "{of}");
        let shown = home.run(&["show", "last"]).ok();
        assert!(
            shown.out.contains(&format!("{of} has reached the limit of {limit} model calls")),
            "{}",
            shown.out
        );
    }
}
