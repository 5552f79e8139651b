//! A reply from the bytes of its tokens: whole characters, thoughts, calls, and stop sequences.

use polylogue_core::{Delta, FinishReason, Part, Reply, ToolCall, Usage};
use polylogue_models::{TextKind, ThoughtSplitter};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::call_format::CallFormat;

/// Assembles a reply, and passes on its pieces.
pub(crate) struct ReplyWriter<S> {
    sink: S,
    format: Option<&'static CallFormat>,
    stops: Vec<String>,
    /// The beginning of the ids of calls.
    call_ids: String,
    /// Whether the first space is the tokenizer's.
    skips_space: bool,
    /// Bytes of an incomplete character.
    bytes: Vec<u8>,
    splitter: ThoughtSplitter,
    thought: String,
    text: String,
    calls: Vec<ToolCall>,
    /// Text that may be the beginning of a call or of a stop sequence, or that is within a call.
    pending: String,
    in_call: bool,
    is_stopped: bool,
    thought_tokens: u64,
}

/// What a writer needs to know of its request.
#[derive(Debug, Default)]
pub(crate) struct ReplyForm {
    pub(crate) format: Option<&'static CallFormat>,
    pub(crate) stops: Vec<String>,
    pub(crate) call_ids: String,
    pub(crate) skips_space: bool,
    /// Whether the prompt ends within a thought.
    pub(crate) is_thinking: bool,
}

impl<S: FnMut(Delta)> ReplyWriter<S> {
    pub(crate) fn new(form: ReplyForm, sink: S) -> Self {
        let mut splitter = ThoughtSplitter::default();
        if form.is_thinking {
            splitter.feed("<think>", &mut |_, _| {});
        }
        Self {
            sink,
            format: form.format,
            stops: form.stops.into_iter().filter(|stop| !stop.is_empty()).collect(),
            call_ids: form.call_ids,
            skips_space: form.skips_space,
            bytes: Vec::new(),
            splitter,
            thought: String::new(),
            text: String::new(),
            calls: Vec::new(),
            pending: String::new(),
            in_call: false,
            is_stopped: false,
            thought_tokens: 0,
        }
    }

    /// Takes the bytes of the next token. Returns whether the reply continues: it ends at a stop sequence.
    pub(crate) fn push(&mut self, token: &[u8]) -> bool {
        let before = (self.thought.len(), self.text.len() + self.pending.len());
        self.bytes.extend_from_slice(token);
        let piece = self.take_characters();
        self.feed(&piece);
        if self.thought.len() > before.0 && self.text.len() + self.pending.len() == before.1 {
            self.thought_tokens += 1;
        }
        !self.is_stopped
    }

    /// The whole characters so far; bytes that are none become replacement characters.
    fn take_characters(&mut self) -> String {
        let mut text = String::new();
        let mut rest = self.bytes.as_slice();
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(all) => {
                    text.push_str(all);
                    rest = &[];
                    break;
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at_checked(error.valid_up_to()).unwrap_or((rest, &[]));
            text.push_str(&String::from_utf8_lossy(valid));
            let Some(length) = error.error_len() else {
                rest = after;
                break;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = after.get(length..).unwrap_or_default();
        }
        self.bytes = rest.to_vec();
        text
    }

    fn feed(&mut self, piece: &str) {
        let piece = match self.skips_space && !piece.is_empty() {
            true => {
                self.skips_space = false;
                piece.strip_prefix(' ').unwrap_or(piece)
            }
            false => piece,
        };
        let mut pieces = Vec::new();
        self.splitter.feed(piece, &mut |kind, piece: &str| pieces.push((kind, piece.to_owned())));
        self.take_pieces(pieces);
    }

    fn take_pieces(&mut self, pieces: Vec<(TextKind, String)>) {
        for (kind, piece) in pieces {
            match kind {
                TextKind::Thought => {
                    self.thought.push_str(&piece);
                    (self.sink)(Delta::Thought(piece));
                }
                TextKind::Text => {
                    self.pending.push_str(&piece);
                    self.advance();
                }
            }
        }
    }

    /// Passes on as much of the pending text as is clear.
    fn advance(&mut self) {
        while !self.is_stopped {
            let has_more = if self.in_call { self.end_call() } else { self.advance_text() };
            if !has_more {
                break;
            }
        }
    }

    /// Passes on text up to a call or a stop sequence; returns whether a call begins.
    fn advance_text(&mut self) -> bool {
        if let Some(format) = self.format.filter(|format| format.open.is_empty()) {
            let is_first = self.text.is_empty() && self.calls.is_empty();
            let begin = self.pending.trim_start();
            if is_first && (begin.is_empty() || begin.starts_with('{')) {
                self.in_call = !begin.is_empty() && format.close.is_empty();
                return false;
            }
        }
        let stop = self.stops.iter().filter_map(|stop| self.pending.find(stop)).min();
        let call = self.opening().and_then(|open| Some((self.pending.find(open)?, open.len())));
        match (stop, call) {
            (Some(stop), call) if call.is_none_or(|(at, _)| stop < at) => {
                self.say_pending(stop);
                self.pending.clear();
                self.is_stopped = true;
                false
            }
            (_, Some((at, length))) => {
                self.say_pending(at);
                self.pending.drain(..length);
                self.in_call = true;
                true
            }
            _ => {
                self.say_pending(self.clear_until());
                false
            }
        }
    }

    fn opening(&self) -> Option<&'static str> {
        self.format.map(|format| format.open).filter(|open| !open.is_empty())
    }

