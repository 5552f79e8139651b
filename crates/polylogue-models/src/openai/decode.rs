//! From what a server sends to a reply, piece by piece or whole.

use polylogue_core::{Delta, Deltas, Finish, Part, Reply, Request, Usage};

use super::calls::{Calls, Piece};
use super::chunk::{Choice, Chunk, Content};
use super::think::{self, Kind};
use crate::sse::{Line, LineTooLong, Splitter};

/// The longest reply, in bytes of thought, text and arguments. The longest models write is a tenth of it.
const MAX_REPLY: usize = 16 << 20;

/// The longest event of several lines, in bytes.
const MAX_EVENT: usize = 32 << 20;

/// Why what a server sent is no reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// An error in the place of a reply: its JSON.
    Error(String),
    /// It cannot be read: why, and what came.
    Unreadable { why: String, excerpt: String },
    /// It ended before the reply was finished.
    Cut,
    /// It does not end, or is too long to be a reply.
    TooLong(&'static str),
    /// Nothing came at all.
    Empty,
}

impl From<LineTooLong> for Flaw {
    fn from(_: LineTooLong) -> Self {
        Self::TooLong("a line of the reply does not end")
    }
}

/// Reads one reply.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    splitter: Splitter,
    event: Pending,
    reply: Draft,
}

/// The lines of an event that is not yet complete.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Whether they are bare JSON: then a blank line does not end them.
    bare: bool,
}

/// The reply so far.
#[derive(Debug, Default)]
struct Draft {
    think: think::Splitter,
    thought: String,
    text: String,
    calls: Calls,
    refused: bool,
    finish: Option<Finish>,
    usage: Usage,
    /// The choice that is read: the first that is seen.
    choice: Option<u64>,
    /// The mark of the end or a whole message was seen: nothing is missing.
    ended: bool,
    /// The usage came after everything else: the reply is complete.
    metered: bool,
    /// Whether anything was received that can be read.
    heard: bool,
    /// Whether a first piece of the reply came.
    began: bool,
    size: usize,
}

impl Decoder {
    /// Takes the next bytes of a stream.
    ///
    /// # Errors
    /// When they cannot be part of a reply.
    pub(crate) fn feed(&mut self, bytes: &[u8], deltas: &mut dyn Deltas) -> Result<(), Flaw> {
        let Self { splitter, event, reply } = self;
        splitter.feed(bytes, |line| hear(event, reply, line, deltas))
    }

    /// Whether a first piece of a reply came; comments and empty events are none.
    pub(crate) fn began(&self) -> bool {
        self.reply.began
    }

    /// Whether the server said that the reply is over, so that nothing more is to be waited for.
    pub(crate) fn ended(&self) -> bool {
        self.reply.ended
    }

    /// Whether the reply is complete, though its usage may still come.
    pub(crate) fn finished(&self) -> bool {
        self.reply.ended || self.reply.finish.is_some()
    }

    /// Reads a body that came whole. It is usually one JSON object; else it is read like a stream.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub(crate) fn whole(
        mut self,
        body: &[u8],
        request: &Request<'_>,
        deltas: &mut dyn Deltas,
    ) -> Result<Reply, Flaw> {
        match read(body) {
            Read::Chunk(chunk) => {
                self.reply.take(&chunk, body, deltas)?;
                self.reply.ended = true;
            }
            Read::Begun | Read::Other => self.feed(body, deltas)?,
        }
        self.finish(request, deltas)
    }

    /// The stream is over: the reply.
    ///
    /// # Errors
    /// When there is none, or only the beginning of one.
    pub(crate) fn finish(self, request: &Request<'_>, deltas: &mut dyn Deltas) -> Result<Reply, Flaw> {
        let Self { mut splitter, mut event, mut reply } = self;
        splitter.finish(|line| hear(&mut event, &mut reply, line, deltas))?;
        event.flush(&mut reply, deltas)?;
        reply.finish(request, deltas)
    }
}

fn hear(event: &mut Pending, reply: &mut Draft, line: Line<'_>, deltas: &mut dyn Deltas) -> Result<(), Flaw> {
    match line {
        Line::Blank if event.bare => Ok(()),
        Line::Blank => event.flush(reply, deltas),
        Line::Data(bytes) | Line::Bare(bytes) if !event.bytes.is_empty() => event.append(bytes),
        Line::Data(bytes) => event.begin(bytes, false, reply, deltas),
        Line::Bare(bytes) => event.begin(bytes, true, reply, deltas),
    }
}

