//! Access tokens, and why there is none.

use std::time::{Duration, SystemTime};

use polylogue_http::Key;
use serde::Deserialize;
use url::Url;

/// How long a token is used at most: as long as those of Google and of Microsoft Entra are valid at least.
const MAX_LIFETIME: Duration = Duration::from_secs(3600);

/// How long before its end a token is replaced, so that no request arrives with one that has expired.
const MARGIN: Duration = Duration::from_secs(300);

/// Why there is no access token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("it is not the JSON of Google's credentials")]
    File,
    #[error("it has credentials of the type `{0}`, which is not supported")]
    Kind(String),
    #[error(
        "its `credential_source` is {0}, which is not supported: have the token written to a file, and name that as `file`"
    )]
    Source(&'static str),
    #[error("its private key cannot be used")]
    PrivateKey,
    #[error("its address for tokens, `{0}`, is not one with `https://`")]
    Address(String),
    #[error("the file `{0}` cannot be read: {1}")]
    Unreadable(String, String),
    #[error("the request for a token could not be signed")]
    Signing,
    #[error("the reply to the request for a token is not a token")]
    Reply,
}

/// A token, sent as `authorization: Bearer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessToken {
    pub(crate) token: Key,
    /// When it is replaced.
    until: SystemTime,
}

/// An address for tokens: one that secrets may be sent to.
pub(crate) fn token_address(text: &str) -> Result<Url, TokenError> {
    let url = Url::parse(text).map_err(|_| TokenError::Address(text.to_owned()))?;
    match url.scheme() == "https" || url.scheme() == "http" && polylogue_http::is_loopback(&url) {
        true => Ok(url),
        false => Err(TokenError::Address(text.to_owned())),
    }
}

#[derive(Deserialize)]
struct Issued {
    access_token: String,
    expires_in: u64,
}

/// A token of a service account, as `generateAccessToken` issues it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Generated {
    access_token: String,
}

impl AccessToken {
    /// Decodes the reply to a request for a token of a service account. Without another lifetime in the request it is valid for an hour.
    pub(crate) fn of_service_account(body: &[u8], now: SystemTime) -> Result<Self, TokenError> {
        let issued: Generated = serde_json::from_slice(body).map_err(|_| TokenError::Reply)?;
        Self::valid_for(&issued.access_token, MAX_LIFETIME, now)
    }

    /// Decodes the reply of the token server.
    pub(crate) fn parse(body: &[u8], now: SystemTime) -> Result<Self, TokenError> {
        let issued: Issued = serde_json::from_slice(body).map_err(|_| TokenError::Reply)?;
        Self::valid_for(&issued.access_token, Duration::from_secs(issued.expires_in), now)
    }

    fn valid_for(token: &str, lifetime: Duration, now: SystemTime) -> Result<Self, TokenError> {
        let token = Key::new(token).ok_or(TokenError::Reply)?;
        Ok(Self { token, until: now + lifetime.min(MAX_LIFETIME).saturating_sub(MARGIN) })
    }

    /// Whether it can still be sent.
    pub(crate) fn is_valid(&self, now: SystemTime) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_token_is_replaced_before_it_expires() {
        let body = br#"{"access_token":"ya29.x","expires_in":3599,"token_type":"Bearer"}"#;
        let token = AccessToken::parse(body, at(1000)).unwrap();
        assert_eq!(token.token.reveal(), "ya29.x");
        assert!(token.is_valid(at(1000)) && token.is_valid(at(4298)));
        assert!(!token.is_valid(at(4299)));
        let short = AccessToken::parse(br#"{"access_token":"x","expires_in":10}"#, at(1000)).unwrap();
        assert!(!short.is_valid(at(1000)), "one that expires within the margin is not kept");
        for body in
            [&br#"{"error":"invalid_grant"}"#[..], br#"{"access_token":" ","expires_in":9}"#, b"<html>"]
        {
            assert_eq!(AccessToken::parse(body, at(0)), Err(TokenError::Reply));
        }
        let forever = br#"{"access_token":"x","expires_in":18446744073709551615}"#;
        assert!(!AccessToken::parse(forever, at(0)).unwrap().is_valid(at(3600)));
    }
}
