//! What is said, by whom, to whom.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Finish, Name, Outcome};

/// Something said: it has an author and an audience, never a role.
///
/// `user` and `assistant` are computed for the agent that reads (see [`View`](crate::View)): its own words are
/// `assistant`, everybody else's are `user`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub from: Name,
    /// Who gets to see it.
    #[serde(default, skip_serializing_if = "Audience::is_all")]
    pub to: Audience,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// Where words from outside come from that its author had read when it was said: the sources of
    /// [outcomes](crate::Outcome::outside) and of other messages, the first 8 of them. The log fills it in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Arc<str>>,
}

impl Message {
    /// A text said to everybody in the room.
    #[must_use]
    pub fn text(from: Name, text: impl Into<Arc<str>>) -> Self {
        Self { from, to: Audience::All, parts: vec![Part::text(text)], outside: Vec::new() }
    }

    /// The same message to another audience.
    #[must_use]
    pub fn to(self, to: Audience) -> Self {
        Self { to, ..self }
    }

    /// Why its words are cut off, if they are.
    #[must_use]
    pub fn cut(&self) -> Option<Finish> {
        cut(&self.parts)
    }

    /// All its text, pieces joined by a blank line; thoughts, media, data and notes are no text.
    #[must_use]
    pub fn plain(&self) -> Cow<'_, str> {
        plain(&self.parts)
    }
}

impl Message {
    /// What it says, where only text can be shown: its text; without any, a value as JSON, and `[image/png]` or the like for a
    /// picture, sound or document. Blank for a message that says nothing.
    #[must_use]
    pub fn in_words(&self) -> Cow<'_, str> {
        let text = self.plain();
        if !text.trim().is_empty() {
            return text;
        }
        let words = self.parts.iter().filter_map(|part| match part {
            Part::Data(value) => Some(value.to_string()),
            Part::Media(media) if media.url.starts_with("data:") => Some(format!("[{}]", media.kind)),
            Part::Media(media) => Some(format!("[{}: {}]", media.kind, media.url)),
            _ => None,
        });
        Cow::Owned(words.collect::<Vec<_>>().join("\n\n"))
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

/// Why the words of `parts` are cut off, if they are.
#[must_use]
pub fn cut(parts: &[Part]) -> Option<Finish> {
    parts.iter().find_map(|part| match part {
        Part::Cut(finish) => Some(*finish),
        _ => None,
    })
}

/// Who gets to see a message. Its author always does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// Everybody in the room.
    #[default]
    All,
    /// The named participants. `Only([])` is *aside*: in the log, but seen by nobody else.
    Only(Vec<Name>),
}

impl Audience {
    /// An audience of nobody: what is said aside stays between the policy and the speaker.
    #[must_use]
    pub const fn private() -> Self {
        Self::Only(Vec::new())
    }

    /// Whether everybody sees it.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether nobody but the author sees it.
    #[must_use]
    pub fn is_private(&self) -> bool {
        matches!(self, Self::Only(names) if names.is_empty())
    }

    /// Whether `name` is among those addressed.
    #[must_use]
    pub fn includes(&self, name: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

/// A piece of a message, of a model's reply or of a tool's outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Words.
    Text(Arc<str>),
    /// A picture, sound or document.
    Media(Media),
    /// A value: structured output.
    Data(Value),
    /// A value for programs, beside the words: what a parser read in them, what became of a call. Kept in the log, never sent to
    /// a model.
    Note(Value),
    /// Reasoning of a model: kept in the log, shown dimmed, never sent to anyone.
    Thought(Arc<str>),
    /// A tool is asked for: by a model in its reply, or in a message, for another participant to run it.
    Call(Call),
    /// What came of a call that another participant asked for.
    Outcome(CallOutcome),
    /// The words before it are cut off: the model met its limit on tokens, or its provider filtered the rest. Kept in the log and
    /// shown, never sent to a model.
    Cut(Finish),
}

impl Part {
    /// A piece of text.
    #[must_use]
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Whether it is reasoning.
    #[must_use]
    pub const fn is_thought(&self) -> bool {
        matches!(self, Self::Thought(_))
    }

    /// Whether it says nothing: a text or a thought of white space only, a note, or a mark.
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
    /// Where it is: an `https:` or a `data:` URL.
    pub url: Arc<str>,
}

/// A model's wish to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Pairs the call with its outcome; unique within the conversation of one agent.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Its arguments: an object, or the raw text when the model wrote something that is no JSON object.
    pub args: Value,
}

/// What came of a call that another participant asked for in a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// Who asked.
    pub to: Name,
    /// The call's `id`.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// What came of it.
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_leaves_out_thoughts_and_joins_pieces() {
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
        let aside = message.to(Audience::private());
        let json = serde_json::to_string(&aside).unwrap();
        assert_eq!(json, r#"{"from":"user","to":{"only":[]},"parts":[{"text":"hi"}]}"#);
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), aside);
    }
}
