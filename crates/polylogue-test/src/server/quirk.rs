//! The ways in which servers deviate from the protocol, each by its name.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A way to deviate from what OpenAI's own server does.
///
/// Each has a name for scripts and command lines, such as `no-usage` or, with a figure, `stall=5000`;
/// [`Quirk::CATALOG`] lists all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quirk {
    /// Usage is never told.
    NoUsage,
    /// A last chunk with empty `choices` tells the usage although it was not asked for.
    UsageUnasked,
    /// The chunk with the finish reason tells the usage; there is none after it.
    UsageWithFinish,
    /// Every chunk tells the usage so far.
    UsageEverywhere,
    /// A chunk with empty `choices` comes first.
    EmptyChoices,
    /// The first and the finishing chunk have `"delta":null`.
    NullDelta,
    /// What a chunk or message does not tell is there as `null`.
    NullFields,
    /// A field is left out everywhere.
    Missing(Field),
    /// `content` is a list of parts.
    ContentParts,
    /// Reasoning comes as `reasoning`, not as `reasoning_content`.
    ReasoningField,
    /// Reasoning comes as a part of the content of type `thinking`, as Mistral has it.
    ThinkingParts,
    /// Reasoning comes as `reasoning`, and signed as `reasoning_details`, as OpenRouter has it.
    ReasoningDetails,
    /// Reasoning comes in the content between `<think>` and `</think>`.
    ThinkTags,
    /// Streamed calls have no `index`.
    NoCallIndex,
    /// Calls have no `id`.
    NoCallId,
    /// All calls have the `id` `""`.
    EmptyCallId,
    /// All calls have the same `id`.
    SameCallId,
    /// The `id` of a call has nine characters, as Mistral's.
    ShortCallId,
    /// Streamed calls have the indices 1, 4, 7 and so on.
    CallGaps,
    /// A streamed call comes in one chunk.
    CallWhole,
    /// Arguments are streamed character by character.
    ArgumentFragments,
    /// Fragments of several calls alternate.
    CallsInterleaved,
    /// Arguments are a JSON object, not its text.
    ArgumentObject,
    /// The finish reason is `stop` although there are calls.
    CallsEndWithStop,
    /// Lines end with CR LF.
    Crlf,
    /// Lines end with CR.
    Cr,
    /// Comments `: ping` stand between events.
    Comments,
    /// No space after `data:`.
    NoSpace,
    /// Events have `event:` and `id:` lines too.
    EventNames,
    /// The JSON of an event is spread over two `data:` lines.
    MultiLineData,
    /// The stream begins with a byte order mark.
    ByteOrderMark,
    /// One JSON object a line, without `data:`.
    Ndjson,
    /// No `[DONE]` at the end.
    NoDone,
    /// No line end at the end of the stream.
    NoFinalNewline,
    /// Every so many bytes are a chunk and their own write.
    SplitEvery(usize),
    /// The whole body is one chunk and one write.
    Merged,
    /// The reply is not streamed although that was asked for.
    Unstreamed,
    /// The reply is streamed although that was not asked for.
    StreamedUnasked,
    /// An HTML page with status 200.
    Html,
    /// Status 200 and no body.
    EmptyBody,
    /// The body, or the last event, is JSON cut short.
    InvalidJson,
    /// After so many chunks an error object comes, still under status 200.
    ErrorInStream(usize),
    /// The text never ends.
    EndlessStream,
    /// A line never ends.
    EndlessLine,
    /// After the text, comments never end: one every so often.
    EndlessComments(Duration),
    /// The connection is closed before anything is sent.
    HangUp,
    /// The connection is closed in the middle of the body.
    Truncated,
    /// The connection is reset in the middle of the body.
    Reset,
    /// `Content-Length` promises 100 bytes more than are sent.
    LengthTooLong,
    /// `Content-Length` promises half of what is sent.
    LengthTooShort,
    /// Neither `Content-Length` nor chunks: the body ends with the connection.
    NoLength,
    /// The size of a chunk is not a number.
    BadChunk,
    /// Half of the header, a pause, the rest.
    SlowHeaders(Duration),
    /// A pause between the header and the first byte of the body.
    PauseBeforeFirst(Duration),
    /// A pause after the third chunk.
    Stall(Duration),
    /// A pause between any two chunks.
    Pace(Duration),
    /// Nothing is ever sent, and the connection stays open.
    Silent,
    /// 401 with the `Authorization` header of the request in the error's message.
    EchoKey,
    /// 307 to this address.
    Redirect(Cow<'static, str>),
    /// This error status.
    Status(u16),
}

