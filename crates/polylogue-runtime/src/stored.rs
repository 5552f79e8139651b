//! What is stored with a conversation so that it can be run again, and ids of new ones.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use polylogue::Assistant;
use polylogue_core::{
    AnyModel, AnyStore, Body, Capabilities, LimitOverrides, LogId, Meta, RecoveredEvents, RunBound,
    Store as _, TeamChanged, Timestamp,
};
use polylogue_mcp::{Catalog, ToolDescription};
use polylogue_models::Script;
use polylogue_team::{Team, TeamBound};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, RequestedPermission, Result};

/// Seals the [content](StoredTeam::content) of a team that is stored with a conversation, so that a store from elsewhere
/// allows nothing. `None` if it needs no seal, or there is no key.
pub type Sealer = Arc<dyn Fn(&StoredTeam) -> Option<String> + Send + Sync>;

/// What is stored with a conversation so that it can be run again when its team file has changed or is gone.
#[derive(Serialize, Deserialize)]
pub struct StoredTeam {
    /// The team as it was loaded, with its variables filled in.
    pub team: Team,
    /// Whether its script spoke.
    pub offline: bool,
    /// What its models support, where the caller said so: a turn continues in the way it was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Identifies the content of the team file and of what it includes.
    #[serde(default)]
    pub digest: String,
    /// What it was allowed of what it asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<RequestedPermission>,
    /// The user's own document of MCP servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<PathBuf>,
    /// The user's own folder in which its agents work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// What models were told of the tools of MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_tools: Vec<ToolDescription>,
    /// The limits that it began with, over those of the team.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub limits: LimitOverrides,
    /// Whether the conversation is a copy from elsewhere, which can only be read: nothing proves that its log was made by this team.
    #[serde(default, skip_serializing_if = "is_false")]
    pub imported: bool,
    /// What it takes at most, as computed before its first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<StoredBound>,
    /// Shows that this user allowed it: a store of another user allows nothing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// What a conversation takes at most, as it was computed before its first call and is enforced since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBound {
    /// The bound, with all retries.
    #[serde(flatten)]
    pub most: RunBound,
    /// The date of its prices, as `YYYY-MM-DD`.
    pub price_date: String,
    /// The settings on which it rests, as sentences.
    pub rests_on: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl From<TeamBound> for StoredBound {
    fn from(bound: TeamBound) -> Self {
        Self { most: bound.to_enforce(), price_date: bound.price_date, rests_on: bound.rests_on }
    }
}

impl StoredTeam {
    /// The team of the conversation `id`: the one with which it continued last.
    ///
    /// # Errors
    /// When there is no such conversation, or its own program began it.
    pub async fn of(store: &AnyStore, id: &LogId) -> Result<Self> {
        let meta = store.meta(id).await?;
        if meta.team.is_null() {
            return Err(Error::NoTeam { id: id.clone() });
        }
        // Events from the first damaged one on say nothing about the team.
        let RecoveredEvents { mut events, damage } = store.read_intact(id).await?;
        let intact = damage.map(|damage| usize::try_from(damage.intact()).unwrap_or(usize::MAX));
        events.truncate(intact.unwrap_or(usize::MAX));
        let changed = events.into_iter().rev().find_map(|event| match event.body {
            Body::TeamChanged(TeamChanged { team, .. }) if !team.is_null() => Some(team),
            _ => None,
        });
        serde_json::from_value(changed.unwrap_or(meta.team))
            .map_err(|error| Error::BadTeam { id: id.clone(), why: error.to_string() })
    }

    /// The same, sealed.
    pub(crate) fn sealed(self, sealer: Option<&Sealer>) -> Self {
        let seal = sealer.and_then(|seal| seal(&self));
        Self { seal, ..self }
    }

    /// The metadata of a new conversation.
    pub(crate) fn meta(&self, title: String) -> Result<Meta> {
        Ok(Meta { title, created: now(), team: self.value()?, parent: None })
    }

    /// It as JSON.
    pub(crate) fn value(&self) -> Result<Value> {
        let team = serde_json::to_value(self);
        Ok(team.map_err(|error| polylogue_core::Error::Bug(format!("the team cannot be stored: {error}")))?)
    }

    /// What the seal is of.
    #[must_use]
    pub fn content(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(&(&self.team, &self.digest, &self.allowed, &self.mcp, &self.dir)).ok()
    }

    /// Identifies the stored team itself, for one without a valid seal.
    #[must_use]
    pub fn own_digest(&self) -> String {
        let team = serde_json::to_vec(&self.team).unwrap_or_default();
        format!("kept-{}", blake3::hash(&team).to_hex())
    }

    /// The agents that speak by models, to be looked at, with the tools that they had.
    ///
    /// # Errors
    /// When the team cannot be built.
    pub fn assistants(&self) -> Result<Vec<Assistant>> {
        let silent = |_: &str| Ok(AnyModel::new(Script::default().model("none")));
        Ok(self.team.assistants_with(&silent, Catalog::of_described(self.remote_tools.clone()))?)
    }
}

/// Whether the conversation with this `meta` is a copy from elsewhere.
#[must_use]
pub fn is_imported(meta: &Meta) -> bool {
    meta.team.get("imported").is_some_and(|imported| *imported == true)
}

/// The limits that the conversation with this `meta` began with, over those of its team.
#[must_use]
pub fn limits_of(meta: &Meta) -> LimitOverrides {
    let limits = meta.team.get("limits").cloned();
    limits.and_then(|limits| serde_json::from_value(limits).ok()).unwrap_or_default()
}

/// What the conversation with this `meta` takes at most; `None` if that is unknown, or if its team is not the one with this
/// `digest` any more.
pub(crate) fn bound_of(meta: &Meta, digest: &str) -> Option<RunBound> {
    let is_same = meta.team.get("digest").and_then(|of| of.as_str()) == Some(digest);
    let bound = meta.team.get("bound").filter(|_| is_same)?;
    serde_json::from_value::<StoredBound>(bound.clone()).ok().map(|bound| bound.most)
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// An id that is short and easy to paste: six of Crockford's 32 digits, which leave out letters that look like others.
#[must_use]
pub fn fresh_id() -> LogId {
    use std::hash::{BuildHasher, Hasher, RandomState};
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    loop {
        // The standard library's hasher is seeded by the system.
        let random = RandomState::new().build_hasher().finish();
        let digit = |at: u32| DIGITS.get((random >> (5 * at)) as usize % 32).copied().unwrap_or(b'0');
        let id: String = (0..6).map(|at| char::from(digit(at))).collect();
        // Every such text is an id.
        if let Ok(id) = LogId::new(&id) {
            return id;
        }
    }
}
