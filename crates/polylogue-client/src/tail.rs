//! A conversation as it happens: every stored event once and in order, over lost connections and restarts of the server.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use polylogue_core::{Delta, Event, LogId, Name, Path};
use polylogue_http::{HeaderName, Method, Response};
use polylogue_wire::stream::{self, Missed, ReplyDelta, Status};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::connection::Connection;
use crate::error::{ClientError, in_words, out_of_order};
use crate::frames::{Frame, Frames};
use crate::request::Request;

/// A connection on which nothing comes for so long is lost: a server sends a comment every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);

/// When the server does not say when to connect again.
const RETRY: Duration = Duration::from_millis(stream::RETRY_MS);

/// The longest wait that a server can ask for.
const MAX_RETRY: Duration = Duration::from_secs(60);

/// How long to wait at least before a lost connection is tried a second time; longer before each further attempt.
const WAIT: Duration = Duration::from_millis(100);

/// How often in a row a stream may have a gap.
const MAX_GAPS: u32 = 3;

/// An update of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum TailItem {
    /// A stored event. Each comes once and in order.
    Event(Box<Event>),
    /// A piece of a reply that is not stored yet.
    Delta {
        /// The chat.
        chat: Path,
        /// The agent whose reply it is.
        who: Name,
        /// The piece.
        delta: Delta,
    },
    /// The state has changed.
    Status(Status),
    /// Pieces were dropped, because this client was slow or the connection was lost. Stored events never are.
    Missed,
    /// The connection was lost, for this reason. The tail connects again.
    Lost(String),
    /// The connection is back after it was lost.
    Connected,
    /// The conversation is closed. Nothing follows.
    End(Status),
}

/// A conversation as it happens.
///
/// [`next`](Self::next) can be dropped before it is ready: nothing is lost, and the next call continues what it was waiting for.
pub struct Tail<'c> {
    connection: &'c Connection,
    id: LogId,
    /// The next event.
    from: u64,
    /// A request that was sent. It is kept when `next` is dropped: a caller that does something else now and then would never connect.
    opening: Option<Opening<'c>>,
    response: Option<Response<'c>>,
    frames: Frames,
    ready: VecDeque<TailItem>,
    lost: Option<Lost>,
    quiet_at: Instant,
    gaps: u32,
    is_over: bool,
}

/// A request for an event stream, until its response.
type Opening<'c> = Pin<Box<dyn Future<Output = Result<Response<'c>, ClientError>> + Send + 'c>>;

/// A connection that is lost.
#[derive(Debug, Clone, Copy)]
struct Lost {
    /// When it is tried again.
    again: Instant,
    /// After an attempt that fails from then on, no other one is made. `None`: never.
    give_up: Option<Instant>,
    /// The least time until the attempt after that.
    wait: Duration,
}

impl<'c> Tail<'c> {
    pub(crate) fn new(connection: &'c Connection, id: LogId, from: u64) -> Self {
        let (frames, ready, quiet_at) = (Frames::default(), VecDeque::new(), Instant::now() + SILENCE);
        let (opening, response, lost) = (None, None, None);
        Self {
            connection,
            id,
            from,
            opening,
            response,
            frames,
            ready,
            lost,
            quiet_at,
            gaps: 0,
            is_over: false,
        }
    }

    /// Returns the number of the next event.
    pub const fn next_seq(&self) -> u64 {
        self.from
    }

