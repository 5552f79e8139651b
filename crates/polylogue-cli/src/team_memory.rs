//! What agents remember from one conversation to the next: in the database that keeps the conversations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use polylogue::memory::{AnyMemory, Fact, Memory, MemoryError, Note, Query, Recalled, Scope};
use polylogue::{LogId, Meter, Store as _, StoreError};
use polylogue_models::Embedder;
use polylogue_store::Facts;
use polylogue_team::{BuildContext, Team};

use crate::error::CliError;
use crate::model_builder::ModelBuilder;
use crate::place;

/// The memory of the agents of a team, if they have one.
pub(crate) struct TeamMemoryStore(Option<AnyMemory>);

impl TeamMemoryStore {
    /// The memory beside the conversations in `store`. Nothing is opened before an agent wants it.
    pub(crate) fn of(team: &Team, store: Option<&Path>, crew: &ModelBuilder) -> Result<Self, CliError> {
        if !team.needs_memory() {
            return Ok(Self(None));
        }
        let model = team.memory.embed.as_deref().map(|name| crew.embedder(name)).transpose()?.flatten();
        let facts = LazyMemory { place: place(store)?, model, facts: OnceLock::new() };
        Ok(Self(Some(AnyMemory::new(facts))))
    }

    /// `place` with the memory.
    pub(crate) fn furnish(&self, place: BuildContext) -> BuildContext {
        match &self.0 {
            Some(memory) => place.with_memory(memory.clone()),
            None => place,
        }
    }
}

/// The memory of `team` that holds what teams of another content have written down, by scope. `digest` is of the content.
pub(crate) async fn of_others(
    team: &Team,
    store: Option<&Path>,
    digest: &str,
) -> Result<Vec<String>, CliError> {
    let all = all_of_others(team, store, digest).await?;
    let scopes = team.memory_scopes().into_iter().map(|scope| scope.as_str().to_owned());
    Ok(scopes.filter(|scope| all.contains(scope)).collect())
}

/// All memory that holds what teams of another content have written down, by scope; none for a `team` that has no memory.
pub(crate) async fn all_of_others(
    team: &Team,
    store: Option<&Path>,
    digest: &str,
) -> Result<BTreeSet<String>, CliError> {
    let at = place::place(store)?;
    if !team.needs_memory() || !at.exists() || place::is_folder(&at) {
        return Ok(BTreeSet::new());
    }
    let facts = Facts::open(&at)?.list(None, usize::MAX).await?;
    let store = place::open(store)?;
    let mut whose: BTreeMap<LogId, bool> = BTreeMap::new();
    let mut scopes = BTreeSet::new();
    for fact in facts.into_iter().filter(|fact| !fact.text.is_empty()) {
        let conversation = fact.source.conversation;
        let is_own = match whose.get(&conversation) {
            Some(is_own) => *is_own,
            None => {
                // The author of a conversation that is gone is unknown.
                let meta = store.meta(&conversation).await.ok();
                let is_own = meta.is_some_and(|meta| meta.team.get("digest").is_some_and(|of| of == digest));
                whose.insert(conversation, is_own);
                is_own
            }
        };
        if !is_own {
            scopes.insert(fact.scope.as_str().to_owned());
        }
    }
    Ok(scopes)
}

/// The memory in `store`.
pub(crate) fn open(store: Option<&Path>) -> Result<Facts, CliError> {
    Ok(Facts::open(place(store)?)?)
}

fn place(store: Option<&Path>) -> Result<PathBuf, CliError> {
    let place = place::place(store)?;
    if place::is_folder(&place) {
        let what = format!("`{}` keeps conversations as JSON lines, which have no memory", place.display());
        return Err(CliError::usage(what).hint("name a file for SQLite with `--store`"));
    }
    Ok(place)
}

/// A memory that is opened when it is first used.
struct LazyMemory {
    place: PathBuf,
    model: Option<Embedder>,
    facts: OnceLock<Result<Facts, StoreError>>,
}

impl LazyMemory {
    fn facts(&self) -> Result<&Facts, MemoryError> {
        let open = || {
            let facts = Facts::open(&self.place)?;
            Ok(match &self.model {
                Some(model) => facts.embedded_by(model.clone()),
                None => facts,
            })
        };
        self.facts.get_or_init(open).as_ref().map_err(|error| error.clone().into())
    }
}

impl Memory for LazyMemory {
    async fn remember(&self, note: &Note) -> Result<Fact, MemoryError> {
        self.facts()?.remember(note).await
    }
    async fn recall(&self, query: &Query) -> Result<Recalled, MemoryError> {
        self.facts()?.recall(query).await
    }
    async fn recall_metered(&self, query: &Query, meter: &Meter<'_>) -> Result<Recalled, MemoryError> {
        self.facts()?.recall_metered(query, meter).await
    }
    async fn forget(&self, scope: &Scope, id: u64) -> Result<bool, MemoryError> {
        self.facts()?.forget(scope, id).await
    }
    async fn list(&self, scope: Option<&Scope>, limit: usize) -> Result<Vec<Fact>, MemoryError> {
        self.facts()?.list(scope, limit).await
    }
}
