//! Which conversation continues the history that a client sends: no table keeps it, since the log has what was said.

use polylogue_core::{
    Body, Event, ListQuery, Listing, LogId, Name, Path, Store as _, Subscription, Summary, Timestamp, Update,
};
use polylogue_runtime::is_imported;
use tokio::time::Instant;

use super::dialogue::{Continuation, Dialogue, task, users};
use super::line::Draft;
use super::request::{ChatRequest, Role};
use crate::app::App;
use crate::attendance::LEAVES;
use crate::problem::Problem;
use crate::tenants::Tenant;
use crate::waiting::is_cut_off;

/// How many of the newest conversations of a team are looked at.
const NEWEST: usize = 200;

/// The conversation that the history before the last message of the request belongs to, of those of its team, which has this name: the
/// newest of the nearest ones. One that has all texts of the history is nearer than one of which they are beginnings.
pub(super) async fn find(
    app: &App,
    tenant: &Tenant,
    name: String,
    request: &ChatRequest,
) -> Result<Option<Continuation>, Problem> {
    let messages = request.messages.as_slice();
    if !messages.iter().any(|message| message.role == Role::Assistant) {
        return Ok(None);
    }
    let query = ListQuery { team: Some(name), limit: Some(NEWEST), ..ListQuery::default() };
    let until = Instant::now() + LEAVES;
    let mut nearest: Option<((bool, u8), Continuation)> = None;
    for listing in tenant.runtime.list(&query).await?.logs {
        if !is_possible(tenant, &listing, request).await? {
            continue;
        }
        let dialogue = Dialogue::of(&events_so_far(tenant, &listing.id).await?, request.show);
        let Some(matched) = dialogue.matched(messages) else { continue };
        let Some(found) = dialogue.continuation(listing.id.clone(), messages, matched) else { continue };
        // Else the history only begins like that of someone else.
        if matches!(found, Continuation::Tip { .. })
            && matched.is_cut
            && !is_cut_off(app, tenant, &listing, until).await
        {
            continue;
        }
        let distance = (matched.is_cut, found.distance());
        if distance == (false, 0) {
            return Ok(Some(found));
        }
        if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
            nearest = Some((distance, found));
        }
    }
    Ok(nearest.map(|(_, found)| found))
}

/// Whether a conversation can be the one of the request, as far as is known without its events.
async fn is_possible(tenant: &Tenant, listing: &Listing, request: &ChatRequest) -> Result<bool, Problem> {
    let messages = request.messages.as_slice();
    let begins = |at: usize| {
        let task = task(messages.get(..=at).unwrap_or_default());
        *listing.summary.task == *task.chars().take(Summary::TASK_CHARS).collect::<String>()
    };
    if !users(messages).into_iter().any(begins) {
        return Ok(false);
    }
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

/// The events of a conversation. What has arrived of replies that are being written is there as if these were cut off now.
async fn events_so_far(tenant: &Tenant, id: &LogId) -> Result<Vec<Event>, Problem> {
    // Subscribed before reading, so that nothing is missed.
    let mut live = tenant.runtime.subscribe(id).await;
    let mut events = tenant.runtime.store().read(id, 0).await?;
    let mut drafts: Vec<(Path, Name, Draft)> = Vec::new();
    while let Some(update) = live.as_mut().and_then(Subscription::try_next) {
        match update {
            Update::Delta { at, who, delta } => {
                match drafts.iter_mut().find(|(of, by, _)| *of == at && *by == who) {
                    Some((_, _, draft)) => draft.delta(&delta),
                    None => {
                        let mut draft = Draft::default();
                        draft.delta(&delta);
                        drafts.push((at, who, draft));
                    }
                }
            }
            Update::Event(event) => drafts.retain(|(at, who, _)| *at != event.at || !ends_reply(&event, who)),
            _ => {}
        }
    }
    for (at, who, draft) in drafts.into_iter().filter(|(_, _, draft)| !draft.text().is_empty()) {
        let seq = events.last().map_or(0, |event| event.seq.saturating_add(1));
        let body = Body::ReplyInterrupted { who, model: "".into(), text: draft.text().into() };
        events.push(Event { seq, at, time: Timestamp::default(), ran_ms: 0, inbox: None, body });
    }
    Ok(events)
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
