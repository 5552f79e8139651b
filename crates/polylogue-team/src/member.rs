//! What a team file says of how an agent replies: people, tools, chats of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use polylogue_core::Name;

use crate::stop::{Matches, Says};
use crate::text::{ConditionText, NameText, Names};

/// When a person is asked before an agent replies by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HumanInput {
    /// On every turn.
    Always,
    /// When the chat would end otherwise: at a message that ends it, and at the limit on automatic replies.
    Terminate,
    /// Never.
    Never,
}

/// What a message is like that ends the chat for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "EndsOnForm", rename_all = "snake_case")]
#[schemars(inline)]
pub enum EndsOn {
    /// It holds, or is, a text.
    Says(Says),
    /// It matches a regular expression.
    Matches(Matches),
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum EndsOnForm {
    Text(#[schemars(length(min = 1))] String),
    Full(EndsOnFull),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum EndsOnFull {
    /// It holds a text.
    Says(Says),
    /// It matches a regular expression.
    Matches(Matches),
}

impl From<EndsOnForm> for EndsOn {
    fn from(form: EndsOnForm) -> Self {
        match form {
            EndsOnForm::Text(text) => Self::Says(Says { text, by: Names::default(), whole: true }),
            EndsOnForm::Full(EndsOnFull::Says(says)) => Self::Says(says),
            EndsOnForm::Full(EndsOnFull::Matches(matches)) => Self::Matches(matches),
        }
    }
}

/// A chat within an agent: what comes of it is what the agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nested {
    /// The chat, one of `chats`. The agent itself may take part in it, and is without chats of its own there.
    #[schemars(with = "NameText")]
    pub chat: Name,
    /// Which messages it is for: all when left out.
    #[serde(default, skip_serializing_if = "Trigger::is_any")]
    pub when: Trigger,
    /// What of the conversation it is told besides its task.
    #[serde(default, skip_serializing_if = "Told::is_nothing")]
    pub tells: Told,
}

/// What of a conversation is told to a chat within an agent, besides its task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Nothing.
    #[default]
    Nothing,
    /// The message it is for.
    Last,
    /// Every message that the agent sees.
    All,
    /// What another agent makes of every message that the agent sees.
    Reflect(Gist),
}

/// What an agent makes of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gist {
    /// Who sums it up: an agent that speaks by a model.
    #[schemars(with = "NameText")]
    pub by: Name,
    /// What it is asked after it has read the conversation.
    #[serde(default = "gist_prompt")]
    pub prompt: String,
}

fn gist_prompt() -> String {
    "Summarise the conversation above in a few sentences, for somebody who has not read it. Add nothing of your own.".into()
}

impl Told {
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

/// Which messages something is for: those of which everything holds that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trigger {
    /// It is of one of these.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub from: Names,
    /// It holds a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// It matches a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::text::RegexText>")]
    pub matches: Option<String>,
    /// A condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ConditionText>")]
    pub when: Option<String>,
}

impl Trigger {
    fn is_any(&self) -> bool {
        *self == Self::default()
    }
}
