//! What models cost.
//!
//! Public list prices in US dollars for a million tokens, without discounts for batches, long contexts or hours of the
//! day. Prices change: each group says when it was looked up, and whoever builds a model can give another price.

use polylogue_core::Price;

use crate::provider::Provider;

/// The model's name, then dollars for a million tokens: read, read from the cache (negative: not listed), written.
type Row = (&'static str, f64, f64, f64);

/// No price for cached tokens is listed: they cost as much as others.
const NO: f64 = -1.0;

/// As listed in June 2025; the gpt-5 family as listed at its release in August 2025.
const OPENAI: &[Row] = &[
    ("gpt-5", 1.25, 0.125, 10.0),
    ("gpt-5-mini", 0.25, 0.025, 2.0),
    ("gpt-5-nano", 0.05, 0.005, 0.4),
    ("gpt-4.1", 2.0, 0.5, 8.0),
    ("gpt-4.1-mini", 0.4, 0.1, 1.6),
    ("gpt-4.1-nano", 0.1, 0.025, 0.4),
    ("gpt-4o", 2.5, 1.25, 10.0),
    // The first dated version cost twice as much, and still does.
    ("gpt-4o-2024-05-13", 5.0, NO, 15.0),
    ("gpt-4o-mini", 0.15, 0.075, 0.6),
    ("gpt-4-turbo", 10.0, NO, 30.0),
    ("gpt-4", 30.0, NO, 60.0),
    ("gpt-3.5-turbo", 0.5, NO, 1.5),
    ("o1", 15.0, 7.5, 60.0),
    ("o3", 2.0, 0.5, 8.0),
    ("o3-mini", 1.1, 0.55, 4.4),
    ("o4-mini", 1.1, 0.275, 4.4),
    // Vectors are not written in tokens.
    ("text-embedding-3-small", 0.02, NO, 0.0),
    ("text-embedding-3-large", 0.13, NO, 0.0),
    ("text-embedding-ada-002", 0.1, NO, 0.0),
];

/// As listed in October 2025.
const DEEPSEEK: &[Row] = &[("deepseek-chat", 0.28, 0.028, 0.42), ("deepseek-reasoner", 0.28, 0.028, 0.42)];

/// As listed in June 2025.
const MISTRAL: &[Row] = &[
    ("mistral-large", 2.0, NO, 6.0),
    ("mistral-medium", 0.4, NO, 2.0),
    ("mistral-small", 0.1, NO, 0.3),
    ("ministral-8b", 0.1, NO, 0.1),
    ("ministral-3b", 0.04, NO, 0.04),
    ("codestral", 0.3, NO, 0.9),
    ("mistral-embed", 0.1, NO, 0.0),
];

/// As listed in July 2025, for prompts of at most 200,000 tokens.
const GEMINI: &[Row] = &[
    ("gemini-2.5-pro", 1.25, 0.31, 10.0),
    ("gemini-2.5-flash", 0.3, 0.075, 2.5),
    ("gemini-2.5-flash-lite", 0.1, 0.025, 0.4),
    ("gemini-2.0-flash", 0.1, 0.025, 0.4),
    ("gemini-2.0-flash-lite", 0.075, NO, 0.3),
];

/// As listed in June 2025. Cached is what reading from a cache costs.
const ANTHROPIC: &[Row] = &[
    ("claude-opus-4", 15.0, 1.5, 75.0),
    ("claude-sonnet-4", 3.0, 0.3, 15.0),
    ("claude-3-7-sonnet", 3.0, 0.3, 15.0),
    ("claude-3-5-sonnet", 3.0, 0.3, 15.0),
    ("claude-3-5-haiku", 0.8, 0.08, 4.0),
    ("claude-3-haiku", 0.25, 0.03, 1.25),
];

/// As listed in July 2025.
const XAI: &[Row] =
    &[("grok-4", 3.0, 0.75, 15.0), ("grok-3", 3.0, 0.75, 15.0), ("grok-3-mini", 0.3, 0.075, 0.5)];

/// As listed in June 2025.
const GROQ: &[Row] = &[("llama-3.3-70b-versatile", 0.59, NO, 0.79), ("llama-3.1-8b-instant", 0.05, NO, 0.08)];

/// The list price of `model` at `provider`: nothing at all for local servers, `None` where it is not known.
///
/// A dated name (`gpt-4o-2024-11-20`, `mistral-large-latest`) has the price of the name it begins with, unless it has
/// one of its own.
#[must_use]
pub fn list_price(provider: &str, model: &str) -> Option<Price> {
    if Provider::find(provider).is_some_and(Provider::is_local) {
        return Some(Price::FREE);
    }
    let rows = match provider {
        "openai" => OPENAI,
        "anthropic" => ANTHROPIC,
        "deepseek" => DEEPSEEK,
        "mistral" => MISTRAL,
        "gemini" => GEMINI,
        "xai" => XAI,
        "groq" => GROQ,
        "openrouter" if model.ends_with(":free") => return Some(Price::FREE),
        _ => return None,
    };
    let fits = |row: &&Row| model.strip_prefix(row.0).is_some_and(is_date);
    let &(_, input, cached, output) = rows.iter().filter(fits).max_by_key(|row| row.0.len())?;
    Some(Price { input, cached: (cached >= 0.0).then_some(cached), output })
}

/// Whether what follows a model's name only says which edition it is, so that the price is the same.
fn is_date(rest: &str) -> bool {
    let Some(edition) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    edition == "latest" || (edition.len() >= 3 && edition.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dated_names_cost_what_the_longest_known_name_costs() {
        let input = |provider, model| list_price(provider, model).map(|price| price.input);
        for (provider, model, expected) in [
            ("openai", "gpt-4o", Some(2.5)),
            ("openai", "gpt-4o-2024-11-20", Some(2.5)),
            ("openai", "gpt-4o-2024-05-13", Some(5.0)),
            ("openai", "gpt-4o-mini", Some(0.15)),
            ("openai", "gpt-4o-mini-2024-07-18", Some(0.15)),
            ("openai", "gpt-4-0613", Some(30.0)),
            ("openai", "gpt-4o-audio-preview", None),
            ("openai", "gpt-4o-3", None),
            ("openai", "no-such", None),
            ("mistral", "mistral-large-latest", Some(2.0)),
            ("anthropic", "claude-sonnet-4-20250514", Some(3.0)),
            ("deepseek", "deepseek-chat", Some(0.28)),
            ("ollama", "whatever", Some(0.0)),
            ("vllm", "whatever", Some(0.0)),
            ("openrouter", "some/model:free", Some(0.0)),
            ("openrouter", "openai/gpt-4o", None),
            ("compatible", "gpt-4o", None),
        ] {
            assert_eq!(input(provider, model), expected, "{provider}:{model}");
        }
    }

    #[test]
    fn no_table_has_a_price_that_makes_no_sense() {
        for rows in [OPENAI, DEEPSEEK, MISTRAL, GEMINI, ANTHROPIC, XAI, GROQ] {
            for (index, (name, input, cached, output)) in rows.iter().enumerate() {
                let writes = !name.contains("embed");
                assert!(*input > 0.0 && cached < input, "{name}");
                assert!(if writes { output >= input } else { *output == 0.0 }, "{name}");
                assert!(rows.iter().skip(index + 1).all(|other| other.0 != *name), "{name} stands twice");
            }
        }
    }
}
