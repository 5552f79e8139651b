//! Sending a body and reading what comes back, within limits of time and size.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::{Client, Response, Url};
use tokio::time::{Instant, timeout_at};

/// How long each step of a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection, encryption included.
    pub connect: Duration,
    /// From the request to the first piece of a streamed reply. Replies that are not streamed have no pieces, so for
    /// them only `total` counts.
    pub first_token: Duration,
    /// Between two reads of a streamed reply, once it has begun.
    pub idle: Duration,
    /// For one attempt as a whole.
    pub total: Duration,
}

impl Default for Timeouts {
    /// 10 s to connect, 3 min to the first piece (large models on small machines read long prompts slowly), 1 min
    /// between pieces, 10 min in total.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(10), first_token: seconds(180), idle: seconds(60), total: seconds(600) }
    }
}

/// Which limit of time was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    FirstToken,
    Idle,
    Total,
}

/// The time one attempt has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    begun: Instant,
    limits: Timeouts,
}

impl Clock {
    pub(crate) fn start(limits: Timeouts) -> Self {
        Self { begun: Instant::now(), limits }
    }

    /// Waits for `future` no longer than `limit` and the total allow.
    pub(crate) async fn wait<T>(&self, limit: Limit, future: impl Future<Output = T>) -> Result<T, Limit> {
        let total = after(self.begun, self.limits.total);
        let deadline = match limit {
            Limit::FirstToken => after(self.begun, self.limits.first_token),
            Limit::Idle => after(Instant::now(), self.limits.idle),
            Limit::Total => total,
        };
        let met = if total <= deadline { Limit::Total } else { limit };
        timeout_at(deadline.min(total), future).await.map_err(|_| met)
    }
}

fn after(begun: Instant, time: Duration) -> Instant {
    // A limit beyond what the clock can tell is none: a year will do.
    begun.checked_add(time).unwrap_or_else(|| begun + Duration::from_secs(365 * 86_400))
}

/// The way to one address.
#[derive(Debug)]
pub(crate) struct Transport {
    url: Url,
    headers: HeaderMap,
    connect: Duration,
    /// Made with the first request, because reading the system's certificates takes longer than all the rest.
    client: OnceLock<Client>,
}

impl Transport {
    pub(crate) fn new(url: Url, headers: HeaderMap, connect: Duration) -> Self {
        Self { url, headers, connect, client: OnceLock::new() }
    }

    /// Sends `body` and waits for the head of the answer.
    pub(crate) async fn post(&self, body: Bytes) -> reqwest::Result<Response> {
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let made = self.make_client()?;
                self.client.get_or_init(|| made)
            }
        };
        client.post(self.url.clone()).headers(self.headers.clone()).body(body).send().await
    }

    fn make_client(&self) -> reqwest::Result<Client> {
        // Redirects are not followed: a key must not reach another host, and a moved endpoint is a setting to correct.
        // Retries are ours.
        let mut builder = Client::builder()
            .connect_timeout(self.connect)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .user_agent(concat!("polylogue/", env!("CARGO_PKG_VERSION")));
        if self.url.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
        if is_loopback(&self.url) {
            builder = builder.no_proxy();
        }
        builder.build()
    }
}

/// Whether `url` is on this machine, where no proxy stands between.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(host == "localhost" || host.ends_with(".localhost"), |address| address.is_loopback())
}

/// A body that is longer than allowed, or broke off.
#[derive(Debug)]
pub(crate) enum ReadError {
    TooLong,
    Broken(reqwest::Error),
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read_all(response: &mut Response, limit: usize) -> Result<Bytes, ReadError> {
    let (body, is_cut) = read_up_to(response, limit).await?;
    if is_cut { Err(ReadError::TooLong) } else { Ok(body) }
}

/// Reads the beginning of a body, about `limit` bytes, and whether that is not all of it. Most bodies come in one
/// piece and are not copied.
pub(crate) async fn read_up_to(response: &mut Response, limit: usize) -> Result<(Bytes, bool), ReadError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_known() {
        for (url, expected) in [
            ("http://localhost:8000/v1", true),
            ("http://127.0.0.1/v1", true),
            ("http://127.9.9.9/v1", true),
            ("http://[::1]:1/v1", true),
            ("http://model.localhost/v1", true),
            ("http://localhost.example.com/v1", false),
            ("http://10.0.0.1/v1", false),
            ("https://api.example.com/v1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_that_was_met_is_named() {
        let seconds = Duration::from_secs;
        let limits =
            Timeouts { connect: seconds(1), first_token: seconds(5), idle: seconds(2), total: seconds(8) };
        let clock = Clock::start(limits);
        let never = std::future::pending::<()>;
        assert_eq!(clock.wait(Limit::FirstToken, never()).await, Err(Limit::FirstToken));
        assert_eq!(clock.begun.elapsed(), seconds(5));
        assert_eq!(clock.wait(Limit::Idle, never()).await, Err(Limit::Idle));
        assert_eq!(clock.wait(Limit::Idle, never()).await, Err(Limit::Total));
        assert_eq!(clock.begun.elapsed(), seconds(8));
        let endless = Clock::start(Timeouts { total: Duration::MAX, idle: Duration::MAX, ..limits });
        assert_eq!(endless.wait(Limit::Idle, async { 1 }).await, Ok(1));
    }
}
