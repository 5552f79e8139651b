//! Hooks: change what a model reads, what it replies, and what an agent sends.
//!
//! A hook is a wrapper with a pure function: [`HookedModel`] wraps a model, [`before_send`] an agent. The log never changes
//! after the fact: a hook on the view changes only what one model receives.
//!
//! # A model that sees no digits and writes lower case
//! ```
//! # fn example(model: polylogue_core::AnyModel) -> polylogue_core::Result<()> {
//! use polylogue::layers::hook::{HookedModel, before_send, map_text};
//! use polylogue::kernel::data::Part;
//! use polylogue::Assistant;
//!
//! let model = HookedModel::new(model)
//!     .on_received(map_text(|text| text.replace(char::is_numeric, "#")))
//!     .on_reply(|mut reply| {
//!         reply.parts = map_text(|text| text.to_lowercase())(reply.parts);
//!         reply
//!     });
//! let ann = Assistant::new("Ann", model)?;
//! let signed = before_send(ann, |parts, turn| {
//!     parts.into_iter().chain([Part::text(format!("Yours, {}", turn.me()))]).collect()
//! });
//! # Ok(())
//! # }
//! ```

mod message_hooks;

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnyModel, DeltaSink, EncodeCache, Entry, Model, ModelError, ModelErrorKind, ModelWrapper,
    Part, Reply, Request, Result, Turn, push_parts,
};

pub use self::message_hooks::{HookId, MessageHooks};

/// A model with hooks on its requests and replies. Hooks of a kind run in the order in which they were added.
///
/// The digest that identifies a request in the log is that of the view without hooks.
#[derive(Clone, derive_more::Debug)]
pub struct HookedModel {
    model: AnyModel,
    #[debug(skip)]
    views: Vec<Arc<OnView>>,
    #[debug(skip)]
    replies: Vec<Arc<OnReply>>,
}

type OnView = dyn Fn(Vec<Entry>, &Request<'_>) -> Vec<Entry> + Send + Sync;
type OnReply = dyn Fn(Reply) -> Reply + Send + Sync;

impl HookedModel {
    /// Wraps `model`, without hooks.
    pub fn new(model: impl Model) -> Self {
        Self { model: AnyModel::new(model), views: Vec::new(), replies: Vec::new() }
    }

    /// Changes the conversation that the model receives. The hook also gets the request, with its system message and
    /// agent; its entries are those before all hooks.
    ///
    /// The result must be a valid request for providers (see [`Request::check`]); otherwise the model call fails, and
    /// the error names the problem.
    #[must_use]
    pub fn on_view(
        mut self,
        hook: impl Fn(Vec<Entry>, &Request<'_>) -> Vec<Entry> + Send + Sync + 'static,
    ) -> Self {
        self.views.push(Arc::new(hook));
        self
    }

    /// Changes the last message of another participant that the model receives. Not called while the model is calling
    /// tools.
    #[must_use]
    pub fn on_received(self, hook: impl Fn(Vec<Part>) -> Vec<Part> + Send + Sync + 'static) -> Self {
        self.on_view(move |mut entries, _| {
            if let Some(Entry::User { parts }) = entries.last_mut() {
                *parts = hook(std::mem::take(parts));
            }
            entries
        })
    }

    /// Changes the reply of the model before it is logged. Subscribers see the complete reply only, because the hook
    /// does not apply to deltas.
    #[must_use]
    pub fn on_reply(mut self, hook: impl Fn(Reply) -> Reply + Send + Sync + 'static) -> Self {
        self.replies.push(Arc::new(hook));
        self
    }

    fn error(&self, message: String) -> ModelError {
        let hint = "a hook has to keep what `Request::check` requires";
        ModelError::new(ModelErrorKind::Config, self.model.name(), message).hint(hint)
    }

    async fn hooked(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if self.replies.is_empty() {
            return self.model.complete(request, deltas).await;
        }
        let reply = self.model.complete(request, &mut ()).await?;
        let reply = self.replies.iter().fold(reply, |reply, hook| hook(reply));
        if reply.parts.iter().any(|part| matches!(part, Part::ToolResult(_))) {
            return Err(self.error("a hook made a reply that holds the outcome of a call".into()));
        }
        push_parts(&reply.parts, deltas);
        Ok(reply)
    }
}

impl From<HookedModel> for AnyModel {
    fn from(model: HookedModel) -> Self {
        Self::new(model)
    }
}

impl ModelWrapper for HookedModel {
    type Inner = AnyModel;

    fn inner(&self) -> &Self::Inner {
        &self.model
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if self.views.is_empty() {
            return self.hooked(request, deltas).await;
        }
        let entries =
            self.views.iter().fold(request.entries.to_vec(), |entries, hook| hook(entries, request));
        // The provider's encode cache belongs to the view without hooks.
        let wire = EncodeCache::default();
        let hooked = Request { entries: &entries, encoded: &wire, ..*request };
        hooked
            .check()
            .map_err(|flaw| self.error(format!("a hook made a request that no provider takes: {flaw}")))?;
        self.hooked(&hooked, deltas).await
    }

    /// Unknown with a hook for views, which is called once for each request.
    fn is_cached(&self, request: &Request<'_>) -> bool {
        self.views.is_empty() && self.model.is_cached(request)
    }
}

/// Returns a hook that changes each text part and nothing else.
pub fn map_text(change: impl Fn(&str) -> String) -> impl Fn(Vec<Part>) -> Vec<Part> {
    move |parts| {
        let change = |part| match part {
            Part::Text(text) => Part::text(change(&text)),
            part => part,
        };
        parts.into_iter().map(change).collect()
    }
}

/// Wraps `agent` with a `hook` that changes each of its messages before it is logged, in private turns, too. When
/// nothing is left, the agent passes. Nested hooks run from the inside out.
pub fn before_send(
    agent: impl Agent,
    hook: impl Fn(Vec<Part>, &Turn<'_>) -> Vec<Part> + Send + Sync + 'static,
) -> impl Agent {
    BeforeSend { agent, hook }
}

struct BeforeSend<A, F> {
    agent: A,
    hook: F,
}

impl<A, F> Agent for BeforeSend<A, F>
where
    A: Agent,
    F: Fn(Vec<Part>, &Turn<'_>) -> Vec<Part> + Send + Sync + 'static,
{
    forward_agent!(agent: name, description, sub_agents, background_agent);

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        Ok(match self.agent.act(turn).await? {
            Act::Say(parts) => Act::Say((self.hook)(parts, turn)),
            act => act,
        })
    }
}
