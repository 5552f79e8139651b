//! The table of models that ships with this crate: list prices and limits, as known on the day it was made.
//!
//! `cargo xtask model-table` generates `data/models.jsonl`. Prices are public list prices in US dollars per million
//! tokens, without discounts for batches or hours of the day. Prices change: the table has a date, and a model can be
//! given another price.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use polylogue_core::{Capabilities, Capability, Price, PriceTier};
use serde::Deserialize;

use crate::provider::Provider;

const TABLE: &str = include_str!("../data/models.jsonl");

/// The rows of the table by provider, each with the name of its model. The text is split only once, because a worker looks models up dozens
/// of times for each conversation that it opens.
static ROWS: LazyLock<BTreeMap<&'static str, Vec<Row>>> = LazyLock::new(|| {
    let mut rows: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for (provider, row) in TABLE.lines().filter_map(Row::read) {
        rows.entry(provider).or_default().push(row);
    }
    rows
});

/// A row as text.
struct Row {
    model: &'static str,
    line: &'static str,
}

impl Row {
    /// A line of the table, with its provider. `None` for the head of the table.
    fn read(line: &'static str) -> Option<(&'static str, Self)> {
        let (provider, rest) = line.strip_prefix("{\"provider\":\"")?.split_once("\",\"model\":\"")?;
        let (model, _) = rest.split_once('"')?;
        Some((provider, Self { model, line }))
    }

    fn known(&self) -> Option<KnownModel> {
        serde_json::from_str(self.line).ok()
    }

    /// Those of the provider that the table calls so.
    fn of(provider: &str) -> impl Iterator<Item = &'static Self> + use<> {
        ROWS.get(provider).into_iter().flatten()
    }
}

/// Parts of the names of models that reason unless a request says otherwise, which the table does not tell. Earlier models that decide
/// themselves how much they reason do so only where a request has the field `thinking`
/// (<https://platform.claude.com/docs/en/about-claude/models/whats-new-opus-5>).
const THINKS_BY_DEFAULT: [&str; 5] =
    ["claude-fable-", "claude-haiku-5", "claude-mythos-", "claude-opus-5", "claude-sonnet-5"];

/// A known model: a row of the table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct KnownModel {
    /// The provider, such as `openai`.
    pub provider: String,
    /// The model's name at the provider.
    pub model: String,
    /// What the model can do beyond text: `tools`, `schema`, `vision`, `documents`, `audio`, `thinking`.
    pub can: Vec<String>,
    /// How much the model can be asked to reason: some of `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`; none if
    /// that is unknown, or if it has no field for that.
    #[serde(default)]
    pub efforts: Vec<String>,
    /// What the model accepts in a request, unlike other models of its provider: `adaptive_thinking`, `strict_schema`,
    /// `thinking_budget`, `system_within`, `block_binding`, and at Amazon Bedrock `thinking_block`, `reasoning_config`,
    /// `reasoning_effort`.
    #[serde(default)]
    pub takes: Vec<String>,
    /// What the model refuses in a request, unlike other models of its provider: `sampling`, `forced_tools`, `no_thinking`.
    #[serde(default)]
    pub refuses: Vec<String>,
    /// The minimum tokens of a prefix that the provider caches; `None` if unknown.
    pub cache_min: Option<u64>,
    /// The maximum tokens of a request; `None` if unknown.
    pub max_input: Option<u64>,
    /// The maximum tokens of a reply; `None` if unknown.
    pub max_output: Option<u64>,
    /// Dollars per million input tokens.
    input: f64,
    /// Dollars per million output tokens.
    output: f64,
    /// Dollars per million cached input tokens.
    cache_read: Option<f64>,
    /// Dollars per million input tokens written to a cache.
    cache_write: Option<f64>,
    /// Dollars per million input tokens written to a cache for longer: an hour, or twelve at OpenAI.
    cache_write_long: Option<f64>,
    /// Dollars per million input tokens of sound.
    audio: Option<f64>,
    /// Prices of longer requests.
    #[serde(default)]
    tiers: Vec<Tier>,
}

/// Prices of longer requests.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Tier {
    over: u64,
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    cache_write_long: Option<f64>,
}

