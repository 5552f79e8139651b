//! Encodes requests as bytes.
//!
//! The encoded part of a view is kept in its [`EncodeCache`](polylogue_core::EncodeCache): the next request of the same view appends
//! only new entries to the same buffer, so that the cost of a request does not grow with the conversation.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use polylogue_core::{BEGIN, Entry, GO_ON, Part, Request, SealsSent, plain};
use serde_json::Value;

use super::ids::CallIds;
use super::json::{self, separate};
use super::pictures;
use super::protocol::{NOTED, Own, Protocol, Style};
use crate::api::Api;
use crate::config::SendReasoning;

/// An encoded body, and which part of it can be reused for the next request.
pub(crate) struct Body {
    bytes: Bytes,
    kept: Prefix,
    seals: Option<SealsSent>,
}

impl Body {
    /// The bytes to send; cloning them is cheap.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Returns the buffer to the view of `request`, truncated to the reusable part.
    pub(crate) fn give_back(self, request: &Request<'_>) {
        let Self { bytes, kept, seals } = self;
        // The buffer can be reused once the transport has dropped it; before that it must be copied.
        let mut buffer = bytes
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(shared.get(..kept.length).unwrap_or_default()));
        buffer.truncate(kept.length);
        request.encoded.put(ViewBuffer { prefix: kept, buffer, seals });
    }

    /// Which seals it has, if the model knows seals.
    pub(crate) const fn seals(&self) -> Option<&SealsSent> {
        self.seals.as_ref()
    }
}

/// A view's buffer: everything before the last message, which may still grow.
struct ViewBuffer {
    prefix: Prefix,
    buffer: BytesMut,
    seals: Option<SealsSent>,
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
    reasoning: SendReasoning,
    call_id_length: Option<usize>,
    /// Number of encoded entries.
    entries: usize,
    /// Their length in bytes, including the beginning of the body.
    length: usize,
}

impl Prefix {
    fn fits<P: Protocol>(&self, request: &Request<'_>, model: &str, style: &Style) -> bool {
        self.api == P::API
            && *self.model == *model
            && (self.merge, self.vision) == (style.merge, style.vision)
            && (self.fold, self.omit, self.bridge) == (style.fold, style.omit, style.bridge)
            && (self.reasoning, self.call_id_length) == (style.reasoning, style.call_id_length)
            && self.system.as_deref() == request.system
            && self.entries <= request.entries.len()
    }
}

/// Writes the body of `request` to `model`.
pub(crate) fn encode<P: Protocol>(request: &Request<'_>, model: &str, style: &Style) -> Body {
    // Extra fields take precedence, including the model's name.
    let model = request.params.extra.get("model").and_then(Value::as_str).unwrap_or(model);
    let seals =
        P::sealer(style).map(|wire| SealsSent::new(format!("{wire}:{model}"), request.system, request.tools));
    let begins = |kept: &ViewBuffer| match (&kept.seals, &seals) {
        (Some(kept), Some(seals)) => seals.begins_as(kept),
        (kept, seals) => kept.is_none() && seals.is_none(),
    };
    let fits = |kept: &ViewBuffer| kept.prefix.fits::<P>(request, model, style) && begins(kept);
    let kept = request.encoded.take::<ViewBuffer>().filter(fits);
    let kept = kept.unwrap_or_else(|| begin::<P>(request, model, style, seals));
    let ViewBuffer { mut prefix, mut buffer, mut seals } = kept;
    seals.iter_mut().for_each(|seals| seals.extend(request.entries));
    let ids = style.call_id_length.map(|length| CallIds::of(request.entries, length));
    let sent = Sent { seals: seals.as_ref(), ids: ids.as_ref() };
    let open = open_group(request.entries, style).max(prefix.entries);
    write_groups::<P>(&mut buffer, request, prefix.entries..open, style, sent);
    prefix.entries = open;
    prefix.length = buffer.len();
    write_groups::<P>(&mut buffer, request, open..request.entries.len(), style, sent);
    buffer.put_u8(b']');
    P::tail(&mut buffer, request, style);
    Body { bytes: buffer.freeze(), kept: prefix, seals }
}

/// Everything before the first entry.
fn begin<P: Protocol>(
    request: &Request<'_>,
    model: &str,
    style: &Style,
    seals: Option<SealsSent>,
) -> ViewBuffer {
    let mut buffer = BytesMut::with_capacity(4096);
    buffer.extend_from_slice(br#"{"model":"#);
    json::string(&mut buffer, model);
    buffer.extend_from_slice(br#","messages":["#);
    if let Some(system) = system_of(request).filter(|_| !style.fold) {
        P::system(&mut buffer, system);
    }
    let system = request.system.map(Into::into);
    let Style { merge, vision, fold, omit, bridge, reasoning, call_id_length, .. } = *style;
    let (model, length) = (model.into(), buffer.len());
    let api = P::API;
    let prefix = Prefix {
        api,
        model,
        system,
        merge,
        vision,
        fold,
        omit,
        bridge,
        reasoning,
        call_id_length,
        entries: 0,
        length,
    };
    ViewBuffer { prefix, buffer, seals }
}

/// The system text, if it says anything.
fn system_of<'a>(request: &Request<'a>) -> Option<&'a str> {
    request.system.filter(|text| !text.trim().is_empty())
}

