//! Messages as progress.

use polylogue_core::{Body, Event};

/// How much of a message is sent as progress, in bytes.
const LONGEST: usize = 200;

/// The beginning of a message in a line, with its author; `None` for an event that is no message.
#[must_use]
pub fn progress_line(event: &Event) -> Option<String> {
    let Body::Message(message) = &event.body else { return None };
    let text = message.plain();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = line.get(..line.floor_char_boundary(LONGEST)).unwrap_or_default();
    let more = if shown.len() < line.len() { " …" } else { "" };
    Some(format!("{}: {shown}{more}", message.from))
}
