//! Definitions that were changed at random: whatever is in them, they are imported or refused.

use std::fs;
use std::path::Path;

use polylogue_import::import;
use polylogue_test::mutations::survives;
use serde_json::Value;

/// The sources of these tests.
fn sources() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn changed_definitions_are_imported_or_refused() {
    // The definitions of the other tests: what is in `json!(...)`.
    let sources = sources();
    let literals = sources.split("json!(").skip(1).filter_map(enclosed);
    let definition = |text: &str| {
        let value: Value = serde_saphyr::from_str(text).ok()?;
        import(&value.to_string(), "d.json").is_ok().then(|| (text.to_owned(), value))
    };
    let (texts, values): (Vec<String>, Vec<Value>) = literals.filter_map(definition).unzip();
    assert!(texts.len() > 8, "{}", texts.len());
    survives(&texts, &values, |text| import(text, "d.json").is_ok());
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
