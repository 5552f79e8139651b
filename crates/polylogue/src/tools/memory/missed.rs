//! Searches that an embedding model failed, in the log.

use std::collections::BTreeSet;

use polylogue_core::{Body, Event, Part, ToolResult};
use polylogue_memory::Recalled;

use super::remind::LOOKUP;
use super::tools::RECALL;

/// Returns why facts were looked for by words only although the memory has an embedding model, as [`Recalled::missed`] says it, for the
/// first search among `events` of which this is so.
///
/// ```
/// use polylogue::tools::memory::words_only;
/// assert_eq!(words_only(&[]), None, "nothing was searched");
/// ```
pub fn words_only<'e>(events: impl IntoIterator<Item = &'e Event>) -> Option<&'e str> {
    let mut searches = BTreeSet::new();
    events.into_iter().find_map(|event| match &event.body {
        Body::ToolCalled { who, call } if [RECALL, LOOKUP].contains(&&*call.tool) => {
            searches.insert((&event.chat, who, &*call.id));
            None
        }
        Body::ToolReturned { who, id, result } if searches.remove(&(&event.chat, who, &**id)) => {
            missed(result)
        }
        _ => None,
    })
}

/// What a search says after the facts: in a part of its own, or in parentheses on the last line.
fn missed(result: &ToolResult) -> Option<&str> {
    let mut texts = result.parts.iter().enumerate().filter_map(|(nth, part)| match part {
        Part::Text(text) => Some((nth, &**text)),
        _ => None,
    });
    let (nth, text) = texts.next_back()?;
    let before = text.get(..text.rfind(Recalled::WORDS_ONLY)?)?;
    let line = text.get(before.rfind('\n').map_or(0, |end| end + 1)..)?;
    match line.strip_prefix('(') {
        Some(inner) => Some(inner.strip_suffix(')').unwrap_or(inner)),
        None => (nth > 0).then_some(line),
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Name, Path, Timestamp, ToolCall, ToolStatus};
    use serde_json::json;

    use super::*;

    /// What is said of one call of `tool` with this result.
    fn said(tool: &str, parts: &[&str]) -> Option<String> {
        let who = Name::new("Ann").unwrap();
        let call = ToolCall { id: "1".into(), tool: tool.into(), args: json!({}) };
        let result = ToolResult::new(ToolStatus::Done, parts.iter().copied().map(Part::text).collect());
        let bodies =
            [Body::ToolCalled { who: who.clone(), call }, Body::ToolReturned { who, id: "1".into(), result }];
        let event = |(seq, body)| {
            let (chat, time) = (Path::root(), Timestamp(0));
            Event { seq, chat, time, ran_ms: 0, inbox: None, body }
        };
        let events: Vec<Event> = (0..).zip(bodies).map(event).collect();
        words_only(&events).map(str::to_owned)
    }

    #[test]
    fn searches_say_why_their_embedding_model_failed() {
        let why = "looked for by words only: m:v: the provider answered with status 401";
        let fact = "#1 Tea is looked for by words only: here.";
        assert_eq!(said(LOOKUP, &["nothing that fits", why]).as_deref(), Some(why));
        assert_eq!(said(RECALL, &[&format!("{fact}\n({why})")]).as_deref(), Some(why));
        let some = format!("fact 2 was {why}");
        assert_eq!(said(LOOKUP, &[fact, &some]).as_deref(), Some(&*some));
        // A fact, and the result of another tool.
        assert_eq!(
            [said(LOOKUP, &[fact]), said(RECALL, &[fact]), said("web", &["", why])],
            [None, None, None]
        );
    }
}
