//! From a request to the bytes of its body.
//!
//! What is written of a view is kept in its [`EncodeCache`](polylogue_core::EncodeCache): the next request of the same view writes only what is new, into
//! the same buffer. A long conversation thus costs what its new entries cost.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use polylogue_core::{BEGIN, Entry, GO_ON, Part, Request, plain};
use serde_json::Value;

use super::json::{self, separate};
use super::pictures;
use super::protocol::{NOTED, Protocol, Style};
use crate::api::Api;

/// A body, and how to get back the part of it that stays true for the next request.
pub(crate) struct Body {
    bytes: Bytes,
    kept: Prefix,
}

impl Body {
    /// The bytes to send; cloning them is cheap.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Gives the buffer back to the view of `request`, cut to what stays true.
    pub(crate) fn give_back(self, request: &Request<'_>) {
        let Self { bytes, kept } = self;
        // The buffer is ours again once the transport has dropped it; until then it has to be copied.
        let mut buffer = bytes
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(shared.get(..kept.length).unwrap_or_default()));
        buffer.truncate(kept.length);
        request.encoded.put(Kept { prefix: kept, buffer });
    }
}

/// What a view's buffer holds: everything up to the last message that may still grow.
struct Kept {
    prefix: Prefix,
    buffer: BytesMut,
}

struct Prefix {
    api: Api,
    model: Box<str>,
    system: Option<Box<str>>,
    merge: bool,
    vision: bool,
    fold: bool,
    omit: bool,
    bridge: bool,
    /// How many entries are written.
    entries: usize,
    /// How many bytes they take, the beginning of the body included.
    length: usize,
}

impl Prefix {
    fn fits<P: Protocol>(&self, request: &Request<'_>, model: &str, style: &Style) -> bool {
        self.api == P::API
            && *self.model == *model
            && (self.merge, self.vision) == (style.merge, style.vision)
            && (self.fold, self.omit, self.bridge) == (style.fold, style.omit, style.bridge)
            && self.system.as_deref() == request.system
            && self.entries <= request.entries.len()
    }
}

/// Writes the body of `request` to `model`.
pub(crate) fn encode<P: Protocol>(request: &Request<'_>, model: &str, style: &Style) -> Body {
    // An extra field wins over ours, the model's name included.
    let model = request.params.extra.get("model").and_then(Value::as_str).unwrap_or(model);
    let kept = request.encoded.take::<Kept>().filter(|kept| kept.prefix.fits::<P>(request, model, style));
    let Kept { mut prefix, mut buffer } = kept.unwrap_or_else(|| begin::<P>(request, model, style));
    let open = open_group(request.entries, style).max(prefix.entries);
    write_groups::<P>(&mut buffer, request, prefix.entries..open, style);
    prefix.entries = open;
    prefix.length = buffer.len();
    write_groups::<P>(&mut buffer, request, open..request.entries.len(), style);
    buffer.put_u8(b']');
    P::tail(&mut buffer, request, style);
    Body { bytes: buffer.freeze(), kept: prefix }
}

/// Everything before the first entry.
fn begin<P: Protocol>(request: &Request<'_>, model: &str, style: &Style) -> Kept {
    let mut buffer = BytesMut::with_capacity(4096);
    buffer.extend_from_slice(br#"{"model":"#);
    json::string(&mut buffer, model);
    buffer.extend_from_slice(br#","messages":["#);
    if let Some(system) = system_of(request).filter(|_| !style.fold) {
        P::system(&mut buffer, system);
    }
    let system = request.system.map(Into::into);
    let Style { merge, vision, fold, omit, bridge, .. } = *style;
    let (model, length) = (model.into(), buffer.len());
    let prefix = Prefix { api: P::API, model, system, merge, vision, fold, omit, bridge, entries: 0, length };
    Kept { prefix, buffer }
}

/// The system text, if it says anything.
fn system_of<'a>(request: &Request<'a>) -> Option<&'a str> {
    request.system.filter(|text| !text.trim().is_empty())
}

