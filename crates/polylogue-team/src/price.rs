//! Prices of models, and files of them.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use polylogue_config::diagnostic::Report;
use polylogue_config::source::Source;
use polylogue_config::types::{Text, Type, Variables};
use polylogue_config::yaml::{Data, Node};
use polylogue_config::{As, Config, Cx, Illegal, Leaf, TextKind, Vars};
use polylogue_core::{Price, PriceTier};
use polylogue_models::{DatedPrice, DatedPrices, Day, ModelLimits, Prices, Provider, known_provider};
use serde_json::Value;

use crate::Diagnostics;
use crate::masking::parse_yaml;

/// Reads the user's file of prices: a mapping of `provider:model` to prices in the form of team files. Errors call it
/// `file_name`.
///
/// # Errors
/// Everything that is wrong with it.
///
/// ```
/// use polylogue_models::Day;
/// use polylogue_team::read_prices;
/// let prices = read_prices("openai:mine: {input: 1, output: 2}", "prices.yaml")?;
/// assert_eq!(prices.own("openai", "mine", Day::today()).unwrap().output, 2.0);
/// assert!(read_prices("openai:mine: {input: -1, output: 2}", "prices.yaml").is_err());
/// # Ok::<(), polylogue_team::Diagnostics>(())
/// ```
pub fn read_prices(text: &str, file_name: &str) -> Result<Prices, Diagnostics> {
    let source = Source::new(file_name, text);
    let mut report = Report::new(&source);
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_blank) {
        return Ok(Prices::default());
    }
    let Some(root) = parse_yaml(&mut report) else { return Err(report.finish()) };
    check_names(&root, &mut report);
    let mut vars = Vars::default();
    let mut cx = Cx::new("a file of prices", &mut report, &mut vars);
    let prices: BTreeMap<String, PriceKey> = Config::read(&root, &mut cx);
    match report.failed() {
        true => Err(report.finish()),
        false => Ok(Prices::new(As::<BTreeMap<_, _>>::into_value(prices))),
    }
}

/// Reports keys of a mapping of `prices` that are not written as the names of models are there: `provider:model`. No price is found by
/// another form.
pub(crate) fn check_names(prices: &Node, report: &mut Report<'_>) {
    let is_name = |text: &str| !text.is_empty() && text.trim() == text;
    for entry in prices.entries() {
        let parts = entry.key.split_once(':');
        if parts.is_some_and(|(at, model)| is_name(at) && !at.contains('/') && is_name(model)) {
            continue;
        }
        let (at, model) = entry.key.split_once([':', '/']).unwrap_or(("", entry.key.as_str()));
        let (at, model) = (at.trim(), model.trim());
        let provider = Provider::find(at).map(Provider::name).or_else(|| known_provider(model));
        let hint = match provider.filter(|_| !model.is_empty()) {
            Some(provider) => format!("write `{provider}:{model}`"),
            None => "write `provider:model`, such as `openai:gpt-4o-mini`".to_owned(),
        };
        report.error_with_hint(&entry.key_span, format!("`{}` is not a model", entry.key), hint);
    }
}

/// Price of a model.
pub(crate) struct PriceKey(Form);

/// Price of a model: one, or a list of prices for different days.
#[derive(Config)]
#[config(name = "Price", by_shape)]
enum Form {
    /// No cost.
    Free(Free),
    /// US dollars per million tokens.
    Tokens(TokenPrice),
    /// Prices for different days.
    Dated(Vec<TokenPrice>),
}

impl Config for PriceKey {
    fn ty() -> &'static Type {
        Form::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let before = cx.report.attempts();
        let form = Form::read(node, cx);
        match (&form, &node.data) {
            // What could not be read has no days.
            _ if cx.report.attempts() > before => {}
            (Form::Dated(prices), Data::List(nodes)) => check_prices(prices.iter().zip(nodes), cx),
            (Form::Tokens(price), _) => check_prices([(price, node)].into_iter(), cx),
            _ => {}
        }
        Self(form)
    }

    fn hole() -> Self {
        Self(Form::hole())
    }

    fn write(&self) -> Value {
        self.0.write()
    }
}

/// Reports periods that end before they begin, and those that share a day with one before; and tiers that cost less than shorter requests.
fn check_prices<'a>(prices: impl Iterator<Item = (&'a TokenPrice, &'a Node)>, cx: &mut Cx<'_, '_>) {
    let mut before: Vec<DatedPrice> = Vec::new();
    for (price, node) in prices {
        let dated = price.dated();
        if dated.from.zip(dated.until).is_some_and(|(from, until)| until < from) {
            cx.report.error_with_hint(
                &node.span,
                "the price ends before it begins",
                "`from` is the first day on which it counts, `until` the last",
            );
        } else if before.iter().any(|other| other.overlaps(&dated)) {
            let hint = "give each price a `from` after the `until` of the one before";
            cx.report.error_with_hint(&node.span, "two prices count on the same day", hint);
        }
        if let Some(over) = dated.price.falls_over() {
            let what = format!(
                "a request of more than {over} tokens costs less than a shorter one, for some kind of token"
            );
            let hint = "what a call costs at most is computed from its longest request: give a longer one no lower prices";
            cx.report.error_with_hint(&node.span, what, hint);
        }
        before.push(dated);
    }
}

