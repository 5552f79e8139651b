//! The keys of a mapping, and how they are read.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::codes;
use crate::config::Config;
use crate::cx::{Cx, Label};
use crate::source::Span;
use crate::suggest;
use crate::types::{Key, Kind, KindOf, Limits, Literal, Type};
use crate::wrong::{fits, mismatch};
use crate::yaml::{Data, Entry, Node};

/// A configuration type that is a mapping with fixed keys. Derive [`Config`] for a struct, or for an enum of kinds.
pub trait Keys: Config {
    /// Reads the values of the keys.
    fn from_fields(fields: &Fields<'_>, cx: &mut Cx<'_, '_>) -> Self;

    /// Adds the keys with their values to a mapping. Defaults are left out.
    fn write_keys(&self, map: &mut Map<String, Value>);
}

/// The entries of a mapping that are read by its keys.
pub struct Fields<'n> {
    entries: Cow<'n, [Entry]>,
    /// Where a missing key is reported.
    at: Span,
    /// Keys that an unknown key stands for, whose hint names them: they are not missing, too.
    meant: Vec<&'static str>,
    /// Whether the value is not a mapping, which is reported.
    is_hole: bool,
}

impl<'n> Fields<'n> {
    /// Opens the mapping `node` of type `ty`. Reports a value that is not a mapping, unknown keys, missing keys and keys that
    /// do not go together.
    pub fn open(node: &'n Node, ty: &'static Type, cx: &mut Cx<'_, '_>) -> Self {
        let all = ty.keys();
        let (shorthand, nonempty) = match &ty.kind {
            Kind::Struct(of) => (of.shorthand, of.nonempty),
            _ => (None, false),
        };
        let mut fields = match (&node.data, shorthand) {
            (Data::Map(entries), _) => Self::of(Cow::Borrowed(entries), node),
            (data, Some(key)) if !matches!(data, Data::Null) && short_fits(node, &all, key) => {
                let key_span = node.span.clone();
                let entry = Entry { key: key.to_owned(), key_span, value: node.clone() };
                Self::of(Cow::Owned(vec![entry]), node)
            }
            _ => {
                mismatch(node, ty, cx);
                return Self::hole();
            }
        };
        if nonempty && fields.entries.is_empty() {
            let label = cx.label();
            let hint = suggest::there_are(all.iter().map(|key| key.name));
            cx.report.error_with_hint(&fields.at, format!("{label} is empty"), hint);
        }
        fields.meant = fields.check_unknown(ty, &all, cx);
        fields.check_missing(&ty.keys_of_all_kinds(), cx);
        fields.check_together(&all, cx);
        fields
    }

    /// Returns the fields of a value that could not be read, which is reported already.
    pub fn hole() -> Self {
        Self { entries: Cow::Borrowed(&[]), at: 0..0, meant: Vec::new(), is_hole: true }
    }

    fn of(entries: Cow<'n, [Entry]>, node: &Node) -> Self {
        let at = entries.first().map_or(&node.span, |entry| &entry.key_span).clone();
        Self { entries, at, meant: Vec::new(), is_hole: false }
    }

    /// Returns the value of `key`, if the mapping has it.
    pub fn given<T: Config>(&self, key: &Key, cx: &mut Cx<'_, '_>) -> Option<T> {
        let entry = self.entry(key.name)?;
        if entry.value.is_null() && !matches!((key.ty)().kind, Kind::Any) {
            mismatch_of(entry, key, cx);
            return Some(T::hole());
        }
        cx.hide_secret(key, &entry.value.span);
        let read = |cx: &mut Cx<'_, '_>| T::read(&entry.value, cx);
        Some(cx.of_key(Label::Key(key.name.into()), key.limits, &entry.key_span, read))
    }

    /// Returns the value of a required key. Its absence is reported by [`open`](Self::open).
    pub fn required<T: Config>(&self, key: &Key, cx: &mut Cx<'_, '_>) -> T {
        self.given(key, cx).unwrap_or_else(|| T::missing(cx))
    }

