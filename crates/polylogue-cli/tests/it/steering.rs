//! Conversations that are steered while they run: by key, and from another process.

use std::process::Command;
use std::time::Duration;

use polylogue_test::server::{Answer, Playbook, Quirk, Server};
use serde_json::{Value, json};

use crate::home::{Home, of_type, serve, until};
use crate::terminal::Terminal;

/// A server whose model takes about a second to write its reply.
fn slow() -> Server {
    let words: String = (0..100).map(|n| format!("word{n} ")).collect();
    serve(Playbook::always(Answer::text(words).with(Quirk::Pace(Duration::from_millis(10)))))
}

/// A server whose model takes half a minute to write its first reply, and no time for the others.
fn stuck() -> Server {
    let words: String = (0..3_000).map(|n| format!("word{n} ")).collect();
    serve(Playbook::new(move |_, earlier| match earlier {
        0 => Answer::text(words.as_str()).with(Quirk::Pace(Duration::from_millis(10))),
        _ => Answer::text("Done."),
    }))
}

const PAIR: &str = "name: pair\ntask: Go.\nagents: [{name: A, system: a}, {name: B, system: b}]\n\
                    chat: {participants: [A, B], pattern: round_robin, loop_detection: off, stop: {max_turns: 3}}\n";

const RUN: [&str; 4] = ["run", "team.yaml", "-m", "openai:test"];

fn home(server: &Server) -> Home {
    Home::at(server).with_team(PAIR)
}

#[test]
fn another_process_pauses_a_running_conversation_speaks_to_it_and_continues_it() {
    let server = slow();
    let home = home(&server);
    let run = home.start(&RUN);
    until("a model is asked", || server.count() > 0);
    assert!(home.run(&["pause", "last"]).ok().err.contains("paused; `polylogue resume "));
    until("the turn is over", || of_type(&home.events(), "message").len() == 1);
    assert_eq!(home.listed()[0]["status"], "paused");
    home.run(&["send", "last", "shorter, please"]).ok();
    home.run(&["send", "last", "time is short", "--system"]).ok();
    home.run(&["next", "last", "A"]).ok();
    home.run(&["raise", "last", "--max-calls", "2000"]).ok();
    let lower = home.run(&["raise", "last", "--max-calls", "2"]).exits(2);
    assert!(
        lower.err.contains("it would lower the limit of 2001 model calls to 3 model calls"),
        "{}",
        lower.err
    );
    let first = home.run(&["raise", "last", "--max-tokens", "5000"]).exits(2);
    assert!(first.err.contains("the run has no limit on tokens that could be raised"), "{}", first.err);
    let unknown = home.run(&["next", "last", "Zoe"]).exits(2);
    assert!(unknown.err.contains("there is no participant `Zoe`"), "{}", unknown.err);
    assert_eq!(server.count(), 1, "nothing is asked during the pause");
    for given in [["--max-calls", "1"], ["--model", "openai:other"], ["--allow", "network"]] {
        let refused = home.run(&[&["resume", "last"], &given[..]].concat()).exits(2);
        assert!(refused.err.contains("open in another process"), "{}", refused.err);
        assert!(refused.err.contains("`polylogue raise "), "{}", refused.err);
    }
    assert_eq!(server.count(), 1, "nothing is asked during the pause");
    assert!(home.run(&["resume", "last"]).ok().err.contains("the process that runs it continues"));
    let ran = run.end().ok();
    assert!(ran.out.contains("A was chosen to speak next"), "{}", ran.out);
    let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let why =
        "the maximum computed before the run no longer applies: the conversation continued with a message";
    assert_eq!(said.matches(why).count(), 1, "{}", ran.err);
    let events = home.events();
    let count = |kind| of_type(&events, kind).len();
    assert_eq!(["paused", "resumed", "sent", "next_speaker", "limits_changed"].map(count), [1, 1, 2, 1, 1]);
    let mut numbers: Vec<u64> = events.iter().filter_map(|event| event["inbox"].as_u64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=8).collect::<Vec<u64>>(), "each instruction is in the log once");
    let speakers: Vec<&Value> = of_type(&events, "message").iter().map(|event| &event["from"]).collect();
    assert_eq!(speakers, ["A", "A", "B"]);
}

