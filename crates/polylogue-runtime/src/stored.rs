//! What is stored with a conversation so that it can be run again, and ids of new ones.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use polylogue::Assistant;
use polylogue::runs::batch::BatchStart;
use polylogue_core::{
    Allowance, AllowanceOwner, AnyModel, AnyStore, Body, BoundSummary, Capabilities, Event, LimitOverrides,
    Limits, Log, LogId, Meta, Name, OnLimit, Path, Price, RecoveredEvents, RunBound, Store as _, StoreError,
    TeamChanged, Timestamp,
};
use polylogue_mcp::{Catalog, ToolDescription};
use polylogue_models::Script;
use polylogue_team::{Team, TeamBound};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::new_log::without_request;
pub use crate::new_log::{NewLog, made_by};
use crate::{Error, RequestedPermission, Result};

/// Seals the [content](StoredTeam::content) of a team that is stored with a conversation, so that a store from elsewhere
/// allows nothing. `None` if it needs no seal, or there is no key.
pub type Sealer = Arc<dyn Fn(&StoredTeam) -> Option<String> + Send + Sync>;

/// The team that is stored with a conversation, so that it can be run again when its team file has changed or is gone.
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
    /// The permissions that it was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<RequestedPermission>,
    /// The user's own document of MCP servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<PathBuf>,
    /// The user's own folder in which its agents work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// The descriptions of the tools of MCP servers that models received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_tools: Vec<ToolDescription>,
    /// The id under which a server served the team when the conversation began: the name of a team can change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_as: Option<String>,
    /// The limits that it began with, over those of the team.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub limits: LimitOverrides,
    /// Whether the conversation is a copy from elsewhere, which can only be read: nothing proves that its log was made by this team.
    #[serde(default, skip_serializing_if = "is_false")]
    pub imported: bool,
    /// The bound of the conversation, as computed before its first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<StoredBound>,
    /// Shows that this user allowed it: a store of another user allows nothing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// The bound of a conversation: what it takes at most, as computed before its first call and enforced since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBound {
    /// The bound, with all retries.
    #[serde(flatten)]
    pub most: RunBound,
    /// Identifies the prices with which it was computed.
    pub prices: String,
    /// The date of the table of prices, as `YYYY-MM-DD`.
    pub price_date: String,
    /// The bound in words; `None` if no model is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The settings on which the bound rests, as sentences.
    pub rests_on: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl StoredBound {
    /// That of `bound`, computed with `prices` by model, of a run at whose limits happens what `on_limit` says.
    pub(crate) fn new(bound: TeamBound, prices: &BTreeMap<String, Price>, on_limit: OnLimit) -> Self {
        Self {
            most: bound.to_enforce(),
            prices: digest_of(prices),
            text: bound.in_words(on_limit),
            price_date: bound.price_date,
            rests_on: bound.rests_on,
        }
    }

    /// As people and programs see it, of a team whose content `team_digest` identifies; `None` if no model is called.
    pub(crate) fn summary(self, team_digest: String) -> Option<BoundSummary> {
        let RunBound { calls, tokens, cost, .. } = self.most;
        let price_date = self.price_date;
        self.text.map(|text| BoundSummary { text, calls, tokens, cost, price_date, team_digest })
    }

    /// What the conversation with this `meta` was computed to take at most.
    pub(crate) fn of(meta: &Meta) -> Option<Self> {
        serde_json::from_value(meta.team.get("bound")?.clone()).ok()
    }

    /// What is enforced of it where models have the `prices` of now: money only if it was computed with these.
    pub(crate) fn with_prices(&self, prices: &BTreeMap<String, Price>) -> RunBound {
        self.enforced(&digest_of(prices))
    }

    fn enforced(&self, prices: &str) -> RunBound {
        RunBound { is_repriced: self.most.cost.is_some() && self.prices != prices, ..self.most }
    }
}

/// Returns what the conversation with this `meta` was computed to take at most before it began; `None` where a script speaks,
/// no model is called, or nothing was computed.
pub fn bound_summary(meta: &Meta) -> Option<BoundSummary> {
    let is_scripted = meta.team.get("offline").and_then(Value::as_bool).unwrap_or_default();
    let digest = meta.team.get("digest").and_then(Value::as_str).unwrap_or_default().to_owned();
    StoredBound::of(meta).filter(|_| !is_scripted)?.summary(digest)
}

