//! What need not be told, because the next event tells it.

use polylogue::Handoff;
use polylogue::code::{CALL_ID, reply_of};
use polylogue_core::{Body, Call, Message, Outcome, Part, Path, TurnRequest};
use serde_json::Value;

use super::call::result_text;
use super::renderer::Key;

/// Whether `next` tells `text`, which was said in private before it: a summary that was asked for aside, an answer that
/// is then said, passes or leaves.
pub(crate) fn tells(next: &Body, text: &str) -> bool {
    match next {
        Body::Closed { summary, .. } => summary.trim() == text.trim(),
        Body::Message(message) => message.plain().trim() == text.trim(),
        Body::Passed { .. } => text.trim().is_empty(),
        Body::Left { .. } | Body::Stopped { .. } => true,
        // The private choice of the next speaker follows.
        Body::TurnStarted { turns: cues } => cues.iter().any(is_chosen),
        _ => false,
    }
}

/// Whether a participant has a turn in the chat after a choice.
fn is_chosen(cue: &TurnRequest) -> bool {
    cue.choice.is_some() && !cue.to.is_private()
}

/// Whether the call runs code that stood in a message: the message that follows has the result.
pub(super) fn runs_code(id: &str) -> bool {
    id.starts_with(CALL_ID)
}

/// What `message` says besides the results of the code that its author ran in the same turn: nothing if it does not have them.
pub(super) fn besides_results(message: &Message, outcomes: &[Outcome]) -> Option<Vec<Part>> {
    let results = if outcomes.is_empty() { return None } else { reply_of(outcomes) };
    let has_all = results.iter().all(|result| message.parts.contains(result));
    has_all.then(|| message.parts.iter().filter(|part| !results.contains(part)).cloned().collect())
}

/// The words with which `call` hands over, when they are its result: they are posted as a message, too.
pub(super) fn note_of_transfer(call: &Call, outcome: &Outcome) -> Option<String> {
    let is_transfer = call.tool.starts_with(Handoff::PREFIX);
    is_transfer.then(|| result_text(outcome)).filter(|text| !text.trim().is_empty())
}

/// Whether `text` stands among the arguments of `call`.
pub(super) fn is_argument(call: &Call, text: &str) -> bool {
    let fields = call.args.as_object().into_iter().flat_map(serde_json::Map::values);
    fields.filter_map(Value::as_str).any(|value| value.trim() == text.trim())
}

/// Whether `message` has the words of a handoff that were `told` with its call, and nothing else.
pub(super) fn is_of_handoff(told: Option<(Key, String)>, at: &Path, message: &Message) -> bool {
    told.is_some_and(|((chat, who), words)| {
        chat == *at && who == message.from && *words == *message.plain() && message.parts.len() == 1
    })
}
