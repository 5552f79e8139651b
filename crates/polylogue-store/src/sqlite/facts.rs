//! Facts that outlive conversations, in a database.

mod rank;
mod table;
mod terms;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use polylogue_core::{Meter, ModelError, ModelErrorKind, Money, Reservation, StoreError, ToolUsage, Usage};
use polylogue_memory::{
    AnyEmbed, Embed, EmbedPurpose, Embedded, Fact, Memory, MemoryError, Note, Query, Recalled, Scope,
};

use super::Sqlite;
use table::Vectors;

/// A [`Memory`] in an SQLite database: that of the conversations, or a separate one.
///
/// # Search
///
/// Full-text search, ranked by BM25; any text is a query. Words are compared without case and accents and by their
/// English stem; in Chinese, Japanese and Korean texts, pairs of adjacent characters are compared.
///
/// With an embedding model ([`embedded_by`](Self::embedded_by)) also by meaning: the query's vector is compared with
/// that of every fact of the scope by cosine similarity. The two rankings are merged by reciprocal rank fusion with k
/// = 60 (Cormack, Clarke, Büttcher 2009). A fact is embedded at its first search. After a change of the model, facts
/// are embedded again in the same way, and the earlier vectors stay in case that model is used again. If the model
/// fails for the query, only full-text search is used; if it fails for facts, those that have a vector are still found
/// by meaning. [`Recalled::missed`] says why. A fact that the model refuses, such as one that a filter does not let
/// through, is named once, and not sent again before the database is opened again.
///
/// # Format
///
/// The tables are created with the first fact; versions that do not know them ignore them.
///
/// ```sql
/// CREATE TABLE facts(
///     nr INTEGER PRIMARY KEY,              -- the fact's id, referenced by the other tables
///     scope TEXT NOT NULL,                 -- the owner
///     text TEXT NOT NULL,                  -- empty when it is forgotten
///     author TEXT NOT NULL,
///     time_ms INTEGER NOT NULL,            -- since 1970-01-01 00:00 UTC
///     conversation TEXT NOT NULL,          -- logs.id, also of one that is removed
///     call TEXT NOT NULL,                  -- which call of the conversation
///     forgotten INTEGER NOT NULL,          -- 1: only its number and where it came from are left
///     UNIQUE(scope, conversation, call)
/// ) STRICT;
/// CREATE VIRTUAL TABLE fact_words USING fts5(words, ...);
/// CREATE TABLE fact_vectors(
///     fact INTEGER NOT NULL,               -- facts.nr
///     model TEXT NOT NULL,                 -- provider:model
///     dimension INTEGER NOT NULL,
///     vector BLOB NOT NULL,                -- 32-bit floats, the lowest byte first
///     PRIMARY KEY(fact, model)
/// ) STRICT;
/// ```
#[derive(Debug)]
pub struct Facts {
    store: Sqlite,
    model: Option<AnyEmbed>,
    /// Those that the model has refused, by their ids.
    refused: Mutex<BTreeSet<u64>>,
}

impl Facts {
    /// The maximum number of facts of a scope.
    pub const MAX_FACTS: u64 = 100_000;

    /// The maximum number of facts that are embedded in one search, the newest first.
    pub const MAX_EMBEDDED: usize = 1_000;

    /// The maximum number of requests of one search that the model refuses because of their texts. Later searches continue.
    const MAX_REFUSED: usize = 32;

