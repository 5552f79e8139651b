//! Chats with a model or a team: at a terminal, through a pipe, and continued later.

use std::fs;
use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Received, Server};
use serde_json::Value;

use crate::home::{Home, KEY, PROGRAM, assert_whole, of_type, serve, until};
use crate::terminal::Terminal;

/// Replies with the number of the request and the last message.
fn echo() -> Behavior {
    let play = |request: &Received, nth: usize| {
        let messages = request.body["messages"].as_array().unwrap();
        let last = messages.last().unwrap()["content"].as_str().unwrap().to_owned();
        match last.contains("slowly") && nth == 0 {
            true => Answer::text("This takes long.").with(Quirk::PauseBeforeFirst(Duration::from_secs(60))),
            false => Answer::text(format!("Reply {} to: {last}", nth + 1)),
        }
    };
    Behavior::from(Playbook::new(play)).key(KEY)
}

fn home(server: &Server) -> Home {
    Home::at(server).var("POLYLOGUE_MODEL", "openai:test")
}

/// Roles and texts of the last request.
fn sent(server: &Server) -> Vec<(String, String)> {
    let request = server.requests().pop().unwrap();
    let text = |message: &Value, key: &str| message[key].as_str().unwrap().to_owned();
    let messages = request.body["messages"].as_array().unwrap();
    messages.iter().map(|message| (text(message, "role"), text(message, "content"))).collect()
}