/// A field that servers leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The reply's `id`.
    Id,
    /// `object`.
    Object,
    /// `created`.
    Created,
    /// `model`.
    Model,
    /// The choice's `index`.
    Index,
    /// The message's `role`.
    Role,
    /// The choice's `finish_reason`.
    FinishReason,
    /// The calls' `type`.
    CallType,
}

/// One line of [`Quirk::CATALOG`].
#[derive(Debug, Clone)]
pub struct Entry {
    /// The name for scripts and command lines.
    pub name: &'static str,
    /// The quirk, with its default figure if it has one.
    pub quirk: Quirk,
}

const fn entry(name: &'static str, quirk: Quirk) -> Entry {
    Entry { name, quirk }
}

/// A minute is longer than every time limit of a test.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);
/// An address in the loopback network where nothing listens: port 9 is "discard".
const ELSEWHERE: Quirk = Quirk::Redirect(Cow::Borrowed("http://127.0.0.2:9/v1/chat/completions"));

impl Quirk {
    /// Every kind of quirk, by name. Those with a figure take another one as `name=figure`: milliseconds for pauses.
    pub const CATALOG: &'static [Entry] = &[
        entry("no-usage", Self::NoUsage),
        entry("usage-unasked", Self::UsageUnasked),
        entry("usage-with-finish", Self::UsageWithFinish),
        entry("usage-everywhere", Self::UsageEverywhere),
        entry("empty-choices", Self::EmptyChoices),
        entry("null-delta", Self::NullDelta),
        entry("null-fields", Self::NullFields),
        entry("missing-id", Self::Missing(Field::Id)),
        entry("missing-object", Self::Missing(Field::Object)),
        entry("missing-created", Self::Missing(Field::Created)),
        entry("missing-model", Self::Missing(Field::Model)),
        entry("missing-index", Self::Missing(Field::Index)),
        entry("missing-role", Self::Missing(Field::Role)),
        entry("missing-finish-reason", Self::Missing(Field::FinishReason)),
        entry("missing-call-type", Self::Missing(Field::CallType)),
        entry("content-parts", Self::ContentParts),
        entry("reasoning-field", Self::ReasoningField),
        entry("thinking-parts", Self::ThinkingParts),
        entry("reasoning-details", Self::ReasoningDetails),
        entry("think-tags", Self::ThinkTags),
        entry("no-call-index", Self::NoCallIndex),
        entry("no-call-id", Self::NoCallId),
        entry("empty-call-id", Self::EmptyCallId),
        entry("same-call-id", Self::SameCallId),
        entry("short-call-id", Self::ShortCallId),
        entry("call-gaps", Self::CallGaps),
        entry("call-whole", Self::CallWhole),
        entry("argument-fragments", Self::ArgumentFragments),
        entry("calls-interleaved", Self::CallsInterleaved),
        entry("argument-object", Self::ArgumentObject),
        entry("calls-end-with-stop", Self::CallsEndWithStop),
        entry("crlf", Self::Crlf),
        entry("cr", Self::Cr),
        entry("comments", Self::Comments),
        entry("no-space", Self::NoSpace),
        entry("event-names", Self::EventNames),
        entry("multi-line-data", Self::MultiLineData),
        entry("byte-order-mark", Self::ByteOrderMark),
        entry("ndjson", Self::Ndjson),
        entry("no-done", Self::NoDone),
        entry("no-final-newline", Self::NoFinalNewline),
        entry("split-every", Self::SplitEvery(1)),
        entry("merged", Self::Merged),
        entry("unstreamed", Self::Unstreamed),
        entry("streamed-unasked", Self::StreamedUnasked),
        entry("html", Self::Html),
        entry("empty-body", Self::EmptyBody),
        entry("invalid-json", Self::InvalidJson),
        entry("error-in-stream", Self::ErrorInStream(2)),
        entry("endless-stream", Self::EndlessStream),
        entry("endless-line", Self::EndlessLine),
        entry("endless-comments", Self::EndlessComments(SHORT)),
        entry("hang-up", Self::HangUp),
        entry("truncated", Self::Truncated),
        entry("reset", Self::Reset),
        entry("length-too-long", Self::LengthTooLong),
        entry("length-too-short", Self::LengthTooShort),
        entry("no-length", Self::NoLength),
        entry("bad-chunk", Self::BadChunk),
        entry("slow-headers", Self::SlowHeaders(LONG)),
        entry("pause-before-first", Self::PauseBeforeFirst(LONG)),
        entry("stall", Self::Stall(LONG)),
        entry("pace", Self::Pace(SHORT)),
        entry("silent", Self::Silent),
        entry("echo-key", Self::EchoKey),
        entry("redirect", ELSEWHERE),
        entry("status", Self::Status(500)),
    ];

    /// Whether a client cannot have a complete reply under it, however long it waits.
    pub(super) const fn breaks_reply(&self) -> bool {
        use Quirk::{
            BadChunk, EchoKey, EmptyBody, EndlessComments, EndlessLine, EndlessStream, ErrorInStream, HangUp,
            Html, InvalidJson, LengthTooLong, LengthTooShort, Redirect, Reset, Silent, Status, Truncated,
        };
        matches!(
            self,
            BadChunk
                | EchoKey
                | EmptyBody
                | EndlessComments(_)
                | EndlessLine
                | EndlessStream
                | ErrorInStream(_)
                | HangUp
                | Html
                | InvalidJson
                | LengthTooLong
                | LengthTooShort
                | Redirect(_)
                | Reset
                | Silent
                | Status(_)
                | Truncated
        )
    }

    /// The same quirk with another figure; `None` when it takes none or the figure is none.
    fn figure(&self, figure: &str) -> Option<Self> {
        let pause = || figure.parse().ok().map(Duration::from_millis);
        let count = || figure.parse().ok().filter(|count| *count > 0);
        Some(match self {
            Self::SplitEvery(_) => Self::SplitEvery(count()?),
            Self::ErrorInStream(_) => Self::ErrorInStream(figure.parse().ok()?),
            Self::EndlessComments(_) => Self::EndlessComments(pause()?),
            Self::SlowHeaders(_) => Self::SlowHeaders(pause()?),
            Self::PauseBeforeFirst(_) => Self::PauseBeforeFirst(pause()?),
            Self::Stall(_) => Self::Stall(pause()?),
            Self::Pace(_) => Self::Pace(pause()?),
            Self::Redirect(_) => Self::Redirect(Cow::Owned(figure.to_owned())),
            Self::Status(_) => Self::Status(figure.parse().ok().filter(|code| (400..600).contains(code))?),
            _ => return None,
        })
    }
}

