//! The lines between a client and the server. Lines that are not messages get an error response (JSON-RPC 2.0, section 5).
//!
//! `rmcp` skips lines that it cannot parse, or responds without an `id`, so that a client would wait forever.

use std::io;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Maximum size of a message in bytes.
const LONGEST: usize = 16 << 20;
/// Size of the buffers between client and server, in bytes.
const PIPE: usize = 64 * 1024;
/// Timeout of writing the last lines.
const LAST: Duration = Duration::from_secs(5);

/// Error codes of JSON-RPC 2.0: a line is not JSON, or not a message.
const NO_JSON: i64 = -32700;
const NO_MESSAGE: i64 = -32600;

/// The server's ends of the two pipes: its input and its output.
pub(super) type Ends = (DuplexStream, DuplexStream);

/// The tasks that forward lines.
pub(super) struct Lines {
    reads: JoinHandle<()>,
    writes: JoinHandle<()>,
}

impl Lines {
    /// Starts forwarding between `input` and `output`, and returns the server's ends.
    pub(super) fn between(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> (Self, Ends) {
        let ((to_server, server_reads), (server_writes, from_server)) = (duplex(PIPE), duplex(PIPE));
        let (refuse, refused) = mpsc::channel(16);
        let reads = tokio::spawn(async move {
            // When either side is closed, there is nothing to forward.
            let _ = read(BufReader::new(input), to_server, refuse).await;
        });
        let writes = tokio::spawn(async move {
            let _ = write(BufReader::new(from_server), refused, output).await;
        });
        (Self { reads, writes }, (server_reads, server_writes))
    }

    /// Waits until all output of the server is written. Its ends must be dropped before.
    pub(super) async fn end(self) {
        self.reads.abort();
        let _ = tokio::time::timeout(LAST, self.writes).await;
    }
}

/// Forwards the lines that are messages, and refuses all others.
async fn read(
    mut input: impl AsyncBufRead + Unpin,
    mut to: DuplexStream,
    refuse: mpsc::Sender<Value>,
) -> io::Result<()> {
    while let Some(line) = next(&mut input).await? {
        match line {
            Line::TooLong => {
                let why = format!("the message has more than {LONGEST} bytes");
                drop(refuse.send(refusal(Value::Null, NO_JSON, &why)).await);
            }
            Line::Whole(line) => match flaw(&line) {
                Some(refusal) => drop(refuse.send(refusal).await),
                None if line.trim_ascii().is_empty() => {}
                None => {
                    to.write_all(&line).await?;
                    to.write_all(b"\n").await?;
                }
            },
        }
    }
    Ok(())
}

/// A line of a client, without its line break.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Vec<u8>),
    /// It has more than [`LONGEST`] bytes, and was dropped.
    TooLong,
}

impl Line {
    fn of(line: Vec<u8>, is_too_long: bool) -> Self {
        if is_too_long { Self::TooLong } else { Self::Whole(line) }
    }
}

/// The next line; `None` at the end of the input.
async fn next(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Line>> {
    let (mut line, mut is_too_long) = (Vec::new(), false);
    loop {
        let piece = input.fill_buf().await?;
        if piece.is_empty() {
            return Ok((!line.is_empty() || is_too_long).then(|| Line::of(line, is_too_long)));
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
        is_too_long |= line.len() + taken.len() > LONGEST;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(taken);
        }
        let used = end.map_or(piece.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(Line::of(line, is_too_long)));
        }
    }
}

/// The error response to a line that is not a message; `None` for messages, empty lines and notifications.
fn flaw(line: &[u8]) -> Option<Value> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.trim_ascii().is_empty() || serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line).is_ok() {
        return None;
    }
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            return Some(refusal(Value::Null, NO_JSON, &format!("this is not valid JSON: {error}")));
        }
    };
    let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    if id.is_none() && value.get("method").is_some_and(Value::is_string) {
        return None;
    }
    Some(refusal(id.unwrap_or(Value::Null), NO_MESSAGE, "this is not an MCP message"))
}

fn refusal(id: Value, code: i64, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}})
}

/// Writes the lines of the server and the refusals, each whole.
async fn write(
    mut server: impl AsyncBufRead + Unpin,
    mut refused: mpsc::Receiver<Value>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        tokio::select! {
            // A partly read line is kept while a refusal is written.
            read = server.read_until(b'\n', &mut line) => {
                if read? == 0 {
                    break;
                }
                output.write_all(&std::mem::take(&mut line)).await?;
            }
            Some(refusal) = refused.recv() => output.write_all(format!("{refusal}\n").as_bytes()).await?,
        }
        output.flush().await?;
    }
    while let Ok(refusal) = refused.try_recv() {
        output.write_all(format!("{refusal}\n").as_bytes()).await?;
    }
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_line_is_answered_with_its_id_or_null() {
        let code = |line: &str| {
            flaw(line.as_bytes()).map(|answer| (answer["id"].clone(), answer["error"]["code"].clone()))
        };
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/of_no_kind","params":[1]}"#,
            "",
            " \r",
        ] {
            assert_eq!(code(line), None, "{line}");
        }
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        for (line, id, number) in [
            ("{", Value::Null, NO_JSON),
            ("hello", Value::Null, NO_JSON),
            (&deep, Value::Null, NO_JSON),
            ("\u{1}", Value::Null, NO_JSON),
            ("[]", Value::Null, NO_MESSAGE),
            ("7", Value::Null, NO_MESSAGE),
            (r#"{"id":5}"#, json!(5), NO_MESSAGE),
            (r#"{"jsonrpc":"2.0","id":{},"result":1}"#, Value::Null, NO_MESSAGE),
        ] {
            assert_eq!(code(line), Some((id, json!(number))), "{line}");
        }
        assert_eq!(flaw(b"\xff\xfe").unwrap()["error"]["code"], NO_JSON);
    }

    #[tokio::test]
    async fn lines_are_read_one_by_one_and_long_ones_passed_over() {
        let text = [&b"one\n\n"[..], &vec![b'x'; LONGEST + 1], b"\nlast"].concat();
        let mut input = BufReader::new(&*text);
        let mut read = Vec::new();
        while let Some(line) = next(&mut input).await.unwrap() {
            read.push(line);
        }
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(read, [whole("one"), whole(""), Line::TooLong, whole("last")]);
    }
}
