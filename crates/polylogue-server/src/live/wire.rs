//! The lines of the internal stream. Each is a JSON object; an empty one says that the other side is well.

use std::time::Duration;

use blake3::Hash;
use polylogue_core::LogId;
use polylogue_runtime::database::LivePoint;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::pieces::{Key, OrderedDelta};

/// The version of these lines.
pub(super) const VERSION: u32 = 1;

/// How long connecting, and each side's proof, may take.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);

/// How often each side says that it is well.
pub(super) const ALIVE: Duration = Duration::from_secs(10);

/// How long after its last line the other side is given up, and how long it may take nothing.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// The longest line that a holder accepts: the id of a conversation.
pub(super) const REQUEST_BYTES: usize = 1024;

/// The longest line that it sends: a longer piece makes its reply one that is not shown live.
pub(super) const FRAME_BYTES: usize = 64 * 1024;

/// The first line of the holder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) polylogue_live: u32,
    pub(super) challenge: String,
}

/// The first line of the follower: it knows the secret of the point.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Knock {
    pub(super) key: String,
    pub(super) nonce: String,
    pub(super) proof: String,
}

/// The holder knows it, too.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) proof: String,
}

/// What a follower asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// To follow a conversation, under a number of the follower's.
    Follow { id: LogId, number: u64 },
    /// To follow it no longer.
    Leave { number: u64 },
}

/// What a holder sends of the conversation with a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) number: u64,
    #[serde(flatten)]
    pub(super) news: Of,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Of {
    /// The event with this number was stored, and ends replies.
    Stored {
        seq: u64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ends: Vec<Key>,
    },
    /// A piece of a reply.
    Piece(OrderedDelta),
    /// Pieces were left out, because the follower was slow.
    Missed,
    /// The holder does not run it, or no longer.
    Ended,
}

/// Who proves something. They differ, so that a proof cannot be sent back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Follower,
    Holder,
}

/// The proof of a side that it knows the secret, for one connection.
pub(super) fn proof(point: &LivePoint, side: Side, challenge: &Hash, nonce: &Hash) -> Hash {
    let side: &[u8] = match side {
        Side::Follower => b"polylogue live follower",
        Side::Holder => b"polylogue live holder",
    };
    let text = [side, challenge.as_bytes(), nonce.as_bytes(), point.address.as_bytes()].concat();
    blake3::keyed_hash(&point.secret, &text)
}

/// Random bytes.
pub(super) fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// Why a connection is closed. What the other side has sent is in no message.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("it says nothing")]
    Silent,
    #[error("it has ended")]
    Ended,
    #[error("a line is too long")]
    Long,
    #[error("a line is not understood")]
    Unknown,
    #[error("it does not know the secret")]
    Stranger,
    #[error("it takes nothing")]
    Slow,
}

/// Reads lines, whose beginnings survive a read that is dropped.
pub(super) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    most: usize,
    /// When the last line came.
    heard: Instant,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Lines of at most so many bytes.
    pub(super) fn new(reader: R, most: usize) -> Self {
        Self { reader, line: Vec::new(), most, heard: Instant::now() }
    }

    /// The next line that is not empty. Can be dropped and called again.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, Broken> {
        loop {
            let line = timeout_at(self.heard + SILENCE, self.line()).await.map_err(|_| Broken::Silent)??;
            self.heard = Instant::now();
            if !line.is_empty() {
                return serde_json::from_slice(&line).map_err(|_| Broken::Unknown);
            }
        }
    }

    /// The next one, which must come soon.
    pub(super) async fn first<T: DeserializeOwned>(&mut self) -> Result<T, Broken> {
        timeout(HANDSHAKE, self.next()).await.map_err(|_| Broken::Silent)?
    }

    async fn line(&mut self) -> Result<Vec<u8>, Broken> {
        loop {
            let room = self.most.saturating_sub(self.line.len()) as u64 + 1;
            // Cancel safe: what was read is in the line.
            let read = (&mut self.reader).take(room).read_until(b'\n', &mut self.line).await?;
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
                return Ok(std::mem::take(&mut self.line));
            }
            if read == 0 {
                return Err(Broken::Ended);
            }
            if self.line.len() > self.most {
                return Err(Broken::Long);
            }
        }
    }
}

/// One line.
pub(super) fn line_of(value: &impl Serialize) -> Vec<u8> {
    // They hold nothing that JSON cannot.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Sends bytes, unless the other side takes nothing for long.
pub(super) async fn send(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), Broken> {
    timeout(SILENCE, writer.write_all(bytes)).await.map_err(|_| Broken::Slow)??;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Result<Request, Broken> {
        Lines::new(bytes, REQUEST_BYTES).next().await
    }

    #[tokio::test]
    async fn no_bytes_are_more_than_an_error() {
        assert!(matches!(read(b"").await, Err(Broken::Ended)));
        assert!(matches!(read(b"\n\n{\"leave\":{\"number\":1}}\n").await, Ok(Request::Leave { number: 1 })));
        assert!(matches!(read(&[b'x'; REQUEST_BYTES + 1]).await, Err(Broken::Long)));
        for bytes in [
            &b"\xff\xfe\n"[..],
            b"{}\n",
            b"[[[[\n",
            b"{\"follow\":{\"id\":\"../x\",\"number\":1}}\n",
            b"GET / HTTP/1.1\r\n",
        ] {
            assert!(matches!(read(bytes).await, Err(Broken::Unknown)), "{bytes:?}");
        }
    }

    #[test]
    fn a_proof_is_of_one_side_one_point_and_one_connection() {
        let point = |address: &str, byte| LivePoint { address: address.into(), secret: [byte; 32] };
        let hash = |byte| Hash::from_bytes([byte; 32]);
        let of = |point: &LivePoint, side, a, b| proof(point, side, &hash(a), &hash(b)).to_hex().to_string();
        let mut proofs = vec![
            of(&point("a", 1), Side::Follower, 1, 2),
            of(&point("b", 1), Side::Follower, 1, 2),
            of(&point("a", 2), Side::Follower, 1, 2),
            of(&point("a", 1), Side::Holder, 1, 2),
            of(&point("a", 1), Side::Follower, 2, 1),
        ];
        proofs.sort();
        proofs.dedup();
        assert_eq!(proofs.len(), 5);
    }
}
