//! Team files and definitions to import that were changed at random: whatever is in them, they are read or refused.
//!
//! `POLYLOGUE_MUTATIONS=20000` tries that many of each; `POLYLOGUE_SEED` begins with another seed.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polylogue_team::import::import;
use polylogue_team::{Overrides, Rules, parse};
use serde_json::{Map, Value, json};

/// No text takes nearly as long, on a slow machine either.
const HANGS: Duration = Duration::from_secs(20);

/// How many are tried unless it is said otherwise.
const FEW: u64 = 150;

/// What is put into texts: what means something to a parser, and what no one expects.
const TOKENS: [&str; 28] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "- ",
    "\n",
    "\t",
    "&a ",
    "*a",
    "!!str ",
    "|\n",
    ">-\n",
    "'",
    "\"",
    "{{",
    "}}",
    "null",
    "-1",
    "1e400",
    "18446744073709551616",
    "\u{202e}",
    "\u{0}",
    "é",
    "---\n",
    "<<: ",
    "true",
];

/// Numbers of a sequence, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    /// A place in `text` between two characters.
    fn place(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        text.floor_char_boundary(at)
    }
}

fn mutated(text: &str, other: &str, random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(6) {
        let (a, b) = (random.place(&text), random.place(&text));
        let (start, end) = (a.min(b), a.max(b));
        let end = text.floor_char_boundary(end.min(start + 200));
        match random.below(7) {
            0 => text.replace_range(start..end, ""),
            1 => text.insert_str(start, TOKENS[random.below(TOKENS.len())]),
            2 => text.replace_range(start..end, TOKENS[random.below(TOKENS.len())]),
            3 => {
                let twice = text[start..end].repeat(2);
                text.replace_range(start..end, &twice);
            }
            4 => {
                let (c, d) = (random.place(other), random.place(other));
                let (from, to) = (c.min(d), c.max(d));
                text.insert_str(start, &other[from..other.floor_char_boundary(to.min(from + 200))]);
            }
            5 => text.truncate(start),
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

fn texts(folder: &str, endings: &[&str]) -> Vec<String> {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => paths.push(path),
            }
        }
    }
    let fits = |path: &Path| path.extension().is_some_and(|end| endings.iter().any(|one| end == *one));
    paths.retain(|path| fits(path));
    paths.sort();
    assert!(!paths.is_empty(), "{folder}");
    paths.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Values as they are where they do not belong.
fn scalar(random: &mut Random) -> Value {
    match random.below(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(u64::MAX),
        3 => json!(-1),
        4 => json!(1e300),
        5 => json!([]),
        6 => json!({}),
        7 => json!("x".repeat(random.below(3_000))),
        _ => json!(TOKENS[random.below(TOKENS.len())]),
    }
}

/// Some value within `value`.
fn part(value: &Value, random: &mut Random) -> Value {
    let parts: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    match parts.is_empty() || random.below(4) == 0 {
        true => value.clone(),
        false => part(parts[random.below(parts.len())], random),
    }
}

/// Changes `value` somewhere: what comes is still well formed.
fn change(value: &mut Value, other: &Value, random: &mut Random) {
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
        return change(child.unwrap(), other, random);
    }
    let key = |fields: &Map<String, Value>, nth: usize| fields.keys().nth(nth).cloned().unwrap_or_default();
    match (random.below(7), value) {
        (0, Value::Array(items)) if nth < items.len() => drop(items.remove(nth)),
        (1, Value::Array(items)) if nth < items.len() => items.push(items[nth].clone()),
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

/// `texts`, which are YAML or JSON, changed as values: most of what comes is read to its end.
fn values(texts: &[String]) -> Vec<Value> {
    texts.iter().filter_map(|text| serde_saphyr::from_str(text).ok()).collect()
}

/// Reads mutations of `texts` by `read`, which says whether it took them: every second one is changed as a text, the others as
/// values.
fn survives(texts: &[String], read: impl Fn(&str) -> bool) {
    let values = values(texts);
    assert!(values.len() * 2 > texts.len(), "{} of {} are values", values.len(), texts.len());
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (count, first) =
        (number("POLYLOGUE_MUTATIONS").unwrap_or(FEW), number("POLYLOGUE_SEED").unwrap_or(1));
    println!("{count} mutations from the seed {first} on");
    let mut taken = 0;
    for seed in first..first + count {
        let mut random = Random(seed);
        let (one, other) = (random.below(texts.len()), random.below(texts.len()));
        let text = if seed % 2 == 0 {
            mutated(&texts[one], &texts[other], &mut random)
        } else {
            let (one, other) = (random.below(values.len()), random.below(values.len()));
            let mut value = values[one].clone();
            (0..=random.below(4)).for_each(|_| change(&mut value, &values[other], &mut random));
            value.to_string()
        };
        let begun = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| read(&text))) {
            Ok(is_taken) => taken += u64::from(is_taken),
            Err(_) => panic!("seed {seed} panics:\n{text}"),
        }
        assert!(begun.elapsed() < HANGS, "seed {seed} takes {:?}:\n{text}", begun.elapsed());
    }
    println!("{taken} were taken, {} refused", count - taken);
    assert!(
        taken * 50 > count,
        "only {taken} of {count} were taken: what is behind the reading of a text was hardly tried"
    );
}

#[test]
fn changed_team_files_are_read_or_refused() {
    let texts = texts("../../teams", &["yaml"]);
    survives(&texts, |text| {
        parse(text, "t.yaml", &Overrides::default()).is_ok_and(|loaded| {
            let team = loaded.team;
            // What it asks for is put together of any team.
            let _ = (team.wants(), team.memory_scopes());
            true
        })
    });
}

#[test]
fn changed_definitions_are_imported_or_refused() {
    // Those that the tests of importing hold: what stands in `json!(...)`.
    let sources = texts("tests/import", &["rs"]).concat();
    let literals = sources.split("json!(").skip(1).filter_map(enclosed);
    let is_definition = |text: &&str| {
        values(&[(*text).to_owned()]).iter().any(|value| import(&value.to_string(), "d.json").is_ok())
    };
    let texts: Vec<String> = literals.filter(is_definition).map(str::to_owned).collect();
    assert!(texts.len() > 8, "{}", texts.len());
    survives(&texts, |text| import(text, "d.json").is_ok());
}

/// What comes before the parenthesis that closes what was opened.
fn enclosed(text: &str) -> Option<&str> {
    let (mut depth, mut is_text, mut is_escaped) = (1_usize, false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' => is_escaped = is_text,
            '"' => is_text = !is_text,
            '(' | '[' | '{' if !is_text => depth += 1,
            ')' | ']' | '}' if !is_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(..at);
        }
    }
    None
}

#[test]
fn changed_rules_are_read_or_refused() {
    let rules = "# Mine\n- deny: {tool: shell, command: '*rm -rf*'}\n- ask: {path: 'secret/*', host: '*.example.org'}\n\
                 - allow: {tool: note, arguments: {text: one, list: [1, 2.5, null]}, team: 3f2a}\n";
    survives(&[rules.to_owned()], |text| Rules::read(text, "approvals.yaml").is_ok());
}
