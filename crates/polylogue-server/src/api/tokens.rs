//! `/api/v1/tokens`: the tokens of a tenant.

use axum::http::StatusCode;
use polylogue_config::suggest;
use polylogue_core::CountedUsage;
use polylogue_wire::{Scope, token as wire};

use crate::call::{Call, Reply, json_reply};
use crate::idempotency::{Key, mismatch};
use crate::problem::Problem;
use crate::route::Route;
use crate::schema::of_request;
use crate::token::{NewToken, Token, TokenKind};
use crate::token_file::{Made, now_ms};

const PATH: &str = "/api/v1/tokens";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, Scope::Admin, list).about("The tokens of the tenant"),
        Route::post(PATH, Scope::Admin, create).about("Make a token").body(of_request::<wire::NewToken>),
        Route::delete("/api/v1/tokens/{token}", Scope::Admin, revoke).about("Revoke a token"),
    ]
}

async fn list(call: Call) -> Reply {
    let own = call.token()?;
    let (tokens, tenant) = (call.app.tokens.all()?, call.app.tenant(own)?);
    let is_shown = |token: &&Token| token.is_within(own) && token.kind != TokenKind::Link;
    let tokens: Vec<&Token> = tokens.iter().filter(is_shown).collect();
    let spent = call.app.spending.usage_today(&tokens, &tenant.runtime).await?;
    let describe = |token: &&Token| describe(token, spent.get(&token.id).copied());
    json_reply(StatusCode::OK, &wire::Tokens { tokens: tokens.iter().map(describe).collect() })
}

async fn create(call: Call) -> Reply {
    let (own, new) = (call.token()?, call.json::<wire::NewToken>()?);
    let wire::NewToken { name, scopes, teams, per_day, expires_ms } = new;
    // No token makes one that may do more than itself.
    if let Some(scope) = scopes.iter().find(|scope| !own.has(**scope)) {
        return Err(Problem::forbidden(format!("the token itself does not have the scope `{scope}`"))
            .at("/scopes", "more than the scopes of the token"));
    }
    let teams = match teams {
        Some(teams) => Some(checked_teams(&call, own, teams)?),
        None => own.teams.clone(),
    };
    let per_day = wire::DailyBudget {
        cost: per_day.cost.or(own.per_day.cost),
        tokens: per_day.tokens.or(own.per_day.tokens),
    };
    if !per_day.is_within(&own.per_day) {
        return Err(Problem::forbidden("the token itself may not spend so much in a day")
            .at("/per_day", "more than the budget of the token"));
    }
    let expires_ms = match (expires_ms, own.expires_ms) {
        (Some(wanted), _) if wanted <= now_ms() => {
            return Err(Problem::bad_request("the token would have expired already")
                .at("/expires_ms", "in the past")
                .hint("it is a time in milliseconds since 1970"));
        }
        (Some(wanted), Some(own)) if wanted > own => {
            return Err(Problem::forbidden("the token itself ends before that")
                .at("/expires_ms", "later than the end of the token"));
        }
        (wanted, own) => wanted.or(own),
    };
    let new = NewToken { name, tenant: own.tenant.clone(), scopes, teams, per_day, expires_ms };
    let key = Key::of(&call, call.path).await?;
    let request = key.as_ref().map(Key::digest);
    let (token, text) = match call.app.tokens.create_for(own, new, request.as_ref())? {
        Made::Now(token, text) => (token, text),
        Made::Before(token) if token.request == request => {
            return Err(Problem::token_made(format!("an earlier request has made the token `{}`", token.id))
                .hint("its text was shown then, and cannot be shown again: revoke it, and make one with another key"));
        }
        Made::Before(_) => return Err(mismatch()),
    };
    let text = wire::TokenText::new(text.reveal());
    let spent = (!token.per_day.is_unlimited()).then(CountedUsage::default);
    json_reply(StatusCode::CREATED, &wire::MadeToken { about: describe(&token, spent), token: text })
}

/// The teams of a new token, which must be served and seen by `own`.
fn checked_teams(call: &Call, own: &Token, teams: Vec<String>) -> Result<Vec<String>, Problem> {
    if !teams.iter().all(|team| own.sees(team)) {
        return Err(Problem::forbidden("the token itself does not see all of these teams")
            .at("/teams", "more than the teams of the token"));
    }
    let served = call.app.source.ids();
    let unknown = teams.iter().enumerate().find(|(_, team)| !served.contains(team));
    if let Some((index, team)) = unknown {
        let seen = served.iter().map(String::as_str).filter(|team| own.sees(team));
        return Err(Problem::bad_request(format!("there is no team `{team}`"))
            .at(format!("/teams/{index}"), "unknown team")
            .hint(suggest::hint(team, seen)));
    }
    Ok(teams)
}

async fn revoke(call: Call) -> Reply {
    let own = call.token()?;
    match call.app.tokens.revoke(call.param("token"), |token| token.is_within(own))? {
        true => json_reply(StatusCode::OK, &wire::Revoked { revoked: true }),
        false => Err(Problem::not_found("there is no such token").hint("`GET /api/v1/tokens` lists them")),
    }
}

/// What is shown of a token: neither its text nor its digest.
fn describe(token: &Token, usage_today: Option<CountedUsage>) -> wire::Token {
    wire::Token {
        id: token.id.clone(),
        name: token.name.clone(),
        kind: token.kind.word().to_owned(),
        tenant: token.tenant.clone(),
        scopes: token.scopes.clone(),
        teams: token.teams.clone(),
        per_day: token.per_day,
        created_ms: token.created_ms,
        expires_ms: token.expires_ms,
        last_used_ms: token.last_used_ms(),
        usage_today: usage_today.map(|CountedUsage { cost, tokens, .. }| wire::DailyUsage { cost, tokens }),
    }
}
