//! Operations on the tables of facts.

use polylogue_core::{LogId, Name, Timestamp};
use polylogue_memory::{Fact, MemoryError, Scope, Source};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

use super::rank::cosine;
use super::terms::indexed;
use crate::sqlite::transaction::WriteTransaction;
use crate::sqlite::write_error::WriteError;

/// Creates the tables if they do not exist. `porter` stems English words; the index has no copy of the texts.
const CREATE: &str = "
CREATE TABLE IF NOT EXISTS facts(
    nr INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    text TEXT NOT NULL,
    author TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    call TEXT NOT NULL,
    forgotten INTEGER NOT NULL DEFAULT 0,
    UNIQUE(scope, conversation, call)
) STRICT;
CREATE INDEX IF NOT EXISTS facts_kept ON facts(scope, nr) WHERE forgotten = 0;
CREATE INDEX IF NOT EXISTS facts_said ON facts(scope, substr(text, 1, 40)) WHERE forgotten = 0;
CREATE VIRTUAL TABLE IF NOT EXISTS fact_words USING fts5(
    words, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TABLE IF NOT EXISTS fact_vectors(
    fact INTEGER NOT NULL,
    model TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY(fact, model)
) STRICT;
";

/// The vectors of one model in a scope.
#[derive(Debug, Clone)]
pub(super) struct Vectors {
    pub(super) scope: Scope,
    pub(super) model: String,
    /// Their dimension; vectors with another one are ignored.
    pub(super) dimension: usize,
}

/// Whether the tables of facts exist.
fn is_there(connection: &Connection) -> Result<bool> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'facts'";
    connection.prepare_cached(sql)?.exists([])
}

/// Stores a fact, or returns the one that the same call stored, or that has the same text.
pub(super) fn remember(
    transaction: &WriteTransaction<'_>,
    fact: &Fact,
    most: u64,
) -> Result<Result<Fact, MemoryError>, WriteError> {
    let connection = transaction.connection();
    connection.execute_batch(CREATE)?;
    let Fact { scope, text, by, time, source, .. } = fact;
    if let Some(known) = known(connection, fact)? {
        return Ok(Ok(known));
    }
    let count = "SELECT count(*) FROM facts WHERE scope = ?1 AND forgotten = 0";
    let count: i64 = connection.prepare_cached(count)?.query_row([scope.as_str()], |row| row.get(0))?;
    if count.cast_unsigned() >= most {
        let why = format!("the memory of `{scope}` is full: it has {count} facts; forget some");
        return Ok(Err(MemoryError::Refused(why)));
    }
    let sql =
        "INSERT INTO facts(scope, text, author, time_ms, conversation, call) VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(sql)?.execute(params![
        scope.as_str(),
        text,
        by.as_str(),
        time.0.cast_signed(),
        source.conversation.as_str(),
        source.call,
    ])?;
    let nr = connection.last_insert_rowid();
    connection
        .prepare_cached("INSERT INTO fact_words(rowid, words) VALUES(?1, ?2)")?
        .execute(params![nr, indexed(text)])?;
    Ok(Ok(Fact { id: nr.cast_unsigned(), ..fact.clone() }))
}

/// The fact that the same call stored, or one of the scope with the same text.
fn known(connection: &Connection, fact: &Fact) -> Result<Option<Fact>> {
    let Fact { scope, text, source, .. } = fact;
    let by_call = format!("{COLUMNS} WHERE scope = ?1 AND conversation = ?2 AND call = ?3");
    let origin = params![scope.as_str(), source.conversation.as_str(), source.call];
    let known = connection.prepare_cached(&by_call)?.query_row(origin, read).optional()?;
    if known.is_some() {
        return Ok(known);
    }
    // By its beginning, which is in an index. The `+` keeps SQLite from putting the text in its place there.
    let by_text = format!(
        "{COLUMNS} INDEXED BY facts_said WHERE scope = ?1 AND substr(text, 1, 40) = substr(?2, 1, 40)
         AND +text = ?2 AND forgotten = 0"
    );
    connection.prepare_cached(&by_text)?.query_row(params![scope.as_str(), text], read).optional()
}