/// Identifies `prices`, which are not read again exactly as they were written.
fn digest_of(prices: &BTreeMap<String, Price>) -> String {
    // Prices always serialize.
    blake3::hash(&serde_json::to_vec(prices).unwrap_or_default()).to_hex().to_string()
}

/// The document that is stored with a conversation for its next run, before its team is read: the same documents are the same
/// team with the same permissions.
pub struct StoredDocument {
    id: LogId,
    team: Value,
    team_changed: Option<Timestamp>,
    limits: Option<LimitOverrides>,
    damage: Option<StoreError>,
    has_begun: bool,
}

impl StoredDocument {
    /// Returns the document of the conversation `id`: of the team with which it continued last.
    ///
    /// # Errors
    /// When there is no such conversation, or its own program began it.
    pub async fn of(store: &AnyStore, id: &LogId) -> Result<Self> {
        let meta = store.meta(id).await?;
        check_team(id, &meta)?;
        // Events from the first damaged one on say nothing about the team.
        let RecoveredEvents { mut events, damage } = store.read_intact(id).await?;
        let intact = damage.as_ref().map(|damage| usize::try_from(damage.intact()).unwrap_or(usize::MAX));
        events.truncate(intact.unwrap_or(usize::MAX));
        Ok(Self { damage, ..Self::in_log(id, meta, &events) })
    }

    /// Returns the document of the conversation `id` with this `meta` and these `events`, which were read already.
    pub(crate) fn of_events(id: &LogId, meta: Meta, events: &[Arc<Event>]) -> Result<Self> {
        check_team(id, &meta)?;
        Ok(Self::in_log(id, meta, events.iter().map(|event| &**event)))
    }

    /// That of the conversation `id` with this `meta` and these events.
    fn in_log<'e>(id: &LogId, meta: Meta, events: impl IntoIterator<Item = &'e Event>) -> Self {
        let (mut changed, mut limits, mut has_begun) = (None, None, false);
        for event in events {
            has_begun = true;
            match &event.body {
                Body::TeamChanged(TeamChanged { team, .. }) if !team.is_null() => {
                    changed = Some((team, event.time));
                }
                Body::LimitsChanged { limits: set, .. } => limits = Some(*set),
                _ => {}
            }
        }
        let team_changed = changed.map(|(_, time)| time);
        let mut team = changed.map_or(meta.team, |(team, _)| team.clone());
        without_request(&mut team);
        Self { id: id.clone(), team, team_changed, limits, damage: None, has_begun }
    }

    /// Returns the digest of what the preparation of the conversation depends on.
    pub fn digest(&self) -> [u8; 32] {
        // A value always serializes.
        blake3::hash(&serde_json::to_vec(&(&self.team, self.limits)).unwrap_or_default()).into()
    }

    /// Returns the same without its task, of a conversation that has begun: its log has it. `None` if a seal is of the task, too.
    pub fn digest_for_any_task(&self) -> Option<[u8; 32]> {
        let is_sealed = self.team.get("seal").is_some_and(|seal| !seal.is_null());
        let mut team = self.team.as_object().filter(|_| self.has_begun && !is_sealed)?.clone();
        // What it takes at most depends on the length of the task, and is not prepared.
        team.shift_remove("bound");
        *team.get_mut("team")?.pointer_mut("/overrides/task")? = Value::Null;
        let content = serde_json::to_vec(&("any task", team, self.limits)).ok()?;
        Some(blake3::hash(&content).into())
    }

    /// Returns when the conversation continued with this version of its team. `None` if it began with it.
    pub const fn team_changed(&self) -> Option<Timestamp> {
        self.team_changed
    }

    /// Returns the limits that were set last, if they were changed since it began.
    ///
    /// # Errors
    /// When the log is damaged, so that these are unknown.
    pub fn limits(&self) -> Result<Option<LimitOverrides>> {
        match &self.damage {
            Some(damage) => Err(polylogue_core::Error::from(damage.clone()).into()),
            None => Ok(self.limits),
        }
    }

    /// Reads the team.
    ///
    /// # Errors
    /// When it is none.
    pub fn team(&self) -> Result<StoredTeam> {
        StoredTeam::deserialize(&self.team)
            .map_err(|error| Error::BadTeam { id: self.id.clone(), why: error.to_string() })
    }
}

