//! YAML text to a tree of nodes with their positions.
//!
//! Depth and size of the tree are bounded: a hostile file (deep nesting, aliases of aliases of aliases) is an error.

mod build;
mod scalar;

use granit_parser::{ErrorKind, Parser, ScanError};
use serde_json::{Number, Value};

use crate::diagnostic::Report;
use crate::source::Span;

/// How deep lists and mappings may be nested. Everything that walks a tree may recurse.
const MAX_DEPTH: usize = 64;
/// How much a tree may weigh, aliases written out: its texts in bytes, and [`NODE_WEIGHT`] for every node.
const MAX_WEIGHT: usize = 16 << 20;
/// What a node weighs besides its text.
const NODE_WEIGHT: usize = 32;

/// A value and its position. A value that came through an alias has the position of its anchor.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it is in the file.
    pub span: Span,
    /// The value.
    pub data: Data,
}

/// The value of a node.
#[derive(Debug, Clone)]
pub enum Data {
    /// Nothing, or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<Entry>),
}

/// A key of a mapping and its value. Keys of one mapping differ.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key is in the file.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    const NOTHING: Self = Self { span: 0..0, data: Data::Null };

    /// The value of `key`; a null node if this is not a mapping with that key, so that look-ups can be chained.
    #[must_use]
    pub fn get(&self, key: &str) -> &Self {
        self.entry(key).map_or(&Self::NOTHING, |entry| &entry.value)
    }

    /// The entry of `key`, if this is a mapping that has it.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The entries of a mapping; none when it is no mapping.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        match &self.data {
            Data::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none when it is no list.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// The items of a list, or the one value that stands for a list of one.
    #[must_use]
    pub fn one_or_many(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            Data::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// The text, if this is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether nothing is there.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// An empty mapping at the same position.
    #[must_use]
    pub fn as_empty_map(&self) -> Self {
        Self { span: self.span.clone(), data: Data::Map(Vec::new()) }
    }

    /// The value without positions.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(bool) => Value::Bool(*bool),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => items.iter().map(Self::to_value).collect(),
            Data::Map(entries) => entries.iter().map(|e| (e.key.clone(), e.value.to_value())).collect(),
        }
    }
}

/// The tree of the report's source, or nothing when it is no YAML at all. Mistakes that leave a tree, such as a key
/// that is there twice, are reported and the tree is given.
#[must_use]
pub fn parse(report: &mut Report<'_>) -> Option<Node> {
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_comments: false,
        disallow_directives: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH
    };
    let mut builder = build::Builder::default();
    for next in Parser::new_from_str_with_options(report.source.text, options) {
        match next {
            Ok((event, span)) => builder.take(event, span, report).ok()?,
            Err(error) => {
                report_scan_error(&error, report);
                return None;
            }
        }
    }
    builder.root(report)
}

fn report_scan_error(error: &ScanError, report: &mut Report<'_>) {
    let mark = error.marker();
    let at = mark.byte_offset().unwrap_or_else(|| report.source.offset_of_char(mark.index()));
    let span = at..at + 1;
    let message = format!("this is no YAML: {}", error.info());
    match advice(error.kind()) {
        Some(hint) => report.error_with_hint(&span, message, hint),
        None => report.error(&span, message),
    }
}

/// What to do about the mistakes that people make most.
fn advice(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar => "indent with spaces, not with tabs",
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidSimpleKey => {
            "a text that holds `: ` has to be in quotes, and the keys of one mapping begin in the same column"
        }
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation => {
            "check that the keys of one mapping begin in the same column"
        }
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => "take it out",
        ErrorKind::UnexpectedCharacter { .. } | ErrorKind::ExpectedNodeContent => {
            "a text that begins with a special character has to be in quotes"
        }
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => {
            "close the quotation mark, or write `|` and the text on lines of its own"
        }
        ErrorKind::RecursionLimitExceeded => "lists and mappings can be nested 64 deep",
        ErrorKind::DirectiveDisallowed => "leave out the line that begins with `%`",
        _ => return None,
    })
}
