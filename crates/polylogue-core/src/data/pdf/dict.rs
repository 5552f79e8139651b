//! Dictionaries of a PDF: what they say of pages and of how streams are packed.

use std::borrow::Cow;

use super::lexer::{Lexer, Token};

/// A value in its written form.
type Value<'a> = &'a [u8];

/// The entries of a dictionary that tell how many pages there are and how streams are packed.
#[derive(Debug, Default)]
pub(super) struct Dict<'a> {
    kind: Option<Value<'a>>,
    subtype: Option<Value<'a>>,
    filter: Option<Value<'a>>,
    parameters: Option<Value<'a>>,
    pub(super) kids: Option<Value<'a>>,
    pub(super) count: Option<Value<'a>>,
    pub(super) pages: Option<Value<'a>>,
    pub(super) first: Option<Value<'a>>,
}

impl<'a> Dict<'a> {
    /// Reads a dictionary after its `<<`. `None` if it has no end, or if readers can disagree about it: an entry is there twice, or its
    /// type is elsewhere.
    pub(super) fn read(lexer: &mut Lexer<'a>) -> Option<Self> {
        let mut dict = Self::default();
        loop {
            match lexer.next()? {
                Token::CloseDict => break,
                Token::Name(key) => {
                    let value = read_value(lexer)?;
                    if let Some(entry) = dict.entry(&key)
                        && entry.replace(value).is_some()
                    {
                        return None;
                    }
                }
                _ => {}
            }
        }
        let is_there = |value: Option<Value<'_>>| value.is_none_or(|value| name(value).is_some());
        (is_there(dict.kind) && is_there(dict.subtype)).then_some(dict)
    }

    fn entry(&mut self, key: &[u8]) -> Option<&mut Option<Value<'a>>> {
        Some(match key {
            b"Type" => &mut self.kind,
            b"Subtype" => &mut self.subtype,
            b"Filter" => &mut self.filter,
            b"DecodeParms" => &mut self.parameters,
            b"Kids" => &mut self.kids,
            b"Count" => &mut self.count,
            b"Pages" => &mut self.pages,
            b"First" => &mut self.first,
            _ => return None,
        })
    }

    pub(super) fn is(&self, kind: &[u8]) -> bool {
        self.kind.and_then(name).is_some_and(|name| *name == *kind)
    }

    /// Whether it is that of a picture.
    pub(super) fn is_picture(&self) -> bool {
        self.subtype.and_then(name).is_some_and(|name| *name == *b"Image")
    }

    /// The filters of its stream; `None` if they cannot be read, or if something was subtracted from the bytes before they were packed.
    pub(super) fn filters(&self) -> Option<Vec<Cow<'a, [u8]>>> {
        let is_name = |token| if let Token::Name(name) = token { Some(name) } else { None };
        let filters = self.filter.map(|value| items(value).map(is_name).collect());
        let mut parameters = Lexer::new(self.parameters.unwrap_or_default());
        while let Some(token) = parameters.next() {
            let is_plain = match token {
                Token::Word(word) => word == b"null",
                Token::Name(name) if *name == *b"Predictor" => {
                    parameters.next() == Some(Token::Number(Some(1)))
                }
                _ => true,
            };
            if !is_plain {
                return None;
            }
        }
        filters.unwrap_or_else(|| Some(Vec::new()))
    }
}

/// Reads a value, and returns it.
fn read_value<'a>(lexer: &mut Lexer<'a>) -> Option<Value<'a>> {
    let (start, mut after) = (lexer.at(), lexer.clone());
    match after.next()? {
        // The value is missing.
        Token::CloseDict => return Some(&[]),
        Token::Open | Token::OpenDict => skip_nested(&mut after)?,
        Token::Number(Some(_)) => {
            let mut reference = after.clone();
            let is_number = matches!(reference.next(), Some(Token::Number(Some(_))));
            if is_number && reference.next() == Some(Token::Word(b"R")) {
                after = reference;
            }
        }
        _ => {}
    }
    *lexer = after;
    Some(lexer.since(start))
}

/// Reads to the end of the list or dictionary that was opened.
pub(super) fn skip_nested(lexer: &mut Lexer<'_>) -> Option<()> {
    let mut depth = 1_usize;
    while depth > 0 {
        match lexer.next()? {
            Token::Open | Token::OpenDict => depth += 1,
            Token::Close | Token::CloseDict => depth -= 1,
            _ => {}
        }
    }
    Some(())
}

/// The tokens of a list or of one value.
fn items(value: Value<'_>) -> impl Iterator<Item = Token<'_>> {
    Lexer::new(value).filter(|token| !matches!(token, Token::Open | Token::Close))
}

/// The name that `value` is.
fn name(value: Value<'_>) -> Option<Cow<'_, [u8]>> {
    match Lexer::new(value).next()? {
        Token::Name(name) => Some(name),
        _ => None,
    }
}

/// The number that `value` is. `None` if it is elsewhere.
pub(super) fn number(value: Value<'_>) -> Option<u64> {
    let mut tokens = Lexer::new(value);
    match (tokens.next()?, tokens.next()) {
        (Token::Number(number), None) => number,
        _ => None,
    }
}

/// The numbers of the objects to which `value`, or each item of it, refers. `None` if there is anything else.
pub(super) fn references(value: Value<'_>) -> Option<Vec<u64>> {
    let (mut found, mut tokens) = (Vec::new(), items(value));
    while let Some(token) = tokens.next() {
        let Token::Number(Some(object)) = token else { return None };
        let is_reference =
            matches!(tokens.next()?, Token::Number(Some(_))) && tokens.next()? == Token::Word(b"R");
        if !is_reference {
            return None;
        }
        found.push(object);
    }
    Some(found)
}
