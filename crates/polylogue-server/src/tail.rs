//! The tail of a conversation: its stored events from a number on, then what happens, as an event stream.

mod replies;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, Response};
use bytes::Bytes;
use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::{Stream, StreamExt as _, stream};
use polylogue_core::{Event, LogId, Store as _, Subscription, Update};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::app::App;
use crate::call::Reply;
use crate::conversation::state_of;
use crate::live::follower::Following;
use crate::live::news::News;
use crate::live::pieces::ShownPieces;
use crate::problem::Problem;
use crate::projection::{Frame, Projection};
use crate::revocation::token_ended;
use crate::running::Changes;
use crate::tenants::Tenant;
use crate::token::Token;

/// So many events are read of a log at once, at most.
pub(crate) const PAGE: u64 = 1_000;

/// About so many bytes are read of a log at once: a client that takes them slowly, of a long log, holds no more of it in memory.
const PAGE_BYTES: u64 = 64 << 10;

/// How many events are read first, while it is unknown how long they are.
const FIRST_PAGE: u64 = 4;

/// How often a conversation that this process does not run is looked at.
const POLL: Duration = Duration::from_millis(250);

/// So many streams are looked after so often; more of them less often, so that what all of them read stays bounded.
const POLLED: usize = 100;

/// The longest time between two looks is so many times the shortest.
const MOST_POLLS: usize = 20;

/// So many frames are sent at once, at most, and so many updates are taken before anything else is looked at.
const AT_ONCE: usize = 64;

/// Who follows which conversation.
pub(crate) struct Follow {
    pub(crate) app: Arc<App>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) token: Arc<Token>,
    pub(crate) id: LogId,
    /// The first event that is sent.
    pub(crate) from: u64,
    /// Whether the tail ends when the conversation is closed. Otherwise it waits until that is reopened.
    pub(crate) ends: bool,
    /// What happens from the beginning of a run on that is about to begin.
    pub(crate) begins: Option<oneshot::Receiver<Subscription>>,
}

impl Follow {
    /// A page of `count` of the events that are stored and not sent yet, and the state, if these are all.
    async fn stored(&self, looks: bool, count: u64) -> Result<(Vec<Event>, Option<Value>), Problem> {
        let (store, id) = (self.tenant.runtime.store(), &self.id);
        let page = async |from: u64| store.read_range(id, from..from.saturating_add(count)).await;
        let mut events = page(self.from).await?;
        if looks && events.is_empty() {
            return Ok((events, None));
        }
        while (events.len() as u64) < count {
            let state = state_of(&self.tenant, id).await?;
            // The stream may end with this state: what came before it is read, too.
            let is_running = state.get("state").is_some_and(|state| state == "running");
            let next = events.last().map_or(self.from, |event| event.seq + 1);
            let more = if is_running { Vec::new() } else { page(next).await? };
            if more.is_empty() {
                return Ok((events, Some(state)));
            }
            events.extend(more);
        }
        Ok((events, None))
    }
}

/// The response that is the tail.
pub(crate) fn respond(follow: Follow, projection: impl Projection) -> Reply {
    let permit = follow.app.stream_of(&follow.token)?;
    event_stream(texts(follow, projection), permit)
}

/// The texts of a tail.
pub(crate) fn texts(
    follow: Follow,
    projection: impl Projection,
) -> impl Stream<Item = String> + Send + 'static {
    stream::unfold(Tail::new(follow, projection), |mut tail| async {
        let text = tail.next().await?;
        Some((text, tail))
    })
}

/// The response that is an event stream. `permit` counts it while it lasts.
pub(crate) fn event_stream(
    texts: impl Stream<Item = impl Into<Bytes> + Send + 'static> + Send + 'static,
    permit: OwnedSemaphorePermit,
) -> Reply {
    // What is there at the same time is sent at once.
    let body = texts.map(Into::into).ready_chunks(AT_ONCE).map(move |texts: Vec<Bytes>| {
        let _open = &permit;
        Ok::<_, Infallible>(joined(texts))
    });
    let response = Response::builder()
        .header(CONTENT_TYPE, "text/event-stream")
        .header(CACHE_CONTROL, "no-store")
        // For servers in front of this one, which would collect what is to be sent at once.
        .header(HeaderName::from_static("x-accel-buffering"), "no");
    response.body(Body::from_stream(body)).map_err(|error| Problem::internal(error.to_string()))
}

