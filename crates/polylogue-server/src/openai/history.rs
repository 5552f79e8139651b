//! Which conversation continues the history that a client sends: no table keeps it, since the log has what was said.

use std::time::Duration;

use polylogue_core::{
    Body, Event, Instruction, ListQuery, Listing, LogId, Name, Path, Store as _, Subscription, Summary,
    Timestamp, Update,
};
use polylogue_runtime::stored::is_imported;
use tokio::time::{Instant, sleep};

use super::dialogue::{Continuation, Dialogue, task, users};
use super::line::Draft;
use super::request::{ChatMessage, ChatRequest};
use crate::app::App;
use crate::attendance::LEAVES;
use crate::problem::Problem;
use crate::runs::is_held;
use crate::tenants::Tenant;
use crate::waiting::{self, is_cut_off};

/// How many of the newest conversations of a team are looked at.
pub(super) const NEWEST: usize = 200;

/// How often it is looked again while another process may note that a client has left.
const LOOK: Duration = Duration::from_millis(100);

/// The conversation that the history before the last message of the request belongs to, of those of its team, which has this name. If it ends
/// with a part of a response, the process that has sent that is waited for a moment: it notes how far it has come.
pub(super) async fn find(
    app: &App,
    tenant: &Tenant,
    name: String,
    request: &ChatRequest,
) -> Result<Option<Continuation>, Problem> {
    if !request.has_history() {
        return Ok(None);
    }
    let query = ListQuery { team: Some(name), limit: Some(NEWEST), ..ListQuery::default() };
    let until = Instant::now() + LEAVES;
    loop {
        let Found { nearest, may_follow } = look(app, tenant, &query, request, until).await?;
        if nearest.is_some() || !may_follow || Instant::now() >= until {
            return Ok(nearest);
        }
        sleep(LOOK).await;
    }
}

/// What is known by now.
struct Found {
    /// The newest of the nearest ones. One that has all texts of the history is nearer than one of which they are beginnings.
    nearest: Option<Continuation>,
    /// Whether it can be one that another process runs, for a client that it may note as gone.
    may_follow: bool,
}

async fn look(
    app: &App,
    tenant: &Tenant,
    query: &ListQuery,
    request: &ChatRequest,
    until: Instant,
) -> Result<Found, Problem> {
    let messages = request.messages.as_slice();
    let mut nearest: Option<((bool, u8), Continuation)> = None;
    let mut may_follow = false;
    for listing in tenant.runtime.list(query).await?.logs {
        if !is_possible(tenant, &listing, request).await? {
            continue;
        }
        let dialogue = Dialogue::of(&events_so_far(tenant, &listing.id).await?, request.show);
        let found = dialogue.matched(messages).and_then(|matched| {
            Some((matched.is_cut, dialogue.continuation(listing.id.clone(), messages, matched)?))
        });
        let is_own = match &found {
            // Else the history only begins like that of someone else.
            Some((true, Continuation::Tip { .. })) => {
                is_cut_off(app, tenant, &listing, dialogue.has_left, until).await
            }
            found => found.is_some(),
        };
        let Some((is_cut, found)) = found.filter(|_| is_own) else {
            may_follow |= dialogue.is_but_for_its_end(messages) && runs_elsewhere(tenant, &listing.id).await;
            continue;
        };
        let distance = (is_cut, found.distance());
        if distance == (false, 0) {
            return Ok(Found { nearest: Some(found), may_follow });
        }
        if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
            nearest = Some((distance, found));
        }
    }
    Ok(Found { nearest: nearest.map(|(_, found)| found), may_follow })
}

/// Whether another process runs a conversation.
async fn runs_elsewhere(tenant: &Tenant, id: &LogId) -> bool {
    !tenant.runs.is_running(id) && is_held(tenant, id).await
}

/// Whether a conversation can be the one of the request, as far as is known without its events.
pub(super) async fn is_possible(
    tenant: &Tenant,
    listing: &Listing,
    request: &ChatRequest,
) -> Result<bool, Problem> {
    let messages = request.messages.as_slice();
    let begins = |at| began_with(listing, messages.get(..=at).unwrap_or_default());
    Ok(users(messages).into_iter().any(begins) && is_of_team(tenant, listing, request).await?)
}

