//! Forking: a new conversation that begins with the events of another.

use std::sync::Arc;

use polylogue_core::{
    Agent as _, AnyStore, Body, Event, GivenApproval, LimitOverrides, Log, LogId, Message, Meta, Name,
    Opening, Parent, Part, Path, Store as _, StoreError, StoredFiles, TeamChanged, Timestamp, ToolCall,
};
use polylogue_team::Template;
use serde::Deserialize as _;

pub use crate::error::ForkError;
use crate::new_log::{NewLog, with_request};
use crate::stored::{StoredTeam, fresh_id, is_imported};
use crate::{Conversation, Error, FilesPolicy, Prepared, Result, StoreLocation};

/// The point at which a conversation is forked.
#[derive(Debug, Clone, Default)]
pub struct ForkPoint {
    /// The first event that is not copied. Default: all are copied. The opening is copied also by a fork before it, if the fork would
    /// not begin in the same way by itself: with another task, or with attachments.
    pub event: Option<u64>,
    /// Replaces the text of the message, the answer or the task that this event is; it is then copied, too. Messages that quote a task
    /// before the first turn have the new one. Without an event, it is sent into the fork as the next message.
    pub text: Option<String>,
    /// The caller sends another message into the fork than the one that follows in the original, as when a person edits a
    /// message. The fork is then marked as [edited](Parent::edited), which one with an event and a text always is.
    pub is_edited: bool,
}

/// A conversation that was forked from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The id of the fork.
    pub id: LogId,
    /// Whether the fork has the files of the original.
    pub files: ForkedFiles,
}

/// Whether a fork has the files in the work directory of the original. It has them if they are known to be those of the
/// point where it was forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkedFiles {
    /// The original has none.
    None,
    /// The fork has a copy.
    Copied,
    /// The fork begins with the files of a new conversation: a tool call of the original, at this event, came after the point
    /// and may have changed its files.
    Changed {
        /// The event of the call.
        event: u64,
    },
    /// The fork begins with the files of a new conversation: a process runs the original and may be changing its files.
    InUse,
}

/// What a fork has that the original has not.
#[derive(Default)]
pub(crate) struct NewFork<'p> {
    /// Its id, and the request that makes it. Default: a fresh one.
    pub(crate) log: Option<NewLog>,
    /// Its team. Default: that of the original.
    pub(crate) team: Option<&'p Prepared>,
}

