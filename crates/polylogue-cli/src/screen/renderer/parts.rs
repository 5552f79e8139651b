//! Lines for messages, and for the results of calls.

use std::time::Duration;

use polylogue_core::{Media, Part, Path, ToolCall, ToolResult, text_of};

use super::Renderer;
use crate::screen::call::{self, PLAIN_WIDTH};
use crate::screen::style::Style;
use crate::screen::text::{CODE, Line, first_line};
use polylogue_runtime::presentation::{
    ResultShown, ShownMessage, ShownToolResult, ValueText, result_text, value_text,
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
        let words = text_of(&words);
        let lines = match said.repeats && !words.trim().is_empty() {
            true => vec![self.repeated(at, &words)],
            false => self.prose(at, &words, Style::PLAIN),
        };
        self.put(at, &verbatim_lines(&text_of(&output), Style::PLAIN));
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
        let room = self.row_width(at).unwrap_or(PLAIN_WIDTH / 2).saturating_sub(above.len()).min(COLUMNS);
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
                Part::ToolCall(wanted) => self.suggested(at, wanted),
                Part::ToolResult(came) => {
                    let (call, width) = (said.call_of(came), self.row_width(at));
                    let above = call::made(&call, &came.result, Duration::ZERO, width);
                    let folded = call::finished(&call, &came.result, Duration::ZERO, width);
                    self.result(at, &came.result, above, folded);
                    self.pictures_of(at, &came.result);
                }
                Part::Cut(finish) => self.put_wrapped(at, Line::new(&format!("({finish})"), Style::DIM)),
                _ => {}
            }
        }
        if self.format.whole && !outside.is_empty() {
            self.put_wrapped(at, Line::new(&call::read_before(outside), Style::DIM));
        }
    }

    fn pictures_of(&mut self, at: &Path, outcome: &ToolResult) {
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

    pub(super) fn returned(&mut self, at: &Path, returned: &ShownToolResult) {
        let ShownToolResult { who, to, call, result: outcome, took, is_code, note, .. } = returned;
        self.begin(&(at.clone(), who.clone()), to);
        let width = self.row_width(at);
        match (returned.shown, note) {
            // Code of a message is in the message, and perhaps its output, too.
            (ResultShown::InMessage, _) => {
                return self.put(at, &[call::made(&call::bare(call), outcome, *took, width)]);
            }
            (ResultShown::Late, _) => self.put(at, &[call::result_of(outcome, *took, width)]),
            (ResultShown::Here, _) if *is_code => {
                self.put(at, &[call::made(&call::bare(call), outcome, *took, width)]);
                self.below(at, &result_text(outcome));
            }
            (ResultShown::Here, Some(note)) if note.in_arguments => {
                self.handed_over(at, returned, &note.text)
            }
            (ResultShown::Here, _) => self.called(at, returned),
        }
        self.pictures_of(at, outcome);
    }

    /// A handoff with a note, which is an argument, its result and a message: all of it is shown here.
    fn handed_over(&mut self, at: &Path, returned: &ShownToolResult, note: &str) {
        let ShownToolResult { call, result: outcome, took, .. } = returned;
        let line = call::made(call, outcome, *took, self.row_width(at));
        if line.text().contains(note.trim()) {
            self.put(at, &[line]);
        } else {
            self.put_wrapped(at, call::above_code(&call::without(call, note), Some(outcome)));
            let lines = self.prose(at, note, Style::PLAIN);
            self.put(at, &lines);
        }
        self.whole_results.insert(call.id.clone());
    }

    /// A call with its result.
    fn called(&mut self, at: &Path, returned: &ShownToolResult) {
        let ShownToolResult { call, result: outcome, took, .. } = returned;
        let has_code = !returned.is_approved && self.code_of(at, call, Some(outcome));
        let width = self.row_width(at);
        let (above, folded) = match has_code {
            true => (call::above_result(*took), call::result_of(outcome, *took, width)),
            false => (call::made(call, outcome, *took, width), call::finished(call, outcome, *took, width)),
        };
        if returned.repeats {
            self.put(at, &[folded]);
        } else if self.result(at, outcome, above, folded) {
            self.whole_results.insert(call.id.clone());
        }
    }

    /// A result on the line `folded`, or in full below the line `above`. Returns whether all of it is shown.
    fn result(&mut self, at: &Path, outcome: &ToolResult, above: Line, folded: Line) -> bool {
        let text = result_text(outcome);
        if self.format.whole && (text.trim().lines().count() > 1 || text.chars().count() > 60) {
            self.put(at, &[above]);
            self.below(at, &text);
            return true;
        }
        let is_whole = !text.trim().is_empty() && folded.text().contains(text.trim());
        self.put(at, &[folded]);
        is_whole
    }

    /// Whether `said` is a result that is shown in full.
    pub(super) fn is_whole_result(&self, said: &ShownMessage) -> bool {
        said.result_of.as_ref().is_some_and(|id| self.whole_results.contains(id))
    }

    /// A call that a message asks for.
    fn suggested(&mut self, at: &Path, call: &ToolCall) {
        if !self.code_of(at, call, None) {
            self.put_wrapped(at, Line::new("⚙ ", Style::DIM).joined(&call::call(call)));
        }
    }

    /// A call with its code below, if that takes several lines or would be cut off on the line of the call. Returns whether it does.
    fn code_of(&mut self, at: &Path, call: &ToolCall, outcome: Option<&ToolResult>) -> bool {
        let (rest, code) = call::with_code_apart(call);
        let most = self.row_width(at).unwrap_or(PLAIN_WIDTH) / 2;
        let has_code = code.iter().any(|(_, text)| text.trim().contains('\n') || text.chars().count() > most);
        if has_code {
            self.put_wrapped(at, call::above_code(&rest, outcome));
            code.iter().for_each(|(_, text)| self.put(at, &verbatim_lines(text, CODE)));
        }
        has_code
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
