//! Streamed replies.

use std::collections::BTreeMap;

use polylogue_core::{Body, Delta, Name, Path, Subscription, Update};

/// Streams the replies of agents: at each step the text so far and its delta.
///
/// ```
/// # async fn example(session: polylogue::Session, bot: polylogue::Assistant) -> polylogue::Result<()> {
/// use polylogue::agents::session::Stage;
/// let mut reply_stream = session.reply_stream().await;
/// let show = async {
///     while let Some(update) = reply_stream.next().await {
///         match update.stage {
///             Stage::Writing => show(&update.delta),
///             Stage::Done if update.chat.is_root() => break,
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
pub struct ReplyStream {
    watch: Subscription,
    texts: BTreeMap<(Path, Name), String>,
}

/// A step of a streamed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyUpdate {
    /// The chat.
    pub chat: Path,
    /// The agent.
    pub who: Name,
    /// The stage of the reply.
    pub stage: Stage,
    /// The text so far; complete in the stage `Done`.
    pub text: String,
    /// The delta of this step; can be empty.
    pub delta: String,
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

impl ReplyStream {
    /// Streams the updates of a subscription.
    pub const fn of(watch: Subscription) -> Self {
        Self { watch, texts: BTreeMap::new() }
    }

    /// Waits for the next step; `None` when the log is dropped. A slow reader misses deltas, but the text in `Done` is complete.
    pub async fn next(&mut self) -> Option<ReplyUpdate> {
        loop {
            let update = match self.watch.next().await? {
                Update::Delta { chat: at, who, delta } => self.extend(at, who, delta),
                Update::Event(event) => self.happened(&event.chat, &event.body),
                _ => None,
            };
            if update.is_some() {
                return update;
            }
        }
    }

    fn extend(&mut self, at: Path, who: Name, delta: Delta) -> Option<ReplyUpdate> {
        let text = self.texts.entry((at.clone(), who.clone())).or_default();
        let (stage, delta) = match delta {
            Delta::Text(delta) => (Stage::Writing, delta),
            Delta::Restart => (Stage::Restart, String::new()),
            _ => return None,
        };
        match stage {
            Stage::Restart => text.clear(),
            _ => text.push_str(&delta),
        }
        Some(ReplyUpdate { chat: at, who, stage, text: text.clone(), delta })
    }

    fn happened(&mut self, at: &Path, body: &Body) -> Option<ReplyUpdate> {
        let (who, stage, text) = match body {
            // A new model call in the same turn starts a new text.
            Body::ModelReplied(reply) => {
                self.texts.remove(&(at.clone(), reply.who.clone()));
                return None;
            }
            Body::ToolCalled { who, .. } => (who, Stage::Calling, String::new()),
            Body::ToolReturned { who, .. } => (who, Stage::Returned, String::new()),
            Body::Message(message) => (&message.from, Stage::Done, message.text().into_owned()),
            Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => {
                (who, Stage::Done, String::new())
            }
            Body::Failed { who, .. } => (who, Stage::Failed, String::new()),
            _ => return None,
        };
        self.texts.remove(&(at.clone(), who.clone()));
        Some(ReplyUpdate { chat: at.clone(), who: who.clone(), stage, text, delta: String::new() })
    }
}
