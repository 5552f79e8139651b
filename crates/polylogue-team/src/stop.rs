//! Termination conditions.

use polylogue_config::{Config, OneOrMany};
use polylogue_core::Name;

use crate::text::{ConditionText, RegexText, SpeakerRef};

/// Termination conditions. A chat ends when one of them is met.
#[derive(Debug, Clone, Default, PartialEq, Config)]
#[config(nonempty)]
pub struct Stop {
    /// Text in a message that ends the chat: the text, or a mapping.
    #[key(none = "none")]
    pub says: Option<Says>,
    /// Regular expression that matches a terminating message: the expression, or a mapping.
    #[key(none = "none")]
    pub matches: Option<Matches>,
    /// Condition on the conversation, in CEL.
    #[key(as = Option<ConditionText>, none = "none", nonempty)]
    pub when: Option<String>,
    /// Number of turns after which the chat ends.
    #[key(none = "none", range = 1..)]
    pub max_turns: Option<u64>,
    /// Number of messages after which the chat ends.
    #[key(none = "none", range = 1..)]
    pub max_messages: Option<u64>,
    /// Number of input and output tokens together after which the chat ends.
    #[key(none = "none", range = 1..)]
    pub max_tokens: Option<u64>,
    /// Cost in US dollars at which the chat ends.
    #[key(none = "none", range = 0..=1_000_000)]
    pub max_cost: Option<f64>,
    /// Time in seconds after which the chat ends. Time spent waiting for people does not count.
    #[key(none = "none", range = 0..=31_536_000)]
    pub max_time_s: Option<f64>,
    /// Conditions that must all be met.
    #[key(nonempty)]
    pub all: Vec<Stop>,
    /// Conditions of which one must be met.
    #[key(nonempty)]
    pub any: Vec<Stop>,
}

/// A message that contains a text.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "text")]
pub struct Says {
    /// Text that the message contains.
    #[key(nonempty)]
    pub text: String,
    /// Participants whose messages count.
    #[key(as = OneOrMany<SpeakerRef>, none = "all participants")]
    pub by: Vec<Name>,
    /// Requires the text to be the whole message, except for surrounding white space.
    #[key(default = false)]
    pub whole: bool,
}

/// A message that matches a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "pattern")]
pub struct Matches {
    /// Regular expression in the syntax of Rust's `regex`. It can match anywhere in the message.
    #[key(as = RegexText, nonempty)]
    pub pattern: String,
    /// Participants whose messages count.
    #[key(as = OneOrMany<SpeakerRef>, none = "all participants")]
    pub by: Vec<Name>,
}
