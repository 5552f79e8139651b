//! Reading alternatives: words or one-key mappings, and types that differ in shape.

use crate::codes;
use crate::config::Config;
use crate::cx::{Cx, Label};
use crate::source::Span;
use crate::suggest;
use crate::types::{Kind, Limits, Type, TypeFn, Variables, Variant};
use crate::wrong::{fits, mismatch};
use crate::yaml::{Data, Node};

/// The chosen alternative of a choice: its index, and the value that it is read from.
#[derive(Debug)]
pub struct Chosen {
    /// The index of the variant.
    pub index: usize,
    /// The node that its content is read from: the value of the one key, or an empty mapping for a word.
    pub node: Node,
    /// The name of the variant, for messages about its content.
    pub name: &'static str,
    limits: Limits,
    /// Where the word or the one key is.
    at: Span,
}

impl Chosen {
    /// Reads the content of the variant.
    pub fn read<T: Config>(&self, cx: &mut Cx<'_, '_>) -> T {
        cx.of_key(Label::Key(self.name.into()), self.limits, &self.at, |cx| T::read(&self.node, cx))
    }
}

/// Finds the variant that `node` names, as a word or as the one key of a mapping. Anything else is reported.
pub fn choose(
    node: &Node,
    ty: &'static Type,
    variants: &'static [Variant],
    cx: &mut Cx<'_, '_>,
) -> Option<Chosen> {
    match &node.data {
        Data::Text(word) => {
            let word = cx.fill(word, &node.span, Variables::All)?;
            word_of(&word, node, ty, variants, cx)
        }
        Data::Map(_) if variants.iter().any(|one| one.ty.is_some()) => key_of(node, ty, variants, cx),
        _ => {
            mismatch(node, ty, cx);
            None
        }
    }
}

fn word_of(
    word: &str,
    node: &Node,
    ty: &'static Type,
    variants: &'static [Variant],
    cx: &mut Cx<'_, '_>,
) -> Option<Chosen> {
    let label = cx.label();
    match variants.iter().position(|one| one.name == word) {
        Some(index) => {
            let one = variants.get(index)?;
            if one.is_word() {
                let at = node.span.clone();
                return Some(Chosen {
                    index,
                    node: node.as_empty_map(),
                    name: one.name,
                    limits: one.limits,
                    at,
                });
            }
            let (key, content) = (label.key(), content_of(one));
            let hint = format!("it takes more than a word: `{key}: {{{word}: {content}}}`");
            cx.report.error_with_hint(&node.span, format!("{label} cannot be only `{word}`"), hint);
        }
        None => match cx.foreign_hint(ty.name, word, None) {
            Some(hint) => {
                cx.report.error_with_hint(&node.span, format!("{label} cannot be `{word}`"), hint);
            }
            None => {
                let names: Vec<&str> = variants.iter().map(|one| one.name).collect();
                cx.unknown_word(word, &node.span, &names);
            }
        },
    }
    None
}

/// What the value of the variant's key looks like: a mapping with the keys that it needs, if it has some.
fn content_of(one: &Variant) -> String {
    let keys = match one.ty.map(|ty| ty()) {
        Some(ty) if matches!(ty.kind, Kind::Struct(_)) => ty.keys(),
        _ => Vec::new(),
    };
    let needed: Vec<String> =
        keys.iter().filter(|key| key.required).map(|key| format!("{}: ...", key.name)).collect();
    match needed.as_slice() {
        [] => "...".to_owned(),
        needed => format!("{{{}}}", needed.join(", ")),
    }
}

fn key_of(
    node: &Node,
    ty: &'static Type,
    variants: &'static [Variant],
    cx: &mut Cx<'_, '_>,
) -> Option<Chosen> {
    let label = cx.label();
    let names = || variants.iter().filter(|one| one.ty.is_some()).map(|one| one.name);
    let Some(entry) = node.entries().first() else {
        let keys = suggest::listed(names());
        cx.report.code(codes::MISSING_KEY).error(&node.span, format!("{label} needs one of the keys {keys}"));
        return None;
    };
    if let Some(surplus) = node.entries().get(1) {
        let message = format!("{label} takes one key only, and `{}` is another", surplus.key);
        cx.report.error(&surplus.key_span, message);
    }
    let found = variants.iter().position(|one| one.ty.is_some() && one.name == entry.key);
    let Some(index) = found else {
        let is_word = variants.iter().any(|one| one.name == entry.key);
        let hint = if is_word {
            format!("write the word alone: `{}: {}`", label.key(), entry.key)
        } else {
            cx.foreign_hint(ty.name, &entry.key, entry.value.text())
                .unwrap_or_else(|| suggest::hint(&entry.key, names().collect::<Vec<_>>()))
        };
        cx.report.code(codes::UNKNOWN_KEY).error_with_hint(
            &entry.key_span,
            format!("unknown key `{}`", entry.key),
            hint,
        );
        return None;
    };
    let one = variants.get(index)?;
    if entry.value.is_null() {
        let content = one.ty?();
        cx.within(Label::Key(one.name.into()), Limits::NONE, |cx| mismatch(&entry.value, content, cx));
        return None;
    }
    let (node, at) = (entry.value.clone(), entry.key_span.clone());
    Some(Chosen { index, node, name: one.name, limits: one.limits, at })
}

/// Finds the type among `shapes` that `node` is meant to be: by the shape of its value, mappings by their required keys, then
/// by any key. Reports a value that fits none.
pub fn by_shape(
    node: &Node,
    ty: &'static Type,
    shapes: &'static [TypeFn],
    cx: &mut Cx<'_, '_>,
) -> Option<usize> {
    let has = |name: &str| node.entry(name).is_some();
    let fitting = || shapes.iter().enumerate().filter(|(_, ty)| fits(node, ty()));
    let required = |ty: &Type| {
        let keys = ty.keys();
        keys.iter().any(|key| key.required) && keys.iter().filter(|key| key.required).all(|key| has(key.name))
    };
    let by_required = fitting().find(|(_, ty)| required(ty()));
    let by_any = || fitting().find(|(_, ty)| ty().keys().iter().any(|key| has(key.name)));
    let chosen = by_required.or_else(by_any).or_else(|| fitting().next()).map(|(index, _)| index);
    if chosen.is_none() {
        mismatch(node, ty, cx);
    }
    chosen
}
