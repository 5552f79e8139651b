//! Replies that continue below what the person typed while they were written.

use polylogue_core::Part;

use super::Live;
use crate::screen::call::calls_tools;
use crate::screen::draft::Draft;
use polylogue_runtime::presentation::TurnKey;

impl Live {
    /// The person types below while the run continues: nothing changes in place until the next frame. The reply that is being written
    /// stays as much as is there, and continues below.
    pub(crate) fn make_room(&mut self) -> String {
        if let Some(draft) = &self.draft {
            let (key, rest) = (draft.key.clone(), draft.rest());
            match draft.complete {
                true => self.seal(),
                false => self.seal_with("the reply continues below"),
            }
            self.renderer.interrupted();
            self.turns.known(&key).into_iter().for_each(|turn| turn.above = turn.text.len());
            self.continued.push(rest);
        }
        let columns = self.resize().columns;
        let (mut out, above) = (String::new(), std::mem::take(&mut self.above));
        self.region.draw(&above, Vec::new(), columns, &mut out);
        out
    }

    /// The reply of `key` whose beginning stands above what the person typed continues on the screen, unless another one is there.
    pub(super) fn continue_draft(&mut self, key: &TurnKey) {
        if self.draft.is_none() {
            self.draft = self.take_continued(key);
        }
    }

    /// What follows of the reply of `key` whose beginning stands above what the person typed, with all that has come in since.
    pub(super) fn take_continued(&mut self, key: &TurnKey) -> Option<Draft> {
        let mut draft = self.remove_continued(key)?;
        draft.rewrap(self.renderer.width(&key.0).unwrap_or(usize::MAX));
        if let Some(turn) = self.turns.known(key).filter(|_| !draft.complete) {
            let thought = if self.renderer.format.thoughts { turn.thought.as_str() } else { "" };
            draft.catch_up(thought, &turn.text);
        }
        Some(draft)
    }

    pub(super) fn remove_continued(&mut self, key: &TurnKey) -> Option<Draft> {
        let index = self.continued.iter().position(|draft| draft.key == *key)?;
        Some(self.continued.remove(index))
    }

    /// The model is done with a reply whose beginning stands above what the person typed, while another reply is on the
    /// screen. Returns whether there is such a reply of `key`, which just says `parts`.
    pub(super) fn replied_below(&mut self, key: &TurnKey, parts: &[Part]) -> bool {
        let Some(mut draft) = self.take_continued(key) else { return false };
        let is_whole = draft.shows(parts, self.renderer.format.thoughts);
        if is_whole {
            draft.finish();
        }
        match is_whole && calls_tools(parts) {
            true => self.print_rest(draft),
            false => self.continued.push(draft),
        }
        is_whole
    }

    /// Writes permanently what follows of a reply of `key` whose beginning stands above what the person typed, while another
    /// reply is on the screen. Returns whether there is one, which `is_said`.
    pub(super) fn said_below(&mut self, key: &TurnKey, is_said: impl FnOnce(&Draft) -> bool) -> bool {
        let Some(draft) = self.take_continued(key) else { return false };
        let is_said = is_said(&draft);
        match is_said {
            true => self.print_rest(draft),
            false => self.continued.push(draft),
        }
        is_said
    }

    fn print_rest(&mut self, draft: Draft) {
        let lines = draft.seal(&mut self.renderer);
        self.print(lines);
    }
}
