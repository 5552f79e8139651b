//! Conversations as files: copies that are read elsewhere.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use polylogue_core::{
    BlobId, Body, Event, LogId, Meta, Path, Store as _, StoreError, StoredResult, Timestamp, Transcript, text,
};
use polylogue_store::Jsonl;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fork::{check_participants, without_team};
use crate::new_log::{NewLog, with_request};
use crate::stored::{StoredTeam, is_imported};
use crate::{Error, Prepared, Result, Runtime};

/// The longest title of an imported conversation, in characters.
const TITLE_CHARS: usize = 300;

/// The deepest chat of an imported conversation. Chats of teams are nested at most 8 deep.
const DEEPEST: usize = 64;

/// The most bytes of large results in an exported conversation: with its events, it should be a file that a server takes.
const MAX_RESULT_BYTES: u64 = 16 << 20;

/// How lines of large results begin, as which no line of a log does.
const RESULT: &[u8] = b"{\"result\":";

/// A large result of a tool call, as a line after the events.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultLine<'t> {
    result: BlobId,
    text: Cow<'t, str>,
}

impl Runtime {
    /// Exports the conversation `id` as the text of a file of [`Jsonl`]: its title, and its events with their links; then its
    /// large results of tool calls, a line each, in the order of the events up to 16 MiB together. The team is not part of it:
    /// it has the names of files of this machine, and what the user allowed it.
    ///
    /// # Errors
    /// When there is no such conversation, or it is damaged.
    pub async fn export(&self, id: &LogId) -> Result<Vec<u8>> {
        let meta = self.store().meta(id).await?;
        let events: Vec<Event> = self.store().read(id, 0).await?.into_iter().map(without_team).collect();
        let bug = |error| polylogue_core::Error::Bug(format!("the log cannot be written: {error}"));
        let mut text =
            Jsonl::to_text(&Meta { team: serde_json::Value::Null, ..meta }, &events).map_err(bug)?;
        let (mut left, mut seen) = (MAX_RESULT_BYTES, BTreeSet::new());
        for StoredResult { id: result, bytes, .. } in events.iter().filter_map(stored_in) {
            if *bytes > left || !seen.insert(result) {
                continue;
            }
            if let Some(whole) = self.store().stored_blob(id, result).await? {
                left -= *bytes;
                let line = ResultLine { result: result.clone(), text: String::from_utf8_lossy(&whole) };
                serde_json::to_writer(&mut text, &line).map_err(|error| bug(error.into()))?;
                text.push(b'\n');
            }
        }
        Ok(text)
    }

    /// Stores a conversation that was [exported](Self::export) as `new`. The text is checked line by line, and never runs: an imported
    /// conversation can be read, and given another title, but neither be continued nor forked, because its log could say that a person
    /// had approved something. `team` is the team of this machine whose agents it is about, if there is one: with it, requests and
    /// graphs can be shown.
    ///
    /// # Errors
    /// [`Error::BadImport`]; [`StoreError::Exists`](polylogue_core::StoreError::Exists) when there is a conversation with this id.
    pub async fn import(&self, text: &[u8], new: impl Into<NewLog>, team: Option<&Prepared>) -> Result<()> {
        let NewLog { id: new, request } = new.into();
        let (log, results) = split(text);
        let (meta, events) = Jsonl::parse_text(log).map_err(|why| Error::BadImport { why })?;
        // What another store has in its inbox does not concern this one, and a team from elsewhere is none that is looked at.
        let own = |event| Arc::new(Event { inbox: None, ..without_team(event) });
        let events: Vec<Arc<Event>> = events.into_iter().map(own).collect();
        check(&events).map_err(|why| Error::BadImport { why })?;
        let results = checked(results, &events).map_err(|why| Error::BadImport { why })?;
        let meta = with_request(imported(meta, &events, team)?, request.as_deref());
        let claim = self.store().create(&new, &meta).await?;
        let written = async {
            self.store_results(&new, &results).await?;
            self.store().append(&claim, &events).await
        };
        let written = written.await;
        self.store().release(claim).await?;
        if let Err(error) = written {
            // Half a conversation is none. Why it was not written is the error that counts.
            let _ = self.store().remove(&new).await;
            return Err(error.into());
        }
        Ok(())
    }

