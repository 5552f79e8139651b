//! The keys of a mapping, and how they are read.

use std::borrow::Cow;

use crate::config::Config;
use crate::cx::{Cx, Label};
use crate::source::Span;
use crate::suggest;
use crate::types::{Key, Kind, KindOf, Limits, Literal, Struct, Type};
use crate::wrap::fits;
use crate::wrong::mismatch;
use crate::yaml::{Data, Entry, Node};

/// The entries of a mapping that are read by its keys.
pub struct Fields<'n> {
    entries: Cow<'n, [Entry]>,
    /// Where a missing key is reported.
    at: Span,
}

impl<'n> Fields<'n> {
    /// The mapping `node` of type `ty`. Reports a value that is not a mapping, unknown keys, missing keys and keys that do
    /// not go together.
    pub fn open(node: &'n Node, ty: &'static Type, keys: &Struct, cx: &mut Cx<'_, '_>) -> Self {
        let siblings = cx.siblings.take().filter(|_| !cx.report.full());
        let entries = match (&node.data, keys.shorthand) {
            (Data::Map(entries), _) => Cow::Borrowed(entries.as_slice()),
            (Data::Null, _) | (_, None) => {
                mismatch(node, ty, cx);
                return Self { entries: Cow::Borrowed(&[]), at: node.span.clone() };
            }
            (_, Some(key)) if !short_fits(node, keys, key) => {
                mismatch(node, ty, cx);
                return Self { entries: Cow::Borrowed(&[]), at: node.span.clone() };
            }
            (_, Some(key)) => {
                let key_span = node.span.clone();
                Cow::Owned(vec![Entry { key: key.to_owned(), key_span, value: node.clone() }])
            }
        };
        let at = entries.first().map_or(&node.span, |entry| &entry.key_span).clone();
        let fields = Self { entries, at };
        let all = keys.all();
        if keys.nonempty && fields.entries.is_empty() {
            let label = cx.label();
            let hint = format!("there is {}", suggest::listed(all.iter().map(|key| key.name)));
            cx.report.error_with_hint(&fields.at, format!("{label} is empty"), hint);
        }
        fields.check_unknown(ty, &all, siblings, cx);
        // Which keys are needed is not known when what decides it is wrong.
        if !siblings.is_some_and(|siblings| siblings.unsure) {
            fields.check_missing(&all, cx);
        }
        fields.check_together(&all, cx);
        fields
    }

    /// The value of `key`, if the mapping has it.
    pub fn given<T: Config>(&self, key: &Key, cx: &mut Cx<'_, '_>) -> Option<T> {
        let entry = self.entry(key.name)?;
        if entry.value.is_null() && !matches!((key.ty)().kind, Kind::Any) {
            mismatch_of(entry, key, cx);
            return Some(T::hole());
        }
        cx.hide_secret(key, &entry.value.span);
        Some(cx.within(Label::Key(key.name.into()), key.limits, |cx| T::read(&entry.value, cx)))
    }

    /// The value of a key that must be given. Its absence is reported by [`open`](Self::open).
    pub fn required<T: Config>(&self, key: &Key, cx: &mut Cx<'_, '_>) -> T {
        self.given(key, cx).unwrap_or_else(|| T::missing(cx))
    }

