//! The names that a file defines and uses.

use std::collections::BTreeMap;

use crate::source::Span;
use crate::suggest;

/// The names that a file defines and uses, by their kinds.
#[derive(Debug, Default)]
pub struct Names {
    defined: BTreeMap<&'static str, Vec<(String, Span)>>,
    known: BTreeMap<&'static str, Vec<String>>,
    used: Vec<Used>,
    /// Kinds of which a definition could not be read, so that not all names are known.
    broken: Vec<&'static str>,
}

#[derive(Debug)]
struct Used {
    kinds: &'static [&'static str],
    name: String,
    span: Span,
}

/// A name that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Names {
    /// Adds a name of a kind, such as `agent`.
    pub fn define(&mut self, kind: &'static str, name: &str, span: &Span) {
        self.defined.entry(kind).or_default().push((name.to_owned(), span.clone()));
    }

    /// Adds names of a kind that need no definition in the file.
    pub fn know(&mut self, kind: &'static str, names: impl IntoIterator<Item = String>) {
        self.known.entry(kind).or_default().extend(names);
    }

    /// Adds the use of a name that must be of one of `kinds`.
    pub fn refer(&mut self, kinds: &'static [&'static str], name: &str, span: &Span) {
        self.used.push(Used { kinds, name: name.to_owned(), span: span.clone() });
    }

    /// Says that a name of `kind` could not be read.
    pub fn broken(&mut self, kind: &'static str) {
        self.broken.push(kind);
    }

    /// The names of `kind`, in the order of the file.
    pub fn of(&self, kind: &str) -> impl Iterator<Item = &str> + Clone {
        let defined = self.defined.get(kind).into_iter().flatten().map(|(name, _)| name.as_str());
        defined.chain(self.known.get(kind).into_iter().flatten().map(String::as_str))
    }

    /// Every name of one of `kinds` that is defined twice, or used and not defined.
    pub(crate) fn wrong(&self, kinds: Option<&[&str]>) -> Vec<Wrong> {
        let counts = |kind: &str| kinds.is_none_or(|kinds| kinds.contains(&kind));
        let defined = self.defined.iter().filter(|(kind, _)| counts(kind));
        let twice = defined.flat_map(|(kind, names)| duplicates(kind, names));
        let used = self.used.iter().filter(|used| used.kinds.iter().any(|kind| counts(kind)));
        let unknown = used.filter_map(|used| self.unknown(used));
        twice.chain(unknown).collect()
    }

    fn unknown(&self, used: &Used) -> Option<Wrong> {
        let known = || used.kinds.iter().flat_map(|kind| self.of(kind));
        if known().any(|name| name == used.name) {
            return None;
        }
        let close = suggest::closest(&used.name, known());
        // A name that could not be read may be the one that is meant here.
        if close.is_none() && used.kinds.iter().any(|kind| self.broken.contains(kind)) {
            return None;
        }
        let kinds = used.kinds.join(" or ");
        let names: Vec<&str> = known().collect();
        Some(Wrong {
            span: used.span.clone(),
            message: format!("unknown {kinds} `{}`", used.name),
            hint: suggest::hint(&used.name, names),
        })
    }
}

fn duplicates(kind: &str, names: &[(String, Span)]) -> Vec<Wrong> {
    let mut seen = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, span) in names {
        if seen.insert(name, ()).is_some() {
            wrong.push(Wrong {
                span: span.clone(),
                message: format!("duplicate {kind} `{name}`"),
                hint: "give it another name".to_owned(),
            });
        }
    }
    wrong
}
