//! Who waits for a response: a run for which no client waits any more is stopped after a time. A response that a client has not received
//! whole can be joined, and the log has how far the client has received it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use polylogue_core::{
    Body as EventBody, Event, Instruction, Listing, LogId, LogState, Store as _, StoreError,
};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::app::App;
use crate::attendance::{Begun, Clients};
use crate::conversation::listing;
use crate::problem::Problem;
use crate::runs::{is_held, stop};
use crate::tenants::Tenant;

/// A client that waits for a response. If it goes away before the response has ended, and after a time no other client waits for the
/// conversation, that stops after its step, or waits no longer until it may run: unless someone who waits for no response has continued or
/// steered it since.
pub(crate) struct Waiting {
    app: Arc<App>,
    tenant: Arc<Tenant>,
    id: LogId,
    /// That of the run that it waits for.
    generation: Option<u64>,
    /// Whether the response has ended.
    has_ended: bool,
    /// What it was sent, if it can continue the conversation by that.
    sent: Option<SentText>,
}

/// The text of a response that a client was sent, and sends back as a message of its history.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentText(Arc<Mutex<String>>);

impl SentText {
    /// The client is sent `text`, too.
    pub(crate) fn push(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Waiting {
    pub(crate) fn new(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId) -> Self {
        *app.attendance.waiting().entry(id.clone()).or_insert(0) += 1;
        tenant.runs.attend(id);
        let (app, tenant, generation) = (Arc::clone(app), Arc::clone(tenant), tenant.runs.generation(id));
        Self { app, tenant, id: id.clone(), generation, has_ended: false, sent: None }
    }

    /// Notes in the log what the client was sent by then, if it goes away before the end: by that any process continues the conversation.
    pub(crate) fn notes_disconnect(&mut self) -> SentText {
        self.sent.get_or_insert_default().clone()
    }

    /// The client has the whole response: if the conversation runs, then for others.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let generation = self.generation.filter(|_| !self.has_ended);
        let (is_last, note) = {
            let mut waiting = self.app.attendance.waiting();
            let count = waiting.get_mut(&self.id).map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            let mut note = None;
            if count == 0 {
                waiting.remove(&self.id);
                // Noted before others see that no client waits.
                if let Some(generation) = generation {
                    self.tenant.runs.abandon(&self.id, generation);
                }
                let sent = self.sent.as_ref().filter(|_| !self.has_ended);
                note = sent.map(|sent| Note::of(&self.app, &self.id, sent.text()));
            }
            (count == 0, note)
        };
        if !is_last || self.has_ended {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (app, tenant, id) = (Arc::clone(&self.app), Arc::clone(&self.tenant), self.id.clone());
        if let Some(note) = note {
            runtime.spawn(note.write(Arc::clone(&tenant)));
        }
        if let Some(generation) = generation {
            runtime.spawn(async move { stop_abandoned(&app, &tenant, &id, generation).await });
        }
    }
}

/// Stops the run of this generation, whose client is gone, after a time: unless another client waits then, or someone has continued or
/// steered the conversation, also at another process.
async fn stop_abandoned(app: &App, tenant: &Tenant, id: &LogId, generation: u64) {
    let is_still = || is_still(app, tenant, id, generation);
    let Some(posted) = once_readable(id, || posted_after(tenant, id, 0), is_still).await else { return };
    let last = posted.last().map_or(0, |(number, _)| *number);
    sleep(app.limits.abandoned_time).await;
    let steered = once_readable(id, || is_steered(tenant, id, last), is_still).await;
    if steered == Some(false) && is_still() {
        stop(tenant, id, false).await;
    }
}

/// Whether someone has steered the conversation by more than another title since the message `last` of its inbox.
async fn is_steered(tenant: &Tenant, id: &LogId, last: u64) -> Result<bool, StoreError> {
    let steers = |instruction: &Instruction| {
        !matches!(instruction, Instruction::ClientDisconnected { .. } | Instruction::ChangeTitle { .. })
    };
    let posted = posted_after(tenant, id, last).await?;
    Ok(posted.iter().any(|(_, instruction)| steers(instruction)))
}

/// How long to wait before what cannot be read is read again.
const REREAD: Duration = Duration::from_secs(1);

/// What `read` returns of the conversation `id`, as soon as it can: otherwise one failure of the store would let a run continue to its end
/// that no client waits for. `None` once `is_still` says that the run is over, or that a client waits for it.
async fn once_readable<T, F>(id: &LogId, read: impl Fn() -> F, is_still: impl Fn() -> bool) -> Option<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut is_reported = false;
    loop {
        match read().await {
            Ok(found) => return Some(found),
            Err(_) if !is_still() => return None,
            Err(error) if !is_reported => {
                is_reported = true;
                warn!(conversation = %id, %error, "a run that no client waits for is not stopped until its log can be read");
            }
            Err(_) => {}
        }
        sleep(REREAD).await;
    }
}

/// Stops a run that a restart has continued, after the same time, if it is for clients alone that have waited for its response: their
/// connections have ended with the earlier process, when the log had so many `events`. Not if one of them is back, or someone has continued or
/// steered the conversation since.
pub(crate) async fn stop_left(app: Arc<App>, tenant: Arc<Tenant>, id: LogId, events: u64) {
    let Some(generation) = tenant.runs.generation(&id).filter(|_| tenant.runs.is_awaited(&id)) else {
        return;
    };
    sleep(app.limits.abandoned_time).await;
    let is_left = || is_still(&app, &tenant, &id, generation) && tenant.runs.is_adopted(&id);
    if !is_left() {
        return;
    }
    let read = || tenant.runtime.store().read_range(&id, 0..events);
    let Some(before) = once_readable(&id, read, is_left).await else { return };
    let last = before.iter().filter_map(|event| event.inbox).max().unwrap_or_default();
    let steered = once_readable(&id, || is_steered(&tenant, &id, last), is_left).await;
    if steered == Some(false) && is_left() {
        stop(&tenant, &id, false).await;
    }
}

/// Whether it is the run of this generation that runs, and no client waits for it.
fn is_still(app: &App, tenant: &Tenant, id: &LogId, generation: u64) -> bool {
    tenant.runs.generation(id) == Some(generation) && !app.attendance.waiting().contains_key(id)
}

/// What was posted to the inbox of a conversation after the message `number`.
async fn posted_after(
    tenant: &Tenant,
    id: &LogId,
    number: u64,
) -> Result<Vec<(u64, Instruction)>, StoreError> {
    let posted = tenant.runtime.store().inbox(id, number).await?;
    Ok(posted.into_iter().map(|(number, message)| (number, message.instruction)).collect())
}

/// Whether the client that received the last response disconnected before its end, and no one else has continued or steered the conversation
/// since.
pub(crate) fn has_left(events: &[Event]) -> bool {
    let decides = |event: &Event| match &event.body {
        EventBody::ClientDisconnected { .. } => Some(true),
        // Of chats within turns, these are the team's own.
        EventBody::Opened(_) | EventBody::Reopened { .. } => event.chat.is_root().then_some(false),
        EventBody::Sent(_)
        | EventBody::InputProvided { .. }
        | EventBody::NextSpeaker { .. }
        | EventBody::LimitsChanged { .. }
        | EventBody::OwnLimitsRaised { .. }
        | EventBody::TeamChanged(_)
        | EventBody::Paused
        | EventBody::Resumed
        | EventBody::Cancelled { .. } => Some(false),
        _ => None,
    };
    events.iter().rev().find_map(decides).unwrap_or_default()
}

/// A note for the log that a client has disconnected. What is sent to the conversation waits until it is [written](noted): it comes after it.
struct Note {
    app: Arc<App>,
    id: LogId,
    received: Arc<str>,
}

impl Note {
    fn of(app: &Arc<App>, id: &LogId, received: String) -> Self {
        app.attendance.notes.send_modify(|notes| notes.push(id.clone()));
        Self { app: Arc::clone(app), id: id.clone(), received: received.into() }
    }