/// Removes the text of a fact. The row remains, so that its number is not reused, and a repeated call has the same result. Returns
/// whether the fact exists or existed.
pub(super) fn forget(transaction: &WriteTransaction<'_>, scope: &Scope, id: u64) -> Result<bool, WriteError> {
    let connection = transaction.connection();
    let nr = id.cast_signed();
    if !is_there(connection)? {
        return Ok(false);
    }
    let sql = "UPDATE facts SET text = '', forgotten = 1 WHERE nr = ?1 AND scope = ?2";
    if connection.prepare_cached(sql)?.execute(params![nr, scope.as_str()])? == 0 {
        return Ok(false);
    }
    connection.prepare_cached("DELETE FROM fact_words WHERE rowid = ?1")?.execute([nr])?;
    connection.prepare_cached("DELETE FROM fact_vectors WHERE fact = ?1")?.execute([nr])?;
    Ok(true)
}

/// Stores the vectors of facts, replacing earlier ones of the model.
pub(super) fn keep_vectors(
    transaction: &WriteTransaction<'_>,
    of: &Vectors,
    rows: &[(u64, Vec<f32>)],
) -> Result<(), WriteError> {
    // A fact may have been forgotten since.
    let sql = "INSERT OR REPLACE INTO fact_vectors(fact, model, dimension, vector)
               SELECT nr, ?2, ?3, ?4 FROM facts WHERE nr = ?1 AND forgotten = 0";
    let mut insert = transaction.connection().prepare_cached(sql)?;
    for (id, vector) in rows {
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        insert.execute(params![id.cast_signed(), of.model, whole(vector.len()), bytes])?;
    }
    Ok(())
}

/// Facts without a vector of the model, newest first, with their texts. A dimension of 0 matches any.
pub(super) fn without_vector(
    connection: &Connection,
    of: &Vectors,
    most: usize,
) -> Result<Vec<(u64, String)>> {
    if !is_there(connection)? {
        return Ok(Vec::new());
    }
    let sql = "SELECT nr, text FROM facts WHERE scope = ?1 AND forgotten = 0 AND NOT EXISTS (
                   SELECT 1 FROM fact_vectors WHERE fact = nr AND model = ?2
                   AND (?3 = 0 OR dimension = ?3 AND length(vector) = 4 * ?3)
               ) ORDER BY nr DESC LIMIT ?4";
    let mut select = connection.prepare_cached(sql)?;
    let rows = select
        .query_map(params![of.scope.as_str(), of.model, whole(of.dimension), whole(most)], |row| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
        })?;
    rows.collect()
}

/// The facts that match the full-text expression, best first.
pub(super) fn by_words(connection: &Connection, scope: &Scope, words: &str, most: usize) -> Result<Vec<u64>> {
    if !is_there(connection)? {
        return Ok(Vec::new());
    }
    let sql = "SELECT nr FROM fact_words JOIN facts ON nr = fact_words.rowid
               WHERE fact_words MATCH ?1 AND scope = ?2 AND forgotten = 0
               ORDER BY bm25(fact_words), nr DESC LIMIT ?3";
    let mut select = connection.prepare_cached(sql)?;
    let rows = select.query_map(params![words, scope.as_str(), whole(most)], |row| row.get::<_, i64>(0))?;
    rows.map(|nr| nr.map(i64::cast_unsigned)).collect()
}

