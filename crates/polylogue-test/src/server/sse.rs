//! A streamed reply: its chunks as lines, with the pauses between them.

use std::time::Duration;

use serde_json::json;

use super::chunks::{self, Chunks};
use super::completion::Completion;
use super::{Answer, Quirk, ollama};

/// A piece of a body, or of a whole response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Send these bytes.
    Write(Vec<u8>),
    /// Send nothing for a while.
    Wait(Duration),
    /// Send these bytes again and again, with a pause between, until the client goes.
    Forever(Vec<u8>, Duration),
}

/// The body of a streamed reply.
pub(super) fn body(completion: &Completion<'_>) -> Vec<Step> {
    let lines = Lines::of(completion);
    let chunks = objects(completion);
    let all = chunks.chunks.len();
    let shown = shown(completion.answer, chunks.before_finish, all);
    let mut steps = Vec::with_capacity(shown + 2);
    if completion.has(&Quirk::ByteOrderMark) {
        steps.push(Step::Write("\u{feff}".into()));
    }
    for (nth, chunk) in chunks.chunks.iter().take(shown).enumerate() {
        pause(completion.answer, nth, &mut steps);
        let cut = completion.has(&Quirk::InvalidJson) && nth + 1 == all;
        let chunk = if cut { chunk.get(..chunk.len() / 2).unwrap_or_default() } else { chunk };
        steps.push(Step::Write(lines.event(nth, chunk)));
    }
    end(completion, &lines, shown < all, &mut steps);
    if let (true, Some(Step::Write(last))) = (completion.has(&Quirk::NoFinalNewline), steps.last_mut()) {
        last.truncate(last.trim_ascii_end().len());
    }
    steps
}

fn objects(completion: &Completion<'_>) -> Chunks {
    match completion.received.is_ollama() {
        true => ollama::chunks(completion),
        false => chunks::chunks(completion),
    }
}

fn one_more(completion: &Completion<'_>, text: &str) -> String {
    match completion.received.is_ollama() {
        true => ollama::one_more(completion, text),
        false => chunks::one_more(completion, text),
    }
}

/// How many chunks are sent before something else takes over.
fn shown(answer: &Answer, before_finish: usize, all: usize) -> usize {
    answer.quirks.iter().fold(all, |shown, quirk| match quirk {
        Quirk::ErrorInStream(after) => shown.min(*after).min(before_finish),
        Quirk::EndlessStream | Quirk::EndlessLine | Quirk::EndlessComments(_) => shown.min(before_finish),
        _ => shown,
    })
}

/// The pauses before chunk `nth`.
fn pause(answer: &Answer, nth: usize, steps: &mut Vec<Step>) {
    for quirk in &answer.quirks {
        match quirk {
            Quirk::PauseBeforeFirst(pause) if nth == 0 => steps.push(Step::Wait(*pause)),
            Quirk::Pace(pause) if nth > 0 => steps.push(Step::Wait(*pause)),
            Quirk::Stall(pause) if nth == 3 => steps.push(Step::Wait(*pause)),
            _ => {}
        }
    }
}

/// What comes after the chunks.
fn end(completion: &Completion<'_>, lines: &Lines, cut: bool, steps: &mut Vec<Step>) {
    for quirk in &completion.answer.quirks {
        match quirk {
            Quirk::ErrorInStream(_) => {
                steps.push(Step::Write(lines.event(0, &error_object(completion))));
                return;
            }
            Quirk::EndlessStream => {
                let event = lines.event(0, &one_more(completion, "and again "));
                steps.push(Step::Forever(event, Duration::ZERO));
            }
            Quirk::EndlessLine => {
                let begin = if lines.bare { "" } else { "data: " };
                steps.push(Step::Write([begin, r#"{"id":""#].concat().into_bytes()));
                steps.push(Step::Forever(vec![b'x'; 4096], Duration::ZERO));
            }
            Quirk::EndlessComments(pause) => {
                steps.push(Step::Forever(format!(": ping{0}{0}", lines.end).into(), *pause));
            }
            _ => {}
        }
    }
    if !cut && !completion.has(&Quirk::NoDone) && !lines.bare {
        steps.push(Step::Write(lines.event(0, "[DONE]")));
    }
}

/// The error object that servers put into a stream when something breaks half-way.
pub(super) fn error_object(completion: &Completion<'_>) -> String {
    if completion.received.is_ollama() {
        return ollama::error_object().to_string();
    }
    let message = "The server had an error while processing your request. Sorry about that!";
    json!({"error": {"message": message, "type": "server_error", "param": null, "code": null}}).to_string()
}

/// How events are written.
struct Lines {
    end: &'static str,
    data: &'static str,
    comments: bool,
    names: bool,
    spread: bool,
    bare: bool,
}

impl Lines {
    fn of(completion: &Completion<'_>) -> Self {
        let answer = completion.answer;
        let end = match () {
            () if answer.has(&Quirk::Crlf) => "\r\n",
            () if answer.has(&Quirk::Cr) => "\r",
            () => "\n",
        };
        Self {
            end,
            data: if answer.has(&Quirk::NoSpace) { "data:" } else { "data: " },
            comments: answer.has(&Quirk::Comments),
            names: answer.has(&Quirk::EventNames),
            spread: answer.has(&Quirk::MultiLineData),
            bare: answer.has(&Quirk::Ndjson) || completion.received.is_ollama(),
        }
    }

    fn event(&self, nth: usize, data: &str) -> Vec<u8> {
        let end = self.end;
        if self.bare {
            return [data, end].concat().into_bytes();
        }
        let mut event = String::with_capacity(data.len() + 64);
        if self.comments {
            event.extend([": ping", end, end]);
        }
        if self.names {
            event.extend(["event: message", end, "id: ", &nth.to_string(), end]);
        }
        // A line break is white space to JSON behind the brace.
        match data.strip_prefix('{').filter(|_| self.spread) {
            Some(rest) => event.extend([self.data, "{", end, self.data, rest]),
            None => event.extend([self.data, data]),
        }
        event.extend([end, end]);
        event.into_bytes()
    }
}