#[test]
fn another_process_cancels_a_reply_at_once_whose_beginning_is_kept() {
    let server = stuck();
    let home = home(&server);
    let run = Terminal::open(&home, (100, 40), &RUN);
    run.wait_for("word9 ");
    home.run(&["cancel", "last", "--now"]).ok();
    let (code, seen) = run.end();
    assert_eq!(code, 6, "{seen}");
    let events = home.events();
    let cut = of_type(&events, "reply_interrupted");
    assert_eq!(cut.len(), 1, "{events:?}");
    assert!(cut[0]["text"].as_str().unwrap().starts_with("word0 "));
    assert_eq!(of_type(&events, "charged").len(), 1, "{events:?}");
    assert_eq!(of_type(&events, "cancelled")[0]["now"], true);
    let nothing = home.run(&["cancel", "last"]).exits(2);
    assert!(nothing.err.contains("so there is nothing to cancel"), "{}", nothing.err);
    home.run(&["resume", "last"]).ok();
    assert_eq!(of_type(&home.events(), "message").len(), 3);
}

/// Two who would talk for eight turns, by a script.
fn talk(limits: &str) -> String {
    format!(
        "name: talk\ntask: Go.\nagents: [{{name: A}}, {{name: B}}]\n{limits}\
         chat: {{participants: [A, B], pattern: round_robin, loop_detection: off, stop: {{max_turns: 8}}}}\n\
         script: [{{A: a1}}, {{B: b1}}, {{A: a2}}, {{B: b2}}, {{A: a3}}, {{B: b3}}, {{A: a4}}, {{B: b4}}]\n"
    )
}

#[test]
fn a_raise_of_a_conversation_that_no_process_runs_is_judged_by_its_own_limits() {
    for (limits, options, raised) in [
        ("", &["--max-turns", "2", "--max-calls", "5000"][..], "--max-turns"),
        ("limits: {calls: 2}\n", &[], "--max-calls"),
    ] {
        let home = Home::new().with_team(&talk(limits));
        home.run(&[&["run", "team.yaml"], options].concat()).exits(3);
        if limits.is_empty() {
            let lower = home.run(&["raise", "last", "--max-calls", "1500"]).exits(2);
            let why = "it would lower the limit of 5000 model calls to 1502 model calls";
            assert!(lower.err.contains(why), "{}", lower.err);
        }
        home.run(&["raise", "last", raised, "1"]).ok();
        home.run(&["resume", "last"]).exits(3);
        assert_eq!(of_type(&home.events(), "message").len(), 3, "{raised}");
    }
}

#[test]
fn a_raise_also_counts_for_the_turns_after_which_the_chat_itself_ends() {
    let server = slow();
    let home = home(&server);
    let run = home.start(&RUN);
    until("a model is asked", || server.count() > 0);
    home.run(&["pause", "last"]).ok();
    until("the turn is over", || of_type(&home.events(), "message").len() == 1);
    let lower = home.run(&["raise", "last", "--max-turns", "1"]).exits(2);
    assert!(lower.err.contains("it would lower the limit of 3 turns to 2 turns"), "{}", lower.err);
    home.run(&["raise", "last", "--max-turns", "3"]).ok();
    home.run(&["resume", "last"]).ok();
    run.end().ok();
    assert_eq!(of_type(&home.events(), "message").len(), 4);
    // Also when it has ended; then there is nothing to pause.
    let ended = home.run(&["pause", "last"]).exits(2);
    assert!(ended.err.contains("nothing to pause"), "{}", ended.err);
    assert!(ended.err.contains("a message continues it: `polylogue send "), "{}", ended.err);
    home.run(&["raise", "last", "--max-turns", "2"]).ok();
    home.run(&["resume", "last"]).ok();
    assert_eq!(of_type(&home.events(), "message").len(), 6);
}

#[test]
fn the_limits_of_one_agent_are_raised_while_it_runs() {
    let server = slow();
    let home = Home::at(&server).with_team(&PAIR.replace("system: a}", "system: a, limits: {calls: 1}}"));
    let run = home.start(&RUN);
    until("a model is asked", || server.count() > 0);
    home.run(&["pause", "last"]).ok();
    until("the turn is over", || of_type(&home.events(), "message").len() == 1);
    for (options, why) in [
        (["B", "--max-calls"], "agents with limits: `A`"),
        (["A", "--max-tokens"], "the agent `A` has no limit on tokens that could be raised"),
        (["A", "--max-turns"], "cannot be used with"),
    ] {
        let refused = home.run(&[&["raise", "last", "--agent"], &options[..], &["9"]].concat()).exits(2);
        assert!(refused.err.contains(why), "{}", refused.err);
    }
    home.run(&["raise", "last", "--agent", "A", "--max-calls", "1"]).ok();
    home.run(&["resume", "last"]).ok();
    let ran = run.end().ok();
    assert!(ran.out.contains("limits of the agent `A` were raised"), "{}", ran.out);
    assert_eq!(of_type(&home.events(), "message").len(), 3);
    assert_eq!(of_type(&home.events(), "own_limits_raised").len(), 1);
}

