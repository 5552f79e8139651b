//! Encodes requests as bytes.
//!
//! The encoded part of a view is kept in its [`EncodeCache`](polylogue_core::EncodeCache): the next request of the same view appends
//! only new entries to the same buffer, so that the cost of a request does not grow with the conversation.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use polylogue_core::{BEGIN, CONTINUE, Entry, Part, Request, SealsSent, text_of};
use serde_json::Value;

use super::excess::within;
use super::ids::CallIds;
use super::json::separate;
use super::marks;
use super::pictures;
use super::protocol::{NOTED, Own, Protocol, SentResult, Style, SystemWithin};
use super::words::is_wordless;
use crate::api::Api;

/// An encoded body, and which part of it can be reused for the next request.
pub(crate) struct Body {
    bytes: Bytes,
    kept: Prefix,
    seals: Option<SealsSent>,
    /// The last message, whose end the next request marks.
    end: Option<End>,
    /// The mark of the request before, which is not kept.
    mark: Option<Range<usize>>,
}

impl Body {
    /// The bytes to send; cloning them is cheap.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Returns the buffer to the view of `request`, truncated to the reusable part.
    pub(crate) fn give_back(self, request: &Request<'_>) {
        let Self { bytes, kept, seals, end, mark } = self;
        let mark = mark.filter(|mark| mark.start < kept.length);
        let length = kept.length + mark.as_ref().map_or(0, Range::len);
        // The buffer can be reused once the transport has dropped it; before that it must be copied.
        let mut buffer = bytes
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(shared.get(..length).unwrap_or_default()));
        buffer.truncate(length);
        mark.iter().for_each(|mark| marks::remove(&mut buffer, mark));
        request.encoded.put(ViewBuffer { prefix: kept, buffer, seals, end });
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
    /// The last message of the request.
    end: Option<End>,
}

/// The last message of a request, in the next of which it can be another: a system message that was the last one joins the message of
/// what is said after it.
struct End {
    range: Range<usize>,
    digest: u64,
}

impl End {
    fn of(buffer: &BytesMut, range: Range<usize>) -> Self {
        Self { digest: digest(buffer.get(range.clone())), range }
    }

    /// Whether the message is in the body of the next request, too, at the same place.
    fn is_in(&self, buffer: &BytesMut) -> bool {
        self.digest == digest(buffer.get(self.range.clone()))
    }
}

