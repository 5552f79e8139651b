//! The line editor: arrow keys, history, bracketed paste, several lines.
//!
//! Every question has its own editor, so that no input is left in its buffer for the next question; the lines of a chat share one. Enter
//! ends the answer, except in an open block of code; Alt+Enter begins a new line.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History as _, MemHistory};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Behavior, Cmd, Config, Editor, Helper, KeyCode, KeyEvent, Modifiers};

use super::typed::{self, MAX_ANSWER, Typed, is_in_fence, too_long};
use crate::screen::{ColorChoice, OutputStyle};

/// Whether the terminal can move its cursor, which the editor needs.
pub(super) fn is_possible() -> bool {
    typed::is_possible() && OutputStyle::of(ColorChoice::Auto, &io::stderr()).live
}

/// An editor. What is typed together with a line is in its buffer, and is the next line.
#[derive(Clone)]
pub(super) struct LineEditor(Arc<Mutex<Editor<Blocks, MemHistory>>>);

impl LineEditor {
    pub(super) fn new() -> io::Result<Self> {
        // The output may be redirected: the terminal itself is where the person reads and writes.
        let config = Config::builder().behavior(Behavior::PreferTerm).build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(io::Error::other)?;
        editor.set_helper(Some(Blocks));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        Ok(Self(Arc::new(Mutex::new(editor))))
    }

    /// Reads an answer after `prompt`.
    pub(super) fn read(&self, prompt: &str, history: Vec<String>) -> io::Result<Typed> {
        let mut editor = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = editor.history_mut();
        known.clear().map_err(io::Error::other)?;
        for answer in history {
            known.add_owned(answer).map_err(io::Error::other)?;
        }
        match editor.readline(prompt) {
            Ok(answer) if answer.len() > MAX_ANSWER => Err(too_long()),
            Ok(answer) => Ok(Typed::Text(answer)),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
            Err(ReadlineError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// Keeps a block of code open until its last fence.
struct Blocks;

impl Validator for Blocks {
    fn validate(&self, input: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_in_fence(input.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Blocks {
    type Candidate = String;
}

impl Hinter for Blocks {
    type Hint = String;
}

impl Highlighter for Blocks {}

impl Helper for Blocks {}