fn texts(of: &[(String, String)]) -> Vec<&str> {
    of.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn each_line_of_a_pipe_gets_one_reply_and_the_chat_can_be_continued() {
    let server = serve(echo());
    let home = home(&server);
    let ran = home.run_reading("Hello\n\nAnd then?\n", &["chat", "--system", "Be {{brief}}."]).ok();
    assert_eq!(ran.out, "Reply 1 to: Hello\nReply 2 to: And then?\n");
    assert_eq!(ran.err, "");
    assert_eq!(texts(&sent(&server)), ["Be {{brief}}.", "Hello", "Reply 1 to: Hello", "And then?"]);
    let ran = home.run_reading("More\n", &["chat", "--resume", "last"]).ok();
    assert_eq!(ran.out, "Reply 3 to: More\n");
    assert_eq!(sent(&server).len(), 6);
    assert_eq!(home.listed().len(), 1, "it is one conversation");
    // So does `resume`.
    home.run(&["resume", "last", "Once more"]).ok();
    assert_eq!(sent(&server).last().unwrap().1, "Once more");
}

#[test]
fn json_of_a_chat_has_every_event_once() {
    let server = serve(echo());
    let home = home(&server);
    let first = home.run_reading("One\nTwo\n", &["chat", "--json"]).ok().lines();
    let second = home.run_reading("Three\n", &["chat", "--resume", "last", "--json"]).ok().lines();
    let third = home.run_reading("", &["chat", "--resume", "last", "--json"]).ok().lines();
    assert_eq!(third.len(), 2, "{third:?}");
    assert_whole(&[first, second, third], &home.events());
    let failed = home.run_reading("hi\n", &["chat", "demo:student-teacher", "--offline", "--json"]).exits(1);
    assert_eq!(failed.lines().last().unwrap()["state"], "failed");
    assert_whole(&[failed.lines()], &home.events());
}

#[test]
fn a_chat_at_a_terminal_shows_replies_and_not_again_what_was_typed() {
    let server = serve(echo());
    let home = home(&server);
    let mut terminal = Terminal::open(&home, (80, 40), &["chat"]);
    terminal.wait_for("Chat with openai:test. `/help` lists the commands, Ctrl-D leaves.\n>");
    terminal.press("Hello\r");
    terminal.press_at("Reply 1 to: Hello", "/help\r");
    terminal.press_at("/undo ", "/nonsense\r");
    terminal.press_at("there is no command `/nonsense`", "Again\r");
    terminal.wait_for_question("Reply 2 to: Again");
    assert_eq!(terminal.sees().matches("Again").count(), 2, "{}", terminal.sees());
    // Ctrl-C at the prompt only leaves the line.
    terminal.press("half a line\x03");
    terminal.wait_for("> half a line\n\nCtrl-D leaves the chat.\n>");
    terminal.press("//exit is not a command\r");
    terminal.press_at("Reply 3 to: /exit is not a command", "/save talk.md\r");
    terminal.press_at("saved to talk.md", "\x04");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    let id = home.id();
    assert!(seen.contains(&format!("`polylogue show {id}` / `polylogue chat --resume {id}`")), "{seen}");
    assert!(seen.contains("to your next\n              message\n"), "below its column: {seen}");
    // Each message ends the bound that was computed before, which a person expects.
    assert!(!seen.contains("the maximum computed"), "{seen}");
    let saved = fs::read_to_string(home.path("talk.md")).unwrap();
    assert!(saved.contains("Hello") && saved.contains("Reply 2 to: Again"), "{saved}");

    let mut terminal = Terminal::open(&home, (80, 40), &["chat", "--resume", &id]);
    terminal.wait_for_question("Reply 3 to: /exit is not a command");
    assert!(!terminal.sees().contains("Reply 2"), "the last exchange alone: {}", terminal.sees());
    terminal.press("/save talk.md\r");
    terminal.press_at("`talk.md` exists", "/exit\r");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn lines_that_arrive_together_are_one_message_each() {
    let server = serve(echo());
    let home = home(&server);
    let mut terminal = Terminal::open(&home, (80, 40), &["chat"]);
    terminal.press_at("Ctrl-D leaves.", "One\rTwo\rThr");
    terminal.wait_for("\n> Thr\n");
    terminal.press("ee\r");
    terminal.press_at("Reply 3 to: Three", "\x04");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn undo_takes_back_the_last_exchange_and_keeps_it_in_the_conversation_before() {
    let server = serve(echo());
    let home = home(&server);
    let mut terminal = Terminal::open(&home, (80, 40), &["chat"]);
    terminal.press_at("Ctrl-D leaves.", "One\r");
    terminal.press_at("Reply 1 to: One", "Two\r");
    terminal.press_at("Reply 2 to: Two", "/undo\r");
    terminal.press_at("Undone: the chat continues as", "Three\r");
    terminal.wait_for_question("Reply 3 to: Three");
    assert_eq!(texts(&sent(&server)), ["One", "Reply 1 to: One", "Three"], "{:?}", sent(&server));
    terminal.press("\x04");
    terminal.end();
    assert_eq!(home.listed().len(), 2);
}

/// A chat whose first reply was stopped while it was written.
fn stopped(home: &Home, server: &Server) -> Terminal {
    let mut terminal = Terminal::open(home, (80, 40), &["chat"]);
    terminal.press_at("Ctrl-D leaves.", "Think slowly\r");
    until("the model is asked", || server.count() == 1);
    terminal.press("\x03");
    terminal.wait_for_question("(stopped)");
    terminal
}

#[test]
fn ctrl_c_stops_the_reply_and_not_the_program() {
    let server = serve(echo());
    let home = home(&server);
    let mut terminal = stopped(&home, &server);
    terminal.press("Quick now\r");
    terminal.wait_for_question("Reply 2 to: ");
    // The model receives both messages, and replies once.
    let sent = sent(&server);
    let all = texts(&sent).join("\n");
    assert!(all.contains("Think slowly") && all.ends_with("Quick now"), "{sent:?}");
    terminal.press("\x04");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_text_that_is_given_by_key_during_a_reply_is_the_next_message() {
    let words: String = (0..200).map(|n| format!("word{n} ")).collect();
    let play = move |_: &Received, nth: usize| match nth {
        0 => Answer::text(words.as_str()).with(Quirk::Pace(Duration::from_millis(10))),
        _ => Answer::text(format!("Reply {}", nth + 1)),
    };
    let server = serve(Behavior::from(Playbook::new(play)).key(KEY));
    let home = home(&server);
    let mut terminal = Terminal::open(&home, (100, 60), &["chat"]);
    terminal.press_at("Ctrl-D leaves.", "Hello\r");
    terminal.wait_for("word9 ");
    terminal.press("\u{1c}");
    terminal.wait_for("steer>");
    terminal.press("Shorter, please\r");
    terminal.press_at("Reply 2", "\x04");
    assert_eq!(terminal.end().0, 0);
    let sent = sent(&server);
    let texts = texts(&sent);
    assert_eq!((texts.len(), texts[0], texts[2]), (3, "Hello", "Shorter, please"), "{texts:?}");
    let events = home.events();
    let count = |kind| of_type(&events, kind).len();
    assert_eq!(["message", "reopened", "sent"].map(count), [2, 1, 0], "it is in the log once: {events:?}");
}

#[test]
fn a_chat_that_continues_a_stopped_reply_begins_with_a_whole_greeting() {
    let server = serve(echo());
    let home = home(&server);
    let mut terminal = stopped(&home, &server);
    terminal.press("\x04");
    terminal.end();
    let mut terminal = Terminal::open(&home, (80, 40), &["chat", "--resume", "last"]);
    terminal.wait_for_question("Reply 2 to: Think slowly");
    let greeting = "\nChat with openai:test. `/help` lists the commands, Ctrl-D leaves.\n";
    assert!(terminal.sees().contains(greeting), "{}", terminal.sees());
    terminal.press("\x04");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_chat_that_was_suspended_continues_with_the_line_that_was_begun() {
    let server = serve(echo());
    let home = home(&server);
    // As an interactive shell does, it sets the mode of the terminal that it needs itself.
    let script = format!("set -m; {PROGRAM} chat; stty sane; echo suspended; fg");
    let mut terminal = Terminal::shell(&home, (200, 40), &script);
    terminal.press_at("Ctrl-D leaves.", "abc\x1a");
    terminal.wait_for_text_after("suspended", "> abc\n");
    terminal.press("def\r");
    terminal.wait_for("\n> abcdef\n");
    terminal.press_at("Reply 1 to: abcdef", "\x04");
    terminal.end();
}

#[test]
fn what_a_stopped_reply_can_have_cost_is_shown_next_to_the_cost() {
    let server = serve(echo());
    let home = Home::at(&server).var("POLYLOGUE_MODEL", "openai-chat:gpt-4o");
    let mut terminal = stopped(&home, &server);
    terminal.press("/exit\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    let uncertain = "1 call without a reply, at most $0.";
    assert!(seen.contains(&format!("\n0 tokens · $0 · {uncertain}")), "{seen}");
    assert!(seen.contains("This message takes at most $"), "{seen}");
    let costs = home.run(&["show", "last", "--cost"]).ok().out;
    assert!(costs.lines().next().unwrap().ends_with("  uncertain"), "{costs}");
    assert_eq!(costs.matches(uncertain).count(), 2, "of the agent, and in total: {costs}");
    let runs = home.run(&["runs"]).ok().out;
    assert!(runs.contains("  at most $0."), "{runs}");
}

#[test]
fn what_a_stopped_reply_of_a_model_without_a_price_cost_is_unknown() {
    let server = serve(echo());
    let home = home(&server);
    let mut terminal = stopped(&home, &server);
    terminal.press("/exit\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    assert!(seen.contains("\n0 tokens · $0 · 1 call without a reply, cost unknown"), "{seen}");
    assert!(!seen.contains("This message takes"), "its replies have no bound: {seen}");
    let runs = home.run(&["runs"]).ok().out;
    assert!(runs.contains("  cost unknown"), "{runs}");
}

#[test]
fn an_error_of_the_model_is_shown_and_can_be_retried() {
    let play = |_: &Received, nth: usize| match nth {
        0 => Answer::unexpected("no such thing".to_owned()),
        _ => Answer::text("Here."),
    };
    let server = serve(Behavior::from(Playbook::new(play)).key(KEY));
    let home = home(&server);
    let mut terminal = Terminal::open(&home, (80, 40), &["chat"]);
    terminal.press_at("Ctrl-D leaves.", "Hello\r");
    terminal.press_at("`/retry` tries again.", "/retry\r");
    terminal.press_at("Here.", "/retry\r");
    terminal.press_at("nothing to try again", "\x04");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_team_chats_offline_by_its_script() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: pair\ntask: Talk\nagents: [{name: Ann}, {name: Bob}]\nchat: {participants: [Ann, Bob], pattern: sequential}\n\
         script: [{Ann: A1}, {Bob: B1}, {Ann: A2}, {Bob: B2}]\n",
    );
    let ran = home.run_reading("First\nSecond\n", &["chat", "team.yaml", "--offline"]).ok();
    assert_eq!(ran.out, "B1\nB2\n");
    let messages: Vec<String> = home
        .events()
        .iter()
        .filter(|event| event["type"] == "message")
        .map(|event| event["from"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(messages, ["Ann", "Bob", "Ann", "Bob"]);
}

#[test]
fn a_chat_without_a_model_or_a_script_says_what_is_missing() {
    let home = Home::new();
    let ran = home.run_reading("Hello\n", &["chat"]).exits(2);
    assert!(
        ran.err.contains("`polylogue config set model openai:gpt-4o-mini` sets a default"),
        "{}",
        ran.err
    );
    let ran = home.run_reading("Hello\n", &["chat", "--offline"]).exits(2);
    assert!(ran.err.contains("no team is named") && ran.err.contains("demo:council"), "{}", ran.err);
    let ran = home.run_reading("Hello\n", &["chat", "--resume", "last"]).exits(2);
    assert!(ran.err.contains("there are no conversations yet"), "{}", ran.err);
}

#[test]
fn a_message_that_the_script_does_not_expect_uses_up_no_step() {
    let home = Home::new();
    let refused = home.run_reading("hi\n", &["chat", "demo:student-teacher", "--offline"]).exits(1);
    assert!(refused.err.contains("call 1 of `Teacher` is not as the script expects"), "{}", refused.err);
    let again = home.run(&["resume", "last"]).exits(1);
    assert!(again.out.contains("call 1 of `Teacher` is not as the script expects"), "{}", again.out);
}

#[test]
fn an_error_is_shown_once_at_a_terminal_and_in_a_pipe() {
    let home = Home::new().with_team(
        "name: duo\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\nscript: [{Ann: Hello.}]\n",
    );
    let mut terminal = Terminal::open(&home, (100, 40), &["chat", "team.yaml", "--offline"]);
    terminal.press_at("leaves.", "Hi\r");
    terminal.press_at("Hello.", "And now?\r");
    terminal.wait_for_question("`/retry` tries again.");
    let seen = terminal.sees();
    assert_eq!(seen.matches("the script has 1 step for `Ann`").count(), 1, "{seen}");
    assert_eq!(seen.matches("hint: ").count(), 1, "{seen}");
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, 0);
    let piped = home.run_reading("Hi\nAnd now?\n", &["chat", "team.yaml", "--offline"]).exits(1);
    let all = format!("{}{}", piped.out, piped.err);
    assert_eq!(all.matches("the script has 1 step for `Ann`").count(), 1, "{all}");
}

#[test]
fn a_scripted_team_says_which_line_it_expects() {
    let home = Home::new();
    let mut terminal = Terminal::open(&home, (100, 40), &["chat", "demo:student-teacher"]);
    terminal.press_at("Begin with it:", "Hello\r");
    terminal.wait_for_question("`/retry` tries again.");
    assert!(terminal.sees().contains("The script knows only its own conversation."), "{}", terminal.sees());
    terminal.press("\x04");
    terminal.end();
    let ran = home.run_reading("Hello\n", &["chat", "demo:student-teacher"]).exits(1);
    assert!(ran.err.contains("The script knows only its own conversation."), "{}", ran.err);
}