fn digest(bytes: Option<&[u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

struct Prefix {
    api: Api,
    model: Box<str>,
    system: Option<Box<str>>,
    style: Style,
    /// Number of encoded entries.
    entries: usize,
    /// Their length in bytes, including the beginning of the body.
    length: usize,
}

impl Prefix {
    fn fits<P: Protocol>(&self, request: &Request<'_>, model: &str, style: &Style) -> bool {
        self.api == P::API
            && *self.model == *model
            && self.style == *style
            && self.system.as_deref() == request.system
            && self.entries <= request.entries.len()
    }
}

/// The name of the model that is asked: extra fields take precedence.
pub(crate) fn model_of<'a>(request: &Request<'a>, model: &'a str) -> &'a str {
    request.params.extra.get("model").and_then(Value::as_str).unwrap_or(model)
}

/// Writes the body of `request` to `model`.
pub(crate) fn encode<P: Protocol>(request: &Request<'_>, model: &str, style: &Style) -> Body {
    let model = model_of(request, model);
    let seals =
        P::sealer(style).map(|wire| SealsSent::new(format!("{wire}:{model}"), request.system, request.tools));
    let begins = |kept: &ViewBuffer| match (&kept.seals, &seals) {
        (Some(kept), Some(seals)) => seals.begins_as(kept),
        (kept, seals) => kept.is_none() && seals.is_none(),
    };
    let fits = |kept: &ViewBuffer| kept.prefix.fits::<P>(request, model, style) && begins(kept);
    let kept = request.encoded.take::<ViewBuffer>().filter(fits);
    let kept = kept.unwrap_or_else(|| begin::<P>(request, model, style, seals));
    let ViewBuffer { mut prefix, mut buffer, mut seals, end: before } = kept;
    seals.iter_mut().for_each(|seals| seals.extend(request.entries));
    let entries = within(request.entries, style.media);
    let request = &Request { entries: &entries, ..*request };
    let ids = style.call_id_length.map(|length| CallIds::of(request.entries, length));
    let sent = Sent { seals: seals.as_ref(), ids: ids.as_ref() };
    let open = open_group::<P>(request.entries, style).max(prefix.entries);
    let cache_mark = P::CACHE_MARK.filter(|_| style.marks);
    if let (Some(mark), 0) = (cache_mark, prefix.entries) {
        // The first message is the same in every request, so its mark stays.
        prefix.entries = first_group::<P>(request.entries, style).min(open);
        write_groups::<P>(&mut buffer, request, 0..prefix.entries, style, sent);
        if prefix.entries > 0 {
            mark.put_first(&mut buffer, style.long_marks);
        }
    }
    write_groups::<P>(&mut buffer, request, prefix.entries..open, style, sent);
    prefix.entries = open;
    prefix.length = buffer.len();
    write_groups::<P>(&mut buffer, request, open..request.entries.len(), style, sent);
    let is_long = style.accepts.cache_min.is_none_or(|least| buffer.len() as u64 >= least);
    let ends_with_own = matches!(request.entries.last(), Some(Entry::Assistant { .. }));
    let cache_mark = cache_mark.filter(|_| is_long && !ends_with_own);
    let end = cache_mark.map(|mark| End::of(&buffer, prefix.length..mark.end(&buffer)));
    let mark = cache_mark.and_then(|mark| {
        let before = before.filter(|before| before.is_in(&buffer));
        match prefix.entries {
            // It is the first one, too.
            0 => mark.put_first(&mut buffer, style.long_marks),
            _ => mark.put(&mut buffer),
        }
        mark.put_at(&mut buffer, before?.range.end)
    });
    buffer.put_u8(b']');
    let lacks_reasoning = lacks_reasoning(request.entries, seals.as_ref());
    P::tail(&mut buffer, request, &Style { lacks_reasoning, ..*style });
    Body { bytes: buffer.freeze(), kept: prefix, seals, end, mark }
}

/// Whether the last message of the assistant calls tools, and does not begin with its reasoning.
fn lacks_reasoning(entries: &[Entry], seals: Option<&SealsSent>) -> bool {
    let last = entries.iter().enumerate().rev().find_map(|(at, entry)| match entry {
        Entry::Assistant { parts, verbatim } => Some((at, parts, verbatim)),
        _ => None,
    });
    let Some((at, parts, verbatim)) = last else { return false };
    let own = Own::new(parts, verbatim.as_deref(), seals.is_some_and(|seals| seals.contains(at)), None);
    let is_call = |part: &Part| matches!(part, Part::ToolCall(_));
    let is_sent = |(index, part): &(usize, &Part)| {
        is_call(part) || !is_wordless(part) || own.seal(*index, part).is_some()
    };
    let first = parts.iter().enumerate().find(is_sent);
    parts.iter().any(is_call) && !matches!(first, Some((_, Part::Thought(_))))
}

/// The number of entries in the first message, if that is one of others.
fn first_group<P: Protocol>(entries: &[Entry], style: &Style) -> usize {
    if is_user::<P>(entries, 0, style) { group_end::<P>(entries, 0..entries.len(), style) } else { 0 }
}

/// Everything before the first entry.
fn begin<P: Protocol>(
    request: &Request<'_>,
    model: &str,
    style: &Style,
    seals: Option<SealsSent>,
) -> ViewBuffer {
    let mut buffer = BytesMut::with_capacity(4096);
    P::begin(&mut buffer, model, system_of(request).filter(|_| !style.fold), style);
    let system = request.system.map(Into::into);
    let (model, length) = (model.into(), buffer.len());
    let prefix = Prefix { api: P::API, model, system, style: *style, entries: 0, length };
    ViewBuffer { prefix, buffer, seals, end: None }
}

/// The system text, if it says anything.
fn system_of<'a>(request: &Request<'a>) -> Option<&'a str> {
    request.system.filter(|text| !text.trim().is_empty())
}

