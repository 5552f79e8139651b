//! What is checked of every request before its token: the name it was sent to, and the page that sent it. Every response passes here, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, HOST, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};
use axum::middleware::Next;
use tracing::info;

use crate::addresses::Entered;
use crate::app::App;
use crate::problem::{ErrorForm, Problem};
use crate::request::{Proxied, REQUEST_ID, RequestId};
use crate::table::find;
use crate::token::Token;

/// Checks a request, passes it on, and logs it in one line without its contents.
pub(crate) async fn perimeter(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let (begun, id) = (Instant::now(), RequestId::of(request.headers()));
    request.extensions_mut().insert(id.clone());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let known = route.as_deref().and_then(|path| find(&method, path)).map(|route| route.path);
    let mut response = match admit(&app, &request) {
        Ok(entered) => {
            let response = next.run(request).await;
            match entered {
                Some(entered) => response.map(|body| entered.until_sent(body)),
                None => response,
            }
        }
        Err(problem) => problem.response(ErrorForm::of_path(request.uri().path()), &id.0),
    };
    let token = response.extensions_mut().remove::<Arc<Token>>();
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    app.metrics.count(known, &method, response.status().as_u16(), begun.elapsed());
    info!(
        request_id = %id.0,
        %method,
        route = route.as_deref().unwrap_or("none"),
        status = response.status().as_u16(),
        ms = begun.elapsed().as_millis(),
        token = token.as_deref().map_or("none", |token| &token.id),
        "request"
    );
    response
}

/// Checks a request, and counts it until its response is sent if a trusted proxy passes it on: its client has no connection of its own.
fn admit(app: &App, request: &Request) -> Result<Option<Entered>, Problem> {
    check(app, request)?;
    let Some(Proxied(client)) = request.extensions().get() else { return Ok(None) };
    app.proxied.enter(*client).map(Some).ok_or_else(|| {
        let most = app.limits.connections_per_address;
        Problem::too_many(format!("{most} requests of this address are under way"))
            .hint("close an event stream, or wait for a response")
            .retry_after(Duration::from_secs(1))
    })
}

/// Refuses requests to other names and from pages of other sites: a name that an attacker resolves to this machine is no name
/// of this server.
fn check(app: &App, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let mut hosts = values(headers, HOST);
    let host = hosts.next().and_then(|host| host.parse::<Authority>().ok());
    let is_own = |host: &Authority| app.names.is_own(host.host());
    // Another program could follow a second header, or the host of the target.
    let is_clear = hosts.next().is_none() && request.uri().authority().is_none_or(is_own);
    let Some(host) = host.filter(|host| is_clear && is_own(host)) else {
        return Err(Problem::wrong_host("the header `Host` does not name this server")
            .hint("use the address that the server prints, or start it with `--public-url`"));
    };
    match values(headers, ORIGIN).all(|origin| app.names.is_allowed_origin(origin, &host)) {
        true => Ok(()),
        false => Err(Problem::foreign_origin("pages of this origin may not use the server")
            .hint("allow it with `--allow-origin`")),
    }
}

/// The values of a header. `?` is one that is no text.
fn values(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"))
}
