//! The line editor: arrow keys, history, bracketed paste, several lines.
//!
//! Every question has its own editor, so that no input is left in its buffer for the next question; the lines of a chat share one. Enter
//! ends the answer, except in an open block of code; Alt+Enter begins a new line.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History as _, MemHistory};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Behavior, Cmd, ConditionalEventHandler, Config, Editor, Event, EventContext, EventHandler, Helper,
    KeyCode, KeyEvent, Modifiers, RepeatCount,
};

use super::typed::{self, MAX_ANSWER, Typed, is_in_fence, too_long};
use crate::screen::{ColorChoice, OutputStyle};

/// Whether the terminal can move its cursor, which the editor needs.
pub(super) fn is_possible() -> bool {
    typed::is_possible() && OutputStyle::of(ColorChoice::Auto, &io::stderr()).live
}

/// An editor. What is typed together with a line is in its buffer, and is the next line.
#[derive(Clone)]
pub(super) struct LineEditor {
    editor: Arc<Mutex<Editor<Blocks, MemHistory>>>,
    suspended: SuspendedLine,
}

impl LineEditor {
    pub(super) fn new() -> io::Result<Self> {
        // The output may be redirected: the terminal itself is where the person reads and writes.
        let config = Config::builder().behavior(Behavior::PreferTerm).build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(io::Error::other)?;
        editor.set_helper(Some(Blocks));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        // The key that steers, which the editor would take for Ctrl-C: the answer would be lost, and the run would end.
        editor.bind_sequence(KeyEvent::ctrl('\\'), Cmd::Noop);
        let suspended = SuspendedLine::default();
        editor.bind_sequence(KeyEvent::ctrl('Z'), EventHandler::Conditional(Box::new(suspended.clone())));
        Ok(Self { editor: Arc::new(Mutex::new(editor)), suspended })
    }

    /// Reads an answer after `prompt`.
    pub(super) fn read(&self, prompt: &str, history: Vec<String>) -> io::Result<Typed> {
        let mut editor = self.editor.lock().unwrap_or_else(PoisonError::into_inner);
        let known = editor.history_mut();
        known.clear().map_err(io::Error::other)?;
        for answer in history {
            known.add_owned(answer).map_err(io::Error::other)?;
        }
        let mut read = editor.readline(prompt);
        while let Some((before, after)) = self.suspended.take() {
            suspend();
            read = editor.readline_with_initial(prompt, (before.as_str(), after.as_str()));
        }
        match read {
            Ok(answer) if answer.len() > MAX_ANSWER => Err(too_long()),
            Ok(answer) => Ok(Typed::Text(answer)),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
            Err(ReadlineError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// How long this process has to stop, after which the shell has continued it.
const STOPPING: Duration = Duration::from_millis(100);

/// Stops the processes that the shell started together with this one, until it continues them.
///
/// The editor itself would begin to read again before this process has stopped, because another thread gets the signal; the shell then
/// changes the mode of the terminal.
fn suspend() {
    // Where there is no shell that could continue them, nothing stops.
    let _ = kill_current_process_group(Signal::TSTP);
    thread::sleep(STOPPING);
}

/// The line before and after the cursor when Ctrl-Z was pressed.
#[derive(Clone, Default)]
struct SuspendedLine(Arc<Mutex<Option<(String, String)>>>);

impl SuspendedLine {
    fn take(&self) -> Option<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ConditionalEventHandler for SuspendedLine {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let (before, after) = context.line().split_at_checked(context.pos())?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((before.to_owned(), after.to_owned()));
        Some(Cmd::Interrupt)
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