/// The start of the last group of entries, which is not final: the next entry may be merged into its message. Pictures of results
/// follow the last result of a run, so those are not final either.
fn open_group<P: Protocol>(entries: &[Entry], style: &Style) -> usize {
    let others = |entry: &&Entry| style.merge && may_be_user::<P>(entry, style);
    let group = entries.len() - entries.iter().rev().take_while(others).count();
    let run = pictures::run(entries.get(..group).unwrap_or_default());
    if P::GROUPS_RESULTS {
        return group - run.len();
    }
    let is_shown = style.vision && run.iter().any(|entry| pictures::of(entry).next().is_some());
    if is_shown && group == entries.len() { group - run.len() } else { group }
}

/// Where the message ends that the first of the entries in `range` begins.
fn group_end<P: Protocol>(all: &[Entry], range: Range<usize>, style: &Style) -> usize {
    let mut at = range.start;
    while at + 1 < range.end && joins::<P>(all, at, style) {
        at += 1;
    }
    at + 1
}

/// Whether the entry after the one at `at` is merged into its message, because the API or strict chat templates require
/// alternating roles. A system message within the conversation keeps its role where the API has it, because it was requested.
/// Views meet all other requirements.
fn joins<P: Protocol>(all: &[Entry], at: usize, style: &Style) -> bool {
    let next_is_user = is_user::<P>(all, at + 1, style);
    match (all.get(at), all.get(at + 1)) {
        (Some(Entry::Tool { .. }), Some(Entry::Tool { .. })) => P::GROUPS_RESULTS,
        (Some(Entry::Tool { .. }), _) => has_words::<P>(style) && next_is_user,
        _ => style.merge && is_user::<P>(all, at, style) && next_is_user,
    }
}

/// Whether messages with results have the words of others, too.
const fn has_words<P: Protocol>(style: &Style) -> bool {
    P::GROUPS_RESULTS && !style.bridge
}

/// Whether the entry at `at` has the role `user`: without support for the system role, all entries of others do.
fn is_user<P: Protocol>(all: &[Entry], at: usize, style: &Style) -> bool {
    all.get(at).is_some_and(|entry| may_be_user::<P>(entry, style))
        && !is_system_after_user::<P>(all, at, style)
}

/// Whether an entry has the role `user`, depending on the entries around it.
fn may_be_user<P: Protocol>(entry: &Entry, style: &Style) -> bool {
    let has_role = P::SYSTEM_WITHIN == SystemWithin::Anywhere && !style.fold;
    matches!(entry, Entry::User { .. }) || !has_role && matches!(entry, Entry::System { .. })
}

/// Whether the entry at `at` is a system message where the API takes one after a message of others.
fn is_system_after_user<P: Protocol>(all: &[Entry], at: usize, style: &Style) -> bool {
    let takes = P::SYSTEM_WITHIN == SystemWithin::AfterUser && style.accepts.system_within && !style.fold;
    let before = at.checked_sub(1).and_then(|at| all.get(at));
    let follows = match before {
        Some(Entry::User { .. }) => true,
        Some(Entry::Tool { .. }) => has_words::<P>(style),
        _ => false,
    };
    let is_last = matches!(all.get(at + 1), None | Some(Entry::Assistant { .. }));
    takes && follows && is_last && matches!(all.get(at), Some(Entry::System { .. }))
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
    while at < range.end {
        let begins = at;
        at = group_end::<P>(all, begins..range.end, style);
        let before = all.get(..begins).unwrap_or_default();
        let sealed = sent.seals.is_some_and(|seals| seals.contains(begins));
        let Some((group, first)) = all.get(begins..at).and_then(|group| Some((group, group.first()?))) else {
            break;
        };
        let folded = system_of(request).filter(|_| style.fold && before.is_empty()).map(Part::text);
        let shown = pictures_before::<P>(before, style);
        let is_of_others = is_user::<P>(all, begins, style);
        let joined = style.merge && is_of_others;
        // Pictures are sent between the results and the next entry.
        if shown.is_empty() || joined {
            write_between::<P>(out, before.last(), first, folded.as_ref(), style);
        }
        let shown = if joined { shown } else { Vec::new() };
        separate(out);
        match first {
            Entry::System { parts } if !is_of_others => P::system(out, &text_of(parts), style),
            Entry::System { .. } | Entry::User { .. } => {
                let parts = folded.iter().chain(&shown).chain(group.iter().flat_map(Entry::parts));
                P::user(out, parts, style);
            }
            Entry::Assistant { parts, verbatim } => {
                let own = Own::new(parts, verbatim.as_deref(), sealed, sent.ids);
                P::assistant(out, &own.with_calls(0, max_calls::<P>(style).unwrap_or(usize::MAX)), style);
            }
            Entry::Tool { .. } => {
                write_further_calls::<P>(out, before, style, sent);
                write_results::<P>(out, group, sent.ids, style);
            }
        }
        let next_is_tool = matches!(all.get(at), Some(Entry::Tool { .. }));
        let is_joined = next_is_tool || style.merge && is_user::<P>(all, at, style);
        if !has_words::<P>(style) && !is_joined {
            pictures::write::<P>(out, pictures::run(all.get(..at).unwrap_or_default()), style);
        }
    }
}

