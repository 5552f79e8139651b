//! `POST /v1/chat/completions`: from a request to a run, and from its events to the response.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use futures_util::StreamExt as _;
use polylogue_core::{Instruction, LimitOverrides, LogId, Message, Name, Part, Store as _, Subscription};
use polylogue_runtime::{Conversation, ForkPoint, Steered, fresh_id};
use polylogue_wire::Scope;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::chores;
use super::chunks::Chunks;
use super::document::{Head, now};
use super::history::{self, Continuation};
use super::outcome::{Finish, Outcome};
use super::pictures;
use super::request::ChatRequest;
use super::voice::{Show, Voice, content_of};
use crate::attendance::Begun;
use crate::call::{Call, Reply, json_reply};
use crate::conversation::{find, listing, served_team, state_of};
use crate::problem::Problem;
use crate::runs::{self, Opened, Stretch, run_stretch};
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
    if let Some(text) = chores::answer(&request) {
        return chore(&call, &request, text);
    }
    let beginning = join_or_begin(call.clone(), token.clone(), tenant.clone(), request.clone());
    // Not given up half-way when the client goes away.
    let (begun, begins, waiting) = tokio::spawn(beginning.in_current_span())
        .await
        .map_err(|_| Problem::internal("a mistake in the server ended this request"))??;
    let head = Head {
        id: format!("chatcmpl-{}-{}", begun.id, begun.from),
        created: now(),
        model: request.model.clone(),
        conversation: begun.id.to_string(),
    };
    let response = match request.streams {
        true => {
            let chunks = Chunks {
                head,
                usage: request.usage,
                is_kept_alive_by_chunks: request.is_kept_alive_by_chunks,
                voice: Voice::new(request.show, is_single),
                outcome: Outcome::default(),
            };
            stream(&call, (token, tenant), chunks, (begun, begins), waiting)
        }
        false => whole(&call, &tenant, (head, request.show), &begun, waiting).await,
    };
    response.map(|response| named(response, &request))
}

/// What a request has begun, and what happens in that from its beginning on, unless it has begun before.
type Started = (Begun, Option<oneshot::Receiver<Subscription>>);

/// Joins the run that an equal request has begun whose connection was lost, or begins.
async fn join_or_begin(
    call: Arc<Call>,
    token: Arc<Token>,
    tenant: Arc<Tenant>,
    request: Arc<ChatRequest>,
) -> Result<(Begun, Option<oneshot::Receiver<Subscription>>, Waiting), Problem> {
    let waits = |(begun, begins): Started| {
        let waiting = Waiting::new(&call.app, &tenant, &begun.id);
        (begun, begins, waiting)
    };
    let header = |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok());
    let key = header("idempotency-key");
    let retries = header("x-stainless-retry-count").and_then(|count| count.parse::<u32>().ok());
    let content = format!("{}\0{}\0{}", token.id, key.unwrap_or_default(), call.body_digest());
    let digest = blake3::hash(content.as_bytes());
    let is_repeated = key.is_some() || retries.is_some_and(|retries| retries > 0);
    // A repeated request waits until the first has begun.
    let _only = match is_repeated {
        true => Some(call.app.in_flight.enter(&digest.to_hex()).await),
        false => None,
    };
    if let Some(begun) = call.app.attendance.find(&digest).filter(|_| is_repeated) {
        return Ok(waits((begun, None)));
    }
    let (begun, begins) = begin(&call, &token, &tenant, &request).await?;
    call.app.attendance.note(digest, &begun);
    Ok(waits((begun, begins)))
}

async fn begin(
    call: &Call,
    token: &Token,
    tenant: &Arc<Tenant>,
    request: &ChatRequest,
) -> Result<Started, Problem> {
    if call.app.is_stopping() {
        return Err(Problem::stopping());
    }
    let found = match &request.conversation {
        Some(id) => Some(Continuation::Tip(find(tenant, token, id).await?.id)),
        None => {
            let name = tenant.name_of_team(&request.model).unwrap_or_default();
            history::find(tenant, token, name, request).await?
        }
    };
    match found {
        None => begin_new(call, token, tenant, request).await,
        Some(Continuation::Tip(id)) => say(call, token, tenant, &id, request).await,
        Some(Continuation::Earlier { id, events, is_edited }) => {
            let point = ForkPoint { event: Some(events), text: None, is_edited };
            let fork = tenant.runtime.fork_as(&id, &point, fresh_id(), None).await?;
            say(call, token, tenant, &fork.id, request).await
        }
    }
}

async fn begin_new(
    call: &Call,
    token: &Token,
    tenant: &Arc<Tenant>,
    request: &ChatRequest,
) -> Result<Started, Problem> {
    let prepared = served_team(call, tenant, &request.model).await?;
    prepared.reread_memory().await?;
    let slot = call.app.join(token).await?;
    let limits = LimitOverrides { reply_tokens: request.max_tokens, ..LimitOverrides::default() };
    let of_team = prepared.run().with_task(history::task(&request.messages)).with_limits(limits);
    let of_team = of_team.with_budgets(slot.payer.budgets()).with_daily(slot.payer.daily());
    let id = fresh_id();
    let conversation = tenant.runtime.begin_as(&of_team, id.clone(), None).await?;
    let pictures = request.messages.iter().flat_map(|message| &message.pictures);
    conversation.attach(pictures.cloned().map(Part::Media).collect());
    tenant.runs.enter(&id);
    let opened = Opened { conversation, prepared };
    let (follower, begins) = oneshot::channel();
    let stretch = Stretch { follower: Some(follower), reply_tokens: None };
    runs::begin(&call.app, tenant, &id, slot, (Some(opened), stretch));
    Ok((Begun { id, from: 0 }, Some(begins)))
}

