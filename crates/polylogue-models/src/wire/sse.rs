//! Splits a streamed body into lines, wherever the network cut it.
//!
//! It accepts server-sent events as servers write them: with any line ends, with comments, with or without a space after `data:`,
//! without blank lines between events, or as bare lines of JSON. Parsing lines, and joining the lines of one event, is up to the
//! caller, because some servers omit the blank line that ends an event.

use memchr::memchr2;

/// Maximum length of a line in bytes, many times that of a whole reply as one event.
const MAX_LINE: usize = 8 << 20;

/// The fields of events.
const FIELDS: [&[u8]; 4] = [b"event", b"id", b"retry", b"data"];

/// A line with content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// The value of a `data:` field.
    Data(&'a [u8]),
    /// A line that is not a field of an event stream, such as bare JSON.
    Bare(&'a [u8]),
    /// The blank line after an event.
    Blank,
}

/// A line without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineTooLong;

/// Buffers the incomplete line.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    partial: Vec<u8>,
    /// The last byte was a carriage return: a line feed right after it does not end another line.
    after_return: bool,
    /// Whether a line was seen: only the first may begin with a byte order mark.
    begun: bool,
}

impl Splitter {
    /// Takes the next bytes and calls `emit` with every complete line.
    ///
    /// # Errors
    /// What `emit` returns, and [`LineTooLong`].
    pub(crate) fn feed<E: From<LineTooLong>>(
        &mut self,
        bytes: &[u8],
        mut emit: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else { break };
            let (line, after) = rest.split_at(end);
            self.after_return = after.first() == Some(&b'\r');
            rest = after.get(1..).unwrap_or_default();
            self.line(line, &mut emit)?;
        }
        self.keep(rest).map_err(E::from)
    }

    /// Calls `emit` with a last line without a line break.
    ///
    /// # Errors
    /// What `emit` returns, and [`LineTooLong`].
    pub(crate) fn finish<E: From<LineTooLong>>(
        &mut self,
        mut emit: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // The beginning of a field's name is nothing: the stream was cut there.
        let is_name = FIELDS.iter().any(|name| name.starts_with(&self.partial));
        if is_name { Ok(()) } else { self.line(&[], &mut emit) }
    }

    fn line<E: From<LineTooLong>>(
        &mut self,
        end: &[u8],
        emit: &mut impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let first = !std::mem::replace(&mut self.begun, true);
        if self.partial.is_empty() {
            // The usual case: the whole line is in the given bytes and is not copied.
            check_length(end.len())?;
            return classify(end, first).map_or(Ok(()), emit);
        }
        self.keep(end)?;
        let mut whole = std::mem::take(&mut self.partial);
        let result = classify(&whole, first).map_or(Ok(()), emit);
        whole.clear();
        self.partial = whole;
        result
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), LineTooLong> {
        check_length(self.partial.len().saturating_add(bytes.len()))?;
        self.partial.extend_from_slice(bytes);
        Ok(())
    }
}

fn check_length(bytes: usize) -> Result<(), LineTooLong> {
    if bytes > MAX_LINE { Err(LineTooLong) } else { Ok(()) }
}

/// The content of `line`; `None` for comments and for fields other than `data`.
fn classify(line: &[u8], first: bool) -> Option<Line<'_>> {
    let line = if first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
    if line.is_empty() {
        return Some(Line::Blank);
    }
    if let Some(value) = line.strip_prefix(b"data:") {
        return Some(Line::Data(value.strip_prefix(b" ").unwrap_or(value)));
    }
    let other =
        |name: &[u8]| line.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"));
    if line.starts_with(b":") || FIELDS.into_iter().any(other) {
        return None;
    }
    Some(Line::Bare(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(pieces: &[&[u8]]) -> Vec<(char, Vec<u8>)> {
        let mut heard = Vec::new();
        let mut splitter = Splitter::default();
        let mut emit = |line: Line<'_>| {
            heard.push(match line {
                Line::Data(data) => ('d', data.to_vec()),
                Line::Bare(data) => ('b', data.to_vec()),
                Line::Blank => (' ', Vec::new()),
            });
            Ok::<(), LineTooLong>(())
        };
        for piece in pieces {
            splitter.feed(piece, &mut emit).unwrap();
        }
        splitter.finish(&mut emit).unwrap();
        heard
    }

    #[test]
    fn every_kind_of_line_end_and_field() {
        let body = b"\xef\xbb\xbfdata: a\r\n: ping\r\rdata:b\nevent: x\nid\n\n{\"c\":1}\ndata:  d";
        let expected = [('d', "a"), (' ', ""), ('d', "b"), (' ', ""), ('b', "{\"c\":1}"), ('d', " d")];
        let expected: Vec<_> = expected.map(|(kind, text)| (kind, text.as_bytes().to_vec())).into();
        assert_eq!(lines(&[body]), expected);
    }

    #[test]
    fn an_endless_line_is_an_error_and_the_longest_is_none() {
        let mut splitter = Splitter::default();
        let mut longest = 0;
        let piece = vec![b'x'; 1 << 20];
        let result = (0..100).try_for_each(|_| {
            splitter.feed(&piece, |_| Ok::<(), LineTooLong>(()))?;
            longest = splitter.partial.len();
            Ok(())
        });
        assert_eq!((result, longest), (Err(LineTooLong), MAX_LINE));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(
            body in proptest::collection::vec(
                prop_oneof![Just(b"data: ".to_vec()), Just(b"\r\n".to_vec()), Just(b"\n".to_vec()), Just(b"\r".to_vec()),
                    Just(b":".to_vec()), Just(b"{}".to_vec()), proptest::collection::vec(any::<u8>(), 0..4)], 0..40),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let body = body.concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
            prop_assert_eq!(lines(&pieces), lines(&[&body]));
        }
    }
}