    /// Where the key `name` is, if the mapping has it.
    #[must_use]
    pub fn key_span(&self, name: &str) -> Option<&Span> {
        Some(&self.entry(name)?.key_span)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    fn check_missing(&self, all: &[&Key], cx: &mut Cx<'_, '_>) {
        for key in all.iter().filter(|key| key.required && self.entry(key.name).is_none()) {
            let label = cx.label();
            cx.report.error(&self.at, format!("{label} needs the key `{}`", key.name));
        }
    }

    fn check_together(&self, all: &[&Key], cx: &mut Cx<'_, '_>) {
        for key in all {
            let Some(entry) = self.entry(key.name) else { continue };
            for needed in key.requires.iter().filter(|needed| self.entry(needed).is_none()) {
                let message = format!("`{}` needs `{needed}` beside it", key.name);
                cx.report.error_with_hint(&entry.key_span, message, format!("add `{needed}`"));
            }
            for other in key.excludes.iter().filter(|other| self.entry(other).is_some()) {
                let message = format!("`{}` and `{other}` cannot both be given", key.name);
                cx.report.error_with_hint(&entry.key_span, message, "remove one of them");
            }
        }
    }

    fn check_unknown(
        &self,
        ty: &'static Type,
        all: &[&Key],
        siblings: Option<Siblings>,
        cx: &mut Cx<'_, '_>,
    ) {
        for entry in self.entries.iter() {
            if cx.report.full() {
                return;
            }
            if all.iter().any(|key| key.name == entry.key) {
                continue;
            }
            match siblings.filter(|siblings| siblings.know(&entry.key)) {
                Some(siblings) if siblings.unsure => {}
                Some(Siblings { noun, .. }) => {
                    cx.report.error(&entry.key_span, format!("{noun} has no `{}`", entry.key));
                }
                None => unknown_key(entry, ty, all, cx),
            }
        }
    }
}

/// Whether `node` can stand for the mapping as the value of `key`.
fn short_fits(node: &Node, keys: &Struct, key: &str) -> bool {
    keys.all().iter().find(|one| one.name == key).is_none_or(|one| fits(node, (one.ty)()))
}

/// The kinds that a mapping can be of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Siblings {
    /// What the chosen kind is called.
    noun: &'static str,
    kinds: &'static [KindOf],
    /// Whether a key that chooses the kind has a wrong value, so that another kind may be meant.
    unsure: bool,
}

impl Siblings {
    fn know(&self, key: &str) -> bool {
        self.kinds.iter().any(|kind| (kind.ty)().keys().iter().any(|known| known.name == key))
    }
}

pub(crate) fn unknown_key(entry: &Entry, ty: &'static Type, all: &[&Key], cx: &mut Cx<'_, '_>) {
    let holds = |key: &&&Key| (key.ty)().has_key(&entry.key);
    let hint = cx
        .foreign_hint(ty.name, &entry.key, entry.value.text())
        .or_else(|| all.iter().find(holds).map(|key| format!("it belongs in `{}`", key.name)))
        .unwrap_or_else(|| suggest::hint(&entry.key, all.iter().map(|key| key.name)));
    cx.report.error_with_hint(&entry.key_span, format!("unknown key `{}`", entry.key), hint);
}

fn mismatch_of(entry: &Entry, key: &Key, cx: &mut Cx<'_, '_>) {
    cx.within(Label::Key(key.name.into()), Limits::NONE, |cx| mismatch(&entry.value, (key.ty)(), cx));
}

/// The kind that the keys of `node` choose; the default one if they choose none. The mapping that is read next knows of the
/// other kinds, for messages about their keys.
pub fn kind_of(node: &Node, kinds: &'static [KindOf], cx: &mut Cx<'_, '_>) -> Option<usize> {
    let holds = |(key, literal): &(&str, Literal)| match (literal, &node.get(key).data) {
        (Literal::Bool(wanted), Data::Bool(given)) => wanted == given,
        (Literal::Text(wanted), Data::Text(given)) => wanted == given,
        _ => false,
    };
    let is_wrong = |(key, literal): &(&str, Literal)| match (literal, &node.get(key).data) {
        (_, Data::Null) | (Literal::Bool(_), Data::Bool(_)) | (Literal::Text(_), Data::Text(_)) => false,
        _ => node.entry(key).is_some(),
    };
    let chosen = kinds.iter().position(|kind| !kind.when.is_empty() && kind.when.iter().all(holds));
    let index = chosen.or_else(|| kinds.iter().position(|kind| kind.when.is_empty()))?;
    let unsure = kinds.iter().flat_map(|kind| kind.when).any(is_wrong);
    cx.siblings = Some(Siblings { noun: kinds.get(index)?.noun, kinds, unsure });
    Some(index)
}
