//! What all requests share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::addresses::Addresses;
use crate::attendance::Attendance;
use crate::chat_options::ChatOptions;
use crate::in_flight::InFlight;
use crate::issuer::Issuer;
use crate::limits::ServerLimits;
use crate::metrics::Metrics;
use crate::names::Names;
use crate::problem::Problem;
use crate::promised::Promised;
use crate::rate::Rates;
use crate::readiness::Readiness;
use crate::request::Peer;
use crate::slots::{Slot, Slots};
use crate::source::TeamSource;
use crate::spending::Spending;
use crate::state_key::StateKey;
use crate::tenants::{Tenant, Tenants};
use crate::token::Token;
use crate::token_file::TokenFile;
use crate::transport::Transport;

/// What all requests share.
pub(crate) struct App {
    pub(crate) source: Arc<dyn TeamSource>,
    pub(crate) tenants: Tenants,
    pub(crate) tokens: TokenFile,
    /// Whose tokens are accepted besides.
    pub(crate) issuer: Option<Arc<Issuer>>,
    /// Counts changes of the file of the tokens, for streams.
    pub(crate) token_changes: watch::Sender<u64>,
    pub(crate) names: Names,
    pub(crate) limits: ServerLimits,
    /// How chat completions are answered.
    pub(crate) chat: ChatOptions,
    /// Requests of each token.
    pub(crate) requests: Rates<String>,
    /// Requests of each client of a trusted proxy that are under way.
    pub(crate) proxied: Addresses,
    /// Wrong tokens from each address.
    pub(crate) failed_logins: Rates<Peer>,
    /// The document of `/openapi.json`.
    pub(crate) openapi: Value,
    /// Event streams of each token.
    streams: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Requests of which the next one with the same key waits.
    pub(crate) in_flight: InFlight,
    /// How many conversations run.
    pub(crate) slots: Slots,
    /// What tokens have spent today.
    pub(crate) spending: Spending,
    /// Held while a team file is changed.
    pub(crate) edits: tokio::sync::Mutex<()>,
    /// What it counts of its requests.
    pub(crate) metrics: Metrics,
    /// Which are to run also after a restart.
    pub(crate) promised: Promised,
    /// Clients that wait for chat completions.
    pub(crate) attendance: Attendance,
    /// Sessions of MCP.
    pub(crate) mcp: Box<dyn Transport>,
    /// Authenticates what clients send back.
    pub(crate) state_key: StateKey,
    /// Whether the store can be written.
    pub(crate) readiness: Readiness,
    /// Whether what an earlier process was running runs again.
    pub(crate) resumed: watch::Sender<bool>,
    /// Whether the server is stopping.
    pub(crate) stopping: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        source: Arc<dyn TeamSource>,
        tenants: Tenants,
        (tokens, issuer): (TokenFile, Option<Issuer>),
        names: Names,
        (limits, chat): (ServerLimits, ChatOptions),
        openapi: Value,
        mcp: Box<dyn Transport>,
    ) -> Self {
        let second = Duration::from_secs(1) / limits.requests_per_second.max(1);
        let minute = Duration::from_secs(60) / limits.failed_logins_per_minute.max(1);
        let readiness = Readiness::new(limits.store_check);
        Self {
            source,
            slots: Slots::new(&limits),
            spending: Spending::at(tenants.spending_file(), tenants.are_shared()),
            edits: tokio::sync::Mutex::default(),
            metrics: Metrics::new(),
            promised: Promised::at(tenants.running_folder()),
            attendance: Attendance::at(tenants.requests_file()),
            mcp,
            state_key: StateKey::at(tenants.state_key_file()),
            tenants,
            tokens,
            issuer: issuer.map(Arc::new),
            token_changes: watch::Sender::new(0),
            names,
            requests: Rates::new(limits.request_burst, second),
            proxied: Addresses::new(limits.connections_per_address),
            failed_logins: Rates::new(limits.failed_logins_per_minute, minute),
            limits,
            chat,
            openapi,
            streams: Mutex::default(),
            in_flight: InFlight::default(),
            readiness,
            resumed: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
        }
    }

    /// The conversations of the token's tenant.
    pub(crate) fn tenant(&self, token: &Token) -> Result<Arc<Tenant>, Problem> {
        Ok(self.tenants.get(&token.tenant)?)
    }

    /// The conversations of the token's tenant, whose store is opened on a thread that can wait for its disk. Handlers find it open.
    pub(crate) async fn open_tenant(self: &Arc<Self>, token: &Arc<Token>) -> Result<Arc<Tenant>, Problem> {
        if let Some(tenant) = self.tenants.known(&token.tenant) {
            return Ok(tenant);
        }
        // The first request opens it. Those that come meanwhile take no thread.
        let _only = self.in_flight.enter(&format!("open\0{}", token.tenant)).await;
        let (app, token) = (Arc::clone(self), Arc::clone(token));
        let opened = spawn_blocking(move || app.tenant(&token)).await;
        opened.map_err(|_| Problem::internal("a mistake in the server ended this request"))?
    }

    /// The files of the teams that the token does not see: a text that it sends can include none of them.
    pub(crate) fn hidden_files(&self, token: &Token) -> Vec<PathBuf> {
        let hidden = self.source.ids().into_iter().filter(|id| !token.sees(id));
        hidden.filter_map(|id| self.source.file(&id)).collect()
    }

    /// The right to run one more conversation for the token, which pays for it.
    ///
    /// # Errors
    /// When its budget of today is spent, or as many conversations wait as can wait.
    pub(crate) async fn join(&self, token: &Token) -> Result<Slot, Problem> {
        self.slots.place(&token.id, self.spending.admit(token, &self.tenants).await?)
    }

    /// A slot for a conversation that runs already, or was promised to run: it waits for a place, however many others do.
    pub(crate) fn wait(&self, token: &Token) -> Slot {
        self.slots.wait(&token.id, self.spending.payer(token))
    }

    /// One more event stream of the token.
    pub(crate) fn stream_of(&self, token: &Token) -> Result<OwnedSemaphorePermit, Problem> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let most = self.limits.streams_per_token;
        streams.retain(|_, open| open.available_permits() < most);
        let open = streams.entry(token.id.clone()).or_insert_with(|| Arc::new(Semaphore::new(most)));
        Arc::clone(open).try_acquire_owned().map_err(|_| {
            Problem::too_many(format!("this token has {most} event streams open"))
                .hint("close one of them")
                .retry_after(Duration::from_secs(1))
        })
    }

    /// How many event streams are open.
    pub(crate) fn open_streams(&self) -> usize {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams
            .values()
            .map(|open| self.limits.streams_per_token.saturating_sub(open.available_permits()))
            .sum()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
