//! What models support besides writing text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that not every model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Calling tools.
    Tools,
    /// Following a JSON Schema.
    Schema,
    /// Writing only JSON.
    Json,
    /// Reading pictures. Pictures that tools return are sent only to models known to support them: others would
    /// reject every later request.
    Vision,
    /// Accepting a text in the `system` role. Without it, the system text is part of the first user message.
    SystemRole,
    /// Accepting a message with tool calls and `null` content. Without it, such a message has no content at all.
    NullContent,
    /// Accepting a user message right after the result of a tool. Without it, an assistant message stands between
    /// them.
    UserAfterTool,
}

impl Capability {
    /// Returns whether a missing capability only changes the format of the request, so that the agent need not do anything
    /// different.
    pub const fn is_of_form(self) -> bool {
        matches!(self, Self::SystemRole | Self::NullContent | Self::UserAfterTool)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tools => "calling tools",
            Self::Schema => "output by a JSON Schema",
            Self::Json => "writing nothing but JSON",
            Self::Vision => "seeing pictures",
            Self::SystemRole => "taking a system role",
            Self::NullContent => "taking calls without content",
            Self::UserAfterTool => "taking a user message after a tool message",
        })
    }
}

/// The features that a model supports besides writing text. `None` is unknown.
///
/// ```
/// use polylogue_core::{Capability, Capabilities};
/// let capabilities = Capabilities::TEXT.with(Capability::Json);
/// assert_eq!([capabilities.has(Capability::Tools), capabilities.has(Capability::Json)], [Some(false), Some(true)]);
/// assert_eq!(Capabilities::default().has(Capability::Tools), None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capabilities {
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Replies that follow a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<bool>,
    /// Replies that are JSON of any form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<bool>,
    /// Pictures. Never detected: counts as `false` unless configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    /// A text in the `system` role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_role: Option<bool>,
    /// Messages with tool calls and `null` content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_content: Option<bool>,
    /// A user message right after the result of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_after_tool: Option<bool>,
}

impl Capabilities {
    /// Nothing but text.
    pub const TEXT: Self = Self {
        tools: Some(false),
        schema: Some(false),
        json: Some(false),
        vision: Some(false),
        system_role: None,
        null_content: None,
        user_after_tool: None,
    };
    /// Every capability.
    pub const ALL: Self = Self {
        tools: Some(true),
        schema: Some(true),
        json: Some(true),
        vision: Some(true),
        system_role: None,
        null_content: None,
        user_after_tool: None,
    };

    /// Returns whether the model has the capability; `None` if unknown.
    pub const fn has(&self, capability: Capability) -> Option<bool> {
        match capability {
            Capability::Tools => self.tools,
            Capability::Schema => self.schema,
            Capability::Json => self.json,
            Capability::Vision => self.vision,
            Capability::SystemRole => self.system_role,
            Capability::NullContent => self.null_content,
            Capability::UserAfterTool => self.user_after_tool,
        }
    }

    /// Returns these capabilities, with those of `usual` where they are unknown.
    #[must_use]
    pub fn or(self, usual: Self) -> Self {
        Self {
            tools: self.tools.or(usual.tools),
            schema: self.schema.or(usual.schema),
            json: self.json.or(usual.json),
            vision: self.vision.or(usual.vision),
            system_role: self.system_role.or(usual.system_role),
            null_content: self.null_content.or(usual.null_content),
            user_after_tool: self.user_after_tool.or(usual.user_after_tool),
        }
    }

    /// Adds a capability.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        self.set(capability, true)
    }

    /// Removes a capability.
    #[must_use]
    pub const fn without(self, capability: Capability) -> Self {
        self.set(capability, false)
    }

    const fn set(mut self, capability: Capability, has: bool) -> Self {
        match capability {
            Capability::Tools => self.tools = Some(has),
            Capability::Schema => self.schema = Some(has),
            Capability::Json => self.json = Some(has),
            Capability::Vision => self.vision = Some(has),
            Capability::SystemRole => self.system_role = Some(has),
            Capability::NullContent => self.null_content = Some(has),
            Capability::UserAfterTool => self.user_after_tool = Some(has),
        }
        self
    }
}
