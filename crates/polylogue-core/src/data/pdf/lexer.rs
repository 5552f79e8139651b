//! The tokens of a PDF: of its objects, and of what is drawn on its pages.

use std::borrow::Cow;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `[`
    Open,
    /// `]`
    Close,
    /// `<<`
    OpenDict,
    /// `>>`
    CloseDict,
    /// A name without its slash, with its escapes replaced.
    Name(Cow<'a, [u8]>),
    /// A number; `None` if it has a sign or a fraction.
    Number(Option<u64>),
    /// A string of so many bytes.
    Text(usize),
    /// Anything else, such as an operator or `R`.
    Word(&'a [u8]),
}

/// The tokens of some bytes. Whatever these are, it ends after reading each of them a few times.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
}

pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\0' | b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

const fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The bytes that are left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The bytes that were read from `start` on.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    fn take_while(&mut self, is_meant: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let length = rest.iter().position(|byte| !is_meant(*byte)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// White space and comments.
    fn skip_space(&mut self) {
        loop {
            self.take_while(is_space);
            if self.rest().first() != Some(&b'%') {
                return;
            }
            self.take_while(|byte| byte != b'\n' && byte != b'\r');
        }
    }

    fn name(&mut self) -> Token<'a> {
        self.at += 1;
        let raw = self.take_while(is_regular);
        Token::Name(if raw.contains(&b'#') { Cow::Owned(unescaped(raw)) } else { Cow::Borrowed(raw) })
    }

    /// A string in parentheses, which can have others in it. The end of the bytes ends it, too.
    fn string(&mut self) -> Token<'a> {
        self.at += 1;
        let (mut depth, mut length) = (1_usize, 0);
        while let Some(byte) = self.rest().first() {
            self.at += 1;
            match byte {
                b'(' => depth += 1,
                b')' if depth == 1 => break,
                b')' => depth -= 1,
                b'\\' => {
                    let digits = self.rest().iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7'));
                    self.at += digits.count().max(1);
                }
                _ => {}
            }
            length += 1;
        }
        Token::Text(length)
    }

    /// A string in hexadecimal digits.
    fn digits(&mut self) -> Token<'a> {
        let rest = self.rest().get(1..).unwrap_or_default();
        let is_other = |byte: &u8| !byte.is_ascii_hexdigit() && !is_space(*byte);
        let end = rest.iter().position(is_other).unwrap_or(rest.len());
        if rest.get(end).is_some_and(|byte| *byte != b'>') {
            self.at += 1;
            return Token::Word(b"<");
        }
        let digits = rest.iter().take(end).filter(|byte| byte.is_ascii_hexdigit()).count();
        self.at += end + 2;
        Token::Text(digits.div_ceil(2))
    }

    fn word(&mut self) -> Token<'a> {
        let word = self.take_while(is_regular);
        let is_numeric = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.');
        match word {
            // A delimiter without its other half.
            [] => {
                let delimiter = self.rest().get(..1).unwrap_or_default();
                self.at += 1;
                Token::Word(delimiter)
            }
            _ if word.iter().all(u8::is_ascii_digit) => {
                let digit = |number: u64, byte: &u8| {
                    number.saturating_mul(10).saturating_add(u64::from(byte.saturating_sub(b'0')))
                };
                Token::Number(Some(word.iter().fold(0, digit)))
            }
            _ if word.iter().all(is_numeric) => Token::Number(None),
            _ => Token::Word(word),
        }
    }

    /// Skips the data of a picture that is written among operators, to the end of its `EI`.
    pub(super) fn skip_picture(&mut self) {
        let rest = self.rest();
        let is_end = |bytes: &[u8]| matches!(bytes, [before, b'E', b'I', after] if is_space(*before) && is_space(*after));
        self.at += rest.windows(4).position(is_end).map_or(rest.len(), |at| at + 3);
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_space();
        let (token, length) = match self.rest() {
            [] => return None,
            [b'<', b'<', ..] => (Token::OpenDict, 2),
            [b'>', b'>', ..] => (Token::CloseDict, 2),
            [b'[', ..] => (Token::Open, 1),
            [b']', ..] => (Token::Close, 1),
            [b'(', ..] => return Some(self.string()),
            [b'<', ..] => return Some(self.digits()),
            [b'/', ..] => return Some(self.name()),
            _ => return Some(self.word()),
        };
        self.at += length;
        Some(token)
    }
}

/// A name without its escapes, such as `#20`.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut name = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [byte, after @ ..] = rest {
        let code = match rest {
            [b'#', high, low, ..] => digit(high).zip(digit(low)),
            _ => None,
        };
        name.push(code.map_or(*byte, |(high, low)| (high << 4) | low));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    name
}
