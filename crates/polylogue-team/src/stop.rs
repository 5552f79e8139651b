//! When a chat ends.

use polylogue_config::{Config, OneOrMany};
use polylogue_core::Name;
use serde::{Deserialize, Serialize};

use crate::text::{ConditionText, ParticipantRef, RegexText};

/// What ends a chat: any of the conditions that are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Config)]
#[config(nonempty)]
pub struct Stop {
    /// A message contains a text: the text, or a mapping.
    #[key(none = "none")]
    pub says: Option<Says>,
    /// A message matches a regular expression: the expression, or a mapping.
    #[key(none = "none")]
    pub matches: Option<Matches>,
    /// A condition on the conversation, in CEL.
    #[key(as = Option<ConditionText>, none = "none", nonempty)]
    pub when: Option<String>,
    /// Number of turns.
    #[key(none = "none", range = 1..)]
    pub max_turns: Option<u64>,
    /// Number of messages.
    #[key(none = "none", range = 1..)]
    pub max_messages: Option<u64>,
    /// Number of tokens, input and output.
    #[key(none = "none", range = 1..)]
    pub max_tokens: Option<u64>,
    /// Money, in US dollars.
    #[key(none = "none", range = 0..=1_000_000)]
    pub max_cost: Option<f64>,
    /// Time in seconds. Waiting for people does not count.
    #[key(none = "none", range = 0..=31_536_000)]
    pub max_time_s: Option<f64>,
    /// All of these hold.
    #[key(nonempty)]
    pub all: Vec<Stop>,
    /// One of these holds.
    #[key(nonempty)]
    pub any: Vec<Stop>,
}

/// A message contains a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(shorthand = "text")]
pub struct Says {
    /// The text.
    #[key(nonempty)]
    pub text: String,
    /// Whose messages count.
    #[key(as = OneOrMany<ParticipantRef>, none = "everybody's")]
    pub by: Vec<Name>,
    /// Whether the text must be the whole message, except for white space around it.
    #[key(default = false)]
    pub whole: bool,
}

/// A message matches a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(shorthand = "pattern")]
pub struct Matches {
    /// The expression, in the syntax of Rust's `regex`. It may match anywhere in the message.
    #[key(as = RegexText, nonempty)]
    pub pattern: String,
    /// Whose messages count.
    #[key(as = OneOrMany<ParticipantRef>, none = "everybody's")]
    pub by: Vec<Name>,
}
