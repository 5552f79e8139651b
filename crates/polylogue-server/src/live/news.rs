//! What those who follow a conversation learn of it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;

use super::pieces::{BegunReplies, BegunReply, Key, OrderedDelta};

/// How many news a reader can lag behind. Slower ones miss pieces.
const LAG: usize = 256;

/// What has happened in a conversation that another process runs.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// It was looked at, and is not as before.
    Changed(Seen),
    /// The event with this number was stored, and ends replies.
    Stored { seq: u64, ends: Arc<[Key]> },
    /// The reply so far, for a reader who has just begun to follow.
    Begun(Arc<BegunReply>),
    /// A piece of a reply.
    Piece(Arc<OrderedDelta>),
    /// Its holder has lost it: replies that are not stored begin again.
    Broken,
    /// Pieces were left out.
    Missed,
}

/// What was seen in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// How many events there are; `None` when it does not exist any more.
    pub(crate) events: Option<u64>,
    /// The number of its last claim, and whether a process has it.
    pub(crate) claim: (u64, bool),
}

/// The news of one conversation, for all who follow it.
#[derive(Debug)]
pub(super) struct NewsChannel {
    readers: broadcast::Sender<News>,
    /// Locked while something is sent, so that a new reader has each piece once.
    begun: Mutex<BegunReplies>,
}

impl Default for NewsChannel {
    fn default() -> Self {
        Self { readers: broadcast::Sender::new(LAG), begun: Mutex::default() }
    }
}

impl NewsChannel {
    /// Sends news to those who follow.
    pub(super) fn send(&self, news: News) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        match &news {
            News::Piece(piece) => begun.piece(piece),
            News::Stored { ends, .. } => begun.end(ends),
            News::Broken | News::Missed => begun.clear(),
            News::Changed(_) | News::Begun(_) => {}
        }
        // They may have gone.
        let _ = self.readers.send(news);
    }

    /// The news from now on, and the replies that are being written.
    pub(super) fn subscribe(&self) -> (broadcast::Receiver<News>, Vec<Arc<BegunReply>>) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        (self.readers.subscribe(), begun.all())
    }
}
