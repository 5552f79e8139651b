//! Messages about values that do not fit their type.

use serde_json::Value;

use crate::cx::Cx;
use crate::types::{Key, Kind, Type};
use crate::yaml::{Data, Node};

/// The shapes of values that a type takes.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) words: Vec<&'static str>,
    pub(crate) text: bool,
    pub(crate) number: bool,
    pub(crate) whole: bool,
    pub(crate) boolean: bool,
    pub(crate) map: bool,
    pub(crate) list: bool,
    /// Whether the mapping has names of the user's choice.
    by_name: bool,
    /// An example of the text.
    pub(crate) example: Option<&'static str>,
    /// Whether the text is a number with a unit of time.
    is_time: bool,
    /// The keys of a mapping that take a list of such mappings, as `any` of termination conditions.
    of_several: Vec<&'static str>,
    /// Keys of a mapping that a value without a key is probably meant for.
    alone: Vec<&'static Key>,
    /// Whether the mapping has a name.
    named: bool,
    /// The type of the items of the list, if they are mappings with names.
    of_named: Option<&'static Type>,
}

/// The longest value that a hint repeats.
const SHORT: usize = 60;

impl Expected {
    pub(crate) fn of(ty: &Type) -> Self {
        let mut expected = Self::default();
        expected.add(ty);
        expected
    }

    fn add(&mut self, ty: &Type) {
        match &ty.kind {
            Kind::Bool => self.boolean = true,
            Kind::Whole { .. } => self.whole = true,
            Kind::Number => self.number = true,
            Kind::Text(text) => {
                self.text = true;
                self.example = self.example.or_else(|| text.examples.first().copied());
                self.is_time |= text.format == "duration";
            }
            Kind::Scalar => (self.text, self.number, self.boolean) = (true, true, true),
            Kind::Any => {}
            Kind::Object | Kind::Pair(_) => self.map = true,
            Kind::Table(_) => (self.map, self.by_name) = (true, true),
            Kind::Kinds(_) => {
                self.map = true;
                self.named |= is_named(ty);
            }
            Kind::List(item) => {
                self.list = true;
                self.of_named = self.of_named.or_else(|| Some(item()).filter(|item| is_named(item)));
            }
            Kind::Optional(ty) => self.add(ty()),
            Kind::OneOrMany(ty) => {
                self.add(ty());
                self.list = true;
            }
            Kind::Switch(ty) => {
                self.boolean = true;
                self.add(ty());
            }
            Kind::Struct(of) => {
                self.map = true;
                self.named |= is_named(ty);
                let all = of.all();
                let alone =
                    of.alone.iter().filter_map(|name| all.iter().find(|key| key.name == *name).copied());
                self.alone.extend(alone);
                let holds_several =
                    |key: &&&Key| matches!(&(key.ty)().kind, Kind::List(one) if one().name == ty.name);
                self.of_several.extend(of.all().iter().filter(holds_several).map(|key| key.name));
                let short = of.shorthand.and_then(|name| of.all().into_iter().find(|key| key.name == name));
                short.iter().for_each(|key| self.add((key.ty)()));
            }
            Kind::Choice(variants) => {
                self.words.extend(variants.iter().filter(|one| one.is_word()).map(|one| one.name));
                self.map |= variants.iter().any(|one| one.ty.is_some());
            }
            Kind::Shapes(shapes) => shapes.iter().for_each(|ty| self.add(ty())),
        }
    }

    /// In words: `true` or `false`, a text or a list.
    pub(crate) fn in_words(&self) -> String {
        let mut kinds: Vec<String> = self.words.iter().map(|word| format!("`{word}`")).collect();
        for (is, kind) in [
            (self.text, "a text"),
            (self.number, "a number"),
            (self.whole, "a whole number"),
            (self.boolean, "`true` or `false`"),
            (self.map, "a mapping"),
            (self.list, "a list"),
        ] {
            if is {
                kinds.push(kind.to_owned());
            }
        }
        match kinds.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "a value".to_owned(),
        }
    }

    /// How to write the value that was probably meant.
    fn hint(&self, node: &Node, written: &str) -> Option<String> {
        match &node.data {
            Data::Number(_) if self.is_time => {
                Some(format!("add the unit, such as `{} s`", shown(node, written)))
            }
            Data::Number(_) | Data::Bool(_) if self.text => Some(match self.example {
                Some(example) => format!("write a text such as `{example}`"),
                None => format!("put it in quotes: \"{written}\""),
            }),
            Data::Text(text) => {
                let number = (self.number || self.whole) && text.parse::<f64>().is_ok_and(f64::is_finite);
                let boolean = self.boolean && matches!(text.as_str(), "true" | "false");
                if number || boolean {
                    return Some("remove the quotation marks".to_owned());
                }
                let list = || {
                    (self.list && !text.is_empty())
                        .then(|| format!("write a list: `{}`", listed(text, written)))
                };
                list().or_else(|| self.key_for(node, written))
            }
            Data::List(_) if !self.of_several.is_empty() => {
                let lists: Vec<String> =
                    self.of_several.iter().map(|key| format!("`{key}: [...]`")).collect();
                Some(format!("write {}", lists.join(" or ")))
            }
            Data::List(items)
                if let Some(name) = items.first().and_then(name_of).filter(|_| self.by_name) =>
            {
                Some(format!("write a mapping with names as keys: `{{{name}: ...}}`"))
            }
            // What the item says may be a secret.
            Data::List(items)
                if self.by_name && matches!(items.first().map(|item| &item.data), Some(Data::Text(_))) =>
            {
                Some("write a mapping with names as keys: `{NAME: ...}`".to_owned())
            }
            Data::Map(entries) if let Some(item) = self.of_named => {
                let first = &entries.first()?.key;
                // One item, or items by their names.
                Some(match item.keys().iter().any(|key| key.name == *first) {
                    true => "write a list: `[{name: ..., ...}]`".to_owned(),
                    false => {
                        format!("write a list whose items have the key `name`: `[{{name: {first}, ...}}]`")
                    }
                })
            }
            Data::Map(_) | Data::List(_) if self.text && !self.map => {
                self.example.map(|example| format!("write a text such as `{example}`"))
            }
            _ => self.key_for(node, written),
        }
    }

    /// The mapping with the key that the value `node`, which has none, was probably meant for.
    fn key_for(&self, node: &Node, written: &str) -> Option<String> {
        let shown = shown(node, written);
        if let Some(key) =
            self.alone.iter().find(|key| fits(node, (key.ty)()) && is_within(key, node, written))
        {
            return Some(format!("write `{{{}: {shown}}}`", key.name));
        }
        let is_name = self.named && matches!(node.data, Data::Text(_));
        is_name.then(|| format!("write `{{name: {shown}, ...}}`"))
    }
}

