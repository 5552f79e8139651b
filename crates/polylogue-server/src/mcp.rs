//! MCP over HTTP: teams are tools. The protocol is that of `polylogue-mcp`; here a request gets its tenant, and a call its run.

mod arguments;
mod call;
mod early;
mod frames;
mod host;
mod questions;
mod result;
mod tasks;
mod visitor;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use polylogue_mcp::serve::{HttpBody, HttpOptions, HttpServer};
use serde_json::{Value, json};

use crate::call::{Call, Reply, json_reply};
use crate::issuer::RESOURCE_METADATA;
use crate::limits::ServerLimits;
use crate::problem::{ErrorForm, Problem};
use crate::revocation::token_ended;
use crate::route::{Access, Route};
use crate::transport::Transport;
use polylogue_wire::Scope;

use host::Teams;
use visitor::Visitor;

impl Transport for HttpServer<Teams> {
    fn respond<'a>(&'a self, request: Request<Bytes>, owner: &'a str) -> BoxFuture<'a, Response<HttpBody>> {
        Box::pin(self.respond(request, owner))
    }

    fn close(&self) {
        self.close();
    }
}

/// Names a session.
pub(crate) const SESSION: &str = "mcp-session-id";
/// The headers that pages of other sites send.
pub(crate) const HEADERS: [&str; 4] = [SESSION, "mcp-protocol-version", "mcp-method", "mcp-name"];

/// The description of all tools together, for hosts.
const ABOUT: &str = "Each tool is a team of agents who work on a task by talking with one another. A call can take minutes, and sends \
    progress notifications. The conversation is kept: `conversation` in the result continues it in a later call.";

/// When clients connect again to an event stream of a session.
const RETRY: Duration = Duration::from_secs(2);

const ALL: &str = "/mcp";
const ONE: &str = "/mcp/{team}";

pub(crate) fn routes() -> Vec<Route> {
    let run = Access::Scope(Scope::Run);
    let mut routes = Vec::new();
    for path in [ALL, ONE] {
        let post = Route::new(Method::POST, path, run, "MCP: a message of a client", |call| {
            Box::pin(respond(Method::POST, call))
        });
        let get = Route::new(Method::GET, path, run, "MCP: messages of a session to its client", |call| {
            Box::pin(respond(Method::GET, call))
        });
        let delete = Route::new(Method::DELETE, path, run, "MCP: ends a session", |call| {
            Box::pin(respond(Method::DELETE, call))
        });
        // A call runs what it begins in a task of its own.
        let post = post.body(schema).with_unknown_fields().not_completed();
        routes.extend([post, get, delete].map(|route| route.form(ErrorForm::JsonRpc)));
    }
    // Clients look here for an authorization server, without a token, and must be told if there is none.
    for path in ["/.well-known/{*path}", "/mcp/.well-known/{*path}"] {
        let about = "Where metadata of an authorization server would be";
        let route =
            Route::new(Method::GET, path, Access::Open, about, |call| Box::pin(authorization_server(call)));
        routes.push(route.undocumented());
    }
    routes
}

/// The schema of a message of JSON-RPC 2.0.
fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["jsonrpc"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer"]},
            "method": {"type": "string"},
            "params": {"type": "object"},
            "result": {"type": "object"},
            "error": {"type": "object"},
        },
    })
}

pub(crate) fn server(limits: &ServerLimits) -> impl Transport + use<> {
    let options = HttpOptions {
        sessions_per_owner: limits.mcp_sessions_per_token,
        session_time: limits.mcp_session_time,
        comment_every: limits.comment_every,
        retry: RETRY,
        body_bytes: limits.body_bytes,
    };
    HttpServer::new(Teams, ABOUT, options)
}

/// Where clients of the resource get tokens. Metadata of an authorization server itself is never here.
async fn authorization_server(call: Call) -> Reply {
    let nowhere = "this server is no authorization server, and nothing is here";
    let Some(issuer) = &call.app.issuer else {
        return Err(Problem::not_found(
            "this server has no authorization server: tokens are made by `polylogue token new`",
        )
        .hint("send `Authorization: Bearer ply_…`"));
    };
    match issuer.document(call.param("path")).filter(|_| !call.path.starts_with("/mcp/")) {
        Some(document) => json_reply(StatusCode::OK, &document),
        None => Err(Problem::not_found(nowhere)
            .hint(format!("`/.well-known/{RESOURCE_METADATA}` names the authorization server"))),
    }
}

