//! Many conversations at the same time, each with a live tail, whose frames are checked as they come.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use polylogue_client::Client;
use polylogue_client::wire::conversation::Conversation;
use polylogue_http::header::{ACCEPT, AUTHORIZATION};
use polylogue_http::{HeaderMap, HeaderValue, Method, Proxies, Transport};

use super::host::Host;
use super::single::{client, new};
use crate::job::Result;
use crate::scripted::shape;
use crate::table;

/// How many are begun at the same time.
const BEGINNING: usize = 32;

/// How many are open.
#[derive(Default)]
struct Open {
    now: Cell<usize>,
    most: Cell<usize>,
}

pub(super) async fn report(conversations: usize) -> Result<()> {
    let mut host = Host::start()?;
    let client = client(&host)?;
    let transport = transport(&host)?;
    let (open, permits) = (Rc::new(Open::default()), tokio::sync::Semaphore::new(BEGINNING));
    let begun = Instant::now();
    let mut followed = FuturesUnordered::new();
    for _ in 0..conversations {
        followed.push(one(&client, &transport, &permits, &open));
    }
    let mut added = Vec::new();
    while let Some(times) = followed.next().await {
        added.extend(times?);
    }
    drop(followed);
    let (wall, cost) = (begun.elapsed(), host.cost()?);
    added.sort_unstable();
    let calls = conversations as u64 * turns();
    let at = |share: usize| added.get((added.len() * share / 100).min(added.len().saturating_sub(1)));
    let ms = |share| at(share).map_or("?".to_owned(), |time| format!("{:.1} ms", time.as_secs_f64() * 1e3));
    #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
    let row = vec![
        format!("{conversations}, of which {} at once", open.most.get()),
        ms(50),
        ms(99),
        format!("{:.0}", calls as f64 / wall.as_secs_f64()),
        format!("{:.0} µs", cost.cpu_us / calls as f64),
        cost.peak_kib.map_or("?".to_owned(), |kib| format!("{} MiB", kib / 1024)),
    ];
    let head = ["conversations", "median", "p99", "calls/s", "CPU per call", "memory"];
    let title = format!(
        "Conversations of {} calls of 500 ms, each with a tail: what is added to a call. No event was lost or came twice.",
        turns()
    );
    table::print(&title, &head, &[row]);
    Ok(())
}

fn turns() -> u64 {
    shape("crowd").map_or(0, |(turns, _)| turns)
}

pub(super) fn transport(host: &Host) -> Result<Transport> {
    let bearer = HeaderValue::from_str(&format!("Bearer {}", host.ready.token))?;
    let accept = HeaderValue::from_static("text/event-stream");
    let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer), (ACCEPT, accept)]);
    Ok(Transport::new(&host.ready.url.parse()?, headers, Duration::from_secs(60), &Proxies::none())?)
}

/// Begins a conversation and follows it to its end. Returns the times between its messages above that of the model.
async fn one(
    client: &Client,
    transport: &Transport,
    permits: &tokio::sync::Semaphore,
    open: &Open,
) -> Result<Vec<Duration>> {
    let permit = permits.acquire().await?;
    let begun = Instant::now();
    let Conversation { id, .. } = client.begin(&new("crowd")).await?;
    let url = format!("{}/api/v1/conversations/{id}/events", client.url()).parse()?;
    let mut response = transport.ask(Method::GET, Some(&url), HeaderMap::new(), Bytes::new()).await?;
    drop(permit);
    if response.status() != 200 {
        return Err(format!("a tail has status {}", response.status()).into());
    }
    open.now.set(open.now.get() + 1);
    open.most.set(open.most.get().max(open.now.get()));
    let mut tail = Checked::default();
    while !tail.is_over {
        let bytes = response.chunk().await?.ok_or("a tail ended before its conversation")?;
        tail.feed(&bytes)?;
    }
    open.now.set(open.now.get() - 1);
    let (turns, delay) = shape("crowd")?;
    let least = Duration::from_millis(turns * delay);
    if tail.added.len() as u64 + 1 != turns || begun.elapsed() < least {
        return Err(
            format!("{} replies in {:?}, instead of {turns}", tail.added.len() + 1, begun.elapsed()).into()
        );
    }
    Ok(tail.added)
}

/// The lines of a tail, whose events must be gapless.
#[derive(Default)]
pub(super) struct Checked {
    partial: Vec<u8>,
    next: u64,
    /// When the last reply came, or the last answer was sent.
    pub(super) last: Option<Instant>,
    /// The times since then of all replies, above those of the model.
    pub(super) added: Vec<Duration>,
    /// The question that waits for an answer.
    pub(super) question: Option<u64>,
    is_over: bool,
}

impl Checked {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        self.partial.extend_from_slice(bytes);
        let text = std::mem::take(&mut self.partial);
        let mut rest = text.as_slice();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            self.line(line)?;
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        if let Some(id) = line.strip_prefix(b"id: ") {
            let id: u64 = std::str::from_utf8(id)?.parse()?;
            if id != self.next {
                return Err(format!("event {id} came where event {} is next", self.next).into());
            }
            self.next += 1;
        } else if line.starts_with(b"event: end") {
            self.is_over = true;
        } else if !line.starts_with(b"data: {\"seq\":") {
            return Ok(());
        } else if memchr::memmem::find(line, b"\"type\":\"input_required\"").is_some() {
            self.question = self.next.checked_sub(1);
        } else if memchr::memmem::find(line, b"\"type\":\"model_replied\"").is_some() {
            let now = Instant::now();
            if let Some(last) = self.last.replace(now) {
                // Less than the model takes where the reply before came late: that one has it.
                self.added.push((now - last).saturating_sub(Duration::from_millis(500)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_and_a_repetition_are_found() {
        let fed = |text: &str| {
            let mut checked = Checked::default();
            text.as_bytes().chunks(3).try_for_each(|piece| checked.feed(piece)).map(|()| checked)
        };
        let reply = |seq: u64| {
            format!("event: entry\nid: {seq}\ndata: {{\"seq\":{seq},\"type\":\"model_replied\"}}\n\n")
        };
        let whole =
            fed(&format!("retry: 2000\n\n{}{}event: end\ndata: {{}}\n\n", reply(0), reply(1))).unwrap();
        assert_eq!((whole.added.len(), whole.is_over, whole.next), (1, true, 2));
        assert!(fed(&(reply(0) + &reply(2))).is_err());
        assert!(fed(&(reply(0) + &reply(0))).is_err());
    }
}
