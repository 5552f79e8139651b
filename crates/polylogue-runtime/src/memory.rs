//! What agents remember from one conversation to the next: in the database that keeps the conversations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use polylogue::tools::memory::{AnyMemory, Fact, Memory, MemoryError, Note, Query, Recalled, Scope};
use polylogue_core::{LogId, Meter, Store as _};
use polylogue_models::Embedder;
use polylogue_store::Facts;
use polylogue_team::{BuildContext, Team, TeamMemory as TeamMemoryKeys};

use crate::models::TeamModels;
use crate::{Error, Result, StoreLocation};

/// The memory of the agents of a team, if they have one.
pub(crate) struct TeamMemory(Option<AnyMemory>);

impl TeamMemory {
    /// The memory next to the conversations at `place`. Nothing is opened before an agent wants it.
    pub(crate) fn of(team: &Team, place: &StoreLocation, models: &TeamModels) -> Result<Self> {
        if !team.needs_memory() {
            return Ok(Self(None));
        }
        let TeamMemoryKeys { embed, dimensions, .. } = &*team.memory;
        let model = embed.as_deref().map(|name| models.embedder(name)).transpose()?.flatten();
        let model = model.map(|model| model.with_dimensions(*dimensions));
        let facts = LazyMemory { place: database(place)?, model, facts: OnceLock::new() };
        Ok(Self(Some(AnyMemory::new(facts))))
    }

    /// `context` with the memory.
    pub(crate) fn add_resources(&self, context: BuildContext) -> BuildContext {
        match &self.0 {
            Some(memory) => context.with_memory(memory.clone()),
            None => context,
        }
    }
}

/// Returns the scopes of memory that hold what teams of another content than `digest` have written down; none for a `team` that
/// has no memory.
///
/// # Errors
/// When the memory or its store cannot be read.
pub async fn memory_of_others(team: &Team, place: &StoreLocation, digest: &str) -> Result<BTreeSet<String>> {
    if !team.needs_memory() || !place.path().exists() || place.memory_file().is_err() {
        return Ok(BTreeSet::new());
    }
    let facts = Facts::open(place.path())?.list(None, usize::MAX).await.map_err(unreadable)?;
    let store = place.open()?;
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

fn unreadable(error: MemoryError) -> Error {
    match error {
        MemoryError::Store(error) => error.into(),
        error => Error::Memory { why: error.to_string() },
    }
}

/// Opens the long-term memory of agents at `place`.
///
/// # Errors
/// When conversations are kept there as JSON lines or in Postgres, which have no memory next to them, or it cannot be opened.
pub fn open_memory(place: &StoreLocation) -> Result<Facts> {
    Ok(Facts::open(database(place)?)?)
}

fn database(place: &StoreLocation) -> Result<PathBuf> {
    place.memory_file().map(ToOwned::to_owned)
}

/// A memory that is opened when it is first used. Where it cannot be opened, the next use tries it again.
struct LazyMemory {
    place: PathBuf,
    model: Option<Embedder>,
    facts: OnceLock<Facts>,
}

impl LazyMemory {
    fn facts(&self) -> Result<&Facts, MemoryError> {
        if let Some(facts) = self.facts.get() {
            return Ok(facts);
        }
        let facts = Facts::open(&self.place)?;
        let facts = match &self.model {
            Some(model) => facts.embedded_by(model.clone()),
            None => facts,
        };
        Ok(self.facts.get_or_init(|| facts))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_memory_that_could_not_be_opened_is_opened_by_the_next_use() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("chats.db");
        std::fs::create_dir(&place).unwrap();
        let memory = LazyMemory { place: place.clone(), model: None, facts: OnceLock::new() };
        assert!(memory.list(None, 1).await.is_err());
        std::fs::remove_dir(&place).unwrap();
        assert!(memory.list(None, 1).await.unwrap().is_empty());
    }
}
