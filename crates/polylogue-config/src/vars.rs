//! `{{name}}` in texts: a literal replacement, done once.
//!
//! No template language: what is put in is never looked at again, and braces that hold no name are plain text, so
//! neither a task nor a prompt can break anything by the characters it holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::suggest;

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Plain text.
    Plain(&'a str),
    /// `{{name}}`: the name, and its source text.
    Var(&'a str, &'a str),
}

/// Cuts `text` at its variables. The pieces as written make up `text` again.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut plain, mut from) = (0, 0);
    while let Some(open) = text.get(from..).and_then(|rest| rest.find("{{")).map(|at| from + at) {
        let rest = text.get(open..).unwrap_or_default();
        let Some((name, written)) = placeholder(rest) else {
            // `{{{name}}}` is a variable between single braces: the next brace may open it.
            from = open + 1;
            continue;
        };
        pieces.push(Piece::Plain(text.get(plain..open).unwrap_or_default()));
        pieces.push(Piece::Var(name, written));
        from = open + written.len();
        plain = from;
    }
    pieces.push(Piece::Plain(text.get(plain..).unwrap_or_default()));
    pieces.retain(|piece| *piece != Piece::Plain(""));
    pieces
}

/// The variable that `text` begins with, if it does: its name, and its source text.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("{{")?;
    let name = inner.trim_start_matches(' ');
    let end = name.find(|c| !in_name(c)).unwrap_or(name.len());
    let (name, rest) = name.split_at(end);
    let rest = rest.trim_start_matches(' ').strip_prefix("}}")?;
    is_name(name).then_some((name, text.get(..text.len() - rest.len())?))
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns whether a variable can have this name.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(in_name)
}

/// The variables of a file, and which of them were used.
#[derive(Debug, Default)]
pub struct Vars {
    values: BTreeMap<String, String>,
    used: BTreeSet<String>,
}

impl Vars {
    /// Adds a variable.
    pub fn insert(&mut self, name: String, value: String) {
        self.values.insert(name, value);
    }

    /// Returns whether there is a variable `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the value of `name`, which counts as used from now on.
    pub fn get(&mut self, name: &str) -> Option<&str> {
        let value = self.values.get(name)?;
        if !self.used.contains(name) {
            self.used.insert(name.to_owned());
        }
        Some(value)
    }

    /// Returns whether the value of `name` was read.
    pub fn is_used(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// Returns what to do about the unknown variable `name`.
    pub fn hint(&self, name: &str) -> String {
        if self.values.is_empty() {
            return format!("define it: `vars: {{{name}: ...}}`");
        }
        suggest::hint(name, self.names())
    }

    /// Returns the names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.values.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::Piece::{Plain, Var};
    use super::*;

    #[test]
    fn only_a_name_between_double_braces_is_a_variable() {
        for (text, expected) in [
            ("", vec![]),
            ("a {{b}} c", vec![Plain("a "), Var("b", "{{b}}"), Plain(" c")]),
            ("{{ b_2 }}{{c}}", vec![Var("b_2", "{{ b_2 }}"), Var("c", "{{c}}")]),
            ("{{{b}}}", vec![Plain("{"), Var("b", "{{b}}"), Plain("}")]),
            ("{{{{", vec![Plain("{{{{")]),
            ("{{", vec![Plain("{{")]),
            ("{ {b} }", vec![Plain("{ {b} }")]),
            ("{{b}", vec![Plain("{{b}")]),
            ("{{}}", vec![Plain("{{}}")]),
            ("{{\"a\": {\"b\": 1}}}", vec![Plain("{{\"a\": {\"b\": 1}}}")]),
            ("{{b.c}} {{2b}} {{b c}}", vec![Plain("{{b.c}} {{2b}} {{b c}}")]),
            ("{{ü}}ö", vec![Var("ü", "{{ü}}"), Plain("ö")]),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }

    #[test]
    fn pieces_make_up_the_text_again() {
        for text in ["{{a}}{{{b}}}{{{{c}}", "x{{ a }}y{{{", "{{{{{{a}}}}}}"] {
            let again: String = pieces(text)
                .into_iter()
                .map(|piece| match piece {
                    Plain(text) | Var(_, text) => text,
                })
                .collect();
            assert_eq!(again, text);
        }
    }
}