#[test]
fn the_limits_of_one_agent_are_raised_where_no_process_runs_the_conversation() {
    let home = Home::new().with_team(&talk("").replace("{name: A}", "{name: A, limits: {calls: 1}}"));
    home.run(&["run", "team.yaml"]).exits(3);
    let lower = home.run(&["raise", "last", "--agent", "B", "--max-calls", "2"]).exits(2);
    assert!(lower.err.contains("`B` has no limits of its own"), "{}", lower.err);
    home.run(&["raise", "last", "--agent", "A", "--max-calls", "2"]).ok();
    let ended = home.run(&["resume", "last"]).exits(3);
    assert!(ended.out.contains("the agent `A` has reached the limit of 3 model calls"), "{}", ended.out);
    assert_eq!(of_type(&home.events(), "message").len(), 6);
}

const DESK: &str = "name: office\ntask: Count.\nlimits: {on_limit: ask}\n\
    agents: [{name: A}, {name: B}, {name: Editor}]\n\
    chat: {pattern: sequential, participants: [desk, Editor]}\n\
    chats: [{name: desk, participants: [A, B], limits: {calls: 1}, stop: {max_turns: 4}}]\n\
    script: [{A: one}, {B: two}, {A: three}, {B: four}, {Editor: Good.}]\n";

#[test]
fn the_limits_of_a_nested_chat_are_raised_where_no_process_runs_the_conversation() {
    let home = Home::new().with_team(DESK);
    home.run(&["run", "team.yaml"]).exits(5);
    for (options, why) in [
        (["office", "--max-calls"], "open are: `desk`"),
        (["desk", "--max-tokens"], "the chat `desk` has no limit on tokens that could be raised"),
        (["desk", "--max-turns"], "cannot be used with"),
    ] {
        let refused = home.run(&[&["raise", "last", "--chat"], &options[..], &["9"]].concat()).exits(2);
        assert!(refused.err.contains(why), "{}", refused.err);
    }
    home.run(&["raise", "last", "--chat", "desk", "--max-calls", "3"]).ok();
    assert!(home.run(&["waiting"]).ok().err.contains("no question waits"));
    let ended = home.run(&["resume", "last"]).ok();
    assert!(ended.out.contains("Good."), "{}", ended.out);
    assert_eq!(of_type(&home.events(), "own_limits_raised").len(), 1);
}

#[test]
fn a_raise_answers_a_question_about_the_limit_that_it_raises_and_no_other() {
    let home = Home::new().with_team(&talk(""));
    home.run(&["run", "team.yaml", "--max-turns", "2", "--on-limit", "ask"]).exits(5);
    home.run(&["raise", "last", "--max-calls", "2000"]).ok();
    assert!(of_type(&home.events(), "input_provided").is_empty());
    let waiting = home.run(&["waiting"]).ok();
    assert!(waiting.out.contains("The run has reached the limit of 2 turns."), "{}", waiting.out);
    home.run(&["raise", "last", "--max-turns", "2"]).ok();
    assert!(home.run(&["waiting"]).ok().err.contains("no question waits"));
    home.run(&["resume", "last"]).exits(5);
    assert_eq!(of_type(&home.events(), "message").len(), 4);
}

#[test]
fn each_raise_is_shown_with_who_raised_what_from_what_to_what() {
    let home = Home::new().with_team(&talk(""));
    home.run(&["run", "team.yaml", "--max-turns", "2", "--max-time", "60s"]).exits(3);
    home.run(&["raise", "last", "--max-calls", "2000"]).ok();
    home.run(&["raise", "last", "--max-time", "90s"]).ok();
    home.run(&["resume", "last", "--max-turns", "1"]).exits(3);
    let events = home.events();
    let raised = of_type(&events, "limits_changed");
    let by = raised[0]["by"].as_str().map(|by| format!(" by {by}")).unwrap_or_default();
    for style in [&["show", "last"][..], &["show", "last", "--markdown"]] {
        let shown = home.run(style).ok().out.to_lowercase();
        for line in [
            format!("limits were raised{by}: model calls from 1000 to 2002").to_lowercase(),
            format!("limits were raised{by}: running time from 1 min to 90").to_lowercase(),
            "limits were raised: turns from 2 to 3".to_owned(),
        ] {
            assert!(shown.contains(&line), "`{line}` is not in {style:?}:\n{shown}");
        }
    }
}