/// Where the last group of entries begins: what others say next may join its message, so it is not yet final. Nor are
/// results with pictures, which stand after the last result of a run.
fn open_group(entries: &[Entry], style: &Style) -> usize {
    let others = |entry: &&Entry| style.merge && is_user(entry, style);
    let group = entries.len() - entries.iter().rev().take_while(others).count();
    let run = pictures::run(entries);
    let is_shown = style.vision && run.iter().any(|entry| pictures::of(entry).next().is_some());
    if is_shown { entries.len() - run.len() } else { group }
}

/// Whether `next` goes into the same message as `entry` before it: strict chat templates want speakers to alternate. A system
/// text within the conversation is there because it was asked for, so it keeps its role. Everything else that such templates
/// want is true of every view.
fn joins(entry: &Entry, next: &Entry, style: &Style) -> bool {
    style.merge && is_user(entry, style) && is_user(next, style)
}

/// Whether an entry goes in the role of the user: where no system role is known, all that others say does.
const fn is_user(entry: &Entry, style: &Style) -> bool {
    matches!(entry, Entry::User { .. }) || style.fold && matches!(entry, Entry::System { .. })
}

/// Writes the messages of the entries in `range`, which begins with a new message.
fn write_groups<P: Protocol>(out: &mut BytesMut, request: &Request<'_>, range: Range<usize>, style: &Style) {
    let (all, mut at) = (request.entries, range.start);
    let entries = all.get(range).unwrap_or_default();
    for group in entries.chunk_by(|entry, next| joins(entry, next, style)) {
        let before = all.get(..at).unwrap_or_default();
        at += group.len();
        let Some(first) = group.first() else { continue };
        let folded = system_of(request).filter(|_| style.fold && before.is_empty()).map(Part::text);
        let shown = pictures_before(before, style);
        let joined = style.merge && is_user(first, style);
        // Pictures that stand apart stand between the results and what is said next.
        if shown.is_empty() || joined {
            write_between::<P>(out, before.last(), first, folded.as_ref(), style);
        }
        let shown = if joined { shown } else { Vec::new() };
        separate(out);
        match first {
            Entry::System { parts } if !style.fold => P::system(out, &plain(parts)),
            Entry::System { .. } | Entry::User { .. } => {
                let parts = folded.iter().chain(&shown).chain(group.iter().flat_map(Entry::parts));
                P::user(out, parts);
            }
            Entry::Assistant { parts } => P::assistant(out, parts, style),
            Entry::Tool { id, tool, outcome } => P::tool(out, id, tool, outcome),
        }
        let next = all.get(at);
        if !next.is_some_and(|next| matches!(next, Entry::Tool { .. }) || style.merge && is_user(next, style))
        {
            pictures::write::<P>(out, pictures::run(all.get(..at).unwrap_or_default()), style);
        }
    }
}

/// What shows the pictures of the results that `entries` end with, to a model that sees.
fn pictures_before(entries: &[Entry], style: &Style) -> Vec<Part> {
    if style.vision { pictures::shown(pictures::run(entries)) } else { Vec::new() }
}

/// Writes what a provider needs between two entries, or before the first one: roles that alternate begin with the user.
fn write_between<P: Protocol>(
    out: &mut BytesMut,
    before: Option<&Entry>,
    next: &Entry,
    folded: Option<&Part>,
    style: &Style,
) {
    let (begin, go_on) = (Part::text(BEGIN), Part::text(GO_ON));
    let user = |out: &mut BytesMut, parts: &[&Part]| {
        separate(out);
        P::user(out, parts.iter().copied());
    };
    match (before, next) {
        (None, Entry::Assistant { .. }) if style.merge => match folded {
            Some(system) => user(out, &[system, &begin]),
            None => user(out, &[&begin]),
        },
        (None, Entry::Assistant { .. }) => folded.into_iter().for_each(|system| user(out, &[system])),
        (Some(Entry::Assistant { .. }), Entry::Assistant { .. }) if style.merge => user(out, &[&go_on]),
        (Some(Entry::Tool { .. }), Entry::User { .. } | Entry::System { .. }) if style.bridge => {
            separate(out);
            P::assistant(out, &[Part::text(NOTED)], style);
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
