//! The content of messages, model replies and tool results.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::file_tree::StoredFiles;
use super::media_url::MediaUrl;
use super::name::Name;
use super::stored_result::StoredResult;
use super::usage::ToolUsage;

/// A part of a message, of a model reply or of a tool result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(Arc<str>),
    /// A picture, sound or document.
    Media(Media),
    /// A value: structured output.
    Data(Value),
    /// A value for programs, next to the text: what a parser read in it, the result of a call. Logged, never sent to a
    /// model.
    Note(Value),
    /// Reasoning of a model: logged, shown dimmed, never sent to a model.
    Thought(Arc<str>),
    /// A tool call: by a model in its reply, or in a message, for another participant to execute.
    #[serde(rename = "call")]
    ToolCall(ToolCall),
    /// The result of a call that another participant requested.
    #[serde(rename = "tool_result")]
    ToolResult(ExecutedCall),
    /// The text before it is truncated: the model reached its limit on tokens, or its provider filtered the rest.
    /// Logged and shown, never sent to a model.
    Cut(FinishReason),
}

/// The key of the note about what a provider could not parse.
const UNPARSED: &str = "unparsed";

impl Part {
    /// How much is kept of what a provider could not parse, in characters.
    const MAX_UNPARSED: usize = 2_000;

    /// Quotes what a model wrote that its provider could not parse, in a reply that [ends](FinishReason::Malformed) so: a note for the prompt that
    /// asks for another reply. The end of a text of more than 2,000 characters is left out.
    ///
    /// ```
    /// use polylogue_core::Part;
    /// let part = Part::unparsed("<function=look>{\"at\":");
    /// assert_eq!(part.as_unparsed(), Some("<function=look>{\"at\":"));
    /// assert!(part.is_blank());
    /// ```
    pub fn unparsed(text: &str) -> Self {
        let kept: String = text.chars().take(Self::MAX_UNPARSED).collect();
        Self::Note(json!({ UNPARSED: kept }))
    }

    /// Returns the text of a part that is [unparsed](Self::unparsed).
    pub fn as_unparsed(&self) -> Option<&str> {
        match self {
            Self::Note(note) => note.get(UNPARSED)?.as_str(),
            _ => None,
        }
    }

    /// Creates a text part.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Returns whether the part is reasoning.
    pub const fn is_thought(&self) -> bool {
        matches!(self, Self::Thought(_))
    }

    /// Returns whether the part is empty: a text or a thought of white space only, a note, or a mark.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) | Self::Thought(text) => text.chars().all(char::is_whitespace),
            Self::Note(_) | Self::Cut(_) => true,
            Self::Media(_) | Self::Data(_) | Self::ToolCall(_) | Self::ToolResult(_) => false,
        }
    }
}

/// A picture, sound or document, by reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Its media type, such as `image/png`.
    #[serde(rename = "type")]
    pub media_type: String,
    /// Its `https:` or `data:` URL.
    pub url: MediaUrl,
}

impl Media {
    /// Creates media of a type such as `image/png`, with an `https:` or `data:` URL. For the content of a file see
    /// [`of_bytes`](Self::of_bytes).
    pub fn new(media_type: impl Into<String>, url: impl Into<MediaUrl>) -> Self {
        Self { media_type: media_type.into(), url: url.into() }
    }
}

impl From<Media> for Part {
    fn from(media: Media) -> Self {
        Self::Media(media)
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Pairs the call with its result; unique within the conversation of one agent.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments: an object, or the raw text if the model's text is not a JSON object.
    pub args: Value,
}

/// The result of a call that another participant requested in a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutedCall {
    /// The participant that requested it.
    pub to: Name,
    /// The call's `id`.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The result.
    pub result: ToolResult,
}

