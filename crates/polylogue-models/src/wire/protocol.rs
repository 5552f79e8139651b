//! The trait of protocols, and the request formats of endpoints.

use std::borrow::Cow;

use bytes::BytesMut;
use polylogue_core::{
    CacheLifetime, Capability, DeltaSink, Media, Params, Part, Request, ToolCall, ToolResult, Verbatim,
};
use polylogue_http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::asked::AskedOutput;
use super::draft::{DecodeResult, Draft};
use super::ids::CallIds;
use super::marks::CacheMark;
use super::{json, words};
use crate::accepts::{Accepts, ThinkingForm};
use crate::api::Api;
use crate::deviations::{Deviations, MediaForm, SendReasoning};
use crate::media_limits::MediaLimits;

/// The assistant message between tool results and messages of others, for providers that require one.
pub(super) const NOTED: &str = "Noted.";

/// The request format of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Whether consecutive entries with the same role are merged into one message.
    pub(crate) merge: bool,
    /// Whether the reply is streamed.
    pub(crate) stream: bool,
    /// Whether token usage is requested when streaming.
    pub(crate) stream_usage: bool,
    /// The name of the field that limits the reply.
    pub(crate) max_tokens: &'static str,
    /// Whether the model has vision: pictures follow the results that contain them.
    pub(crate) vision: bool,
    /// Whether the system message is part of the first user message.
    pub(crate) fold: bool,
    /// Whether a message that only calls tools has no content at all, not even `null`.
    pub(crate) omit: bool,
    /// Whether an assistant message separates the result of a tool from messages of others.
    pub(crate) bridge: bool,
    /// Whether Gemini's API is that of Vertex AI.
    pub(crate) vertex: bool,
    /// Which reasoning is sent back to the model that wrote it.
    pub(crate) reasoning: SendReasoning,
    /// The exact length of the ids of calls, if the API requires one.
    pub(crate) call_id_length: Option<usize>,
    /// Whether the request has marks up to which the provider caches the prompt.
    pub(crate) marks: bool,
    /// Whether what is the same in every request is cached for the longer of the lifetimes that the API has for that.
    pub(crate) long_marks: bool,
    /// Whether the end of the system text is marked in the way of OpenAI's APIs, up to which the provider caches the prompt.
    pub(crate) marks_system: bool,
    /// Whether the request names the prefix that it shares with others.
    pub(crate) names_prefix: bool,
    /// What the endpoint accepts by other names, or refuses.
    pub(crate) deviations: Deviations,
    /// Whether the reply continues calls of tools without the reasoning before them: they are of another model, or something before them
    /// has changed.
    pub(crate) lacks_reasoning: bool,
    /// What the model accepts besides messages.
    pub(crate) accepts: Accepts,
    /// What its provider takes of pictures and documents.
    pub(crate) media: &'static MediaLimits,
}

impl Style {
    /// Whether a model is not asked to reason for a number of tokens, because it refuses that without the reasoning so far. Models that
    /// decide themselves do not.
    pub(crate) fn forgoes_reasoning(&self) -> bool {
        self.lacks_reasoning && self.accepts.thinking == ThinkingForm::Budget
    }
}

/// Where messages within the conversation can have the role `system`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemWithin {
    Anywhere,
    /// Alone between a message of others and one of the assistant, or at the end, for models that
    /// [accept](Accepts::system_within) it.
    AfterUser,
    Never,
}

/// An assistant message to be encoded.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    pub(crate) parts: &'a [Part],
    verbatim: Option<&'a Verbatim>,
    /// Whether its seals are sent.
    sealed: bool,
    ids: Option<&'a CallIds>,
    /// How many of the calls are in messages before, and how many this message has at most.
    before: usize,
    most: usize,
}

impl<'a> Own<'a> {
    pub(crate) const fn new(
        parts: &'a [Part],
        verbatim: Option<&'a Verbatim>,
        sealed: bool,
        ids: Option<&'a CallIds>,
    ) -> Self {
        Self { parts, verbatim, sealed, ids, before: 0, most: usize::MAX }
    }

    /// The message with at most `most` calls, after those `before` it. Only the first of these messages has the texts and thoughts.
    pub(crate) const fn with_calls(self, before: usize, most: usize) -> Self {
        Self { before, most, ..self }
    }

    /// Whether it has further calls of a reply, and nothing else.
    pub(crate) const fn is_further(&self) -> bool {
        self.before > 0
    }