/// Whether these are all messages with which a conversation began.
pub(super) fn began_with(listing: &Listing, messages: &[ChatMessage]) -> bool {
    *listing.summary.task == *task(messages).chars().take(Summary::TASK_CHARS).collect::<String>()
}

/// Whether a conversation has the team of the request, and can continue.
pub(super) async fn is_of_team(
    tenant: &Tenant,
    listing: &Listing,
    request: &ChatRequest,
) -> Result<bool, Problem> {
    // Another team can have this name.
    if tenant.team_of(listing).await.is_none_or(|(team, _)| team != request.model) {
        return Ok(false);
    }
    // What was imported does not continue.
    Ok(!is_imported(&tenant.runtime.store().meta(&listing.id).await?))
}

/// Whether the history before the last message of the request is what was said last in a conversation.
pub(super) async fn is_tip(tenant: &Tenant, id: &LogId, request: &ChatRequest) -> Result<bool, Problem> {
    let dialogue = Dialogue::of(&events_so_far(tenant, id).await?, request.show);
    Ok(dialogue.matched(&request.messages).is_some_and(|matched| dialogue.ends_with(matched)))
}

/// Whether the client that received the last response of a conversation [has left](waiting::has_left).
pub(super) async fn has_left(tenant: &Tenant, id: &LogId) -> Result<bool, Problem> {
    Ok(waiting::has_left(&events_so_far(tenant, id).await?))
}

/// The events of a conversation. What has arrived of replies that are being written is there as if these were cut off now, and so is the note on
/// a client that has left, once it is in the inbox.
async fn events_so_far(tenant: &Tenant, id: &LogId) -> Result<Vec<Event>, Problem> {
    // Subscribed before reading, so that nothing is missed.
    let mut live = tenant.runtime.subscribe(id).await;
    let mut events = tenant.runtime.store().read(id, 0).await?;
    let mut drafts: Vec<(Path, Name, Draft)> = Vec::new();
    while let Some(update) = live.as_mut().and_then(Subscription::try_next) {
        match update {
            Update::Delta { chat: at, who, delta } => {
                match drafts.iter_mut().find(|(of, by, _)| *of == at && *by == who) {
                    Some((_, _, draft)) => draft.delta(&delta),
                    None => {
                        let mut draft = Draft::default();
                        draft.delta(&delta);
                        drafts.push((at, who, draft));
                    }
                }
            }
            Update::Event(event) => {
                drafts.retain(|(at, who, _)| *at != event.chat || !ends_reply(&event, who))
            }
            _ => {}
        }
    }
    for (at, who, draft) in drafts.into_iter().filter(|(_, _, draft)| !draft.text().is_empty()) {
        let seq = events.last().map_or(0, |event| event.seq.saturating_add(1));
        let body = Body::ReplyInterrupted { who, model: "".into(), text: draft.text().into() };
        events.push(Event { seq, chat: at, time: Timestamp::default(), ran_ms: 0, inbox: None, body });
    }
    events.extend(note_in_inbox(tenant, id, &events).await);
    Ok(events)
}

/// The note on a client that has left, if nothing else was sent to the conversation since, and the process that runs it has not taken it yet.
async fn note_in_inbox(tenant: &Tenant, id: &LogId, events: &[Event]) -> Option<Event> {
    // What cannot be read belongs to a later version.
    let (number, message) = tenant.runtime.store().inbox(id, 0).await.ok()?.pop()?;
    let Instruction::ClientDisconnected { received } = message.instruction else { return None };
    let (seq, body) = (events.len() as u64, Body::ClientDisconnected { received });
    let is_taken = events.iter().any(|event| event.inbox == Some(number));
    let (at, time, inbox) = (Path::root(), message.posted, Some(number));
    (!is_taken).then_some(Event { seq, chat: at, time, ran_ms: 0, inbox, body })
}

/// Whether the log has the reply of `who` with this event.
fn ends_reply(event: &Event, who: &Name) -> bool {
    match &event.body {
        Body::ModelReplied(reply) => reply.who == *who,
        Body::ReplyInterrupted { who: cut, .. } => cut == who,
        Body::Message(message) => message.from == *who,
        _ => false,
    }
}
