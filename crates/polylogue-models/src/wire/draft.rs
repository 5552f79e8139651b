//! A reply that is assembled from pieces, for all protocols.

use std::sync::Arc;

use polylogue_core::{DeltaRef, DeltaSink, FinishReason, Part, Reply, Request, Seal, Usage, Verbatim};
use serde_json::Value;

use super::calls::{Calls, Piece};
use super::parts::{Finished, Parts};
use super::sse::LineTooLong;
use super::think::{self, Kind};

/// Maximum size of a reply, in bytes of reasoning, text and arguments: ten times the longest replies of models.
const MAX_REPLY: usize = 16 << 20;

/// How many characters are kept of what cannot be read.
pub(crate) const EXCERPT: usize = 500;

/// Why a response cannot be decoded as a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// An error instead of a reply: its JSON.
    Error(String),
    /// An error after the first piece of a reply: its JSON.
    BrokenOff(String),
    /// Invalid data: the reason, and its [beginning](EXCERPT).
    Unreadable { why: String, excerpt: String },
    /// It ended before the reply was finished.
    Cut,
    /// It exceeds the maximum size.
    TooLong(&'static str),
    /// The response was empty.
    Empty,
}

impl DecodeError {
    /// The same in a reply of which pieces came before.
    fn after_pieces(self) -> Self {
        match self {
            Self::Error(json) => Self::BrokenOff(json),
            other => other,
        }
    }
}

impl From<LineTooLong> for DecodeError {
    fn from(_: LineTooLong) -> Self {
        Self::TooLong("a line of the reply does not end")
    }
}

/// What was decoded, or why a response cannot be.
pub(crate) type DecodeResult<T = ()> = Result<T, DecodeError>;

/// A decoded reply, with the seals of its parts.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) reply: Reply,
    pub(crate) seals: Vec<Seal>,
    /// What the same request is sent with to have the rest, if the provider paused the reply so.
    pub(crate) continuation: Option<String>,
    /// The model that replied, as its provider names it.
    pub(crate) model: Option<Box<str>>,
}

/// The reply so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    think: think::Splitter,
    parts: Parts,
    calls: Calls,
    refused: bool,
    /// The choice that is decoded, of an API that can send several: the first one received.
    choice: Option<u64>,
    finish: Option<FinishReason>,
    usage: Usage,
    /// Whether there was a message, even if it was empty.
    pub(crate) said: bool,
    /// The end mark or a whole message was received: nothing is missing.
    pub(crate) ended: bool,
    /// Whether the reply is complete only with its end mark, whatever else was received.
    pub(crate) needs_end: bool,
    /// The last piece announces more.
    pub(crate) is_unfinished: bool,
    /// The usage came after everything else: the reply is complete.
    pub(crate) metered: bool,
    /// Whether anything readable was received.
    pub(crate) received: bool,
    /// Whether a first piece of the reply came.
    pub(crate) began: bool,
    /// What the same request is sent with to have the rest of the reply.
    pub(crate) continuation: Option<String>,
    /// The model that replies, as its provider names it.
    pub(crate) model: Option<Box<str>>,
    /// What the provider could not parse of the reply.
    pub(crate) unparsed: Option<String>,
    /// Whether it did not stream in the order of its parts.
    is_out_of_order: bool,
    size: usize,
}

impl Draft {
    /// Whether the reply is complete, though its usage may still come.
    pub(crate) fn is_finished(&self) -> bool {
        self.ended || self.finish.is_some() && !self.needs_end
    }

    /// `error` as it ends this reply.
    pub(crate) fn ended_by(&self, error: DecodeError) -> DecodeError {
        if self.began { error.after_pieces() } else { error }
    }

    /// Whether the reply is that of the choice at `index`, by default the first: the others are left out.
    pub(crate) fn takes_choice(&mut self, index: Option<u64>) -> bool {
        let index = index.unwrap_or(0);
        *self.choice.get_or_insert(index) == index
    }

    /// Takes a piece of reasoning.
    ///
    /// # Errors
    /// When there is too much of it.
    pub(crate) fn think(&mut self, piece: &str, deltas: &mut dyn DeltaSink) -> DecodeResult {
        self.grow(piece)?;
        self.think.pass_thought();
        self.parts.push(Kind::Thought, piece);
        deltas.push(DeltaRef::Thought(piece));
        Ok(())
    }

    /// Begins a part that the server keeps apart from the others. It is taken as it comes, in this order. Returns its index.
    pub(crate) fn open(&mut self, kind: Kind) -> usize {
        self.began = true;
        self.parts.open(kind)
    }

