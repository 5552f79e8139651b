//! Models: requests and replies.

mod bound;
mod earlier;
mod inner_model;
mod invariants;
mod seals;
mod stops;
mod wrapper;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use self::earlier::EarlierReplies;
use self::inner_model::inner_model;
pub use self::seals::SealsSent;
use self::stops::Stopped;
pub use self::wrapper::ModelWrapper;
use crate::view::Chain;
use crate::{
    CallCost, Capabilities, DeltaSink, Digest, EncodeCache, Entry, Limits, ModelError, ModelErrorKind, Money,
    Name, Params, Path, Reply, Reservation, ToolSpec, Usage,
};

/// A chat model: a provider over HTTP, a script, a recording.
///
/// One model value serves any number of conversations at once and keeps no state of any of them. A model around another one is
/// easier to write as a [`ModelWrapper`].
///
/// Only [`name`](Self::name) and [`complete`](Self::complete) are required. Each other method has a default, and makes one thing
/// more precise:
///
/// | of | methods |
/// |---|---|
/// | reports of cost | [`cost`](Self::cost), [`has_price`](Self::has_price) |
/// | limits on tokens and money, and the bound of a run | [`max_output`](Self::max_output), [`min_useful_output`](Self::min_useful_output), [`max_input`](Self::max_input), [`page_tokens`](Self::page_tokens), [`returns_seals`](Self::returns_seals) |
/// | compaction of long histories | [`context_window`](Self::context_window) |
/// | tools, schemas and media without trying | [`capabilities`](Self::capabilities), [`expected_capabilities`](Self::expected_capabilities) |
/// | parameters that the model does not take | [`ignored`](Self::ignored), [`least_to_reason`](Self::least_to_reason), [`check_params`](Self::check_params) |
/// | models around others: fallbacks, caches | [`alternatives`](Self::alternatives), [`unavailable_for`](Self::unavailable_for), [`is_cached`](Self::is_cached) |
///
/// # Example: a model that repeats the last message
/// ```
/// use polylogue_core::{DeltaRef, DeltaSink, Model, ModelError, Reply, Request, text_of};
///
/// struct Echo;
///
/// impl Model for Echo {
///     fn name(&self) -> &str {
///         "test:echo"
///     }
///
///     async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
///         let text = request.entries.last().map(|entry| text_of(entry.parts()).into_owned()).unwrap_or_default();
///         deltas.push(DeltaRef::Text(&text));
///         Ok(Reply::new(text))
///     }
/// }
/// ```
pub trait Model: Send + Sync + 'static {
    /// Returns the name of the model as `provider:model`.
    fn name(&self) -> &str;

    /// Replies to `request`, streaming the pieces to `deltas` as they arrive.
    ///
    /// The reply is complete: callers that do not stream can ignore the deltas.
    ///
    /// # Errors
    /// When there is no reply, after the model's own retries.
    fn complete(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> impl Future<Output = Result<Reply, ModelError>> + Send
    where
        Self: Sized;

    /// Returns the cost of a call with `usage`; `None` if unknown.
    fn cost(&self, usage: &Usage) -> Option<Money> {
        let _ = usage;
        None
    }

    /// Returns whether [`cost`](Self::cost) says what a request with `params` costs. Extra fields can ask for service at
    /// another price. Default: yes.
    fn has_price(&self, params: &Params) -> bool {
        let _ = params;
        true
    }

    /// Returns the maximum length of a reply with `params`, in tokens, reasoning included; `None` if no limit is known.
    ///
    /// Under a limit on money, a call is reserved at this length before it is sent; see [`Bound`](crate::Bound).
    fn max_output(&self, params: &Params) -> Option<u64> {
        params.max_tokens.map(u64::from)
    }

    /// Returns the fewest tokens of a reply with which a call is worth sending: a limit on tokens or money that leaves less
    /// refuses the call, and one that leaves more lowers the output limit of the request. Default:
    /// [`USEFUL_OUTPUT`](Limits::USEFUL_OUTPUT); models that reason first need more.
    fn min_useful_output(&self, params: &Params) -> u64 {
        let _ = params;
        Limits::USEFUL_OUTPUT
    }

    /// Returns the maximum length of a request in tokens: its context window; `None` if unknown.
    ///
    /// Agents compact their histories before they reach it.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Returns the most input tokens that a request can be billed for; `None` if unknown. Default: its context window.
    ///
    /// No call is reserved with more; see [`Bound`](crate::Bound).
    fn max_input(&self) -> Option<u64> {
        self.context_window()
    }

    /// Returns the most tokens of a page of a document: those of its text, where that is not known, and of the picture of it.
    /// Default: [`Bound::PAGE_TOKENS`](crate::Bound::PAGE_TOKENS), the most of any provider.
    fn page_tokens(&self) -> u64 {
        crate::Bound::PAGE_TOKENS
    }

    /// Returns the names of the parameters in `params` that the model does not accept. They are left out of requests, and an
    /// event in the log says so. Default: none.
    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        let _ = params;
        Vec::new()
    }

    /// Returns the lowest `max_tokens` with which the model reasons, if `params` ask it to reason and have a lower one. What they
    /// ask for is then [left out](Self::ignored). Default: `None`, for a model that reasons with any limit.
    fn least_to_reason(&self, params: &Params) -> Option<u64> {
        let _ = params;
        None
    }

    /// Checks `params` before there is a request: what is wrong with them is the error of every call, such as an extra field that cannot
    /// be sent. Default: nothing is known to be wrong.
    ///
    /// # Errors
    /// What a call with them fails with.
    fn check_params(&self, params: &Params) -> Result<(), ModelError> {
        let _ = params;
        Ok(())
    }

    /// For a model that forwards each request to one of several others: returns these, so that what one of them
    /// [leaves out](Self::ignored) is logged under its name. Default: empty, for a model that forwards nothing.
    fn alternatives(&self) -> &[AnyModel] {
        &[]
    }

    /// Returns how long the model is not to be asked if another model can be, because its endpoint fails or is at its rate
    /// limit; `None` if it is available. After several failures one call must try the endpoint: its caller is the one that gets
    /// `None`.
    fn unavailable_for(&self) -> Option<Duration> {
        None
    }

    /// Returns whether the reply to `request` is in a cache, so that it costs nothing: nothing is reserved for it, and a
    /// budget that is nearly spent allows it. Default: no.
    fn is_cached(&self, request: &Request<'_>) -> bool {
        let _ = request;
        false
    }

    /// Returns the configured capabilities, known before any call. A capability that a call finds missing is an error of the
    /// kind [`ModelErrorKind::Unsupported`].
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Returns the capabilities that requests with `params` are expected to find: the configured ones, and those that are
    /// documented of the model. Its server can still lack one of them. The bound of a team rests on them; agents do not.
    /// Default: the configured ones.
    fn expected_capabilities(&self, params: &Params) -> Capabilities {
        let _ = params;
        self.capabilities()
    }

    /// Returns whether its replies to requests with `params` can have [seals](crate::Seals), such as encrypted reasoning, which
    /// later requests return. The bound of a team counts them where this says so. Default: no.
    fn returns_seals(&self, params: &Params) -> bool {
        let _ = params;
        false
    }
}

