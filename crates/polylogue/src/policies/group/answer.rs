//! Parses the answer of a speaker selector.

use polylogue_core::{Act, Message, Name, Part};
use serde_json::{Value, json};

use super::mention::{Mention, mention};

/// An answer to the question who speaks next.
pub(super) enum Answer {
    /// A participant.
    Picked(Name),
    /// The next in order.
    NextInOrder,
    /// No valid answer, and why.
    Failed(String),
}

impl Answer {
    /// Reads `message`: its data, or else the only one of `of` that its text names.
    pub(super) fn read(message: &Message, of: &[Name], participants: &[Name]) -> Self {
        let data = message.parts.iter().find_map(|part| match part {
            Part::Data(value) => Some(value),
            _ => None,
        });
        match data {
            Some(value) => Self::of_data(value),
            None => match mention(&message.text(), of, participants) {
                Mention::One(name) => Self::Picked(name),
                Mention::Several => Self::Failed(format!("`{}` named several", message.from)),
                Mention::NoName => {
                    Self::Failed(format!("`{}` named no participant who may speak now", message.from))
                }
            },
        }
    }

    fn of_data(data: &Value) -> Self {
        match (data.get("speaker"), data.get("why").and_then(Value::as_str)) {
            (Some(Value::String(name)), _) => match Name::new(name) {
                Ok(name) => Self::Picked(name),
                Err(error) => Self::Failed(error.to_string()),
            },
            (_, Some(why)) => Self::Failed(why.to_owned()),
            (Some(Value::Null), None) => Self::NextInOrder,
            _ => Self::Failed("the answer says nothing of a `speaker`".into()),
        }
    }

    /// The answer as data, next to its text.
    pub(super) fn said(self, reply: &str) -> Act {
        let data = match self {
            Self::Picked(name) => json!({"speaker": name}),
            Self::NextInOrder => json!({"speaker": null}),
            Self::Failed(why) => json!({"speaker": null, "why": why}),
        };
        let text = Part::text(reply);
        let words = (!text.is_blank()).then_some(text);
        Act::Say(words.into_iter().chain([Part::Data(data)]).collect())
    }
}
