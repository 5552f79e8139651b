//! Lines for tool calls, and for everything else in a message that is no text.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{Body, Call, CallOutcome, Event, Media, Name, Outcome, Part, Path};

use super::{Key, Renderer};
use crate::screen::style::Style;
use crate::screen::text::{Line, folded, wrap};
use crate::screen::value;
use crate::screen::{again, call};

impl Renderer {
    /// The parts of a message that are no text.
    pub(super) fn extras(&mut self, at: &Path, from: &Name, parts: &[Part]) {
        for part in parts {
            let line = match part {
                Part::Media(media) => {
                    self.picture(at, media);
                    continue;
                }
                Part::Data(value) => match value::text(value, parts) {
                    Some(text) => Line::new(&text, Style::DIM),
                    None => continue,
                },
                Part::Call(wanted) => {
                    self.asked.insert((at.clone(), from.clone(), wanted.id.clone()), wanted.clone());
                    Line::new("⚙ ", Style::DIM).joined(&call::call(wanted))
                }
                Part::Outcome(outcome) => {
                    self.outcome(at, from, outcome);
                    continue;
                }
                Part::Cut(finish) => Line::new(&format!("({finish})"), Style::DIM),
                _ => continue,
            };
            let rows = self.width(at).map_or_else(|| vec![line.clone()], |width| wrap(&line, width));
            self.put(at, &rows);
        }
    }

    /// The sources of words from outside that the speaker had read.
    pub(super) fn origin(&mut self, at: &Path, sources: &[Arc<str>]) {
        if self.format.whole && !sources.is_empty() {
            let line = Line::new(&call::read_before(sources), Style::DIM);
            let rows = self.width(at).map_or_else(|| vec![line.clone()], |width| wrap(&line, width));
            self.put(at, &rows);
        }
    }

    /// The result of a call that another participant requested.
    fn outcome(&mut self, at: &Path, from: &Name, came: &CallOutcome) {
        let is_it =
            |(key, outcome): &(Key, Outcome)| key.0 == *at && key.1 == *from && *outcome == came.outcome;
        let told = self.returned.iter().position(is_it).map(|known| self.returned.swap_remove(known));
        let key = (at.clone(), came.to.clone(), came.id.clone());
        if told.is_some() {
            self.asked.remove(&key);
            return;
        }
        let unknown = || Call { id: came.id.clone(), tool: came.tool.clone(), args: ().into() };
        let wanted = self.asked.remove(&key).unwrap_or_else(unknown);
        let line = call::finished(&wanted, &came.outcome, Duration::ZERO, self.width(at));
        self.put(at, &[line]);
        self.whole_result(at, &call::result_text(&came.outcome));
        self.pictures_of(at, &came.outcome);
    }

    pub(super) fn pictures_of(&mut self, at: &Path, outcome: &Outcome) {
        for part in &outcome.parts {
            if let Part::Media(media) = part {
                self.picture(at, media);
            }
        }
    }

    fn picture(&mut self, at: &Path, media: &Media) {
        let width = self.width(at);
        let lines = self.pictures.lines(media, width);
        let wrapped = |line: Line| match width {
            Some(width) if line.width() > width => wrap(&line, width),
            _ => vec![line],
        };
        let rows: Vec<Line> = lines.into_iter().flat_map(wrapped).collect();
        self.put(at, &rows);
    }

    pub(super) fn returned(&mut self, event: &Event) {
        let Body::ToolReturned { who, id, outcome } = &event.body else { return };
        let key = (event.at.clone(), who.clone());
        let unknown = || (Call { id: id.clone(), tool: id.clone(), args: ().into() }, event.time);
        let (wanted, begun) = self.calls.remove(&(key.clone(), id.clone())).unwrap_or_else(unknown);
        self.prompts(&key);
        let took = Duration::from_millis(event.time.0.saturating_sub(begun.0));
        let to = self.audience(&key);
        self.begin(&key, &to);
        let width = self.width(&event.at);
        if again::runs_code(id) && !self.format.whole {
            self.put(&event.at, &[call::made(&wanted, outcome, took, width)]);
            // The message that follows has the result.
            return self.held.push((key, wanted, outcome.clone()));
        }
        let result = call::result_text(outcome);
        if again::runs_code(id) {
            self.put(&event.at, &[call::made(&wanted, outcome, took, width)]);
            self.below(&event.at, &result);
        } else if !self.transferred(&key, &wanted, outcome, took) {
            self.put(&event.at, &[call::finished(&wanted, outcome, took, width)]);
            self.whole_result(&event.at, &result);
        }
        self.pictures_of(&event.at, outcome);
        self.returned.push((key, outcome.clone()));
    }

    /// Tells a handoff whose words stand among its arguments, and are its result and a message, too: once.
    fn transferred(&mut self, key: &Key, wanted: &Call, outcome: &Outcome, took: Duration) -> bool {
        let Some(words) = again::note_of_transfer(wanted, outcome) else { return false };
        let width = self.width(&key.0);
        let made = call::made(wanted, outcome, took, width);
        let is_shown = again::is_argument(wanted, &words) && made.text().contains(&folded(&words));
        let line = if is_shown { made } else { call::finished(wanted, outcome, took, width) };
        self.note_handed(key, &words, &line);
        if is_shown {
            self.put(&key.0, &[line]);
        }
        is_shown
    }

    /// All of a result that did not fit on the line.
    fn whole_result(&mut self, at: &Path, text: &str) {
        if self.format.whole && (text.trim().lines().count() > 1 || text.chars().count() > 60) {
            self.below(at, text);
        }
    }

    /// A result below the line of its call.
    fn below(&mut self, at: &Path, text: &str) {
        let width = self.width(at).unwrap_or(usize::MAX);
        let margin = Line::new("  ", Style::PLAIN);
        let lines = text.lines().flat_map(|line| wrap(&Line::new(line, Style::DIM), width.saturating_sub(2)));
        let lines: Vec<Line> = lines.map(|line| line.after(&margin)).collect();
        self.put(at, &lines);
    }
}