    async fn write(self, tenant: Arc<Tenant>) {
        if let Err(problem) = self.write_to(&tenant).await {
            let id = &self.id;
            warn!(conversation = %id, %problem, "what a client has received of a response is known to this process alone");
        }
    }

    /// Of what has come to rest, the log has the whole response.
    async fn write_to(&self, tenant: &Tenant) -> Result<(), Problem> {
        if listing(tenant, &self.id).await?.state() == LogState::Open {
            let received = Arc::clone(&self.received);
            tenant.runtime.steer(&self.id, Instruction::ClientDisconnected { received }).await?;
        }
        Ok(())
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.app.attendance.notes.send_modify(|notes| {
            if let Some(at) = notes.iter().position(|id| *id == self.id) {
                notes.swap_remove(at);
            }
        });
    }
}

/// How long notes are waited for.
const NOTES: Duration = Duration::from_secs(5);

/// Waits until the clients of the conversation `id`, or of all, that have disconnected are noted.
pub(crate) async fn noted(app: &App, id: Option<&LogId>) {
    let is_noted = |notes: &Vec<LogId>| id.map_or(notes.is_empty(), |id| !notes.contains(id));
    // The sender lives as long as `app`.
    let _ = timeout(NOTES, app.attendance.notes.subscribe().wait_for(is_noted)).await;
}

/// Whether the response of a conversation was cut off, if its client has not received all of it: no client receives it, now or at `until`,
/// and what still runs, runs for no one else. `has_left`: whether the log says so of its client. That decides for what another process runs, and
/// for what has been running since an earlier process.
pub(crate) async fn is_cut_off(
    app: &App,
    tenant: &Tenant,
    about: &Listing,
    has_left: bool,
    until: Instant,
) -> bool {
    let (id, runs) = (&about.id, &tenant.runs);
    app.attendance.is_left(id, until).await
        && match about.state() {
            LogState::Done | LogState::Ended | LogState::Waiting | LogState::Paused => true,
            _ if runs.is_running(id) => runs.is_abandoned(id) || (has_left && runs.is_adopted(id)),
            _ => has_left || !is_held(tenant, id).await,
        }
}

/// The client of a request: while it exists, no repeated request without a key joins what the request has begun.
pub(crate) struct Client {
    app: Arc<App>,
    begun: Begun,
    has_key: bool,
    _one_of: Clients,
}

impl Client {
    pub(crate) fn new(app: &Arc<App>, begun: &Begun, has_key: bool, clients: Clients) -> Self {
        Self { app: Arc::clone(app), begun: begun.clone(), has_key, _one_of: clients }
    }

