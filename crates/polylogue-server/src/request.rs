//! What identifies a request and its client.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use serde::{Deserialize, Serialize};

/// Identifies a request in errors, in the log and in the response.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

/// The address of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The address of a client whose request a trusted proxy passes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proxied(pub(crate) IpAddr);

/// What distinguishes a request from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestDigest {
    /// Digest of the token and the key, or of the token and all that was sent.
    pub(crate) request: String,
    /// Digest of the body.
    pub(crate) body: String,
    pub(crate) has_key: bool,
}

impl RequestDigest {
    /// What the store has of it, with what the request has made or sent.
    pub(crate) fn to_stored(&self) -> String {
        let Self { request, body, .. } = self;
        format!("{}-{}", request.get(..24).unwrap_or(request), body.get(..16).unwrap_or(body))
    }
}

/// The header with the id.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

impl RequestId {
    /// That of the client if it is short and plain, else a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let is_plain = |text: &&str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            (1..=64).contains(&text.len()) && text.chars().all(plain)
        };
        let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_plain);
        given.map_or_else(Self::random, |id| Self(id.into()))
    }

    fn random() -> Self {
        let mut bits = [0_u8; 8];
        // Without randomness, requests have no ids, but are served.
        let _ = getrandom::fill(&mut bits);
        Self(format!("{:016x}", u64::from_le_bytes(bits)).into())
    }
}