    /// Stores `results` next to the log `id`, where the store can.
    async fn store_results(&self, id: &LogId, results: &[ResultLine<'_>]) -> Result<(), StoreError> {
        for ResultLine { result, text } in results {
            self.store().store_blob(id, result, text.as_bytes()).await?;
        }
        Ok(())
    }

    /// Refuses what was imported.
    pub(crate) async fn check_own(&self, id: &LogId) -> Result<()> {
        self.own_meta(id).await.map(drop)
    }

    /// The metadata of a conversation that was not imported.
    pub(crate) async fn own_meta(&self, id: &LogId) -> Result<Meta> {
        let meta = self.store().meta(id).await?;
        match is_imported(&meta) {
            true => Err(Error::Imported { id: id.clone() }),
            false => Ok(meta),
        }
    }
}

/// The large result to which an event refers.
fn stored_in(event: &Event) -> Option<&StoredResult> {
    match &event.body {
        Body::ToolReturned { result, .. } => result.stored.as_ref(),
        _ => None,
    }
}

/// The lines of a log, and those of its large results.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(RESULT) {
            break;
        }
        at += line.len();
    }
    text.split_at(at)
}

/// The large results in `lines`, each of which is the whole text of one to which an event refers, by its digest.
fn checked<'t>(lines: &'t [u8], events: &[Arc<Event>]) -> Result<Vec<ResultLine<'t>>, String> {
    let mut expected: BTreeMap<&BlobId, &StoredResult> =
        events.iter().filter_map(|event| stored_in(event)).map(|stored| (&stored.id, stored)).collect();
    let mut results = Vec::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: ResultLine<'_> = serde_json::from_slice(line)
            .map_err(|error| format!("a line after the events is no large result: {error}"))?;
        let id = &line.result;
        let stored =
            expected.remove(id).ok_or_else(|| format!("no event refers to the large result {id}"))?;
        if StoredResult::of(&line.text) != *stored || stored.bytes > StoredResult::MAX_BYTES {
            return Err(format!("the large result {id} does not have the text that its digest says"));
        }
        results.push(line);
    }
    Ok(results)
}

/// The metadata of an imported conversation.
fn imported(meta: Meta, events: &[Arc<Event>], team: Option<&Prepared>) -> Result<Meta> {
    let title: String = text::one_line(&meta.title).chars().take(TITLE_CHARS).collect();
    let created = Timestamp::now();
    let Some(team) = team else {
        // The first word is the name of a team, which this one may not have.
        let title = format!("imported {title}").trim_end().to_owned();
        return Ok(Meta { title, created, team: json!({"imported": true}), parent: None });
    };
    if let Some(why) = check_participants(team, events)? {
        return Err(Error::BadImport { why: why.to_string() });
    }
    let own = title.split_once(' ').map_or("", |(_, own)| own);
    let title = format!("{} {own}", team.team().name).trim_end().to_owned();
    Ok(Meta { created, ..StoredTeam { imported: true, ..team.run().stored()? }.meta(title)? })
}

/// Refuses events that are no conversation.
fn check(events: &[Arc<Event>]) -> Result<(), String> {
    if events.is_empty() {
        return Err("it has no events".into());
    }
    let chats: BTreeSet<&Path> = events.iter().map(|event| &event.chat).collect();
    let is_path = |at: &str| at.is_empty() || at.starts_with('/') && !at.chars().any(char::is_control);
    if !chats.iter().all(|at| is_path(&at.to_string())) {
        return Err("an event names a chat by what is no path".into());
    }
    if let Some(deep) = chats.iter().find(|at| at.to_string().matches('/').count() > DEEPEST) {
        let deep = text::excerpt(&deep.to_string(), 80);
        return Err(format!("the chat `{deep}` is nested deeper than {DEEPEST} levels"));
    }
    Transcript::from_events(&Path::root(), events).map(drop)
}
