//! One request, and its retries.

use std::time::{Duration, Instant};

use bytes::Bytes;
use polylogue_http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use polylogue_http::{HeaderMap, HeaderName, HeaderValue, Method, Response, read_all};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};
use url::Url;

use crate::connection::Connection;
use crate::error::{ClientError, Kind, unread, unsent};

/// How long a server may take to answer a request.
const ANSWER: Duration = Duration::from_secs(60);

/// How long it may take to send a file, of 100 MiB at most.
const FILE: Duration = Duration::from_mins(10);

/// The longest document that is read.
const MAX_DOCUMENT: usize = 256 << 20;

/// The media type of an event stream.
const EVENT_STREAM: &str = "text/event-stream";

/// The longest key of a request, in bytes.
const MAX_KEY: usize = 255;

/// How long to wait before the first retry; longer before each further one.
const WAIT: Duration = Duration::from_millis(100);

/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Whether a request that may have reached the server is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Repeat {
    /// It has no further effect.
    Safe,
    /// Only one that was not sent.
    Unsent,
}

/// A request that has no result.
struct Failed {
    /// Why its last attempt failed.
    error: ClientError,
    /// Whether an earlier attempt may have reached the server.
    may_have_effect: bool,
}

/// A request that is about to be sent.
pub(crate) struct Request<'c> {
    connection: &'c Connection,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
    repeat: Repeat,
    /// How long the server may take.
    limit: Duration,
}

impl<'c> Request<'c> {
    /// A request to the resource that `path` names; its parts can be any text.
    pub(crate) fn new(connection: &'c Connection, method: Method, path: &[&str]) -> Self {
        let mut url = connection.base().clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        let repeat = if method == Method::POST { Repeat::Unsent } else { Repeat::Safe };
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        Self { connection, method, url, headers, body, repeat, limit: ANSWER }
    }