    /// Opens the database at `path`, and creates it if it does not exist.
    ///
    /// # Errors
    /// As [`Sqlite::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Ok(Self { store: Sqlite::open(path)?, model: None, refused: Mutex::default() })
    }

    /// Adds search by meaning with an embedding model.
    #[must_use]
    pub fn embedded_by(self, model: impl Embed) -> Self {
        Self { model: Some(AnyEmbed::new(model)), refused: Mutex::default(), ..self }
    }

    /// Returns the fact `id`, of any scope; `None` if there is none, or it is forgotten.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn fact(&self, id: u64) -> Result<Option<Fact>, MemoryError> {
        let fact = self
            .store
            .reading(move |reader, place| reader.reading(place, |connection| table::fact(connection, id)));
        Ok(fact.await?)
    }

    /// Lists the scopes that have facts, in alphabetical order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn scopes(&self) -> Result<Vec<Scope>, MemoryError> {
        let scopes = self.store.reading(|reader, place| reader.reading(place, table::scopes));
        Ok(scopes.await?)
    }

    fn refused(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest facts without a vector, but for those that the model has refused.
    async fn without_vector(&self, of: Vectors) -> Result<Vec<(u64, String)>, StoreError> {
        let refused = self.refused().clone();
        // They take the place of no other.
        let most = Self::MAX_EMBEDDED.saturating_add(refused.len());
        let missing = self.store.reading(move |reader, place| {
            reader.reading(place, |connection| table::without_vector(connection, &of, most))
        });
        let mut missing = missing.await?;
        missing.retain(|(id, _)| !refused.contains(id));
        missing.truncate(Self::MAX_EMBEDDED);
        Ok(missing)
    }

    /// The vector of the query, after embedding all facts without a vector. All requests are reserved before they are
    /// sent.
    async fn vectors(
        &self,
        model: &AnyEmbed,
        query: &Query,
        meter: &Meter<'_>,
    ) -> Result<(Vectors, QueryVector), MemoryError> {
        // The model's vectors usually have one length. If that changes unannounced, the others follow in later searches.
        let dimension = model.dimensions().unwrap_or(0);
        let known = Vectors { scope: query.scope.clone(), model: model.name().into(), dimension };
        let unmade: BTreeMap<u64, String> = self.without_vector(known).await?.into_iter().collect();
        let texts: Vec<String> = unmade.values().chain([&query.text]).cloned().collect();
        let reserved = meter.reserve(model.name(), model.bound(&texts)).await;
        let reserved = reserved.map_err(|error| MemoryError::Refused(error.to_string()))?;
        let paid = reserved.as_ref();
        let asked = embedded(model, vec![query.text.clone()], EmbedPurpose::Search, paid).await?;
        let used = used_by(model, &asked);
        let vector = asked.vectors.into_iter().next().unwrap_or_default();
        let of = Vectors { scope: query.scope.clone(), model: model.name().into(), dimension: vector.len() };
        let mut missing = self.without_vector(of.clone()).await?;
        missing.retain(|(id, _)| reserved.is_none() || unmade.contains_key(id));
        let (used, missed) = self.embed_facts(model, &of, missing, paid, used).await?;
        if let Some(used) = &used {
            meter.settle(reserved, used);
        }
        Ok((of, QueryVector { vector, used, missed }))
    }

    /// Embeds facts, and keeps their vectors. A batch that the model refuses because of its texts is halved, so that one of them keeps no other
    /// from its vector; its halves come after all other facts, because only so many refusals are looked into. Adds to what was `used`, which is
    /// `None` where the reservation has counted it; also returns which facts have no vector, and why.
    async fn embed_facts(
        &self,
        model: &AnyEmbed,
        of: &Vectors,
        facts: Vec<(u64, String)>,
        paid: Option<&Reservation<'_>>,
        mut used: ToolUsage,
    ) -> Result<(Option<ToolUsage>, Option<String>), MemoryError> {
        let stopped = |used, refused: &[(u64, ModelError)], error: &ModelError| {
            let missed: Vec<_> =
                named(refused).into_iter().chain([words_only("some facts were", error)]).collect();
            (paid.is_none().then_some(used), Some(missed.join("; ")))
        };
        let (mut later, mut refusals, mut refused) = (VecDeque::from([facts]), 0, Vec::new());
        while let Some(facts) = later.pop_front().filter(|_| refusals < Self::MAX_REFUSED) {
            let (mut ids, mut texts): (Vec<u64>, Vec<String>) = facts.into_iter().unzip();
            if texts.is_empty() {
                continue;
            }
            let count = model.batch(&texts, EmbedPurpose::Store).clamp(1, texts.len());
            later.push_front(ids.split_off(count).into_iter().zip(texts.split_off(count)).collect());
            match embedded(model, texts.clone(), EmbedPurpose::Store, paid).await {
                Ok(made) => {
                    used = both(used, &made);
                    // They are kept as soon as they are paid: the next request may fail.
                    let (of, rows) = (of.clone(), ids.into_iter().zip(made.vectors).collect::<Vec<_>>());
                    let keep = self
                        .store
                        .writing(None, move |transaction| table::keep_vectors(transaction, &of, &rows));
                    keep.await?;
                }
                Err(error) if is_of_texts(&error) => {
                    refusals += 1;
                    if count == 1 {
                        self.refused().extend(&ids);
                        refused.extend(ids.first().map(|id| (*id, error.clone())));
                    } else {
                        let half = count / 2;
                        let second = ids.split_off(half).into_iter().zip(texts.split_off(half)).collect();
                        later.push_back(ids.into_iter().zip(texts).collect());
                        later.push_back(second);
                    }
                    if let Some(paid) = paid {
                        // What came before counts with the request that failed.
                        used = unused(model);
                        if !paid.again().await {
                            return Ok(stopped(used, &refused, &error));
                        }
                    }
                }
                Err(error) => return Ok(stopped(used, &refused, &error)),
            }
        }
        Ok((Some(used), named(&refused)))
    }
}

/// Whether the model refuses these texts, and may embed others: it was reached.
const fn is_of_texts(error: &ModelError) -> bool {
    matches!(
        error.kind,
        ModelErrorKind::Config | ModelErrorKind::ContentFiltered | ModelErrorKind::TooLong { .. }
    )
}

/// Which facts the model refuses, and why.
fn named(refused: &[(u64, ModelError)]) -> Option<String> {
    let (_, error) = refused.first()?;
    let ids: Vec<String> = refused.iter().map(|(id, _)| id.to_string()).collect();
    let facts = if ids.len() == 1 { "fact" } else { "facts" };
    let were = if ids.len() == 1 { "was" } else { "were" };
    Some(words_only(&format!("{facts} {} {were}", ids.join(", ")), error))
}

fn words_only(which: &str, error: &ModelError) -> String {
    format!("{which} {}: {error}", Recalled::WORDS_ONLY)
}

