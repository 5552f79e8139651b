//! Agents made of layers, each of which can reply or pass on to the next.
//!
//! Human input, suggested tools, code, a model, a custom rule: each is a [`ReplyLayer`], and a [`Stack`] asks one after the
//! other. A stack is an immutable value: a changed stack is another value.
//!
//! # Human input first, then tools, then a model
//! ```
//! # fn example(model: polylogue_core::AnyModel, tool: polylogue_core::AnyTool) -> polylogue_core::Result<()> {
//! use polylogue::layers::executor::Executor;
//! use polylogue::layers::human_input::HumanInput;
//! use polylogue::layers::reply::{Stack, Trigger, from_fn, when};
//! use polylogue::{Act, Assistant};
//!
//! let proxy = Stack::new("Proxy")?
//!     .then(HumanInput::terminate())
//!     .then(Executor::new().tool(tool))
//!     .then(Assistant::new("Proxy", model)?);
//!
//! // The same, but greetings from Ann are answered by a rule before all other layers.
//! let greeted = |line: &polylogue::kernel::transcript::TranscriptMessage| line.message.text().starts_with("Hello");
//! let polite = when(Trigger::from_participant("Ann".try_into()?) & Trigger::received(greeted), from_fn(|_| Ok(Some(Act::say("Hello!")))));
//! let proxy = proxy.prepend(polite);
//! # Ok(())
//! # }
//! ```

mod stack;
mod trigger;

use std::pin::Pin;

use polylogue_core::{Act, Agent, AnyAgent, Chat, Result, Turn};

pub use self::stack::Stack;
pub use self::trigger::{MessageKind, Trigger, When, when};
use crate::Assistant;
use crate::Human;

/// A layer of a [`Stack`], which can reply in a turn.
///
/// The rules of [`Agent::act`] apply: when a run is resumed in the middle of a turn, `reply` runs again from its start,
/// and must be deterministic.
pub trait ReplyLayer: Send + Sync + 'static {
    /// Returns the label of the layer in a stack, for [`Stack::without`].
    fn label(&self) -> &str {
        ""
    }

    /// Returns whether a turn without a reply is silent, so that the chat continues: a person, a model or a chat could have
    /// replied. A stack of only program layers, which have nothing to do, ends the chat instead. Default: `false`.
    fn may_be_silent(&self) -> bool {
        false
    }

    /// Returns the agent that works in background tasks of this layer: see [`Agent::background_agent`]. Default: nothing.
    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        let _ = target;
        None
    }

    /// Replies, or passes on with `None`. A reply is final: [`Act::Pass`] sends no message and skips the other layers,
    /// [`Act::Stop`] ends the chat.
    ///
    /// # Errors
    /// The turn stays open: running the chat again retries it.
    fn reply(&self, turn: &mut Turn<'_>) -> impl Future<Output = Result<Option<Act>>> + Send
    where
        Self: Sized;
}

/// [`ReplyLayer`] as an object: its futures are boxed.
pub(super) trait ErasedReply: ReplyLayer {
    fn boxed<'a>(
        &'a self,
        turn: &'a mut Turn<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Act>>> + Send + 'a>>;
}

impl<R: ReplyLayer> ErasedReply for R {
    fn boxed<'a>(
        &'a self,
        turn: &'a mut Turn<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Act>>> + Send + 'a>> {
        Box::pin(self.reply(turn))
    }
}

/// Agents as layers: an empty message passes on.
macro_rules! agent_as_layer {
    ($($agent:ty, $label:expr, $doc:literal;)*) => {$(
        #[doc = $doc]
        impl ReplyLayer for $agent {
            fn label(&self) -> &str {
                let label: fn(&Self) -> &str = $label;
                label(self)
            }
            fn may_be_silent(&self) -> bool {
                true
            }
            fn background_agent(&self, target: &str) -> Option<AnyAgent> {
                Agent::background_agent(self, target)
            }
            async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
                Ok(match self.act(turn).await? {
                    Act::Pass => None,
                    act => Some(act),
                })
            }
        }
    )*};
}

agent_as_layer! {
    Assistant, |_| "model", "The layer `model`: passes on when the model's message is empty.";
    Human, |_| "person", "The layer `person`: passes on when the answer is empty.";
    Chat, |chat| chat.name().as_str(), "The layer of the chat's name: passes on when the summary is empty.";
    AnyAgent, |agent| agent.name().as_str(), "The layer of the agent's name: passes on when its message is empty.";
}

/// Creates a layer from a pure function of the turn.
///
/// ```
/// use polylogue::Act;
/// use polylogue::layers::reply::from_fn;
/// let short = from_fn(|turn| {
///     let long = turn.last_message().is_some_and(|line| line.message.text().len() > 10_000);
///     Ok(long.then(|| Act::say("Shorter, please.")))
/// });
/// ```
pub fn from_fn(reply: impl Fn(&Turn<'_>) -> Result<Option<Act>> + Send + Sync + 'static) -> impl ReplyLayer {
    FromFn(reply)
}

struct FromFn<F>(F);

impl<F: Fn(&Turn<'_>) -> Result<Option<Act>> + Send + Sync + 'static> ReplyLayer for FromFn<F> {
    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        (self.0)(turn)
    }
}

/// Gives a layer the label `label`, for [`Stack::without`].
pub fn labeled(label: &str, layer: impl ReplyLayer) -> impl ReplyLayer {
    Labeled { label: label.to_owned(), layer }
}

struct Labeled<R> {
    label: String,
    layer: R,
}

impl<R: ReplyLayer> ReplyLayer for Labeled<R> {
    fn label(&self) -> &str {
        &self.label
    }
    fn may_be_silent(&self) -> bool {
        self.layer.may_be_silent()
    }
    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        self.layer.background_agent(target)
    }
    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        self.layer.reply(turn).await
    }
}
