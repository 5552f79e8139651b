//! Who waits for a response: a run for which no client waits any more is stopped after a time. A response that a client has not received
//! whole can be joined.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use polylogue_core::{Listing, LogId, LogState};
use tokio::time::{Instant, sleep};

use crate::app::App;
use crate::attendance::{Begun, Clients};
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
}

impl Waiting {
    pub(crate) fn new(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId) -> Self {
        *app.attendance.waiting().entry(id.clone()).or_insert(0) += 1;
        tenant.runs.attend(id);
        let (app, tenant, generation) = (Arc::clone(app), Arc::clone(tenant), tenant.runs.generation(id));
        Self { app, tenant, id: id.clone(), generation, has_ended: false }
    }

    /// The client has the whole response: if the conversation runs, then for others.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let generation = self.generation.filter(|_| !self.has_ended);
        let is_last = {
            let mut waiting = self.app.attendance.waiting();
            let count = waiting.get_mut(&self.id).map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            if count == 0 {
                waiting.remove(&self.id);
                // Noted before others see that no client waits.
                if let Some(generation) = generation {
                    self.tenant.runs.abandon(&self.id, generation);
                }
            }
            count == 0
        };
        if !is_last || generation.is_none() {
            return;
        }
        let (app, tenant, id) = (Arc::clone(&self.app), Arc::clone(&self.tenant), self.id.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                sleep(app.limits.abandoned_time).await;
                let is_abandoned = !app.attendance.waiting().contains_key(&id);
                if is_abandoned && tenant.runs.generation(&id) == generation {
                    stop(&tenant, &id, false).await;
                }
            });
        }
    }
}

/// Whether the response of a conversation was cut off, if its client has not received all of it: no client receives it, now or at `until`,
/// and what still runs, runs for no one else. What another process runs may have its client there.
pub(crate) async fn is_cut_off(app: &App, tenant: &Tenant, about: &Listing, until: Instant) -> bool {
    let (id, runs) = (&about.id, &tenant.runs);
    app.attendance.is_left(id, until).await
        && match about.state() {
            LogState::Done | LogState::Ended | LogState::Waiting | LogState::Paused => true,
            _ if runs.is_running(id) => runs.is_abandoned(id),
            _ => !is_held(tenant, id).await,
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