    /// The position from which the pending text may be the beginning of a call or of a stop sequence.
    fn clear_until(&self) -> usize {
        let marks = || self.stops.iter().map(String::as_str).chain(self.opening());
        let begins =
            |at: &usize| self.pending.get(*at..).is_some_and(|end| marks().any(|mark| mark.starts_with(end)));
        let longest = marks().map(str::len).max().unwrap_or_default();
        let from = self.pending.ceil_char_boundary(self.pending.len().saturating_sub(longest));
        (from..self.pending.len()).find(begins).unwrap_or(self.pending.len())
    }

    /// Passes on the first `length` bytes of the pending text.
    fn say_pending(&mut self, length: usize) {
        let said: String = self.pending.drain(..length).collect();
        if !said.is_empty() {
            self.text.push_str(&said);
            (self.sink)(Delta::Text(said));
        }
    }

    /// Ends a call whose closing mark has arrived. One within a text of its arguments does not end it.
    fn end_call(&mut self) -> bool {
        let Some(close) = self.format.map(|format| format.close).filter(|close| !close.is_empty()) else {
            return false;
        };
        let is_end = |at: &usize| {
            let with_mark = self.pending.get(..*at + close.len()).unwrap_or_default();
            !is_begun(with_mark)
        };
        let mut marks = self.pending.match_indices(close).map(|(at, _)| at);
        let Some(at) = marks.find(is_end) else { return false };
        let body: String = self.pending.drain(..at).collect();
        self.pending.drain(..close.len());
        self.in_call = false;
        self.read_calls(&body, close);
        true
    }

    /// Adds the calls in `body`, or the text itself if there are none.
    fn read_calls(&mut self, body: &str, close: &str) {
        let Some(calls) = self.format.and_then(|format| format.read(body)) else {
            let text = format!("{}{body}{close}", self.opening().unwrap_or_default());
            self.text.push_str(&text);
            return (self.sink)(Delta::Text(text));
        };
        for (tool, args) in calls {
            let index = self.calls.len();
            (self.sink)(Delta::Call { index, tool: Some(tool.clone()), args: args.to_string() });
            let args = if args.is_object() { args } else { Value::String(args.to_string()) };
            self.calls.push(ToolCall { id: format!("{}{index}", self.call_ids), tool, args });
        }
    }

    /// The whole reply, which ended because of `finish`.
    pub(crate) fn finish(mut self, finish: FinishReason, usage: Usage) -> Reply {
        let rest = String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned();
        if !self.is_stopped {
            self.feed(&rest);
            let mut pieces = Vec::new();
            self.splitter.finish(&mut |kind, piece: &str| pieces.push((kind, piece.to_owned())));
            self.take_pieces(pieces);
            let pending = std::mem::take(&mut self.pending);
            match self.in_call {
                true => self.read_calls(&pending, ""),
                false => {
                    self.pending = pending;
                    self.say_pending(self.pending.len());
                }
            }
        }
        let usage = Usage { reasoning: Some(self.thought_tokens).filter(|count| *count > 0), ..usage };
        let finish = if self.calls.is_empty() || finish.is_cut() { finish } else { FinishReason::Calls };
        Reply { parts: self.parts(), finish, usage, cached: false, verbatim: None, answered_by: None }
    }

    fn parts(self) -> Vec<Part> {
        let thought = Some(self.thought.trim()).filter(|thought| !thought.is_empty());
        let text = if self.calls.is_empty() { self.text.as_str() } else { self.text.trim() };
        let text = Some(text).filter(|text| !text.trim().is_empty());
        let words =
            thought.map(|thought| Part::Thought(thought.into())).into_iter().chain(text.map(Part::text));
        words.chain(self.calls.into_iter().map(Part::ToolCall)).collect()
    }
}

/// Whether `json` is the beginning of a value: within a text, it can have any mark.
fn is_begun(json: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(json).is_err_and(|error| error.is_eof())
}

#[cfg(test)]
#[path = "reply_writer_tests.rs"]
mod tests;
