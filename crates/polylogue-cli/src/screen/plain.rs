//! A run as text that never moves the cursor: for files, pipes and people without colors.

use polylogue_core::{Event, Path, Question};

use super::end::RunEnd;
use super::picture::Pictures;
use super::renderer::{Format, Renderer};
use super::sanitized::Sanitized;
use super::text::Line;
use polylogue_runtime::presentation::{Detail, Presentation};

/// A run, printed in whole messages.
pub(crate) struct Plain {
    fold: Presentation,
    renderer: Renderer,
    color: bool,
}

impl Plain {
    /// With colors, Markdown is rendered for rows of `width` columns; without, it is written unchanged, at a terminal in rows.
    pub(crate) fn new(format: Format) -> Self {
        let color = format.width.is_some();
        let detail = if format.whole { Detail::Whole } else { Detail::Brief };
        Self { fold: Presentation::new(detail), renderer: Renderer::new(format), color }
    }

    /// Shows pictures so.
    pub(crate) fn show(&mut self, pictures: Pictures) {
        self.renderer.pictures = pictures;
    }

    /// The person has typed this answer on the screen.
    pub(crate) fn typed(&mut self, at: &Path, question: &Question, text: &str) {
        self.renderer.typed(at, question, text);
    }

    pub(crate) fn recall(&mut self, event: &Event) {
        self.lines(event);
        self.renderer.begin_again();
    }

    pub(crate) fn event(&mut self, event: &Event) -> String {
        written(&self.lines(event), self.color)
    }

    fn lines(&mut self, event: &Event) -> Vec<Line> {
        self.fold.event(event).iter().flat_map(|item| self.renderer.item(item)).collect()
    }

    pub(crate) fn end(&mut self, ending: &RunEnd) -> String {
        let unfinished = self.fold.finish();
        let mut lines: Vec<Line> = unfinished.iter().flat_map(|item| self.renderer.item(item)).collect();
        if self.renderer.has_begun() {
            lines.push(Line::default());
        }
        lines.extend(ending.lines(self.renderer.format.columns()));
        written(&lines, self.color)
    }
}

/// `lines` with their ends.
pub(crate) fn written(lines: &[Line], color: bool) -> String {
    Sanitized::lines(lines, color).to_string()
}