impl Pending {
    /// Reads the first line of an event. Most events have one line, and some servers leave out the blank line
    /// after it: so it is read at once, and kept only if it is the beginning of something longer.
    fn begin(
        &mut self,
        line: &[u8],
        bare: bool,
        reply: &mut Draft,
        deltas: &mut dyn Deltas,
    ) -> Result<(), Flaw> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        if line.eq_ignore_ascii_case(b"[DONE]") {
            reply.ended = true;
            return Ok(());
        }
        match read(line) {
            Read::Chunk(chunk) => reply.take(&chunk, line, deltas),
            Read::Begun => {
                self.bare = bare;
                self.append(line)
            }
            Read::Other => reply.take_all(line, deltas),
        }
    }

    fn append(&mut self, line: &[u8]) -> Result<(), Flaw> {
        if self.bytes.len().saturating_add(line.len()) > MAX_EVENT {
            return Err(Flaw::TooLong("an event of the reply does not end"));
        }
        if !self.bytes.is_empty() {
            self.bytes.push(b'\n');
        }
        self.bytes.extend_from_slice(line);
        Ok(())
    }

    fn flush(&mut self, reply: &mut Draft, deltas: &mut dyn Deltas) -> Result<(), Flaw> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.bytes);
        // An event that breaks off is a broken connection where nothing says that the reply was complete.
        match reply.take_all(&bytes, deltas) {
            Err(Flaw::Unreadable { .. }) if is_cut(&bytes) => Err(Flaw::Cut),
            result => result,
        }
    }
}

/// What bytes are.
enum Read<'a> {
    Chunk(Chunk<'a>),
    /// The beginning of something longer.
    Begun,
    /// Several in a row, text that is no UTF-8, or no JSON.
    Other,
}

/// Reads a single object. That all is UTF-8 is checked at once, which is quicker than text by text.
fn read(bytes: &[u8]) -> Read<'_> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Read::Other };
    match serde_json::from_str(text) {
        Ok(chunk) => Read::Chunk(chunk),
        Err(error) if error.is_eof() => Read::Begun,
        Err(_) => Read::Other,
    }
}

fn is_cut(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err_and(|error| error.is_eof())
}