    /// The body of its response.
    pub(crate) fn receives(self, body: Body) -> Body {
        Body::new(Received { body, client: Some(self) })
    }

    /// It has the whole response: what it sends after that is another request, unless it has a key. The streams of a server that stops
    /// end early.
    fn has_all(self) {
        if !self.has_key && !self.app.is_stopping() {
            self.app.attendance.forget(&self.begun);
        }
    }
}

/// A body that knows whether it was read whole.
struct Received {
    body: Body,
    client: Option<Client>,
}

impl hyper::body::Body for Received {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let is_read = frame.is_none() || self.body.is_end_stream();
        if let Some(client) = self.client.take_if(|_| is_read) {
            client.has_all();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_is_read_again_while_the_run_continues() {
        let id = LogId::new("abc").unwrap();
        let lost = || StoreError::NotFound { id: LogId::new("abc").unwrap() };
        let reads = Cell::new(0);
        let read = || {
            reads.set(reads.get() + 1);
            std::future::ready(if reads.get() < 3 { Err(lost()) } else { Ok(reads.get()) })
        };
        assert_eq!(once_readable(&id, read, || true).await, Some(3));
        // A run that has ended is not waited for.
        reads.set(0);
        assert_eq!(once_readable(&id, read, || reads.get() < 2).await, None);
        assert_eq!(reads.get(), 2);
    }
}
