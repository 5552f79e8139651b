//! Open questions, as clients receive them: as data.

use polylogue_core::OpenQuestion;
use polylogue_runtime::asked::{Choice, QuestionData};
use polylogue_wire::conversation as wire;
use serde_json::Value;

use crate::replies;

/// Returns an open question as data: what the native API and MCP have in `asked`.
#[must_use]
pub fn asked(open: &OpenQuestion) -> wire::Asked {
    let QuestionData { text, kind, choices } = QuestionData::of(&open.question);
    let choice = |Choice { answer, effect, label }| wire::Choice { answer, effect: effect.to_owned(), label };
    wire::Asked::new(open, kind.word(), text, choices.into_iter().map(choice).collect())
}

/// Returns the JSON Schema of a question as data, as [`asked`] makes it.
///
/// ```
/// let schema = polylogue_server::asked_schema();
/// assert_eq!(schema["properties"]["kind"]["enum"][0], "turn");
/// ```
#[must_use]
pub fn asked_schema() -> Value {
    replies::question()
}
