//! Events as JSON, one a line, for programs.

use serde::Serialize;

use super::text::visible;

/// `value`, such as an event, as one line of JSON, with its end. Reads back as the same.
///
/// JSON escapes most control characters by itself, but not DEL and the C1 controls, which some terminals obey, and not what
/// reorders text or hides in it.
///
/// # Errors
/// When it holds what JSON cannot.
pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    let mut line = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Outside of strings JSON has none of these.
        if visible(c) == c {
            line.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| line.push_str(&format!("\\u{unit:04x}")));
        }
    }
    line.push('\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Body, Event, Message, Name, Path, Timestamp};

    use super::*;

    #[test]
    fn an_event_is_one_line_that_no_terminal_obeys() {
        let text = "a\n\x1b[2J\u{9b}31m\x7f\u{a0}\u{202e}\u{feff}";
        let body = Body::Message(Message::text(Name::user(), text));
        let event = Event { seq: 3, at: Path::root(), time: Timestamp(7), ran_ms: 0, body };
        let json = line(&event).unwrap();
        assert!(json.ends_with("}\n") && json.matches('\n').count() == 1);
        assert!(json.trim_end().chars().all(|c| visible(c) == c), "{json}");
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }
}
