//! Something that has to be put right.

use std::fmt;

/// A flaw, where it is and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Relative to the repository, with `/`.
    pub(crate) file: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) flaw: String,
    /// What to do.
    pub(crate) hint: &'static str,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, flaw: impl Into<String>, hint: &'static str) -> Self {
        Self { file: file.to_owned(), line, flaw: flaw.into(), hint }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n  hint: {}", self.file, self.line, self.flaw, self.hint)
    }
}

/// The line of the byte `offset` of `text`, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
