//! The context in which a file is read: its report, variables and names.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use crate::codes;
use crate::diagnostic::Report;
use crate::foreign::Foreign;
use crate::names::Names;
use crate::source::Span;
use crate::suggest;
use crate::types::{Key, Limits, Variables};
use crate::vars::{self, Piece, Vars};

/// The context in which a file is read.
pub struct Cx<'a, 's> {
    /// The mistakes so far.
    pub report: &'a mut Report<'s>,
    /// The names that the file defines and uses.
    pub names: Names,
    pub(crate) foreign: &'a [Foreign],
    pub(crate) label: Label,
    pub(crate) limits: Limits,
    /// Where the key of the value that is read next is.
    pub(crate) key_span: Option<Span>,
    vars: &'a mut Vars,
    /// Variables that are filled in later, where a text allows it.
    deferred: &'a [&'a str],
    /// How many bytes of variables were filled in.
    filled: usize,
}

/// The name in messages of the value that is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// The file as a whole, by its noun.
    Root(&'static str),
    /// The value of a key.
    Key(Cow<'static, str>),
    /// An item of the list at a key.
    Item(Cow<'static, str>),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(noun) => f.write_str(noun),
            Self::Key(key) => write!(f, "`{key}`"),
            Self::Item(key) => write!(f, "an item of `{key}`"),
        }
    }
}

impl Label {
    /// The key, for messages about its items.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Root(key) => key,
            Self::Key(key) | Self::Item(key) => key,
        }
    }

    /// The label of the items of this list.
    pub(crate) fn items(&self) -> Self {
        Self::Item(match self {
            Self::Root(key) => Cow::Borrowed(*key),
            Self::Key(key) | Self::Item(key) => key.clone(),
        })
    }
}

impl<'a, 's> Cx<'a, 's> {
    /// Creates a context for a file that messages call `noun`, such as `a team`.
    pub fn new(noun: &'static str, report: &'a mut Report<'s>, vars: &'a mut Vars) -> Self {
        Self {
            report,
            names: Names::default(),
            foreign: &[],
            label: Label::Root(noun),
            limits: Limits::NONE,
            key_span: None,
            vars,
            deferred: &[],
            filled: 0,
        }
    }

    /// Makes the context answer the names in `foreign` with their equivalents. The first row that fits counts.
    #[must_use]
    pub fn with_foreign(self, foreign: &'a [Foreign]) -> Self {
        Self { foreign, ..self }
    }

