//! Frames of the event stream of a conversation. A frame has a name, which says what its data is.

use std::time::Duration;

use polylogue_core::{Delta, Name, OpenState, Path};
use serde::{Deserialize, Serialize};

use crate::conversation::{ConversationState, Ended, PendingQuestion};

/// The name of a frame with a stored event. Only these have an id: the `seq` of the event.
pub const ENTRY: &str = "entry";
/// The name of a frame with a [`ReplyDelta`] of a reply.
pub const DELTA: &str = "delta";
/// The name of a frame with the [`Status`] of the conversation.
pub const STATE: &str = "state";
/// The name of a frame that says that pieces were [`Missed`].
pub const MISSED: &str = "missed";
/// The name of the last frame, with the [`Status`] of a conversation that is closed.
pub const END: &str = "end";

/// The milliseconds after which clients that have lost a stream connect again.
pub const RETRY_MS: u64 = 2000;

/// The state of a conversation, as it changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Whether it runs.
    pub state: ConversationState,
    /// Why it is closed or has failed.
    pub ended: Option<Ended>,
    /// Why it is halted, if it has neither failed nor been paused: [`Conversation::halted`](crate::conversation::Conversation::halted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted: Option<OpenState>,
    /// The open questions.
    pub questions: Vec<PendingQuestion>,
    /// Whether the server has it open while it rests: while people are asked, because other turns of the step may be in progress, and while
    /// it is paused, to continue it when it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_progress: bool,
}

/// Pieces were left out, because the client was slow. Stored events never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// The `seq` of the next event.
    pub seq: u64,
}

/// A piece of a reply that is not stored yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyDelta {
    /// The chat.
    pub chat: Path,
    /// The agent whose reply it is.
    pub who: Name,
    /// The content.
    #[serde(flatten)]
    pub content: Content,
}

/// The content of a piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning.
    Thought {
        /// The text.
        thought: String,
    },
    /// A piece of a tool call.
    Call {
        /// The piece.
        call: CallDelta,
    },
    /// The reply broke off and starts over: earlier pieces do not count.
    Restart {
        /// Null.
        restart: (),
    },
    /// An attempt failed, and the call is retried after a wait.
    Retry {
        /// The cause and the time.
        retry: RetryDelta,
    },
    /// The call failed, and another model is asked. Earlier pieces do not count.
    Fallback {
        /// The cause and the model.
        fallback: FallbackDelta,
    },
    /// A kind of piece of a newer server, which says nothing here.
    #[serde(other)]
    Unknown,
}

/// A piece of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDelta {
    /// The index of the call in the reply, from 0.
    pub index: usize,
    /// The tool, with the call's first piece.
    pub tool: Option<String>,
    /// A piece of the arguments' JSON.
    pub args: String,
}

/// A retry of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryDelta {
    /// The cause in a few words.
    pub cause: String,
    /// The number of the retry that follows, from 1.
    pub retry: u32,
    /// The maximum number of retries.
    pub retries: u32,
    /// The wait before it, in milliseconds.
    pub wait_ms: u64,
}

/// Another model is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackDelta {
    /// The cause in a few words.
    pub cause: String,
    /// The model, as `provider:model`.
    pub model: String,
}

impl ReplyDelta {
    /// Returns the piece `delta` of the reply of `who`; `None` for a kind that this version does not know.
    pub fn of(at: &Path, who: &Name, delta: &Delta) -> Option<Self> {
        let content = match delta.clone() {
            Delta::Text(text) => Content::Text { text },
            Delta::Thought(thought) => Content::Thought { thought },
            Delta::Call { index, tool, args } => Content::Call { call: CallDelta { index, tool, args } },
            Delta::Restart => Content::Restart { restart: () },
            Delta::Retry { cause, retry, retries, wait } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                Content::Retry { retry: RetryDelta { cause, retry, retries, wait_ms } }
            }
            Delta::Fallback { cause, model } => {
                Content::Fallback { fallback: FallbackDelta { cause, model } }
            }
            _ => return None,
        };
        Some(Self { chat: at.clone(), who: who.clone(), content })
    }
}

impl Content {
    /// Returns the piece as the kernel has it; `None` for an [unknown](Self::Unknown) one.
    #[must_use]
    pub fn into_delta(self) -> Option<Delta> {
        Some(match self {
            Self::Text { text } => Delta::Text(text),
            Self::Thought { thought } => Delta::Thought(thought),
            Self::Call { call: CallDelta { index, tool, args } } => Delta::Call { index, tool, args },
            Self::Restart { .. } => Delta::Restart,
            Self::Retry { retry: RetryDelta { cause, retry, retries, wait_ms } } => {
                Delta::Retry { cause, retry, retries, wait: Duration::from_millis(wait_ms) }
            }
            Self::Fallback { fallback: FallbackDelta { cause, model } } => Delta::Fallback { cause, model },
            Self::Unknown => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_piece_is_read_back() {
        let (at, who) = (Path::root(), Name::new("Ann").unwrap());
        let call =
            |tool: Option<&str>| Delta::Call { index: 1, tool: tool.map(str::to_owned), args: "{".into() };
        let wait = Duration::from_millis(250);
        let retry = Delta::Retry { cause: "429".into(), retry: 1, retries: 5, wait };
        let fallback = Delta::Fallback { cause: "500".into(), model: "p:m".into() };
        for (delta, written) in [
            (Delta::Text("a\nb".into()), json!({"type": "text", "text": "a\nb"})),
            (Delta::Thought("hm".into()), json!({"type": "thought", "thought": "hm"})),
            (call(Some("add")), json!({"type": "call", "call": {"index": 1, "tool": "add", "args": "{"}})),
            (call(None), json!({"type": "call", "call": {"index": 1, "tool": null, "args": "{"}})),
            (Delta::Restart, json!({"type": "restart", "restart": null})),
            (
                retry,
                json!({"type": "retry", "retry": {"cause": "429", "retry": 1, "retries": 5, "wait_ms": 250}}),
            ),
            (fallback, json!({"type": "fallback", "fallback": {"cause": "500", "model": "p:m"}})),
        ] {
            let piece = ReplyDelta::of(&at, &who, &delta).unwrap();
            let mut expected = json!({"chat": "", "who": "Ann"});
            expected.as_object_mut().unwrap().extend(written.as_object().unwrap().clone());
            let text = serde_json::to_string(&piece).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
            let read: ReplyDelta = serde_json::from_str(&text).unwrap();
            assert_eq!(read.content.into_delta(), Some(delta));
        }
    }

    #[test]
    fn a_piece_of_a_newer_server_says_nothing() {
        let newer = json!({"chat": "", "who": "Ann", "type": "smell", "smell": {"of": "roses"}});
        let piece: ReplyDelta = serde_json::from_value(newer).unwrap();
        assert_eq!(piece.content.into_delta(), None);
    }
}
