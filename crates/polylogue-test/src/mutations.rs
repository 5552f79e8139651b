//! Texts that are changed at random, for tests of parsers: whatever they are given, they must accept or refuse it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::random::Random;

/// Longest time to parse one text, with room for a slow machine.
const HANGS: Duration = Duration::from_secs(20);

/// The default of `POLYLOGUE_MUTATIONS`.
const FEW: u64 = 150;

/// What is inserted into texts: syntax, and values that parsers do not expect.
const TOKENS: [&str; 28] = [
    "{", "}", "[", "]", ":", ",", "- ", "\n", "\t", "&a ", "*a", "!!str ", "|\n", ">-\n", "'", "\"", "{{",
    "}}", "null", "-1", "1e400", "18446744073709551616", "\u{202e}", "\u{0}", "é", "---\n", "<<: ", "true",
];

/// Choices that follow from a seed.
struct Choices(Random);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    /// A place in `text` between two characters.
    fn place(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        text.floor_char_boundary(at)
    }

    /// A part of `text`, at most 200 bytes long.
    fn range(&mut self, text: &str) -> std::ops::Range<usize> {
        let (a, b) = (self.place(text), self.place(text));
        let (start, end) = (a.min(b), a.max(b));
        start..text.floor_char_boundary(end.min(start + 200))
    }

    fn token(&mut self) -> &'static str {
        self.one(&TOKENS).copied().unwrap_or_default()
    }

    fn one<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

fn mutated(text: &str, other: &str, random: &mut Choices) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(6) {
        let range = random.range(&text);
        match random.below(7) {
            0 => text.replace_range(range, ""),
            1 => text.insert_str(range.start, random.token()),
            2 => text.replace_range(range, random.token()),
            3 => {
                let twice = text.get(range.clone()).unwrap_or_default().repeat(2);
                text.replace_range(range, &twice);
            }
            4 => text.insert_str(range.start, other.get(random.range(other)).unwrap_or_default()),
            5 => text.truncate(range.start),
            _ => {
                let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
                let (i, j) = (random.below(lines.len()), random.below(lines.len()));
                if !lines.is_empty() {
                    lines.swap(i, j);
                }
                text = lines.concat();
            }
        }
    }
    text
}

/// A value that belongs nowhere.
fn scalar(random: &mut Choices) -> Value {
    match random.below(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(u64::MAX),
        3 => json!(-1),
        4 => json!(1e300),
        5 => json!([]),
        6 => json!({}),
        7 => json!("x".repeat(random.below(3_000))),
        _ => json!(random.token()),
    }
}

/// Some value within `value`.
fn part(value: &Value, random: &mut Choices) -> Value {
    let parts: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    match random.one(&parts) {
        Some(inner) if random.below(4) > 0 => part(inner, random),
        _ => value.clone(),
    }
}

/// Changes `value` somewhere; the result is still well formed.
fn change(value: &mut Value, other: &Value, random: &mut Choices) {
    let children = match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    let nth = random.below(children);
    if children > 0 && random.below(4) > 0 {
        let child = match value {
            Value::Array(items) => items.get_mut(nth),
            Value::Object(fields) => fields.values_mut().nth(nth),
            _ => None,
        };
        if let Some(child) = child {
            change(child, other, random);
        }
        return;
    }
    let key = |fields: &Map<String, Value>, nth: usize| fields.keys().nth(nth).cloned().unwrap_or_default();
    match (random.below(7), value) {
        (0, Value::Array(items)) if nth < items.len() => drop(items.remove(nth)),
        (1, Value::Array(items)) => items.extend(items.get(nth).cloned()),
        (2, Value::Array(items)) if nth < items.len() => items.swap(0, nth),
        (0, Value::Object(fields)) => drop(fields.shift_remove(&key(fields, nth))),
        (1 | 2, Value::Object(fields)) => {
            // A key that another text has, or a value under another key.
            let taken = fields.shift_remove(&key(fields, nth)).unwrap_or_default();
            let name = match part(other, random) {
                Value::Object(others) if !others.is_empty() => key(&others, random.below(others.len())),
                _ => key(fields, random.below(fields.len())),
            };
            fields.insert(name, taken);
        }
        (3, value) => *value = scalar(random),
        (4, value) => *value = json!([value.clone()]),
        (_, value) => *value = part(other, random),
    }
}

/// Parses mutations of `texts` with `parse`, which returns whether it accepted one: every second is changed as text, the
/// others are changed `values`. `POLYLOGUE_MUTATIONS=20000` tries that many; `POLYLOGUE_SEED` begins with another seed.
///
/// # Panics
/// When `parse` panics, hangs, or accepts so few of them that hardly anything behind the syntax was tested.
pub fn survives(texts: &[String], values: &[Value], parse: impl Fn(&str) -> bool) {
    assert!(values.len() * 2 > texts.len(), "only {} of {} texts are values", values.len(), texts.len());
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (count, first) =
        (number("POLYLOGUE_MUTATIONS").unwrap_or(FEW), number("POLYLOGUE_SEED").unwrap_or(1));
    let mut accepted = 0;
    for seed in first..first + count {
        let text = mutation(texts, values, seed);
        let begun = Instant::now();
        let parsed = catch_unwind(AssertUnwindSafe(|| parse(&text)));
        assert!(parsed.is_ok(), "seed {seed} panics:\n{text}");
        accepted += u64::from(parsed.unwrap_or_default());
        assert!(begun.elapsed() < HANGS, "seed {seed} takes {:?}:\n{text}", begun.elapsed());
    }
    assert!(
        accepted * 50 > count,
        "only {accepted} of {count} were accepted: what is behind the syntax was hardly tested"
    );
}

fn mutation(texts: &[String], values: &[Value], seed: u64) -> String {
    let mut random = Choices(Random::new(seed));
    if seed.is_multiple_of(2) {
        let (one, other) = (random.one(texts), random.one(texts));
        return one.zip(other).map(|(one, other)| mutated(one, other, &mut random)).unwrap_or_default();
    }
    let (one, other) = (random.one(values), random.one(values));
    let (mut value, other) = one.cloned().zip(other).unwrap_or((Value::Null, &Value::Null));
    (0..=random.below(4)).for_each(|_| change(&mut value, other, &mut random));
    value.to_string()
}