/// The start of the last group of entries, which is not final: the next entry may be merged into its message. Pictures of results
/// follow the last result of a run, so those are not final either.
fn open_group(entries: &[Entry], style: &Style) -> usize {
    let others = |entry: &&Entry| style.merge && is_user(entry, style);
    let group = entries.len() - entries.iter().rev().take_while(others).count();
    let run = pictures::run(entries);
    let is_shown = style.vision && run.iter().any(|entry| pictures::of(entry).next().is_some());
    if is_shown { entries.len() - run.len() } else { group }
}

/// Whether `next` is merged into the message of `entry` before it, because strict chat templates require alternating roles. A
/// system message within the conversation keeps its role, because it was requested. Views meet all other requirements.
fn joins(entry: &Entry, next: &Entry, style: &Style) -> bool {
    style.merge && is_user(entry, style) && is_user(next, style)
}

/// Whether an entry has the role `user`: without support for the system role, all entries of others do.
const fn is_user(entry: &Entry, style: &Style) -> bool {
    matches!(entry, Entry::User { .. }) || style.fold && matches!(entry, Entry::System { .. })
}

/// What is sent of entries next to their parts.
#[derive(Clone, Copy)]
struct Sent<'a> {
    seals: Option<&'a SealsSent>,
    ids: Option<&'a CallIds>,
}

/// Writes the messages of the entries in `range`, which begins with a new message.
fn write_groups<P: Protocol>(
    out: &mut BytesMut,
    request: &Request<'_>,
    range: Range<usize>,
    style: &Style,
    sent: Sent<'_>,
) {
    let (all, mut at) = (request.entries, range.start);
    let entries = all.get(range).unwrap_or_default();
    for group in entries.chunk_by(|entry, next| joins(entry, next, style)) {
        let before = all.get(..at).unwrap_or_default();
        let sealed = sent.seals.is_some_and(|seals| seals.contains(at));
        at += group.len();
        let Some(first) = group.first() else { continue };
        let folded = system_of(request).filter(|_| style.fold && before.is_empty()).map(Part::text);
        let shown = pictures_before(before, style);
        let joined = style.merge && is_user(first, style);
        // Pictures are sent between the results and the next entry.
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
            Entry::Assistant { parts, verbatim } => {
                P::assistant(out, &Own::new(parts, verbatim.as_deref(), sealed, sent.ids), style);
            }
            Entry::Tool { id, tool, outcome } => {
                P::tool(out, sent.ids.map_or(id.as_str(), |ids| ids.get(id)), tool, outcome);
            }
        }
        let next = all.get(at);
        if !next.is_some_and(|next| matches!(next, Entry::Tool { .. }) || style.merge && is_user(next, style))
        {
            pictures::write::<P>(out, pictures::run(all.get(..at).unwrap_or_default()), style);
        }
    }
}

/// The message with the pictures of the last results of `entries`, for a model with vision.
fn pictures_before(entries: &[Entry], style: &Style) -> Vec<Part> {
    if style.vision { pictures::shown(pictures::run(entries)) } else { Vec::new() }
}

/// Writes the message that a provider requires between two entries, or before the first: alternating roles begin with `user`.
fn write_between<P: Protocol>(
    out: &mut BytesMut,
    before: Option<&Entry>,
    next: &Entry,
    folded: Option<&Part>,
    style: &Style,
) {
    let user = |out: &mut BytesMut, parts: &[&Part]| {
        separate(out);
        P::user(out, parts.iter().copied());
    };
    match (before, next) {
        (None, Entry::Assistant { .. }) if style.merge => match folded {
            Some(system) => user(out, &[system, &Part::text(BEGIN)]),
            None => user(out, &[&Part::text(BEGIN)]),
        },
        (None, Entry::Assistant { .. }) => folded.into_iter().for_each(|system| user(out, &[system])),
        (Some(Entry::Assistant { .. }), Entry::Assistant { .. }) if style.merge => {
            user(out, &[&Part::text(GO_ON)]);
        }
        (Some(Entry::Tool { .. }), Entry::User { .. } | Entry::System { .. }) if style.bridge => {
            separate(out);
            P::assistant(out, &Own::of(&[Part::text(NOTED)]), style);
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
