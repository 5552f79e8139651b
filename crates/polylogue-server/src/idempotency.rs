//! Idempotency keys: a request that is repeated with its key has its effect once, also when the server was killed in between. No table keeps
//! them: the key is in the id of the conversation that the request made, or in the inbox of the one that it changed.

use axum::http::HeaderMap;
use polylogue_core::{ListQuery, Listing, LogId, Store as _};
use tokio::sync::OwnedMutexGuard;

use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::request::RequestDigest;
use crate::tenants::Tenant;
use crate::token::Token;

/// The longest key, in bytes.
const LONGEST: usize = 255;

/// The key of a request. While it exists, others with the same key wait.
pub(crate) struct Key {
    /// Digest of the key, its token and what it is sent to.
    scope: String,
    /// Digest of the body.
    body: String,
    _only: OwnedMutexGuard<()>,
}

impl Key {
    /// The key of the request, if it has one. `to` is what the request is sent to.
    pub(crate) async fn of(call: &Call, to: &str) -> Result<Option<Self>, Problem> {
        Self::among(&call.app, (call.token()?, to), &call.headers, || call.body_digest()).await
    }

    /// The same of a request with these headers and a content of this digest.
    pub(crate) async fn among(
        app: &App,
        (token, to): (&Token, &str),
        headers: &HeaderMap,
        digest: impl FnOnce() -> blake3::Hash,
    ) -> Result<Option<Self>, Problem> {
        let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
        let key = key.to_str().ok().filter(|key| (1..=LONGEST).contains(&key.len()));
        let key = key.ok_or_else(|| {
            Problem::bad_request(format!("`Idempotency-Key` must be 1 to {LONGEST} printable characters"))
        })?;
        let scope = blake3::hash(format!("{}\0{to}\0{key}", token.id).as_bytes()).to_hex();
        let scope = scope.chars().take(24).collect::<String>();
        let body = digest().to_hex().chars().take(16).collect();
        let only = app.in_flight.enter(&scope).await;
        Ok(Some(Self { scope, body, _only: only }))
    }

    /// What tells the request from others that chat completions have begun.
    pub(crate) fn digest(&self) -> RequestDigest {
        RequestDigest { request: self.scope.clone(), body: self.body.clone(), has_key: true }
    }

    /// The id of the conversation that the request makes.
    pub(crate) fn log_id(&self) -> Result<LogId, Problem> {
        LogId::new(&format!("{}{}", self.log_prefix(), self.body))
            .map_err(|error| Problem::internal(error.to_string()))
    }

    fn log_prefix(&self) -> String {
        format!("k{}-", self.scope)
    }

    /// The conversation that an earlier request with this key has made.
    pub(crate) async fn made(&self, tenant: &Tenant) -> Result<Option<Listing>, Problem> {
        let query = ListQuery { id: Some(self.log_prefix()), ..ListQuery::default() };
        let Some(listing) = tenant.runtime.list(&query).await?.logs.into_iter().next() else {
            return Ok(None);
        };
        if listing.id == self.log_id()? { Ok(Some(listing)) } else { Err(mismatch()) }
    }

    /// The key of the message in the inbox of a conversation.
    pub(crate) fn inbox_key(&self) -> String {
        format!("http-{}-{}", self.scope, self.body)
    }

    /// Whether an earlier request with this key has put a message into the inbox of `id`.
    pub(crate) async fn was_posted(&self, tenant: &Tenant, id: &LogId) -> Result<bool, Problem> {
        Ok(self.posted(tenant, id).await?.is_some())
    }

    /// The number of the message that an earlier request with this key has put into the inbox of `id`.
    async fn posted(&self, tenant: &Tenant, id: &LogId) -> Result<Option<u64>, Problem> {
        let prefix = format!("http-{}-", self.scope);
        let posted = tenant.runtime.store().inbox(id, 0).await?;
        let earlier = posted.iter().find(|(_, message)| message.key.starts_with(&prefix));
        match earlier {
            None => Ok(None),
            Some((number, message)) if *message.key == *self.inbox_key() => Ok(Some(*number)),
            Some(_) => Err(mismatch()),
        }
    }

    /// The event that carries out what an earlier request with this key has put into the inbox of `id`, or the next one, if none does
    /// yet.
    pub(crate) async fn carried_out(&self, tenant: &Tenant, id: &LogId) -> Result<Option<u64>, Problem> {
        let Some(number) = self.posted(tenant, id).await? else { return Ok(None) };
        let events = tenant.runtime.store().read(id, 0).await?;
        let carries = events.iter().find(|event| event.inbox == Some(number));
        Ok(Some(carries.map_or(events.len() as u64, |event| event.seq)))
    }
}

/// The same key came with another body.
pub(crate) fn mismatch() -> Problem {
    Problem::other_body("an earlier request with this `Idempotency-Key` had another body")
        .hint("use a new key for each request that is not a repetition")
}
