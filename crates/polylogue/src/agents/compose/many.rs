//! Lists and maps of agents, for custom agents.

use polylogue_core::{AgentCall, AnyAgent, Error, Layer, Message, Path, Result, Turn};

use super::ask;

#[cfg(doc)]
use polylogue_core::Agent;

/// A list or map of agents that a custom agent asks. It is not an agent itself and has no memory; the memory of its
/// agents is under `items.0.memory`, or `desks.news.memory`.
///
/// # An agent that asks every agent of a list
/// ```
/// use polylogue::compose::Many;
/// use polylogue::{Act, Agent, Layer, Name, Part, Result, Turn};
///
/// #[derive(Clone)]
/// struct Panel { name: Name, items: Many }
///
/// impl Agent for Panel {
///     fn name(&self) -> &Name {
///         &self.name
///     }
///     fn layers(&self) -> Vec<Layer> {
///         self.items.layers()
///     }
///     async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
///         let first = self.items.ask(turn, 0, turn.message()).await?;
///         let all = self.items.ask_all(turn, first).await?;
///         Ok(Act::Say(all.iter().map(|reply| Part::text(reply.plain())).collect()))
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Many {
    layers: Vec<Layer>,
    label: String,
}

impl Many {
    /// A list with a label: its agents are `label.0`, `label.1` and so on.
    ///
    /// # Errors
    /// When the label is illegal.
    pub fn list(label: &str, agents: impl IntoIterator<Item = AnyAgent>) -> Result<Self> {
        Self::map(label, agents.into_iter().enumerate().map(|(nth, agent)| (nth.to_string(), agent)))
    }

    /// A map with a label: its agents are `label.key`, in the given order.
    ///
    /// # Errors
    /// When the label or a key is not a valid [`Name`](polylogue_core::Name), or a key is used twice.
    pub fn map<K: AsRef<str>>(label: &str, agents: impl IntoIterator<Item = (K, AnyAgent)>) -> Result<Self> {
        let mut many = Self { layers: Vec::new(), label: label.to_owned() };
        for (key, agent) in agents {
            let key = key.as_ref();
            let whole = format!("{label}.{key}");
            Path::root().room(&whole)?;
            if label.contains('.') || key.contains('.') {
                return Err(Error::Config(format!(
                    "`{whole}` is no label: a label and its keys have no `.`"
                )));
            }
            let layer = Layer::labelled(whole, &agent);
            if many.layers.iter().any(|other| other.label == layer.label) {
                return Err(Error::Config(format!("`{}` is there twice", layer.label)));
            }
            many.layers.push(layer);
        }
        Ok(many)
    }

    /// The agents, for [`Agent::layers`].
    #[must_use]
    pub fn layers(&self) -> Vec<Layer> {
        self.layers.clone()
    }

    /// Asks one of them, by its key, or by its index in a list.
    ///
    /// # Errors
    /// When there is no such agent, and as [`Turn::ask`].
    pub async fn ask(
        &self,
        turn: &mut Turn<'_>,
        key: impl ToString,
        message: impl Into<Message>,
    ) -> Result<Message> {
        let label = format!("{}.{}", self.label, key.to_string());
        let layer = self.layers.iter().find(|layer| *layer.label == *label);
        let missing = || Error::Config(format!("`{}` has no `{label}`", turn.me()));
        ask(turn, layer.ok_or_else(missing)?, message.into()).await
    }

    /// Sends the same message to all of them at the same time. Returns the replies in their order.
    ///
    /// # Errors
    /// The first of the errors, and as [`Turn::ask_all`].
    pub async fn ask_all(&self, turn: &mut Turn<'_>, message: impl Into<Message>) -> Result<Vec<Message>> {
        let message = message.into();
        let asks = self
            .layers
            .iter()
            .map(|layer| AgentCall::labelled(std::sync::Arc::clone(&layer.label), &layer.agent, &message));
        let asks: Vec<_> = asks.collect();
        turn.ask_all(asks).await.into_iter().collect()
    }
}
