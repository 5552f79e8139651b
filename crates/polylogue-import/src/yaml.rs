//! Writes YAML in the style of people.

use std::fmt::Write as _;

/// A node of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Yaml {
    /// A text.
    Text(String),
    /// A number, `true` or `false`, as written.
    Plain(String),
    /// A list.
    List(Vec<Yaml>),
    /// A mapping, in the order in which it is written.
    Map(Entries),
    /// A JSON value, written as JSON.
    Json(serde_json::Value),
}

/// The entries of a mapping.
pub(crate) type Entries = Vec<(String, Yaml)>;

impl Yaml {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn plain(value: impl ToString) -> Self {
        Self::Plain(value.to_string())
    }

    pub(crate) fn texts(texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// A mapping of one entry.
    pub(crate) fn one(key: &str, value: Self) -> Self {
        Self::Map(vec![(key.to_owned(), value)])
    }

    /// Removes every entry `key` with the value `removed`, at any depth. A selection that is then empty becomes its name.
    pub(crate) fn forget(&mut self, key: &str, removed: &Self) {
        let Self::Map(entries) = self else { return };
        entries.retain(|(is, value)| is != key || value != removed);
        for (is, value) in entries.iter_mut() {
            value.forget(key, removed);
            if is == "select" && *value == Self::one(key, Self::Map(Vec::new())) {
                *value = Self::text(key);
            }
        }
    }

    /// Collects every text in which a team file can have variables.
    pub(crate) fn all_texts<'a>(&'a self, found: &mut Vec<&'a str>) {
        match self {
            Self::Text(text) => found.push(text),
            Self::List(items) => items.iter().for_each(|item| item.all_texts(found)),
            Self::Map(entries) => entries.iter().for_each(|(_, value)| value.all_texts(found)),
            Self::Plain(_) | Self::Json(_) => {}
        }
    }
}

/// The longest list or mapping that is written on one line, in characters.
const SHORT: usize = 90;

/// Writes a mapping as a document.
pub(crate) fn document(entries: &Entries) -> String {
    let mut out = String::new();
    block(entries, 0, &mut out);
    out
}

fn block(entries: &Entries, indent: usize, out: &mut String) {
    for (index, (key, value)) in entries.iter().enumerate() {
        // The first entry of an item of a list stands behind its dash.
        if index > 0 || !out.ends_with("- ") {
            out.push_str(&" ".repeat(indent));
        }
        let _ = write!(out, "{}:", scalar(key));
        node(value, indent, out);
    }
}

fn node(value: &Yaml, indent: usize, out: &mut String) {
    if let Yaml::Text(text) = value
        && is_literal(text)
    {
        out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
        for line in text.trim_end_matches('\n').split('\n') {
            let margin = if line.is_empty() { 0 } else { indent + 2 };
            let _ = writeln!(out, "{}{line}", " ".repeat(margin));
        }
        return;
    }
    match value {
        Yaml::Map(entries) if !entries.is_empty() && !is_short(value, indent) => {
            out.push('\n');
            block(entries, indent + 2, out);
        }
        Yaml::List(items) if !items.is_empty() && !is_short(value, indent) => {
            out.push('\n');
            for item in items {
                let _ = write!(out, "{}- ", " ".repeat(indent + 2));
                match item {
                    Yaml::Map(entries) if !entries.is_empty() && !is_short(item, indent + 4) => {
                        block(entries, indent + 4, out);
                    }
                    item => {
                        let _ = writeln!(out, "{}", graph(item));
                    }
                }
            }
        }
        value => {
            let _ = writeln!(out, " {}", graph(value));
        }
    }
}

/// Whether a text of several lines can be a block scalar.
fn is_literal(text: &str) -> bool {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    let is_plain = |c: char| {
        matches!(c, '\n' | '\t') || is_printable(c) && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    lines.contains('\n')
        && !lines.starts_with(char::is_whitespace)
        && !lines.ends_with('\n')
        && lines.chars().all(is_plain)
        && lines.split('\n').all(|line| line == line.trim_end())
}

/// Whether a value is written on one line. Agents and chats never are.
fn is_short(value: &Yaml, indent: usize) -> bool {
    let is_plain = match value {
        Yaml::Map(entries) => entries.len() <= 3 && !is_large(entries),
        _ => true,
    };
    is_plain && depth(value) <= 3 && graph(value).chars().count() + indent <= SHORT
}

/// Whether a mapping is an agent or a chat.
fn is_large(entries: &Entries) -> bool {
    entries.iter().any(|(key, _)| matches!(key.as_str(), "name" | "participants"))
}

fn depth(value: &Yaml) -> usize {
    match value {
        Yaml::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Yaml::Map(entries) if is_large(entries) => usize::MAX / 2,
        Yaml::Map(entries) => 1 + entries.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

fn graph(value: &Yaml) -> String {
    match value {
        Yaml::Text(text) => scalar(text),
        Yaml::Plain(text) => text.clone(),
        Yaml::List(items) => format!("[{}]", items.iter().map(graph).collect::<Vec<_>>().join(", ")),
        Yaml::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", scalar(key), graph(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Yaml::Json(value) => escaped(&value.to_string()),
    }
}

/// A text on one line: plain where it is unambiguous, otherwise quoted as in JSON.
fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '$');
    let words = text.split(' ').all(|word| !word.is_empty() && word.chars().all(|c| is_word(c) || c == ','))
        && !text.ends_with(',');
    let plain =
        text.starts_with(|c: char| c.is_alphabetic()) && !text.contains(',') && words || is_model(text);
    if plain && !is_reserved(text) {
        return text.to_owned();
    }
    escaped(&serde_json::to_string(text).unwrap_or_default())
}

/// JSON with escapes for what JSON takes without one and YAML does not.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_printable(c) {
            true => out.push(c),
            false => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
        }
    }
    out
}

/// Whether YAML allows `c` without an escape on one line.
pub(crate) fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// `provider:model`.
fn is_model(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_word) && !text.ends_with(':')
}

/// Words that some version of YAML does not read as texts.
fn is_reserved(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back_as_they_were() {
        for text in [
            "word", "two words", "yes", "1", "1e5", "a: b", "a #b", "#x", "- x", "{x}", "é ü", "a\tb",
            "a\nb", "a\n\nb\n", " a\nb", "a \nb", "a\r\nb", "a\nb\n\n", "", " ", "~", "x:", "openai:gpt-4o",
            "http://h:1/v1", "a\u{85}b", "'q' \"q\"", "a\u{2028}\nb", "key: |\n  x\n", "\\n", "null", "a,b",
            "2026-01-01", "---\nx", "a\u{1}\nb", "a\u{7f}b", "a\u{9f}\nb", "\u{fffe}", "a\u{ffff}\nb",
        ] {
            let written = document(&vec![
                ("k".into(), Yaml::one("deeper", Yaml::text(text))),
                ("l".into(), Yaml::texts([text])),
            ]);
            let read: serde_json::Value = serde_saphyr::from_str(&written).unwrap();
            assert_eq!(read, serde_json::json!({"k": {"deeper": text}, "l": [text]}), "{written}");
            let written = document(&vec![("k".into(), Yaml::Json(serde_json::json!([text])))]);
            let read: serde_json::Value = serde_saphyr::from_str(&written).unwrap();
            assert_eq!(read, serde_json::json!({"k": [text]}), "{written}");
            let is_legal = |c: char| c == '\n' || c == '\t' || is_printable(c);
            assert!(written.chars().all(is_legal), "{written:?}");
        }
    }
}
