//! Who sends a request: one layer around the whole router, which lets requests without a token through to open routes only.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use axum::middleware::Next;

use crate::app::App;
use crate::issuer::is_form_of;
use crate::problem::{ErrorForm, Problem};
use crate::request::{Peer, RequestId};
use crate::route::{Access, Route};
use crate::session_cookie;
use crate::table::find;
use crate::token::{Token, TokenKind};

const HINT: &str = "send `Authorization: Bearer ply_…`; `polylogue token new` makes a token";

/// Passes a request on if its token allows it, and once the server has continued what it was running before a restart.
pub(crate) async fn auth(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response<Body> {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = path.as_deref().and_then(|path| find(request.method(), path));
    let form = route.map_or_else(|| ErrorForm::of_path(request.uri().path()), |route| route.form);
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_default();
    // The body of a request cannot be shared, so that its parts are read before anything is waited for.
    let peer = request.extensions().get::<Peer>().copied();
    let presented = presented(&app, &request).map(|(kind, text)| (kind, text.to_owned()));
    let token = match admit(&app, route, peer, presented).await {
        Ok(token) => token.map(Arc::new),
        Err(problem) => {
            let mut response = problem.response(form, &id.0);
            challenge(&app, route, &request, &mut response);
            return response;
        }
    };
    if let Some(token) = &token {
        app.tokens.note_use(token);
        // A client may be faster than the server: what is still to be continued looks as if it had been stopped.
        let _ = app.resumed.subscribe().wait_for(|resumed| *resumed).await;
        request.extensions_mut().insert(Arc::clone(token));
    }
    let mut response = next.run(request).await;
    if let Some(token) = token {
        // For the log line.
        response.extensions_mut().insert(token);
    }
    response
}

/// The token of a request, unless it goes to an open route.
async fn admit(
    app: &App,
    route: Option<&Route>,
    peer: Option<Peer>,
    presented: Result<(TokenKind, String), Problem>,
) -> Result<Option<Token>, Problem> {
    if route.is_some_and(|route| route.access == Access::Open) {
        return Ok(None);
    }
    let (kind, text) = presented?;
    // Looked up before anything else: who guesses locks out no one who shares the address, such as that of a proxy.
    let token = match identified(app, kind, &text).await {
        Err(problem) if problem.is_unauthorized() => {
            let wait = peer.and_then(|peer| app.failed_logins.take(peer).err());
            return Err(wait.map_or(problem, |wait| {
                Problem::too_many("too many wrong tokens came from this address").retry_after(wait)
            }));
        }
        token => token?,
    };
    app.requests
        .take(token.id.clone())
        .map_err(|wait| Problem::too_many("this token sends too many requests").retry_after(wait))?;
    match route.map(|route| route.access) {
        Some(Access::Scope(scope)) if !token.has(scope) => {
            Err(Problem::forbidden(format!("the token does not have the scope `{scope}`"))
                .hint(format!("`polylogue token new --scope {scope}` makes one that has")))
        }
        _ => Ok(Some(token)),
    }
}

/// The token with this text: one of this server, or of its authorization server.
async fn identified(app: &App, kind: TokenKind, text: &str) -> Result<Token, Problem> {
    if let Some(issuer) = app.issuer.as_ref().filter(|_| kind == TokenKind::Key && is_form_of(text)) {
        return issuer.token(text).await;
    }
    let token = app.tokens.find_as(kind, text)?;
    token.ok_or_else(|| Problem::unauthorized("the token is unknown, revoked or expired").hint(HINT))
}

/// Says in a refusal where a client gets a token, if an authorization server makes them.
fn challenge(app: &App, route: Option<&Route>, request: &Request, response: &mut Response<Body>) {
    let Some(issuer) = &app.issuer else { return };
    let is_presented = request.headers().contains_key(AUTHORIZATION);
    let error = match response.status() {
        StatusCode::UNAUTHORIZED => is_presented.then_some("invalid_token"),
        StatusCode::FORBIDDEN if is_presented => Some("insufficient_scope"),
        _ => return,
    };
    let scope = route.and_then(|route| match route.access {
        Access::Scope(scope) => Some(scope),
        _ => None,
    });
    if let Ok(value) = HeaderValue::from_str(&issuer.challenge(request.uri().path(), scope, error)) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
}

/// The text of the token and what has it: a header, or else the cookie of the page.
fn presented<'r>(app: &App, request: &'r Request) -> Result<(TokenKind, &'r str), Problem> {
    let headers = request.headers();
    if let Some(text) = token_text(headers)? {
        return Ok((TokenKind::Key, text));
    }
    let Some(text) = session_cookie::read(headers, app.names.is_tls) else {
        return Err(Problem::unauthorized("the request has no token").hint(HINT));
    };
    match session_cookie::is_from_page(request.method(), headers) {
        true => Ok((TokenKind::Session, text)),
        false => {
            Err(Problem::foreign_origin("a page of another origin sent this with the cookie of the page")
                .hint("send a token in the header `Authorization`"))
        }
    }
}

/// The text of the token of a header: of either, by the same rules.
fn token_text(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let bearer = text(AUTHORIZATION.as_str()).map(|value| match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => "",
    });
    match (bearer, text("x-api-key")) {
        (Some(one), Some(other)) if one != other => {
            Err(Problem::bad_request("`Authorization` and `x-api-key` have different tokens")
                .hint("send one of them"))
        }
        (token, other) => Ok(token.or(other)),
    }
}
