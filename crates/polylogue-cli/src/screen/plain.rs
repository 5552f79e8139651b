//! A run as text that never moves the cursor: for files, pipes and people without colours.

use polylogue_core::Event;

use super::end::RunEnd;
use super::picture::Pictures;
use super::renderer::{Format, Renderer};
use super::sanitized::Sanitized;
use super::text::Line;

/// A run, told in whole messages.
pub(crate) struct Plain {
    teller: Renderer,
    colour: bool,
}

impl Plain {
    /// With colours, Markdown is rendered for rows of `width` columns; without, it is written unchanged.
    pub(crate) fn new(thoughts: bool, colour: bool, width: usize) -> Self {
        let format = Format { width: colour.then_some(width), whole: false, thoughts };
        Self { teller: Renderer::new(format), colour }
    }

    /// Shows pictures so.
    pub(crate) fn show(&mut self, pictures: Pictures) {
        self.teller.pictures = pictures;
    }

    pub(crate) fn recall(&mut self, event: &Event) {
        self.teller.event(event);
        self.teller.begin_anew();
    }

    pub(crate) fn event(&mut self, event: &Event) -> String {
        let lines = self.teller.event(event);
        written(&lines, self.colour)
    }

    pub(crate) fn end(&mut self, ending: &RunEnd) -> String {
        let mut lines = self.teller.unfinished();
        if self.teller.has_begun() {
            lines.push(Line::default());
        }
        lines.extend(ending.lines(self.teller.format.width));
        written(&lines, self.colour)
    }
}

/// `lines` with their ends.
pub(crate) fn written(lines: &[Line], colour: bool) -> String {
    Sanitized::lines(lines, colour).to_string()
}