/// Any model. Cloning shares it.
#[derive(Clone, derive_more::Debug)]
#[debug("AnyModel({:?})", self.0.name())]
pub struct AnyModel(Arc<dyn ErasedModel>);

/// [`Model`] as an object: its futures are boxed.
trait ErasedModel: Model {
    fn boxed<'a>(
        &'a self,
        request: &'a Request<'_>,
        deltas: &'a mut dyn DeltaSink,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;
}

impl<M: Model> ErasedModel for M {
    fn boxed<'a>(
        &'a self,
        request: &'a Request<'_>,
        deltas: &'a mut dyn DeltaSink,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>> {
        Box::pin(Model::complete(self, request, deltas))
    }
}

impl AnyModel {
    /// Wraps `model`.
    pub fn new(model: impl Model) -> Self {
        Self(Arc::new(model))
    }

    /// Returns the cost of a call with `usage`, and what it would be without the provider's prompt cache; `None` if unknown.
    pub fn call_cost(&self, usage: &Usage) -> Option<CallCost> {
        let uncached = usage.used_prompt_cache().then(|| usage.without_prompt_cache());
        let uncached = uncached.and_then(|usage| self.0.cost(&usage));
        Some(CallCost { cost: self.0.cost(usage)?, uncached })
    }

    /// Returns the cost of `reply` to a request to this model: that of the model that replied, if it chooses among several.
    pub fn reply_cost(&self, reply: &Reply) -> Option<CallCost> {
        match &reply.answered_by {
            Some(by) => by.cost,
            None => self.call_cost(&reply.usage),
        }
    }

    /// Asks the model alone, without a chat: one call, which is in no log. Agents ask their model by
    /// [`Turn::ask_model`](crate::Turn::ask_model).
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn ask(&self, text: &str) -> Result<Reply, ModelError> {
        self.ask_with(text, &Params::default(), &mut ()).await
    }

