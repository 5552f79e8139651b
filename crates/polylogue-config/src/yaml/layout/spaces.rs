//! Spaces at the ends of lines within block texts (`|` and `>`): they are part of the text, and the formatter would remove them.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle};

/// A space and a tab, with the characters that stand for them meanwhile.
const STAND_INS: [(char, char); 2] = [(' ', '\u{f8fd}'), ('\t', '\u{f8fe}')];

/// `text` with stand-ins for these spaces. `None` if it has none of them, cannot be read, or has the stand-ins itself.
pub(super) fn hidden(text: &str) -> Option<String> {
    if text.contains(STAND_INS.map(|(_, stand_in)| stand_in)) {
        return None;
    }
    let blocks = blocks(text)?;
    let (mut hidden, mut at, mut has_any) = (String::with_capacity(text.len()), 0, false);
    for line in text.split_inclusive('\n') {
        let end = line.trim_end_matches(['\n', '\r']).len();
        let words = line.trim_end_matches(['\n', '\r']).trim_end_matches([' ', '\t']);
        // A block begins in the line before its own first one.
        let before = blocks.partition_point(|block| block.start < at);
        let block = before.checked_sub(1).and_then(|last| blocks.get(last));
        let is_text = block.is_some_and(|block| at < block.end);
        at += line.len();
        if !is_text || words.is_empty() || words.len() == end {
            hidden.push_str(line);
            continue;
        }
        has_any = true;
        let (spaces, line_break) = (line.get(words.len()..end)?, line.get(end..)?);
        hidden.push_str(words);
        hidden.extend(spaces.chars().map(stand_in));
        hidden.push_str(line_break);
    }
    has_any.then_some(hidden)
}

/// `hidden` with the spaces again.
pub(super) fn shown(hidden: &str) -> String {
    let own = |c: char| STAND_INS.iter().find(|(_, stand_in)| *stand_in == c).map_or(c, |(own, _)| *own);
    hidden.chars().map(own).collect()
}

fn stand_in(c: char) -> char {
    STAND_INS.iter().find(|(own, _)| *own == c).map_or(c, |(_, stand_in)| *stand_in)
}

/// The block texts in their order, in bytes.
fn blocks(text: &str) -> Option<Vec<Range<usize>>> {
    let mut blocks = Vec::new();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.ok()?;
        if let Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) = event {
            blocks.push(span.start.byte_offset()?..span.end.byte_offset()?);
        }
    }
    Some(blocks)
}
