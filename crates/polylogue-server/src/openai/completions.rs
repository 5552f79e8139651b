//! `POST /v1/chat/completions`: from a request to a run, and from its events to the response.

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use futures_util::StreamExt as _;
use polylogue_core::{Store as _, Subscription};
use polylogue_runtime::stored::fresh_id;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::Instrument as _;

use super::beginning::{Request, Started, join_or_begin};
use super::chores::{self, Chore};
use super::chunks::{Chunks, is_done};
use super::document::{Head, now};
use super::outcome::{Finish, Outcome};
use super::pictures;
use super::request::ChatRequest;
use super::voice::Voice;
use super::whole::{End, Whole};
use crate::api::conversations::replayed;
use crate::attendance::Begun;
use crate::call::{Call, Reply, json_reply};
use crate::conversation::{served_team, state_of};
use crate::problem::Problem;
use crate::tail::{Follow, event_stream, texts};
use crate::tenants::Tenant;
use crate::token::Token;
use crate::waiting::Waiting;

/// The schema of the fields that are used. Others are named in the response and change nothing.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": {"type": "string", "description": "The id of a team"},
            "messages": {"type": "array", "items": {"type": "object"}},
            "response_format": {"type": ["object", "null"], "description": "`text`, or the form that the team declares: `json_object`, or `json_schema` with its schema"},
            "stream": {"type": "boolean"},
            "stream_options": {"type": "object"},
            "metadata": {"type": "object", "description": "`conversation`: the id of the conversation to continue"},
            "max_completion_tokens": {"type": ["integer", "null"], "minimum": 1, "description": "The most tokens of a reply of a participant, below the `max_tokens` of the team. A reply that reaches it is cut off"},
            "max_tokens": {"type": ["integer", "null"], "minimum": 1, "description": "The same, by its former name"},
        },
    })
}

pub(super) async fn complete(call: Call) -> Reply {
    let request = Arc::new(ChatRequest::of(&call)?);
    let call = Arc::new(call);
    let token = Arc::clone(call.token()?);
    let tenant = call.app.tenant(&token)?;
    let team = served_team(&call, &tenant, &request.model).await;
    let team = team.map_err(|problem| problem.of_model(&request.model))?;
    let is_single = team.team().has_single_reply();
    request.form.iter().try_for_each(|form| form.check(team.team()))?;
    pictures::check(&team, request.pictures.iter())?;
    if call.app.chat.answers_chores
        && let Some(chore) = chores::answer(&request)
    {
        return answered(&call, &request, chore);
    }
    // Before anything begins: a run whose stream is refused would be paid for, and its client would not know of it.
    let permit = request.streams.then(|| call.app.stream_of(&token)).transpose()?;
    let asked = Request {
        call: Arc::clone(&call),
        token: Arc::clone(&token),
        tenant: Arc::clone(&tenant),
        chat: Arc::clone(&request),
    };
    // Not given up half-way when the client goes away.
    let beginning = tokio::spawn(join_or_begin(asked).in_current_span());
    let Started { begun, begins, mut waiting, client, is_replayed } =
        beginning.await.map_err(|_| Problem::internal("a mistake in the server ended this request"))??;
    let head = Head {
        id: format!("chatcmpl-{}-{}", begun.id, begun.from),
        created: now(),
        model: request.model.clone(),
        conversation: begun.id.to_string(),
    };
    let sent = waiting.notes_disconnect();
    let outcome = outcome_of(&tenant, &begun).await?;
    let response = match permit {
        Some(permit) => {
            let chunks = Chunks {
                head,
                usage: request.usage,
                is_kept_alive_by_chunks: request.is_kept_alive_by_chunks,
                voice: Voice::new(request.show, is_single),
                outcome,
                sent,
            };
            stream(&call, (token, tenant), chunks, (begun, begins), (waiting, permit))
        }
        None => {
            let response = Whole::new(head, request.show, outcome);
            whole(&call, (token, tenant), response, (begun, begins), waiting).await
        }
    };
    let response = replayed(response?.map(|body| client.receives(body)), is_replayed);
    Ok(named(response, &request))
}