impl From<&Tier> for PriceTier {
    fn from(tier: &Tier) -> Self {
        let Tier { over, input, output, cache_read, cache_write, cache_write_long } = *tier;
        Self { over, input, cached: cache_read, write: cache_write, write_long: cache_write_long, output }
    }
}

impl KnownModel {
    /// Finds the row of `model` at `provider`.
    ///
    /// A dated name (`gpt-4o-2024-11-20`, `mistral-large-latest`) has the row of the name that it begins with, unless
    /// it has its own. The ARN of a model of Amazon Bedrock, or of an inference profile, has the row of the name in it.
    ///
    /// ```
    /// use polylogue_models::KnownModel;
    /// let model = KnownModel::find("openai", "gpt-4o-2024-11-20").unwrap();
    /// assert_eq!(model.price().input, 2.5);
    /// assert_eq!(model.max_output, Some(16_384));
    /// ```
    pub fn find(provider: &str, model: &str) -> Option<Self> {
        let (provider, prefix) = place(provider);
        let model = plain(provider, model).strip_prefix(prefix)?;
        let fits = |row: &&Row| model.strip_prefix(row.model).is_some_and(is_edition);
        Row::of(provider).filter(fits).max_by_key(|row| row.model.len())?.known()
    }

    /// Returns the rows of `provider`, with the names of its models as it has them.
    ///
    /// ```
    /// use polylogue_models::KnownModel;
    /// assert!(KnownModel::of("bedrock-mantle").any(|known| known.model == "anthropic.claude-opus-4-8"));
    /// ```
    pub fn of(provider: &str) -> impl Iterator<Item = Self> {
        let (provider, prefix) = place(provider);
        let own = Row::of(provider).filter_map(Row::known);
        own.map(move |known| Self { model: format!("{prefix}{}", known.model), ..known })
    }

    /// Returns all rows, sorted by provider and model.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.lines().skip(1).filter_map(|line| serde_json::from_str(line).ok())
    }

    /// Returns the list price.
    pub fn price(&self) -> Price {
        Price {
            input: self.input,
            cached: self.cache_read,
            write: self.cache_write,
            write_long: self.cache_write_long,
            audio: self.audio,
            output: self.output,
            tiers: self.tiers.iter().map(PriceTier::from).collect(),
        }
    }

    /// Whether it can do what `ability` names; `None` if the table does not say what it supports.
    pub(crate) fn has(&self, ability: &str) -> Option<bool> {
        (!self.can.is_empty()).then(|| self.can.iter().any(|can| can == ability))
    }

    /// Whether it reasons; `None` if the table does not say what it supports.
    pub(crate) fn thinks(&self) -> Option<bool> {
        self.has("thinking")
    }

    /// Whether it is one of Claude's models that reason unless a request says otherwise.
    pub(crate) fn thinks_by_default(&self) -> bool {
        self.thinks() == Some(true) && THINKS_BY_DEFAULT.iter().any(|part| self.model.contains(part))
    }

    /// Whether it reads PDF documents; `None` if that is unknown: of providers where some models do, the table misses others that see
    /// their pages.
    pub(crate) fn reads_documents(&self) -> Option<bool> {
        let reads = self.has("documents")?;
        let does = |other: Self| other.has("documents") == Some(true);
        let some_do = || Row::of(&self.provider).filter_map(Row::known).any(does);
        (reads || self.has("vision") == Some(false) || !some_do()).then_some(reads)
    }

    /// Returns what the model can do that requests depend on and endpoints do not tell: whether it sees pictures.
    ///
    /// ```
    /// use polylogue_core::Capability;
    /// use polylogue_models::KnownModel;
    /// let sees = |model| KnownModel::find("openai", model).unwrap().capabilities().has(Capability::Vision);
    /// assert_eq!((sees("gpt-4o"), sees("gpt-3.5-turbo")), (Some(true), Some(false)));
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        match self.has("vision") {
            Some(true) => Capabilities::default().with(Capability::Vision),
            Some(false) => Capabilities::default().without(Capability::Vision),
            None => Capabilities::default(),
        }
    }

    /// Returns the day on which the table was made, as `2026-11-22`.
    pub fn table_date() -> &'static str {
        let head = TABLE.lines().next().unwrap_or_default();
        head.split_once("\"date\":\"").and_then(|(_, rest)| rest.get(..10)).unwrap_or("an unknown day")
    }
}

