//! The output of a server, limited in length and nesting of its messages.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Maximum nesting of a message. The JSON parser stops at 128, and would skip a deeper message silently.
const DEEPEST: usize = 120;

/// The limit that a message exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SizeLimit {
    Length = 1,
    Depth = 2,
}

/// Whether a message of a server exceeded a limit, and which.
#[derive(Debug, Default)]
pub(crate) struct ExceededLimit(AtomicU8);

impl ExceededLimit {
    pub(crate) fn note(&self, what: SizeLimit) {
        self.0.store(what as u8, Ordering::Relaxed);
    }

    /// The description of the exceeded limit, to follow the name of the server; `None` if there is none.
    pub(crate) fn in_words(&self, longest: usize) -> Option<String> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            2 => Some(format!("sent a message that is nested more than {DEEPEST} deep")),
            _ => Some(format!("sent a message of more than {longest} bytes")),
        }
    }
}

/// The nesting of JSON that is read byte by byte.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Depth {
    /// Takes `byte`, and returns whether the nesting is still within the limit.
    pub(crate) const fn admits(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_text => self.is_escaped = true,
            b'"' => self.in_text = !self.in_text,
            _ if self.in_text => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.depth <= DEEPEST
    }
}

/// Reads until a line is longer than `longest` bytes, or nested too deep. Then it ends, so that a call fails at once, while a
/// skipped line would let it wait for the response in it.
#[derive(Debug)]
pub(crate) struct Output<R> {
    inner: R,
    longest: usize,
    line: usize,
    depth: Depth,
    exceeded: Arc<ExceededLimit>,
}

impl<R> Output<R> {
    /// Stores in `exceeded` why it ended.
    pub(crate) fn new(inner: R, longest: usize, exceeded: Arc<ExceededLimit>) -> Self {
        Self { inner, longest, line: 0, depth: Depth::default(), exceeded }
    }

    /// The limit that a line in `piece` exceeds.
    fn flaw(&mut self, piece: &[u8]) -> Option<SizeLimit> {
        for byte in piece {
            if *byte == b'\n' {
                (self.line, self.depth) = (0, Depth::default());
                continue;
            }
            self.line += 1;
            if self.line > self.longest {
                return Some(SizeLimit::Length);
            }
            if !self.depth.admits(*byte) {
                return Some(SizeLimit::Depth);
            }
        }
        None
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Output<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = &polled
            && let Some(flaw) = this.flaw(buf.filled().get(before..).unwrap_or_default())
        {
            this.exceeded.note(flaw);
            buf.set_filled(before);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read(text: &str, longest: usize) -> (String, Option<String>) {
        let exceeded = Arc::default();
        let mut output = Output::new(text.as_bytes(), longest, Arc::clone(&exceeded));
        let mut buffer = [0; 3];
        let mut read = Vec::new();
        while let Ok(n @ 1..) = output.read(&mut buffer).await {
            read.extend_from_slice(&buffer[..n]);
        }
        (String::from_utf8(read).unwrap(), exceeded.in_words(longest))
    }

    #[tokio::test]
    async fn it_ends_with_a_line_that_is_too_long() {
        assert_eq!(read("1234\n1234\n\n1", 4).await, ("1234\n1234\n\n1".into(), None));
        let text = Some("sent a message of more than 4 bytes".to_owned());
        assert_eq!(read("12\n12345\n1", 4).await, ("12\n123".into(), text));
    }

    #[tokio::test]
    async fn it_ends_with_a_line_that_is_nested_too_deep() {
        let fine = format!("{}\n{}\"\\\"{}\"\n", "[".repeat(120), "{}".repeat(500), "[".repeat(500));
        assert_eq!(read(&fine, 9_000).await, (fine.clone(), None));
        let (_, text) = read(&format!("{}\n", "{\"a\":[".repeat(61)), 9_000).await;
        assert_eq!(text.as_deref(), Some("sent a message that is nested more than 120 deep"));
    }
}
