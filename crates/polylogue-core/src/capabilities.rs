//! What models can do besides writing text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that not every model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// To call tools.
    Tools,
    /// To keep to a JSON Schema.
    Schema,
    /// To write JSON and nothing else.
    Json,
    /// To see pictures. What tools return is shown only to models that are known to: others would refuse it for ever after.
    Vision,
    /// To take a text in the `system` role. Without it, the system text is part of the first message of the user.
    SystemRole,
    /// To take a message that calls tools and has `null` as its content. Without it, such a message has no content at all.
    NullContent,
    /// To take a user message right after the result of a tool. Without it, an assistant message stands between them.
    UserAfterTool,
}

impl Capability {
    /// Whether a model that lacks it is sent the same in another form, so that its agent need not go on in another way.
    #[must_use]
    pub const fn is_of_form(self) -> bool {
        matches!(self, Self::SystemRole | Self::NullContent | Self::UserAfterTool)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tools => "calling tools",
            Self::Schema => "keeping to a JSON Schema",
            Self::Json => "writing nothing but JSON",
            Self::Vision => "seeing pictures",
            Self::SystemRole => "taking a system role",
            Self::NullContent => "taking calls without content",
            Self::UserAfterTool => "taking a user message after a tool message",
        })
    }
}

/// What a model can do besides writing text. What is `None` is not known.
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
    /// Whether it can call tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether it can be held to a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<bool>,
    /// Whether it can be held to JSON of whatever form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<bool>,
    /// Whether it sees pictures. This is never found out: it counts as `false` until it is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    /// Whether it takes a text in the `system` role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_role: Option<bool>,
    /// Whether it takes messages that call tools and have `null` as their content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_content: Option<bool>,
    /// Whether it takes a user message right after the result of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_after_tool: Option<bool>,
}

impl Capabilities {
    /// Text, and nothing else.
    pub const TEXT: Self = Self {
        tools: Some(false),
        schema: Some(false),
        json: Some(false),
        vision: Some(false),
        system_role: None,
        null_content: None,
        user_after_tool: None,
    };
    /// All there is.
    pub const ALL: Self = Self {
        tools: Some(true),
        schema: Some(true),
        json: Some(true),
        vision: Some(true),
        system_role: None,
        null_content: None,
        user_after_tool: None,
    };

    /// Whether the model can do it; `None` when that is not known.
    #[must_use]
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

    /// The same, and this one.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        self.set(capability, true)
    }

    /// The same, but not this one.
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
