//! Streams end when their token is revoked or expires: one look at the file of the tokens serves all of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tracing::warn;

use crate::app::App;
use crate::token::{Token, TokenKind};
use crate::token_file::{TokenFile, now_ms};

/// How often the file of the tokens is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The clock of the machine may be set: a stream looks again after so long, at the latest.
const EXPIRY_LOOK: Duration = Duration::from_secs(60);

/// Looks at the file of the tokens, and wakes the streams when it has changed or cannot be read.
pub(crate) async fn watch_tokens(tokens: &TokenFile, changes: &watch::Sender<u64>) {
    let mut last = tokens.all().ok();
    loop {
        sleep(LOOK).await;
        let read = tokens.all().ok();
        // Not by value: a token that was made and revoked since the last look leaves equal tokens behind, and streams of its own.
        let is_same = matches!((&read, &last), (Some(read), Some(last)) if Arc::ptr_eq(read, last));
        if !is_same {
            changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        }
        last = read;
    }
}

/// Resolves when `token` was revoked or has expired.
pub(crate) async fn token_ended(app: Arc<App>, token: Arc<Token>) {
    ended(&app.tokens, &app.token_changes, &token).await;
}

async fn ended(tokens: &TokenFile, changes: &watch::Sender<u64>, token: &Token) {
    // Subscribed before looking, so that no change is missed.
    let mut changes = changes.subscribe();
    while is_valid(tokens, token) {
        tokio::select! {
            _ = changes.changed() => {}
            () = expires(token) => {}
        }
    }
}

async fn expires(token: &Token) {
    match token.expires_ms {
        Some(end) => sleep(Duration::from_millis(end.saturating_sub(now_ms())).min(EXPIRY_LOOK)).await,
        None => std::future::pending().await,
    }
}

fn is_valid(tokens: &TokenFile, token: &Token) -> bool {
    if token.kind == TokenKind::Issued {
        return token.is_valid_at(now_ms());
    }
    tokens.is_valid(&token.id).unwrap_or_else(|error| {
        warn!(%error, "a stream ends, because tokens cannot be read");
        false
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::token::NewToken;

    #[tokio::test(start_paused = true)]
    async fn s9_the_streams_of_a_revoked_token_end_within_two_seconds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        let (tokens, command) = (TokenFile::at(path.clone()), TokenFile::at(path));
        let (token, _) = command.create(NewToken::local("a")).unwrap();
        let changes = watch::Sender::new(0);
        let revoked = async {
            let mut ended = pin!(ended(&tokens, &changes, &token));
            timeout(Duration::from_mins(1), &mut ended).await.unwrap_err();
            command.revoke(&token.id, |_| true).unwrap();
            let since = Instant::now();
            ended.await;
            since.elapsed()
        };
        // Time passes only while both wait: it is what the server lets pass.
        let elapsed = tokio::select! {
            () = watch_tokens(&tokens, &changes) => panic!("it watches as long as the server runs"),
            elapsed = revoked => elapsed,
        };
        assert!(elapsed <= Duration::from_secs(2), "{elapsed:?}");
    }
}
