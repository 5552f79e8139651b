//! A lenient JSON parser for model output.

use serde_json::{Map, Value};

/// Limit on positions tried as the start of a value.
const MAX_BEGINNINGS: usize = 32;

/// Limit on nesting.
const MAX_DEPTH: usize = 64;

/// Tags that models write around their reasoning.
const THOUGHTS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// `text` without reasoning: text between the tags, before an unopened closing tag, or after an unclosed opening tag.
pub(crate) fn without_thoughts(text: &str) -> String {
    let mut text = text.to_owned();
    for (open, close) in THOUGHTS {
        // In one pass: a model that only closes tags would otherwise have all that is left moved for each.
        let (mut kept, mut rest) = (String::with_capacity(text.len()), text.as_str());
        while let Some((thought, after)) = rest.split_once(close) {
            match thought.split_once(open) {
                Some((before, _)) => kept.push_str(before),
                None => kept.clear(),
            }
            rest = after;
        }
        kept.push_str(rest.split_once(open).map_or(rest, |(before, _)| before));
        text = kept;
    }
    text
}

/// The JSON value in model output: all of it, or the first object or list in it. Skips reasoning, code fences and
/// surrounding text; tolerates wrong quotes, unquoted names, and misplaced commas.
pub(crate) fn value(text: &str) -> Option<Value> {
    let text = without_thoughts(text);
    serde_json::from_str(text.trim()).ok().or_else(|| within(&text, &['{', '[']))
}

/// The JSON object in model output; see [`value`].
pub(crate) fn object(text: &str) -> Option<Map<String, Value>> {
    match within(&without_thoughts(text), &['{']) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// The first value in `text` that starts with one of `begins`: strict JSON first, then lenient.
fn within(text: &str, begins: &[char]) -> Option<Value> {
    let rests = || text.match_indices(begins).take(MAX_BEGINNINGS).filter_map(|(at, _)| text.get(at..));
    let strict = |rest: &str| serde_json::Deserializer::from_str(rest).into_iter().next()?.ok();
    rests().find_map(strict).or_else(|| rests().find_map(|rest| Reader { rest, depth: 0 }.value()))
}

/// A lenient reader of one value.
struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Value> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '{' | '[' if self.depth == MAX_DEPTH => None,
            '{' => self.nested(Self::members).map(Value::Object),
            '[' => self.nested(Self::items).map(Value::Array),
            '"' | '\'' => self.string().map(Value::String),
            _ => self.word(),
        }
    }

    fn nested<T>(&mut self, read: fn(&mut Self) -> Option<T>) -> Option<T> {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
        self.depth += 1;
        let inner = read(self);
        self.depth -= 1;
        inner
    }

    /// Skips `sign` if it comes next; returns whether it did.
    fn passes(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn members(&mut self) -> Option<Map<String, Value>> {
        let mut members = Map::new();
        while !self.passes('}') {
            let name = match self.rest.chars().next()? {
                '"' | '\'' => self.string()?,
                _ => self.bare()?.to_owned(),
            };
            if !self.passes(':') {
                return None;
            }
            members.insert(name, self.value()?);
            if !self.passes(',') {
                return self.passes('}').then_some(members);
            }
        }
        Some(members)
    }

    fn items(&mut self) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        while !self.passes(']') {
            items.push(self.value()?);
            if !self.passes(',') {
                return self.passes(']').then_some(items);
            }
        }
        Some(items)
    }

    fn bare(&mut self) -> Option<&str> {
        let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.' | '$');
        let end = self.rest.find(|c: char| !is_of_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end).filter(|(word, _)| !word.is_empty())?;
        self.rest = rest;
        Some(word)
    }

    fn word(&mut self) -> Option<Value> {
        match self.bare()? {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            "null" | "None" => Some(Value::Null),
            number => serde_json::from_str::<serde_json::Number>(number).ok().map(Value::Number),
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut chars = self.rest.chars();
        let quote = chars.next()?;
        let mut text = String::new();
        loop {
            match chars.next()? {
                '\\' => escape(&mut chars, &mut text)?,
                c if c == quote && (quote == '"' || ends_string(chars.as_str())) => break,
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }
}

/// Whether the text after an apostrophe shows that it closed a string.
fn ends_string(rest: &str) -> bool {
    rest.trim_start().chars().next().is_none_or(|c| matches!(c, ',' | ':' | '}' | ']'))
}

fn escape(chars: &mut std::str::Chars<'_>, text: &mut String) -> Option<()> {
    match chars.next()? {
        'n' => text.push('\n'),
        't' => text.push('\t'),
        'r' => text.push('\r'),
        'b' => text.push('\u{8}'),
        'f' => text.push('\u{c}'),
        'u' => text.push(unicode(chars)?),
        c @ ('"' | '\'' | '\\' | '/') => text.push(c),
        c => text.extend(['\\', c]),
    }
    Some(())
}

/// The character of four hex digits, or of a surrogate pair.
fn unicode(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let first = hex(chars)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    let mut ahead = chars.clone();
    let second = (ahead.next() == Some('\\') && ahead.next() == Some('u')).then(|| hex(&mut ahead)).flatten();
    match second {
        Some(second @ 0xdc00..0xe000) => {
            *chars = ahead;
            char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
        }
        _ => Some(char::REPLACEMENT_CHARACTER),
    }
}

fn hex(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    let mut digit = || chars.next()?.to_digit(16);
    let digits = [digit()?, digit()?, digit()?, digit()?];
    Some(digits.into_iter().fold(0, |number, digit| number * 16 + digit))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_around_an_object_is_skipped() {
        for text in [
            r#"{"a": 1}"#,
            "Sure! Here it is:\n```json\n{\"a\": 1}\n```\nAnything {else}?",
            "<think>{\"a\": 2}</think>{\"a\": 1}",
            "{\"a\": 3}</think> {\"a\": 1} <think> {\"a\": 4}",
            "<think>{\"a\": 2}</think>{\"a\": 3}</think>{\"a\": 1}<thinking>{\"a\": 4}</thinking>",
            "I fill in {it}, so: {a: 1}",
        ] {
            assert_eq!(object(text).map(Value::Object), Some(json!({"a": 1})), "{text}");
        }
    }

    #[test]
    fn nearly_json_is_read() {
        for (text, read) in [
            ("{'a': 'b', 'c': [1, 2,], }", json!({"a": "b", "c": [1, 2]})),
            ("{\"a\": \"two\nlines\tand a tab\"}", json!({"a": "two\nlines\tand a tab"})),
            ("{a_b: True, c: None, d: -1.5e3}", json!({"a_b": true, "c": null, "d": -1500.0})),
            ("{'a': 'don't', 'b': {'c': ''}}", json!({"a": "don't", "b": {"c": ""}})),
            (r"{'a': 'A\u00fc\ud83d\ude00\'\d'}", json!({"a": "Aü😀'\\d"})),
        ] {
            assert_eq!(object(text).map(Value::Object), Some(read), "{text}");
        }
        assert_eq!(value(" 12 "), Some(json!(12)));
        assert_eq!(value("The list: ['a', 'b']"), Some(json!(["a", "b"])));
    }

    #[test]
    fn text_without_an_object_parses_to_none() {
        for text in ["", "12", "{", "{\"a\": 1", "{a}", "{'a' 1}", "[1]", "<think>{\"a\": 1}", "{\"a\": \"b"]
        {
            assert_eq!(object(text), None, "{text}");
        }
        assert_eq!(object(&"{a:".repeat(10_000)), None);
    }
}
