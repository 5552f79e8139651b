//! What a server writes, as long as its lines are not too long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Reads on until a line is longer than `longest` bytes. Then it ends, so that a call fails at once, where a line that is
/// skipped would let it wait for an answer that was in it.
#[derive(Debug)]
pub(crate) struct Output<R> {
    inner: R,
    longest: usize,
    line: usize,
    is_too_long: Arc<AtomicBool>,
}

impl<R> Output<R> {
    /// `is_too_long` becomes `true` with a line that is.
    pub(crate) const fn new(inner: R, longest: usize, is_too_long: Arc<AtomicBool>) -> Self {
        Self { inner, longest, line: 0, is_too_long }
    }

    /// Whether no line of `piece` makes one that is too long.
    fn admits(&mut self, piece: &[u8]) -> bool {
        let mut lines = piece.split(|byte| *byte == b'\n');
        self.line += lines.next().unwrap_or_default().len();
        let mut longest = self.line;
        for line in lines {
            self.line = line.len();
            longest = longest.max(self.line);
        }
        longest <= self.longest
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Output<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = &polled {
            let is_fine = this.admits(buf.filled().get(before..).unwrap_or_default());
            if !is_fine {
                this.is_too_long.store(true, Ordering::Relaxed);
                buf.set_filled(before);
            }
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read(text: &str) -> (String, bool) {
        let is_too_long = Arc::default();
        let mut output = Output::new(text.as_bytes(), 4, Arc::clone(&is_too_long));
        let mut buffer = [0; 3];
        let mut read = Vec::new();
        while let Ok(n @ 1..) = output.read(&mut buffer).await {
            read.extend_from_slice(&buffer[..n]);
        }
        (String::from_utf8(read).unwrap(), is_too_long.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn it_ends_with_a_line_that_is_too_long() {
        assert_eq!(read("1234\n1234\n\n1").await, ("1234\n1234\n\n1".into(), false));
        assert_eq!(read("12\n12345\n1").await, ("12\n123".into(), true));
    }
}