/// Refuses a conversation that its own program began.
fn check_team(id: &LogId, meta: &Meta) -> Result<()> {
    match meta.team.is_null() {
        true => Err(Error::NoTeam { id: id.clone() }),
        false => Ok(()),
    }
}

impl StoredTeam {
    /// Returns the team of the conversation `id`: the one with which it continued last.
    ///
    /// # Errors
    /// When there is no such conversation, or its own program began it.
    pub async fn of(store: &AnyStore, id: &LogId) -> Result<Self> {
        StoredDocument::of(store, id).await?.team()
    }

    /// Adds the seal of this program, if there is one.
    pub(crate) fn sealed(self, sealer: Option<&Sealer>) -> Self {
        let seal = sealer.and_then(|seal| seal(&self));
        Self { seal, ..self }
    }

    /// The metadata of a new conversation.
    pub(crate) fn meta(&self, title: String) -> Result<Meta> {
        Ok(Meta { title, created: Timestamp::now(), team: self.value()?, parent: None })
    }

    /// It as JSON.
    pub(crate) fn value(&self) -> Result<Value> {
        let team = serde_json::to_value(self);
        Ok(team.map_err(|error| polylogue_core::Error::Bug(format!("the team cannot be stored: {error}")))?)
    }

    /// Returns the content that the seal is of.
    pub fn content(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(&(&self.team, &self.digest, &self.allowed, &self.mcp, &self.dir)).ok()
    }

    /// Returns the digest of the stored team itself, for one without a valid seal.
    pub fn own_digest(&self) -> String {
        let team = serde_json::to_vec(&self.team).unwrap_or_default();
        format!("kept-{}", blake3::hash(&team).to_hex())
    }

    /// Returns the agents that speak by models, for inspection, with the tools that they had.
    ///
    /// # Errors
    /// When the team cannot be built.
    pub fn assistants(&self) -> Result<Vec<Assistant>> {
        let silent = |_: &str| Ok(AnyModel::new(Script::default().model("none")));
        Ok(self.team.assistants_with(&silent, Catalog::of_described(self.remote_tools.clone()))?)
    }
}

/// Returns whether the conversation with this `meta` is a copy from elsewhere.
pub fn is_imported(meta: &Meta) -> bool {
    meta.team.get("imported").is_some_and(|imported| *imported == true)
}

/// Returns the id under which a server served the team of the conversation with this `meta` when it began.
pub fn served_as(meta: &Meta) -> Option<&str> {
    meta.team.get("served_as")?.as_str()
}

/// Returns the limits that the conversation with this `meta` began with, over those of its team.
pub fn limits_of(meta: &Meta) -> LimitOverrides {
    let limits = meta.team.get("limits").cloned();
    limits.and_then(|limits| serde_json::from_value(limits).ok()).unwrap_or_default()
}

/// The limits of the conversation with this `meta` and these `events`, over those of its team: those that were set last, and those that
/// it began with.
pub(crate) fn overrides_of(meta: &Meta, events: &[Arc<Event>]) -> LimitOverrides {
    // Later changes name only what they change.
    LimitOverrides::last_of(events).unwrap_or_default().or(limits_of(meta))
}

/// The limits into which the calls fitted that were in flight when an earlier process died. `of_team`: those of its team. What is at the end of the
/// log can be of a process that died before it counted these calls, or of one that sent calls after it: so the widest limits of them.
pub(crate) fn limits_of_lost(of_team: Limits, meta: &Meta, events: &[Arc<Event>]) -> Limits {
    let last = events.iter().rev().take_while(|event| event.body.is_of_run()).count();
    let ends = events.len() - last..=events.len();
    let limits = ends.filter_map(|end| Some(overrides_of(meta, events.get(..end)?).apply_to(of_team)));
    let wider = |one: Limits, other: Limits| Limits {
        calls: one.calls.zip(other.calls).map(|(one, other)| one.max(other)),
        tokens: one.tokens.zip(other.tokens).map(|(one, other)| one.max(other)),
        cost: one.cost.zip(other.cost).map(|(one, other)| one.max(other)),
        ..other
    };
    limits.reduce(wider).unwrap_or(of_team)
}