/// Copies the beginning of the conversation `id` into a new one. The original is only read.
pub(crate) async fn fork(
    place: &StoreLocation,
    store: &AnyStore,
    (id, NewFork { log: new, team }): (&LogId, NewFork<'_>),
    point: &ForkPoint,
) -> Result<Fork> {
    let events = store.read(id, 0).await?;
    let meta = store.meta(id).await?;
    if is_imported(&meta) {
        return Err(Error::Imported { id: id.clone() });
    }
    let mut copied = copied(id, &events, point, (&meta, team))?;
    let event = point.event.unwrap_or(events.len() as u64);
    let meta = match team {
        None => meta,
        Some(team) => {
            if let Some(why) = check_participants(team, &copied)? {
                return Err(Error::BadFork { id: id.clone(), event, why });
            }
            copied =
                copied.into_iter().map(|event| Arc::new(without_team(Arc::unwrap_or_clone(event)))).collect();
            meta_with(&meta, team)?
        }
    };
    let is_of_another = team.is_some() && !copied.iter().all(|event| matches!(event.body, Body::Opened(_)));
    let meta = if is_of_another || lengthens(&events, point) { without_bound(meta) } else { meta };
    let meta = without_reply_limit(meta, &mut copied);
    let (new, request) = new.map_or((None, None), |new| (Some(new.id), new.request));
    let meta = with_request(meta, request.as_deref());
    let edited = point.is_edited || (point.event.is_some() && point.text.is_some());
    let meta =
        Meta { created: Timestamp::now(), parent: Some(Parent { id: id.clone(), event, edited }), ..meta };
    let fork = write(store, id, new, &meta, &copied).await?;
    if let (None, Some(text)) = (point.event, &point.text) {
        let mut log = Log::open(store.clone(), fork.clone()).await?;
        log.send(Message::new(Name::user(), text.as_str())).await?;
        log.release().await?;
    }
    let files = match StoredFiles::last_of(&copied) {
        // They are restored when the fork is run.
        Some(_) if *place.files() == FilesPolicy::Kept => ForkedFiles::Copied,
        _ => copy_files(place, store, (id, &fork), &events, event).await?,
    };
    Ok(Fork { id: fork, files })
}

/// Writes the fork of `id` with `events`, under its own id or a fresh one. A fork that cannot be written whole is removed.
async fn write(
    store: &AnyStore,
    id: &LogId,
    new: Option<LogId>,
    meta: &Meta,
    events: &[Arc<Event>],
) -> Result<LogId> {
    let claim = loop {
        match store.create(&new.clone().unwrap_or_else(fresh_id), meta).await {
            Err(StoreError::Exists { .. }) if new.is_none() => {}
            claim => break claim?,
        }
    };
    let fork = claim.id.clone();
    // First, so that no reference in the fork leads nowhere.
    let written = match store.copy_blobs(events, id, (store, &fork)).await {
        Ok(()) => store.append(&claim, events).await,
        failed => failed,
    };
    store.release(claim).await?;
    if let Err(error) = written {
        // Why it was not written is the error that counts.
        let _ = store.remove(&fork).await;
        return Err(error.into());
    }
    Ok(fork)
}

/// Why `team` cannot continue `events`: it must have their participants, and those who have joined.
pub(crate) fn check_participants(team: &Prepared, events: &[Arc<Event>]) -> Result<Option<ForkError>> {
    let chat = team.run().chat(&fresh_id())?;
    let has = |who: &&Name| chat.participants().iter().any(|agent| agent.name() == *who);
    let mut of_chat = events.iter().filter(|event| event.chat.is_root());
    let missing = of_chat.find_map(|event| match &event.body {
        Body::Opened(opening) => opening.participants.iter().find(|who| !has(who)),
        Body::Joined { who, .. } => Some(who).filter(|who| !chat.has_agent(who)),
        _ => None,
    });
    Ok(missing.map(|who| ForkError::NoParticipant { who: who.clone(), team: team.team().name.clone() }))
}

/// The metadata of a fork with another team.
fn meta_with(meta: &Meta, team: &Prepared) -> Result<Meta> {
    // A title of its own follows the name of the team.
    let own = meta.title.split_once(' ').map_or("", |(_, own)| own);
    let title = format!("{} {own}", team.team().name).trim_end().to_owned();
    team.run().stored()?.meta(title)
}

/// Whether a message of a participant has a longer text at `point` than in `events`: what a conversation takes at most rests on the length
/// of replies. Longer tasks and answers end its bound by themselves.
fn lengthens(events: &[Event], point: &ForkPoint) -> bool {
    let edited = point.event.and_then(|event| events.get(usize::try_from(event).ok()?));
    match (edited.map(|event| &event.body), &point.text) {
        (Some(Body::Message(old) | Body::Posted(old)), Some(text)) => text.len() > old.text().len(),
        _ => false,
    }
}

/// The metadata of a fork without what it takes at most, which was computed for another past.
fn without_bound(mut meta: Meta) -> Meta {
    if let Some(team) = meta.team.as_object_mut() {
        team.shift_remove("bound");
    }
    meta
}

/// The metadata of a fork, whose events are `copied`, without the limit on the length of replies that one response of the original had.
fn without_reply_limit(mut meta: Meta, copied: &mut Vec<Arc<Event>>) -> Meta {
    if let Some(limits) = meta.team.get_mut("limits").and_then(|limits| limits.as_object_mut()) {
        limits.shift_remove("reply_tokens");
    }
    let any = Some(Conversation::ANY_REPLY_LENGTH);
    let logged = LimitOverrides::last_of(copied).unwrap_or_default();
    if let Some(last) = copied.last().filter(|_| ![None, any].contains(&logged.reply_tokens)) {
        let limits = LimitOverrides { reply_tokens: any, ..logged };
        let (more, changes) = (LimitOverrides::default(), Vec::new());
        let body = Body::LimitsChanged { limits, more, changes, by: None };
        let (seq, at) = (last.seq.saturating_add(1), Path::root());
        let event = Event { seq, chat: at, inbox: None, body, ..Event::clone(last) };
        copied.push(Arc::new(event));
    }
    meta
}

/// `event` without the team in it: the copy has a team of its own, or none.
pub(crate) fn without_team(event: Event) -> Event {
    match event.body {
        Body::TeamChanged(changed) => {
            let changed = TeamChanged { team: serde_json::Value::Null, ..changed };
            Event { body: Body::TeamChanged(changed), ..event }
        }
        _ => event,
    }
}

/// Copies the work directory of `id` to `fork` if no later event than `end` can have changed it. Nothing changes it while this
/// process has the claim.
async fn copy_files(
    place: &StoreLocation,
    store: &AnyStore,
    (id, fork): (&LogId, &LogId),
    events: &[Event],
    end: u64,
) -> Result<ForkedFiles> {
    if !place.work_dir(id)?.exists() {
        return Ok(ForkedFiles::None);
    }
    let claim = match store.claim(id).await {
        Err(StoreError::Busy { .. }) => return Ok(ForkedFiles::InUse),
        claim => claim?,
    };
    // Others may have continued it since its events were read.
    let since = store.read(id, events.len() as u64).await;
    let files = since.map_err(Error::from).and_then(|since| {
        let later = events.iter().chain(&since).filter(|event| event.seq >= end);
        match later.into_iter().find(|event| matches!(event.body, Body::ToolCalled { .. })) {
            Some(call) => Ok(ForkedFiles::Changed { event: call.seq }),
            None => place.copy_work_dir(id, fork).map(|()| ForkedFiles::Copied),
        }
    });
    store.release(claim).await?;
    files
}

/// The events of the fork of a conversation with this `meta`, which another `team` can continue.
fn copied(
    id: &LogId,
    events: &[Event],
    point: &ForkPoint,
    (meta, team): (&Meta, Option<&Prepared>),
) -> Result<Vec<Arc<Event>>> {
    let end = point.event.unwrap_or(events.len() as u64);
    let fail = |why| Error::BadFork { id: id.clone(), event: end, why };
    if end > events.len() as u64 {
        return Err(fail(ForkError::NoEvent { events: events.len() as u64 }));
    }
    // What a person has approved is for the original.
    let given = || GivenApproval::of(events.iter().take_while(|event| event.seq < end)).into_iter().next();
    if let Some(open) = open_call(events, end).or_else(|| given().map(ForkError::unused)) {
        return Err(fail(open));
    }
    let (before, after): (Vec<&Event>, Vec<&Event>) = events.iter().partition(|event| event.seq < end);
    let mut copied: Vec<Arc<Event>> =
        before.into_iter().map(|event| Arc::new(Event { inbox: None, ..event.clone() })).collect();
    if let (Some(event), Some(text)) = (point.event, &point.text) {
        let at = |at: &Path| ForkError::NoMessage { event, chat: at.clone() };
        let Some(edited) = after.first() else {
            return Err(fail(ForkError::NoEvent { events: events.len() as u64 }));
        };
        let body = reworded(&edited.body, text, meta).ok_or_else(|| fail(at(&edited.chat)))?;
        copied.push(Arc::new(Event { body, inbox: None, ..(*edited).clone() }));
    } else if let Some(opened) = after.first().filter(|event| is_own_opening(event, meta, team)) {
        copied.push(Arc::new(Event { inbox: None, ..(*opened).clone() }));
    }
    Ok(copied)
}

/// Whether `event` opens its conversation in another way than a new one with this `meta`, or of another `team`, begins: with a task that
/// replaced that of the team in a fork, or with attachments.
fn is_own_opening(event: &Event, meta: &Meta, team: Option<&Prepared>) -> bool {
    let Body::Opened(opening) = &event.body else { return false };
    let task = match team {
        Some(team) => team.team().task.clone(),
        None => match StoredTeam::deserialize(&meta.team) {
            Ok(stored) => stored.team.task,
            // The program that has begun it begins the fork.
            Err(_) => return false,
        },
    };
    let mut parts = opening.messages.iter().flat_map(|message| &message.parts);
    let has_attachments = parts.any(|part| matches!(part, Part::Media(_)));
    event.chat.is_root() && (has_attachments || task.unwrap_or_default() != *opening.task)
}

/// Why the events before `end` cannot be a conversation of their own: a call of them has no result there.
fn open_call(events: &[Event], end: u64) -> Option<ForkError> {
    let mut open = OpenCalls::default();
    let (mut found, mut before, mut after) = (None, 0, None);
    // Before each event, and after the last one.
    for place in 0..=events.len() as u64 {
        if place == end {
            found = Some(*open.0.first()?);
        } else if open.0.is_empty() && place < end {
            before = place;
        } else if open.0.is_empty() {
            after = Some(place - 1);
            break;
        }
        events.get(usize::try_from(place).ok()?).into_iter().for_each(|event| open.add(event));
    }
    let (called, who, call) = found?;
    Some(ForkError::OpenCall { who: who.clone(), tool: call.tool.clone(), called: called.seq, before, after })
}

/// The calls that have no result yet, with their events.
#[derive(Default)]
struct OpenCalls<'e>(Vec<(&'e Event, &'e Name, &'e ToolCall)>);

