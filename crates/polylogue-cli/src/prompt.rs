//! Questions to the person at the terminal.
//!
//! Text typed before a question is on the screen is dropped: it is never the answer. A question that allows something has no
//! default.
//!
//! A terminal that understands escape sequences gets a line editor ([`editor`]); others, and pipes, are read line by line.

mod editor;
mod first_key;
pub(crate) mod question;
mod typed;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use polylogue::tools::approval::visible;
use rustix::termios::{QueueSelector, tcdrain, tcflush};

use crate::error::CliError;
use crate::screen::exact::{self, SetApart};
use crate::screen::text::Line;
use crate::screen::{Size, Style};
use crate::signals::Signals;
use crate::stderr::print_note;
use editor::LineEditor;
use first_key::SavedMode;
use typed::{MAX_ANSWER, is_in_fence, too_long};
pub(crate) use typed::{Typed, is_possible};

/// How often a question is asked until the answer is one of those that it takes.
const MAX_ATTEMPTS: usize = 5;

/// Has the person choose one of `words`, none of which is a default: it has to be written in full after the question was shown, but
/// for `n`, which is `no`.
/// `None` when the input ends, the person wants to stop, or no answer was one of them.
///
/// `text` is shown verbatim; what others wrote in it has to be [`visible`].
pub(crate) async fn choose(
    text: &str,
    words: &[&'static str],
    signals: &mut Signals,
) -> Result<Option<&'static str>, CliError> {
    print_verbatim(text);
    let choices = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    for _ in 0..MAX_ATTEMPTS {
        let prompt = format!("{}> ", words.join(" or "));
        let Some(answer) = ask(&prompt, Vec::new(), signals).await? else { return Ok(None) };
        let answer = if answer.trim().eq_ignore_ascii_case("n") { "no" } else { answer.trim() };
        match words.iter().find(|word| answer.eq_ignore_ascii_case(word)) {
            Some(word) => return Ok(Some(word)),
            None => print_note(&format!("Please write one of {choices}.")),
        }
    }
    Ok(None)
}

/// The name of the user of this machine, who answers here. `None` if the user database has none, as in some containers.
pub(crate) fn user_name() -> Option<Arc<str>> {
    whoami::username().ok().filter(|name| !name.is_empty()).map(Into::into)
}

/// Shows `text` in addition to the output, verbatim: without Markdown, in rows that fit the terminal.
pub(crate) fn print_verbatim(text: &str) {
    let apart = match io::stderr().is_terminal() {
        true => SetApart::Rules(Size::of_terminal().text_columns()),
        false => SetApart::Fences,
    };
    exact::rows(text, apart, Style::PLAIN).iter().map(Line::text).for_each(|row| print_note(&row));
}

/// Reads an answer after `prompt`: a line, or a block of lines if the first opens a fence. The arrow keys recall `history`.
/// `None` when the input ends or the person wants to stop. The question must be on the screen already: text typed before is
/// dropped.
pub(crate) async fn ask(
    prompt: &str,
    history: Vec<String>,
    signals: &mut Signals,
) -> Result<Option<String>, CliError> {
    if drain() {
        print_note("(What was typed before this question does not count.)");
    }
    message(prompt, history, signals).await.map(Typed::text)
}

/// How a question ended that can be withdrawn.
pub(crate) enum Asked<T> {
    /// As [`ask`] returns it.
    Answer(Option<String>),
    /// The person wants to steer the conversation first.
    Steer,
    Withdrawn(T),
}

/// As [`ask`], unless `steers` or `withdrawn` is ready before the first key is pressed.
pub(crate) async fn ask_unless<T>(
    prompt: &str,
    history: Vec<String>,
    signals: &mut Signals,
    steers: impl Future<Output = ()>,
    withdrawn: impl Future<Output = T>,
) -> Result<Asked<T>, CliError> {
    if drain() {
        print_note("(What was typed before this question does not count.)");
    }
    tokio::select! {
        biased;
        () = first_key::pressed(prompt) => {}
        withdrawn = withdrawn => {
            print_note("");
            return Ok(Asked::Withdrawn(withdrawn));
        }
        () = signals.next() => {
            print_note("");
            return Ok(Asked::Answer(None));
        }
        () = steers => {
            print_note("");
            return Ok(Asked::Steer);
        }
    }
    message(prompt, history, signals).await.map(|typed| Asked::Answer(typed.text()))
}