    /// Asks like [`ask`](Self::ask), with parameters, and with what streams of the reply. The model is asked again without a parameter that
    /// its provider refuses.
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn ask_with(
        &self,
        text: &str,
        params: &Params,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Reply, ModelError> {
        let (at, who, encoded) = (Path::root(), Name::user(), EncodeCache::default());
        let entries = [Entry::user(text)];
        let request = Request {
            origin: Origin::new(&at, &who, 0),
            system: None,
            entries: &entries,
            tools: &[],
            params,
            encoded: &encoded,
            reserved: None,
        };
        for _ in params.names() {
            match Model::complete(self, &request, deltas).await {
                Err(error) if error.kind == ModelErrorKind::ParameterRefused => {}
                result => return result,
            }
        }
        Model::complete(self, &request, deltas).await
    }
}

impl From<&Self> for AnyModel {
    fn from(model: &Self) -> Self {
        model.clone()
    }
}

impl Model for AnyModel {
    inner_model!(self => self.0);

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let stops = &request.params.stop;
        if stops.is_empty() {
            return self.0.boxed(request, deltas).await;
        }
        let mut stopped = Stopped::new(stops, deltas);
        let reply = self.0.boxed(request, &mut stopped).await?;
        stopped.finish();
        Ok(stops::cut(reply, stops))
    }

    fn is_cached(&self, request: &Request<'_>) -> bool {
        self.0.is_cached(request)
    }
}

/// A request to a model: one agent's view of a conversation, with tools and parameters.
///
/// Borrowed from the view, so that its cost does not grow with the conversation.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The position of the call in the conversation.
    pub origin: Origin<'a>,
    /// The system message.
    pub system: Option<&'a str>,
    /// The conversation so far. Never empty, and its last entry is never the agent's own.
    pub entries: &'a [Entry],
    /// The tools the model may call.
    pub tools: &'a [ToolSpec],
    /// Temperature and other parameters.
    pub params: &'a Params,
    /// A cache for what a provider has encoded of this view.
    pub encoded: &'a EncodeCache,
    /// The reservation of the call: a model that retries reports it here. `None` outside of runs.
    pub reserved: Option<&'a Reservation<'a>>,
}

impl Request<'_> {
    /// Identifies this request to the model named `model`, with the digest that the log has for its reply. Reads all
    /// entries.
    pub fn digest(&self, model: &str) -> Digest {
        let chain = self.entries.iter().fold(Chain::default(), |chain, entry| chain.link(entry));
        chain.digest(model, self.system, self.tools, self.params)
    }
}

/// The position of a request: how scripts and recordings find the reply.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The chat.
    pub chat: &'a Path,
    /// The agent.
    pub who: &'a Name,
    /// How many model calls of this agent ended before, in the whole conversation: with a reply, or with a failed
    /// turn.
    pub nth: u64,
    /// The model that replied last to this agent in this turn, as `provider:model`; `None` in the first call of a turn.
    pub last_model: Option<&'a str>,
    /// The replies in earlier turns.
    pub earlier: EarlierReplies<'a>,
}

impl<'a> Origin<'a> {
    /// Creates the origin of the first call of a turn of `who` in the chat `at`, after `nth` calls and no earlier turns.
    pub fn new(at: &'a Path, who: &'a Name, nth: u64) -> Self {
        Self { chat: at, who, nth, last_model: None, earlier: EarlierReplies::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, Opening, Transcript, View, ViewOptions};

    #[test]
    fn a_request_is_identified_as_the_view_it_is_made_of() {
        let me = Name::new("A").unwrap();
        let messages = vec![Message::new(Name::user(), "one"), Message::new(Name::user(), "two")];
        let opening = Opening { participants: vec![me.clone()], messages, ..Opening::default() };
        let body = crate::Body::Opened(opening);
        let event = crate::Event {
            seq: 0,
            chat: Path::root(),
            time: crate::Timestamp(0),
            ran_ms: 0,
            inbox: None,
            body,
        };
        let transcript = Transcript::from_events(&Path::root(), &[std::sync::Arc::new(event)]).unwrap();
        let view = View::of(&transcript, &me, ViewOptions::default());
        let (params, encoded, at) = (&Params::default(), &EncodeCache::default(), &Path::root());
        let origin = Origin::new(at, &me, 0);
        let request = Request {
            origin,
            system: Some("s"),
            entries: view.entries(),
            tools: &[],
            params,
            encoded,
            reserved: None,
        };
        assert_eq!(view.entries().len(), 2);
        assert_eq!(request.digest("m"), view.digest("m", Some("s"), &[], params));
    }
}