impl Draft {
    /// Reads what is no single object: several in a row, or text that is no UTF-8.
    fn take_all(&mut self, bytes: &[u8], deltas: &mut dyn Deltas) -> Result<(), Flaw> {
        let text = String::from_utf8_lossy(bytes);
        for chunk in serde_json::Deserializer::from_str(&text).into_iter::<Chunk<'_>>() {
            match chunk {
                Ok(chunk) => self.take(&chunk, bytes, deltas)?,
                Err(error) => return Err(unreadable(&error, &text)),
            }
        }
        Ok(())
    }

    fn take(&mut self, chunk: &Chunk<'_>, raw: &[u8], deltas: &mut dyn Deltas) -> Result<(), Flaw> {
        self.heard = true;
        let odd = chunk.choices.is_none() && chunk.usage.is_none();
        let says = chunk.message.is_some() || chunk.detail.is_some() || chunk.object.get() == Some("error");
        if chunk.error.is_some() || (odd && says) {
            return Err(Flaw::Error(String::from_utf8_lossy(raw).into_owned()));
        }
        let groq = chunk.x_groq.as_ref().and_then(|groq| groq.usage.as_ref());
        if let Some(tokens) = chunk.usage.as_ref().or(groq) {
            self.metered |= self.began && chunk.choices.as_ref().is_none_or(Vec::is_empty);
            self.usage = Some(tokens.usage()).filter(|usage| !usage.is_unknown()).unwrap_or(self.usage);
        }
        chunk.choices.iter().flatten().try_for_each(|choice| self.choice(choice, deltas))
    }

    fn choice(&mut self, choice: &Choice<'_>, deltas: &mut dyn Deltas) -> Result<(), Flaw> {
        let index = choice.index.0.unwrap_or(0);
        if *self.choice.get_or_insert(index) != index {
            return Ok(());
        }
        let whole = choice.message.is_some();
        if let Some(content) = choice.delta.as_ref().or(choice.message.as_deref()) {
            self.content(content, whole, deltas)?;
        }
        if let Some(reason) = choice.finish_reason.get() {
            self.finish = Some(finish(reason));
            self.began = true;
        }
        self.ended |= whole;
        Ok(())
    }

    fn content(&mut self, content: &Content<'_>, whole: bool, deltas: &mut dyn Deltas) -> Result<(), Flaw> {
        if let Some(piece) = content.reasoning_content.get().or(content.reasoning.get()) {
            self.grow(piece)?;
            self.thought.push_str(piece);
            deltas.push(Delta::Thought(piece));
        }
        if let Some(piece) = content.content.get() {
            self.grow(piece)?;
            self.words(piece, deltas);
        }
        if let Some(piece) = content.refusal.get() {
            self.grow(piece)?;
            self.refused = true;
            self.text.push_str(piece);
            deltas.push(Delta::Text(piece));
        }
        for fragment in content.tool_calls.iter().flatten() {
            self.call(&Piece::of(fragment, whole), deltas)?;
        }
        content.function_call.as_ref().map_or(Ok(()), |function| self.call(&Piece::of_only(function), deltas))
    }

    fn words(&mut self, piece: &str, deltas: &mut dyn Deltas) {
        let Self { think, thought, text, .. } = self;
        think.feed(piece, &mut |kind, piece| sort(kind, piece, thought, text, deltas));
    }

    fn call(&mut self, piece: &Piece<'_>, deltas: &mut dyn Deltas) -> Result<(), Flaw> {
        self.grow(piece.args)?;
        let added = self.calls.add(piece).ok_or(Flaw::TooLong("the reply has too many tool calls"))?;
        if added.named || !piece.args.is_empty() {
            let tool = added.named.then(|| self.calls.tool(added.index));
            deltas.push(Delta::Call { index: added.index, tool, args: piece.args });
        }
        Ok(())
    }

    fn grow(&mut self, piece: &str) -> Result<(), Flaw> {
        self.began = true;
        self.size = self.size.saturating_add(piece.len());
        if self.size > MAX_REPLY { Err(Flaw::TooLong("the reply is longer than 16 MiB")) } else { Ok(()) }
    }

    fn finish(mut self, request: &Request<'_>, deltas: &mut dyn Deltas) -> Result<Reply, Flaw> {
        let complete = self.ended || self.finish.is_some() || self.metered;
        match (self.choice, complete) {
            (None, false) if !self.heard => return Err(Flaw::Empty),
            (_, false) => return Err(Flaw::Cut),
            (None, true) => {
                let why = "it has no `choices`".to_owned();
                return Err(Flaw::Unreadable { why, excerpt: String::new() });
            }
            (Some(_), true) => {}
        }
        let Self { think, thought, text, .. } = &mut self;
        think.finish(&mut |kind, piece| sort(kind, piece, thought, text, deltas));
        self.find_thought(deltas);
        Ok(self.reply(request))
    }

    /// Takes a thought out of the text whose beginning was not marked. It was told as text, so all is told again.
    fn find_thought(&mut self, deltas: &mut dyn Deltas) {
        let unmarked = Some(&self.text).filter(|_| self.thought.is_empty());
        let Some((thought, answer)) = unmarked.and_then(|text| think::unopened(text)) else { return };
        deltas.push(Delta::Restart);
        let (thought, answer) = (thought.to_owned(), answer.to_owned());
        for (piece, delta) in [(&thought, Delta::Thought(&thought)), (&answer, Delta::Text(&answer))] {
            if !piece.is_empty() {
                deltas.push(delta);
            }
        }
        self.calls.deltas().for_each(|call| deltas.push(call));
        (self.thought, self.text) = (thought, answer);
    }

    fn reply(self, request: &Request<'_>) -> Reply {
        let finish = match self.finish.unwrap_or(Finish::Unknown) {
            _ if self.refused => Finish::Filter,
            Finish::Stop | Finish::Unknown if !self.calls.is_empty() => Finish::Calls,
            finish => finish,
        };
        let thought = Some(self.thought.trim()).filter(|thought| !thought.is_empty());
        let text = Some(self.text).filter(|text| !text.trim().is_empty());
        let mut parts = Vec::with_capacity(2);
        parts.extend(thought.map(|thought| Part::Thought(thought.into())));
        parts.extend(text.map(Part::text));
        parts.extend(self.calls.finish(request).map(Part::Call));
        Reply { parts, finish, usage: self.usage, cached: false }
    }
}

fn sort(kind: Kind, piece: &str, thought: &mut String, text: &mut String, deltas: &mut dyn Deltas) {
    match kind {
        Kind::Thought => {
            thought.push_str(piece);
            deltas.push(Delta::Thought(piece));
        }
        Kind::Text => {
            text.push_str(piece);
            deltas.push(Delta::Text(piece));
        }
    }
}

fn finish(reason: &str) -> Finish {
    let known = known_finish(reason).or_else(|| known_finish(&reason.to_ascii_lowercase()));
    known.unwrap_or(Finish::Unknown)
}

fn known_finish(reason: &str) -> Option<Finish> {
    Some(match reason {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" => Finish::Stop,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Finish::Calls,
        "length" | "max_tokens" | "model_length" | "max_output_tokens" => Finish::Length,
        "content_filter" | "safety" | "refusal" | "recitation" => Finish::Filter,
        _ => return None,
    })
}

fn unreadable(error: &serde_json::Error, text: &str) -> Flaw {
    let excerpt = text.chars().take(200).collect();
    Flaw::Unreadable { why: format!("it is no JSON of a chat completion ({error})"), excerpt }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