/// As [`ask`], where text that was typed before counts: it allows nothing.
pub(crate) async fn message(
    prompt: &str,
    history: Vec<String>,
    signals: &mut Signals,
) -> Result<Typed, CliError> {
    Messages::default().next(prompt, history, signals).await
}

/// Reads one [`message`] after the other: what is typed or pasted together with one is the next.
#[derive(Default)]
pub(crate) struct Messages(Option<LineEditor>);

impl Messages {
    pub(crate) async fn next(
        &mut self,
        prompt: &str,
        history: Vec<String>,
        signals: &mut Signals,
    ) -> Result<Typed, CliError> {
        let prompt = visible(prompt).into_owned();
        let typed = if editor::is_possible() {
            let _mode = SavedMode::save();
            let editor = self.editor()?;
            read_answer(move || editor.read(&prompt, history), signals).await
        } else {
            // In one piece, so that no key that is typed ahead shows up within it.
            let _ = io::stderr().write_all(prompt.as_bytes()).and_then(|()| io::stderr().flush());
            read_answer(read_typed, signals).await
        };
        if !matches!(typed, Ok(Typed::Text(_))) {
            // What follows begins a line.
            print_note("");
        }
        typed
    }

    fn editor(&mut self) -> Result<LineEditor, CliError> {
        let editor = match self.0.take() {
            Some(editor) => editor,
            None => LineEditor::new().map_err(|error| unreadable(&error))?,
        };
        Ok(self.0.insert(editor).clone())
    }
}

fn unreadable(error: &io::Error) -> CliError {
    CliError::failed(format!("the standard input cannot be read: {error}"))
}

fn read_typed() -> io::Result<Typed> {
    Ok(read_block(&mut read_line)?.map_or(Typed::End, Typed::Text))
}

/// Takes the next answer from a standard input that is not a terminal, as [`ask`] does from one that is: a line, or a block of lines.
/// `None` when the input is over or the person wants to stop. Nothing behind the answer is read.
pub(crate) async fn read_piped(signals: &mut Signals) -> Result<Option<String>, CliError> {
    let answer = read_answer(read_typed, signals).await?;
    match answer.text() {
        // Half a block would run as if it were whole.
        Some(answer) if is_in_fence(&answer) => {
            Err(CliError::failed("the input ends within a block of code, which is not an answer"))
        }
        answer => Ok(answer),
    }
}

/// Whether the standard input is a terminal.
pub(crate) fn is_typed() -> bool {
    io::stdin().is_terminal()
}

/// Drops what was typed until now, once all that was written is on the terminal. Says whether there was a whole line.
fn drain() -> bool {
    let input = rustix::stdio::stdin();
    // An input that is not a terminal has nothing to drop, and is not asked.
    let _ = tcdrain(rustix::stdio::stderr());
    let typed = rustix::io::ioctl_fionread(input).unwrap_or(0);
    let dropped = tcflush(input, QueueSelector::IFlush);
    typed > 0 && dropped.is_ok()
}

async fn read_answer(
    read: impl FnOnce() -> io::Result<Typed> + Send + 'static,
    signals: &mut Signals,
) -> Result<Typed, CliError> {
    let answer = tokio::task::spawn_blocking(read);
    tokio::select! {
        answer = answer => match answer {
            Ok(Ok(Typed::Text(text))) => Ok(Typed::Text(text.trim_end_matches(['\r', '\n']).to_owned())),
            Ok(Ok(typed)) => Ok(typed),
            Ok(Err(error)) => Err(unreadable(&error)),
            Err(_) => Err(CliError::failed("the standard input cannot be read")),
        },
        () = signals.next() => Ok(Typed::End),
    }
}

/// A line with its end; nothing when the input is over. Nothing more is read than that line: no buffer of ours holds what was
/// typed ahead.
fn read_line() -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut byte = [0; 1];
    while line.last() != Some(&b'\n') {
        if line.len() >= MAX_ANSWER {
            return Err(too_long());
        }
        match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
            Ok(0) => break,
            Ok(_) => line.extend(byte),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let line =
        String::from_utf8(line).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
    Ok(Some(line).filter(|line| !line.is_empty()))
}

/// A line; one that opens a fence, with all lines up to that which closes it.
fn read_block(next: &mut dyn FnMut() -> io::Result<Option<String>>) -> io::Result<Option<String>> {
    let mut answer = String::new();
    while let Some(line) = next()? {
        answer.push_str(&line);
        if answer.len() > MAX_ANSWER {
            return Err(too_long());
        }
        if !is_in_fence(&answer) {
            break;
        }
    }
    Ok(Some(answer).filter(|answer| !answer.is_empty()))
}
