//! Open questions, as clients receive them: as data.

use polylogue_core::OpenQuestion;
use polylogue_runtime::asked::{Choice, QuestionData};
use polylogue_wire::conversation as wire;

/// An open question as data.
pub(crate) fn asked(open: &OpenQuestion) -> wire::Asked {
    let QuestionData { text, kind, choices } = QuestionData::of(&open.question);
    let choice = |Choice { answer, effect, label }| wire::Choice { answer, effect: effect.to_owned(), label };
    wire::Asked::new(open, kind.word(), text, choices.into_iter().map(choice).collect())
}
