//! `/api/v1/conversations`: beginning, reading and removing conversations.

use axum::body::Body;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, Response, StatusCode};
use polylogue_core::{Cursor, Instruction, ListQuery, Listing, LogId, LogState, Store as _, Timestamp};
use polylogue_runtime::steering::Steered;
use polylogue_runtime::stored::{bound_summary, is_imported};
use polylogue_wire::Scope;
use polylogue_wire::conversation::{
    Conversation, ConversationPage, ConversationState, EventPage, NewConversation, NewTitle, Removed,
};

use crate::beginning::{begin, made_before};
use crate::call::{Call, Reply, json_reply};
use crate::conversation::{describe, find, is_seen, listing, served_team};
use crate::idempotency::Key;
use crate::problem::Problem;
use crate::projection::Native;
use crate::route::Route;
use crate::runs::{StartOptions, is_left, stop, take_back};
use crate::schema::of_request;
use crate::tail::{Follow, PAGE as EVENTS, respond};
use crate::tenants::Tenant;
use crate::token::Token;

const PATH: &str = "/api/v1/conversations";
const ONE: &str = "/api/v1/conversations/{id}";

/// The most conversations of one page.
const PAGE: usize = 200;

/// A page ends after so many conversations were read, also if it is not full: its cursor is where the next one continues.
const READ_AT_MOST: usize = 1000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post(PATH, Scope::Run, create)
            .about("Begin a conversation")
            .body(of_request::<NewConversation>),
        Route::get(PATH, Scope::Read, list)
            .about("The conversations, newest first")
            .query(&["limit", "cursor", "id", "state", "team", "parent", "q", "since_ms"]),
        Route::get(ONE, Scope::Read, get).about("One conversation"),
        Route::patch(ONE, Scope::Edit, patch)
            .about("Give a conversation another title")
            .body(of_request::<NewTitle>),
        Route::delete(ONE, Scope::Edit, remove).about("Remove a conversation"),
        Route::get("/api/v1/conversations/{id}/events", Scope::Read, events)
            .about("A page of its events, or with `Accept: text/event-stream` its tail")
            .query(&["from", "limit"]),
    ]
}

async fn create(call: Call) -> Reply {
    let (token, wanted) = (call.token()?, call.json::<NewConversation>()?);
    let (app, tenant) = (&call.app, call.app.tenant(token)?);
    check_title(wanted.title.as_deref().unwrap_or_default())?;
    let key = Key::of(&call, "conversations").await?;
    if let Some(listing) = made_before(app, &tenant, token, key.as_ref()).await? {
        return created(&tenant, &listing.id, true).await;
    }
    if app.is_stopping() {
        return Err(Problem::stopping());
    }
    let prepared = served_team(&call, &tenant, &wanted.team).await?;
    let new_run = (prepared, &wanted, StartOptions::default());
    let (listing, is_replayed) = begin(app, &tenant, token, new_run, key.as_ref()).await?;
    created(&tenant, &listing.id, is_replayed).await
}

/// The answer to a request that has made a conversation, or that repeats one: what `GET` returns now.
pub(crate) async fn created(tenant: &Tenant, id: &LogId, is_replayed: bool) -> Reply {
    let conversation = whole(tenant, &listing(tenant, id).await?).await?;
    let mut response = json_reply(StatusCode::CREATED, &conversation)?;
    if let Ok(place) = HeaderValue::from_str(&format!("{PATH}/{}", conversation.id)) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(replayed(response, is_replayed))
}

