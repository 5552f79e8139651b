//! Runs that are stopped from outside, and resumed.

use std::time::Duration;

use polylogue_test::server::{Answer, Playbook, Quirk, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::home::{Home, Ran, Running, of_type, serve, timeless, until};
use crate::models::{CALLS, SAID, TALK, said, talk};

/// A home, and a model that takes its time.
fn slow(latency: Duration) -> (Home, Server) {
    let server = serve(talk().latency(latency));
    let home = Home::at(&server).with_team(TALK);
    (home, server)
}

const RUN: [&str; 4] = ["run", "team.yaml", "--model", "openai:test"];

/// A reply that is under way for long enough that a signal falls into it.
const WHILE: Duration = Duration::from_millis(400);
/// A reply that no one waits for.
const FOREVER: Duration = Duration::from_secs(600);

/// Resumes the run where its model is quick, and checks its outcome.
fn resumes(home: &mut Home, asked_before: usize) {
    let quick = serve(talk());
    home.set("OPENAI_BASE_URL", &quick.base_url());
    let ran = home.run(&["resume", "last"]).ok();
    assert!(ran.out.contains("\ndone: Bob said `GOODBYE` · 4 turns · "), "{}", ran.out);
    assert_eq!(quick.count(), CALLS - asked_before, "nothing finished was asked again");
    assert_eq!(said(&home.events()), SAID);
}

fn asked(server: &Server, times: usize) {
    until("the model is asked", || server.count() >= times);
}

#[test]
fn one_ctrl_c_finishes_the_step_and_saves() {
    let (mut home, server) = slow(WHILE);
    let running = home.start(&RUN);
    asked(&server, 2);
    running.signal(Signal::INT);
    let ran = running.end().exits(6);
    assert!(ran.err.ends_with("\nfinishing this step; Ctrl-C again stops now\n"), "{}", ran.err);
    assert!(ran.out.contains("\nstopped: it can be resumed · 2 turns · "), "{}", ran.out);
    // Bob's turn has three calls of tools and models, and ends.
    assert_eq!(said(&home.events()), SAID[..3]);
    assert_eq!(home.listed()[0]["status"], "interrupted");
    resumes(&mut home, 3);
}

#[test]
fn two_interrupts_stop_at_once() {
    let (mut home, server) = slow(FOREVER);
    let running = home.start(&RUN);
    asked(&server, 1);
    let ran = interrupted(running);
    assert!(ran.out.contains("\nstopped: it can be resumed · 0 turns · "), "{}", ran.out);
    resumes(&mut home, 0);
}

/// Interrupts repeatedly: signals that come at once are one.
fn interrupted(mut running: Running) -> Ran {
    until("it ends", || {
        let over = running.is_over();
        if !over {
            running.signal(Signal::INT);
        }
        over
    });
    running.end().exits(6)
}

#[test]
fn sigterm_stops_now() {
    let (mut home, server) = slow(FOREVER);
    let running = home.start(&RUN);
    asked(&server, 1);
    running.signal(Signal::TERM);
    let ran = running.end().exits(6);
    assert!(ran.out.contains("\nstopped: it can be resumed · 0 turns · "), "{}", ran.out);
    assert_eq!(of_type(&home.events(), "failed").len(), 0, "an order is not a failure");
    resumes(&mut home, 0);
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly_with_its_step() {
    for json in ["", "--json"] {
        let (mut home, server) = slow(Duration::ZERO);
        let ran = home.shell(&format!("polylogue run team.yaml -m openai:test {json} 2>errors | head -1"));
        assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
        let errors = std::fs::read_to_string(home.path("errors")).unwrap();
        let bound = "talk: at most 100 turns a chat and 1000 model calls; no bound on tokens and cost: ";
        let lines: Vec<&str> = errors.lines().collect();
        match lines.as_slice() {
            [line] if json.is_empty() => assert!(line.starts_with(bound), "{errors}"),
            other => assert!(other.is_empty() && !json.is_empty(), "{errors}"),
        }
        let before = home.events();
        let finished = of_type(&before, "model_replied").len();
        assert_eq!(finished, server.count());
        resumes(&mut home, finished);
        assert_eq!(timeless(&home.events())[..before.len()], timeless(&before));
    }
    let home = Home::new();
    let ran = home.shell("polylogue schema | head -1; polylogue --help | head -1");
    assert_eq!((ran.out.lines().count(), ran.err.as_str()), (2, ""));
}

#[test]
fn an_output_that_cannot_be_written_is_reported() {
    let (mut home, server) = slow(Duration::ZERO);
    let ran = home.shell("polylogue run team.yaml -m openai:test >/dev/full; echo \"exit $?\"");
    assert_eq!(ran.out, "exit 1\n");
    assert!(
        ran.err.ends_with(
            "error (system): the output cannot be written: No space left on device (os error 28)\n"
        ),
        "{}",
        ran.err
    );
    resumes(&mut home, server.count());
}

#[test]
fn only_one_process_runs_a_conversation_and_none_removes_it_meanwhile() {
    for store in ["store.db", "talks/"] {
        let server = serve(talk().latency(FOREVER));
        let mut home = Home::at(&server).var("POLYLOGUE_STORE", store).with_team(TALK);
        let running = home.start(&RUN);
        asked(&server, 1);
        for args in [&["resume", "last"][..], &["rm", "last"]] {
            let ran = home.run(args).exits(1);
            let busy = format!("error (config): the conversation `{}` is being run by ", home.id());
            assert!(ran.err.contains(&busy), "{args:?}: {}", ran.err);
            let hint = format!(
                "\n  hint: wait until that process is done, or stop it; of one that hangs or died, `polylogue resume {} --take-over` takes the \
                 conversation once its lease has run out\n",
                home.id()
            );
            assert!(ran.err.ends_with(&hint), "{}", ran.err);
        }
        assert!(home.run(&["show", "last"]).ok().out.contains("Talk about the weather."), "reading is free");
        running.signal(Signal::TERM);
        running.end().exits(6);
        resumes(&mut home, 0);
        home.run(&["rm", "last"]).ok();
        assert!(home.listed().is_empty());
    }
}

#[test]
fn a_killed_process_blocks_no_other() {
    let (mut home, server) = slow(FOREVER);
    let running = home.start(&RUN);
    asked(&server, 1);
    running.signal(Signal::KILL);
    running.end().exits(-1);
    resumes(&mut home, 0);
}

#[test]
fn an_order_to_stop_while_a_failed_call_waits_to_be_tried_again_counts_at_once() {
    let busy = Playbook::always(Answer::status(429).retry_after_secs(50));
    let server = serve(busy);
    let mut home = Home::at(&server).with_team(TALK);
    let running = home.start(&RUN);
    asked(&server, 1);
    running.signal(Signal::TERM);
    running.end().exits(6);
    resumes(&mut home, 0);
}

/// A model selects who speaks, and a participant calls a tool before it speaks.
const TRIO: &str = "
name: trio
task: Talk.
agents:
  - {name: Ann, description: The first, tools: [get_history]}
  - {name: Bob, description: The second}
  - {name: Cid, description: The third}
chat:
  participants: [Ann, Bob, Cid]
  pattern: {group: {select: {model: {system: Select.}}}}
  introductions: true
  loop_detection: off
  stop: {max_turns: 6}
";

/// Speaks for all of them, as follows from the request. One of the replies takes a while.
fn speaker(slow: Option<usize>) -> Playbook {
    Playbook::new(move |received, number| {
        let messages = received.body.get("messages").map(ToString::to_string).unwrap_or_default();
        let (length, turns) = (messages.len(), messages.matches("I speak").count());
        let has_looked = received.messages().last().is_some_and(|last| last["role"] == "tool");
        let answer = if received.system().as_deref() == Some("Select.") {
            Answer::text(["Ann", "Bob", "Cid"].into_iter().cycle().nth(turns).unwrap_or_default())
        } else if received.tools().is_empty() || has_looked {
            Answer::text(format!("I speak after {length} bytes."))
        } else {
            Answer::tool("get_history", json!({"limit": 2}))
        };
        if slow == Some(number) { answer.with(Quirk::PauseBeforeFirst(WHILE)) } else { answer }
    })
}

/// The requests of a run that is stopped while it waits for one of the replies, and resumed by another process.
fn requests(stopped_at: Option<usize>) -> Vec<Value> {
    let server = serve(speaker(stopped_at));
    let home = Home::at(&server).with_team(TRIO);
    let running = home.start(&RUN);
    if let Some(number) = stopped_at {
        asked(&server, number + 1);
        running.signal(Signal::INT);
        running.end().exits(6);
        home.run(&["resume", "last"]).ok();
    } else {
        running.end().ok();
    }
    assert_eq!(server.violations(), [""; 0]);
    server.requests().iter().map(|request| request.body.clone()).collect()
}

#[test]
fn a_group_sends_the_same_when_it_is_stopped_and_resumed_by_another_process() {
    let whole = requests(None);
    let has = |role: &str| whole.iter().any(|request| request["messages"].to_string().contains(role));
    assert!(has("\"role\":\"tool\"") && has("Select."), "{whole:#?}");
    // The last turn ends the chat.
    for number in (0..whole.len() - 2).step_by(3) {
        assert_eq!(requests(Some(number)), whole, "stopped at request {number}");
    }
}
