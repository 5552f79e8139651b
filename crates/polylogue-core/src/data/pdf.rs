//! The size of a PDF, by which a call that reads it is charged.
//!
//! It is an upper bound, whatever a reader makes of the file: all versions of all objects count, wherever they are in it, and no table says
//! which of them are meant. What cannot be read for certain is not counted, and neither is what would take too long.

mod dict;
mod lexer;
mod page_tree;
mod stream;

use self::dict::{Dict, number, skip_nested};
use self::lexer::{Lexer, Token, is_space};
use self::page_tree::PageTree;
use self::stream::{is_of_picture, shown, unpacked};

/// The bytes that are read at most, unpacked ones included, which takes less than a second.
const MOST_READ: usize = 128 << 20;

/// The bytes to which a stream is unpacked at most.
const MOST_UNPACKED: usize = 64 << 20;

/// As how many bytes an object counts besides its own, so that there are not too many of them.
const OBJECT: usize = 64;

/// The size of a PDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PdfSize {
    /// The most pages.
    pub(crate) pages: u64,
    /// The most bytes of the strings that they show, and of separators between these.
    pub(crate) text: u64,
    /// Whether it has as many pages for every reader: no object has another version, and all that say how many there are agree.
    pub(crate) is_exact: bool,
}

impl PdfSize {
    /// The size of the PDF with the content `bytes`. `None` if it cannot be told: it is damaged or encrypted, packed in a rare way, or larger
    /// than any that a provider reads.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        if find(bytes, b"/Encrypt").is_some() {
            return None;
        }
        let mut scan = Scan { left: MOST_READ, tree: PageTree::default(), text: 0 };
        let mut at = 0;
        while let Some(found) = find(bytes.get(at..)?, b"obj") {
            let (head, rest) = bytes.split_at_checked(at + found)?;
            at += found + b"obj".len();
            if let Some(object) = number_before(head) {
                scan.object(object, rest.get(b"obj".len()..)?)?;
            }
        }
        let (pages, is_exact) = scan.tree.count()?;
        Some(Self { pages: pages.max(1), text: scan.text, is_exact: is_exact && pages > 0 })
    }
}

/// What was found in a PDF so far.
struct Scan {
    /// How many bytes can still be read.
    left: usize,
    tree: PageTree,
    text: u64,
}

impl Scan {
    fn read(&mut self, bytes: usize) -> Option<()> {
        self.left = self.left.checked_sub(bytes)?;
        Some(())
    }

    /// Reads an object of the file, with its stream.
    fn object(&mut self, object: u64, bytes: &[u8]) -> Option<()> {
        let (dict, mut after) = self.node(object, bytes)?;
        match after.next() {
            Some(Token::Word(b"stream")) => {}
            // Some readers take what follows at once as the data.
            Some(Token::Word(word)) if word.starts_with(b"stream") => return None,
            _ => return Some(()),
        }
        let rest = after.rest();
        let rest = rest.strip_prefix(b"\r\n").or(rest.strip_prefix(b"\n")).unwrap_or(rest);
        let data = rest.get(..find(rest, b"endstream")?)?;
        self.read(data.len())?;
        if dict.is(b"XRef") || dict.is_picture() {
            return Some(());
        }
        let filters = dict.filters()?;
        if filters.iter().any(|filter| is_of_picture(filter)) {
            return Some(());
        }
        let content = unpacked(data, &filters, MOST_UNPACKED.min(self.left))?;
        self.read(content.len())?;
        if dict.is(b"ObjStm") {
            return self.packed_objects(number(dict.first?)?, &content);
        }
        self.text = self.text.saturating_add(shown(&content));
        Some(())
    }

    /// Reads the objects in a stream, where none has a stream itself: their numbers and places, and from `first` on these.
    fn packed_objects(&mut self, first: u64, content: &[u8]) -> Option<()> {
        let (places, objects) = content.split_at_checked(usize::try_from(first).ok()?)?;
        let mut places = Lexer::new(places);
        while let Some(object) = places.next() {
            let (Token::Number(Some(object)), Token::Number(Some(place))) = (object, places.next()?) else {
                return None;
            };
            self.node(object, objects.get(usize::try_from(place).ok()?..)?)?;
        }
        Some(())
    }

    /// Reads what `bytes` begin with, as an object. Returns its dictionary, which is empty if it is none, and what comes after.
    fn node<'b>(&mut self, object: u64, bytes: &'b [u8]) -> Option<(Dict<'b>, Lexer<'b>)> {
        let (mut lexer, mut dict) = (Lexer::new(bytes), Dict::default());
        match lexer.next() {
            Some(Token::OpenDict) => {
                dict = Dict::read(&mut lexer)?;
                self.tree.add(object, &dict)?;
            }
            Some(Token::Open) => {
                skip_nested(&mut lexer)?;
                self.tree.add_list(object, lexer.since(0));
            }
            _ => {}
        }
        self.read(lexer.at() + OBJECT)?;
        Some((dict, lexer))
    }
}

/// Where `wanted` begins in `bytes`.
fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted.first()?;
    let is_there = |at: &usize| bytes.get(*at..).is_some_and(|rest| rest.starts_with(wanted));
    let begins = bytes.iter().enumerate().filter(|(_, byte)| *byte == first);
    begins.map(|(at, _)| at).find(is_there)
}

/// The number of an object whose `obj` comes after `head`, which ends with it and another number.
fn number_before(head: &[u8]) -> Option<u64> {
    let head = without_end(head, is_space);
    let before = without_end(head, |byte| byte.is_ascii_digit());
    let numbered = without_end(before, is_space);
    let digits = numbered.get(without_end(numbered, |byte| byte.is_ascii_digit()).len()..)?;
    let is_there = before.len() < head.len() && numbered.len() < before.len();
    number(digits).filter(|_| is_there)
}

/// `bytes` without those at their end that are meant.
fn without_end(bytes: &[u8], is_meant: impl Fn(u8) -> bool) -> &[u8] {
    let kept = bytes.iter().rposition(|byte| !is_meant(*byte)).map_or(0, |last| last + 1);
    bytes.get(..kept).unwrap_or_default()
}

#[cfg(test)]
mod tests;