/// Says the user's message in a conversation: as the answer to its oldest question, if it waits for one.
async fn say(
    call: &Call,
    token: &Token,
    tenant: &Arc<Tenant>,
    id: &LogId,
    request: &ChatRequest,
) -> Result<Started, Problem> {
    if request.max_tokens.is_some() && tenant.runs.is_running(id) {
        return Err(Problem::busy(format!("`{id}` is running: a limit is for what has not begun"))
            .hint("wait until it has ended, or leave `max_tokens` out"));
    }
    let (from, text) = (listing(tenant, id).await?.summary.events, request.last());
    let has_pictures = !request.last_pictures().is_empty();
    let instruction = match tenant.runtime.open_questions(id).await?.first() {
        // A question can be whether a call is allowed.
        Some(_) if !token.has(Scope::Answer) => return Err(Problem::may_not_answer()),
        Some(_) if has_pictures => {
            return Err(Problem::unsupported_parameter("the team waits for an answer, which is a text")
                .at(format!("/messages/{}", request.messages.len() - 1), "no pictures")
                .hint("answer with text, and send the picture afterwards"));
        }
        Some(open) => Instruction::Answer {
            question: open.seq,
            text: text.into(),
            by: Some(token.name.as_str().into()),
        },
        None => {
            let mut message = Message::text(Name::user(), text);
            message.parts.extend(request.last_pictures().iter().cloned().map(Part::Media));
            Instruction::Send(message)
        }
    };
    let slot = call.app.join(token).await?;
    if let Steered::Refused(why) = tenant.runtime.steer(id, instruction).await? {
        return Err(Problem::refused(why.to_string()));
    }
    let (follower, begins) = oneshot::channel();
    // One of an earlier request does not count for this one.
    let reply_tokens = Some(request.max_tokens.unwrap_or(Conversation::ANY_REPLY_LENGTH));
    run_stretch(&call.app, tenant, id, slot, Stretch { follower: Some(follower), reply_tokens });
    Ok((Begun { id: id.clone(), from }, Some(begins)))
}

fn stream(
    call: &Call,
    (token, tenant): (Arc<Token>, Arc<Tenant>),
    chunks: Chunks,
    (begun, begins): Started,
    waiting: Waiting,
) -> Reply {
    let permit = call.app.stream_of(&token)?;
    let Begun { id, from } = begun;
    let follow = Follow { app: Arc::clone(&call.app), tenant, token, id, from, ends: false, begins };
    let texts = texts(follow, chunks).map(move |text| {
        // Dropped with the stream.
        let _client = &waiting;
        text
    });
    event_stream(texts, permit)
}

async fn whole(
    call: &Call,
    tenant: &Tenant,
    (head, show): (Head, Show),
    begun: &Begun,
    waiting: Waiting,
) -> Reply {
    let (mut changes, mut stopping) = (tenant.runs.changes_of(&begun.id), call.app.stopping.subscribe());
    while tenant.runs.is_running(&begun.id) {
        tokio::select! {
            () = changes.changed() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return Err(Problem::stopping()),
        }
    }
    drop(waiting);
    let mut outcome = Outcome::default();
    let events = tenant.runtime.store().read(&begun.id, begun.from).await?;
    events.iter().for_each(|event| outcome.add(event));
    let mut finish = outcome.finish().map_err(Problem::internal)?;
    finish.content = content_of(show, &events, &finish.content);
    let state = state_of(tenant, &begun.id).await?;
    let extension = outcome.extension(&head.conversation, &state);
    json_reply(StatusCode::OK, &completion(&head, &finish, outcome.usage(), Some(extension)))
}

fn completion(head: &Head, finish: &Finish, usage: Option<Value>, extension: Option<Value>) -> Value {
    let mut document = head.document("chat.completion");
    if let Some(fields) = document.as_object_mut() {
        let message = json!({"role": "assistant", "content": finish.content, "refusal": null});
        let choice =
            json!({"index": 0, "message": message, "finish_reason": finish.reason, "logprobs": null});
        fields.insert("choices".into(), json!([choice]));
        fields.extend(usage.map(|usage| ("usage".to_owned(), usage)));
        fields.extend(extension.map(|extension| ("polylogue".to_owned(), extension)));
    }
    document
}

/// The answer to a request of a user interface.
fn chore(call: &Call, request: &ChatRequest, content: String) -> Reply {
    let head = Head {
        id: format!("chatcmpl-{}", fresh_id()),
        created: now(),
        model: request.model.clone(),
        conversation: String::new(),
    };
    let finish = Finish { reason: "stop", content };
    if !request.streams {
        return json_reply(StatusCode::OK, &completion(&head, &finish, None, None));
    }
    let delta = |delta: Value, reason: Option<&str>| {
        let mut chunk = head.document("chat.completion.chunk");
        if let Some(fields) = chunk.as_object_mut() {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
            fields.insert("choices".into(), json!([choice]));
        }
        format!("data: {chunk}\n\n")
    };
    let first = delta(json!({"role": "assistant", "content": finish.content}), None);
    let text = first + &delta(json!({}), Some("stop")) + "data: [DONE]\n\n";
    let permit = call.app.stream_of(call.token()?)?;
    event_stream(futures_util::stream::once(async { text }), permit)
}

/// The same response, which names the fields that were not used.
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
