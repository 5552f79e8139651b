//! A person who is asked at the terminal while other turns of the step are in progress.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use polylogue_test::server::{Answer, Playbook, Server};
use serde_json::json;

use crate::home::{Home, of_type, serve, until};
use crate::models::said;
use crate::terminal::Terminal;

const BOARD: &str = "name: board\ntask: Decide.\nagents: [{name: Kim, human: true}, {name: Bot, system: b}]\n\
                     chat: {participants: [Kim, Bot], pattern: parallel}\n";

/// A server whose model replies when it is let.
struct Gated {
    // Dropped first, so that no reply is waited for.
    gate: Sender<()>,
    server: Server,
}

impl Gated {
    fn new() -> Self {
        let (gate, opened) = channel();
        let opened = Mutex::new(opened);
        let server = serve(Playbook::new(move |_, _| {
            // When the test is over, it need not wait.
            let _ = opened.lock().map(|opened| opened.recv());
            Answer::text("I agree.")
        }));
        Self { gate, server }
    }

    /// A terminal in which Kim is asked, and Bot is about to speak.
    fn asked(&self) -> (Home, Terminal) {
        let home = Home::at(&self.server).with_team(BOARD);
        let terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml", "-m", "openai:test"]);
        terminal.wait_for("\nKim>");
        assert!(of_type(&home.events(), "model_replied").is_empty(), "{}", terminal.sees());
        (home, terminal)
    }

    fn reply(&self) {
        assert!(self.gate.send(()).is_ok(), "the model waits");
    }
}

fn ended(home: &Home, terminal: Terminal) {
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("I agree."), "{seen}");
    let events = home.events();
    assert_eq!(said(&events), ["Decide.", "Yes.", "I agree."], "{seen}");
    assert_eq!(of_type(&events, "input_provided").len(), 1);
    assert!(of_type(&events, "refused").is_empty());
}

#[test]
fn an_answer_counts_while_another_turn_is_in_progress() {
    let board = Gated::new();
    let (home, mut terminal) = board.asked();
    terminal.press("Yes.\r");
    until("the answer is in the log", || of_type(&home.events(), "input_provided").len() == 1);
    assert!(of_type(&home.events(), "model_replied").is_empty(), "{}", terminal.sees());
    board.reply();
    ended(&home, terminal);
}

#[test]
fn a_question_is_withdrawn_for_what_others_say_and_asked_again() {
    let board = Gated::new();
    let (home, mut terminal) = board.asked();
    board.reply();
    until("it is asked again", || terminal.sees().matches("\nKim>").count() == 2);
    terminal.press("Yes.\r");
    ended(&home, terminal);
}

#[test]
fn a_question_that_is_answered_elsewhere_is_withdrawn() {
    let board = Gated::new();
    let (home, terminal) = board.asked();
    home.run(&["answer", "last", "Yes.", "--by", "Lee"]).ok();
    until("the answer is in the log", || of_type(&home.events(), "input_provided").len() == 1);
    board.reply();
    ended(&home, terminal);
    assert_eq!(of_type(&home.events(), "input_provided")[0]["by"], json!({"person": "Lee"}));
}
