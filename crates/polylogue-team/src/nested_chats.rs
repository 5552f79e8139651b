//! Nested chats, which reply for an agent.

use polylogue::layers::reply::{ReplyLayer, Trigger as Triggers, when};
use polylogue::{Act, Result, Turn};
use polylogue_config::{At, Config, OneOrMany, Ref};
use polylogue_core::{ConfigError, Name, TranscriptMessage};

use crate::condition::Condition;
use crate::text::{AgentRef, ChatRef, ConditionText, ParticipantOrUser, RegexText, compile_regex};

/// A nested chat. Its summary is the agent's reply.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "NestedChat")]
pub struct NestedChat {
    /// Name of a chat in `chats`. The agent itself can take part in it, without its nested chats.
    #[key(as = ChatRef)]
    pub chat: At<Name>,
    /// Messages to which the nested chat replies.
    pub when: Trigger,
    /// Part of the surrounding conversation that the nested chat receives besides its task.
    #[key(default = NestedContext::Nothing)]
    pub context: NestedContext,
}

/// Part of the surrounding conversation that a nested chat receives besides its task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
#[config(name = "NestedContext")]
pub enum NestedContext {
    /// Nothing.
    #[default]
    Nothing,
    /// The message to which it replies.
    Last,
    /// All messages that the agent sees.
    All,
    /// A summary of all messages that the agent sees, written by another agent.
    Reflect(NestedSummary),
}

/// Settings of a summary of the surrounding conversation.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "NestedSummary")]
pub struct NestedSummary {
    /// Agent that writes the summary. It must have a model.
    #[key(as = AgentRef)]
    pub by: At<Name>,
    /// Prompt for the summary. The agent receives it after the conversation.
    #[key(default = summary_prompt())]
    pub prompt: String,
}

fn summary_prompt() -> String {
    "Summarize the conversation above in a few sentences, for a reader who has not seen it. Add nothing of your own.".into()
}

/// Messages that match. A message must meet all given conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct Trigger {
    /// Senders of the message.
    #[key(as = OneOrMany<Ref<ParticipantOrUser>>, none = "any sender")]
    pub from: Vec<Name>,
    /// Text that the message must contain.
    #[key(none = "any text")]
    pub says: Option<String>,
    /// Regular expression that the message must match.
    #[key(as = Option<RegexText>, none = "any text", nonempty)]
    pub matches: Option<String>,
    /// Condition on the conversation, in CEL.
    #[key(as = Option<At<ConditionText>>, none = "none", nonempty)]
    pub when: Option<At<String>>,
}

impl Trigger {
    /// `layer`, which replies to these messages only.
    pub(crate) fn build<R: ReplyLayer>(&self, layer: R) -> Result<impl ReplyLayer + use<R>> {
        let condition = self.when.as_ref().map(|when| Condition::compile(when)).transpose()?;
        let mut all = Triggers::any_message();
        if !self.from.is_empty() {
            all = all & Triggers::from_any_of(self.from.clone());
        }
        if let Some(text) = self.says.clone() {
            all =
                all & Triggers::received(move |line: &TranscriptMessage| line.message.text().contains(&text));
        }
        if let Some(pattern) = &self.matches {
            let regex = compile_regex(pattern)?;
            all = all
                & Triggers::received(move |line: &TranscriptMessage| regex.is_match(&line.message.text()));
        }
        Ok(when(all, ConditionalLayer { condition, layer }))
    }
}

/// A layer that is asked only when a condition holds.
struct ConditionalLayer<R> {
    condition: Option<Condition>,
    layer: R,
}

impl<R: ReplyLayer> ReplyLayer for ConditionalLayer<R> {
    fn label(&self) -> &str {
        self.layer.label()
    }

    fn may_be_silent(&self) -> bool {
        self.layer.may_be_silent()
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        let Some(condition) = &self.condition else { return self.layer.reply(turn).await };
        match condition.holds(turn.transcript()) {
            Ok(true) => self.layer.reply(turn).await,
            Ok(false) => Ok(None),
            Err(why) => {
                let condition = format!("the condition `{}` of `{}`", condition.text(), turn.me());
                Err(ConfigError::invalid(condition, format!("it cannot be evaluated: {why}")).into())
            }
        }
    }
}
