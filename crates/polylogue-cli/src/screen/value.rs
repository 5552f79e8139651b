//! Lines for the values in a message.

use polylogue::group_solve::Verdict;
use polylogue_core::Part;
use serde_json::Value;

/// The line for `value`, one of `parts`; nothing when its JSON stands there as a text.
pub(crate) enum Told {
    Nothing,
    /// Whether an agent holds its task to be complete.
    Words(String),
    Json(String),
}

pub(crate) fn told(value: &Value, parts: &[Part]) -> Told {
    let json = value.to_string();
    if parts.iter().any(|part| matches!(part, Part::Text(text) if **text == *json)) {
        return Told::Nothing;
    }
    verdict(value).map_or(Told::Json(json), Told::Words)
}

/// The same as one text.
pub(crate) fn text(value: &Value, parts: &[Part]) -> Option<String> {
    match told(value, parts) {
        Told::Nothing => None,
        Told::Words(words) => Some(format!("({words})")),
        Told::Json(json) => Some(json),
    }
}

/// What an agent decided of its task, if `parts` have it.
pub(crate) fn decision(parts: &[Part]) -> Option<String> {
    parts.iter().find_map(|part| match part {
        Part::Data(value) => verdict(value),
        _ => None,
    })
}

fn verdict(value: &Value) -> Option<String> {
    let Verdict { complete, reply, unclear } = serde_json::from_value(value.get("verdict")?.clone()).ok()?;
    let reply = if reply.trim().is_empty() { "nothing" } else { reply.trim() };
    Some(match (complete, unclear) {
        (true, _) => format!("the task is complete: {reply}"),
        (false, false) => format!("the task is not complete: {reply}"),
        (false, true) => format!("the task counts as not complete, as the answer says neither: {reply}"),
    })
}
