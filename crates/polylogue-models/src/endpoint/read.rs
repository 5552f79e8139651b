//! Reads replies of an endpoint, within limits of time and size.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use polylogue_core::{DeltaSink, Request, text};
use polylogue_http::header::CONTENT_ENCODING;
use polylogue_http::{Broken, HeaderMap, ReadError, Response, read_all, read_up_to};

use crate::failure::{ErrorContext, Failure, Refusal};
use crate::timeouts::{Clock, Limit, Timeouts};
use crate::wire::decode::Decoder;
use crate::wire::draft::{DecodeError, Decoded};
use crate::wire::protocol::Protocol;

/// The maximum body of a reply that is not streamed, in bytes.
const MAX_BODY: usize = 64 << 20;

/// The maximum streamed body, in bytes: some hundred for each token of the longest reply.
const MAX_STREAM: usize = 256 << 20;

/// How much of an error's body is read.
const MAX_ERROR: usize = 64 << 10;

/// How long to wait for usage once the reply itself is complete.
const AFTER_FINISH: Duration = Duration::from_secs(5);

/// How long to wait for the end of the body once the reply has ended, so that the connection can be reused.
const AFTER_END: Duration = Duration::from_millis(50);

/// Why reading a reply stopped.
#[derive(derive_more::From)]
pub(super) enum Stop {
    Late(Limit),
    Broken(Broken),
    #[from]
    Invalid(DecodeError),
}

impl Stop {
    /// The failure, for a reply with this `status`.
    pub(super) fn failure(self, context: &ErrorContext<'_>, timeouts: Timeouts, status: u16) -> Failure {
        match self {
            Self::Late(limit) => context.late(limit, timeouts),
            Self::Broken(error) => context.broken(&error),
            Self::Invalid(error) => context.flawed(error, status),
        }
    }
}

pub(super) async fn read_stream<P: Protocol>(
    response: &mut Response<'_>,
    clock: &Clock,
    request: &Request<'_>,
    deltas: &mut dyn DeltaSink,
) -> Result<Decoded, Stop> {
    let mut decoder = Decoder::<P>::default();
    let mut received = 0_usize;
    while !decoder.finished() {
        let limit = if decoder.began() { Limit::Idle } else { Limit::FirstToken };
        let chunk = clock.wait(limit, pin!(response.chunk())).await.map_err(Stop::Late)?;
        let Some(bytes) = chunk.map_err(Stop::Broken)? else { return Ok(decoder.finish(request, deltas)?) };
        received = received.saturating_add(bytes.len());
        if received > MAX_STREAM {
            return Err(DecodeError::TooLong("the reply does not end").into());
        }
        decoder.feed(&bytes, deltas)?;
    }
    // The reply is complete but for its usage: a connection that breaks now, or is late, does not matter. What arrives must be readable.
    let rest = tokio::time::timeout(AFTER_FINISH, read_rest(response, &mut decoder, deltas));
    if let Ok(Ok(Err(error))) = clock.wait(Limit::Total, pin!(rest)).await {
        return Err(error.into());
    }
    if decoder.ended() {
        let drain = read_up_to(response, MAX_ERROR);
        let _ = tokio::time::timeout(AFTER_END, drain).await;
    }
    Ok(decoder.finish(request, deltas)?)
}

/// Reads until the end mark, or the end of the body, within the limits of an error's body.
async fn read_rest<P: Protocol>(
    response: &mut Response<'_>,
    decoder: &mut Decoder<P>,
    deltas: &mut dyn DeltaSink,
) -> Result<(), DecodeError> {
    let mut received = 0_usize;
    while !decoder.ended() && received < MAX_ERROR {
        let Ok(Some(bytes)) = response.chunk().await else { break };
        received = received.saturating_add(bytes.len());
        decoder.feed(&bytes, deltas)?;
    }
    Ok(())
}

pub(super) async fn read_whole<P: Protocol>(
    response: &mut Response<'_>,
    clock: &Clock,
    request: &Request<'_>,
    deltas: &mut dyn DeltaSink,
) -> Result<Decoded, Stop> {
    let body = read_body(response, clock).await?;
    Ok(Decoder::<P>::default().whole(&body, request, deltas)?)
}

/// Reads all of a body.
pub(super) async fn read_body(response: &mut Response<'_>, clock: &Clock) -> Result<Bytes, Stop> {
    let body = clock.wait(Limit::Total, pin!(read_all(response, MAX_BODY))).await.map_err(Stop::Late)?;
    body.map_err(|error| match error {
        ReadError::TooLong => Stop::Invalid(DecodeError::TooLong("the reply does not end")),
        ReadError::Broken(error) => Stop::Broken(error),
    })
}

/// The encoding of a body that was compressed, though no request asks for that: a gateway does it.
pub(super) fn compression(headers: &HeaderMap) -> Option<&str> {
    let encoding = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).map(str::trim);
    encoding.filter(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity"))
}

/// The failure of a response whose body has this `encoding`.
pub(super) fn compressed(encoding: &str, status: u16, context: &ErrorContext<'_>) -> Failure {
    let why = format!("it is compressed (`{}`), which was not asked for", text::excerpt(encoding, 20));
    let failure = context.flawed(DecodeError::Unreadable { why, excerpt: String::new() }, status);
    Failure { error: failure.error.hint(COMPRESSED), ..failure }
}

const COMPRESSED: &str = "turn off compression in the gateway or proxy before the server, or name the address of the server itself";

pub(super) async fn refusal(
    response: &mut Response<'_>,
    clock: &Clock,
    context: &ErrorContext<'_>,
) -> Failure {
    let (status, headers) = (response.status(), response.headers().clone());
    // The status is enough: a body that breaks off, does not arrive or is compressed counts as empty.
    let read = clock.wait(Limit::Idle, pin!(read_up_to(response, MAX_ERROR))).await;
    let read = read.ok().and_then(Result::ok).filter(|_| compression(&headers).is_none());
    let (body, is_cut) = read.unwrap_or_default();
    context.refused(&Refusal { status, headers: &headers, body: &body, is_cut })
}