/// What has happened because of a request before anything has: its turn begins with what it has sent.
async fn outcome_of(tenant: &Tenant, begun: &Begun) -> Result<Outcome, Problem> {
    let Some(key) = &begun.message else { return Ok(Outcome::default()) };
    let inbox = tenant.runtime.store().inbox(&begun.id, 0).await?;
    let own = inbox.iter().find(|(_, message)| *message.key == **key);
    Ok(Outcome::of_message(own.map(|(number, _)| *number)))
}

fn stream(
    call: &Call,
    (token, tenant): (Arc<Token>, Arc<Tenant>),
    chunks: Chunks,
    (begun, begins): (Begun, Option<oneshot::Receiver<Subscription>>),
    (mut waiting, permit): (Waiting, OwnedSemaphorePermit),
) -> Reply {
    let Begun { id, from, .. } = begun;
    let follow = Follow { app: Arc::clone(&call.app), tenant, token, id, from, ends: false, begins };
    let texts = texts(follow, chunks).map(move |text| {
        // Dropped with the stream.
        if is_done(&text) {
            waiting.end();
        }
        text
    });
    event_stream(texts, permit)
}

/// The response as a whole, which follows the conversation in whatever process that runs.
async fn whole(
    call: &Call,
    (token, tenant): (Arc<Token>, Arc<Tenant>),
    response: Whole,
    (begun, begins): (Begun, Option<oneshot::Receiver<Subscription>>),
    mut waiting: Waiting,
) -> Reply {
    let Begun { id, from, .. } = begun;
    let (app, of) = (Arc::clone(&call.app), Arc::clone(&tenant));
    let follow = Follow { app, tenant: of, token, id: id.clone(), from, ends: false, begins };
    let mut texts = pin!(texts(follow, response));
    let end = loop {
        match texts.next().await {
            Some(text) => {
                if let Some(end) = End::of(&text) {
                    break end;
                }
            }
            None => {
                // It was removed, or the token was revoked.
                state_of(&tenant, &id).await?;
                return Err(Problem::unauthorized("the token was revoked"));
            }
        }
    };
    match end {
        End::Document(document) => {
            waiting.end();
            json_reply(StatusCode::OK, &document)
        }
        End::Failed(why) => {
            waiting.end();
            Err(Problem::internal(why))
        }
        End::Interrupted => Err(Problem::stopping()),
    }
}

/// The answer to a request of a user interface.
fn answered(call: &Call, request: &ChatRequest, Chore { kind, answer: content }: Chore) -> Reply {
    let head = Head {
        id: format!("chatcmpl-{}", fresh_id()),
        created: now(),
        model: request.model.clone(),
        conversation: String::new(),
    };
    let finish = Finish { reason: "stop", content };
    let extension = json!({"chore": kind});
    if !request.streams {
        return json_reply(StatusCode::OK, &head.completion(&finish, None, extension));
    }
    let delta = |delta: Value, reason: Option<&str>| {
        let mut chunk = head.document("chat.completion.chunk");
        if let Some(fields) = chunk.as_object_mut() {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
            fields.insert("choices".into(), json!([choice]));
            fields.insert("polylogue".into(), extension.clone());
        }
        format!("data: {chunk}\n\n")
    };
    let first = delta(json!({"role": "assistant", "content": finish.content}), None);
    let text = first + &delta(json!({}), Some("stop")) + "data: [DONE]\n\n";
    let permit = call.app.stream_of(call.token()?)?;
    event_stream(futures_util::stream::once(async { text }), permit)
}

/// Adds the names of the fields that were not used to a response.
fn named(mut response: Response<Body>, request: &ChatRequest) -> Response<Body> {
    let plain = |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let ignored: Vec<&str> = request.ignored.iter().filter(plain).map(String::as_str).collect();
    if let Ok(value) = HeaderValue::from_str(&ignored.join(", "))
        && !ignored.is_empty()
    {
        response.headers_mut().insert(HeaderName::from_static("x-polylogue-ignored"), value);
    }
    response
}