async fn respond(method: Method, call: Call) -> Reply {
    if method == Method::POST {
        check_message(&call.body)?;
    }
    let visitor = Visitor::of(&call)?;
    let permit = call.app.stream_of(&visitor.token)?;
    let owner = format!("{}\0{}", visitor.token.id, visitor.team.as_deref().unwrap_or_default());
    let request = request(method, &call, visitor.clone())?;
    let app = Arc::clone(&call.app);
    let responding = Box::pin(async move { app.mcp.respond(request, &owner).await });
    let ended = token_ended(Arc::clone(&call.app), Arc::clone(&visitor.token));
    let head = match call.body.get("method").is_some_and(|method| method == "initialize") {
        // Its head names the session, so that it is waited for.
        true => early::Head::Response(responding.await),
        false => early::head_of(responding).await,
    };
    match head {
        early::Head::Response(response) if early::is_stream(&response) => {
            let session = response.headers().get(SESSION).cloned();
            let source = early::Source::of(response);
            let mut reply = early::stream(source, (ended, permit), call.app.limits.comment_every)?;
            reply.headers_mut().extend(session.map(|id| (HeaderName::from_static(SESSION), id)));
            Ok(reply)
        }
        early::Head::Response(response) => plain(response).await,
        early::Head::Later(responding) => {
            let source = early::Source::Later(responding);
            early::stream(source, (ended, permit), call.app.limits.comment_every)
        }
    }
}

/// Refuses a body that is no message.
fn check_message(body: &Value) -> Result<(), Problem> {
    let has = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    let is_message =
        body.get("method").is_some_and(Value::is_string) || (has("id") && (has("result") || has("error")));
    match body.get("jsonrpc").is_some_and(|version| version == "2.0") && is_message {
        true => Ok(()),
        false => Err(Problem::bad_request("the body is not a message of JSON-RPC 2.0")
            .hint("send `jsonrpc`, `id`, `method` and `params`, one message at a time")),
    }
}

fn request(method: Method, call: &Call, visitor: Visitor) -> Result<Request<Bytes>, Problem> {
    let body = match &call.body {
        Value::Null => Bytes::new(),
        body => body.to_string().into(),
    };
    let mut request = Request::builder().method(method).uri(call.path.replace("{team}", "team")).body(body);
    if let Ok(request) = &mut request {
        *request.headers_mut() = call.headers.clone();
        request.extensions_mut().insert(visitor);
    }
    request.map_err(|error| Problem::internal(error.to_string()))
}

/// A response that is no event stream. The errors of the transport are texts, and become messages.
async fn plain(response: Response<HttpBody>) -> Reply {
    let is_json = response.headers().contains_key(CONTENT_TYPE);
    let (mut parts, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let body = body.to_bytes();
    if parts.status.is_client_error() && !is_json {
        let problem = error(parts.status, &String::from_utf8_lossy(&body));
        return Err(problem.allow(parts.headers.remove(ALLOW)));
    }
    if parts.status.is_server_error() {
        tracing::error!(status = parts.status.as_u16(), error = %String::from_utf8_lossy(&body), "mcp");
        return Err(Problem::internal("the message cannot be handled").hint("the log of the server says why"));
    }
    parts.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn error(status: StatusCode, text: &str) -> Problem {
    match status {
        StatusCode::NOT_FOUND => Problem::not_found(text).hint("send `initialize` again"),
        StatusCode::METHOD_NOT_ALLOWED => Problem::method_not_allowed(text)
            .hint("since 2026-07-28 there are no sessions: send every message by `POST`"),
        StatusCode::NOT_ACCEPTABLE => Problem::not_acceptable(text)
            .hint("send the header `Accept: application/json, text/event-stream`"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE | StatusCode::BAD_REQUEST => Problem::bad_request(text),
        StatusCode::TOO_MANY_REQUESTS => Problem::too_many(text)
            .hint("end a session with `DELETE`, or use one session for all calls")
            .retry_after(Duration::from_secs(1)),
        _ => Problem::bad_request(text),
    }
}