const OFFICE: &str = "name: office\ntask: Decide.\n\
    agents: [{name: Kim, human: true}, {name: Bot, system: You are Bot.}]\n\
    chat: {pattern: sequential, participants: [meeting], summary: last}\n\
    chats: [{name: meeting, participants: [Bot, Kim], stop: {max_turns: 4, says: {text: agreed, by: Kim}}}]\n\
    script: [{Bot: Shall we?}, {Bot: Then not.}]\n";

#[test]
fn questions_within_chats_are_listed_and_answered_while_a_terminal_shows_them() {
    let home = Home::new().with_team(OFFICE);
    let terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml"]);
    terminal.wait_for("\nKim>");
    let waiting = home.run(&["waiting", "--json"]).ok().lines();
    assert_eq!(waiting.len(), 1);
    assert_eq!((&waiting[0]["who"], &waiting[0]["conversation"]), (&json!("Kim"), &json!(home.id())));
    assert!(waiting[0]["chat"].as_str().unwrap().contains("meeting"), "{waiting:?}");
    let number = waiting[0]["question"].to_string();
    let wrong = home.run(&["answer", "last", "99", "agreed"]).exits(2);
    assert!(wrong.err.contains("has no open question 99"), "{}", wrong.err);
    home.run(&["answer", "last", &number, "agreed", "--by", "Lee"]).ok();
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let events = home.events();
    let answers = of_type(&events, "input_provided");
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["by"], json!({"person": "Lee"}));
    assert!(home.run(&["waiting"]).ok().err.contains("no question waits"));
    home.run(&["answer", "last", &number, "no"]).exits(2);
}

#[test]
fn the_log_names_the_user_of_the_machine_who_answers() {
    let id = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(id.stdout).unwrap();
    for answer in [&["resume", "last", "--answer", "agreed"][..], &["answer", "last", "agreed"]] {
        let home = Home::new().with_team(OFFICE);
        home.run(&["run", "team.yaml"]).exits(5);
        home.run(answer).ok();
        let events = home.events();
        let answers = of_type(&events, "input_provided");
        let by: Vec<&Value> = answers.iter().map(|answer| &answer["by"]).collect();
        // In some containers the user has no name.
        let expected = if user.trim().is_empty() { Value::Null } else { json!({"person": user.trim()}) };
        assert_eq!(by, [&expected], "{answer:?}");
    }
}

#[test]
fn a_question_without_an_answer_in_time_gets_the_default_one_though_no_process_runs_it() {
    let home = Home::new().with_team(
        &OFFICE.replace("human: true", "human: true, default_answer: {timeout: 1 ms, text: agreed}"),
    );
    home.run(&["run", "team.yaml"]).exits(5);
    until("the time is up", || home.run(&["waiting"]).ok().err.contains("no question waits"));
    let ran = home.run(&["resume", "last"]).ok();
    assert!(ran.out.contains("agreed"), "{}", ran.out);
    let events = home.events();
    assert_eq!(of_type(&events, "input_provided")[0]["by"], "timeout");
    assert!(home.run(&["show", "last"]).ok().out.contains("no answer for Kim in time: the default counts"));
}

