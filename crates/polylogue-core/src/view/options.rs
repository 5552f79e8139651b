//! View options: how an agent sees a chat.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Name;

/// How an agent sees a chat. Part of the agent's configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewOptions {
    /// Whether messages of others begin with their names.
    pub names: ShowNames,
    /// How many messages the view keeps. Default: all.
    pub window: Window,
    /// Text before the messages of the named speakers, with a blank line after it, instead of their names.
    pub prefix: BTreeMap<Name, String>,
    /// The role of prompts for this agent alone: those of turn requests, and of the program around it.
    pub prompt_role: PromptRole,
    /// Whether its private turns, with prompt and reply, are removed from its view when they end: a selector does not
    /// need all its earlier choices.
    pub forget_private_turns: bool,
    /// Whether its own tool calls and their results are shown as text, as others see them: for models without tool
    /// calling.
    pub calls_as_text: bool,
}

/// The role of prompts for one agent alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptRole {
    /// As a `user` message, which every model accepts at the end.
    #[default]
    User,
    /// As a `system` message within the conversation, which some models follow more strictly and others reject.
    System,
}

/// Whether messages of others begin with their names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShowNames {
    /// If the speaker would be unclear: the chat has more than two participants, or the reader is none of them.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much of a conversation a view keeps. The opening is always kept, and a call is never separated from its
/// result.
///
/// At the limit, the oldest messages are dropped until three quarters of it are left: so the view stays append-only
/// most of the time, and prompt caches keep hitting. The current turn of the agent is kept, however many tools it
/// calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// All messages.
    #[default]
    All,
    /// At most this many entries.
    Messages(usize),
    /// At most this many tokens, estimated at four ASCII characters or one other character each.
    Tokens(usize),
}