impl FromStr for Quirk {
    type Err = String;

    /// Reads `name` or `name=figure`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, figure) = text.split_once('=').map_or((text, None), |(name, figure)| (name, Some(figure)));
        let Some(known) = Self::CATALOG.iter().find(|entry| entry.name == name) else {
            let names: Vec<_> = Self::CATALOG.iter().map(|entry| entry.name).collect();
            return Err(format!("there is no misbehavior `{name}`; there are: {}", names.join(", ")));
        };
        match figure {
            None => Ok(known.quirk.clone()),
            Some(figure) => known
                .quirk
                .figure(figure)
                .ok_or_else(|| format!("`{name}` does not take the figure `{figure}`")),
        }
    }
}

impl fmt::Display for Quirk {
    /// Its name, without a figure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = |known: &Quirk| match (known, self) {
            (Self::Missing(known), Self::Missing(this)) => known == this,
            _ => std::mem::discriminant(known) == std::mem::discriminant(self),
        };
        let entry = Self::CATALOG.iter().find(|entry| same(&entry.quirk));
        f.write_str(entry.map_or("?", |entry| entry.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quirk_is_read_back_from_its_name() {
        for entry in Quirk::CATALOG {
            assert_eq!(entry.name.parse::<Quirk>().as_ref(), Ok(&entry.quirk));
            assert_eq!(entry.quirk.to_string(), entry.name);
        }
    }

    #[test]
    fn figures_are_read_and_wrong_ones_refused() {
        assert_eq!("stall=5000".parse(), Ok(Quirk::Stall(Duration::from_secs(5))));
        assert_eq!("status=429".parse(), Ok(Quirk::Status(429)));
        assert_eq!("split-every=7".parse(), Ok(Quirk::SplitEvery(7)));
        assert_eq!("redirect=http://h/v1".parse(), Ok(Quirk::Redirect("http://h/v1".into())));
        for bad in ["split-every=0", "status=200", "stall=soon", "html=1", "nonsense"] {
            assert!(bad.parse::<Quirk>().is_err(), "{bad}");
        }
    }
}
