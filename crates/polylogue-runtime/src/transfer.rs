//! Conversations as files: copies that are read elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use polylogue_core::{Event, LogId, Meta, Path, Store as _, Transcript};
use polylogue_store::Jsonl;
use serde_json::json;

use crate::fork::{check_participants, without_team};
use crate::stored::{StoredTeam, is_imported, now};
use crate::{Error, Prepared, Result, Runtime};

/// The longest title of an imported conversation, in characters.
const TITLE_CHARS: usize = 300;

/// The deepest chat of an imported conversation. Chats of teams are nested at most 8 deep.
const DEEPEST: usize = 64;

impl Runtime {
    /// The conversation `id` as the text of a file of [`Jsonl`]: its title, and its events with their links. The team is not part of
    /// it: it has the names of files of this machine, and what the user allowed it.
    ///
    /// # Errors
    /// When there is no such conversation, or it is damaged.
    pub async fn export(&self, id: &LogId) -> Result<Vec<u8>> {
        let meta = self.store().meta(id).await?;
        let events: Vec<Event> = self.store().read(id, 0).await?.into_iter().map(without_team).collect();
        Jsonl::to_text(&Meta { team: serde_json::Value::Null, ..meta }, &events)
            .map_err(|error| polylogue_core::Error::Bug(format!("the log cannot be written: {error}")).into())
    }

    /// Stores a conversation that was [exported](Self::export) as `new`. The text is checked line by line, and never runs: an imported
    /// conversation can be read, and given another title, but neither be continued nor forked, because its log could say that a person
    /// had approved something. `team` is the team of this machine whose agents it is about, if there is one: with it, requests and
    /// graphs can be shown.
    ///
    /// # Errors
    /// [`Error::BadImport`]; [`StoreError::Exists`](polylogue_core::StoreError::Exists) when there is a conversation with this id.
    pub async fn import(&self, text: &[u8], new: &LogId, team: Option<&Prepared>) -> Result<()> {
        let (meta, events) = Jsonl::parse_text(text).map_err(|why| Error::BadImport { why })?;
        // What another store has in its inbox does not concern this one, and a team from elsewhere is none that is looked at.
        let own = |event| Arc::new(Event { inbox: None, ..without_team(event) });
        let events: Vec<Arc<Event>> = events.into_iter().map(own).collect();
        check(&events).map_err(|why| Error::BadImport { why })?;
        let claim = self.store().create(new, &imported(meta, &events, team)?).await?;
        let written = self.store().append(&claim, &events).await;
        self.store().release(claim).await?;
        if let Err(error) = written {
            // Half a conversation is none. Why it was not written is the error that counts.
            let _ = self.store().remove(new).await;
            return Err(error.into());
        }
        Ok(())
    }

    /// Refuses what was imported.
    pub(crate) async fn check_own(&self, id: &LogId) -> Result<()> {
        match is_imported(&self.store().meta(id).await?) {
            true => Err(Error::Imported { id: id.clone() }),
            false => Ok(()),
        }
    }
}

/// The metadata of an imported conversation.
fn imported(meta: Meta, events: &[Arc<Event>], team: Option<&Prepared>) -> Result<Meta> {
    let title = meta.title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().take(TITLE_CHARS).collect();
    let created = now();
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
    let chats: BTreeSet<&Path> = events.iter().map(|event| &event.at).collect();
    let is_path = |at: &str| at.is_empty() || at.starts_with('/') && !at.chars().any(char::is_control);
    if !chats.iter().all(|at| is_path(&at.to_string())) {
        return Err("an event names a chat by what is no path".into());
    }
    if let Some(deep) = chats.iter().find(|at| at.to_string().matches('/').count() > DEEPEST) {
        let deep: String = deep.to_string().chars().take(80).collect();
        return Err(format!("the chat `{deep}` is nested deeper than {DEEPEST} levels"));
    }
    Transcript::of(&Path::root(), events).map(drop)
}
