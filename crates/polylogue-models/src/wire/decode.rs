//! Decodes responses as replies, streamed or whole.

use polylogue_core::{DeltaSink, Request};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::draft::{DecodeError, DecodeResult, Decoded, Draft, EXCERPT};
use super::frames::{Frame, FrameError, Frames};
use super::halves::without_halves;
use super::lenient::Text;
use super::protocol::Protocol;
use super::sse::{Line, Splitter};

/// Maximum size of an event of several lines, in bytes.
const MAX_EVENT: usize = 32 << 20;

/// Decodes one reply.
#[derive(Debug, Default)]
pub(crate) struct Decoder<P> {
    splitter: Splitter,
    event: Pending,
    frames: Frames,
    /// Whether text arrived instead of frames: a whole reply, or a page.
    lines: Option<bool>,
    /// Whether anything but white space arrived, such as comments that keep a connection alive.
    spoke: bool,
    reading: PartialReply<P>,
}

/// The lines of an incomplete event.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Whether they are bare JSON, which a blank line does not end.
    bare: bool,
}

/// The reply so far, and the state of its protocol.
#[derive(Debug, Default)]
struct PartialReply<P> {
    protocol: P,
    reply: Draft,
    /// The end mark of an event stream was received: what follows it is of no reply.
    is_over: bool,
}

impl<P: Protocol> Decoder<P> {
    /// Takes the next bytes of a stream.
    ///
    /// # Errors
    /// When they cannot be part of a reply.
    pub(crate) fn feed(&mut self, bytes: &[u8], deltas: &mut dyn DeltaSink) -> DecodeResult {
        let Self { splitter, event, frames, lines, spoke, reading } = self;
        *spoke |= !bytes.iter().all(u8::is_ascii_whitespace);
        if P::FRAMES && !*lines.get_or_insert_with(|| is_text(bytes)) {
            return frames.feed(bytes, |frame| reading.take_frame(frame, deltas));
        }
        splitter.feed(bytes, |line| take_line(event, reading, line, deltas))
    }

    /// Whether a first piece of a reply arrived; comments and empty events do not count.
    pub(crate) fn began(&self) -> bool {
        self.reading.reply.began
    }

    /// Whether the server sent the end mark, so that nothing more is expected.
    pub(crate) fn ended(&self) -> bool {
        self.reading.reply.ended
    }

    /// Whether the reply is complete, though its usage may still come.
    pub(crate) fn finished(&self) -> bool {
        self.reading.reply.is_finished()
    }

    /// Decodes a whole body. It is usually one JSON object; else it is decoded like a stream.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub(crate) fn whole(
        mut self,
        body: &[u8],
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult<Decoded> {
        match read::<P>(body) {
            Read::Chunk(chunk) => {
                self.reading.take(&chunk, body, deltas)?;
                self.reading.reply.ended |= !self.reading.reply.is_unfinished;
            }
            Read::Begun | Read::Other => self.feed(body, deltas)?,
        }
        self.finish(request, deltas)
    }

