//! What a person types: a line, or a block of lines.

use std::io::{self, IsTerminal};

/// The longest answer, in bytes.
pub(super) const MAX_ANSWER: usize = 4 << 20;

/// What a person typed.
pub(crate) enum Typed {
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D in an empty line, or the end of the input.
    End,
}

impl Typed {
    pub(super) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Interrupted | Self::End => None,
        }
    }
}

/// Whether there is a person who can be asked: the input and the standard error are a terminal.
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

pub(super) fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it is longer than {} MiB", MAX_ANSWER >> 20))
}

/// Whether the first line of `answer` opens a block of code that no later one closes.
pub(super) fn is_in_fence(answer: &str) -> bool {
    let mut lines = answer.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let Some(mark) = first.chars().next().filter(|mark| matches!(mark, '`' | '~')) else { return false };
    let length = first.chars().take_while(|c| *c == mark).count();
    let closes = |line: &str| line.chars().count() >= length && line.chars().all(|c| c == mark);
    length >= 3 && !lines.any(closes)
}