    /// Its calls, each with the index of its part.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (usize, &'a ToolCall)> + use<'a> {
        let calls = self.parts.iter().enumerate().filter_map(|(at, part)| match part {
            Part::ToolCall(call) => Some((at, call)),
            _ => None,
        });
        calls.skip(self.before).take(self.most)
    }

    /// A message that is not a reply of the model.
    pub(crate) const fn of(parts: &'a [Part]) -> Self {
        Self::new(parts, None, false, None)
    }

    /// The seal of `part` at `index`, if it is sent.
    pub(crate) fn seal(&self, index: usize, part: &Part) -> Option<&'a Value> {
        self.verbatim.filter(|_| self.sealed)?.seal(index, part)
    }

    /// The thoughts that are sent back, each with its seal.
    pub(crate) fn thoughts(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let parts = if self.is_further() { &[] } else { self.parts };
        parts.iter().enumerate().filter_map(move |(at, part)| match part {
            Part::Thought(text) => Some((&**text, self.seal(at, part)?)),
            _ => None,
        })
    }

    /// The id of `call` in the form that the API accepts.
    pub(crate) fn id<'b>(&'b self, call: &'b ToolCall) -> &'b str {
        self.ids.map_or(call.id.as_str(), |ids| ids.get(&call.id))
    }

    /// The arguments of `call` at `index` as the JSON of an object: as the model wrote them, unless they were changed.
    pub(crate) fn arguments(&self, index: usize, call: &ToolCall) -> Cow<'a, str> {
        match self.verbatim.and_then(|verbatim| verbatim.arguments(index, call)) {
            Some(raw) => Cow::Borrowed(raw),
            None => Cow::Owned(words::arguments(call).to_string()),
        }
    }

    /// The same for APIs where the object is a part of the body, and not a text in it: no key comes twice in an object, which some
    /// servers refuse.
    pub(crate) fn arguments_object(&self, index: usize, call: &ToolCall) -> Cow<'a, str> {
        match self.arguments(index, call) {
            Cow::Borrowed(raw) if words::repeats_keys(raw, &call.args) => Cow::Owned(call.args.to_string()),
            arguments => arguments,
        }
    }
}

/// The result of a tool call to be encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentResult<'a> {
    /// The id of the call in the form that the API accepts.
    pub(crate) id: &'a str,
    /// The name of the tool as the model called it.
    pub(crate) tool: &'a str,
    pub(crate) outcome: &'a ToolResult,
}

/// A wire protocol: encodes requests, and decodes pieces of replies. A value decodes one reply.
///
/// A request is written by [`begin`](Self::begin), the messages in order, `]`, and [`tail`](WriteTail::tail). What is not said of a
/// method with a default is what chat completions do.
pub(crate) trait Protocol: WriteMessages + WriteTail + ReadReply {
    /// Its API in the settings of an endpoint.
    const API: Api;

    /// The name of its replies in errors.
    const REPLY: &'static str;

    /// The field that every reply must have.
    const CORE: &'static str;

    /// The most tools that a request can have, if that is documented of the API. Some of its providers take fewer.
    const MAX_TOOLS: Option<usize> = None;

    /// The highest temperature that it takes, if that is documented of the API, and not of some of its providers.
    const MAX_TEMPERATURE: Option<u32> = None;

    /// The field of a request with the list of messages, which no extra field may replace.
    const MESSAGES: &'static str = "messages";

    /// Whether all results of a turn and the message of others after them are one message, so that
    /// [`results`](WriteMessages::results) gets them together. Consecutive messages of others are then always merged.
    const GROUPS_RESULTS: bool = false;

    /// Whether [`results`](WriteMessages::results) writes the pictures of results itself, for a model with vision. Otherwise they
    /// are in the message of others that follows.
    const PICTURES_IN_RESULTS: bool = false;

    /// Where messages within the conversation can have the role `system`. Otherwise they are messages of others.
    const SYSTEM_WITHIN: SystemWithin = SystemWithin::Anywhere;

    /// Whether streamed replies are binary frames (`application/vnd.amazon.eventstream`) and not lines of text. A piece is then an
    /// object with the event's type as its only field.
    const FRAMES: bool = false;

