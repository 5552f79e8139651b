//! What agents remember from one conversation to the next: in the database that keeps the conversations.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use polylogue::StoreError;
use polylogue::memory::{AnyMemory, Fact, Memory, MemoryError, Note, Query, Recalled, Scope};
use polylogue_models::Embedder;
use polylogue_store::Facts;
use polylogue_team::{Team, Workplace};

use crate::crew::Crew;
use crate::place;
use crate::trouble::Trouble;

/// The memory of the agents of a team, if they have one.
pub(crate) struct Remembered(Option<AnyMemory>);

impl Remembered {
    /// The memory beside the conversations in `store`. Nothing is opened before an agent wants it.
    pub(crate) fn of(team: &Team, store: Option<&Path>, crew: &Crew) -> Result<Self, Trouble> {
        if !team.needs_memory() {
            return Ok(Self(None));
        }
        let model = team.memory.embed.as_deref().map(|name| crew.embedder(name)).transpose()?.flatten();
        let facts = Unopened { place: place(store)?, model, facts: OnceLock::new() };
        Ok(Self(Some(AnyMemory::new(facts))))
    }

    /// `place` with the memory.
    pub(crate) fn furnish(&self, place: Workplace) -> Workplace {
        match &self.0 {
            Some(memory) => place.with_memory(memory.clone()),
            None => place,
        }
    }
}

/// The memory in `store`.
pub(crate) fn open(store: Option<&Path>) -> Result<Facts, Trouble> {
    Ok(Facts::open(place(store)?)?)
}

fn place(store: Option<&Path>) -> Result<PathBuf, Trouble> {
    let place = place::place(store)?;
    if place::is_folder(&place) {
        let what = format!("`{}` keeps conversations as JSON lines, which have no memory", place.display());
        return Err(Trouble::usage(what).hint("name a file for SQLite with `--store`"));
    }
    Ok(place)
}

/// A memory that is opened when it is first used.
struct Unopened {
    place: PathBuf,
    model: Option<Embedder>,
    facts: OnceLock<Result<Facts, StoreError>>,
}

impl Unopened {
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

impl Memory for Unopened {
    async fn remember(&self, note: &Note) -> Result<Fact, MemoryError> {
        self.facts()?.remember(note).await
    }
    async fn recall(&self, query: &Query) -> Result<Recalled, MemoryError> {
        self.facts()?.recall(query).await
    }
    async fn forget(&self, scope: &Scope, id: u64) -> Result<bool, MemoryError> {
        self.facts()?.forget(scope, id).await
    }
    async fn list(&self, scope: Option<&Scope>, limit: usize) -> Result<Vec<Fact>, MemoryError> {
        self.facts()?.list(scope, limit).await
    }
}