    pub(crate) fn query(mut self, query: &[(&'static str, String)]) -> Self {
        if !query.is_empty() {
            self.url.query_pairs_mut().extend_pairs(query);
        }
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        // Values are of this crate: numbers and media types.
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Sets the body, as JSON.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, ClientError> {
        let unmade = |error| ClientError::new(Kind::Unmade(format!("its body: {error}")));
        self.body = serde_json::to_vec(body).map_err(unmade)?.into();
        Ok(self.header(CONTENT_TYPE, "application/json"))
    }

    /// Sets a random key, by which the server knows a repetition, which has no further effect.
    pub(crate) fn once(self) -> Result<Self, ClientError> {
        let mut bits = [0_u8; 16];
        let unmade = |error| ClientError::new(Kind::Unmade(format!("the system has no randomness: {error}")));
        getrandom::fill(&mut bits).map_err(unmade)?;
        let key = format!("{:032x}", u128::from_le_bytes(bits));
        self.keyed(&key)
    }

    /// Sets the caller's key, by which the server knows a repetition, which has no further effect. A key that no header can have is an
    /// error: without it, a repetition would have its effect again.
    pub(crate) fn keyed(mut self, key: &str) -> Result<Self, ClientError> {
        let wrong = || ClientError::new(Kind::Key(key.to_owned()));
        let is_legal =
            (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let value = HeaderValue::from_str(key).ok().filter(|_| is_legal).ok_or_else(wrong)?;
        self.headers.insert(HeaderName::from_static("idempotency-key"), value);
        Ok(Self { repeat: Repeat::Safe, ..self })
    }

    /// Has a `POST` repeated also where an attempt may have reached the server: its repetition has no further effect by its nature.
    pub(crate) fn repeatable(self) -> Self {
        Self { repeat: Repeat::Safe, ..self }
    }

    /// Sends the request until there is a document, at most for the client's patience.
    pub(crate) async fn send<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let text = self.received().await.map_err(|failed| failed.error)?;
        self.parsed(&text)
    }

    /// Sends the request until there is a file, which may take longer than a document.
    pub(crate) async fn send_for_file(self) -> Result<Bytes, ClientError> {
        Self { limit: FILE, ..self }.received().await.map_err(|failed| failed.error)
    }

    /// Sends the request until what it names is removed, and returns the document that says so. That is `removed` if an earlier attempt may
    /// have removed it, and it does not exist any more: this is no error.
    pub(crate) async fn send_removal<T: DeserializeOwned>(self, removed: T) -> Result<T, ClientError> {
        match self.received().await {
            Ok(text) => self.parsed(&text),
            Err(Failed { error, may_have_effect: true }) if error.is_missing() => Ok(removed),
            Err(failed) => Err(failed.error),
        }
    }

    fn parsed<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(text)
            .map_err(|error| self.connection.not_polylogue(format!("a document: {error}")))
    }

    /// Sends the request until there is a response that does not refuse it, and returns its body.
    async fn received(&self) -> Result<Bytes, Failed> {
        let (begun, mut wait, mut may_have_effect) = (Instant::now(), WAIT, false);
        let Connection { patience, retries, .. } = self.connection;
        loop {
            let (error, after) = match self.once_sent().await {
                Ok(received) => {
                    retries.succeeded();
                    return Ok(received);
                }
                Err(failed) => failed,
            };
            let may_repeat = self.repeat == Repeat::Safe || !error.may_have_effect();
            // Any server can ask for any time: not for less than it would be given.
            let pause = after.map_or(wait, |after| after.max(wait));
            let is_late = begun.elapsed().saturating_add(pause) > *patience;
            if !error.is_temporary() || !may_repeat || is_late {
                return Err(Failed { error, may_have_effect });
            }
            may_have_effect |= error.may_have_effect();
            retries.report(&error, *patience);
            sleep(pause).await;
            wait = (wait * 2).min(MAX_WAIT);
        }
    }

    /// Sends it once. An error may come with the time after which to try again.
    async fn once_sent(&self) -> Result<Bytes, (ClientError, Option<Duration>)> {
        let answered = timeout(self.limit, async {
            let mut response = self.open().await?;
            let after = retry_after(&response);
            let text = read_all(&mut response, MAX_DOCUMENT).await;
            let text = text.map_err(|error| (unread(self.connection.url(), &error), None))?;
            match response.status() {
                200..300 => Ok(text),
                status => Err((self.connection.refused(status, &text), after)),
            }
        });
        answered.await.unwrap_or_else(|_| Err((self.late(), None)))
    }

    async fn open(&self) -> Result<Response<'c>, (ClientError, Option<Duration>)> {
        let (method, headers, body) = (self.method.clone(), self.headers.clone(), self.body.clone());
        let sent = self.connection.transport().ask(method, Some(&self.url), headers, body).await;
        sent.map_err(|error| (unsent(self.connection.url(), &error), None))
    }

    /// Sends it once, and returns the response if it is an event stream.
    pub(crate) async fn stream(self) -> Result<Response<'c>, ClientError> {
        let request = self.header(ACCEPT, EVENT_STREAM);
        // Also while a refusal is read: a server can stop in the middle of it.
        let opened = timeout(request.limit, async {
            let mut response = request.open().await.map_err(|(error, _)| error)?;
            if response.status() == 200 {
                // Such as the page of a login in front of the server, which would be read and asked for without end.
                let no = || request.connection.not_polylogue("its response is no event stream".into());
                return if is_event_stream(&response) { Ok(response) } else { Err(no()) };
            }
            let text = read_all(&mut response, MAX_DOCUMENT).await;
            let text = text.map_err(|error| unread(request.connection.url(), &error))?;
            Err(request.connection.refused(response.status(), &text))
        });
        opened.await.unwrap_or_else(|_| Err(request.late()))
    }

    /// The error that the server took too long.
    fn late(&self) -> ClientError {
        let why = format!("there was no response within {} s", self.limit.as_secs());
        ClientError::new(Kind::Unreachable { url: self.connection.url().into(), why, was_sent: true })
    }
}

fn is_event_stream(response: &Response<'_>) -> bool {
    let media = response.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
    media.is_some_and(|media| media.to_ascii_lowercase().starts_with(EVENT_STREAM))
}

/// After how long the server wants to be asked again.
fn retry_after(response: &Response<'_>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use polylogue_http::{Key, Proxies};

    use super::*;

    #[test]
    fn a_body_that_cannot_be_written_is_not_the_servers_fault() {
        let token = Key::new("ply_x").unwrap();
        let connection = Connection::new("http://127.0.0.1:1", &token, &Proxies::none()).unwrap();
        // JSON has no such keys.
        let body = BTreeMap::from([(vec![1], 2)]);
        let error = Request::new(&connection, Method::POST, &["teams"]).json(&body).err().unwrap();
        assert!(error.to_string().starts_with("the request cannot be made: its body: "), "{error}");
        assert!(!error.is_usage() && !error.is_temporary());
    }
}