    /// Returns where the key `name` is, if the mapping has it.
    pub fn key_span(&self, name: &str) -> Option<&Span> {
        Some(&self.entry(name)?.key_span)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    fn check_missing(&self, all: &[&Key], cx: &mut Cx<'_, '_>) {
        let is_missing = |key: &&&Key| key.required && self.entry(key.name).is_none();
        for key in all.iter().filter(is_missing).filter(|key| !self.meant.contains(&key.name)) {
            let label = cx.label();
            cx.report
                .code(codes::MISSING_KEY)
                .error(&self.at, format!("{label} needs the key `{}`", key.name));
        }
    }

    fn check_together(&self, all: &[&Key], cx: &mut Cx<'_, '_>) {
        for key in all {
            let Some(entry) = self.entry(key.name) else { continue };
            for needed in key.requires.iter().filter(|needed| self.entry(needed).is_none()) {
                let message = format!("`{}` also needs `{needed}`", key.name);
                cx.report.error_with_hint(
                    &entry.key_span,
                    message,
                    format!("add `{needed}`, or remove `{}`", key.name),
                );
            }
            for other in key.excludes.iter().filter(|other| self.entry(other).is_some()) {
                let message = format!("`{}` and `{other}` cannot both be given", key.name);
                cx.report.error_with_hint(&entry.key_span, message, "remove one of them");
            }
        }
    }

    /// Reports unknown keys. Returns the keys that they stand for.
    fn check_unknown(
        &self,
        ty: &'static Type,
        all: &[&'static Key],
        cx: &mut Cx<'_, '_>,
    ) -> Vec<&'static str> {
        let is_known = |entry: &Entry| all.iter().any(|key| key.name == entry.key);
        let (mut before, mut rest, mut meant) = (None, &*self.entries, Vec::new());
        while let Some((entry, mut after)) = rest.split_first()
            && !cx.report.full()
        {
            if !is_known(entry) {
                let cut = rest.iter().take_while(|entry| is_cut_off(entry, cx) && !is_known(entry)).count();
                let hint = before.and_then(|before| cut_by_comma(before, rest.get(..cut)?.last()?, cx));
                if hint.is_some() {
                    // The rest of the text is reported once.
                    after = rest.get(cut..).unwrap_or_default();
                }
                let hint = hint.unwrap_or_else(|| {
                    let (hint, key) = hint_for(entry, ty, all, cx);
                    meant.extend(key);
                    hint
                });
                cx.report.code(codes::UNKNOWN_KEY).error_with_hint(
                    &entry.key_span,
                    format!("unknown key `{}`", entry.key),
                    hint,
                );
            }
            (before, rest) = (Some(entry), after);
        }
        meant
    }

    /// Returns the kind that the keys choose; the default one if they choose none. Reports keys that only other kinds have, and
    /// keys that it needs.
    pub fn kind(&self, kinds: &'static [KindOf], cx: &mut Cx<'_, '_>) -> Option<usize> {
        let value = |key: &str| self.entry(key).map(|entry| &entry.value.data);
        let holds = |(key, literal): &(&str, Literal)| match (literal, value(key)) {
            (Literal::Bool(wanted), Some(Data::Bool(given))) => wanted == given,
            (Literal::Text(wanted), Some(Data::Text(given))) => wanted == given,
            _ => false,
        };
        let chosen = kinds.iter().position(|kind| !kind.when.is_empty() && kind.when.iter().all(holds));
        let index = chosen.or_else(|| kinds.iter().position(|kind| kind.when.is_empty()))?;
        let kind = kinds.get(index)?;
        let deciding = kinds.iter().flat_map(|kind| kind.when).map(|(key, _)| *key);
        let wrong: BTreeSet<&str> = deciding.filter(|key| self.is_unfit(key, kinds)).collect();
        // Which keys there are is not known when what decides it is wrong.
        if !self.is_hole && wrong.is_empty() {
            self.check_kind(kind, kinds, cx);
            self.check_missing(&(kind.ty)().keys_of_all_kinds(), cx);
        }
        // The chosen kind reads those that it has.
        for key in wrong.into_iter().filter(|key| !kind.has_key(key)) {
            self.report_unfit(key, kinds, cx);
        }
        Some(index)
    }

    /// Whether the value of a key that decides the kind is none that it has in any kind.
    fn is_unfit(&self, key: &str, kinds: &[KindOf]) -> bool {
        let value = self.entry(key).map(|entry| &entry.value).filter(|node| !node.is_null());
        value.is_some_and(|node| !keys_of(kinds, key).any(|one| fits(node, (one.ty)())))
    }

    /// Reports such a value where no kind reads it.
    fn report_unfit(&self, key: &str, kinds: &[KindOf], cx: &mut Cx<'_, '_>) {
        if let (Some(entry), Some(one)) = (self.entry(key), keys_of(kinds, key).next()) {
            cx.within(Label::Key(one.name.into()), Limits::NONE, |cx| mismatch(&entry.value, (one.ty)(), cx));
        }
    }

    fn check_kind(&self, kind: &KindOf, kinds: &[KindOf], cx: &mut Cx<'_, '_>) {
        for entry in self.entries.iter().filter(|entry| !kind.has_key(&entry.key)) {
            let Some(other) = kinds.iter().find(|other| other.has_key(&entry.key)) else { continue };
            // A switch that is off chooses nothing.
            if matches!(entry.value.data, Data::Bool(_))
                && other.when.iter().any(|(key, _)| *key == entry.key)
            {
                continue;
            }
            let mut hint = match (kind.chosen_by(), other.chosen_by()) {
                (own, _) if !own.is_empty() => format!("remove `{}`, or {own}", entry.key),
                (_, needed) => format!("remove `{}`, or add {needed}", entry.key),
            };
            if !kind.hint.is_empty() {
                hint = format!("{hint}; {}", kind.hint);
            }
            cx.report.code(codes::UNKNOWN_KEY).error_with_hint(
                &entry.key_span,
                format!("{} has no `{}`", kind.noun, entry.key),
                hint,
            );
        }
    }
}

/// The keys of this name that kinds have.
fn keys_of<'k>(kinds: &'k [KindOf], name: &'k str) -> impl Iterator<Item = &'static Key> + 'k {
    kinds.iter().flat_map(|kind| (kind.ty)().keys()).filter(move |key| key.name == name)
}