fn joined(mut texts: Vec<Bytes>) -> Bytes {
    match texts.len() {
        1 => texts.remove(0),
        _ => texts.concat().into(),
    }
}

struct Tail<P> {
    follow: Follow,
    projection: P,
    /// What is to be sent next.
    ready: VecDeque<String>,
    /// How many events are read next.
    page: u64,
    live: Option<Subscription>,
    /// What other processes do with the conversation, where a store is one that processes share.
    following: Option<Following>,
    /// What was sent of replies that are not stored yet.
    pieces: ShownPieces,
    /// Which claim there was when its state was read, and whether it was held.
    seen_claim: Option<(u64, bool)>,
    /// When this process opens the conversation, or it rests, or has stopped running.
    changes: Changes,
    stopping: watch::Receiver<bool>,
    step: Step,
    shown: Option<Value>,
    /// When the state is read although the conversation runs: a person was asked, or has answered, and other turns may continue.
    state_at: Option<Instant>,
    /// Pieces of replies that are being written were not received. It counts once all stored events are sent.
    has_lost_pieces: bool,
    /// Updates that were taken since anything else was looked at.
    taken: usize,
    comment_at: Instant,
    /// Fires when the next comment is due, or was before something else was sent.
    comment: Pin<Box<Sleep>>,
    /// Resolves when the token is no longer valid.
    token_ended: BoxFuture<'static, ()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Read what is stored, and the state.
    Read,
    /// Read on, behind a page of events that was sent.
    ReadOn,
    /// Look whether another process has written something.
    Look,
    /// Wait for what happens.
    Wait,
    /// Send what is ready, and end.
    End,
}

/// What a tail waited for.
enum Woken {
    /// Nothing is waited for: more events are stored.
    More,
    Update(Option<Update>),
    /// The run begins, unless it does not.
    Begin(Option<Subscription>),
    Change,
    /// Of another process.
    News(News),
    Poll,
    Comment,
    TokenEnded,
    Stopping,
}

impl<P: Projection> Tail<P> {
    fn new(follow: Follow, mut projection: P) -> Self {
        let (changes, stopping) =
            (follow.tenant.runs.changes_of(&follow.id), follow.app.stopping.subscribe());
        let now = Instant::now();
        Self {
            ready: VecDeque::from([projection.opening()]),
            projection,
            page: FIRST_PAGE,
            live: None,
            // Before reading, so that no event is missed.
            following: follow.tenant.follower.as_ref().map(|follower| follower.follow(&follow.id)),
            pieces: ShownPieces::default(),
            seen_claim: None,
            changes,
            stopping,
            step: Step::Read,
            shown: None,
            state_at: None,
            has_lost_pieces: false,
            taken: 0,
            comment_at: now + follow.app.limits.comment_every,
            comment: Box::pin(sleep(follow.app.limits.comment_every)),
            token_ended: Box::pin(token_ended(Arc::clone(&follow.app), Arc::clone(&follow.token))),
            follow,
        }
    }