/// Adds to a response that it repeats that of an earlier request, if it does.
pub(crate) fn replayed(mut response: Response<Body>, is_replayed: bool) -> Response<Body> {
    if is_replayed {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

async fn list(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let limit = call.limit(50, PAGE as u64)?;
    let after = call.query("cursor").map(|text| {
        Cursor::parse(text).ok_or_else(|| Problem::bad_request("`cursor` is not one that a page has given"))
    });
    let parent = call.query("parent").map(|id| LogId::new(id).map_err(|_| Problem::unknown_conversation()));
    let team = call.query("team").map(|team| (team, tenant.name_of_team(team)));
    let states = call.query("state").map(states).transpose()?.unwrap_or_default();
    let query = ListQuery {
        limit: Some(limit),
        after: after.transpose()?,
        id: call.query("id").map(str::to_owned),
        states: states.iter().flat_map(|state| state.of_logs.iter().copied()).collect(),
        team: team.clone().map(|(team, name)| name.unwrap_or_else(|| team.to_owned())),
        task: call.query("q").map(str::to_owned),
        since: call.number("since_ms")?.map(Timestamp),
        parent: parent.transpose()?,
    };
    // Another team can have the name of the one with this id.
    let team = team.filter(|(_, name)| name.is_some()).map(|(id, _)| id);
    let wanted = Wanted { tenant: &tenant, token, states, team };
    json_reply(StatusCode::OK, &wanted.page(query).await?)
}

/// What the store cannot tell of the conversations that it lists.
struct Wanted<'c> {
    tenant: &'c Tenant,
    token: &'c Token,
    states: Vec<WantedState>,
    /// The id of the team.
    team: Option<&'c str>,
}

impl Wanted<'_> {
    /// A page of the conversations that `query` lists and that are wanted. Others are passed over, up to a bound, so that a page is not
    /// empty because of them.
    async fn page(&self, mut query: ListQuery) -> Result<ConversationPage, Problem> {
        let limit = query.limit.unwrap_or(PAGE);
        let (mut conversations, mut read) = (Vec::new(), 0);
        loop {
            let page = self.tenant.runtime.list(&query).await?;
            read += page.logs.len();
            for (nth, listing) in page.logs.iter().enumerate() {
                conversations.extend(self.document(listing).await?);
                if conversations.len() >= limit && nth + 1 < page.logs.len() {
                    let cursor = Cursor { created: listing.created, id: listing.id.clone() };
                    return Ok(ConversationPage { conversations, next_cursor: Some(cursor.to_text()) });
                }
            }
            if page.next.is_none() || conversations.len() >= limit || read >= READ_AT_MOST {
                let next_cursor = page.next.map(|cursor| cursor.to_text());
                return Ok(ConversationPage { conversations, next_cursor });
            }
            (query.after, query.limit) = (page.next, Some(PAGE));
        }
    }

    /// The conversation, if it is wanted.
    async fn document(&self, listing: &Listing) -> Result<Option<Conversation>, Problem> {
        if !is_seen(self.tenant, self.token, listing).await {
            return Ok(None);
        }
        let conversation = describe(self.tenant, listing).await?;
        let is_wanted = self.team.is_none_or(|team| conversation.team == team)
            && (self.states.is_empty()
                || self.states.iter().any(|state| state.is_of(listing, &conversation)));
        Ok(is_wanted.then_some(conversation))
    }
}

/// A state by which the list is filtered.
struct WantedState {
    of_logs: Vec<LogState>,
    /// That of the document, where it also says whether a process runs the conversation: no list of logs knows that.
    shown: Option<ConversationState>,
}

impl WantedState {
    fn is_of(&self, listing: &Listing, conversation: &Conversation) -> bool {
        self.of_logs.contains(&listing.state()) && self.shown.is_none_or(|shown| shown == conversation.state)
    }
}

/// The states with these names, those of the documents or those of `polylogue runs`.
fn states(words: &str) -> Result<Vec<WantedState>, Problem> {
    words.split(',').map(state).collect()
}

fn state(word: &str) -> Result<WantedState, Problem> {
    use LogState::{Damaged, Done, Ended, Failed, Open, Paused, Waiting};
    let shown = match word {
        "running" => Some(ConversationState::Running),
        "halted" => Some(ConversationState::Halted),
        _ => None,
    };
    let of_logs = match word {
        "running" => vec![Open, Paused, Failed],
        "unfinished" => vec![Open],
        "waiting" => vec![Waiting],
        "halted" => vec![Open, Paused, Failed, Damaged],
        "closed" => vec![Done, Ended],
        "paused" => vec![Paused],
        "failed" => vec![Failed],
        "done" => vec![Done],
        "ended" => vec![Ended],
        "damaged" => vec![Damaged],
        _ => {
            return Err(Problem::bad_request(format!("there is no state `{word}`")).hint(
                "there are `running`, `waiting`, `halted` and `closed`, and those of `polylogue runs`",
            ));
        }
    };
    Ok(WantedState { of_logs, shown })
}