/// Whether `node` can stand for the mapping as the value of `key`.
fn short_fits(node: &Node, all: &[&Key], key: &str) -> bool {
    all.iter().find(|one| one.name == key).is_none_or(|one| fits(node, (one.ty)()))
}

/// What to write instead of an unknown key, and the key of these that it stands for.
fn hint_for(
    entry: &Entry,
    ty: &'static Type,
    all: &[&'static Key],
    cx: &Cx<'_, '_>,
) -> (String, Option<&'static str>) {
    let names = || all.iter().map(|key| key.name);
    if let Some(row) = cx.foreign_of(ty.name, &entry.key, entry.value.word()) {
        return (row.hint(), names().find(|name| row.is_key(name)));
    }
    // As in JSON with comments; the text up to the next colon is the key.
    if entry.key.starts_with("//") {
        return ("a comment begins with `#`, also in JSON".to_owned(), None);
    }
    if let Some(around) = all.iter().find(|key| (key.ty)().has_key(&entry.key)) {
        return (format!("it belongs in `{}`", around.name), None);
    }
    let closest = suggest::closest(&entry.key, names());
    match cx.misspelled_foreign_of(ty.name, &entry.key).filter(|_| closest.is_none()) {
        Some(row) => (row.hint(), names().find(|name| row.is_key(name))),
        None => (suggest::hint(&entry.key, names()), closest),
    }
}

/// Whether an entry is only a key, without a colon, as in `{text: Yes, please}`.
fn is_cut_off(entry: &Entry, cx: &Cx<'_, '_>) -> bool {
    let rest = cx.report.source.text.get(entry.key_span.end..).unwrap_or_default().trim_start();
    entry.value.is_null() && rest.starts_with([',', '}'])
}

/// The hint for keys up to `last` that are the rest of the value of `begun`: a text without quotation marks that a comma ended.
fn cut_by_comma(begun: &Entry, last: &Entry, cx: &Cx<'_, '_>) -> Option<String> {
    let written = cx.report.source.slice(&(begun.value.span.start..last.key_span.end));
    let is_plain = !written.contains(['"', '\'', '\n', '\\']);
    let is_scalar = matches!(begun.value.data, Data::Text(_) | Data::Number(_) | Data::Bool(_));
    (is_plain && is_scalar).then(|| {
        format!("a comma ends a text in braces; put the text in quotes: `{}: \"{written}\"`", begun.key)
    })
}

fn mismatch_of(entry: &Entry, key: &Key, cx: &mut Cx<'_, '_>) {
    cx.within(Label::Key(key.name.into()), Limits::NONE, |cx| mismatch(&entry.value, (key.ty)(), cx));
}