    /// The next text that is sent; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(text) = self.ready.pop_front() {
                self.comment_at = Instant::now() + self.follow.app.limits.comment_every;
                return Some(text);
            }
            if self.step != Step::End && self.projection.is_over() {
                self.send(|projection| projection.rest(&Value::Null).unwrap_or_default());
                self.step = Step::End;
                continue;
            }
            match self.step {
                Step::Read | Step::Look => self.read().await,
                Step::Wait | Step::ReadOn => {
                    let woken = match self.taken_now() {
                        Some(update) => Woken::Update(Some(update)),
                        None => self.wait().await,
                    };
                    self.take(woken);
                }
                Step::End => return None,
            }
        }
    }

    /// Reads what is stored and not sent yet.
    async fn read(&mut self) {
        let looks = std::mem::replace(&mut self.step, Step::Wait) == Step::Look;
        self.state_at = None;
        self.changes.mark_unchanged();
        if self.live.is_none() && self.follow.begins.is_none() {
            // Subscribed before reading, so that no event is missed.
            self.live = self.follow.tenant.runtime.subscribe(&self.follow.id).await;
            if self.live.is_some() {
                self.has_lost_pieces = true;
                // What another process wrote is written again by this one.
                self.restart_replies();
            }
        }
        let Ok((events, state)) = self.follow.stored(looks, self.page).await else {
            // It was removed, or the store is gone.
            self.step = Step::End;
            return;
        };
        let mut bytes = 0;
        for event in &events {
            self.follow.from = event.seq + 1;
            self.pieces.event(event);
            for frame in self.projection.entry(event) {
                let text = frame.text();
                bytes += text.len() as u64;
                self.ready.push_back(text);
            }
        }
        if !events.is_empty() {
            self.page = page_after(events.len() as u64, bytes);
        }
        if state.is_none() && !events.is_empty() {
            self.step = Step::ReadOn;
            return;
        }
        if std::mem::take(&mut self.has_lost_pieces) {
            self.projection.lost_pieces(None);
        }
        state.iter().for_each(|state| self.show(state));
    }

    /// Sends the state if it is another one. A conversation that is closed ends the stream.
    fn show(&mut self, state: &Value) {
        let is_closed = state.get("state").is_some_and(|state| state == "closed");
        if self.shown.as_ref() != Some(state) {
            self.shown = Some(state.clone());
            let frames = self.projection.state(state);
            self.ready.extend(frames.iter().map(|frame| frame.text()));
        }
        let is_open = self.live.is_some() || self.follow.begins.is_some();
        let is_at_rest = !is_open && state.get("state").is_some_and(|state| state != "running");
        if is_at_rest && self.projection.expects_more() {
            self.state_at.get_or_insert_with(|| Instant::now() + POLL);
        } else if let Some(frames) = is_at_rest.then(|| self.projection.rest(state)).flatten() {
            self.ready.extend(frames.iter().map(|frame| frame.text()));
            self.step = Step::End;
        }
        if is_closed && self.live.is_none() && self.follow.ends {
            let frames = self.projection.end(state);
            self.ready.extend(frames.iter().map(|frame| frame.text()));
            self.step = Step::End;
        }
    }

    /// An update that has come already: nothing has to be waited for.
    fn taken_now(&mut self) -> Option<Update> {
        if self.step != Step::Wait || self.follow.begins.is_some() || self.taken >= AT_ONCE {
            return None;
        }
        self.taken += 1;
        self.live.as_mut()?.try_next()
    }

    async fn wait(&mut self) -> Woken {
        self.taken = 0;
        let (is_live, is_followed) = (self.live.is_some(), self.following.is_some());
        let reads_on = self.step == Step::ReadOn;
        let poll = if is_live { POLL } else { poll_every(self.follow.app.open_streams()) };
        let state_is_due = OptionFuture::from(self.state_at.map(sleep_until));
        let begins = OptionFuture::from(self.follow.begins.as_mut());
        let live = OptionFuture::from(self.live.as_mut().map(Subscription::next));
        let news = OptionFuture::from(self.following.as_mut().map(Following::next));
        tokio::select! {
            biased;
            _ = self.stopping.wait_for(|stopping| *stopping) => Woken::Stopping,
            () = &mut self.token_ended => Woken::TokenEnded,
            Some(()) = state_is_due => Woken::Change,
            () = std::future::ready(()), if reads_on => Woken::More,
            Some(live) = begins => Woken::Begin(live.ok()),
            Some(update) = live => Woken::Update(update),
            () = self.changes.changed() => Woken::Change,
            Some(news) = news => Woken::News(news),
            () = sleep(poll), if !is_live && !is_followed => Woken::Poll,
            () = &mut self.comment => Woken::Comment,
        }
    }

    fn take(&mut self, woken: Woken) {
        match woken {
            Woken::More => self.step = Step::Read,
            Woken::Update(update) => self.update(update),
            Woken::Begin(live) => {
                self.follow.begins = None;
                self.live = live;
                self.step = Step::Read;
            }
            Woken::Change => self.step = Step::Read,
            // What this process does comes from it.
            Woken::News(_) if self.live.is_some() => {}
            Woken::News(news) => self.news(news),
            Woken::Poll => self.step = Step::Look,
            Woken::Comment => self.comment(),
            Woken::TokenEnded => self.step = Step::End,
            Woken::Stopping => {
                // The client tries again when the server may be back.
                self.ready.push_back(self.projection.interrupted());
                self.step = Step::End;
            }
        }
    }

    /// Sends a comment, unless something was sent since the timer was set.
    fn comment(&mut self) {
        if Instant::now() >= self.comment_at {
            self.ready.push_back(self.projection.keep_alive());
            self.comment_at = Instant::now() + self.follow.app.limits.comment_every;
        }
        self.comment.as_mut().reset(self.comment_at);
    }

    /// Takes in what another process does.
    fn news(&mut self, news: News) {
        match news {
            News::Changed(seen) => {
                let is_known = seen.events.is_some_and(|events| events <= self.follow.from);
                if self.seen_claim.replace(seen.claim) != Some(seen.claim) || !is_known {
                    self.step = Step::Read;
                }
            }
            News::Stored { seq, ends } if seq < self.follow.from => self.end_replies(seq, &ends),
            News::Stored { .. } => self.step = Step::Read,
            News::Begun(reply) => self.begun(&reply),
            News::Piece(piece) => self.piece(&piece),
            News::Broken => self.restart_replies(),
            News::Missed => {
                self.restart_replies();
                self.miss();
            }
        }
    }

    /// Pieces were missed: what is stored is read.
    fn miss(&mut self) {
        self.follow.app.metrics.streams_missed.inc();
        self.step = Step::Read;
        let from = self.follow.from;
        self.send(|projection| projection.missed(from));
    }

    fn send(&mut self, frames: impl FnOnce(&mut P) -> Vec<Frame>) {
        let frames = frames(&mut self.projection);
        self.ready.extend(frames.iter().map(Frame::text));
    }

    fn update(&mut self, update: Option<Update>) {
        let frames = match update {
            Some(Update::Event(event)) if event.seq < self.follow.from => return,
            Some(Update::Event(event)) if event.seq == self.follow.from => {
                self.follow.from = event.seq + 1;
                self.pieces.event(&event);
                if is_about_question(&event) {
                    self.state_at.get_or_insert_with(|| Instant::now() + POLL);
                }
                self.projection.entry(&event)
            }
            // Pieces of a reply that was read from the store since.
            Some(Update::Delta { chat: at, who, .. })
                if self.live.as_ref().is_some_and(|live| self.is_stored(&at, &who, live.next_seq())) =>
            {
                return self.projection.lost_pieces(Some((&at, &who)));
            }
            Some(Update::Delta { chat: at, who, delta }) => {
                self.pieces.own(&at, &who);
                self.projection.delta(&at, &who, &delta)
            }
            Some(Update::Missed { .. }) => return self.miss(),
            // An event that is ahead of what was sent, or a kind of update that says nothing here.
            Some(_) => {
                self.step = Step::Read;
                return;
            }
            // This process has closed it, or lost it: what it did not store is written again by another one.
            None => {
                self.live = None;
                self.step = Step::Read;
                return self.restart_replies();
            }
        };
        self.ready.extend(frames.iter().map(|frame| frame.text()));
    }
}

