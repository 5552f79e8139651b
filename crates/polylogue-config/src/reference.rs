//! The reference page of a configuration type.

use std::fmt::Write as _;

use serde_json::Value;

use crate::types::{Key, Kind, Limits, Struct, Type, TypeFn, Variant};

/// Writes the reference of `ty` and of all named types in it as Markdown: a section per type with its documentation and a table
/// of keys (key, type, default, meaning), in the order in which they are first used.
pub fn reference(ty: &'static Type) -> String {
    let mut sections = Vec::new();
    collect(ty, &mut sections);
    let mut page = String::new();
    for ty in sections {
        section(&mut page, ty);
    }
    page
}

/// All named types within `ty`, itself first, each once.
fn collect(ty: &'static Type, found: &mut Vec<&'static Type>) {
    if !ty.name.is_empty() {
        if found.iter().any(|known| known.name == ty.name) {
            return;
        }
        found.push(ty);
    }
    let mut next = |ty: &TypeFn| collect(ty(), found);
    match &ty.kind {
        Kind::List(ty)
        | Kind::Table(ty)
        | Kind::Pair(ty)
        | Kind::Optional(ty)
        | Kind::OneOrMany(ty)
        | Kind::Switch(ty) => {
            next(ty);
        }
        Kind::Struct(of) => of.all().iter().for_each(|key| next(&key.ty)),
        Kind::Choice(variants) => variants.iter().filter_map(|one| one.ty.as_ref()).for_each(next),
        Kind::Kinds(kinds) => kinds.iter().for_each(|kind| next(&kind.ty)),
        Kind::Shapes(shapes) => shapes.iter().for_each(next),
        Kind::Bool
        | Kind::Whole { .. }
        | Kind::Number
        | Kind::Text(_)
        | Kind::Scalar
        | Kind::Any
        | Kind::Object => {}
    }
}

fn section(page: &mut String, ty: &'static Type) {
    let _ = writeln!(page, "## {}\n\n{}\n", ty.name, ty.doc);
    match &ty.kind {
        Kind::Struct(of) => {
            if let Some(short) = of.shorthand {
                let _ = writeln!(page, "A value alone sets `{short}`.\n");
            }
            without(page, of);
            keys(page, &of.all());
        }
        Kind::Choice(variants) => choices(page, variants),
        Kind::Kinds(kinds) => {
            for kind in *kinds {
                let _ = writeln!(page, "- {}: {}", kind.noun, in_words((kind.ty)(), Limits::NONE));
            }
            page.push('\n');
        }
        Kind::Shapes(_) => {
            let _ = writeln!(page, "{}\n", alternatives(ty));
        }
        _ => {}
    }
}

/// Which keys are not for a kind.
fn without(page: &mut String, of: &Struct) {
    let kinds: Vec<_> = of.kinds().collect();
    for kind in kinds.iter().filter(|kind| !kind.when.is_empty()) {
        let others = of.all().into_iter().filter(|key| kinds.iter().any(|other| other.has_key(key.name)));
        let others = others.filter(|key| !kind.has_key(key.name)).map(|key| format!("`{}`", key.name));
        let others: Vec<String> = others.collect();
        let _ =
            writeln!(page, "{} ({}) has no {}.\n", capital(kind.noun), kind.chosen_by(), others.join(", "));
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn keys(page: &mut String, all: &[&Key]) {
    if all.is_empty() {
        return;
    }
    page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    for key in all {
        let ty = in_words((key.ty)(), key.limits);
        let meaning = cell(&meaning(key));
        let _ = writeln!(page, "| `{}` | {} | {} | {meaning} |", key.name, cell(&ty), cell(&default(key)));
    }
    page.push('\n');
}

fn choices(page: &mut String, variants: &[Variant]) {
    page.push_str("| value | meaning |\n|---|---|\n");
    for one in variants {
        let mut forms = Vec::new();
        if one.is_word() {
            forms.push(format!("`{}`", one.name));
        }
        if let Some(ty) = one.ty {
            forms.push(format!("`{}:` {}", one.name, in_words(ty(), one.limits)));
        }
        let _ = writeln!(page, "| {} | {} |", cell(&forms.join(" or ")), cell(one.doc));
    }
    page.push('\n');
}

fn meaning(key: &Key) -> String {
    let mut text = key.doc.replace("\n\n", " ");
    let listed = |keys: &[&str]| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    if !key.requires.is_empty() {
        let _ = write!(text, " Needs {}.", listed(key.requires));
    }
    if !key.excludes.is_empty() {
        let _ = write!(text, " Cannot be combined with {}.", listed(key.excludes));
    }
    text
}

fn default(key: &Key) -> String {
    if key.required && key.none.is_empty() {
        return "required".to_owned();
    }
    match key.default.map(|default| default()) {
        Some(Value::String(text)) if text.is_empty() => "empty".to_owned(),
        Some(Value::String(text)) => format!("`{text}`"),
        Some(value) => format!("`{value}`"),
        None if !key.none.is_empty() => key.none.to_owned(),
        None => match (key.ty)().kind {
            Kind::Switch(_) => "`false`".to_owned(),
            _ => "none".to_owned(),
        },
    }
}

/// A type in words, with links to the sections of named types.
fn in_words(ty: &'static Type, limits: Limits) -> String {
    if !ty.name.is_empty() {
        return format!("[{}](#{})", ty.name, ty.name.to_lowercase());
    }
    match &ty.kind {
        Kind::Bool => "`true` or `false`".to_owned(),
        Kind::Whole { .. } => bounded("whole number", limits),
        Kind::Number => bounded("number", limits),
        Kind::Text(text) if text.format.is_empty() => "text".to_owned(),
        Kind::Text(text) => match text.examples.first() {
            Some(example) => format!("{} such as `{example}`", text.format),
            None => text.format.to_owned(),
        },
        Kind::Scalar => "text, number, `true` or `false`".to_owned(),
        Kind::Any => "any value".to_owned(),
        Kind::Object => "any mapping".to_owned(),
        Kind::List(item) => format!("list of {}", in_words(item(), limits)),
        Kind::Table(value) => format!("mapping of names to {}", in_words(value(), limits)),
        Kind::Pair(value) => format!("mapping of one name to {}", in_words(value(), limits)),
        Kind::Optional(ty) => in_words(ty(), limits),
        Kind::OneOrMany(ty) => format!("{} or a list", in_words(ty(), limits)),
        Kind::Switch(ty) => format!("`true`, `false` or {}", in_words(ty(), limits)),
        Kind::Struct(_) | Kind::Kinds(_) => "mapping".to_owned(),
        Kind::Choice(variants) => {
            variants.iter().map(|one| format!("`{}`", one.name)).collect::<Vec<_>>().join(", ")
        }
        Kind::Shapes(_) => alternatives(ty),
    }
}

fn alternatives(ty: &Type) -> String {
    let Kind::Shapes(shapes) = &ty.kind else { return String::new() };
    shapes.iter().map(|ty| in_words(ty(), Limits::NONE)).collect::<Vec<_>>().join(" or ")
}

fn bounded(noun: &str, limits: Limits) -> String {
    match limits.range {
        Some((least, f64::INFINITY)) => format!("{noun}, at least {least}"),
        Some((least, most)) => format!("{noun}, {least} to {most}"),
        None => noun.to_owned(),
    }
}

/// A text that does not end its cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