    /// Takes a piece of the part that was begun last.
    ///
    /// # Errors
    /// When there is too much of it.
    pub(crate) fn write(&mut self, piece: &str, deltas: &mut dyn DeltaSink) -> DecodeResult {
        self.write_to(self.parts.last(), piece, deltas)
    }

    /// Takes a piece of the part at `index`.
    ///
    /// # Errors
    /// When there is too much of it.
    pub(crate) fn write_to(&mut self, index: usize, piece: &str, deltas: &mut dyn DeltaSink) -> DecodeResult {
        self.grow(piece)?;
        let is_last = index == self.parts.last();
        match self.parts.write(index, piece) {
            _ if piece.is_empty() => {}
            Some(kind) if is_last => deltas.push(delta(kind, piece)),
            // What streamed last is of another part.
            Some(_) => self.is_out_of_order = true,
            None => {}
        }
        Ok(())
    }

    /// Whether the last part is one of this kind that was begun.
    pub(crate) fn ends_with(&self, kind: Kind) -> bool {
        self.parts.ends_with(kind)
    }

    /// Seals the part that was begun last.
    pub(crate) fn seal(&mut self, data: Value) {
        self.seal_part(self.parts.last(), data);
    }

    /// Seals the part at `index`.
    pub(crate) fn seal_part(&mut self, index: usize, data: Value) {
        self.size = self.size.saturating_add(data.as_str().map_or(0, str::len));
        self.parts.seal(index, data);
    }

    /// Seals the last thought of a server that does not seal each of them, unless it is sealed.
    pub(crate) fn seal_thought(&mut self, data: Value) {
        self.parts.seal_thought(data);
    }

    /// Seals all thoughts of the reply by the first one, instead of how that was sealed before. It stays, even if it is empty.
    pub(crate) fn seal_all_thoughts(&mut self, data: Value) {
        self.began = true;
        self.parts.seal_all_thoughts(data);
    }

    /// Takes a piece of content, in which reasoning may be marked.
    ///
    /// # Errors
    /// When there is too much of it.
    pub(crate) fn speak(&mut self, piece: &str, deltas: &mut dyn DeltaSink) -> DecodeResult {
        self.grow(piece)?;
        let Self { think, parts, .. } = self;
        think.feed(piece, &mut |kind, piece| sort(kind, piece, parts, deltas));
        Ok(())
    }

    /// Adds a piece of the model's refusal, which replaces a reply.
    ///
    /// # Errors
    /// When there is too much of it.
    pub(crate) fn refuse(&mut self, piece: &str, deltas: &mut dyn DeltaSink) -> DecodeResult {
        self.grow(piece)?;
        self.refused = true;
        self.parts.push(Kind::Text, piece);
        deltas.push(DeltaRef::Text(piece));
        Ok(())
    }

    /// Discards what was written so far: it is not a reply.
    pub(crate) fn discard(&mut self, deltas: &mut dyn DeltaSink) {
        if self.size > 0 {
            deltas.push(DeltaRef::Restart);
        }
        (self.think, self.parts, self.calls) = Default::default();
    }

    /// Sets the finish reason by its name in one of the APIs: the reply is complete.
    pub(crate) fn stop(&mut self, reason: &str) {
        self.stop_with(finish(reason));
    }

    /// Sets the finish reason: the reply is complete.
    pub(crate) fn stop_with(&mut self, finish: FinishReason) {
        self.finish = Some(finish);
        self.began = true;
    }

    /// Sets the usage; the last known one counts.
    pub(crate) fn meter(&mut self, usage: Usage) {
        if !usage.is_unknown() {
            self.usage = within_input(usage);
        }
    }

    /// Takes a piece of a tool call.
    ///
    /// # Errors
    /// When there are too many, or they are too long.
    pub(crate) fn call(&mut self, piece: &Piece<'_>, deltas: &mut dyn DeltaSink) -> DecodeResult {
        self.call_part(piece, deltas)?;
        Ok(())
    }