    /// Sets variables that are known only later: `deferred`.
    #[must_use]
    pub fn with_deferred(self, deferred: &'a [&'a str]) -> Self {
        Self { deferred, ..self }
    }

    /// Returns how messages call the value that is being read.
    pub fn label(&self) -> Label {
        self.label.clone()
    }

    /// Runs `read` for a value called `label`, within `limits`, which is not the value of a key.
    pub(crate) fn within<T>(&mut self, label: Label, limits: Limits, read: impl FnOnce(&mut Self) -> T) -> T {
        self.reading(label, limits, None, read)
    }

    /// Runs `read` for the value of the key at `key_span`.
    pub(crate) fn of_key<T>(
        &mut self,
        label: Label,
        limits: Limits,
        key_span: &Span,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.reading(label, limits, Some(key_span.clone()), read)
    }

    fn reading<T>(
        &mut self,
        label: Label,
        limits: Limits,
        key_span: Option<Span>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let label = std::mem::replace(&mut self.label, label);
        let limits = std::mem::replace(&mut self.limits, limits);
        let key_span = std::mem::replace(&mut self.key_span, key_span);
        let value = read(self);
        (self.label, self.limits, self.key_span) = (label, limits, key_span);
        value
    }

    /// Hides the value of a key that can hold a secret, before anything is reported of it.
    pub(crate) fn hide_secret(&mut self, key: &Key, span: &Span) {
        if key.secret {
            self.report.hide(span);
        }
    }

    /// Returns `text` with its variables filled in by the rule `variables`, or nothing if one of them is not known, which is
    /// reported.
    pub fn fill(&mut self, text: &str, at: &Span, variables: Variables) -> Option<String> {
        match variables {
            Variables::None => Some(text.to_owned()),
            Variables::Known => Some(self.fill_known(text, at)),
            Variables::All => {
                let pieces = self.pieces(text, at)?;
                let late = pieces.iter().any(|piece| matches!(piece, Filled::Deferred(_)));
                if late {
                    self.too_early(text, at);
                    return None;
                }
                Some(pieces.into_iter().map(Filled::into_text).collect())
            }
        }
    }

    /// Returns the pieces of `text`: filled variables and plain text, and the variables that are known only later. Nothing if a
    /// variable is not known, which is reported.
    pub fn pieces(&mut self, text: &str, at: &Span) -> Option<Vec<Filled>> {
        let mut missing = BTreeSet::new();
        let mut filled = Vec::new();
        for piece in vars::pieces(text) {
            match piece {
                Piece::Plain(plain) => filled.push(Filled::Text(plain.to_owned())),
                Piece::Var(name, _) if self.deferred.contains(&name) => {
                    filled.push(Filled::Deferred(name.to_owned()));
                }
                Piece::Var(name, _) => match self.variable(name, at) {
                    Some(value) => filled.push(Filled::Text(value.to_owned())),
                    None if missing.insert(name) => self.unknown_variable(name, at),
                    None => {}
                },
            }
        }
        missing.is_empty().then_some(filled)
    }

    fn fill_known(&mut self, text: &str, at: &Span) -> String {
        let mut filled = String::with_capacity(text.len());
        for piece in vars::pieces(text) {
            filled.push_str(match piece {
                Piece::Plain(plain) => plain,
                Piece::Var(name, written) => self.variable(name, at).unwrap_or(written),
            });
        }
        filled
    }

    /// The value of a variable, as long as all values together stay bounded.
    fn variable(&mut self, name: &str, at: &Span) -> Option<&str> {
        const MOST_FILLED: usize = 16 << 20;
        let value = self.vars.get(name)?;
        self.filled += value.len();
        if self.filled <= MOST_FILLED {
            return Some(value);
        }
        let hint = "the values of all variables in a file can have 16 MiB in total";
        self.report.error_with_hint(at, "the file is too large after its variables are inserted", hint);
        Some("")
    }

    fn unknown_variable(&mut self, name: &str, at: &Span) {
        if self.report.full() {
            return;
        }
        let at = self.span_of(at, name);
        let hint = self.vars.hint(name);
        self.report.code(codes::UNKNOWN_VARIABLE).error_with_hint(
            &at,
            format!("unknown variable `{name}`"),
            hint,
        );
    }

    fn too_early(&mut self, text: &str, at: &Span) {
        for name in self.deferred {
            if vars::pieces(text).iter().any(|piece| matches!(piece, Piece::Var(var, _) if var == name)) {
                let at = self.span_of(at, name);
                let message = format!("`{{{{{name}}}}}` is not known here");
                self.report.error_with_hint(&at, message, "its value is known only when a chat begins");
            }
        }
    }

    /// Where the variable `name` is written in the text at `at`; the whole text if it is written with escapes.
    fn span_of(&self, at: &Span, name: &str) -> Span {
        let mut offset = at.start;
        for piece in vars::pieces(self.report.source.slice(at)) {
            let (is, length) = match piece {
                Piece::Plain(plain) => (false, plain.len()),
                Piece::Var(var, written) => (var == name, written.len()),
            };
            if is {
                return offset..offset + length;
            }
            offset += length;
        }
        at.clone()
    }

    /// The key or word `name` in the type `within`, if it is a known name of another system.
    pub(crate) fn foreign_of(&self, within: &str, name: &str, value: Option<&str>) -> Option<&'a Foreign> {
        self.foreign.iter().find(|row| row.fits(within, name, value))
    }

    /// The same for a misspelled `name`.
    pub(crate) fn misspelled_foreign_of(&self, within: &str, name: &str) -> Option<&'a Foreign> {
        let rows = || self.foreign.iter().filter(|row| row.value.is_empty() && row.is_within(within));
        // Its beginning is not enough: the hint says that the other system has the name.
        let meant = suggest::closest(name, rows().map(|row| row.name))?;
        rows().find(|row| row.name == meant && suggest::is_slip(name, meant))
    }

    /// The equivalent of the key or word `name` in the type `within`, if it is a known name of another system.
    pub(crate) fn foreign_hint(&self, within: &str, name: &str, value: Option<&str>) -> Option<String> {
        self.foreign_of(within, name, value).map(Foreign::hint)
    }

    /// Reports every name that is used and not defined, or defined twice.
    pub fn resolve(&mut self) {
        let names = std::mem::take(&mut self.names);
        names.report(self.report);
    }

    /// Reports a text that is none of `words`.
    pub(crate) fn unknown_word(&mut self, text: &str, at: &Span, words: &[&str]) {
        let hint = suggest::hint(text, words.iter().copied());
        self.report.error_with_hint(at, format!("{} cannot be `{text}`", self.label), hint);
    }
}

/// A piece of a text whose variables were filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filled {
    /// Text.
    Text(String),
    /// A variable that is known only later.
    Deferred(String),
}

impl Filled {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Deferred(name) => format!("{{{{{name}}}}}"),
        }
    }
}