/// The name of a provider in the table, and what its names of models have in front of those of the table.
fn place(provider: &str) -> (&str, &'static str) {
    Provider::find(provider).map_or((provider, ""), |known| (known.table_name(), known.prefix()))
}

/// The name of a model in that of a resource: of an ARN of Amazon, or of a collection of Google.
fn plain<'a>(provider: &str, model: &'a str) -> &'a str {
    match provider {
        "bedrock" if model.starts_with("arn:") => model.rsplit('/').next().unwrap_or(model),
        "gemini" => model.strip_prefix("models/").unwrap_or(model),
        _ => model,
    }
}

/// Where the inference profiles of Amazon Bedrock send requests: what their names have in front of that of the model.
const PROFILES: [&str; 9] = ["apac.", "au.", "ca.", "eu.", "global.", "in.", "jp.", "us-gov.", "us."];

/// The name of `model` at `provider` for its price: the name in that of a resource.
pub(crate) fn price_name<'a>(provider: &str, model: &'a str) -> &'a str {
    plain(place(provider).0, model)
}

/// The names under which a price of `model` at `provider` counts, the most exact one first: [its own](price_name), and that of the model
/// of an inference profile. If the table has another price for the profile than for its model, as for those of one region, the price of
/// the model says nothing about it.
pub(crate) fn price_names<'a>(provider: &str, model: &'a str) -> [Option<&'a str>; 2] {
    let name = price_name(provider, model);
    let profiles = if place(provider).0 == "bedrock" { PROFILES.as_slice() } else { &[] };
    let list = |name: &str| KnownModel::find(provider, name).map(|known| known.price());
    let is_priced_as = |&under: &&str| list(name).is_none_or(|price| list(under) == Some(price));
    let under = profiles.iter().find_map(|region| name.strip_prefix(*region)).filter(is_priced_as);
    [Some(name), under]
}

/// Whether the rest of a name is only an edition of the model, so that the price is the same.
pub(crate) fn is_edition(rest: &str) -> bool {
    let Some(edition) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    edition == "latest" || (edition.len() >= 3 && edition.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_read_and_has_a_price_that_makes_sense() {
        let mut seen = BTreeSet::new();
        for line in TABLE.lines().skip(1) {
            let row: KnownModel =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let price = row.price();
            let sensible = |dollars: f64| (0.0..=2_000.0).contains(&dollars);
            assert!(sensible(price.input) && sensible(price.output), "{line}");
            assert!(price.cached.is_none_or(|cached| cached <= price.input), "{line}");
            assert!(seen.insert((row.provider.clone(), row.model.clone())), "twice: {line}");
        }
        let providers: BTreeSet<_> = seen.iter().map(|(provider, _)| provider).collect();
        assert_eq!(KnownModel::all().count(), seen.len());
        let found = ROWS.values().flatten().filter_map(Row::known).count();
        assert_eq!(found, seen.len(), "every row can be looked up");
        assert!(seen.len() >= 500, "{} models", seen.len());
        assert!(providers.len() >= 15, "{providers:?}");
        let count = TABLE.lines().next().and_then(|head| head.split_once("\"models\":"));
        assert_eq!(count.map(|(_, rest)| rest.trim_end_matches('}')), Some(&*seen.len().to_string()));
    }

    #[test]
    fn the_name_of_a_resource_has_the_row_of_its_model() {
        let row = |provider: &str, model: &str| KnownModel::find(provider, model).map(|known| known.model);
        let profile = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
        let arn = |resource: &str| format!("arn:aws:bedrock:us-east-1:123456789012:{resource}");
        assert_eq!(row("bedrock", &arn(&format!("inference-profile/{profile}"))).as_deref(), Some(profile));
        assert_eq!(row("bedrock", &arn("application-inference-profile/a1b2c3")), None);
        assert_eq!(row("gemini", "models/gemini-2.5-pro").as_deref(), Some("gemini-2.5-pro"));
    }

    #[test]
    fn the_table_has_a_date() {
        let date = KnownModel::table_date();
        assert!(date.len() == 10 && date.starts_with("20"), "{date}");
    }
}