    /// The types of events and replies, if these have a type. What has another one is skipped, whatever its fields are.
    const EVENTS: &'static [&'static str] = &[];

    /// The parameters that it has no field for.
    const NO_FIELD: &'static [&'static str];

    /// How long it can be told to keep the beginning of a prompt in its cache.
    const CACHE_LIFETIMES: &'static [CacheLifetime] = &[];

    /// The parameters that models refuse which are known to reason.
    const REFUSED_BY_REASONING: &'static [&'static str] = &[];

    /// How the end of a message is marked up to which the provider caches the prompt; `None` if it needs no marks.
    const CACHE_MARK: Option<CacheMark> = None;

    /// The field that a request is sent again with to have the rest of a reply that the provider paused; `None` if what the
    /// reply has so far is sent instead.
    const CONTINUATION: Option<&'static str> = None;

    /// The seal of a text or thought that was decoded in two pieces, the first of which has `length` bytes; `None` if it has
    /// none.
    fn joint_seal(first: Option<&Value>, length: usize, second: Option<&Value>) -> Option<Value> {
        let _ = (first, length, second);
        None
    }

    /// The path and query of a request below the base URL, percent-encoded, if they depend on the request. Default: that
    /// of the API.
    fn target(model: &str, stream: bool) -> Option<String> {
        let _ = (model, stream);
        None
    }

    /// Adds the headers that a request has besides those of every request. Headers of the configuration take precedence.
    fn headers(headers: &mut HeaderMap, request: &Request<'_>, style: &Style) {
        let _ = (headers, request, style);
    }

    /// Writes everything before the first message, the `[` of the list of messages included. There is no `system` text if
    /// it is part of the first message.
    fn begin(out: &mut BytesMut, model: &str, system: Option<&str>, style: &Style) {
        json::quoted(out, r#"{"model":"#, model, r#","messages":["#);
        system.into_iter().for_each(|text| Self::system(out, text, style));
    }

    /// Whether it has a form for `media` in messages of others. Otherwise the text names it.
    fn takes(media: &Media, form: MediaForm) -> bool;
}

/// How a protocol writes the messages of a request.
pub(crate) trait WriteMessages {
    /// Writes a message with the role `system`. Default: a message of others, for an API without that role.
    fn system(out: &mut BytesMut, text: &str, style: &Style) {
        Self::user(out, &[Part::text(text)], style);
    }

    /// Writes a message of others.
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, style: &Style);

    /// Writes an assistant message.
    fn assistant(out: &mut BytesMut, message: &Own<'_>, style: &Style);

    /// Writes a message with results of calls, and then with the `words` of others. Without
    /// [`GROUPS_RESULTS`](Protocol::GROUPS_RESULTS) it is one result and no words.
    fn results<'a>(
        out: &mut BytesMut,
        results: &[SentResult<'_>],
        words: impl IntoIterator<Item = &'a Part> + Clone,
        style: &Style,
    );
}

/// How a protocol writes what comes after the messages of a request, and what it knows of a request and its reply by that.
pub(crate) trait WriteTail {
    /// The names of those of `params` that it does not take together with others of them, from a model that `accepts` so
    /// much.
    fn ignored(params: &Params, accepts: &Accepts) -> Vec<&'static str> {
        let _ = (params, accepts);
        Vec::new()
    }

    /// Whether requests to a model that `accepts` so much have stop texts. Replies are cut at them in any case. Default: yes.
    fn sends_stop(accepts: &Accepts, deviations: &Deviations) -> bool {
        let _ = (accepts, deviations);
        true
    }

    /// The lowest limit on a reply, in tokens, with which a model that `accepts` so much reasons, if `params` ask it to reason and have a
    /// lower one: it then does not. Default: no limit is too low.
    fn least_to_reason(params: &Params, accepts: &Accepts) -> Option<u64> {
        let _ = (params, accepts);
        None
    }

    /// The capability that the model lacks for this request, and why, if that is known before it is sent.
    fn lacks(request: &Request<'_>, style: &Style) -> Option<(Capability, String)> {
        let _ = (request, style);
        None
    }

    /// The name of this wire in the tags of its seals; `None` if it sends none.
    fn sealer(style: &Style) -> Option<&'static str> {
        let _ = style;
        None
    }

    /// Whether a reply to a request with `params` can have seals. Default: where the API has any, of a model that may reason.
    fn can_seal(params: &Params, style: &Style) -> bool {
        Self::sealer(style).is_some() && style.accepts.can_reason(params)
    }

    /// Whether the model reasons with `params` and does not show it, so that it can be asked for a summary and does nothing else because
    /// of that. Default: it shows what it reasons, or there is no field for that.
    fn hides_reasoning(params: &Params, style: &Style) -> bool {
        let _ = (params, style);
        false
    }

    /// Refuses extra fields that cannot be sent.
    ///
    /// # Errors
    /// The reason.
    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        let _ = extra;
        Ok(())
    }

    /// What [`tail`](Self::tail) asks for: the only place that says which fields of the body limit a reply, and how
    /// many replies it has.
    fn asked_output(params: &Params, style: &Style) -> AskedOutput;

    /// Writes everything after the list of messages, the closing brace included.
    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style);
}

/// How a protocol reads a reply.
pub(crate) trait ReadReply: Default + Send {
    /// One JSON object of a reply, whole or a piece.
    type Chunk<'a>: Deserialize<'a>;

    /// Whether `chunk` is an error of the provider, which it can send with any status and in the middle of a reply.
    fn is_error(chunk: &Self::Chunk<'_>) -> bool;

    /// Adds a piece that is no error to the reply.
    ///
    /// # Errors
    /// When it cannot be part of a reply.
    fn take(
        &mut self,
        chunk: &Self::Chunk<'_>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult;
}
