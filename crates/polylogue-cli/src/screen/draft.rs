//! A reply while it is written.

use polylogue_core::{Audience, Part, text_of};

use super::markdown::Markdown;
use super::region::rows;
use super::renderer::Renderer;
use super::style::Style;
use super::text::Line;
use polylogue_runtime::presentation::TurnKey;

/// A reply that is shown as it comes in, below its head.
///
/// As long as it fits on the screen, all of it can still be taken back. Lines that have to leave the screen are
/// *frozen*: they are written permanently, and only lines that no later piece changes are.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) key: TurnKey,
    to: Audience,
    /// What of the reply stands further above, where the person typed something meanwhile.
    earlier: Earlier,
    thought: String,
    thoughts: Markdown,
    text: String,
    texts: Markdown,
    head_frozen: bool,
    frozen: usize,
    /// Whether the model is done with it. It is then said, or it was one of several.
    pub(super) complete: bool,
}

/// The beginning of a reply.
#[derive(Debug, Default)]
struct Earlier {
    thought: String,
    text: String,
}

impl Draft {
    pub(super) fn new(key: TurnKey, to: Audience, width: usize) -> Self {
        Self {
            key,
            to,
            earlier: Earlier::default(),
            thought: String::new(),
            thoughts: thoughts(width),
            text: String::new(),
            texts: Markdown::new(width, Style::PLAIN),
            head_frozen: false,
            frozen: 0,
            complete: false,
        }
    }

    /// What follows this part of the reply, which is to be sealed.
    pub(super) fn rest(&self) -> Self {
        let Earlier { thought, text } = &self.earlier;
        let earlier = Earlier { thought: thought.clone() + &self.thought, text: text.clone() + &self.text };
        Self {
            key: self.key.clone(),
            to: self.to.clone(),
            earlier,
            thought: String::new(),
            thoughts: self.thoughts.rest(),
            text: String::new(),
            texts: self.texts.rest(),
            head_frozen: false,
            frozen: 0,
            complete: self.complete,
        }
    }

    /// Whether the beginning of the reply stands further above.
    pub(super) const fn is_continued(&self) -> bool {
        !self.earlier.text.is_empty()
    }

    /// Adds what came in of the whole reply since its beginning was sealed.
    pub(super) fn catch_up(&mut self, thought: &str, text: &str) {
        self.think(thought.get(self.earlier.thought.len()..).unwrap_or_default());
        self.write(text.get(self.earlier.text.len()..).unwrap_or_default());
    }

    /// Adds reasoning. It is shown before the text; a model that reasons in between is shown right when it is done.
    pub(super) fn think(&mut self, piece: &str) {
        self.thought.push_str(piece);
        if self.text.is_empty() && !self.is_continued() {
            self.thoughts.push(piece);
        }
    }

    /// Adds text.
    pub(super) fn write(&mut self, piece: &str) {
        if self.text.is_empty() {
            self.thoughts.finish();
        }
        self.text.push_str(piece);
        self.texts.push(piece);
    }

    /// All of it is there.
    pub(super) fn finish(&mut self) {
        self.thoughts.finish();
        self.texts.finish();
        self.complete = true;
    }

    /// Whether it shows just what `parts` say, thoughts included if `with_thoughts`.
    pub(super) fn shows(&self, parts: &[Part], with_thoughts: bool) -> bool {
        let thought: String = parts.iter().filter_map(thought).collect();
        let is_whole = |all: &str, earlier: &str, own: &str| all.strip_prefix(earlier) == Some(own);
        is_whole(&text_of(parts), &self.earlier.text, &self.text)
            && (!with_thoughts
                || thought.is_empty()
                || is_whole(&thought, &self.earlier.thought, &self.thought))
    }

    /// Whether it is shown as said to `to`.
    pub(super) fn is_to(&self, to: &Audience) -> bool {
        self.to == *to
    }

    /// Whether some of it cannot be taken back.
    pub(super) const fn is_frozen(&self) -> bool {
        self.head_frozen
    }

    /// The same for rows of `width` columns, unless some of it is frozen.
    pub(super) fn rewrap(&mut self, width: usize) {
        if self.head_frozen {
            return;
        }
        self.thoughts = self.thoughts.emptied(width);
        if !self.is_continued() {
            self.thoughts.push(&self.thought);
        }
        self.texts = self.texts.emptied(width);
        self.texts.push(&self.text);
        if !self.text.is_empty() {
            self.thoughts.finish();
        }
        if self.complete {
            self.finish();
        }
    }

    /// Whether nothing follows what stands further above.
    fn is_shown_above(&self) -> bool {
        self.is_continued() && self.text.trim().is_empty()
    }

    fn settled(&self) -> impl Iterator<Item = &Line> {
        self.thoughts.settled().iter().chain(self.texts.settled())
    }

    /// The lines that cannot change any more and are not frozen; the first are the head, so many.
    fn final_lines(&self, renderer: &mut Renderer) -> (Vec<Line>, usize) {
        let is_headless = self.head_frozen || self.is_shown_above();
        let mut lines = if is_headless { Vec::new() } else { renderer.head(&self.key, &self.to) };
        let head = lines.len();
        let gutter = renderer.gutter(&self.key.0);
        lines.extend(self.settled().skip(self.frozen).map(|line| line.after(&gutter).trimmed()));
        (lines, head)
    }

    /// What to show in a region of `room` rows; what has to leave it is moved to `above`.
    pub(super) fn lines(
        &mut self,
        room: usize,
        columns: usize,
        renderer: &mut Renderer,
        above: &mut Vec<Line>,
    ) -> Vec<Line> {
        let gutter = renderer.gutter(&self.key.0);
        let (mut lines, head) = self.final_lines(renderer);
        let pending = [self.thoughts.pending(), self.texts.pending()].concat();
        let pending: Vec<Line> = pending.iter().map(|line| line.after(&gutter).trimmed()).collect();
        let height: usize = lines.iter().chain(&pending).map(|line| rows(line, columns)).sum();
        let excess = height.saturating_sub(room);
        let (leave, left) = leaving(&lines, excess, columns);
        if leave > 0 {
            // The head goes as a whole.
            let leave = leave.max(head).min(lines.len());
            above.extend(lines.drain(..leave));
            self.frozen += leave - head;
            self.head_frozen = true;
            renderer.in_turn(&self.key);
        }
        // One more makes room for the ellipsis.
        let (hidden, _) = leaving(&pending, if left > 0 { left + 1 } else { 0 }, columns);
        if hidden > 0 {
            lines.push(Line::new("…", Style::DIM).after(&gutter));
        }
        lines.extend(pending.into_iter().skip(hidden));
        lines
    }

    /// All that is not frozen, permanently.
    pub(super) fn seal(mut self, renderer: &mut Renderer) -> Vec<Line> {
        self.finish();
        let (lines, _) = self.final_lines(renderer);
        if !self.is_shown_above() {
            renderer.in_turn(&self.key);
        }
        lines
    }
}

fn thoughts(width: usize) -> Markdown {
    Markdown::new(width, Style { italic: true, ..Style::DIM })
}

fn thought(part: &Part) -> Option<&str> {
    match part {
        Part::Thought(text) => Some(text),
        _ => None,
    }
}

/// How many of the first `lines` have to go so that `excess` rows do, and how many rows are still too many then.
fn leaving(lines: &[Line], excess: usize, columns: usize) -> (usize, usize) {
    let mut left = excess;
    let leave = lines.iter().take_while(|line| {
        let more = left > 0;
        left = if more { left.saturating_sub(rows(line, columns)) } else { left };
        more
    });
    (leave.count(), left)
}
