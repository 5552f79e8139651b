//! The ranking of tools by the words of a query: Okapi BM25 (Robertson and Zaragoza 2009), with the usual constants.

use std::collections::BTreeMap;

use polylogue_core::ToolSpec;
use serde_json::Value;

/// How fast further occurrences of a word count less.
const SATURATION: f64 = 1.2;
/// How much the length of a definition counts.
const LENGTH: f64 = 0.75;
/// A word of a name counts as often as this many words of a description.
const NAME_WEIGHT: u32 = 3;

/// The words of tools.
pub(super) struct Index {
    tools: Vec<Words>,
    average: f64,
    /// The number of tools with each word.
    with: BTreeMap<String, u32>,
}

#[derive(Default)]
struct Words {
    counts: BTreeMap<String, u32>,
    length: u32,
}

impl Words {
    fn of(tool: &ToolSpec) -> Self {
        let mut all = Self::default();
        all.add(&tool.name, NAME_WEIGHT);
        all.add(&tool.description, 1);
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            all.add(name, 1);
            all.add(schema.get("description").and_then(Value::as_str).unwrap_or_default(), 1);
        }
        all
    }

    fn add(&mut self, text: &str, weight: u32) {
        for word in words(text) {
            *self.counts.entry(word).or_default() += weight;
            self.length += weight;
        }
    }
}

impl Index {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        let tools: Vec<Words> = tools.iter().map(Words::of).collect();
        let mut with: BTreeMap<String, u32> = BTreeMap::new();
        for word in tools.iter().flat_map(|tool| tool.counts.keys()) {
            *with.entry(word.clone()).or_default() += 1;
        }
        let total: f64 = tools.iter().map(|tool| f64::from(tool.length)).sum();
        let average = (total / number(tools.len())).max(1.0);
        Self { tools, average, with }
    }

    /// The tools that have a word of `query`, best first, at most `limit`: their positions. Of equal ones, the first.
    pub(super) fn best(&self, query: &str, limit: usize) -> Vec<usize> {
        let query = words(query);
        let score = |tool: &Words| query.iter().map(|word| self.weight(word, tool)).sum::<f64>();
        let mut all: Vec<(usize, f64)> = self.tools.iter().map(score).enumerate().collect();
        all.retain(|(_, score)| *score > 0.0);
        all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        all.into_iter().take(limit).map(|(index, _)| index).collect()
    }

    fn weight(&self, word: &str, tool: &Words) -> f64 {
        let Some(count) = tool.counts.get(word).copied().map(f64::from) else { return 0.0 };
        let with = self.with.get(word).copied().map_or(0.0, f64::from);
        let rarity = (1.0 + (number(self.tools.len()) - with + 0.5) / (with + 0.5)).ln();
        let length = 1.0 - LENGTH + LENGTH * f64::from(tool.length) / self.average;
        rarity * count * (SATURATION + 1.0) / (count + SATURATION * length)
    }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The words of a text in lower case, without plurals: those of `getUserInvoices`, `get-user-invoice` and
/// `get_user_invoices` are the same.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in text.chars() {
        let begins = letter.is_uppercase() && before.is_lowercase();
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words.into_iter().map(singular).collect()
}

/// Without the `s` of English plurals. Wrong for some words, but equally wrong in queries and definitions.
fn singular(word: String) -> String {
    let is_plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    match word.strip_suffix("ies").filter(|_| is_plural) {
        Some(stem) => format!("{stem}y"),
        None if is_plural => word.strip_suffix('s').map(str::to_owned).unwrap_or(word),
        None => word,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(tools: &[(&str, &str)]) -> Index {
        let spec = |(name, about): &(&str, &str)| {
            let schema = json!({"type": "object", "properties": {"id": {"description": "Key of a record."}}});
            ToolSpec::new(*name, *about, schema)
        };
        Index::new(&tools.iter().map(spec).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_the_same_in_every_spelling() {
        for text in ["getUserInvoices", "get-user-invoice", "Get user invoices!", "get_user_invoices"] {
            assert_eq!(words(text), ["get", "user", "invoice"], "{text}");
        }
        assert_eq!(
            words("HTTPServer queries class gas 東京"),
            ["httpserver", "query", "class", "gas", "東京"]
        );
        assert!(words(" -- ").is_empty());
    }

    #[test]
    fn names_and_rare_words_count_most() {
        let tools = index(&[
            ("read_file", "Reads a file."),
            ("list_invoices", "Lists documents of a customer."),
            ("archive", "Moves a file, an invoice or a letter to the archive of files."),
        ]);
        assert_eq!(tools.best("invoices", 5), [1, 2]);
        assert_eq!(tools.best("archive a file", 1), [2]);
        assert_eq!(
            tools.best("record", 9),
            [0, 1, 2],
            "descriptions of arguments count, and equal ones stay in order"
        );
        assert!(tools.best("weather", 5).is_empty());
        assert!(index(&[]).best("weather", 5).is_empty());
    }
}
