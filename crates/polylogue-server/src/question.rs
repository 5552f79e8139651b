//! Open questions, as clients receive them: as data, or as texts for clients that do not show the conversation with them.

use polylogue_core::{LogId, OpenQuestion, Store as _};
use polylogue_runtime::asked::{Choice, QuestionData, Received, is_turn};
use polylogue_wire::conversation as wire;

use crate::problem::Problem;
use crate::tenants::Tenant;

/// An open question as data.
pub(crate) fn asked(open: &OpenQuestion) -> wire::Asked {
    let QuestionData { text, kind, choices } = QuestionData::of(&open.question);
    let choice = |Choice { answer, effect, label }| wire::Choice { answer, effect: effect.to_owned(), label };
    wire::Asked::new(open, kind.word(), text, choices.into_iter().map(choice).collect())
}

/// The texts of the questions `open` in a conversation.
pub(crate) async fn texts(
    tenant: &Tenant,
    id: &LogId,
    open: &[OpenQuestion],
) -> Result<Vec<String>, Problem> {
    let events = match open.iter().any(|open| is_turn(&open.question)) {
        true => tenant.runtime.store().read(id, 0).await?,
        false => Vec::new(),
    };
    let text = |open: &OpenQuestion| {
        let mut received = Received::default();
        events.iter().take_while(|event| event.seq < open.seq).for_each(|event| received.add(event));
        received.text(&open.at, &open.question)
    };
    Ok(open.iter().map(text).collect())
}
