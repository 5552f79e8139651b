//! The names that a file defines and uses.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use crate::codes;
use crate::diagnostic::Report;
use crate::source::Span;
use crate::suggest;
use crate::types::{Illegal, Text};

/// A kind of names, such as those of agents.
pub trait NameKind: 'static {
    /// The type of a name.
    type Name: Clone + fmt::Display;
    /// The kind: names of one kind must differ. Those of this kind are suggested for an unknown name.
    const KIND: &'static str;
    /// What messages call it, such as `an agent`.
    const NOUN: &'static str;
    /// The kinds that a reference can name; usually only [`KIND`](NameKind::KIND).
    const MEANS: &'static [&'static str] = &[Self::KIND];
    /// Words that a reference can be instead of a name, such as `end`.
    const WORDS: &'static [&'static str] = &[];
    /// Whether names are known only within the scope that defines them.
    const SCOPED: bool = false;
    /// How a name is written.
    const TEXT: Text;

    /// Parses a name.
    ///
    /// # Errors
    /// When the name is not legal.
    fn parse(name: &str) -> Result<Self::Name, Illegal>;

    /// Returns a placeholder for a name that could not be read.
    fn hole() -> Self::Name;

    /// Returns the message about a reference to a name that is not defined.
    fn unknown(name: &str) -> String {
        format!("unknown {} `{name}`", Self::KIND)
    }

    /// Returns the hint about a reference to a name that is not defined. `names` are those that could be meant.
    fn hint(name: &str, names: &[&str]) -> String {
        suggest::hint(name, names.iter().copied())
    }

    /// Adds the definition of a name.
    fn define(names: &mut Names, name: &str, span: &Span)
    where
        Self: Sized,
    {
        names.define::<Self>(name, span);
    }

    /// Adds a reference to a name.
    fn refer(names: &mut Names, name: &str, span: &Span)
    where
        Self: Sized,
    {
        names.refer::<Self>(name, span);
    }
}

/// The names that a file defines and uses, by their kinds. Names of a [scoped](NameKind::SCOPED) kind are known within one
/// scope, such as a chat, all others in the whole file.
#[derive(Debug, Default)]
pub struct Names {
    defined: BTreeMap<(&'static str, Scope), Vec<Defined>>,
    /// All defined names.
    index: HashSet<(&'static str, Scope, String)>,
    used: Vec<Used>,
    /// Kinds of which a definition could not be read, so that not all names are known.
    broken: HashSet<(&'static str, Scope)>,
    /// The open scopes, the innermost last.
    open: Vec<Scope>,
    scopes: usize,
}

/// A part of the file; 0 is the whole file.
type Scope = usize;

#[derive(Debug)]
struct Defined {
    noun: &'static str,
    name: String,
    /// Empty for a name that is not defined in the file.
    span: Span,
}

#[derive(Debug)]
struct Used {
    kinds: &'static [&'static str],
    suggested: &'static str,
    noun: &'static str,
    words: &'static [&'static str],
    unknown: fn(&str) -> String,
    hint: fn(&str, &[&str]) -> String,
    scope: Scope,
    name: String,
    span: Span,
}

impl Names {
    /// Adds a name that is defined at `span`.
    pub fn define<K: NameKind>(&mut self, name: &str, span: &Span) {
        let scope = self.scope::<K>();
        self.add::<K>(scope, name.to_owned(), span.clone());
    }

    /// Adds names that need no definition in the file.
    pub fn know<K: NameKind>(&mut self, names: impl IntoIterator<Item = String>) {
        names.into_iter().for_each(|name| self.add::<K>(0, name, 0..0));
    }

    fn add<K: NameKind>(&mut self, scope: Scope, name: String, span: Span) {
        self.index.insert((K::KIND, scope, name.clone()));
        self.defined.entry((K::KIND, scope)).or_default().push(Defined { noun: K::NOUN, name, span });
    }

    /// Adds the use of a name at `span`.
    pub fn refer<K: NameKind>(&mut self, name: &str, span: &Span) {
        self.used.push(Used {
            kinds: K::MEANS,
            suggested: K::KIND,
            noun: K::NOUN,
            words: K::WORDS,
            unknown: K::unknown,
            hint: K::hint,
            scope: self.scope::<K>(),
            name: name.to_owned(),
            span: span.clone(),
        });
    }

