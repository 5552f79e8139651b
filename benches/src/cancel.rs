//! How soon a canceled call closes its connection, by each API.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use polylogue::{Assistant, Chat, round_robin};
use tokio::sync::oneshot;

use crate::dialect::Dialect;
use crate::job::Result;
use crate::table;

/// Calls that are canceled, in each state.
const CALLS: usize = 50;

/// The begin of a reply that never continues.
const BEGUN: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\n: ...\r\n";

/// How far a reply has come when its call is canceled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The request has arrived.
    Asked,
    /// The reply has begun.
    Begun,
}

/// Prints the median and the longest time from a cancellation until the server sees the connection closed.
pub(crate) fn report() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for dialect in Dialect::ALL {
        let mut row = vec![dialect.name().to_owned()];
        for stage in [Stage::Asked, Stage::Begun] {
            let mut times = Vec::with_capacity(CALLS);
            for _ in 0..CALLS {
                times.push(runtime.block_on(canceled(dialect, stage))?);
            }
            times.sort_unstable();
            let shown =
                |time: Option<&Duration>| format!("{:.2} ms", time.map_or(0.0, Duration::as_secs_f64) * 1e3);
            row.extend([shown(times.get(CALLS / 2)), shown(times.last())]);
        }
        rows.push(row);
    }
    let title = "Time from a cancellation until the server sees the connection closed";
    table::print(title, &["", "while waiting", "longest", "in a reply", "longest"], &rows);
    Ok(())
}

/// The time of one call.
async fn canceled(dialect: Dialect, stage: Stage) -> Result<Duration> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let url = format!("http://{}", listener.local_addr()?);
    let (arrive, arrived) = oneshot::channel();
    let (close, closed) = oneshot::channel();
    let server = std::thread::spawn(move || serve(&listener, stage, arrive, close));
    let agent = Assistant::new("Ann", dialect.model(&url, true)?)?;
    let chat = Chat::builder("chat").participant(agent).policy(round_robin()).build()?;
    tokio::select! {
        biased;
        arrived = arrived => arrived?,
        ended = chat.run("Hello") => return Err(format!("the call ended: {ended:?}").into()),
    }
    // The run is dropped by now, as a cancellation drops the call.
    let begun = Instant::now();
    let ended: Instant = closed.await?;
    server.join().map_err(|_| "the server panicked")??;
    Ok(ended.saturating_duration_since(begun))
}

/// Takes one request, and tells when it has arrived and when its connection was closed.
fn serve(
    listener: &TcpListener,
    stage: Stage,
    arrive: oneshot::Sender<()>,
    close: oneshot::Sender<Instant>,
) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    while !is_whole(&request) {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        request.extend(buffer.iter().take(read));
    }
    if stage == Stage::Begun {
        stream.write_all(BEGUN)?;
        // It is read while the call waits for more.
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = arrive.send(());
    while !matches!(stream.read(&mut buffer), Ok(0) | Err(_)) {}
    let _ = close.send(Instant::now());
    Ok(())
}

/// Whether a request has its whole body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    };
    head.lines().find_map(length).is_none_or(|length: usize| body.len() >= length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_canceled_call_closes_its_connection() {
        for dialect in Dialect::ALL {
            for stage in [Stage::Asked, Stage::Begun] {
                canceled(dialect, stage).await.unwrap();
            }
        }
    }
}