fn unused(model: &AnyEmbed) -> ToolUsage {
    let usage = Usage { input: Some(0), output: Some(0), ..Usage::default() };
    ToolUsage { model: model.name().into(), usage, cost: Some(Money::default()) }
}

fn used_by(model: &AnyEmbed, made: &Embedded) -> ToolUsage {
    ToolUsage { model: model.name().into(), usage: made.usage, cost: made.cost }
}

/// The sum of both; unknown if one of them is.
fn both(one: ToolUsage, other: &Embedded) -> ToolUsage {
    let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
    let usage = Usage {
        input: sum(one.usage.input, other.usage.input),
        output: sum(one.usage.output, other.usage.output),
        ..Usage::default()
    };
    ToolUsage { usage, cost: one.cost.zip(other.cost).map(|(one, other)| one + other), ..one }
}

/// The vector of a query.
struct QueryVector {
    vector: Vec<f32>,
    /// What the search used, unless that is counted already.
    used: Option<ToolUsage>,
    /// Which facts have no vector, and why.
    missed: Option<String>,
}

/// A vector for each text, of the same length and finite, or an error.
async fn embedded(
    model: &AnyEmbed,
    texts: Vec<String>,
    purpose: EmbedPurpose,
    reserved: Option<&Reservation<'_>>,
) -> Result<Embedded, ModelError> {
    let made = match reserved {
        Some(reserved) => match model.embed_reserved(&texts, purpose, reserved).await {
            Ok(made) => {
                // Another call of the same search may fail.
                reserved.paid(made.usage.total(), made.cost);
                made
            }
            Err(error) => {
                // Counts by how it failed.
                let _ = reserved.failed(error.clone());
                return Err(error);
            }
        },
        None => model.embed(&texts, purpose).await?,
    };
    let dimension = made.vectors.first().map_or(0, Vec::len);
    let whole = |vector: &Vec<f32>| {
        vector.len() == dimension && dimension > 0 && vector.iter().all(|number| number.is_finite())
    };
    if made.vectors.len() == texts.len() && made.vectors.iter().all(whole) {
        return Ok(made);
    }
    let what = format!("it made no proper vectors of {} texts", texts.len());
    Err(ModelError::new(ModelErrorKind::InvalidReply, model.name(), what))
}

impl Memory for Facts {
    async fn remember(&self, note: &Note) -> Result<Fact, MemoryError> {
        let fact = Fact {
            id: 0,
            scope: note.scope.clone(),
            text: note.checked()?.to_owned(),
            by: note.by.clone(),
            time: note.time,
            source: note.source.clone(),
        };
        self.store
            .writing(None, move |transaction| table::remember(transaction, &fact, Self::MAX_FACTS))
            .await?
    }

    async fn recall(&self, query: &Query) -> Result<Recalled, MemoryError> {
        self.recall_metered(query, &Meter::unlimited()).await
    }

    async fn recall_metered(&self, query: &Query, meter: &Meter<'_>) -> Result<Recalled, MemoryError> {
        let text: String = query.text.trim().chars().take(Note::MAX_CHARS).collect();
        if text.is_empty() {
            return Ok(Recalled::default());
        }
        let query = &Query { text, ..query.clone() };
        let limit = query.limit.min(Query::MAX_LIMIT);
        let (meaning, missed) = match &self.model {
            Some(model) => match self.vectors(model, query, meter).await {
                Ok(meaning) => (Some(meaning), None),
                Err(error) => (None, Some(format!("{}: {error}", Recalled::WORDS_ONLY))),
            },
            None => (None, None),
        };
        let used = meaning.as_ref().and_then(|(_, meaning)| meaning.used.clone());
        let missed = missed.or_else(|| meaning.as_ref()?.1.missed.clone());
        let (scope, words) = (query.scope.clone(), terms::expression(&query.text));
        let facts = self.store.reading(move |reader, place| {
            reader.reading(place, |connection| {
                let by_words = match words {
                    Some(words) => table::by_words(connection, &scope, &words, rank::DEPTH)?,
                    None => Vec::new(),
                };
                let by_meaning = match &meaning {
                    Some((of, meaning)) => table::by_meaning(connection, of, &meaning.vector, rank::DEPTH)?,
                    None => Vec::new(),
                };
                let best = rank::fused(&[by_words, by_meaning], limit);
                table::facts(connection, &scope, &best)
            })
        });
        Ok(Recalled { facts: facts.await?, missed, used })
    }

    async fn forget(&self, scope: &Scope, id: u64) -> Result<bool, MemoryError> {
        let scope = scope.clone();
        Ok(self.store.writing(None, move |transaction| table::forget(transaction, &scope, id)).await?)
    }

    async fn list(&self, scope: Option<&Scope>, limit: usize) -> Result<Vec<Fact>, MemoryError> {
        let scope = scope.cloned();
        let facts = self.store.reading(move |reader, place| {
            reader.reading(place, |connection| table::list(connection, scope.as_ref(), limit))
        });
        Ok(facts.await?)
    }
}

#[cfg(test)]
mod tests;