/// A day.
struct DayKind;

impl TextKind for DayKind {
    type Value = Day;
    const TEXT: Text = Text {
        format: "day",
        pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        examples: &["2026-12-31"],
        variables: Variables::All,
    };

    fn parse(text: &str) -> Result<Day, Illegal> {
        text.parse().map_err(|_| {
            Illegal::new(format!("`{text}` is not a day"))
                .hint("write year, month and day, such as `2026-12-31`")
        })
    }

    fn to_text(day: &Day) -> String {
        day.to_string()
    }

    fn hole() -> Day {
        Day::of(UNIX_EPOCH)
    }
}

/// The word `free`.
#[derive(Config)]
enum Free {
    /// Calls cost nothing.
    Free,
}

/// Price in US dollars per million tokens.
#[derive(Config)]
struct TokenPrice {
    /// US dollars per million input tokens.
    #[key(range = 0..=1_000_000)]
    input: f64,
    /// US dollars per million input tokens that the provider read from its prompt cache.
    #[key(none = "the same as `input`", range = 0..=1_000_000)]
    cached: Option<f64>,
    /// US dollars per million input tokens that the provider writes to its prompt cache.
    #[key(none = "the same as `input`", range = 0..=1_000_000)]
    write: Option<f64>,
    /// US dollars per million input tokens that the provider writes to its prompt cache for an hour or more.
    #[key(none = "the same as `write`", range = 0..=1_000_000)]
    write_long: Option<f64>,
    /// US dollars per million input tokens of sound.
    #[key(none = "the same as `input`", range = 0..=1_000_000)]
    audio: Option<f64>,
    /// US dollars per million output tokens.
    #[key(range = 0..=1_000_000)]
    output: f64,
    /// Other prices of all tokens of longer requests.
    #[key(as = Vec<TierPrice>)]
    tiers: Vec<PriceTier>,
    /// Context window of the model, in tokens. In a team file it counts for models of which neither a window nor another price is known.
    #[key(none = "as listed", range = 1..=1_000_000_000)]
    window: Option<u64>,
    /// The most tokens of a reply of the model. In a team file it counts for models of which neither such a limit nor another price is known.
    #[key(none = "as listed", range = 1..=1_000_000_000)]
    max_output: Option<u64>,
    /// First day on which the price counts, in UTC.
    #[key(as = Option<Leaf<DayKind>>, none = "every day before `until`")]
    from: Option<Day>,
    /// Last day on which the price counts, in UTC. On other days, the price is the list price.
    #[key(as = Option<Leaf<DayKind>>, none = "every day after `from`")]
    until: Option<Day>,
}

impl TokenPrice {
    fn dated(&self) -> DatedPrice {
        let Self {
            input,
            cached,
            write,
            write_long,
            audio,
            output,
            ref tiers,
            window,
            max_output,
            from,
            until,
        } = *self;
        let price = Price { input, cached, write, write_long, audio, output, tiers: tiers.clone() };
        DatedPrice { price, limits: ModelLimits { window, max_output }, from, until }
    }

    fn of(dated: &DatedPrice) -> Self {
        let DatedPrice { price, limits: ModelLimits { window, max_output }, from, until } = dated.clone();
        let Price { input, cached, write, write_long, audio, output, tiers } = price;
        Self { input, cached, write, write_long, audio, output, tiers, window, max_output, from, until }
    }
}

/// Prices of all tokens of requests with more input tokens than `over`, in US dollars per million tokens.
#[derive(Config)]
#[config(name = "PriceTier", for = PriceTier)]
struct TierPrice {
    /// Number of input tokens that a request must exceed.
    #[key(range = 1..=1_000_000_000)]
    over: u64,
    /// US dollars per million input tokens.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    input: Option<f64>,
    /// US dollars per million input tokens that the provider read from its prompt cache.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    cached: Option<f64>,
    /// US dollars per million input tokens that the provider writes to its prompt cache.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    write: Option<f64>,
    /// US dollars per million input tokens that the provider writes to its prompt cache for an hour or more.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    write_long: Option<f64>,
    /// US dollars per million output tokens.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    output: Option<f64>,
}

impl As<DatedPrices> for PriceKey {
    fn into_value(self) -> DatedPrices {
        match self.0 {
            Form::Free(Free::Free) => Price::FREE.into(),
            Form::Tokens(price) => DatedPrices(vec![price.dated()]),
            Form::Dated(prices) => DatedPrices(prices.iter().map(TokenPrice::dated).collect()),
        }
    }

    fn from_value(prices: &DatedPrices) -> Self {
        Self(match &prices.0[..] {
            [only] if *only == DatedPrice::from(Price::FREE) => Form::Free(Free::Free),
            [only] => Form::Tokens(TokenPrice::of(only)),
            several => Form::Dated(several.iter().map(TokenPrice::of).collect()),
        })
    }
}