/// The name that an item of a list would be the value of in a mapping: `A` of `{source: A, target: B}` and of `[A, B]`.
fn name_of(item: &Node) -> Option<&str> {
    let value = match &item.data {
        Data::List(items) => items.first()?,
        Data::Map(entries) => {
            let named = entries.iter().find(|entry| matches!(&*entry.key, "name" | "source" | "from"));
            &named.or_else(|| entries.first())?.value
        }
        _ => return None,
    };
    match &value.data {
        Data::Text(text) => Some(text.as_str()).filter(|text| is_plain(text)),
        _ => None,
    }
}

/// Whether a number is one that `key` takes.
fn is_within(key: &Key, node: &Node, written: &str) -> bool {
    let Data::Number(_) = &node.data else { return true };
    let Ok(number) = written.parse::<f64>() else { return false };
    let is_whole = number.fract() == 0.0 || Expected::of((key.ty)()).number;
    is_whole && key.limits.range.is_none_or(|(least, most)| (least..=most).contains(&number))
}

/// A value as it can stand within braces.
fn shown(node: &Node, written: &str) -> String {
    match &node.data {
        _ if !is_short(written) => "...".to_owned(),
        Data::Text(text) if !is_plain(text) => Value::from(text.as_str()).to_string(),
        Data::Text(text) => text.clone(),
        Data::List(_) if !written.starts_with('[') => "[...]".to_owned(),
        _ => written.to_owned(),
    }
}

/// Whether a text needs no quotation marks in YAML, whatever surrounds it.
fn is_plain(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | ' ' | '.' | '-');
    text.starts_with(char::is_alphabetic) && text.chars().all(is_word)
}

/// Whether a hint can repeat `written`.
fn is_short(written: &str) -> bool {
    written.len() <= SHORT && !written.contains('\n')
}

/// Whether `ty` is a mapping that must have a name.
fn is_named(ty: &Type) -> bool {
    match &ty.kind {
        Kind::Struct(of) => of.all().iter().any(|key| key.name == "name" && key.required),
        Kind::Kinds(kinds) => kinds.iter().any(|kind| is_named((kind.ty)())),
        _ => false,
    }
}

/// The list that `text` was meant as: its items are separated by commas, as in `Ann, Bob`, or it is one item.
fn listed(text: &str, written: &str) -> String {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    match items.len() > 1 && items.iter().all(|item| is_plain(item)) {
        true => format!("[{}]", items.join(", ")),
        false => format!("[{written}]"),
    }
}

/// Reports a value whose shape does not fit `ty`.
pub fn mismatch(node: &Node, ty: &Type, cx: &mut Cx<'_, '_>) {
    let written = cx.report.source.slice(&node.span);
    if written.starts_with("{{") && matches!(node.data, Data::Map(_)) {
        // A variable without quotes: reported when the tree was built.
        return;
    }
    let (label, expected) = (cx.label(), Expected::of(ty));
    let wanted = expected.in_words();
    let given = match &node.data {
        // What was meant is reported already.
        Data::Null if cx.report.has_error_at(&node.span) => return,
        Data::Null => {
            let hint = format!("give it {wanted}, or remove it");
            cx.report.error_with_hint(&node.span, format!("{label} is empty"), hint);
            return;
        }
        Data::Bool(_) => format!("`{written}`"),
        Data::Number(_) => "a number".to_owned(),
        Data::Text(_) => "a text".to_owned(),
        Data::List(_) => "a list".to_owned(),
        Data::Map(_) => "a mapping".to_owned(),
    };
    let message = format!("{label} must be {wanted}, not {given}");
    match expected.hint(node, written) {
        Some(hint) => cx.report.error_with_hint(&node.span, message, hint),
        None => cx.report.error(&node.span, message),
    }
}

/// Whether the shape of `node` is one that `ty` takes.
pub(crate) fn fits(node: &Node, ty: &Type) -> bool {
    let expected = Expected::of(ty);
    match &node.data {
        Data::Null => false,
        Data::Bool(_) => expected.boolean,
        Data::Number(_) => expected.number || expected.whole,
        Data::Text(_) => expected.text || !expected.words.is_empty(),
        Data::List(_) => expected.list,
        Data::Map(_) => expected.map,
    }
}
