//! Messages: content, author and audience.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::part::{FinishReason, Part, cut, text_of};

/// A message. It has an author and an audience, never a role.
///
/// `user` and `assistant` are computed for each agent by its [`View`](crate::View): its own messages are `assistant`,
/// those of all others are `user`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub from: Name,
    /// The audience.
    #[serde(default, skip_serializing_if = "Audience::is_all")]
    pub to: Audience,
    /// The content, in order.
    pub parts: Vec<Part>,
    /// Sources of content from outside that the author had read by then: those of [tool results](crate::ToolResult::outside)
    /// and of other messages, at most 8. Set by the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Arc<str>>,
}

impl Message {
    /// Creates a message with a text to all participants.
    pub fn new(from: Name, text: impl Into<Arc<str>>) -> Self {
        Self { from, to: Audience::All, parts: vec![Part::text(text)], outside: Vec::new() }
    }

    /// Replaces the audience of the message.
    #[must_use]
    pub fn to(self, to: Audience) -> Self {
        Self { to, ..self }
    }

    /// Adds a part at the end, such as a picture.
    ///
    /// ```
    /// use polylogue_core::{Media, Message};
    /// let question = Message::from("What is this?").with_part(Media::new("image/png", "https://example.org/cat.png"));
    /// assert_eq!((question.text(), question.parts.len()), ("What is this?".into(), 2));
    /// ```
    #[must_use]
    pub fn with_part(mut self, part: impl Into<Part>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// Returns the finish reason, if the text is truncated.
    pub fn cut(&self) -> Option<FinishReason> {
        cut(&self.parts)
    }

    /// Returns all text, parts joined by a blank line. Thoughts, media, data and notes are not text.
    pub fn text(&self) -> Cow<'_, str> {
        text_of(&self.parts)
    }

    /// Returns the message for places where only text can be shown: its [text](Self::text); without any, a value as JSON, and
    /// `[image/png]` or the like for a picture, sound or document. Blank if the message is empty.
    pub fn to_text(&self) -> Cow<'_, str> {
        let text = self.text();
        if !text.trim().is_empty() {
            return text;
        }
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Data(value) => Some(value.to_string()),
            Part::Media(media) if media.url.starts_with("data:") => Some(format!("[{}]", media.media_type)),
            Part::Media(media) => Some(format!("[{}: {}]", media.media_type, media.url)),
            _ => None,
        });
        Cow::Owned(texts.collect::<Vec<_>>().join("\n\n"))
    }
}

/// A text of the [user](Name::user).
impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::new(Name::user(), text)
    }
}

/// A text of the [user](Name::user).
impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::new(Name::user(), text)
    }
}

impl From<&Self> for Message {
    fn from(message: &Self) -> Self {
        message.clone()
    }
}

/// The participants that see a message. Its author always does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// All participants.
    #[default]
    All,
    /// The named participants. `Only([])` is a private turn: logged, but seen by no other participant.
    Only(Vec<Name>),
}

impl Audience {
    /// Creates an empty audience, for private turns: only the policy and the speaker see the message.
    pub const fn private() -> Self {
        Self::Only(Vec::new())
    }

    /// Returns whether all participants see the message.
    pub const fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Returns whether only the author sees the message.
    pub fn is_private(&self) -> bool {
        matches!(self, Self::Only(names) if names.is_empty())
    }

    /// Returns whether `name` is in the audience.
    pub fn includes(&self, name: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_omits_thoughts_and_joins_pieces() {
        let parts = [Part::text("a"), Part::Thought("hm".into()), Part::text("b"), Part::text("c")];
        assert_eq!(text_of(&parts), "a\n\nb\n\nc");
        assert!(matches!(text_of(&parts[..2]), Cow::Borrowed("a")));
        assert_eq!(text_of(&[]), "");
    }

    #[test]
    fn a_message_to_all_is_written_without_its_audience() {
        let message = Message::new(Name::user(), "hi");
        let json = serde_json::to_string(&message).unwrap();
        assert_eq!(json, r#"{"from":"user","parts":[{"text":"hi"}]}"#);
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
        let private = message.to(Audience::private());
        let json = serde_json::to_string(&private).unwrap();
        assert_eq!(json, r#"{"from":"user","to":{"only":[]},"parts":[{"text":"hi"}]}"#);
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), private);
    }
}