    /// Ends the stream and returns the reply.
    ///
    /// # Errors
    /// When there is none, or only the beginning of one.
    pub(crate) fn finish(self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> DecodeResult<Decoded> {
        let Self { mut splitter, mut event, frames, spoke, mut reading, .. } = self;
        let (received, is_whole) = (reading.reply.received, reading.reply.is_finished());
        let last = splitter.finish(|line| take_line(&mut event, &mut reading, line, deltas));
        match last.and_then(|()| event.flush(&mut reading, deltas)) {
            Ok(()) if frames.is_cut() && !is_whole => return Err(DecodeError::Cut),
            // Data after a complete reply is ignored.
            Err(DecodeError::Unreadable { .. } | DecodeError::Cut) if is_whole => {}
            // A body that ends with the connection may end anywhere: within a line, or within a character.
            Err(DecodeError::Unreadable { .. }) if received => return Err(DecodeError::Cut),
            last => last?,
        }
        reading.reply.finish(request, P::CORE, deltas).map_err(|error| match error {
            DecodeError::Empty if spoke => DecodeError::Cut,
            error => error,
        })
    }
}

/// The objects of a body that is a list of them: Gemini sends one instead of events if these are not asked for, or a gateway removes the
/// question.
fn listed(body: &[u8]) -> Option<Vec<&str>> {
    let mut rest = std::str::from_utf8(body).ok()?.trim().strip_prefix('[')?;
    let mut objects = Vec::new();
    while rest != "]" {
        rest = rest.trim_start();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        values.next().filter(|_| rest.starts_with('{'))?.ok()?;
        let (object, after) = rest.split_at_checked(values.byte_offset())?;
        objects.push(object);
        let after = after.trim_start();
        rest = after.strip_prefix(',').or(Some(after).filter(|after| *after == "]"))?;
    }
    (!objects.is_empty()).then_some(objects)
}

fn take_line<P: Protocol>(
    event: &mut Pending,
    reading: &mut PartialReply<P>,
    line: Line<'_>,
    deltas: &mut dyn DeltaSink,
) -> DecodeResult {
    match line {
        _ if reading.is_over => Ok(()),
        Line::Blank if event.bare => Ok(()),
        Line::Blank => event.flush(reading, deltas),
        Line::Data(bytes) | Line::Bare(bytes) if !event.bytes.is_empty() => event.append(bytes),
        Line::Data(bytes) => event.begin(bytes, false, reading, deltas),
        Line::Bare(bytes) => event.begin(bytes, true, reading, deltas),
    }
}

impl Pending {
    /// Decodes the first line of an event. Most events have one line, and some servers omit the blank line after it: so it is
    /// decoded at once, and buffered only if it is incomplete.
    fn begin<P: Protocol>(
        &mut self,
        line: &[u8],
        bare: bool,
        reading: &mut PartialReply<P>,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        if line.eq_ignore_ascii_case(b"[DONE]") {
            (reading.reply.ended, reading.is_over) = (true, true);
            return Ok(());
        }
        match read::<P>(line) {
            Read::Chunk(chunk) => reading.take(&chunk, line, deltas),
            Read::Begun => {
                self.bare = bare;
                self.append(line)
            }
            // A list is complete at the end of the body.
            Read::Other if bare && line.starts_with(b"[") => {
                self.bare = true;
                self.append(line)
            }
            Read::Other => reading.take_all(line, deltas).map_err(|error| cut_if(error, line)),
        }
    }

    fn append(&mut self, line: &[u8]) -> DecodeResult {
        if self.bytes.len().saturating_add(line.len()) > MAX_EVENT {
            return Err(DecodeError::TooLong("an event of the reply does not end"));
        }
        if !self.bytes.is_empty() {
            self.bytes.push(b'\n');
        }
        self.bytes.extend_from_slice(line);
        Ok(())
    }

    fn flush<P: Protocol>(
        &mut self,
        reading: &mut PartialReply<P>,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.bytes);
        // An incomplete event is a broken connection, unless the reply was complete.
        reading.take_all(&bytes, deltas).map_err(|error| cut_if(error, &bytes))
    }
}

/// Whether these first bytes of a body are text. Frames begin with their length, of which the first byte is 0 or 1.
fn is_text(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|byte| *byte > 1)
}

/// How bytes were decoded.
enum Read<C> {
    Chunk(C),
    /// Incomplete.
    Begun,
    /// A list, several objects in a row, invalid UTF-8 or UTF-16, or not JSON.
    Other,
}

/// Decodes a single object, and not the list of its fields, which serde takes for one. UTF-8 is checked once for all bytes, which is
/// faster than for each text.
fn read<P: Protocol>(bytes: &[u8]) -> Read<P::Chunk<'_>> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Read::Other };
    if !text.trim_start().starts_with('{') {
        return Read::Other;
    }
    match serde_json::from_str(text) {
        Ok(chunk) => Read::Chunk(chunk),
        Err(error) if error.is_eof() => Read::Begun,
        Err(_) => Read::Other,
    }
}

