//! What a team file says of the end of a chat.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{ConditionText, Names, RegexText};

/// What ends a chat: any of the conditions that are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("minProperties" = 1))]
pub struct Stop {
    /// Somebody says a text: the text, or a mapping that says more of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<Says>,
    /// A message matches a regular expression: the expression, or a mapping that says more of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<Matches>,
    /// A condition on the conversation, in CEL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ConditionText>")]
    pub when: Option<String>,
    /// This many turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    /// This many messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_messages: Option<u64>,
    /// This many tokens read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// This many dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_cost: Option<f64>,
    /// This many seconds, waiting for people not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub max_time_s: Option<f64>,
    /// All of these hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub all: Vec<Stop>,
    /// One of these holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub any: Vec<Stop>,
}

/// Somebody says a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "SaysForm")]
#[schemars(inline)]
pub struct Says {
    /// The text.
    pub text: String,
    /// Whose messages count: everybody's when left out.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub by: Names,
    /// Whether the text has to be the whole message, white space around it not counted.
    pub whole: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum SaysForm {
    Text(#[schemars(length(min = 1))] String),
    Full(FullSays),
}

/// Somebody says a text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Says")]
struct FullSays {
    /// The text.
    #[schemars(length(min = 1))]
    text: String,
    /// Whose messages count: everybody's when left out.
    #[serde(default)]
    by: Names,
    /// Whether the text has to be the whole message, white space around it not counted.
    #[serde(default)]
    whole: bool,
}

impl From<SaysForm> for Says {
    fn from(form: SaysForm) -> Self {
        match form {
            SaysForm::Text(text) => Self { text, by: Names::default(), whole: false },
            SaysForm::Full(FullSays { text, by, whole }) => Self { text, by, whole },
        }
    }
}

/// A message matches a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "MatchesForm")]
#[schemars(inline)]
pub struct Matches {
    /// The expression, in the syntax of Rust's `regex`.
    pub pattern: String,
    /// Whose messages count: everybody's when left out.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub by: Names,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum MatchesForm {
    Pattern(#[schemars(with = "RegexText")] String),
    Full(FullMatches),
}

/// A message matches a regular expression.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Matches")]
struct FullMatches {
    /// The expression, in the syntax of Rust's `regex`: it is looked for anywhere in the message.
    #[schemars(with = "RegexText")]
    pattern: String,
    /// Whose messages count: everybody's when left out.
    #[serde(default)]
    by: Names,
}

impl From<MatchesForm> for Matches {
    fn from(form: MatchesForm) -> Self {
        match form {
            MatchesForm::Pattern(pattern) => Self { pattern, by: Names::default() },
            MatchesForm::Full(FullMatches { pattern, by }) => Self { pattern, by },
        }
    }
}
