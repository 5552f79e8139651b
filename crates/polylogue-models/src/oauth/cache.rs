//! The last access token of credentials, and when it is replaced.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use polylogue_http::Key;

use super::token::AccessToken;

/// The last access token of credentials.
#[derive(Default)]
pub(crate) struct TokenCache {
    last: Mutex<Last>,
    /// Held while a token is requested, so that only one is.
    requesting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Last {
    token: Option<AccessToken>,
    /// Whether it replaces one that was refused.
    is_replacement: bool,
}

impl TokenCache {
    /// A valid token: the last one, or else one that `request` gets.
    pub(crate) async fn token<E>(
        &self,
        request: impl AsyncFnOnce() -> Result<AccessToken, E>,
    ) -> Result<Key, E> {
        if let Some(token) = self.valid() {
            return Ok(token);
        }
        let _alone = self.requesting.lock().await;
        if let Some(token) = self.valid() {
            return Ok(token);
        }
        let token = request().await?;
        let key = token.token.clone();
        self.last().token = Some(token);
        Ok(key)
    }

    /// Forgets `refused`, which a server did not accept. Returns whether another token will be requested, which it is
    /// not for the token after one that was refused: then it is not the token that is wrong.
    pub(crate) fn forget(&self, refused: &Key) -> bool {
        let mut last = self.last();
        match &last.token {
            Some(token) if token.token != *refused => true,
            Some(_) if !last.is_replacement => {
                *last = Last { token: None, is_replacement: true };
                true
            }
            _ => false,
        }
    }

    fn valid(&self) -> Option<Key> {
        let mut last = self.last();
        match &last.token {
            Some(token) if token.is_valid(SystemTime::now()) => Some(token.token.clone()),
            Some(_) => {
                *last = Last::default();
                None
            }
            None => None,
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_is_requested_once_and_again_when_it_is_refused() {
        let tokens = TokenCache::default();
        let issue = |name: &'static str| {
            async move || {
                let body = format!(r#"{{"access_token":"{name}","expires_in":3600}}"#);
                AccessToken::parse(body.as_bytes(), SystemTime::now())
            }
        };
        let first = tokens.token(issue("first")).await.unwrap();
        assert_eq!(tokens.token(issue("second")).await.unwrap(), first);
        assert!(tokens.forget(&first));
        let second = tokens.token(issue("second")).await.unwrap();
        assert_eq!(second.reveal(), "second");
        // A request that was sent with the first is sent again with the second, which is not replaced.
        assert!(tokens.forget(&first) && !tokens.forget(&second));
        assert_eq!(tokens.token(issue("third")).await.unwrap(), second);
    }
}
