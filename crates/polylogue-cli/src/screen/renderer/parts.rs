//! Lines for messages, and for the results of calls.

use std::time::Duration;

use polylogue_core::{Call, Media, Outcome, Part, Path, plain};

use super::Renderer;
use crate::screen::call::{self, PLAIN_WIDTH};
use crate::screen::style::Style;
use crate::screen::text::{CODE, Line, first_line, folded};
use polylogue_runtime::presentation::{
    ResultShown, ShownMessage, ToolResult, ValueText, result_text, value_text,
};

impl Renderer {
    pub(super) fn said(&mut self, at: &Path, said: &ShownMessage) {
        let message = &said.message;
        if !said.is_shown() {
            self.begin(&(at.clone(), message.from.clone()), &message.to);
        }
        let before = self.out.len();
        let (output, words): (Vec<Part>, Vec<Part>) =
            said.parts.iter().cloned().partition(|part| said.output.contains(part));
        let words = plain(&words);
        let lines = match said.repeats && !words.trim().is_empty() {
            true => vec![self.repeated(at, &words)],
            false => self.prose(at, &words, Style::PLAIN),
        };
        self.put(at, &verbatim_lines(&plain(&output), Style::PLAIN));
        self.put(at, &lines);
        self.extras(at, said);
        if self.out.len() == before && !said.is_partly_shown() {
            self.put(at, &[Line::new("(says nothing)", Style::DIM)]);
        }
        self.interrupted();
    }

    /// The beginning of a text that another chat has shown.
    fn repeated(&self, at: &Path, text: &str) -> Line {
        /// Enough to recognize the text.
        const COLUMNS: usize = 40;
        let (first, more) = first_line(text);
        let above = format!(" ({}as above)", more.map(|more| more + ", ").unwrap_or_default());
        let room = self.width(at).unwrap_or(PLAIN_WIDTH / 2).saturating_sub(above.len()).min(COLUMNS);
        Line::new(&first, Style::DIM).fit(room).with(&above, Style::DIM)
    }

    /// The parts of a message that are no text, and the sources of text from outside that its author had read.
    pub(super) fn extras(&mut self, at: &Path, said: &ShownMessage) {
        let (parts, outside) = (&said.parts, &said.message.outside);
        for part in parts {
            match part {
                Part::Media(media) => self.picture(at, media),
                Part::Data(value) => match value_text(value, parts) {
                    ValueText::Nothing => {}
                    ValueText::Words(words) => format!("({words})")
                        .lines()
                        .for_each(|line| self.put_wrapped(at, Line::new(line, Style::DIM))),
                    ValueText::Json(json) => self.put_wrapped(at, Line::new(&json, Style::DIM)),
                },
                Part::Call(wanted) => self.suggested(at, wanted),
                Part::Outcome(came) => {
                    let call = said.call_of(came);
                    self.put(at, &[call::finished(&call, &came.outcome, Duration::ZERO, self.width(at))]);
                    self.whole_result(at, &result_text(&came.outcome));
                    self.pictures_of(at, &came.outcome);
                }
                Part::Cut(finish) => self.put_wrapped(at, Line::new(&format!("({finish})"), Style::DIM)),
                _ => {}
            }
        }
        if self.format.whole && !outside.is_empty() {
            self.put_wrapped(at, Line::new(&call::read_before(outside), Style::DIM));
        }
    }

    fn pictures_of(&mut self, at: &Path, outcome: &Outcome) {
        for part in &outcome.parts {
            if let Part::Media(media) = part {
                self.picture(at, media);
            }
        }
    }

    fn picture(&mut self, at: &Path, media: &Media) {
        let lines = self.pictures.lines(media, self.width(at));
        lines.into_iter().for_each(|line| self.put_wrapped(at, line));
    }

    pub(super) fn returned(&mut self, at: &Path, returned: &ToolResult) {
        let ToolResult { who, to, outcome, took, shown, is_code, note, .. } = returned;
        self.begin(&(at.clone(), who.clone()), to);
        // Code of a message is in the message.
        let call = &if *is_code { call::bare(&returned.call) } else { returned.call.clone() };
        let has_code = !returned.is_approved && self.code_of(at, call, Some(outcome));
        let made = call::made(call, outcome, *took, self.width(at));
        if *shown == ResultShown::InMessage {
            return self.put(at, &[made]);
        }
        let result = result_text(outcome);
        let has_note =
            |line: &Line| note.as_ref().is_some_and(|note| line.text().contains(&folded(&note.text)));
        if *is_code && self.format.whole {
            self.put(at, &[made]);
            self.below(at, &result);
        } else if note.as_ref().is_some_and(|note| note.in_arguments) && has_note(&made) {
            self.put(at, &[made]);
            self.note_is_shown = true;
        } else {
            let line = match has_code {
                true => call::result_of(outcome, *took, self.width(at)),
                false => call::finished(call, outcome, *took, self.width(at)),
            };
            self.note_is_shown = has_note(&line);
            self.put(at, &[line]);
            if !returned.repeats {
                self.whole_result(at, &result);
            }
        }
        self.pictures_of(at, outcome);
    }

    /// A call that a message asks for.
    fn suggested(&mut self, at: &Path, call: &Call) {
        if !self.code_of(at, call, None) {
            self.put_wrapped(at, Line::new("⚙ ", Style::DIM).joined(&call::call(call)));
        }
    }

    /// A call with its code below, if that takes several lines. Returns whether it does.
    fn code_of(&mut self, at: &Path, call: &Call, outcome: Option<&Outcome>) -> bool {
        let (rest, code) = call::with_code_apart(call);
        let has_code = code.iter().any(|(_, text)| call::is_long(text));
        if has_code {
            self.put_wrapped(at, call::above_code(&rest, outcome));
            code.iter().for_each(|(_, text)| self.put(at, &verbatim_lines(text, CODE)));
        }
        has_code
    }

    /// All of a result that did not fit on the line.
    fn whole_result(&mut self, at: &Path, text: &str) {
        if self.format.whole && (text.trim().lines().count() > 1 || text.chars().count() > 60) {
            self.below(at, text);
        }
    }

    /// A result below the line of its call.
    fn below(&mut self, at: &Path, text: &str) {
        let margin = Line::new("  ", Style::PLAIN);
        let lines = text.lines().map(|line| margin.clone().with(line, Style::DIM));
        self.put(at, &lines.collect::<Vec<Line>>());
    }
}

fn verbatim_lines(text: &str, style: Style) -> Vec<Line> {
    text.lines().map(|line| Line::verbatim(line, style)).collect()
}
