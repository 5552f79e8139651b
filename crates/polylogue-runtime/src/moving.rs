//! Moving a conversation to another version of its team.

use std::collections::BTreeSet;
use std::sync::Arc;

use polylogue_core::{Body, Event, LogId, Name, Path, Store as _};
use polylogue_team::Team;

use crate::fork::check_participants;
use crate::{Error, ForkError, OpenOptions, Prepared, Result, Runtime};

impl Runtime {
    /// Has the conversation `id` continue with `prepared`, another version of its team, of which `changes` are the differences in words:
    /// appends the event that says so. Nothing is run.
    ///
    /// # Errors
    /// [`Error::BadMove`] when the team lacks a participant of the conversation, or an agent whose turn is open; when another process runs
    /// it, or the store cannot be written.
    pub async fn move_to(&self, id: &LogId, prepared: &Prepared, changes: Vec<String>) -> Result<()> {
        let events: Vec<Arc<Event>> = self.store().read(id, 0).await?.into_iter().map(Arc::new).collect();
        if let Some(who) = missing(prepared, &events)? {
            let team = prepared.team().name.clone();
            return Err(Error::BadMove { id: id.clone(), team, who });
        }
        let conversation = self.open(id, prepared, OpenOptions::default()).await?;
        conversation.change_team(prepared, changes)?;
        conversation.log_team().await?;
        conversation.release().await
    }
}

/// Who is needed to continue `events`, and not in the team.
fn missing(prepared: &Prepared, events: &[Arc<Event>]) -> Result<Option<Name>> {
    if let Some(ForkError::NoParticipant { who, .. }) = check_participants(prepared, events)? {
        return Ok(Some(who));
    }
    let mut names = BTreeSet::new();
    add_names(prepared.team(), &mut names);
    Ok(open_turns(events).into_iter().find(|who| !names.contains(who)))
}

/// The agents and chats of a team, and of those within it.
fn add_names(team: &Team, names: &mut BTreeSet<Name>) {
    names.extend(team.agents.iter().map(|agent| Name::clone(&agent.name)));
    names.extend(team.chats.iter().map(|chat| Name::clone(&chat.name)));
    for inner in &team.teams {
        names.insert(Name::clone(&inner.name));
        add_names(&inner.team, names);
    }
}

/// Whose turns are open.
fn open_turns(events: &[Arc<Event>]) -> Vec<Name> {
    let mut open: Vec<(&Path, &Name)> = Vec::new();
    for event in events {
        let at = &event.at;
        let ended = match &event.body {
            Body::TurnStarted { turns } => {
                open.extend(turns.iter().map(|turn| (at, &turn.who)));
                continue;
            }
            Body::Message(message) => &message.from,
            Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => who,
            Body::Closed { .. } | Body::RolledBack { .. } => {
                open.retain(|(path, _)| *path != at && !path.is_within(at));
                continue;
            }
            _ => continue,
        };
        open.retain(|(path, who)| *path != at || *who != ended);
    }
    open.into_iter().map(|(_, who)| who.clone()).collect()
}
