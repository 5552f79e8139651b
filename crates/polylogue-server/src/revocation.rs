//! Streams end when their token is revoked or expires: one look at the file of the tokens serves all of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;

use crate::app::App;
use crate::token::{Token, TokenKind};
use crate::token_file::now_ms;

/// How often the file of the tokens is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The clock of the machine may be set: a stream looks again after so long, at the latest.
const EXPIRY_LOOK: Duration = Duration::from_secs(60);

/// Looks at the file of the tokens, and wakes the streams when it has changed or cannot be read.
pub(crate) async fn watch_tokens(app: &App) {
    let mut last = app.tokens.all().ok();
    loop {
        sleep(LOOK).await;
        let read = app.tokens.all().ok();
        // Not by value: a token that was made and revoked since the last look leaves equal tokens behind, and streams of its own.
        let is_same = matches!((&read, &last), (Some(read), Some(last)) if Arc::ptr_eq(read, last));
        if !is_same {
            app.token_changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        }
        last = read;
    }
}

/// Resolves when `token` was revoked or has expired.
pub(crate) async fn token_ended(app: Arc<App>, token: Arc<Token>) {
    // Subscribed before looking, so that no change is missed.
    let mut changes = app.token_changes.subscribe();
    while is_valid(&app, &token) {
        tokio::select! {
            _ = changes.changed() => {}
            () = expires(&token) => {}
        }
    }
}

async fn expires(token: &Token) {
    match token.expires_ms {
        Some(end) => sleep(Duration::from_millis(end.saturating_sub(now_ms())).min(EXPIRY_LOOK)).await,
        None => std::future::pending().await,
    }
}

fn is_valid(app: &App, token: &Token) -> bool {
    if token.kind == TokenKind::Issued {
        return token.is_valid_at(now_ms());
    }
    app.tokens.is_valid(&token.id).unwrap_or_else(|error| {
        warn!(%error, "a stream ends, because tokens cannot be read");
        false
    })
}