/// Whether a person is asked, or has answered.
fn is_about_question(event: &Event) -> bool {
    use polylogue_core::Body::{InputProvided, InputRequired};
    matches!(event.body, InputRequired(_) | InputProvided { .. })
}

/// How many events are read after a page of so many, which had so many bytes. It does not grow at once: longer ones can follow.
fn page_after(events: u64, bytes: u64) -> u64 {
    let fitting = PAGE_BYTES.saturating_mul(events) / bytes.max(1);
    fitting.min(events.saturating_mul(4)).clamp(1, PAGE)
}

/// How often each of so many streams looks at its conversation.
fn poll_every(streams: usize) -> Duration {
    let times = (streams / POLLED).clamp(1, MOST_POLLS);
    POLL * u32::try_from(times).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_with_short_events_and_shrink_with_long_ones() {
        let of = [(4, 2_000), (16, 8_000), (256, 128_000), (1_000, 100_000), (4, 1 << 20), (1, 0)];
        assert_eq!(of.map(|(events, bytes)| page_after(events, bytes)), [16, 64, 131, 655, 1, 4]);
    }

    #[test]
    fn many_streams_look_less_often_but_within_seconds() {
        let of = [0, 1, 199, 200, 1_000, 100_000].map(poll_every);
        assert_eq!(of, [250, 250, 250, 500, 2_500, 5_000].map(Duration::from_millis));
    }
}