/// The limits of a conversation, of its agents, and of its chats that have not ended.
pub(crate) struct StoredLimits {
    run: Limits,
    agents: Vec<(Name, Allowance)>,
    chats: Vec<(AllowanceOwner, Allowance)>,
}

impl StoredLimits {
    /// Those of `team`, where the run has these, and the log these `events`.
    pub(crate) fn of(run: Limits, team: &Team, events: &[Arc<Event>]) -> Self {
        let ended =
            events.iter().filter(|event| matches!(event.body, Body::Closed { .. }) && !event.chat.is_root());
        let ended: HashSet<&Path> = ended.map(|event| &event.chat).collect();
        let opened = events.iter().filter_map(|event| match &event.body {
            Body::Opened(opening) if !ended.contains(&event.chat) => Some((&event.chat, opening)),
            _ => None,
        });
        Self { run, agents: team.agent_limits(), chats: team.chat_limits(opened) }
    }

    /// Sets them.
    pub(crate) fn set(self, log: Log) -> Log {
        log.limits(self.run).agent_limits(self.agents).chat_limits(self.chats)
    }
}

/// The limits of the conversation `id` with this `meta` and these `events`. Without a team, the default ones.
///
/// # Errors
/// When its team cannot be read.
pub(crate) fn stored_limits(id: &LogId, meta: Meta, events: &[Arc<Event>]) -> Result<StoredLimits> {
    let overrides = overrides_of(&meta, events);
    if meta.team.is_null() {
        let run = overrides.apply_to(Limits::default());
        return Ok(StoredLimits { run, agents: Vec::new(), chats: Vec::new() });
    }
    let StoredTeam { team, .. } =
        StoredDocument::in_log(id, meta, events.iter().map(|event| &**event)).team()?;
    Ok(StoredLimits::of(overrides.apply_to(team.limits()), &team, events))
}

/// Returns the bound of a conversation of a batch that an earlier run began: as it was computed then, with the prices of its
/// new `start`.
pub fn begun_bound(begun: &Meta, start: &BatchStart) -> RunBound {
    let bounds = StoredBound::of(begun).zip(StoredBound::of(&start.meta));
    bounds.map(|(begun, now)| begun.enforced(&now.prices)).unwrap_or_default()
}

/// Creates an id that is short and easy to paste: six of Crockford's 32 digits, which leave out letters that look like others.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lost_calls_fitted_into_the_widest_limits_since_the_last_turn() {
        let events: Vec<Arc<Event>> = [
            json!({"type": "turn_started", "turns": []}),
            json!({"type": "limits_changed", "limits": {"tokens": 500}}),
            json!({"type": "turn_started", "turns": []}),
            json!({"type": "limits_changed", "limits": {"tokens": 200, "calls": 1}}),
            json!({"type": "paused"}),
            json!({"type": "limits_changed", "limits": {"tokens": 300}}),
        ]
        .into_iter()
        .enumerate()
        .map(|(seq, mut event)| {
            event["seq"] = json!(seq);
            event["time_ms"] = json!(0);
            Arc::new(serde_json::from_value(event).unwrap())
        })
        .collect();
        let of_team = Limits { tokens: Some(900), ..Limits::default() };
        let meta = Meta::default();
        for (end, tokens) in [(0, 900), (1, 900), (2, 900), (3, 500), (4, 500), (5, 500), (6, 500)] {
            assert_eq!(limits_of_lost(of_team, &meta, &events[..end]).tokens, Some(tokens), "{end} events");
        }
        assert_eq!(limits_of_lost(of_team, &meta, &events[..4]).calls, None, "the limit of each run");
        let limited = Limits { calls: Some(9), ..of_team };
        assert_eq!(limits_of_lost(limited, &meta, &events[..4]).calls, Some(9));
        let without = limits_of_lost(Limits { tokens: None, ..of_team }, &meta, &events[..2]);
        assert_eq!(without.tokens, None, "no limit is the widest");
    }
}