impl<'e> OpenCalls<'e> {
    fn add(&mut self, event: &'e Event) {
        match &event.body {
            Body::ToolCalled { who, call } => self.0.push((event, who, call)),
            Body::ToolReturned { who, id, .. } => self.0.retain(|(called, caller, call)| {
                called.chat != event.chat || *caller != who || call.id != *id
            }),
            // What is rolled back has no result.
            Body::RolledBack { since } => {
                self.0.retain(|(called, ..)| called.chat != event.chat || called.seq < *since);
            }
            _ => {}
        }
    }
}

/// `body` with another text; `None` if it has none that people or agents wrote.
fn reworded(body: &Body, text: &str, meta: &Meta) -> Option<Body> {
    let message = |message: &Message| Message { parts: vec![Part::text(text)], ..message.clone() };
    Some(match body {
        Body::Message(old) => Body::Message(message(old)),
        Body::Posted(old) => Body::Posted(message(old)),
        Body::Sent(old) => Body::Sent(message(old)),
        Body::Reopened { message: Some(old), .. } => Body::reopened(Some(message(old))),
        Body::InputProvided { to, .. } => {
            Body::InputProvided { to: to.clone(), text: text.into(), by: Default::default() }
        }
        Body::Opened(opening) => Body::Opened(with_task(opening.clone(), text, &opening_texts(meta))),
        _ => return None,
    })
}

/// The texts by which the messages before the first turn of a conversation with this `meta` can quote its task.
fn opening_texts(meta: &Meta) -> Vec<Template> {
    let stored = StoredTeam::deserialize(&meta.team).ok();
    let texts = stored.iter().flat_map(|stored| stored.team.opening_texts()).cloned();
    // The last one is the default, which chats within it and conversations of programs have.
    texts.chain([Template::new("{{task}}")]).collect()
}

/// `opening` with another `task`, which its messages quote by `texts`.
fn with_task(mut opening: Opening, task: &str, texts: &[Template]) -> Opening {
    let old = std::mem::replace(&mut opening.task, task.into());
    // Attachments stay.
    for part in opening.messages.iter_mut().filter_map(|message| message.parts.first_mut()) {
        let Part::Text(text) = &*part else { continue };
        if let Some(quoting) = texts.iter().find(|quoting| quoting.fill(&old) == **text) {
            *part = Part::text(quoting.fill(task));
        }
    }
    opening
}

#[cfg(test)]
mod tests;
