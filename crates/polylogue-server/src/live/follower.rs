//! Which conversations this process follows without running them: one query for all of them, and a stream from each process that runs some.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::LogId;
use polylogue_runtime::database::{LivePoint, PostgresWatch, WatchedLog};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::news::{News, NewsChannel, Seen};
use super::peer::{Peers, Target};
use super::pieces::BegunReply;

/// How often it is looked at all of them where nothing is announced.
const POLL: Duration = Duration::from_millis(500);

/// How often after one has lost its holder, and for how long: another process has it soon.
const HURRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// The shortest time between two looks, however much is announced.
const GAP: Duration = Duration::from_millis(40);

/// How often announcements are asked for again.
const ASK: Duration = Duration::from_secs(30);

/// Follows conversations of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct Follower(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    watch: PostgresWatch,
    /// Where this process is followed: it does not follow itself.
    own: Option<LivePoint>,
    peers: Peers,
    logs: Mutex<Logs>,
    /// Woken when one is to be followed, or was lost.
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Logs {
    followed: HashMap<LogId, Followed>,
    /// Whether a task looks after them.
    is_looking: bool,
    /// When one was lost last.
    lost: Option<Instant>,
}

#[derive(Debug, Default)]
struct Followed {
    readers: usize,
    news: Arc<NewsChannel>,
    seen: Option<Seen>,
    source: Option<Source>,
    /// When announcements were asked for.
    asked: Option<Instant>,
}

/// The process that a conversation is followed at.
#[derive(Debug)]
struct Source {
    address: String,
    fence: u64,
    number: u64,
    has_ended: Arc<AtomicBool>,
}

impl Follower {
    pub(crate) fn new(watch: PostgresWatch, own: Option<LivePoint>) -> Self {
        let wake = Arc::<Notify>::default();
        let (peers, logs) = (Peers::new(Arc::clone(&wake)), Mutex::default());
        Self(Arc::new(Inner { watch, own, peers, logs, wake }))
    }

    /// What happens in the conversation `id` from now on, if another process runs it, with what it has received of replies before.
    pub(crate) fn follow(&self, id: &LogId) -> Following {
        let mut logs = self.0.logs();
        let followed = logs.followed.entry(id.clone()).or_default();
        followed.readers += 1;
        // One who comes later learns what was seen before.
        followed.seen = None;
        let (news, begun) = followed.news.subscribe();
        if !std::mem::replace(&mut logs.is_looking, true) {
            tokio::spawn(look_after(Arc::clone(&self.0)));
        }
        drop(logs);
        self.0.wake.notify_one();
        Following { begun, news, inner: Arc::clone(&self.0), id: id.clone() }
    }

    /// Reads in the store what all processes do.
    pub(crate) fn watch(&self) -> &PostgresWatch {
        &self.0.watch
    }

    /// How many are followed, and of how many this process receives pieces.
    pub(crate) fn count(&self) -> (usize, usize) {
        let logs = self.0.logs();
        let live = logs.followed.values().filter(|followed| followed.source.is_some()).count();
        (logs.followed.len(), live)
    }
}

/// One who follows a conversation.
#[derive(Debug)]
pub(crate) struct Following {
    /// Replies that had begun before, which come before all other news.
    begun: Vec<Arc<BegunReply>>,
    news: broadcast::Receiver<News>,
    inner: Arc<Inner>,
    id: LogId,
}

