//! YAML text to a tree of nodes with their positions.
//!
//! Depth and size of the tree are bounded: a hostile file (deep nesting, aliases of aliases of aliases) is an error.

mod build;
pub mod layout;
mod node;
mod scalar;

use granit_parser::{ErrorKind, Parser, ScanError};

use crate::codes;
use crate::diagnostic::Report;
pub use node::{Data, Entry, Node};

/// Returns the tree of the report's source, or nothing when it is not YAML at all. Mistakes that leave a tree, such as a key
/// that is there twice, are reported and the tree is given.
pub fn parse(report: &mut Report<'_>) -> Option<Node> {
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_comments: false,
        disallow_directives: true,
        flow_nesting_limit: build::MAX_DEPTH,
        block_nesting_limit: build::MAX_DEPTH
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
    let message = format!("this is not valid YAML: {}", error.info());
    match advice(error.kind()) {
        Some(hint) => report.code(codes::SYNTAX).error_with_hint(&span, message, hint),
        None => report.code(codes::SYNTAX).error(&span, message),
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
            "a text with `: ` must be in quotes, and the keys of one mapping begin in the same column"
        }
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation => {
            "check that the keys of one mapping begin in the same column"
        }
        ErrorKind::ExpectedBlockSequenceEntry => {
            "check that the keys of one item begin in the same column, and the items of one list, too"
        }
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => "take it out",
        ErrorKind::UnexpectedCharacter { .. } | ErrorKind::ExpectedNodeContent => {
            "a text that begins with a special character has to be in quotes"
        }
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => {
            "close the quotation mark, or write `|` and then the text on separate lines"
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            "write quotation marks within a text as `\\\"`, or `|` and then the text on separate lines"
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar => {
            "write an apostrophe within such a text twice, or put the text in double quotes"
        }
        ErrorKind::RecursionLimitExceeded => "lists and mappings can be nested 64 deep",
        ErrorKind::DirectiveDisallowed => "leave out the line that begins with `%`",
        _ => return None,
    })
}
