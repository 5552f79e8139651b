//! Replies without the agent's model: human input and nested chats.

use polylogue_config::types::{Kind, Type};
use polylogue_config::yaml::{Data, Node};
use polylogue_config::{At, Config, Cx, OneOrMany, Ref};
use polylogue_core::Name;
use serde_json::Value;

use crate::stop::{Matches, Says};
use crate::text::{AgentRef, ChatRef, ConditionText, ParticipantOrUser, RegexText};

/// When a person is asked for input before an agent replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub enum HumanInputMode {
    /// In every turn.
    Always,
    /// When the chat would end: at a terminating message, and at the limit on automatic replies.
    Terminate,
    /// Never.
    Never,
}

/// Received message that ends the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminateOn {
    /// One that contains, or is, a text.
    Says(Says),
    /// One that matches a regular expression.
    Matches(Matches),
}

/// Which message ends the chat for an agent.
#[derive(Config)]
#[config(name = "TerminateOn")]
enum TerminateOnForm {
    /// One that contains a text.
    Says(Says),
    /// One that matches a regular expression.
    Matches(Matches),
}

/// A text alone is the whole message.
impl Config for TerminateOn {
    fn ty() -> &'static Type {
        const {
            &Type {
                name: "",
                doc: "",
                kind: Kind::Shapes(&[<String as Config>::ty, <TerminateOnForm as Config>::ty]),
            }
        }
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        if matches!(node.data, Data::Text(_)) {
            return Self::Says(Says { text: String::read(node, cx), by: Vec::new(), whole: true });
        }
        match TerminateOnForm::read(node, cx) {
            TerminateOnForm::Says(says) => Self::Says(says),
            TerminateOnForm::Matches(matches) => Self::Matches(matches),
        }
    }

    fn hole() -> Self {
        Self::Says(Says::hole())
    }

    fn write(&self) -> Value {
        match self {
            Self::Says(says) => TerminateOnForm::Says(says.clone()).write(),
            Self::Matches(matches) => TerminateOnForm::Matches(matches.clone()).write(),
        }
    }
}

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
    "Summarise the conversation above in a few sentences, for somebody who has not read it. Add nothing of your own.".into()
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
    #[key(as = Option<ConditionText>, none = "none", nonempty)]
    pub when: Option<String>,
}