/// `error`, or that the reply was cut if that is why `bytes` cannot be read.
fn cut_if(error: DecodeError, bytes: &[u8]) -> DecodeError {
    if matches!(error, DecodeError::Unreadable { .. }) && is_cut(bytes) { DecodeError::Cut } else { error }
}

fn is_cut(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_err_and(|error| error.is_eof())
}

impl<P: Protocol> PartialReply<P> {
    fn take(&mut self, chunk: &P::Chunk<'_>, raw: &[u8], deltas: &mut dyn DeltaSink) -> DecodeResult {
        self.reply.received = true;
        let taken = if P::is_error(chunk) {
            Err(DecodeError::Error(String::from_utf8_lossy(raw).into_owned()))
        } else {
            self.protocol.take(chunk, &mut self.reply, deltas)
        };
        taken.map_err(|error| self.reply.ended_by(error))
    }

    /// Decodes a frame: an event as an object with the event's type as its only field, or an error.
    fn take_frame(&mut self, frame: Frame<'_>, deltas: &mut dyn DeltaSink) -> DecodeResult {
        let header = |name| frame.header(name).map(Option::unwrap_or_default);
        let payload = String::from_utf8_lossy(frame.payload);
        let (name, text) = match header(":message-type")? {
            "event" => {
                let event = header(":event-type")?;
                let name = serde_json::Value::from(event);
                let chunk = format!("{{{name}:{payload}}}");
                return self.take_all(chunk.as_bytes(), deltas);
            }
            "exception" => (header(":exception-type")?, payload.into_owned()),
            _ => (header(":error-code")?, header(":error-message")?.to_owned()),
        };
        let said: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let message = said.as_ref().and_then(|said| said.get("message")?.as_str()).unwrap_or(&text);
        let json = serde_json::json!({"__type": name, "message": message}).to_string();
        Err(self.reply.ended_by(DecodeError::Error(json)))
    }

    /// Decodes a list of objects, several in a row, invalid UTF-8, or halves of characters.
    fn take_all(&mut self, bytes: &[u8], deltas: &mut dyn DeltaSink) -> DecodeResult {
        if let Some(objects) = listed(bytes) {
            return objects.iter().try_for_each(|object| self.take_all(object.as_bytes(), deltas));
        }
        let text = String::from_utf8_lossy(bytes);
        let text = without_halves(&text);
        for chunk in serde_json::Deserializer::from_str(&text).into_iter::<P::Chunk<'_>>() {
            match chunk {
                Ok(chunk) => self.take(&chunk, bytes, deltas)?,
                Err(error) if error.is_data() && is_unknown(&text, P::EVENTS) => {}
                Err(error) => return Err(unreadable(&error, P::REPLY, &text)),
            }
        }
        Ok(())
    }
}

/// Whether `text` is an event of another type than `known` ones, if events have a type.
fn is_unknown(text: &str, known: &[&str]) -> bool {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(rename = "type", borrow, default)]
        kind: Text<'a>,
    }
    let event = serde_json::from_str::<Event<'_>>(text);
    let is_other = |event: Event<'_>| event.kind.get().is_some_and(|kind| !known.contains(&kind));
    !known.is_empty() && event.is_ok_and(is_other)
}

fn unreadable(error: &serde_json::Error, reply: &str, text: &str) -> DecodeError {
    let (error, excerpt) = (error.to_string(), text.chars().take(EXCERPT).collect());
    // What would be valid has the name of a type of this program.
    let flaw = error.split_once(", expected").map_or(error.as_str(), |(flaw, _)| flaw);
    DecodeError::Unreadable { why: format!("it is not valid JSON for {reply} ({flaw})"), excerpt }
}

impl From<FrameError> for DecodeError {
    fn from(error: FrameError) -> Self {
        Self::Unreadable { why: error.to_string(), excerpt: String::new() }
    }
}
