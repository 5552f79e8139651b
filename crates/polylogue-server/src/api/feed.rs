//! `/api/v1/feed`: one event stream for each tab of a browser, which has only few connections. It has the changes of the list, and the
//! conversation that the tab shows.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{Stream, stream};
use polylogue_core::{ListQuery, Listing, LogId, Timestamp};
use polylogue_wire::Scope;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::app::App;
use crate::call::{Call, Reply};
use crate::conversation::{describe, find, is_seen};
use crate::problem::Problem;
use crate::projection::{Frame, Native, RETRY};
use crate::revocation::token_ended;
use crate::route::Route;
use crate::tail::{Follow, event_stream, texts};
use crate::tenants::Tenant;
use crate::token::Token;

/// How many of the newest conversations are followed.
const NEWEST: usize = 100;

/// How often it is looked whether another process has changed one.
const POLL: Duration = Duration::from_secs(1);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/feed", Scope::Read, feed)
            .about("A stream of the changes of the list and, on request, of one conversation")
            .query(&["follow", "from"]),
    ]
}

async fn feed(call: Call) -> Reply {
    let token = Arc::clone(call.token()?);
    let tenant = call.app.tenant(&token)?;
    let from = call.number("from")?.unwrap_or(0);
    let followed = match call.query("follow") {
        Some(id) => Some(find(&tenant, &token, id).await?.id),
        None => None,
    };
    let permit = call.app.stream_of(&token)?;
    let list = changes(List::new(Arc::clone(&call.app), Arc::clone(&tenant), Arc::clone(&token)));
    match followed {
        None => event_stream(list, permit),
        Some(id) => {
            let native = Native::of(&token);
            let follow = Follow { app: call.app, tenant, token, id, from, ends: false, begins: None };
            event_stream(stream::select(Box::pin(list), Box::pin(texts(follow, native))), permit)
        }
    }
}

fn changes(list: List) -> impl Stream<Item = String> + Send + 'static {
    stream::unfold(list, |mut list| async {
        let text = list.next().await?;
        Some((text, list))
    })
}

/// The newest conversations, as they were last sent.
struct List {
    app: Arc<App>,
    tenant: Arc<Tenant>,
    token: Arc<Token>,
    /// Each with the time of its creation.
    sent: HashMap<LogId, (Timestamp, Version)>,
    ready: VecDeque<String>,
    changes: watch::Receiver<()>,
    stopping: watch::Receiver<bool>,
    /// Resolves when the token is no longer valid.
    token_ended: BoxFuture<'static, ()>,
    poll_at: Instant,
    comment_at: Instant,
    has_ended: bool,
    /// Whether to read the list before waiting.
    reads: bool,
}

/// What tells whether a conversation has changed: the number of its events, and whether this process runs it.
type Version = (u64, bool);

impl List {
    fn new(app: Arc<App>, tenant: Arc<Tenant>, token: Arc<Token>) -> Self {
        let (changes, stopping, now) = (tenant.runs.changes(), app.stopping.subscribe(), Instant::now());
        Self {
            changes,
            stopping,
            token_ended: Box::pin(token_ended(Arc::clone(&app), Arc::clone(&token))),
            poll_at: now + POLL,
            comment_at: now + app.limits.comment_every,
            app,
            tenant,
            token,
            sent: HashMap::new(),
            ready: VecDeque::from([RETRY.to_owned()]),
            has_ended: false,
            reads: true,
        }
    }

    /// The next text that is sent; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(text) = self.ready.pop_front() {
                self.comment_at = Instant::now() + self.app.limits.comment_every;
                return Some(text);
            }
            if self.has_ended {
                return None;
            }
            match std::mem::take(&mut self.reads) {
                true => self.has_ended = self.read().await.is_err(),
                false => self.wait().await,
            }
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            biased;
            _ = self.stopping.wait_for(|stopping| *stopping) => {
                self.ready.push_back(RETRY.into());
                self.has_ended = true;
            }
            () = &mut self.token_ended => self.has_ended = true,
            _ = self.changes.changed() => self.reads = true,
            () = sleep_until(self.poll_at) => self.reads = true,
            () = sleep_until(self.comment_at) => self.ready.push_back(":\n\n".into()),
        }
    }

    /// Reads the list, and makes ready what has changed.
    async fn read(&mut self) -> Result<(), Problem> {
        self.changes.mark_unchanged();
        self.poll_at = Instant::now() + POLL;
        let query = ListQuery { limit: Some(NEWEST), ..ListQuery::default() };
        let page = self.tenant.runtime.list(&query).await?.logs;
        // Of a full page. A token may see fewer of it.
        let oldest = page.last().filter(|_| page.len() >= NEWEST).map(|listing| listing.created);
        let mut seen = Vec::with_capacity(page.len());
        for listing in page {
            if is_seen(&self.tenant, &self.token, &listing).await {
                seen.push(listing);
            }
        }
        // Oldest first, so that a client that puts each one on top has the newest there.
        for listing in seen.iter().rev() {
            let version = (listing.summary.events, self.tenant.runs.is_running(&listing.id));
            if self.sent.get(&listing.id).is_some_and(|(_, sent)| *sent == version) {
                continue;
            }
            // It may have been removed meanwhile.
            if let Ok(document) = describe(&self.tenant, listing).await {
                self.ready.push_back(Frame::json("conversation", &document).text());
                self.sent.insert(listing.id.clone(), (listing.created, version));
            }
        }
        self.drop_removed(&seen, oldest);
        Ok(())
    }

    /// Says which have been removed. One that newer ones have pushed out of the page, to before its `oldest`, is still there, and not
    /// followed any more.
    fn drop_removed(&mut self, seen: &[Listing], oldest: Option<Timestamp>) {
        let Self { sent, ready, .. } = self;
        sent.retain(|id, (created, _)| {
            let is_seen = seen.iter().any(|listing| listing.id == *id);
            if !is_seen && oldest.is_none_or(|oldest| *created > oldest) {
                ready.push_back(Frame::json("removed", &json!({"id": id})).text());
            }
            is_seen
        });
    }
}
