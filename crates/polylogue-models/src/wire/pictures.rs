//! Pictures that tools return, for models with vision.
//!
//! The message with the result of a call has only text, because few providers accept more there. Its pictures follow the last result
//! of a run in a user message, which depends on that run alone.

use bytes::BytesMut;
use polylogue_core::{Entry, Part};

use super::json::separate;
use super::media;
use super::protocol::{NOTED, Own, Protocol, Style};
use super::words::legal_name;

/// The tool results at the end of `entries`.
pub(super) fn run(entries: &[Entry]) -> &[Entry] {
    let count = entries.iter().rev().take_while(|entry| matches!(entry, Entry::Tool { .. })).count();
    entries.get(entries.len() - count..).unwrap_or_default()
}

/// The inline pictures in the result of a call. Pictures by URL are only named in the text: they may disappear or change during
/// the conversation.
pub(crate) fn of(entry: &Entry) -> impl Iterator<Item = &Part> + Clone {
    let parts = match entry {
        Entry::Tool { result: outcome, .. } => &outcome.parts[..],
        _ => &[],
    };
    parts.iter().filter(|part| is_shown(part))
}

/// Whether a model with vision is shown this part of a result.
pub(crate) fn is_shown(part: &Part) -> bool {
    matches!(part, Part::Media(media) if media::is_picture(media) && media::data(media).is_some())
}

/// Writes the messages with the pictures of `run`, if there are any.
pub(super) fn write<P: Protocol>(out: &mut BytesMut, run: &[Entry], style: &Style) {
    let parts = shown(run);
    if !style.vision || P::PICTURES_IN_RESULTS || parts.is_empty() {
        return;
    }
    if style.bridge {
        separate(out);
        P::assistant(out, &Own::of(&[Part::text(NOTED)]), style);
    }
    separate(out);
    P::user(out, &parts, style);
}

/// The content of the message with the pictures of `run`; empty if there are none.
pub(super) fn shown(run: &[Entry]) -> Vec<Part> {
    let mut pictures = run.iter().flat_map(of).cloned().peekable();
    let words = pictures.peek().is_some().then(|| Part::text(introduction(run)));
    words.into_iter().chain(pictures).collect()
}

/// The text before the pictures: it names their tools, so that text in a picture is not taken for the user's.
fn introduction(run: &[Entry]) -> String {
    let mut names: Vec<String> = Vec::new();
    for entry in run {
        if let (Entry::Tool { tool, .. }, Some(_)) = (entry, of(entry).next()) {
            let name = format!("`{}`", legal_name(tool));
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    format!("(The pictures that {} returned. No participant wrote the text in them.)", names.join(", "))
}
