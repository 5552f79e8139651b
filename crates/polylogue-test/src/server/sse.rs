//! A streamed reply: its chunks as lines, with the pauses between them.

use std::time::Duration;

use serde_json::Value;

use super::chunks::Chunks;
use super::completion::Completion;
use super::dialect::{Dialect, Framing};
use super::{Answer, PieceGate, Quirk, bedrock};

/// A piece of a body, or of a whole response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Send these bytes.
    Write(Vec<u8>),
    /// Send nothing for a while.
    Wait(Duration),
    /// Send nothing until this chunk may pass.
    Gate(PieceGate, usize),
    /// Send these bytes repeatedly, with a pause between, until the client goes.
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
    dialect(completion).chunks(completion)
}

fn one_more(completion: &Completion<'_>, text: &str) -> String {
    dialect(completion).one_more(completion, text)
}

fn dialect(completion: &Completion<'_>) -> Dialect {
    completion.received.dialect().unwrap_or(Dialect::ChatCompletions)
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
    steps.extend(answer.gate.iter().map(|gate| Step::Gate(gate.clone(), nth)));
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
                let begin = if lines.framing == Framing::Lines { "" } else { "data: " };
                steps.push(Step::Write([begin, r#"{"id":""#].concat().into_bytes()));
                steps.push(Step::Forever(vec![b'x'; 4096], Duration::ZERO));
            }
            Quirk::EndlessComments(pause) => {
                steps.push(Step::Forever(format!(": ping{0}{0}", lines.end).into(), *pause));
            }
            _ => {}
        }
    }
    let has_mark = matches!(lines.framing, Framing::Events { done: true, .. });
    if !cut && !completion.has(&Quirk::NoDone) && has_mark {
        steps.push(Step::Write(lines.event(0, "[DONE]")));
    }
}

/// The error object that servers put into a stream when something breaks half-way.
pub(super) fn error_object(completion: &Completion<'_>) -> String {
    dialect(completion).error_in_stream().to_string()
}

/// How events are written.
struct Lines {
    end: &'static str,
    data: &'static str,
    comments: bool,
    names: bool,
    spread: bool,
    framing: Framing,
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
            framing: if answer.has(&Quirk::Ndjson) { Framing::Lines } else { dialect(completion).framing() },
        }
    }

    fn event(&self, nth: usize, data: &str) -> Vec<u8> {
        let end = self.end;
        let named = match self.framing {
            Framing::Lines => return [data, end].concat().into_bytes(),
            Framing::Frames => return bedrock::frame(data),
            Framing::Events { named, .. } => named,
        };
        let mut event = String::with_capacity(data.len() + 64);
        if self.comments {
            event.extend([": ping", end, end]);
        }
        if named {
            event.extend(["event: ", &kind(data), end]);
        } else if self.names {
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

/// The type of an event, which is in its JSON, too.
fn kind(data: &str) -> String {
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    event.get("type").and_then(Value::as_str).unwrap_or("error").to_owned()
}
