//! The framing of Amazon's streamed replies, `application/vnd.amazon.eventstream`.
//!
//! A frame is the length of the whole frame and of its headers, a checksum of both, the headers, the payload, and a checksum
//! of everything before. Numbers are big-endian; checksums are CRC-32.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html>

use std::ops::Range;

/// Bytes before the headers: two lengths and their checksum.
const PRELUDE: usize = 12;

/// Bytes of a checksum.
const CHECKSUM: usize = 4;

/// The most bytes of headers, as the services limit them.
const MAX_HEADERS: usize = 128 << 10;

/// The most bytes of a payload, as the services limit them.
const MAX_PAYLOAD: usize = 24 << 20;

/// One message of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    headers: &'a [u8],
    pub(crate) payload: &'a [u8],
}

/// Why bytes are not a stream of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the lengths of a frame do not match their checksum")]
    PreludeChecksum,
    #[error("a frame does not match its checksum")]
    Checksum,
    #[error("a frame of {0} bytes is longer than allowed, or shorter than its parts")]
    Length(usize),
    #[error("the headers of a frame cannot be read")]
    Headers,
}

impl<'a> Frame<'a> {
    /// The text of the header `name`, such as `:event-type`. `None` if there is none, or if it is not a text.
    ///
    /// # Errors
    /// When the headers are malformed.
    pub(crate) fn header(&self, name: &str) -> Result<Option<&'a str>, FrameError> {
        let mut rest = Cursor(self.headers);
        let mut found = None;
        while !rest.0.is_empty() {
            let length = rest.u8()?.into();
            let is_it = rest.bytes(length)? == name.as_bytes();
            let text = rest.value()?;
            if is_it && found.is_none() {
                found = text;
            }
        }
        Ok(found)
    }
}

/// What is left to read of headers.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(FrameError::Headers)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, FrameError> {
        self.bytes(1)?.first().copied().ok_or(FrameError::Headers)
    }

    fn u16(&mut self) -> Result<u16, FrameError> {
        let bytes = self.bytes(2)?.try_into().map_err(|_| FrameError::Headers)?;
        Ok(u16::from_be_bytes(bytes))
    }

    /// Reads a value, and returns it if it is a text.
    fn value(&mut self) -> Result<Option<&'a str>, FrameError> {
        let kind = self.u8()?;
        let length = match kind {
            // True and false have no bytes.
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            // A long, and a time.
            5 | 8 => 8,
            // Bytes, and a text.
            6 | 7 => self.u16()?.into(),
            // A UUID.
            9 => 16,
            _ => return Err(FrameError::Headers),
        };
        let value = self.bytes(length)?;
        match kind {
            7 => std::str::from_utf8(value).map(Some).map_err(|_| FrameError::Headers),
            _ => Ok(None),
        }
    }
}

/// Splits a body into frames, wherever the network cut it.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The beginning of a frame whose end did not arrive yet.
    partial: Vec<u8>,
}

impl Frames {
    /// Takes the next bytes and calls `emit` with every complete frame.
    ///
    /// # Errors
    /// What `emit` returns, and [`FrameError`].
    pub(crate) fn feed<E: From<FrameError>>(
        &mut self,
        bytes: &[u8],
        mut emit: impl FnMut(Frame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.partial.is_empty() {
            let used = each(bytes, &mut emit)?;
            self.partial.extend_from_slice(bytes.get(used..).unwrap_or_default());
            return Ok(());
        }
        self.partial.extend_from_slice(bytes);
        let used = each(&self.partial, &mut emit)?;
        self.partial.drain(..used);
        Ok(())
    }

    /// Whether the body ended in the middle of a frame.
    pub(crate) fn is_cut(&self) -> bool {
        !self.partial.is_empty()
    }
}

/// Calls `emit` with the frames at the beginning of `bytes`, and returns how many bytes they take.
fn each<E: From<FrameError>>(
    bytes: &[u8],
    emit: &mut impl FnMut(Frame<'_>) -> Result<(), E>,
) -> Result<usize, E> {
    let mut used = 0;
    while let Some(rest) = bytes.get(used..)
        && let Some((length, headers)) = prelude(rest)?
        && let Some(whole) = rest.get(..length)
    {
        emit(checked(whole, headers)?)?;
        used += length;
    }
    Ok(used)
}

/// The length of the frame that begins here and where its headers are, once its prelude is complete.
fn prelude(bytes: &[u8]) -> Result<Option<(usize, Range<usize>)>, FrameError> {
    let (Some(lengths), Some(total), Some(headers), Some(checksum)) =
        (bytes.get(..8), number(bytes, 0), number(bytes, 4), number(bytes, 8))
    else {
        return Ok(None);
    };
    if crc32fast::hash(lengths) != checksum {
        return Err(FrameError::PreludeChecksum);
    }
    let (total, headers) = (total as usize, headers as usize);
    let others = PRELUDE + headers.min(MAX_HEADERS) + CHECKSUM;
    if headers > MAX_HEADERS || total < others || total - others > MAX_PAYLOAD {
        return Err(FrameError::Length(total));
    }
    Ok(Some((total, PRELUDE..PRELUDE + headers)))
}

/// The frame of these bytes, if they match its checksum.
fn checked(bytes: &[u8], headers: Range<usize>) -> Result<Frame<'_>, FrameError> {
    let end = bytes.len().saturating_sub(CHECKSUM);
    let (Some(before), Some(checksum)) = (bytes.get(..end), number(bytes, end)) else {
        return Err(FrameError::Length(bytes.len()));
    };
    if crc32fast::hash(before) != checksum {
        return Err(FrameError::Checksum);
    }
    let payload = before.get(headers.end..).unwrap_or_default();
    Ok(Frame { headers: before.get(headers).unwrap_or_default(), payload })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