/// The facts whose vectors have a positive cosine similarity with `vector`, nearest first.
pub(super) fn by_meaning(
    connection: &Connection,
    of: &Vectors,
    vector: &[f32],
    most: usize,
) -> Result<Vec<u64>> {
    if !is_there(connection)? {
        return Ok(Vec::new());
    }
    let sql = "SELECT nr, vector FROM facts JOIN fact_vectors ON fact = nr
               WHERE scope = ?1 AND forgotten = 0 AND model = ?2 AND dimension = ?3 AND length(vector) = 4 * ?3";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params![of.scope.as_str(), of.model, whole(of.dimension)])?;
    let mut near: Vec<(u64, f64)> = Vec::new();
    let mut other: Vec<f32> = Vec::with_capacity(of.dimension);
    while let Some(row) = rows.next()? {
        let nr: i64 = row.get(0)?;
        let bytes = row.get_ref(1)?.as_blob()?;
        other.clear();
        other.extend(bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)));
        near.push((nr.cast_unsigned(), cosine(vector, &other)));
    }
    near.retain(|(_, cosine)| *cosine > 0.0);
    near.sort_by(|(one, first), (other, second)| second.total_cmp(first).then(other.cmp(one)));
    Ok(near.into_iter().take(most).map(|(id, _)| id).collect())
}

const COLUMNS: &str = "SELECT nr, scope, text, author, time_ms, conversation, call FROM facts";

/// The facts with these numbers, in this order.
pub(super) fn facts(connection: &Connection, scope: &Scope, ids: &[u64]) -> Result<Vec<Fact>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("{COLUMNS} WHERE nr = ?1 AND scope = ?2 AND forgotten = 0");
    let mut select = connection.prepare_cached(&sql)?;
    let mut facts = Vec::with_capacity(ids.len());
    for id in ids {
        facts.extend(select.query_row(params![id.cast_signed(), scope.as_str()], read).optional()?);
    }
    Ok(facts)
}

/// The fact with this number, of any scope.
pub(super) fn fact(connection: &Connection, id: u64) -> Result<Option<Fact>> {
    if !is_there(connection)? {
        return Ok(None);
    }
    let sql = format!("{COLUMNS} WHERE nr = ?1 AND forgotten = 0");
    connection.prepare_cached(&sql)?.query_row([id.cast_signed()], read).optional()
}

/// The scopes that have facts, in order.
pub(super) fn scopes(connection: &Connection) -> Result<Vec<Scope>> {
    if !is_there(connection)? {
        return Ok(Vec::new());
    }
    let sql = "SELECT DISTINCT scope FROM facts WHERE forgotten = 0 ORDER BY scope";
    let mut select = connection.prepare_cached(sql)?;
    let rows = select.query_map([], |row| scope_of(row, 0))?;
    rows.collect()
}

/// The newest facts.
pub(super) fn list(connection: &Connection, scope: Option<&Scope>, most: usize) -> Result<Vec<Fact>> {
    if !is_there(connection)? {
        return Ok(Vec::new());
    }
    let sql =
        format!("{COLUMNS} WHERE forgotten = 0 AND (?1 IS NULL OR scope = ?1) ORDER BY nr DESC LIMIT ?2");
    let mut select = connection.prepare_cached(&sql)?;
    let rows = select.query_map(params![scope.map(Scope::as_str), whole(most)], read)?;
    rows.collect()
}

/// A count as an integer of SQLite.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn no_name(column: usize, error: String) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

fn scope_of(row: &Row<'_>, column: usize) -> Result<Scope> {
    Scope::new(&row.get::<_, String>(column)?).map_err(|error| no_name(column, error.to_string()))
}

fn read(row: &Row<'_>) -> Result<Fact> {
    let author: String = row.get(3)?;
    let conversation: String = row.get(5)?;
    Ok(Fact {
        id: row.get::<_, i64>(0)?.cast_unsigned(),
        scope: scope_of(row, 1)?,
        text: row.get(2)?,
        by: Name::new(&author).map_err(|error| no_name(3, error.to_string()))?,
        time: Timestamp(row.get::<_, i64>(4)?.cast_unsigned()),
        source: Source {
            conversation: LogId::new(&conversation).map_err(|error| no_name(5, error.to_string()))?,
            call: row.get(6)?,
        },
    })
}