async fn get(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let listing = find(&tenant, token, call.param("id")).await?;
    json_reply(StatusCode::OK, &whole(&tenant, &listing).await?)
}

/// A conversation and its present state, with what lists leave out.
async fn whole(tenant: &Tenant, listing: &Listing) -> Result<Conversation, Problem> {
    let mut document = describe(tenant, listing).await?;
    if document.state == ConversationState::Closed {
        // Its run may have stored its last event since its entry in the list was read.
        document = describe(tenant, &self::listing(tenant, &listing.id).await?).await?;
    }
    let meta = tenant.runtime.store().meta(&listing.id).await?;
    (document.imported, document.bound) = (Some(is_imported(&meta)), bound_summary(&meta));
    document.node = tenant.runtime.node_of(&listing.id).await?;
    // A damaged log is shown, too.
    let exception = tenant.runtime.bound_exception(&listing.id).await.ok().flatten();
    document.bound_ended = exception.map(|why| why.to_string());
    Ok(document)
}

/// Refuses a title that is too long for lists.
fn check_title(title: &str) -> Result<(), Problem> {
    let most = Instruction::TITLE_CHARS;
    match title.trim().chars().count() > most {
        true => Err(Problem::bad_request(format!("the title is longer than {most} characters"))
            .at("/title", "too long")),
        false => Ok(()),
    }
}

/// The title is an event: lists, logs and forks agree on it, and a run that another process has is renamed by that process.
async fn patch(call: Call) -> Reply {
    let (token, NewTitle { title }) = (call.token()?, call.json()?);
    check_title(&title)?;
    let tenant = call.app.tenant(token)?;
    let Listing { id, .. } = find(&tenant, token, call.param("id")).await?;
    let steered = tenant.runtime.steer(&id, Instruction::ChangeTitle { title: title.into() }).await?;
    tenant.runs.note_change(&id);
    let status = match steered {
        // The process that runs it carries it out.
        Steered::Posted => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    json_reply(status, &describe(&tenant, &listing(&tenant, &id).await?).await?)
}

async fn remove(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let Listing { id, summary, .. } = find(&tenant, token, call.param("id")).await?;
    if tenant.runs.rests(&id) {
        // Its run only waits until it is resumed.
        stop(&tenant, &id, true).await;
        is_left(&tenant, &id).await;
    }
    if !tenant.runs.has_task(&id) {
        // A request that reads it has it open for a moment.
        is_left(&tenant, &id).await;
    }
    if tenant.runs.is_running(&id) {
        return Err(match summary.is_paused {
            true => Problem::busy(format!("`{id}` is paused, and turns that had begun have not ended"))
                .hint("wait until it is `halted`, or end them: `POST …/stop` with `{\"when\": \"now\"}`"),
            false => Problem::busy(format!("`{id}` is running")).hint("stop it first"),
        });
    }
    call.app.spending.settle_left(&tenant.name, tenant.runtime.store(), &id).await?;
    tenant.remove(&id).await?;
    take_back(&call.app, &tenant, &id);
    json_reply(StatusCode::OK, &Removed { removed: true })
}

async fn events(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let Listing { id, .. } = find(&tenant, token, call.param("id")).await?;
    let from = call.number("from")?.unwrap_or(0);
    let accepts = call.headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/event-stream") {
        let last = call.headers.get("last-event-id").map(|last| {
            let last = last.to_str().ok().and_then(|last| last.parse::<u64>().ok());
            last.ok_or_else(|| Problem::bad_request("`Last-Event-ID` must be the number of an event"))
        });
        let from = last.transpose()?.map_or(from, |last| last.saturating_add(1));
        let (token, native) = (token.clone(), Native::of(token));
        let follow = Follow { app: call.app.clone(), tenant, token, id, from, ends: true, begins: None };
        return respond(follow, native);
    }
    let limit = call.limit(EVENTS, EVENTS)?;
    // One more tells whether there is another page.
    let range = from..from.saturating_add(limit as u64).saturating_add(1);
    let events = tenant.runtime.store().read_range(&id, range).await?;
    let next = events.get(limit).map(|event| event.seq);
    let native = Native::of(token);
    let events = events.iter().take(limit).map(|event| native.shown(event).into_owned()).collect();
    json_reply(StatusCode::OK, &EventPage { events, next })
}
