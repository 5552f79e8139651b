//! The bound of a request and what providers counted: `data/recorded_usage.jsonl` has requests to many models and
//! providers with the input tokens that the provider reported. A line with `source` says where those after it were recorded.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::Asked;
use polylogue_core::{Bound, Entry, Money, Params, Part, Price, Seal, Seals, SealsSent, ToolSpec, Verbatim};
use polylogue_models::{Config, Endpoint, EndpointModel, TokenCount};
use serde::Deserialize;
use serde_json::Value;

const DATA: &str = include_str!("../data/recorded_usage.jsonl");

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    description: String,
    parameters: Value,
}

/// A request, and the input tokens that its provider reported.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    host: String,
    model: String,
    input: u64,
    system: Option<String>,
    messages: Vec<(Role, String)>,
    #[serde(default)]
    tools: Vec<Tool>,
    schema: Option<Value>,
    /// The bytes of the signature that goes back with the message of the model.
    sealed: Option<usize>,
}

impl Row {
    fn who(&self) -> String {
        format!("{} at {}", self.model, self.host)
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        self.messages.iter().map(|(_, text)| text).chain(&self.system)
    }

    /// The most tokens of its texts.
    fn tokens(&self) -> u64 {
        self.texts().map(|text| TokenCount::of(&self.model, text).most()).sum()
    }

    fn has_letter(&self, is_one: impl Fn(char) -> bool) -> bool {
        self.texts().any(|text| text.chars().any(&is_one))
    }

    /// Whether there is a letter that no language in Latin script has.
    fn is_in_another_script(&self) -> bool {
        self.has_letter(|letter| letter.is_alphabetic() && letter > '\u{24f}')
    }

    /// Whether it is texts alone.
    fn is_plain(&self) -> bool {
        self.tools.is_empty() && self.schema.is_none()
    }

    fn asked(self) -> Asked {
        let entry = |(role, text): (Role, String)| match role {
            Role::User => Entry::user(text),
            Role::Assistant => sealed(text, self.sealed),
        };
        let tool = |tool: Tool| ToolSpec::new(tool.name, tool.description, tool.parameters);
        Asked {
            system: self.system,
            tools: self.tools.into_iter().map(tool).collect(),
            params: Params { schema: self.schema, ..Params::default() },
            ..Asked::new(self.messages.into_iter().map(entry))
        }
    }
}

/// A message of the model, with a signature of `bytes` if it has one.
fn sealed(text: String, bytes: Option<usize>) -> Entry {
    let parts = vec![Part::text(text)];
    let seals = bytes.map(|bytes| Seals {
        by: "w:m".into(),
        before: SealsSent::new("w:m", None, &[]).before(&[]),
        key: None,
        parts: vec![Seal::new(0, &parts[0], "x".repeat(bytes).into())],
    });
    Entry::Assistant { parts, verbatim: Verbatim { seals, ..Verbatim::default() }.some().map(Arc::new) }
}

fn rows() -> Vec<Row> {
    let rows = DATA.lines().filter(|line| !line.starts_with(r#"{"source":"#));
    let rows: Vec<Row> = rows.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 82);
    rows
}

/// A model without a known context window, which would lower the bound.
fn model() -> EndpointModel {
    Endpoint::new(Config::new("http://localhost:1")).unwrap().model("unheard-of")
}

#[test]
fn a_call_can_cost_what_reading_all_of_it_from_the_cache_costs() {
    let price = Price { input: 1.0, cached: Some(10.0), ..Price::FREE };
    let bound = Bound::of_input(&model().with_price(Some(price)), &Params::default(), 1_000);
    assert_eq!(bound.least_cost, Some(Money::dollars(0.01)));
}

/// P115.
#[test]
fn no_provider_counted_more_than_the_bound() {
    let model = model();
    for row in rows() {
        let (who, reported) = (row.who(), row.input);
        let bound = Bound::of(&model, &row.asked().request()).input;
        assert!(reported <= bound, "{who}: {reported} tokens were reported, and at most {bound} expected");
    }
}

/// P115.
#[test]
fn no_provider_counted_more_than_the_tokens_of_the_texts_and_what_is_around_them() {
    for row in rows().into_iter().filter(Row::is_plain) {
        let around = Bound::MESSAGE_TOKENS * row.texts().count() as u64;
        let most = row.tokens() + around + Bound::REQUEST_TOKENS;
        assert!(
            row.input <= most,
            "{}: {} tokens were reported, at most {most} expected",
            row.who(),
            row.input
        );
    }
}

/// P115: the bounds of texts are also held without the tokens that requests reserve around them, which are many more than these providers
/// add.
#[test]
fn no_provider_counted_more_than_the_tokens_of_texts_in_other_scripts() {
    let rows: Vec<Row> = rows().into_iter().filter(Row::is_in_another_script).collect();
    for (script, letters) in [
        ("Cyrillic", '\u{400}'..='\u{4ff}'),
        ("kana", '\u{3041}'..='\u{30ff}'),
        ("Han", '\u{4e00}'..='\u{9fff}'),
        ("Hangul", '\u{ac00}'..='\u{d7a3}'),
    ] {
        assert!(rows.iter().any(|row| row.has_letter(|letter| letters.contains(&letter))), "{script}");
    }
    let hosts: BTreeSet<&str> = rows.iter().map(|row| &*row.host).collect();
    assert!(rows.len() >= 20 && hosts.len() >= 6, "{} requests to {hosts:?}", rows.len());
    for row in rows.iter().filter(|row| row.is_plain()) {
        let most = row.tokens() + 4 * row.texts().count() as u64 + 8;
        let who = row.who();
        assert!(row.input <= most, "{who}: {} tokens were reported, at most {most} expected", row.input);
    }
}

/// P115: OpenAI's format has four tokens for each message besides its text, and three for each request.
#[test]
fn a_bundled_vocabulary_counts_texts_in_other_scripts_as_the_provider() {
    let is_exact = |row: &Row| row.model == "gpt-3.5-turbo" && row.is_plain() && row.is_in_another_script();
    let rows: Vec<Row> = rows().into_iter().filter(is_exact).collect();
    let counted = |row: &Row| row.tokens() + 4 * row.texts().count() as u64 + 3;
    assert_eq!(rows.iter().map(counted).collect::<Vec<_>>(), [24, 58]);
    assert!(rows.iter().all(|row| row.input == counted(row)));
}
