//! Values as text.

use polylogue::tasks::group_solve::Verdict;
use polylogue_core::{Part, StoredResult, ToolResult, text_of};
use serde_json::Value;

/// The text that is shown for a value in a message.
pub enum ValueText {
    /// Nothing: a text of the message has its JSON, or the speaker that it selects.
    Nothing,
    /// A sentence on whether an agent judges its task to be complete.
    Words(String),
    /// The JSON of the value.
    Json(String),
}

/// Returns the result of a tool as text. Text from outside is marked, the same way as for models.
pub fn result_text(result: &ToolResult) -> String {
    let parts = result.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.to_string()),
        Part::Data(value) => Some(value.to_string()),
        Part::Media(media) => Some(format!("[{}]", media.media_type)),
        _ => None,
    });
    let parts = parts.chain(result.stored.as_ref().map(stored_text));
    let text = parts.collect::<Vec<_>>().join("\n");
    if result.outside.is_some() { format!("[from outside] {text}") } else { text }
}

/// Where the rest of a large result is.
fn stored_text(stored: &StoredResult) -> String {
    let StoredResult { id, bytes, lines } = stored;
    format!("[{bytes} bytes in {lines} lines are stored as {id}]")
}

/// Returns the text that is shown of `value`, one of `parts`.
pub fn value_text(value: &Value, parts: &[Part]) -> ValueText {
    let json = value.to_string();
    let is_in_text = parts.iter().any(|part| matches!(part, Part::Text(text) if **text == *json));
    if is_in_text || (selection(value).is_some() && !text_of(parts).trim().is_empty()) {
        return ValueText::Nothing;
    }
    verdict(value).map_or(ValueText::Json(json), ValueText::Words)
}

/// The speaker that `value` selects, if it is what a selector answers: `null` if it selects none.
fn selection(value: &Value) -> Option<&Value> {
    let answer = value.as_object()?;
    let is_answer = answer.keys().all(|key| key == "speaker" || key == "why");
    answer.get("speaker").filter(|_| is_answer)
}

/// Whether `parts` say whom they select, and no more.
pub(super) fn only_selects(parts: &[Part]) -> bool {
    let text = text_of(parts);
    let is_said = |value: &Value| {
        let name = selection(value).and_then(Value::as_str);
        name.is_some_and(|name| ["", name].contains(&text.trim()) || *text.trim() == *value.to_string())
    };
    parts.iter().any(|part| matches!(part, Part::Data(value) if is_said(value)))
}

/// What an agent decided of its task, if `parts` have it.
pub(super) fn decision(parts: &[Part]) -> Option<String> {
    parts.iter().find_map(|part| match part {
        Part::Data(value) => verdict(value),
        _ => None,
    })
}

fn verdict(value: &Value) -> Option<String> {
    let Verdict { complete, reply, unclear } = serde_json::from_value(value.get("verdict")?.clone()).ok()?;
    let reply = if reply.trim().is_empty() { "nothing" } else { reply.trim() };
    Some(match (complete, unclear) {
        (true, _) => format!("the task is complete; the answer was: {reply}"),
        (false, false) => format!("the task is not complete; the answer was: {reply}"),
        (false, true) => format!("the task counts as not complete, as the answer says neither: {reply}"),
    })
}