#[test]
fn a_key_asks_what_to_do_while_the_run_continues() {
    let server = slow();
    let home = home(&server);
    let mut terminal = Terminal::open(&home, (100, 80), &RUN);
    terminal.wait_for("word9 ");
    terminal.press("\u{1c}");
    terminal.wait_for("steer>");
    assert!(terminal.sees().contains("\n(the reply continues below)\n"), "{}", terminal.sees());
    terminal.press("/oops\r");
    terminal.wait_for("there is no command `/oops`");
    terminal.press("\u{1c}");
    terminal.press_at("a message to the chat", "shorter, please\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let events = home.events();
    assert_eq!(of_type(&events, "sent")[0]["parts"][0]["text"], "shorter, please");
    assert_eq!(of_type(&events, "message").len(), 3, "nothing is lost");
    for word in ["word0 ", "word99"] {
        assert_eq!(seen.matches(word).count(), 3, "each reply is shown once: {seen}");
    }
}

#[test]
fn a_key_stops_a_reply_at_once_and_what_was_shown_of_it_stays() {
    let server = stuck();
    let home = home(&server);
    let mut terminal = Terminal::open(&home, (100, 40), &RUN);
    terminal.wait_for("word9 ");
    terminal.press("\u{1c}");
    terminal.wait_for("steer>");
    terminal.press("/cancel --now\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 6, "{seen}");
    assert!(seen.contains("\n(broken off here") && !seen.contains("was cut off"), "{seen}");
    let events = home.events();
    assert_eq!(of_type(&events, "cancelled").len(), 1, "{events:?}");
    let cut = of_type(&events, "reply_interrupted");
    assert!(cut[0]["text"].as_str().unwrap().starts_with("word0 word1 "), "{events:?}");
    home.run(&["resume", "last"]).ok();
    assert_eq!(of_type(&home.events(), "message").len(), 3, "nothing is lost");
}

/// How a person steers.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// By key, in the terminal that runs the conversation.
    Key,
    /// By a command of another process.
    Command,
}

impl Way {
    const ALL: [Self; 2] = [Self::Key, Self::Command];

    fn type_in(terminal: &mut Terminal, text: &str) {
        terminal.press("\u{1c}");
        terminal.wait_for("steer>");
        terminal.press(&format!("{text}\r"));
    }

    fn say(self, terminal: &mut Terminal, home: &Home, text: &str) {
        match self {
            Self::Key => Self::type_in(terminal, text),
            Self::Command => drop(home.run(&["send", "last", text]).ok()),
        }
    }

    fn stop_now(self, terminal: &mut Terminal, home: &Home) {
        match self {
            Self::Key => Self::type_in(terminal, "/cancel --now"),
            Self::Command => drop(home.run(&["cancel", "last", "--now"]).ok()),
        }
    }
}

/// A model that calls a tool first, which runs until there is a file `go`.
fn working() -> (Server, Home) {
    let server = serve(Playbook::new(|received, earlier| match earlier {
        0 => Answer::text("I wait.").call("wait", json!({})),
        _ if received.messages().last().is_some_and(|last| last["role"] == "tool") => {
            Answer::text("It is over.")
        }
        _ => Answer::text("Fine."),
    }));
    let home = Home::at(&server);
    home.allow_programs();
    let go = home.path("go");
    let go = go.display();
    home.file(
        "team.yaml",
        &format!(
            "name: tools\ntask: Go.\nsandbox: {{backend: none}}\n\
             agents: [{{name: A, system: a, tools: [wait], approval: never}}, {{name: B, system: b}}]\n\
             commands: [{{name: wait, description: Waits., command: [sh, -c, 'until [ -e {go} ]; do sleep 0.05; done; echo over', wait]}}]\n\
             chat: {{participants: [A, B], pattern: round_robin, stop: {{max_turns: 2}}}}\n"
        ),
    );
    (server, home)
}

const WORK: [&str; 6] = ["run", "team.yaml", "-m", "openai:test", "--allow", "unsafe-host"];

#[test]
fn a_message_during_a_tool_call_is_posted_after_the_turn_whose_result_is_kept() {
    for way in Way::ALL {
        let (server, home) = working();
        let mut terminal = Terminal::open(&home, (100, 40), &WORK);
        until("the tool runs", || server.count() == 1 && of_type(&home.events(), "tool_called").len() == 1);
        way.say(&mut terminal, &home, "shorter, please");
        std::fs::write(home.path("go"), "").unwrap();
        let (code, seen) = terminal.end();
        assert_eq!(code, 0, "{way:?}: {seen}");
        let events = home.events();
        let place = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap();
        assert!(place("tool_returned") < place("sent"), "{way:?}: it is posted after the turn: {events:?}");
        assert_eq!(of_type(&events, "sent")[0]["parts"][0]["text"], "shorter, please");
        assert_eq!((of_type(&events, "tool_returned").len(), of_type(&events, "message").len()), (1, 2));
    }
}

#[test]
fn a_message_of_another_process_in_the_last_turn_is_answered_before_the_run_ends() {
    let (server, home) = working();
    let team = std::fs::read_to_string(home.path("team.yaml")).unwrap();
    home.file("team.yaml", &team.replace("max_turns: 2", "max_turns: 1"));
    let run = home.start(&WORK);
    until("the tool runs", || server.count() == 1 && of_type(&home.events(), "tool_called").len() == 1);
    home.run(&["send", "last", "shorter, please"]).ok();
    std::fs::write(home.path("go"), "").unwrap();
    run.end().ok();
    let events = home.events();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let of_chat = ["message", "sent", "closed", "reopened"];
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| of_chat.contains(kind)).collect();
    assert_eq!(kinds, ["message", "sent", "closed", "reopened", "message", "closed"]);
    assert!(server.requests().pop().unwrap().body.to_string().contains("shorter, please"));
}

