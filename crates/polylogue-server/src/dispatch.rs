//! From a request to the handler of its route, and from its result to a response.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Query, RawPathParams};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Request, Response};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Limited};
use polylogue_config::suggest;
use serde_json::Value;
use tracing::Instrument as _;

use crate::app::App;
use crate::call::{Call, Reply};
use crate::fields;
use crate::problem::Problem;
use crate::request::{Peer, RequestId};
use crate::route::{Access, Route};
use crate::token::Token;

/// Runs the handler of `route`, once everything about the request is known to be in order.
pub(crate) async fn handle(app: Arc<App>, route: &'static Route, request: Request<Body>) -> Response<Body> {
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_default();
    let handled = AssertUnwindSafe(async {
        let call = read(app, route, request).await?;
        complete(route, call).await
    });
    let reply = handled.catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(request_id = %id.0, route = route.path, "a handler panicked");
        Err(Problem::internal("a mistake in the server ended this request")
            .hint("report it with the request id"))
    });
    reply.unwrap_or_else(|problem| problem.response(route.form, &id.0))
}

/// Runs the handler. What is to be completed is not given up half-way when its client goes away.
async fn complete(route: &Route, call: Call) -> Reply {
    let handled = (route.handler)(call);
    if !route.is_completed {
        return handled.await;
    }
    match tokio::spawn(handled.in_current_span()).await {
        Ok(reply) => reply,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(Problem::stopping()),
        },
    }
}

async fn read(app: Arc<App>, route: &'static Route, request: Request<Body>) -> Result<Call, Problem> {
    let (mut parts, body) = request.into_parts();
    let params = params(&mut parts).await?;
    let query = query(&mut parts, route).await?;
    let body = match route.body {
        Some(schema) => {
            let body = json(&app, route, &parts, body).await?;
            if !route.takes_unknown_fields {
                fields::check(&body, &schema(), "")?;
            }
            body
        }
        None => Value::Null,
    };
    let token = parts.extensions.remove::<Arc<Token>>();
    if token.is_none() && route.access != Access::Open {
        return Err(Problem::internal("the request was not checked for its token"));
    }
    if let Some(token) = &token {
        app.open_tenant(token).await?.prepare(&*app.source).await;
    }
    let peer = parts.extensions.get::<Peer>().copied();
    Ok(Call { app, path: route.path, peer, token, params, query, headers: parts.headers, body })
}

async fn params(parts: &mut Parts) -> Result<Vec<(String, String)>, Problem> {
    let raw = RawPathParams::from_request_parts(parts, &()).await;
    let raw = raw.map_err(|_| Problem::bad_request("the path is not UTF-8"))?;
    Ok(raw.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The parameters of the query, all of which the route must have, each at most once.
async fn query(parts: &mut Parts, route: &Route) -> Result<Vec<(String, String)>, Problem> {
    let query = Query::<Vec<(String, String)>>::from_request_parts(parts, &()).await;
    let Query(query) = query.map_err(|error| Problem::bad_request(format!("the query: {error}")))?;
    if let Some((name, _)) = query.iter().find(|(name, _)| !route.query.contains(&name.as_str())) {
        let hint = match route.query.is_empty() {
            true => "this route has no parameters".to_owned(),
            false => suggest::hint(name, route.query.iter().copied()),
        };
        return Err(Problem::bad_request(format!("there is no query parameter `{name}`")).hint(hint));
    }
    match repeated(&query) {
        None => Ok(query),
        Some(name) => {
            let what = format!("the query parameter `{name}` is there more than once");
            Err(Problem::bad_request(what).hint("send it once"))
        }
    }
}

/// The first name that is there for the second time.
fn repeated(query: &[(String, String)]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    query.iter().map(|(name, _)| name.as_str()).find(|name| !seen.insert(*name))
}

/// The body, which must be JSON of the sizes that are allowed.
async fn json(app: &App, route: &Route, parts: &Parts, body: Body) -> Result<Value, Problem> {
    let media = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(Problem::no_json("the body must have the type `application/json`")
            .hint("send the header `Content-Type: application/json`"));
    }
    let coding = parts.headers.get(CONTENT_ENCODING);
    if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::no_json("the body must not be compressed")
            .hint("leave the header `Content-Encoding` out"));
    }
    let limits = &app.limits;
    let most = if route.is_large { limits.file_bytes } else { limits.body_bytes };
    let too_large =
        || Problem::too_large(format!("the body has more than {most} bytes")).hint("send less text at once");
    let length =
        parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let body = tokio::time::timeout(limits.body_time, Limited::new(body, most).collect()).await;
    let body = body.map_err(|_| Problem::timed_out("the body did not arrive in time"))?;
    let bytes = body.map_err(|error| match error.is::<http_body_util::LengthLimitError>() {
        true => too_large(),
        false => Problem::bad_request("the body was cut off"),
    })?;
    parse(&bytes.to_bytes(), limits.json_depth)
}

fn parse(bytes: &Bytes, depth: usize) -> Result<Value, Problem> {
    if nesting(bytes) > depth {
        return Err(Problem::bad_request(format!("the body is nested deeper than {depth} levels")));
    }
    let body: Value = serde_json::from_slice(bytes)
        .map_err(|error| Problem::not_parsed(format!("the body is not JSON: {error}")))?;
    match body {
        Value::Object(_) => Ok(body),
        _ => Err(Problem::bad_request("the body must be a JSON object").hint("send `{}` for all defaults")),
    }
}

/// How deep brackets are nested, outside of texts.
fn nesting(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_texts_do_not_nest() {
        assert_eq!(nesting(br#"{"a": "[[[\"[[", "b": [1, {}]}"#), 3);
        assert_eq!(nesting(b""), 0);
        assert_eq!(nesting("[".repeat(100_000).as_bytes()), 100_000);
    }
}