    /// Notes that a definition could not be read.
    pub fn broken<K: NameKind>(&mut self) {
        let scope = self.scope::<K>();
        self.broken.insert((K::KIND, scope));
    }

    /// Begins a scope; names of scoped kinds belong to it until it is closed.
    pub fn open_scope(&mut self) {
        self.scopes += 1;
        self.open.push(self.scopes);
    }

    /// Ends the scope that was begun last.
    pub fn close_scope(&mut self) {
        self.open.pop();
    }

    /// Returns whether a scope is open.
    pub fn in_scope(&self) -> bool {
        !self.open.is_empty()
    }

    fn scope<K: NameKind>(&self) -> Scope {
        if K::SCOPED { self.open.last().copied().unwrap_or(0) } else { 0 }
    }

    /// The names of `kind`, in the order of the file.
    fn of(&self, kind: &'static str, scope: Scope) -> impl Iterator<Item = &str> + Clone {
        self.defined.get(&(kind, scope)).into_iter().flatten().map(|one| one.name.as_str())
    }

    /// How many names are compared with all that are defined while a definition could not be read: each takes long, and most of them
    /// are not reported.
    const MOST_UNSURE: usize = 50;

    /// Reports every name that is defined twice, or used and not defined.
    pub fn report(&self, report: &mut Report<'_>) {
        self.defined.values().for_each(|names| duplicates(names, report));
        let mut unsure = 0;
        for used in &self.used {
            if report.full() || unsure >= Self::MOST_UNSURE {
                return;
            }
            unsure += usize::from(self.is_unsure(used));
            self.check(used, report);
        }
    }

    /// Whether `used` is not defined, and may be a name whose definition could not be read.
    fn is_unsure(&self, used: &Used) -> bool {
        let is_defined = |kind: &&'static str| self.index.contains(&(*kind, used.scope, used.name.clone()));
        let is_broken = |kind: &&'static str| self.broken.contains(&(*kind, used.scope));
        let is_known = used.words.contains(&used.name.as_str()) || used.kinds.iter().any(is_defined);
        !is_known && used.kinds.iter().any(is_broken)
    }

    fn check(&self, used: &Used, report: &mut Report<'_>) {
        let known = || used.kinds.iter().flat_map(|kind| self.of(kind, used.scope));
        let is_defined = |kind: &&'static str| self.index.contains(&(*kind, used.scope, used.name.clone()));
        let is_defined = used.kinds.iter().any(is_defined);
        let is_word = used.words.contains(&used.name.as_str());
        if is_word && is_defined {
            let message = format!("`{}` is a keyword here and cannot be {}", used.name, used.noun);
            let hint = format!("give {} another name", used.noun);
            return report.code(codes::UNKNOWN_NAME).error_with_hint(&used.span, message, hint);
        }
        let is_known = is_word || is_defined;
        // Where nothing is defined, that is the mistake.
        if is_known || known().next().is_none() {
            return;
        }
        // A name that could not be read may be the one that is meant here.
        if self.is_unsure(used) && suggest::closest(&used.name, known()).is_none() {
            return;
        }
        let mut seen = HashSet::new();
        let names = self.of(used.suggested, used.scope).chain(used.words.iter().copied());
        let names: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
        report.code(codes::UNKNOWN_NAME).error_with_hint(
            &used.span,
            (used.unknown)(&used.name),
            (used.hint)(&used.name, &names),
        );
    }
}

fn duplicates(names: &[Defined], report: &mut Report<'_>) {
    let mut seen: BTreeMap<&str, &Defined> = BTreeMap::new();
    for one in names.iter().filter(|one| !one.span.is_empty()) {
        match seen.get(&*one.name) {
            Some(_) if report.full() => return,
            Some(Defined { noun, name, span }) => {
                let line = report.source.position(span.start).line;
                let message = format!("{noun} `{name}` is already defined in line {line}");
                let hint = "remove one of them, or give it another name";
                report.code(codes::DUPLICATE_NAME).error_with_hint(&one.span, message, hint);
            }
            None => drop(seen.insert(&one.name, one)),
        }
    }
}