#[test]
fn a_tool_call_is_stopped_at_once_and_the_conversation_continues() {
    for way in Way::ALL {
        let (server, home) = working();
        let mut terminal = Terminal::open(&home, (100, 40), &WORK);
        until("the tool runs", || server.count() == 1 && of_type(&home.events(), "tool_called").len() == 1);
        way.stop_now(&mut terminal, &home);
        let (code, seen) = terminal.end();
        assert_eq!(code, 6, "{way:?}: {seen}");
        assert_eq!(of_type(&home.events(), "cancelled").len(), 1, "{way:?}");
        assert_eq!(of_type(&home.events(), "tool_returned").len(), 0, "{way:?}");
        home.run(&["resume", "last", "--allow", "unsafe-host"]).ok();
        let events = home.events();
        // It is not repeated: whether it was done is unknown, and the agent receives that.
        assert_eq!(of_type(&events, "tool_returned")[0]["result"]["status"], "unknown", "{way:?}");
        assert_eq!((of_type(&events, "tool_called").len(), of_type(&events, "message").len()), (1, 2));
    }
}

#[test]
fn a_key_during_a_question_steers_and_loses_neither_the_question_nor_its_answer() {
    let home = Home::new().with_team(OFFICE);
    let mut terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml"]);
    terminal.wait_for("\nKim>");
    terminal.press("\u{1c}");
    terminal.wait_for("steer>");
    terminal.press("hurry\r");
    until("the message is posted", || of_type(&home.events(), "sent").len() == 1);
    // From another process, too, while the question stands there again.
    home.run(&["send", "last", "shorter, please"]).ok();
    until("both are posted", || of_type(&home.events(), "sent").len() == 2);
    terminal.press_at("steer>", "agr");
    terminal.wait_for("> agr");
    // In an answer that has begun, the key does nothing.
    terminal.press("\u{1c}eed\r");
    // The meeting was the last turn, and is held again for what was said meanwhile.
    terminal.press_at("Then not.", "agreed\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let events = home.events();
    assert_eq!(of_type(&events, "input_required").len(), 2);
    let answers = of_type(&events, "input_provided");
    let answers: Vec<&Value> = answers.iter().map(|answer| &answer["text"]).collect();
    assert_eq!(answers, ["agreed", "agreed"], "{seen}");
    let said: Vec<&Value> = of_type(&events, "sent").iter().map(|event| &event["parts"][0]["text"]).collect();
    assert_eq!(said, ["hurry", "shorter, please"]);
}

#[test]
fn a_run_that_is_stopped_during_a_question_asks_it_again_when_it_is_resumed() {
    for way in Way::ALL {
        let home = Home::new().with_team(OFFICE);
        let mut terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml"]);
        terminal.wait_for("\nKim>");
        way.stop_now(&mut terminal, &home);
        let (code, seen) = terminal.end();
        assert!(code == 5 || code == 6, "{way:?}: {code}: {seen}");
        assert_eq!(of_type(&home.events(), "input_provided").len(), 0, "{way:?}");
        home.run(&["resume", "last", "--answer", "agreed"]).ok();
        let events = home.events();
        let count = |kind| of_type(&events, kind).len();
        assert_eq!((count("input_required"), count("input_provided")), (1, 1), "{way:?}");
    }
}

/// What a person learns of the run itself stays on the screen, whole.
#[test]
fn at_a_terminal_the_end_of_the_bound_is_a_line_of_its_own() {
    let server = slow();
    let home = home(&server);
    let mut terminal = Terminal::open(&home, (100, 40), &RUN);
    terminal.wait_for("word9 ");
    Way::type_in(&mut terminal, "shorter, please");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let words = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    let why =
        "the maximum computed before the run no longer applies: the conversation continued with a message";
    assert_eq!(words.matches(why).count(), 1, "{seen}");
}
