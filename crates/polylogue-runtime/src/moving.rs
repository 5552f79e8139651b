//! Moving a conversation to another version of its team.

use std::collections::BTreeSet;
use std::sync::Arc;

use polylogue_core::{Body, Event, Log, LogId, Name, Path, Queue as _, Store as _, Transcript};
use polylogue_team::{Team, TeamChange};

use crate::error::ForkError;
use crate::fork::check_participants;
use crate::{Error, OpenOptions, Prepared, Result, Runtime};

impl Runtime {
    /// Has the conversation `id` continue with `prepared`, another version of its team, which has these `changes`:
    /// appends the event that says so, after charges of lost calls by the version `before`, as [`open_version`](Self::open_version). Workers need what that team needs. Nothing is run: one that waits for workers still does, and one that
    /// is parked stays so.
    ///
    /// # Errors
    /// [`Error::BadMove`] when the team lacks a participant of the conversation, an agent whose turn is open, or one of the same chat; when another process runs
    /// it, or the store cannot be written.
    pub async fn move_to(
        &self,
        id: &LogId,
        (prepared, before): (&Prepared, Option<&Prepared>),
        changes: Vec<TeamChange>,
    ) -> Result<()> {
        self.check_version(id, prepared).await?;
        let conversation = self.open_version(id, (prepared, before), OpenOptions::default()).await?;
        conversation.change_team(prepared, changes)?;
        conversation.log_team().await?;
        if let Some(queue) = self.store().queue() {
            // While it is open here, so that no worker claims it by what its team needed before.
            queue.set_needs(id, &self.needs_of(id, prepared, None).await?).await?;
        }
        conversation.release_as_before().await
    }

    /// Whether calls of the conversation `id` may have been in flight when the process died that ran it last, and are not charged yet: before
    /// it continues with another version of its team, the present one is needed to charge them ([`open_version`](Self::open_version)).
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn may_have_lost_calls(&self, id: &LogId) -> Result<bool> {
        let (meta, events) = (self.store().meta(id).await?, self.store().read(id, 0).await?);
        Ok(Log::from_events(events).forked_from(meta.parent.as_ref()).may_have_lost_calls().await?)
    }

    /// Checks that the conversation `id` can continue with `prepared`, another version of its team.
    ///
    /// # Errors
    /// [`Error::BadMove`] when the team lacks a participant of the conversation, an agent whose turn is open, or one of the same chat; when the store cannot be
    /// read.
    pub async fn check_version(&self, id: &LogId, prepared: &Prepared) -> Result<()> {
        let events: Vec<Arc<Event>> = self.store().read(id, 0).await?.into_iter().map(Arc::new).collect();
        match missing(prepared, &events)? {
            Some(who) => Err(Error::BadMove { id: id.clone(), team: prepared.team().name.clone(), who }),
            None => Ok(()),
        }
    }
}

/// Who is needed to continue `events`, and not in the team.
fn missing(prepared: &Prepared, events: &[Arc<Event>]) -> Result<Option<Name>> {
    if let Some(ForkError::NoParticipant { who, .. }) = check_participants(prepared, events)? {
        return Ok(Some(who));
    }
    // Selectors and authors of summaries are no agents of the file.
    let mut names = BTreeSet::from_iter(prepared.team().answering_models());
    add_names(prepared.team(), &mut names);
    Ok(needed(events)?.into_iter().find(|who| !names.contains(who)))
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

/// Whose turns are open, and who takes part in the chats within the conversation that have open turns.
fn needed(events: &[Arc<Event>]) -> Result<BTreeSet<Name>> {
    // A limit of the run leaves turns open, which continue when the conversation does.
    let is_end = |event: &Event| event.chat.is_root() && matches!(event.body, Body::Closed { .. });
    let without_end: Vec<Arc<Event>> = events.iter().filter(|event| !is_end(event)).cloned().collect();
    let mut needed = BTreeSet::new();
    for chat in unfinished_chats(&without_end) {
        let transcript = Transcript::from_events(chat, events).map_err(polylogue_core::Error::Bug)?;
        let mut open = transcript.current_speakers().peekable();
        if open.peek().is_some() && !chat.is_root() {
            needed.extend(transcript.participants().iter().cloned());
        }
        needed.extend(open.cloned());
    }
    Ok(needed)
}

/// The chats with an event after which neither they nor a chat around them has ended.
pub(crate) fn unfinished_chats(events: &[Arc<Event>]) -> BTreeSet<&Path> {
    let mut chats = BTreeSet::new();
    for Event { chat: at, body, .. } in events.iter().map(Arc::as_ref) {
        match body {
            Body::Closed { .. } => chats.retain(|chat: &&Path| *chat != at && !chat.is_within(at)),
            _ => drop(chats.insert(at)),
        }
    }
    chats
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_is_needed_takes_part_in_a_chat_with_an_open_turn_also_after_the_end_of_the_conversation() {
        let opened = |at: &str| json!({"chat": at, "type": "opened", "participants": ["Ann", "Bob"], "task": "t", "messages": []});
        let turn = |at: &str, who: &str| json!({"chat": at, "type": "turn_started", "turns": [{"who": who}]});
        let said = |at: &str, who: &str| json!({"chat": at, "type": "message", "from": who, "parts": [{"text": "x"}]});
        let closed = |at: &str| json!({"chat": at, "type": "closed", "reason": "finished", "summary": ""});
        let log = [
            opened(""),
            turn("", "Ann"),
            opened("/Ann.1"),
            turn("/Ann.1", "Bob"),
            said("/Ann.1", "Bob"),
            closed("/Ann.1"),
            said("", "Ann"),
            turn("", "Bob"),
            opened("/Bob.1"),
            turn("/Bob.1", "Cy"),
            closed(""),
        ];
        let of = |count: usize| {
            let events = log.iter().take(count).enumerate().map(|(seq, event)| {
                let mut event = event.clone();
                (event["seq"], event["time_ms"]) = (seq.into(), 0.into());
                Arc::new(serde_json::from_value::<Event>(event).unwrap())
            });
            let needed = needed(&events.collect::<Vec<_>>()).unwrap();
            needed.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let found: Vec<String> = (0..=log.len()).map(of).collect();
        let all = "Ann Bob Cy";
        assert_eq!(found, ["", "", "Ann", "Ann", "Ann Bob", "Ann", "Ann", "", "Bob", "Bob", all, all]);
    }
}
