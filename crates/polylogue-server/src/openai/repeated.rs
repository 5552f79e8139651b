//! Requests that are repeated at another server than the first one: the store has what that has begun, with what identifies the request.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{InboxMessage, Instruction, ListQuery, Listing, Store as _, Timestamp};
use polylogue_runtime::steering::InstructionKey;
use polylogue_runtime::stored::made_by;
use tokio::time::{Instant, sleep};

use super::beginning::{Request, Started};
use super::history::{self, NEWEST, began_with, is_of_team, is_possible};
use super::request::NamedChat;
use crate::attendance::{Begun, JOINS, LEAVES};
use crate::conversation::{find, listing};
use crate::idempotency::{Key, carried_out};
use crate::problem::Problem;
use crate::request::RequestDigest;
use crate::runs::is_held;
use crate::steered::other_node;
use crate::token_file::now_ms;

/// How often it is looked again while another process may note that a client has left.
const LOOK: Duration = Duration::from_millis(100);

/// What the store has of earlier requests like one.
enum Found {
    Nothing,
    /// One whose client may have left, which its server has not noted yet.
    Attended,
    Lost(Begun),
}

impl Request {
    /// What an earlier request with the same key has begun, or an equal one that is repeated because its client has left. Which process has
    /// begun it does not matter.
    pub(super) async fn begun_elsewhere(
        &self,
        digest: &RequestDigest,
        key: Option<&Key>,
    ) -> Result<Option<Begun>, Problem> {
        if key.is_none() && !self.is_retry() {
            return Ok(None);
        }
        let until = Instant::now() + LEAVES;
        loop {
            match self.look(digest, key).await? {
                Found::Lost(begun) => return Ok(Some(begun)),
                Found::Attended if Instant::now() < until => sleep(LOOK).await,
                Found::Attended | Found::Nothing => return Ok(None),
            }
        }
    }

    async fn look(&self, digest: &RequestDigest, key: Option<&Key>) -> Result<Found, Problem> {
        let (tenant, mut found) = (&self.tenant, Found::Nothing);
        for candidate in self.candidates(key).await? {
            let id = &candidate.id;
            let Some(begun) = self.begun_in(&candidate, digest, key).await? else { continue };
            if digest.has_key || history::has_left(tenant, id).await? {
                return Ok(Found::Lost(begun));
            }
            // What this process runs, it knows all of.
            if !tenant.runs.is_running(id) && is_held(tenant, id).await {
                found = Found::Attended;
            }
        }
        Ok(found)
    }

    /// The conversations in which the request can have begun something: with a key, the one with a message that has the key, wherever else
    /// the history belongs, and the one that the request names; otherwise that, or those with the history.
    async fn candidates(&self, key: Option<&Key>) -> Result<Vec<Listing>, Problem> {
        let Self { token, tenant, chat, .. } = self;
        let mut found = Vec::new();
        if let Some(key) = key {
            found.extend(key.posted_to(tenant).await?);
        }
        let named = match &chat.conversation {
            None => None,
            Some(NamedChat::Conversation(id)) => Some(id.clone()),
            Some(NamedChat::OfClient(chat_id)) => Some(self.log_of_chat(chat_id)?.to_string()),
        };
        if let Some(id) = &named {
            match find(tenant, token, id).await {
                Err(problem) if problem.is_not_found() => {}
                named => found.push(named?),
            }
        }
        match key.is_some() || named.is_some() {
            true => Ok(found),
            false => self.of_history().await,
        }
    }

    /// The newest conversations that the request can continue, or have begun.
    async fn of_history(&self) -> Result<Vec<Listing>, Problem> {
        let Self { tenant, chat, .. } = self;
        let name = tenant.name_of_team(&chat.model).unwrap_or_default();
        let query = ListQuery { team: Some(name), limit: Some(NEWEST), ..ListQuery::default() };
        let [joins, _] = JOINS.map(|joins| u64::try_from(joins.as_millis()).unwrap_or(u64::MAX));
        let since = Timestamp(now_ms().saturating_sub(joins));
        let mut possible = Vec::new();
        for listing in tenant.runtime.list(&query).await?.logs {
            if listing.summary.last < since {
                continue;
            }
            let has_begun = began_with(&listing, &chat.messages);
            if is_possible(tenant, &listing, chat).await?
                || has_begun && is_of_team(tenant, &listing, chat).await?
            {
                possible.push(listing);
            }
        }
        Ok(possible)
    }

    /// What an equal request has begun in this conversation.
    async fn begun_in(
        &self,
        of: &Listing,
        digest: &RequestDigest,
        key: Option<&Key>,
    ) -> Result<Option<Begun>, Problem> {
        let (tenant, id, request) = (&self.tenant, of.id.clone(), digest.to_stored());
        if let Some(key) = key {
            // Refused if it was used for something else here.
            key.was_posted(tenant, &id).await?;
        }
        let is_equal = |(_, message): &&(u64, InboxMessage)| message.request.as_deref() == Some(&*request);
        let posted = tenant.runtime.store().inbox(&id, 0).await?;
        if let Some((number, message)) = posted.iter().rev().find(is_equal) {
            let from = carried_out(tenant, &id, *number).await?;
            return Ok(Some(Begun { id, from, message: Some(message.key.to_string()) }));
        }
        // A fork is made before the message is sent into it.
        let meta = tenant.runtime.store().meta(&id).await?;
        let has_made = of.parent.is_none() && made_by(&meta) == Some(&*request);
        Ok(has_made.then_some(Begun { id, from: 0, message: None }))
    }

    /// Joins what a request has begun at another server, which stops what it runs for a client that has left, unless someone continues it.
    pub(super) async fn join_elsewhere(&self, begun: Begun, has_key: bool) -> Result<Started, Problem> {
        let (tenant, id) = (&self.tenant, &begun.id);
        self.continues(&begun).await?;
        if other_node(tenant, id).await?.is_some() && history::has_left(tenant, id).await? {
            let about = listing(tenant, id).await?;
            if !about.summary.is_paused {
                tenant.runtime.post_once(&about, Instruction::Resume, InstructionKey::fresh()).await?;
            }
        }
        Ok(self.started((begun, None), has_key, Arc::default()))
    }
}