/// The most calls in a message, if the provider has a limit.
fn max_calls<P: Protocol>(style: &Style) -> Option<usize> {
    style.deviations.max_calls.filter(|_| P::API == Api::ChatCompletions)
}

/// Writes the message with further calls of the reply that the results at the end of `before` answer, if there are as many of these as
/// the messages so far have calls.
fn write_further_calls<P: Protocol>(out: &mut BytesMut, before: &[Entry], style: &Style, sent: Sent<'_>) {
    let Some(most) = max_calls::<P>(style) else { return };
    let results = before.iter().rev().take_while(|entry| matches!(entry, Entry::Tool { .. })).count();
    let reply = before.len().checked_sub(results + 1).and_then(|at| Some((at, before.get(at)?)));
    let Some((at, Entry::Assistant { parts, verbatim })) = reply else { return };
    let sealed = sent.seals.is_some_and(|seals| seals.contains(at));
    let own = Own::new(parts, verbatim.as_deref(), sealed, sent.ids).with_calls(results, most);
    if results > 0 && results.is_multiple_of(most) && own.calls().next().is_some() {
        P::assistant(out, &own, style);
        separate(out);
    }
}

/// Writes the message of a group that begins with results.
fn write_results<P: Protocol>(out: &mut BytesMut, group: &[Entry], ids: Option<&CallIds>, style: &Style) {
    let results = group.iter().map_while(|entry| match entry {
        Entry::Tool { id, tool, result: outcome } => {
            Some(SentResult { id: ids.map_or(id.as_str(), |ids| ids.get(id)), tool, outcome })
        }
        _ => None,
    });
    let results: Vec<SentResult<'_>> = results.collect();
    let (run, words) = group.split_at_checked(results.len()).unwrap_or((group, &[]));
    let has_pictures = has_words::<P>(style) && is_apart::<P>(style);
    let shown = if has_pictures { pictures::shown(run) } else { Vec::new() };
    P::results(out, &results, shown.iter().chain(words.iter().flat_map(Entry::parts)), style);
}

/// Whether pictures of results are apart from the results.
const fn is_apart<P: Protocol>(style: &Style) -> bool {
    style.vision && !P::PICTURES_IN_RESULTS
}

/// The message with the pictures of the last results of `entries`, unless it is that of the results.
fn pictures_before<P: Protocol>(entries: &[Entry], style: &Style) -> Vec<Part> {
    let is_own = is_apart::<P>(style) && !has_words::<P>(style);
    if is_own { pictures::shown(pictures::run(entries)) } else { Vec::new() }
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
        P::user(out, parts.iter().copied(), style);
    };
    match (before, next) {
        (None, Entry::Assistant { .. }) if style.merge => match folded {
            Some(system) => user(out, &[system, &Part::text(BEGIN)]),
            None => user(out, &[&Part::text(BEGIN)]),
        },
        (None, Entry::Assistant { .. }) => folded.into_iter().for_each(|system| user(out, &[system])),
        (Some(Entry::Assistant { .. }), Entry::Assistant { .. }) if style.merge => {
            user(out, &[&Part::text(CONTINUE)]);
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
