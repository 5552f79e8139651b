//! Marks in requests up to which a provider caches the prompt.
//!
//! A provider reads from its cache what stands before a mark of an earlier request. There are four at most: after the tools
//! and the system text, and after the first message, which are the same in every request and so stay in the buffer; after
//! the last message of the request before, and after the last message. The last two move, so they are inserted into a body
//! when it is complete and removed before its buffer is used again.

use std::ops::Range;

use bytes::BytesMut;

/// How an API marks the end of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheMark {
    pub(crate) bytes: &'static [u8],
    /// The mark of what is the same in every request, if it is cached for an hour. These come first.
    pub(crate) long: &'static [u8],
    /// How many bytes from the end of a message it is inserted.
    pub(crate) back: usize,
    /// Whether only models take it of which the table has the minimum of a cached prefix.
    pub(crate) only_known: bool,
}

impl CacheMark {
    /// Marks the message that `buffer` ends with.
    pub(crate) fn put(&self, buffer: &mut BytesMut) {
        insert(buffer, self.end(buffer), self.bytes);
    }

    /// Marks the first message, with which `buffer` ends: it is the same in every request.
    pub(crate) fn put_first(&self, buffer: &mut BytesMut, is_long: bool) {
        insert(buffer, self.end(buffer), if is_long { self.long } else { self.bytes });
    }

    /// Where the mark of the message that `buffer` ends with belongs.
    pub(crate) fn end(&self, buffer: &BytesMut) -> usize {
        buffer.len().saturating_sub(self.back)
    }

    /// Marks a message before the last one at `at`, unless there is a mark. Returns the range of the mark.
    pub(crate) fn put_at(&self, buffer: &mut BytesMut, at: usize) -> Option<Range<usize>> {
        let rest = buffer.get(at..)?;
        if rest.starts_with(self.bytes) || rest.starts_with(self.long) || at >= self.end(buffer) {
            return None;
        }
        insert(buffer, at, self.bytes);
        Some(at..at + self.bytes.len())
    }
}

/// Inserts `bytes` at `at`; what follows is moved.
fn insert(buffer: &mut BytesMut, at: usize, bytes: &[u8]) {
    let length = buffer.len();
    if at > length {
        return;
    }
    buffer.extend_from_slice(bytes);
    buffer.copy_within(at..length, at + bytes.len());
    if let Some(place) = buffer.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Removes the bytes in `range`.
pub(crate) fn remove(buffer: &mut BytesMut, range: &Range<usize>) {
    let length = buffer.len();
    if range.end <= length {
        buffer.copy_within(range.end..length, range.start);
        buffer.truncate(length - range.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: CacheMark = CacheMark { bytes: b",m", long: b",mm", back: 3, only_known: false };

    #[test]
    fn a_mark_is_inserted_once_and_removed_without_a_trace() {
        let mut buffer = BytesMut::from(&b"[{a}]},[{b}]}"[..]);
        let whole = buffer.clone();
        MARK.put(&mut buffer);
        assert_eq!(&buffer[..], b"[{a}]},[{b,m}]}");
        let range = MARK.put_at(&mut buffer, 3).unwrap();
        assert_eq!((&buffer[..], range.clone()), (&b"[{a,m}]},[{b,m}]}"[..], 3..5));
        assert_eq!(MARK.put_at(&mut buffer, 3), None, "there is one");
        let end = MARK.end(&buffer);
        assert_eq!(MARK.put_at(&mut buffer, end), None, "that is the last message");
        assert_eq!(MARK.put_at(&mut buffer, 99), None);
        remove(&mut buffer, &range);
        assert_eq!(&buffer[..], b"[{a}]},[{b,m}]}");
        remove(&mut buffer, &(10..12));
        assert_eq!(buffer, whole);
        remove(&mut buffer, &(10..99));
        assert_eq!(buffer, whole);
    }
}
