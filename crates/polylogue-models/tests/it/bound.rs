//! The bound of a request and what providers counted: `data/recorded_usage.jsonl` has requests of 61 models and
//! providers with the input tokens that the provider reported. Its first line says where they were recorded.

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
    let rows: Vec<Row> = DATA.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 61);
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
    for row in rows().into_iter().filter(|row| row.tools.is_empty() && row.schema.is_none()) {
        let texts = row.messages.iter().map(|(_, text)| text).chain(&row.system);
        let tokens: u64 =
            texts.map(|text| TokenCount::of(&row.model, text).most() + Bound::MESSAGE_TOKENS).sum();
        let most = tokens + Bound::REQUEST_TOKENS;
        assert!(
            row.input <= most,
            "{}: {} tokens were reported, at most {most} expected",
            row.who(),
            row.input
        );
    }
}