    /// Waits for the next update; `None` after the end of the conversation.
    ///
    /// # Errors
    /// When the server refuses, or cannot be reached for longer than the client's [patience](crate::Client::with_patience).
    pub async fn next(&mut self) -> Result<Option<TailItem>, ClientError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if self.is_over {
                return Ok(None);
            }
            match &mut self.response {
                None => self.connect().await?,
                Some(response) => {
                    let read = timeout_at(self.quiet_at, response.chunk()).await;
                    self.quiet_at = Instant::now() + SILENCE;
                    match read {
                        Ok(Ok(Some(bytes))) => self.take(&bytes)?,
                        Ok(Ok(None)) => self.lose("the server ended the stream".into()),
                        Ok(Err(error)) => self.lose(in_words(&error)),
                        Err(_) => self.lose(format!("nothing came for {} s", SILENCE.as_secs())),
                    }
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        if let Some(lost) = self.lost {
            sleep_until(lost.again).await;
        }
        if self.opening.is_none() {
            self.opening = Some(Box::pin(self.request().stream()));
        }
        let Some(opening) = &mut self.opening else { return Ok(()) };
        let opened = opening.await;
        self.opening = None;
        match opened {
            Ok(response) => {
                self.frames = self.frames.restarted();
                self.quiet_at = Instant::now() + SILENCE;
                self.response = Some(response);
                if self.lost.take().is_some() {
                    self.ready.extend([TailItem::Connected, TailItem::Missed]);
                }
                Ok(())
            }
            Err(error) if error.is_temporary() => match &mut self.lost {
                Some(lost) if lost.give_up.is_some_and(|at| Instant::now() >= at) => Err(error),
                Some(lost) => {
                    // A server that wants no pause gets some while it is away.
                    lost.again = Instant::now() + retry(&self.frames).max(lost.wait);
                    lost.wait = (lost.wait * 2).min(MAX_RETRY);
                    Ok(())
                }
                None => {
                    self.lose(error.to_string());
                    Ok(())
                }
            },
            Err(error) => Err(error),
        }
    }

    /// The request for what follows.
    fn request(&self) -> Request<'c> {
        let path = ["conversations", self.id.as_str(), "events"];
        let request = Request::new(self.connection, Method::GET, &path);
        let last = self.from.checked_sub(1).map(|last| last.to_string());
        let name = || HeaderName::from_static("last-event-id");
        last.iter().fold(request, |request, last| request.header(name(), last))
    }

    fn lose(&mut self, why: String) {
        self.response = None;
        let now = Instant::now();
        let (again, give_up) = (now + retry(&self.frames), now.checked_add(self.connection.patience));
        self.lost = Some(Lost { again, give_up, wait: WAIT });
        self.ready.push_back(TailItem::Lost(why));
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let mut whole = Vec::new();
        let fed = self.frames.feed(bytes, |frame| whole.push(frame));
        for frame in whole {
            if !self.read(&frame)? {
                return Ok(());
            }
        }
        fed.map_err(|no| self.connection.not_polylogue(format!("the event stream: {}", no.0)))
    }

    /// Takes a frame. Returns whether the next one of this connection counts.
    fn read(&mut self, frame: &Frame) -> Result<bool, ClientError> {
        match frame.event.as_str() {
            stream::ENTRY => return self.event(self.parsed(frame)?),
            stream::DELTA => {
                // One that a newer server writes in another way says nothing here.
                if let Ok(ReplyDelta { chat: at, who, content }) = serde_json::from_str(&frame.data)
                    && let Some(delta) = content.into_delta()
                {
                    self.ready.push_back(TailItem::Delta { chat: at, who, delta });
                }
            }
            stream::STATE => {
                let status = self.parsed(frame)?;
                self.ready.push_back(TailItem::Status(status));
            }
            stream::MISSED => {
                let Missed { .. } = self.parsed(frame)?;
                self.ready.push_back(TailItem::Missed);
            }
            stream::END => {
                let status = self.parsed(frame)?;
                self.ready.push_back(TailItem::End(status));
                (self.response, self.is_over) = (None, true);
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    }

    fn event(&mut self, event: Event) -> Result<bool, ClientError> {
        if event.seq < self.from {
            return Ok(true);
        }
        if event.seq > self.from {
            // It is asked for again from the event that did not come.
            self.gaps += 1;
            if self.gaps > MAX_GAPS {
                return Err(self.connection.not_polylogue(out_of_order(event.seq, self.from)));
            }
            self.lose("an event did not come".into());
            return Ok(false);
        }
        (self.from, self.gaps) = (event.seq + 1, 0);
        self.ready.push_back(TailItem::Event(Box::new(event)));
        Ok(true)
    }

    fn parsed<T: DeserializeOwned>(&self, frame: &Frame) -> Result<T, ClientError> {
        serde_json::from_str(&frame.data)
            .map_err(|error| self.connection.not_polylogue(format!("the frame `{}`: {error}", frame.event)))
    }
}

impl fmt::Debug for Tail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("id", &self.id).field("from", &self.from).finish_non_exhaustive()
    }
}

/// How long to wait until a lost connection is tried again.
fn retry(frames: &Frames) -> Duration {
    frames.retry.unwrap_or(RETRY).min(MAX_RETRY)
}
