//! A reply that continues below what the person typed while it was written.

use super::Live;
use polylogue_runtime::presentation::TurnKey;

impl Live {
    /// The person types below while the run continues: nothing changes in place until the next frame. The reply that is being written
    /// stays as much as is there, and continues below.
    pub(crate) fn make_room(&mut self) -> String {
        if let Some(draft) = &self.draft {
            let (key, rest) = (draft.key.clone(), draft.rest());
            match draft.complete {
                true => self.seal(),
                false => self.seal_with("the reply continues below", &key.0),
            }
            self.renderer.interrupted();
            self.turns.known(&key).into_iter().for_each(|turn| turn.above = turn.text.len());
            self.continued = Some(rest);
        }
        let columns = self.resize().columns;
        let (mut out, above) = (String::new(), std::mem::take(&mut self.above));
        self.region.draw(&above, Vec::new(), columns, &mut out);
        out
    }

    /// The reply of `key` whose beginning stands above what the person typed continues on the screen, unless another one is there.
    pub(super) fn continue_draft(&mut self, key: &TurnKey) {
        let Some(mut draft) = self.continued.take_if(|draft| draft.key == *key) else { return };
        if self.draft.is_some() {
            return;
        }
        draft.rewrap(self.renderer.width(&key.0).unwrap_or(usize::MAX));
        if let Some(turn) = self.turns.known(key) {
            draft
                .catch_up(if self.renderer.format.thoughts { turn.thought.as_str() } else { "" }, &turn.text);
        }
        self.draft = Some(draft);
    }
}
