//! YAML text to a tree of nodes that know where they stand.
//!
//! Nothing here knows what a team is. Whatever a hostile file does (deep nesting, aliases of aliases of aliases) ends
//! in an error: depth and size of the tree are bounded.

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

/// A value, and where it stands. What came through an alias stands where its anchor is.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) data: Data,
}

/// What a node holds.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a mapping and its value. Keys of one mapping differ.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

impl Node {
    const NOTHING: Self = Self { span: 0..0, data: Data::Null };

    /// The value of `key`, or nothing when this is no mapping that has it: so paths can be followed without asking.
    pub(crate) fn get(&self, key: &str) -> &Self {
        self.entry(key).map_or(&Self::NOTHING, |entry| &entry.value)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The entries of a mapping; none when it is no mapping.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.data {
            Data::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none when it is no list.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// The items of a list, or the one value that stands for a list of one.
    pub(crate) fn one_or_many(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            Data::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// The same without places.
    pub(crate) fn to_value(&self) -> Value {
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
pub(crate) fn parse(report: &mut Report<'_>) -> Option<Node> {
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
