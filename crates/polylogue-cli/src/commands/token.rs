//! `polylogue token`: who may use a server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polylogue_core::Money;
use polylogue_server::{DailyBudget, NewToken, Scope, Token, TokenFile, TokenKind, login_url, tokens_at};
use serde_json::json;

use super::{unwritable, write, write_rows};
use crate::args::serve::{Token as Args, TokenCommand};
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::{args, place};

pub(crate) fn run(cli: &args::Cli, args: &Args) -> Result<Exit, CliError> {
    let tokens = TokenFile::at(tokens_at(&place::of(&cli.named_store())?));
    match &args.command {
        TokenCommand::New(args) => create(&tokens, args),
        TokenCommand::Link(args) => link(&tokens, args),
        TokenCommand::List(args) => list(&tokens, args.json),
        TokenCommand::Revoke(args) => revoke(&tokens, &args.ids),
    }
}

fn create(tokens: &TokenFile, args: &args::serve::NewToken) -> Result<Exit, CliError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let new = NewToken {
        name: args.name.clone(),
        tenant: args.tenant.clone(),
        scopes: args.scopes.clone(),
        teams: Some(args.teams.clone()).filter(|teams| !teams.is_empty()),
        per_day: DailyBudget { cost: args.cost_per_day.map(Money::dollars), tokens: args.tokens_per_day },
        expires_ms: args.expires.map(|time| end_ms(now, time)),
    };
    let (token, text) = tokens.create(new)?;
    print_note(&format!(
        "the token `{}` is shown once; `polylogue token revoke {}` ends it",
        token.name, token.id
    ));
    write(&Sanitized::plain(&format!("{}\n", text.reveal())))?;
    Ok(Exit::Done)
}

/// When a token expires that is valid for `time` from `now` on, both since 1970, in milliseconds: at the latest time that can be written if
/// it is later.
fn end_ms(now: Duration, time: Duration) -> u64 {
    u64::try_from(now.saturating_add(time).as_millis()).unwrap_or(u64::MAX)
}

fn link(tokens: &TokenFile, args: &args::serve::LinkToken) -> Result<Exit, CliError> {
    let teams = Some(args.teams.clone()).filter(|teams| !teams.is_empty());
    let (scopes, tenant) = (args.scopes.clone(), args.tenant.clone());
    let link = tokens.create_link(NewToken { scopes, tenant, teams, ..NewToken::local("page") })?;
    write(&Sanitized::plain(&format!("{}\n", login_url(&args.url, &link))))?;
    Ok(Exit::Done)
}

fn list(tokens: &TokenFile, as_json: bool) -> Result<Exit, CliError> {
    let mut rows = Vec::new();
    let all = tokens.all()?;
    // A link is no token that is used.
    for token in all.iter().filter(|token| token.kind != TokenKind::Link) {
        rows.push(if as_json { as_json_line(token)? } else { line(token) });
    }
    if rows.is_empty() && !as_json {
        print_note("there are no tokens; `polylogue token new` makes one");
    }
    write_rows(&rows.into_iter().collect(), as_json)?;
    Ok(Exit::Done)
}

fn line(token: &Token) -> Sanitized {
    let scopes = token.scopes.iter().map(|scope| scope.word()).collect::<Vec<_>>().join(",");
    Sanitized::row(&format!("{}  {}  {scopes}  {}", token.id, token.tenant, token.name))
}

fn as_json_line(token: &Token) -> Result<Sanitized, CliError> {
    let Token { id, name, tenant, scopes, teams, per_day, created_ms, expires_ms, .. } = token;
    let scopes: Vec<&str> = scopes.iter().copied().map(Scope::word).collect();
    let shown = json!({
        "id": id, "name": name, "tenant": tenant, "scopes": scopes, "teams": teams,
        "per_day": per_day, "created_ms": created_ms, "expires_ms": expires_ms, "last_used_ms": token.last_used_ms(),
    });
    Sanitized::json(&shown).map_err(unwritable)
}

/// Revokes all that are named, and says which do not exist.
fn revoke(tokens: &TokenFile, ids: &[String]) -> Result<Exit, CliError> {
    let mut exit = Exit::Done;
    for id in ids {
        if !tokens.revoke(id, |_| true)? {
            print_note(&format!("there is no token `{id}`"));
            exit = Exit::Usage;
        }
    }
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_can_be_the_life_of_a_token() {
        let now = Duration::from_secs(1_800_000_000);
        assert_eq!(end_ms(now, Duration::from_secs(60)), 1_800_000_060_000);
        for long in [Duration::from_secs(u64::MAX), Duration::from_millis(u64::MAX)] {
            assert_eq!(end_ms(now, long), u64::MAX);
        }
    }
}
