//! How an agent sees the room.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Name;

/// How an agent sees the room. Configuration of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewOptions {
    /// Whether others' names are written before their words.
    pub names: ShowNames,
    /// How much is kept.
    pub window: Window,
    /// What is written, with a blank line after it, before the words of the named speakers in place of their name.
    pub prefix: BTreeMap<Name, String>,
    /// In which role the agent is told what is for it alone: the prompts of its cues, and of the program around it.
    pub prompt_role: PromptRole,
    /// Whether what it was asked aside, and answered, is out of its sight when that turn is over: who chooses speakers
    /// has no need to read all earlier choices.
    pub forget_private_turns: bool,
    /// Whether its own calls of tools and their outcomes stand there in words, as others read them: for models that know
    /// no tools.
    pub calls_as_text: bool,
}

/// In which role an agent is told what is for it alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptRole {
    /// As somebody else's words, which every model accepts at the end.
    #[default]
    User,
    /// As a system text within the conversation, which some models follow more strictly and others refuse.
    System,
}

/// Whether others' names are written before their words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShowNames {
    /// When it would not be clear who speaks: more than two are in the room, or the reader is none of them.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much of a conversation a view keeps. What was said before the first turn is always kept, and a call is never
/// parted from its result.
///
/// When there is more, the oldest is dropped until three quarters of the limit are left: so the view stays
/// append-only most of the time, and prompt caches keep hitting. What the agent is at work on is kept, however many tools
/// it calls meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Everything.
    #[default]
    All,
    /// At most so many entries.
    Messages(usize),
    /// At most so many tokens, estimated at four ASCII characters or one other character each.
    Tokens(usize),
}
