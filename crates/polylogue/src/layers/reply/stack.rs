//! A stack of layers as an agent.

use std::fmt;
use std::sync::Arc;

use crate::stop::LibraryStopReason;
use polylogue_core::{Act, Agent, AnyAgent, Name, NameError, Result, StopReason, Turn, UnknownName};

use super::{ErasedReply, ReplyLayer};

/// An agent made of layers: in its turn each is asked in order, and the first reply counts.
///
/// Without a reply, the stack sends its default reply; an empty one is a silent turn, and the chat continues. Without a
/// default reply, a stack with a person, a model or a chat among its layers is silent, too. A stack of only program
/// layers ends the chat with [`LibraryStopReason::NoReply`], since their input would not change. In private turns it is always
/// silent.
///
/// Its layers act in its name: an [`Assistant`](crate::Assistant) sees the chat as the stack does, and its messages are
/// the stack's. As a layer of another stack it passes on when it has no reply.
#[derive(Clone)]
#[must_use]
pub struct Stack {
    name: Name,
    description: String,
    layers: Vec<Arc<dyn ErasedReply>>,
    otherwise: Option<Arc<str>>,
}

impl Stack {
    /// Creates an agent named `name` without layers.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = Name::new(name)?;
        Ok(Self { name, description: String::new(), layers: Vec::new(), otherwise: None })
    }

    /// Appends a layer.
    pub fn then(self, layer: impl ReplyLayer) -> Self {
        self.insert(usize::MAX, layer)
    }

    /// Prepends a layer.
    pub fn prepend(self, layer: impl ReplyLayer) -> Self {
        self.insert(0, layer)
    }

    /// Inserts a layer at `index`, or appends it if there are fewer layers.
    pub fn insert(mut self, index: usize, layer: impl ReplyLayer) -> Self {
        self.layers.insert(index.min(self.layers.len()), Arc::new(layer));
        self
    }

    /// Removes the layers with this [`label`](ReplyLayer::label).
    ///
    /// # Errors
    /// When there is no such layer.
    pub fn without(mut self, label: &str) -> Result<Self> {
        let before = self.layers.len();
        let place = format!("of `{}`", self.name);
        let unknown = UnknownName::new("layer", label).within(place);
        let unknown = unknown.known(self.layers.iter().map(|layer| layer.label()));
        self.layers.retain(|layer| layer.label() != label);
        if self.layers.len() < before { Ok(self) } else { Err(unknown.into()) }
    }

    /// Sets the description of the agent, which speaker selection reads.
    pub fn description(self, text: impl Into<String>) -> Self {
        Self { description: text.into(), ..self }
    }

    /// Sets the default reply, for turns in which no layer replies. A blank text is a silent turn, and the chat
    /// continues, as with the default reply of AutoGen.
    pub fn otherwise(self, text: impl Into<Arc<str>>) -> Self {
        Self { otherwise: Some(text.into()), ..self }
    }
}

impl Agent for Stack {
    fn name(&self) -> &Name {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        self.layers.iter().find_map(|layer| layer.background_agent(target))
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        Ok(match ReplyLayer::reply(self, turn).await? {
            Some(act) => act,
            None if turn.request().to.is_private() || ReplyLayer::may_be_silent(self) => Act::Pass,
            None => Act::Stop(StopReason::from(LibraryStopReason::NoReply { who: turn.me().clone() })),
        })
    }
}

/// The layer of the stack's name.
impl ReplyLayer for Stack {
    fn label(&self) -> &str {
        self.name.as_str()
    }

    fn may_be_silent(&self) -> bool {
        self.layers.iter().any(|layer| layer.may_be_silent())
    }

    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        Agent::background_agent(self, target)
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        for layer in &self.layers {
            if let Some(act) = layer.boxed(turn).await? {
                return Ok(Some(act));
            }
        }
        Ok(self.otherwise.clone().map(Act::say))
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers: Vec<&str> = self.layers.iter().map(|layer| layer.label()).collect();
        f.debug_struct("Stack").field("name", &self.name).field("layers", &layers).finish_non_exhaustive()
    }
}