    /// The same; returns the index of the part with the call.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(crate) fn call_part(&mut self, piece: &Piece<'_>, deltas: &mut dyn DeltaSink) -> DecodeResult<usize> {
        self.grow(piece.args)?;
        let added = self.calls.add(piece).ok_or(DecodeError::TooLong("the reply has too many tool calls"))?;
        if added.named || !piece.args.is_empty() {
            let tool = added.named.then(|| self.calls.tool(added.index));
            deltas.push(DeltaRef::Call { index: added.index, tool, args: piece.args });
        }
        Ok(self.parts.call(added.index))
    }

    /// Counts a piece toward the maximum size of a reply.
    ///
    /// # Errors
    /// When the reply is too long.
    pub(crate) fn grow(&mut self, piece: &str) -> DecodeResult {
        self.began = true;
        self.size = self.size.saturating_add(piece.len());
        if self.size > MAX_REPLY {
            Err(DecodeError::TooLong("the reply is longer than 16 MiB"))
        } else {
            Ok(())
        }
    }

    /// The reply, which must have a field `core`.
    ///
    /// # Errors
    /// When there is none, or only the beginning of one.
    pub(crate) fn finish(
        mut self,
        request: &Request<'_>,
        core: &str,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult<Decoded> {
        let complete = self.is_finished() || self.metered && !self.needs_end;
        match (self.said, complete) {
            (false, false) if !self.received => return Err(DecodeError::Empty),
            (_, false) => return Err(DecodeError::Cut),
            (true, true) => {}
            (false, true) => {
                let why = format!("it has no `{core}`");
                return Err(DecodeError::Unreadable { why, excerpt: String::new() });
            }
        }
        let Self { think, parts, .. } = &mut self;
        think.finish(&mut |kind, piece| sort(kind, piece, parts, deltas));
        self.find_thought();
        self.reorder(deltas);
        Ok(self.reply(request))
    }

    /// Separates a thought without a start mark from the text. It was streamed as text.
    fn find_thought(&mut self) {
        let Some((thought, answer)) = self.parts.unmarked().and_then(think::unopened) else { return };
        let (thought, answer) = (thought.to_owned(), answer.to_owned());
        self.parts.separate(thought, answer);
        self.is_out_of_order = true;
    }

    /// Streams the reply again if it did not stream in the order of its parts.
    fn reorder(&self, deltas: &mut dyn DeltaSink) {
        if !self.is_out_of_order {
            return;
        }
        deltas.push(DeltaRef::Restart);
        self.parts.words().for_each(|(kind, text)| deltas.push(delta(kind, text)));
        self.calls.deltas().for_each(|call| deltas.push(call));
    }

    fn reply(self, request: &Request<'_>) -> Decoded {
        let finish = match self.finish.unwrap_or(FinishReason::Unknown) {
            _ if self.refused && self.calls.is_empty() => FinishReason::REFUSED,
            FinishReason::Stop | FinishReason::Unknown if !self.calls.is_empty() => FinishReason::Calls,
            finish => finish,
        };
        let Finished { mut parts, seals, arguments } = self.parts.finish(self.calls.finish(request));
        let unparsed = self.unparsed.filter(|_| finish == FinishReason::Malformed);
        parts.extend(unparsed.map(|text| Part::unparsed(&text)));
        let verbatim = Verbatim { arguments, ..Verbatim::default() }.some().map(Arc::new);
        let reply = Reply { parts, finish, usage: self.usage, cached: false, verbatim, answered_by: None };
        Decoded { reply, seals, continuation: self.continuation, model: self.model }
    }
}

fn sort(kind: Kind, piece: &str, parts: &mut Parts, deltas: &mut dyn DeltaSink) {
    parts.push(kind, piece);
    deltas.push(delta(kind, piece));
}

const fn delta(kind: Kind, piece: &str) -> DeltaRef<'_> {
    match kind {
        Kind::Thought => DeltaRef::Thought(piece),
        Kind::Text => DeltaRef::Text(piece),
    }
}

/// `usage` without parts of the input that are larger than all of it, by which a cache would save more than the prompt costs.
fn within_input(usage: Usage) -> Usage {
    let Some(input) = usage.input else { return usage };
    let cached = usage.cached.map(|tokens| tokens.min(input));
    let written = usage.written.map(|tokens| tokens.min(input - cached.unwrap_or(0)));
    let written_long = usage.written_long.map(|tokens| tokens.min(written.unwrap_or(tokens)));
    let audio = usage.audio.map(|tokens| tokens.min(input));
    Usage { cached, written, written_long, audio, ..usage }
}

fn finish(reason: &str) -> FinishReason {
    let known = known_finish(reason).or_else(|| known_finish(&reason.to_ascii_lowercase()));
    known.unwrap_or(FinishReason::Unknown)
}

fn known_finish(reason: &str) -> Option<FinishReason> {
    Some(match reason {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" => FinishReason::Stop,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => FinishReason::Calls,
        "length" | "max_tokens" | "model_length" | "max_output_tokens" => FinishReason::Length,
        "content_filter" | "safety" | "refusal" | "recitation" => FinishReason::Filter,
        _ => return None,
    })
}
