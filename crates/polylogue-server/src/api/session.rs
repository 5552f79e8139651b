//! `/api/v1/session`: the page logs in and out.

use axum::http::header::SET_COOKIE;
use axum::http::{Method, StatusCode};
use polylogue_wire::Scope;
use polylogue_wire::token::Login;
use serde_json::{Value, json};

use super::cluster;
use crate::app::App;
use crate::call::{Call, Reply, json_reply};
use crate::problem::Problem;
use crate::route::{Access, Route};
use crate::schema::of_request;
use crate::session_cookie;
use crate::token::{Token, TokenKind};

const PATH: &str = "/api/v1/session";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post(PATH, Access::Open, login)
            .about("Exchange a link to the page for its cookie")
            .body(of_request::<Login>),
        Route::get(PATH, Scope::Read, get).about("Who the caller is"),
        Route::delete(PATH, Scope::Read, logout).about("Log out"),
    ]
}

async fn login(call: Call) -> Reply {
    let (app, Login { code }) = (&call.app, call.json()?);
    if !session_cookie::is_from_page(&Method::POST, &call.headers) {
        return Err(Problem::foreign_origin("only the page of this server logs in").hint("open the link"));
    }
    let Some((token, text)) = app.tokens.exchange(&code)? else {
        if let Some(Err(wait)) = call.peer.map(|peer| app.failed_logins.take(peer)) {
            return Err(Problem::too_many("too many wrong tokens came from this address").retry_after(wait));
        }
        return Err(Problem::unauthorized("the link was used before, or has expired")
            .hint("`polylogue token link` makes another one"));
    };
    with_cookie(&call, json_reply(StatusCode::CREATED, &describe(app, &token)), Some(text.reveal()))
}

async fn get(call: Call) -> Reply {
    json_reply(StatusCode::OK, &describe(&call.app, call.token()?))
}

async fn logout(call: Call) -> Reply {
    let own = call.token()?;
    if own.kind != TokenKind::Session {
        return Err(Problem::bad_request("the request has no cookie of the page")
            .hint("`DELETE /api/v1/tokens/{token}` revokes a token"));
    }
    call.app.tokens.revoke(&own.id, |_| true)?;
    with_cookie(&call, json_reply(StatusCode::OK, &json!({"revoked": true})), None)
}

fn with_cookie(call: &Call, reply: Reply, text: Option<&str>) -> Reply {
    let mut reply = reply?;
    if let Some(cookie) = session_cookie::write(&call.headers, call.app.names.is_tls, text) {
        reply.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(reply)
}

fn describe(app: &App, token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "tenant": token.tenant,
        "scopes": token.scopes,
        "teams": token.teams,
        "expires_ms": token.expires_ms,
        "has_cluster": cluster::queue_for(app, token).is_ok(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}
