//! Frames of an event stream, wherever the network cut it.

use std::time::Duration;

/// The longest frame, in bytes: an event can have pictures.
const MAX_FRAME: usize = 128 << 20;

/// A frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) event: String,
    pub(crate) data: String,
}

/// The stream is no event stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoEventStream(pub(crate) &'static str);

/// Reads frames from pieces of a stream.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Bytes without an end of line.
    partial: Vec<u8>,
    frame: Frame,
    has_data: bool,
    /// After how long a client that has lost the stream connects again.
    pub(crate) retry: Option<Duration>,
}

impl Frames {
    /// Those of the next connection.
    pub(crate) fn restarted(&self) -> Self {
        Self { retry: self.retry, ..Self::default() }
    }

    /// Takes the next bytes, and calls `emit` with every complete frame.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut emit: impl FnMut(Frame),
    ) -> Result<(), NoEventStream> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            self.keep(line)?;
            let line = std::mem::take(&mut self.partial);
            let line = std::str::from_utf8(&line).map_err(|_| NoEventStream("it is not UTF-8"))?;
            self.line(line.strip_suffix('\r').unwrap_or(line)).into_iter().for_each(&mut emit);
        }
        self.keep(bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), NoEventStream> {
        if self.partial.len() + self.frame.data.len() + bytes.len() > MAX_FRAME {
            return Err(NoEventStream("a frame of it is too long"));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn line(&mut self, line: &str) -> Option<Frame> {
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return std::mem::take(&mut self.has_data).then_some(frame);
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.frame.event),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
            }
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            // A comment, the id of an event, which its data has, too, or a field of a newer version.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> (Vec<(String, String)>, Option<Duration>) {
        let (mut found, mut frames) = (Vec::new(), Frames::default());
        for piece in pieces {
            frames.feed(piece, |frame| found.push((frame.event, frame.data))).unwrap();
        }
        (found, frames.retry)
    }

    #[test]
    fn a_stream_is_the_same_wherever_it_was_cut() {
        let text = "retry: 2000\n\n:\n\nevent: entry\nid: 3\ndata: a\ndata:  ü\n\nevent: end\r\ndata: {}\r\n\r\nevent: x\ndata: cut";
        let whole = frames(&[text.as_bytes()]);
        let named = |event: &str, data: &str| (event.to_owned(), data.to_owned());
        assert_eq!(whole.0, [named("entry", "a\n ü"), named("end", "{}")]);
        assert_eq!(whole.1, Some(Duration::from_millis(2000)));
        for at in 0..text.len() {
            let (before, after) = text.as_bytes().split_at(at);
            assert_eq!(frames(&[before, after]), whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(frames(&bytes), whole);
    }

    #[test]
    fn what_is_no_event_stream_is_an_error() {
        assert_eq!(Frames::default().feed(b"data: \xff\n", |_| {}), Err(NoEventStream("it is not UTF-8")));
        let (piece, mut frames) = (vec![b'a'; 1 << 20], Frames::default());
        let mut fed = (0..200).map(|_| frames.feed(&piece, |_| {}));
        assert!(fed.any(|fed| fed.is_err()));
    }
}
