//! Media that are more than a provider takes: they are named in the text, so that one of them, which a tool returned, does not make the
//! provider refuse every later request.

use std::borrow::Cow;

use polylogue_core::{Entry, Media, Part, ToolResult};

use super::pictures;
use super::protocol::{Protocol, Style};
use super::words::in_words;
use crate::media_limits::MediaLimits;

/// The entries, with media that are more than `limits` allow as texts that name them.
pub(super) fn within<'e>(entries: &'e [Entry], limits: &MediaLimits) -> Cow<'e, [Entry]> {
    let has_excess = |entry: &Entry| entry.parts().iter().any(|part| exceeds(part, limits));
    match *limits != MediaLimits::NONE && entries.iter().any(has_excess) {
        true => Cow::Owned(entries.iter().map(|entry| entry_within(entry, limits)).collect()),
        false => Cow::Borrowed(entries),
    }
}

fn exceeds(part: &Part, limits: &MediaLimits) -> bool {
    matches!(part, Part::Media(media) if limits.excess(media).is_some())
}

fn entry_within(entry: &Entry, limits: &MediaLimits) -> Entry {
    match entry {
        Entry::System { parts } => Entry::System { parts: parts_within(parts, limits) },
        Entry::User { parts } => Entry::User { parts: parts_within(parts, limits) },
        Entry::Tool { id, tool, result: outcome } => {
            let parts = parts_within(&outcome.parts, limits);
            Entry::Tool {
                id: id.clone(),
                tool: tool.clone(),
                result: ToolResult { parts, ..outcome.clone() },
            }
        }
        Entry::Assistant { parts, verbatim } => {
            Entry::Assistant { parts: parts_within(parts, limits), verbatim: verbatim.clone() }
        }
    }
}

fn parts_within(parts: &[Part], limits: &MediaLimits) -> Vec<Part> {
    let within = |part: &Part| match part {
        Part::Media(media) if exceeds(part, limits) => Part::text(in_words(media)),
        part => part.clone(),
    };
    parts.iter().map(within).collect()
}

/// The media of `entries` that are sent as such, but for documents that tools return.
pub(crate) fn sent_media<'e, P: Protocol>(entries: &'e [Entry], style: &Style) -> Vec<&'e Media> {
    let shown = |entry: &'e Entry| match entry {
        Entry::User { parts } | Entry::System { parts } => parts.as_slice(),
        Entry::Tool { result: outcome, .. } if style.vision => outcome.parts.as_slice(),
        Entry::Tool { .. } | Entry::Assistant { .. } => &[],
    };
    let is_result = |entry: &Entry| matches!(entry, Entry::Tool { .. });
    let mut sent = Vec::new();
    for entry in entries {
        for part in shown(entry) {
            let Part::Media(media) = part else { continue };
            let has_form = P::takes(media, style.deviations.media) && style.media.excess(media).is_none();
            if has_form && (!is_result(entry) || pictures::is_shown(part)) {
                sent.push(media);
            }
        }
    }
    sent
}