impl Following {
    /// What has happened. Can be dropped and called again.
    pub(crate) async fn next(&mut self) -> News {
        if let Some(begun) = self.begun.pop() {
            return News::Begun(begun);
        }
        match self.news.recv().await {
            Ok(news) => news,
            Err(RecvError::Lagged(_)) => News::Missed,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut logs = self.inner.logs();
        let Some(followed) = logs.followed.get_mut(&self.id) else { return };
        followed.readers = followed.readers.saturating_sub(1);
        if followed.readers == 0
            && let Some(Followed { source: Some(source), .. }) = logs.followed.remove(&self.id)
        {
            self.inner.peers.leave(&source.address, source.number);
        }
    }
}

/// Polls the logs that clients follow, until no client follows any.
async fn look_after(inner: Arc<Inner>) {
    loop {
        let ids: Vec<LogId> = {
            let mut logs = inner.logs();
            logs.is_looking = !logs.followed.is_empty();
            logs.followed.keys().cloned().collect()
        };
        if ids.is_empty() {
            return;
        }
        let looked = match inner.watch.look(&ids).await {
            Ok(found) => inner.apply(&ids, found).await,
            Err(error) => Err(error),
        };
        if let Err(error) = looked {
            warn!(%error, "conversations of other processes cannot be followed");
        }
        sleep(GAP).await;
        tokio::select! {
            () = sleep(inner.pause()) => {}
            () = inner.wake.notified() => {}
            () = inner.watch.announced() => {}
        }
    }
}

impl Inner {
    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self) -> Duration {
        let is_hurried = self.logs().lost.is_some_and(|lost| lost.elapsed() < HURRY.1);
        if is_hurried { HURRY.0 } else { POLL }
    }

    /// Passes on what was seen of `ids`, follows their holders, and asks for announcements of those that cannot be followed.
    async fn apply(&self, ids: &[LogId], found: Vec<WatchedLog>) -> Result<(), polylogue_core::StoreError> {
        let mut found: HashMap<LogId, WatchedLog> =
            found.into_iter().map(|seen| (seen.id.clone(), seen)).collect();
        let mut unannounced = Vec::new();
        {
            let mut logs = self.logs();
            let Logs { followed, lost, .. } = &mut *logs;
            for id in ids {
                let Some(followed) = followed.get_mut(id) else { continue };
                let found = found.remove(id);
                let was_live = followed.source.is_some();
                let is_own = self.find_source(id, followed, found.as_ref());
                if was_live && followed.source.is_none() {
                    *lost = Some(Instant::now());
                }
                let seen = Seen {
                    events: found.as_ref().map(|found| found.events),
                    claim: found.map(|found| (found.fence, found.is_held)).unwrap_or_default(),
                };
                if followed.seen.replace(seen) != Some(seen) {
                    followed.news.send(News::Changed(seen));
                }
                if !is_own
                    && followed.source.is_none()
                    && followed.asked.is_none_or(|asked| asked.elapsed() > ASK)
                {
                    followed.asked = Some(Instant::now());
                    unannounced.push(id.clone());
                }
            }
        }
        if unannounced.is_empty() { Ok(()) } else { self.watch.ask(&unannounced).await }
    }

    /// Follows the holder of a conversation, and no other process. Returns whether it is this one.
    fn find_source(&self, id: &LogId, followed: &mut Followed, found: Option<&WatchedLog>) -> bool {
        let point =
            found.filter(|found| found.is_held).and_then(|found| Some((found.live.as_ref()?, found.fence)));
        let own = self.own.as_ref().map(|own| &own.address);
        let is_own = point.is_some_and(|(point, _)| Some(&point.address) == own);
        let point = point.filter(|_| !is_own);
        if let Some(source) = &followed.source {
            let has_ended = source.has_ended.load(Ordering::Acquire);
            if !has_ended
                && point
                    .is_some_and(|(point, fence)| point.address == source.address && fence == source.fence)
            {
                return false;
            }
            if !has_ended {
                self.peers.leave(&source.address, source.number);
                followed.news.send(News::Broken);
            }
            followed.source = None;
        }
        let Some((point, fence)) = point else { return is_own };
        let has_ended = Arc::<AtomicBool>::default();
        let target = Target { news: Arc::clone(&followed.news), has_ended: Arc::clone(&has_ended) };
        let number = self.peers.follow(point, id, target);
        followed.source =
            number.map(|number| Source { address: point.address.clone(), fence, number, has_ended });
        false
    }
}
