//! Messages: content, author and audience.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Finish, Name, Outcome};

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
    /// Sources of content from outside that the author had read by then: those of [outcomes](crate::Outcome::outside)
    /// and of other messages, at most 8. Set by the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Arc<str>>,
}

impl Message {
    /// A text to all participants.
    #[must_use]
    pub fn text(from: Name, text: impl Into<Arc<str>>) -> Self {
        Self { from, to: Audience::All, parts: vec![Part::text(text)], outside: Vec::new() }
    }

    /// The same message to another audience.
    #[must_use]
    pub fn to(self, to: Audience) -> Self {
        Self { to, ..self }
    }

    /// The finish reason, if the text is truncated.
    #[must_use]
    pub fn cut(&self) -> Option<Finish> {
        cut(&self.parts)
    }

    /// All text, parts joined by a blank line. Thoughts, media, data and notes are not text.
    #[must_use]
    pub fn plain(&self) -> Cow<'_, str> {
        plain(&self.parts)
    }
}

impl Message {
    /// The message where only text can be shown: its text; without any, a value as JSON, and `[image/png]` or the
    /// like for a picture, sound or document. Blank if the message is empty.
    #[must_use]
    pub fn in_words(&self) -> Cow<'_, str> {
        let text = self.plain();
        if !text.trim().is_empty() {
            return text;
        }
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Data(value) => Some(value.to_string()),
            Part::Media(media) if media.url.starts_with("data:") => Some(format!("[{}]", media.kind)),
            Part::Media(media) => Some(format!("[{}: {}]", media.kind, media.url)),
            _ => None,
        });
        Cow::Owned(texts.collect::<Vec<_>>().join("\n\n"))
    }
}

/// A text of the [user](Name::user).
impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::text(Name::user(), text)
    }
}

/// A text of the [user](Name::user).
impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::text(Name::user(), text)
    }
}

impl From<&Self> for Message {
    fn from(message: &Self) -> Self {
        message.clone()
    }
}

/// The text of `parts`, pieces joined by a blank line.
#[must_use]
pub fn plain(parts: &[Part]) -> Cow<'_, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(&**text),
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

/// The finish reason, if the text of `parts` is truncated.
#[must_use]
pub fn cut(parts: &[Part]) -> Option<Finish> {
    parts.iter().find_map(|part| match part {
        Part::Cut(finish) => Some(*finish),
        _ => None,
    })
}

/// Who sees a message. Its author always does.
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
    /// An empty audience, for private turns: only the policy and the speaker see the message.
    #[must_use]
    pub const fn private() -> Self {
        Self::Only(Vec::new())
    }

    /// Whether all participants see it.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether only the author sees it.
    #[must_use]
    pub fn is_private(&self) -> bool {
        matches!(self, Self::Only(names) if names.is_empty())
    }

    /// Whether `name` is in the audience.
    #[must_use]
    pub fn includes(&self, name: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

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
    /// A value for programs, beside the text: what a parser read in it, the result of a call. Logged, never sent to a
    /// model.
    Note(Value),
    /// Reasoning of a model: logged, shown dimmed, never sent to a model.
    Thought(Arc<str>),
    /// A tool call: by a model in its reply, or in a message, for another participant to execute.
    Call(Call),
    /// The result of a call that another participant requested.
    Outcome(CallOutcome),
    /// The text before it is truncated: the model reached its limit on tokens, or its provider filtered the rest.
    /// Logged and shown, never sent to a model.
    Cut(Finish),
}

impl Part {
    /// A text part.
    #[must_use]
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Whether it is reasoning.
    #[must_use]
    pub const fn is_thought(&self) -> bool {
        matches!(self, Self::Thought(_))
    }

    /// Whether it is empty: a text or a thought of white space only, a note, or a mark.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) | Self::Thought(text) => text.trim().is_empty(),
            Self::Note(_) | Self::Cut(_) => true,
            Self::Media(_) | Self::Data(_) | Self::Call(_) | Self::Outcome(_) => false,
        }
    }
}

/// A picture, sound or document, by reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Its media type, such as `image/png`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its `https:` or `data:` URL.
    pub url: Arc<str>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Pairs the call with its result; unique within the conversation of one agent.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments: an object, or the raw text if the model's text is not a JSON object.
    pub args: Value,
}

/// The result of a call that another participant requested in a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// The participant that requested it.
    pub to: Name,
    /// The call's `id`.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The result.
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_omits_thoughts_and_joins_pieces() {
        let parts = [Part::text("a"), Part::Thought("hm".into()), Part::text("b"), Part::text("c")];
        assert_eq!(plain(&parts), "a\n\nb\n\nc");
        assert!(matches!(plain(&parts[..2]), Cow::Borrowed("a")));
        assert_eq!(plain(&[]), "");
    }

    #[test]
    fn a_message_to_all_is_written_without_its_audience() {
        let message = Message::text(Name::user(), "hi");
        let json = serde_json::to_string(&message).unwrap();
        assert_eq!(json, r#"{"from":"user","parts":[{"text":"hi"}]}"#);
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
        let private = message.to(Audience::private());
        let json = serde_json::to_string(&private).unwrap();
        assert_eq!(json, r#"{"from":"user","to":{"only":[]},"parts":[{"text":"hi"}]}"#);
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), private);
    }
}