/// Returns the text of `parts`. Each text is a paragraph: they are joined by a blank line.
///
/// A reply has several texts where the API of its model says that they are apart, as content blocks, or where a tool is called between
/// them. There is no white space between such texts, so that without a blank line their sentences would run into one another. What an API
/// has as one text is one part, whatever the model reasoned between its pieces.
pub fn text_of(parts: &[Part]) -> Cow<'_, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        // A provider's sealed place in the order of parts can be a text that says nothing.
        Part::Text(text) => Some(&**text).filter(|text| !text.is_empty()),
        _ => None,
    });
    match (texts.next(), texts.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), None) => Cow::Borrowed(only),
        (Some(first), Some(second)) => {
            let mut all = format!("{first}\n\n{second}");
            for text in texts {
                all.push_str("\n\n");
                all.push_str(text);
            }
            Cow::Owned(all)
        }
    }
}

/// Returns the finish reason, if the text of `parts` is truncated.
pub fn cut(parts: &[Part]) -> Option<FinishReason> {
    parts.iter().find_map(|part| match part {
        Part::Cut(finish) => Some(finish.clone()),
        _ => None,
    })
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Whether the call succeeded.
    pub status: ToolStatus,
    /// The content that the model receives.
    pub parts: Vec<Part>,
    /// The source of the content if it is from outside, that is, written neither by the model nor by the author of
    /// the tool: the URL of a page, for instance. Models read it marked as untrusted.
    #[serde(default, rename = "from", skip_serializing_if = "Option::is_none")]
    pub outside: Option<Arc<str>>,
    /// The usage of models that the tool called itself, such as an embedding model. Counts toward the limits of the
    /// run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<ToolUsage>,
    /// The whole result, if it is stored next to the log: the parts have its beginning and its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredResult>,
    /// The files of the work directory after the call, if the conversation keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<StoredFiles>,
}

/// The status of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It succeeded.
    Done,
    /// It failed; the parts say why.
    Failed,
    /// Unknown: it was in flight when the process died.
    Unknown,
}

/// The finish reason of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The reply is complete, or a stop sequence was reached.
    Stop,
    /// It calls tools.
    Calls,
    /// The limit on tokens was reached: the reply is truncated.
    Length,
    /// The provider's content filter removed the rest.
    Filter,
    /// The context window was full: the reply is truncated, and cannot be continued.
    ContextFull,
    /// The model or its provider refused to reply.
    Refused {
        /// The provider's category, such as `cyber`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Arc<str>>,
        /// The provider's explanation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        explanation: Option<Arc<str>>,
    },
    /// The provider paused the reply: asked again with what it has written, it continues.
    Paused,
    /// The model wrote a tool call that its provider cannot parse. Asked again, it may write a better one.
    Malformed,
    /// The call was aborted from outside while the reply arrived.
    Interrupted,
    /// The provider reported no reason.
    Unknown,
}

impl FinishReason {
    /// A refusal without a category or an explanation.
    pub const REFUSED: Self = Self::Refused { category: None, explanation: None };

    /// Whether a reply with this reason and these `parts` is asked for again: its provider could not parse a tool call, and nothing of it
    /// can be run. Text before that call announces it, and is no reply.
    pub(super) fn is_unparsed(&self, parts: &[Part]) -> bool {
        *self == Self::Malformed && !parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
    }

    /// Returns whether the reply is incomplete, or none at all.
    pub const fn is_cut(&self) -> bool {
        match self {
            Self::Stop | Self::Calls | Self::Unknown => false,
            Self::Length
            | Self::Filter
            | Self::ContextFull
            | Self::Refused { .. }
            | Self::Paused
            | Self::Interrupted
            | Self::Malformed => true,
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "whole",
            Self::Calls => "calls of tools",
            Self::Length => "cut off at the limit on tokens",
            Self::Filter => "cut off by the provider's filter",
            Self::ContextFull => "cut off, because the context window is full",
            Self::Refused { category, explanation } => {
                return refused(f, category.as_deref(), explanation.as_deref());
            }
            Self::Paused => "paused by the provider",
            Self::Interrupted => "cut off by the user",
            Self::Malformed => {
                "without the tool call that it should have, which the provider could not parse"
            }
            Self::Unknown => "unknown",
        })
    }
}

fn refused(f: &mut fmt::Formatter<'_>, category: Option<&str>, explanation: Option<&str>) -> fmt::Result {
    f.write_str("refused")?;
    category.map_or(Ok(()), |category| write!(f, " ({category})"))?;
    explanation.map_or(Ok(()), |explanation| write!(f, ": {explanation}"))
}
