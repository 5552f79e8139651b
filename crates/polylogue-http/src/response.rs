//! Responses, read piece by piece.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::HeaderMap;
use hyper::body::{Body as _, Incoming};

use crate::pool::Pool;
use crate::sender::Sender;

/// A response whose body is not read yet. Dropped before its end, it closes its connection; one of HTTP/2, which carries
/// other responses too, continues without it.
#[derive(Debug)]
pub struct Response<'a> {
    inner: hyper::Response<Incoming>,
    /// The connection, until the body is read.
    sender: Option<Sender>,
    pool: &'a Pool,
}

impl<'a> Response<'a> {
    pub(super) fn new(inner: hyper::Response<Incoming>, sender: Sender, pool: &'a Pool) -> Self {
        Self { inner, sender: Some(sender), pool }
    }

    /// Returns the status of the response, such as 200.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// Returns the headers of the response.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns the next piece of the body, or `None` at its end.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn chunk(&mut self) -> hyper::Result<Option<Bytes>> {
        if self.sender.is_none() {
            return Ok(None);
        }
        let frame = self.inner.body_mut().frame().await.transpose()?;
        // What is not data are trailers, which come last.
        let piece = frame.and_then(|frame| frame.into_data().ok());
        if piece.is_none() || self.inner.body().is_end_stream() {
            match self.sender.take() {
                Some(Sender::Alone(sender)) => self.pool.put(sender),
                // Its place on the connection is free.
                Some(Sender::Shared(_)) | None => {}
            }
        }
        Ok(piece)
    }
}

/// The reason why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is longer than allowed.
    #[error("the body is longer than allowed")]
    TooLong,
    /// The connection broke before its end.
    #[error("the connection broke")]
    Broken(#[source] hyper::Error),
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
/// When it is longer, or the connection broke.
pub async fn read_all(response: &mut Response<'_>, limit: usize) -> Result<Bytes, ReadError> {
    let (body, is_cut) = read_up_to(response, limit).await?;
    if is_cut { Err(ReadError::TooLong) } else { Ok(body) }
}

/// Reads the beginning of a body, and whether that is not all of it: pieces as they arrive, until they are more than `limit` bytes
/// together, so that it is longer than that by less than a piece. Most bodies come in one piece and are not copied.
///
/// # Errors
/// When the connection broke.
pub async fn read_up_to(response: &mut Response<'_>, limit: usize) -> Result<(Bytes, bool), ReadError> {
    let Some(first) = response.chunk().await.map_err(ReadError::Broken)? else {
        return Ok((Bytes::new(), false));
    };
    if first.len() > limit {
        return Ok((first, true));
    }
    let Some(second) = response.chunk().await.map_err(ReadError::Broken)? else { return Ok((first, false)) };
    let mut all = BytesMut::from(first);
    let mut next = Some(second);
    while let Some(piece) = next {
        all.extend_from_slice(&piece);
        if all.len() > limit {
            return Ok((all.freeze(), true));
        }
        next = response.chunk().await.map_err(ReadError::Broken)?;
    }
    Ok((all.freeze(), false))
}
