//! Idempotency keys: a request that is repeated with its key has its effect once, also when the server was killed in between, and at any server
//! with the store. The key is in the id of the conversation that the request made, or in the inbox of the one that it changed. The store makes an id
//! once, and takes a message for each key once; what it has of the request tells whether that was the same one. Before a request has any effect,
//! its key is reserved for it, so that another request with the key is refused also if its effect would be in another conversation.

use axum::http::HeaderMap;
use polylogue_core::{Listing, LogId, Store as _};
use polylogue_runtime::steering::InstructionKey;
use polylogue_runtime::stored::{NewLog, made_by};
use tokio::sync::OwnedMutexGuard;

use crate::app::App;
use crate::call::Call;
use crate::conversation::listing;
use crate::problem::Problem;
use crate::request::RequestDigest;
use crate::tenants::Tenant;
use crate::token::Token;

/// The longest key, in bytes.
const LONGEST: usize = 255;

/// The key of a request. While it exists, others of this process with the same key wait.
pub(crate) struct Key {
    digest: RequestDigest,
    /// What the store has of the request.
    request: String,
    _only: OwnedMutexGuard<()>,
}

impl Key {
    /// The key of the request, if it has one. `to` is what the request is sent to.
    pub(crate) async fn of(call: &Call, to: &str) -> Result<Option<Self>, Problem> {
        let token = call.token()?;
        let tenant = call.app.tenant(token)?;
        Self::among((&call.app, &tenant), (token, to), &call.headers, || call.body_digest()).await
    }

    /// The key of a request with these headers and a content of this digest, if it has one.
    ///
    /// # Errors
    /// When another request has the key.
    pub(crate) async fn among(
        (app, tenant): (&App, &Tenant),
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
        let request = scope.chars().take(24).collect::<String>();
        let body = digest().to_hex().chars().take(16).collect();
        let only = app.in_flight.enter(&request).await;
        let digest = RequestDigest { request, body, has_key: true };
        let key = Self { request: digest.to_stored(), digest, _only: only };
        let holder = tenant.runtime.store().reserve_key(&key.inbox_key(), &key.request).await?;
        if holder == key.request { Ok(Some(key)) } else { Err(mismatch()) }
    }

    /// What tells the request from others that chat completions have begun.
    pub(crate) fn digest(&self) -> RequestDigest {
        self.digest.clone()
    }

    /// The conversation that the request makes.
    pub(crate) fn new_log(&self) -> Result<NewLog, Problem> {
        let id = LogId::new(&format!("k{}", self.digest.request))
            .map_err(|error| Problem::internal(error.to_string()))?;
        Ok(NewLog { id, request: Some(self.request.clone()) })
    }

    /// The conversation that an earlier request with this key has made.
    pub(crate) async fn made(&self, tenant: &Tenant) -> Result<Option<Listing>, Problem> {
        let found = match listing(tenant, &self.new_log()?.id).await {
            Err(problem) if problem.is_not_found() => return Ok(None),
            found => found?,
        };
        let meta = tenant.runtime.store().meta(&found.id).await?;
        // The document of a fork can have no place for it.
        match made_by(&meta).is_none_or(|request| request == self.request) {
            true => Ok(Some(found)),
            false => Err(mismatch()),
        }
    }

    /// Whether an earlier request with this key has made the conversation `id`, whose id does not tell.
    pub(crate) async fn has_made(&self, tenant: &Tenant, id: &LogId) -> Result<bool, Problem> {
        let meta = tenant.runtime.store().meta(id).await?;
        match made_by(&meta) {
            Some(request) if request == self.request => Ok(true),
            Some(request) if request.starts_with(&format!("{}-", self.digest.request)) => Err(mismatch()),
            _ => Ok(false),
        }
    }

    /// The key of the message in the inbox of a conversation.
    pub(crate) fn inbox_key(&self) -> String {
        format!("http-{}", self.digest.request)
    }

    /// The key of the message in the inbox of a conversation, with the request.
    pub(crate) fn of_instruction(&self) -> InstructionKey {
        InstructionKey { request: Some(self.request.as_str().into()), ..self.inbox_key().as_str().into() }
    }

    /// Whether an earlier request with this key has put a message into the inbox of `id`.
    pub(crate) async fn was_posted(&self, tenant: &Tenant, id: &LogId) -> Result<bool, Problem> {
        Ok(self.posted(tenant, id).await?.is_some())
    }

    /// The conversation into whose inbox an earlier request with this key has put a message.
    pub(crate) async fn posted_to(&self, tenant: &Tenant) -> Result<Option<Listing>, Problem> {
        let Some(id) = tenant.runtime.store().posted_with(&self.inbox_key()).await? else { return Ok(None) };
        match listing(tenant, &id).await {
            // It was removed meanwhile.
            Err(problem) if problem.is_not_found() => Ok(None),
            found => found.map(Some),
        }
    }

    /// The number of the message that an earlier request with this key has put into the inbox of `id`.
    async fn posted(&self, tenant: &Tenant, id: &LogId) -> Result<Option<u64>, Problem> {
        let key = self.inbox_key();
        let posted = tenant.runtime.store().inbox(id, 0).await?;
        match posted.iter().find(|(_, message)| *message.key == *key) {
            None => Ok(None),
            Some((number, message)) if message.request.as_deref() == Some(self.request.as_str()) => {
                Ok(Some(*number))
            }
            Some(_) => Err(mismatch()),
        }
    }

    /// The event that carries out what an earlier request with this key has put into the inbox of `id`, or the next one, if none does
    /// yet.
    pub(crate) async fn carried_out(&self, tenant: &Tenant, id: &LogId) -> Result<Option<u64>, Problem> {
        match self.posted(tenant, id).await? {
            Some(number) => Ok(Some(carried_out(tenant, id, number).await?)),
            None => Ok(None),
        }
    }
}

/// The event that carries out the message `number` in the inbox of `id`, or the next one, if none does yet.
pub(crate) async fn carried_out(tenant: &Tenant, id: &LogId, number: u64) -> Result<u64, Problem> {
    let events = tenant.runtime.store().read(id, 0).await?;
    let carries = events.iter().find(|event| event.inbox == Some(number));
    Ok(carries.map_or(events.len() as u64, |event| event.seq))
}

/// The same key came with another body.
pub(crate) fn mismatch() -> Problem {
    Problem::other_body("an earlier request with this `Idempotency-Key` had another body")
        .hint("use a new key for each request that is not a repetition")
}
