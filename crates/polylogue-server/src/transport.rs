//! What a protocol needs that keeps state between requests: sessions of clients.

use axum::http::{Request, Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use polylogue_mcp::serve::HttpBody;

/// Responds to the messages of a protocol.
pub(crate) trait Transport: Send + Sync {
    /// The response to a request of `owner`, whose sessions are for that owner only.
    fn respond<'a>(&'a self, request: Request<Bytes>, owner: &'a str) -> BoxFuture<'a, Response<HttpBody>>;

    /// Ends all sessions and event streams.
    fn close(&self);
}
