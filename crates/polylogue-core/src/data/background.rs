//! Background tasks: agents and chats that work next to the conversation, and their results.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::part::Part;
use super::stop_reason::StopReason;

/// A background task: a call of an agent, or of a chat, that an agent starts in its turn and that runs next to the conversation.
///
/// Its events have a path of their own, [below](crate::Path::background) the chat of the agent that started it. Its
/// [result](BackgroundResult) is posted in that chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// The agent that started it.
    pub who: Name,
    /// Identifies it for that agent, such as `research-1`.
    pub id: Arc<str>,
    /// Counts the tasks that the agent started in this chat, from 1.
    pub number: u64,
    /// The agent that works on it: the name for which [`Agent::background_agent`](crate::Agent::background_agent) returns it.
    pub target: Arc<str>,
    /// The message that it receives.
    pub task: Arc<str>,
    /// Whether it is the turn of `who` itself: `who` says its result in a turn that begins when the result is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn: bool,
}

/// How a background task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundStatus {
    /// With a result.
    Completed,
    /// Without a result: an error, a limit, or nothing to say.
    Failed,
    /// It was cancelled: by the agent that started it, or because the chat of that agent ended.
    Cancelled,
}

/// The end of a background task, as the agent that started it receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackgroundResult {
    /// The agent that started it.
    pub who: Name,
    /// The task.
    pub id: Arc<str>,
    /// How it ended.
    pub status: BackgroundStatus,
    /// The reply of a completed task; else why it did not complete, as text.
    pub parts: Vec<Part>,
    /// Why it ended early, if a limit or a stop reason ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<StopReason>,
    /// The number of the task.
    pub number: u64,
    /// Whether the agent waited for it, or cancelled it, within its turn: its tool call returns the result. Else the result is
    /// posted between two steps, and the agent sees it from its next turn on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaited: bool,
    /// Whether it is the result of a turn, which `who` says in its next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn: bool,
}

impl BackgroundStatus {
    /// Returns the status as in the log: `completed`, `failed` or `cancelled`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for BackgroundStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl BackgroundResult {
    /// Whether it is that of the task `number` of `who`.
    pub(crate) fn is_of(&self, who: &str, number: u64) -> bool {
        self.number == number && self.who.as_str() == who
    }

    /// Returns the result as a model receives it: which task it is of, how that ended, and the parts of the reply. Thoughts are
    /// left out.
    ///
    /// ```
    /// use polylogue_core::{BackgroundResult, BackgroundStatus, Name, Part};
    ///
    /// let result = BackgroundResult {
    ///     who: Name::new("Ann")?,
    ///     id: "research-1".into(),
    ///     status: BackgroundStatus::Completed,
    ///     parts: vec![Part::text("Cats purr.")],
    ///     reason: None,
    ///     number: 1,
    ///     awaited: false,
    ///     turn: false,
    /// };
    /// let text = "Background task `research-1` has completed. Its result:\n\nCats purr.";
    /// assert_eq!(result.for_model(), [Part::text(text)]);
    /// # Ok::<(), polylogue_core::NameError>(())
    /// ```
    pub fn for_model(&self) -> Vec<Part> {
        let head = match self.status {
            BackgroundStatus::Completed => {
                format!("Background task `{}` has completed. Its result:", self.id)
            }
            BackgroundStatus::Failed => format!("Background task `{}` has failed:", self.id),
            BackgroundStatus::Cancelled => format!("Background task `{}` was cancelled:", self.id),
        };
        let mut text = head;
        let mut others = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(more) => text.push_str(&format!("\n\n{more}")),
                Part::Cut(finish) => text.push_str(&format!("\n\n(This is {finish}.)")),
                Part::Thought(_) | Part::Note(_) => {}
                part => others.push(part.clone()),
            }
        }
        std::iter::once(Part::text(text)).chain(others).collect()
    }
}
