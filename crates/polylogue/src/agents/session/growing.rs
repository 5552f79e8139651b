//! Streamed replies.

use std::collections::BTreeMap;

use polylogue_core::{Body, Delta, Name, Path, Subscription, Update};

/// Streams the replies of agents: at each step the text so far and its delta.
///
/// ```
/// # async fn example(session: polylogue::Session, bot: polylogue::Assistant) -> polylogue::Result<()> {
/// use polylogue::agents::session::Stage;
/// let mut growing = session.growing().await;
/// let show = async {
///     while let Some(grown) = growing.next().await {
///         match grown.stage {
///             Stage::Writing => show(&grown.piece),
///             Stage::Done if grown.at.is_root() => break,
///             _ => {}
///         }
///     }
/// };
/// # let _ = show;
/// # fn show(_: &str) {}
/// # let _ = session.call(&bot, "What is the meaning of life?");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Growing {
    watch: Subscription,
    texts: BTreeMap<(Path, Name), String>,
}

/// A step of a streamed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grown {
    /// The chat.
    pub at: Path,
    /// The agent.
    pub who: Name,
    /// What happened.
    pub stage: Stage,
    /// The text so far; complete in the stage `Done`.
    pub text: String,
    /// The delta of this step; can be empty.
    pub piece: String,
}

/// The stage of a streamed reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Text arrives.
    Writing,
    /// The stream broke off, and the reply starts again.
    Restart,
    /// A tool is called.
    Calling,
    /// A tool returned.
    Returned,
    /// The message is complete.
    Done,
    /// The turn failed.
    Failed,
}

impl Growing {
    /// Streams the updates of a subscription.
    #[must_use]
    pub const fn of(watch: Subscription) -> Self {
        Self { watch, texts: BTreeMap::new() }
    }

    /// The next step; `None` when the log is dropped. A slow reader misses deltas, but the text in `Done` is complete.
    pub async fn next(&mut self) -> Option<Grown> {
        loop {
            let grown = match self.watch.next().await? {
                Update::Delta { at, who, delta: piece } => self.grow(at, who, piece),
                Update::Event(event) => self.happened(&event.at, &event.body),
                _ => None,
            };
            if grown.is_some() {
                return grown;
            }
        }
    }

    fn grow(&mut self, at: Path, who: Name, piece: Delta) -> Option<Grown> {
        let text = self.texts.entry((at.clone(), who.clone())).or_default();
        let (stage, piece) = match piece {
            Delta::Text(piece) => (Stage::Writing, piece),
            Delta::Restart => (Stage::Restart, String::new()),
            _ => return None,
        };
        match stage {
            Stage::Restart => text.clear(),
            _ => text.push_str(&piece),
        }
        Some(Grown { at, who, stage, text: text.clone(), piece })
    }

    fn happened(&mut self, at: &Path, body: &Body) -> Option<Grown> {
        let (who, stage, text) = match body {
            // A new model call in the same turn starts a new text.
            Body::ModelReplied(sample) => {
                self.texts.remove(&(at.clone(), sample.who.clone()));
                return None;
            }
            Body::ToolCalled { who, .. } => (who, Stage::Calling, String::new()),
            Body::ToolReturned { who, .. } => (who, Stage::Returned, String::new()),
            Body::Message(message) => (&message.from, Stage::Done, message.plain().into_owned()),
            Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => {
                (who, Stage::Done, String::new())
            }
            Body::Failed { who, .. } => (who, Stage::Failed, String::new()),
            _ => return None,
        };
        self.texts.remove(&(at.clone(), who.clone()));
        Some(Grown { at: at.clone(), who: who.clone(), stage, text, piece: String::new() })
    }
}
