//! Prices of models: list prices, prices that count for some days only, and prices of the user instead of list prices.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, NaiveDate};
use polylogue_core::Price;
use polylogue_http::is_private;
use url::Url;

use crate::catalog::{KnownModel, is_edition, price_name, price_names};
use crate::provider::Provider;

/// A day of the Gregorian calendar, in UTC.
///
/// ```
/// use polylogue_models::Day;
/// let day: Day = "2026-02-28".parse()?;
/// assert!(day < "2026-03-01".parse()?);
/// assert_eq!(day.to_string(), "2026-02-28");
/// assert!("2026-02-30".parse::<Day>().is_err());
/// # Ok::<(), polylogue_models::NoDay>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(NaiveDate);

/// The error for a text that is not a day, such as `2026-02-30`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a day of the form `2026-12-31`")]
pub struct NoDay(String);

impl Day {
    /// Returns the day of `time`, in UTC.
    pub fn of(time: SystemTime) -> Self {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        Self(time.unwrap_or(DateTime::UNIX_EPOCH).date_naive())
    }

    /// Returns the current day, in UTC.
    pub fn today() -> Self {
        Self::of(SystemTime::now())
    }

    /// Returns how many days `later` is after this one; 0 if it is not.
    #[must_use]
    pub fn days_until(self, later: Self) -> u64 {
        u64::try_from((later.0 - self.0).num_days()).unwrap_or(0)
    }
}

impl std::str::FromStr for Day {
    type Err = NoDay;

    fn from_str(text: &str) -> Result<Self, NoDay> {
        let day = Some(text).filter(|text| text.len() == 10);
        let day = day.and_then(|text| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok());
        day.map(Self).ok_or_else(|| NoDay(text.to_owned()))
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The limits of a model, as a user knows them; `None` leaves them to the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelLimits {
    /// The maximum tokens of a request.
    pub window: Option<u64>,
    /// The maximum tokens of a reply.
    pub max_output: Option<u64>,
}

/// A price, the limits that the model has, and the days on which it counts.
#[derive(Debug, Clone, PartialEq)]
pub struct DatedPrice {
    /// The price.
    pub price: Price,
    /// The limits.
    pub limits: ModelLimits,
    /// The first day on which it counts. `None`: all days before the last.
    pub from: Option<Day>,
    /// The last day on which it counts. `None`: all days after the first.
    pub until: Option<Day>,
}

impl From<Price> for DatedPrice {
    fn from(price: Price) -> Self {
        Self { price, limits: ModelLimits::default(), from: None, until: None }
    }
}

impl DatedPrice {
    /// Returns whether it counts on `day`.
    pub fn counts_on(&self, day: Day) -> bool {
        self.from.is_none_or(|from| from <= day) && self.until.is_none_or(|until| day <= until)
    }

    /// Returns whether there is a day on which both count.
    pub fn overlaps(&self, other: &Self) -> bool {
        let before =
            |until: Option<Day>, from: Option<Day>| until.zip(from).is_some_and(|(until, from)| until < from);
        !before(self.until, other.from) && !before(other.until, self.from)
    }
}

/// The prices of a model, each for some days. On the days that none is for, its price is that of other sources, such as the
/// list price.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DatedPrices(pub Vec<DatedPrice>);

impl DatedPrices {
    /// Returns the price on `day`; of several, the first.
    pub fn on(&self, day: Day) -> Option<&Price> {
        self.dated(day).map(|dated| &dated.price)
    }

    /// Returns the limits of the model on `day`, as the price of that day has them.
    pub fn limits(&self, day: Day) -> ModelLimits {
        self.dated(day).map(|dated| dated.limits).unwrap_or_default()
    }

    fn dated(&self, day: Day) -> Option<&DatedPrice> {
        self.0.iter().find(|dated| dated.counts_on(day))
    }
}

impl From<Price> for DatedPrices {
    fn from(price: Price) -> Self {
        Self(vec![price.into()])
    }
}

/// Own prices by `provider:model`, of a user or of a team. Those of the user replace list prices: for a discount, a price that changed,
/// or a model that the table lacks.
///
/// ```
/// use polylogue_core::Price;
/// use polylogue_models::{Day, Prices, list_price};
/// let price = Price { input: 2.0, output: 8.0, ..Price::FREE };
/// let prices = Prices::new([("openai:gpt-4o".to_owned(), price.clone().into())]);
/// assert_eq!(prices.of("openai", "gpt-4o", Day::today()), Some(price));
/// assert_eq!(prices.of("openai", "gpt-4o-mini", Day::today()), list_price("openai", "gpt-4o-mini"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(BTreeMap<String, DatedPrices>);

impl Prices {
    /// Prices by `provider:model`.
    pub fn new(prices: impl IntoIterator<Item = (String, DatedPrices)>) -> Self {
        Self(prices.into_iter().collect())
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the models with such prices, as `provider:model`.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the user's price of `model` at `provider` on `day`.
    ///
    /// A dated name has the price of the name that it begins with, unless it has its own here or a row of its own in
    /// the table. An inference profile of Amazon Bedrock has the same price by its name and by its ARN, and that of its model, unless it has its
    /// own here or another one than its model in the table.
    ///
    /// ```
    /// use polylogue_core::Price;
    /// use polylogue_models::{Day, Prices};
    /// let profile = "us.anthropic.claude-opus-4-8";
    /// let price = Price { input: 4.0, output: 20.0, ..Price::FREE };
    /// let prices = Prices::new([(format!("bedrock:{profile}"), price.clone().into())]);
    /// let arn = format!("arn:aws:bedrock:us-east-1:123456789012:inference-profile/{profile}");
    /// assert_eq!(prices.own("bedrock", &arn, Day::today()), Some(&price));
    /// ```
    pub fn own(&self, provider: &str, model: &str, day: Day) -> Option<&Price> {
        self.own_dated(provider, model, day).map(|dated| &dated.price)
    }

    /// Returns the same as [`own`](Self::own) of a model as `provider:model`, with the limits that are given with the price.
    ///
    /// ```
    /// use polylogue_core::Price;
    /// use polylogue_models::{Day, Prices};
    /// let prices = Prices::new([("house:big".to_owned(), Price::FREE.into())]);
    /// assert_eq!(prices.named("house:big-2026-11-30", Day::today()).unwrap().price, Price::FREE);
    /// assert_eq!(prices.named("house:bigger", Day::today()), None);
    /// ```
    pub fn named(&self, name: &str, day: Day) -> Option<&DatedPrice> {
        let (provider, model) = name.split_once(':')?;
        self.own_dated(provider, model, day)
    }

    /// Returns whether any of the prices that may count for `model` at `provider`, on whatever day, is below `list` for some kind of token.
    pub fn may_be_below(&self, list: &Price, provider: &str, model: &str) -> bool {
        let is_below = |prices: &DatedPrices| prices.0.iter().any(|dated| dated.price.is_below(list));
        let mut names = price_names(provider, model).into_iter().flatten();
        names.any(|name| self.fitting(provider, name, model).any(|(_, prices)| is_below(prices)))
    }

    /// The user's limits of `model` at `provider` on `day`.
    pub(crate) fn own_limits(&self, provider: &str, model: &str, day: Day) -> ModelLimits {
        self.own_dated(provider, model, day).map(|dated| dated.limits).unwrap_or_default()
    }

    fn own_dated(&self, provider: &str, model: &str, day: Day) -> Option<&DatedPrice> {
        let mut names = price_names(provider, model).into_iter().flatten();
        names.find_map(|name| self.own_named(provider, name, model, day))
    }

    /// The price of the longest name of which `name` is an edition; of several forms of that name, the one that is written as `model` at
    /// `provider`.
    fn own_named(&self, provider: &str, name: &str, model: &str, day: Day) -> Option<&DatedPrice> {
        let fitting = self.fitting(provider, name, model);
        let priced = fitting.filter_map(|(exactness, prices)| Some((exactness, prices.dated(day)?)));
        priced.max_by_key(|(exactness, _)| *exactness).map(|(_, price)| price)
    }

    /// The prices of names of which `name` is an edition, but for those that are less exact than the row of the table, each with how
    /// exactly it names `model` at `provider`.
    fn fitting(
        &self,
        provider: &str,
        name: &str,
        model: &str,
    ) -> impl Iterator<Item = ((usize, bool, bool), &DatedPrices)> {
        let listed = KnownModel::find(provider, name).map_or(0, |known| known.model.len());
        self.0.iter().filter_map(move |(key, prices)| {
            let (at, written) = key.split_once(':').filter(|(at, _)| listed_as(at) == listed_as(provider))?;
            let own = price_name(at, written);
            let fits = name.strip_prefix(own).is_some_and(is_edition) && own.len() >= listed;
            fits.then_some(((own.len(), at == provider, written == model), prices))
        })
    }

    /// Returns the price of `model` at `provider` on `day`: the user's, or else the [list price](list_price).
    pub fn of(&self, provider: &str, model: &str, day: Day) -> Option<Price> {
        self.own(provider, model, day).cloned().or_else(|| list_price(provider, model))
    }

    /// Returns the price of `model` at an endpoint named `provider` at `base_url` on `day`. An endpoint at the host of a known provider
    /// has that provider's price, whatever its name is. One that is named like a local server is free at an address of this machine
    /// or a private network.
    ///
    /// ```
    /// use polylogue_core::Price;
    /// use polylogue_models::{Day, Prices, list_price};
    /// let price = |name, url, model| Prices::default().at(name, url, model, Day::today());
    /// assert_eq!(price("mine", "https://api.openai.com/v1", "gpt-4o"), list_price("openai", "gpt-4o"));
    /// assert_eq!(price("vllm", "http://10.0.0.7:8000/v1", "qwen3"), Some(Price::FREE));
    /// assert_eq!(price("vllm", "https://gpu.example.com/v1", "qwen3"), None);
    /// ```
    pub fn at(&self, provider: &str, base_url: &str, model: &str, day: Day) -> Option<Price> {
        let hosts = Provider::of_host(base_url);
        let of_hosts: Vec<Option<Price>> = hosts.map(|host| self.of(host.name(), model, day)).collect();
        let named = match self.own(provider, model, day) {
            Some(own) => Some(own.clone()),
            // What a known host charges is not known by a name that anyone can give to an endpoint.
            None if of_hosts.contains(&None) || is_local(provider) && !is_near(base_url) => return None,
            None => list_price(provider, model),
        };
        of_hosts.into_iter().chain([named]).flatten().reduce(Price::at_least)
    }
}

fn is_local(provider: &str) -> bool {
    Provider::find(provider).is_some_and(Provider::is_local)
}

/// Whether the server at `url` is on this machine or in a private network, as far as its address tells. Others can cost something, whatever
/// they are called.
fn is_near(url: &str) -> bool {
    Url::parse(url.trim()).is_ok_and(|url| is_private(&url))
}

/// Returns the list price of `model` at `provider`: 0 for local servers, `None` if unknown.
pub fn list_price(provider: &str, model: &str) -> Option<Price> {
    if is_local(provider) {
        return Some(Price::FREE);
    }
    if provider == "openrouter" && model.ends_with(":free") {
        return Some(Price::FREE);
    }
    KnownModel::find(provider, model).map(|model| model.price())
}

/// The name in the table of a provider, which can have several.
fn listed_as(provider: &str) -> &str {
    Provider::find(provider).map_or(provider, |known| known.table_name())
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Model as _, Params};
    use polylogue_http::Env;

    use super::*;
    use crate::{EndpointModel, Models};

    fn day(text: &str) -> Day {
        text.parse().unwrap()
    }

    fn priced(input: f64, from: Option<&str>, until: Option<&str>) -> DatedPrice {
        let price = DatedPrice::from(Price { input, ..Price::FREE });
        DatedPrice { from: from.map(day), until: until.map(day), ..price }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let at = |seconds| Day::of(UNIX_EPOCH + std::time::Duration::from_secs(seconds)).to_string();
        assert_eq!([0, 951_868_799, 951_868_800].map(at), ["1970-01-01", "2000-02-29", "2000-03-01"]);
        assert_eq!(day("2026-02-27").days_until(day("2026-03-01")), 2);
        assert_eq!(day("2026-03-01").days_until(day("2026-02-27")), 0);
        for wrong in ["2026-02-29", "2026-13-01", "26-01-01", "2026-1-01", "20260-1-1", "today", ""] {
            assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_price_counts_from_its_first_day_to_its_last() {
        let prices = DatedPrices(vec![
            priced(1.0, None, Some("2026-06-30")),
            priced(2.0, Some("2026-07-01"), Some("2026-12-31")),
        ]);
        let input = |on: &str| prices.on(day(on)).map(|price| price.input);
        assert_eq!(["2020-01-01", "2026-06-30"].map(input), [Some(1.0), Some(1.0)]);
        assert_eq!(["2026-07-01", "2026-12-31", "2027-01-01"].map(input), [Some(2.0), Some(2.0), None]);
        let [first, second] = &prices.0[..] else { panic!() };
        assert!(!first.overlaps(second) && !second.overlaps(first) && first.overlaps(first));
        assert!(priced(1.0, None, None).overlaps(second) && second.overlaps(&priced(1.0, None, None)));
        assert!(priced(1.0, Some("2026-12-31"), None).overlaps(second));
    }

    /// A user knows better than the table; a team may say what the table does not.
    #[test]
    fn limits_of_the_user_replace_those_of_the_table_and_others_fill_them_in() {
        let limits = ModelLimits { window: Some(32_768), max_output: Some(8_192) };
        let dated = DatedPrice { limits, ..Price::FREE.into() };
        let prices = Prices::new([("openai:gpt-4o".to_owned(), DatedPrices(vec![dated]))]);
        let of = |model: &EndpointModel| (model.context_window(), model.max_output(&Params::default()));
        let models = Models::new(Env::default());
        let known = || models.model("openai:gpt-4o").unwrap();
        assert_eq!(of(&known()), (Some(128_000), Some(16_384)));
        assert_eq!(of(&known().with_limits(limits)), (Some(128_000), Some(16_384)));
        assert_eq!(of(&models.model("vllm:mine").unwrap().with_limits(limits)), (Some(32_768), Some(8_192)));
        let dearer = Prices::new([("vllm:mine".to_owned(), Price { input: 1.0, ..Price::FREE }.into())]);
        let dearer = Models::new(Env::default()).with_prices(dearer).model("vllm:mine").unwrap();
        assert_eq!(
            of(&dearer.with_limits(limits)),
            (None, None),
            "a price that is not of who sets the limits"
        );
        let own = Models::new(Env::default()).with_prices(prices).model("openai:gpt-4o").unwrap();
        assert_eq!(of(&own), (Some(32_768), Some(8_192)));
    }

    /// Amazon lists profiles of one region at a tenth more than their models, and those of all regions at the same price.
    #[test]
    fn an_own_price_counts_for_all_names_of_the_same_model() {
        let model = "anthropic.claude-sonnet-4-5-20250929-v1:0";
        let [us, eu, global, new] = ["us", "eu", "global", "ca"].map(|region| format!("{region}.{model}"));
        let arn = |kind: &str, name: &str| format!("arn:aws:bedrock:eu-west-1:123456789012:{kind}/{name}");
        let profile = |name: &str| arn("inference-profile", name);
        let other = "arn:aws:bedrock:us-east-1:210987654321:inference-profile/".to_owned() + &us;
        let own = arn("application-inference-profile", "a1b2c3d4e5f6");
        for (priced, asked, counts) in [
            (us.clone(), us.clone(), true),
            (us.clone(), profile(&us), true),
            (profile(&us), us.clone(), true),
            (profile(&us), other, true),
            (us.clone(), profile(&eu), false),
            (us.clone(), model.to_owned(), false),
            (model.to_owned(), arn("foundation-model", model), true),
            (arn("foundation-model", model), model.to_owned(), true),
            (model.to_owned(), global.clone(), true),
            (arn("foundation-model", model), profile(&global), true),
            (global, model.to_owned(), false),
            (model.to_owned(), us.clone(), false),
            // The table has no price of these.
            (model.to_owned(), profile(&new), true),
            ("new.model".to_owned(), "us.new.model".to_owned(), true),
            (own.clone(), own.clone(), true),
            (us, own.clone(), false),
            (model.to_owned(), own, false),
        ] {
            let price = Price { input: 77.0, ..Price::FREE };
            let prices = Prices::new([(format!("bedrock:{priced}"), price.into())]);
            let found = prices.own("bedrock", &asked, Day::today()).map(|price| price.input);
            assert_eq!(found, counts.then_some(77.0), "the price of {priced} for {asked}");
        }
        // The exact name comes first.
        let price = |input| DatedPrices::from(Price { input, ..Price::FREE });
        let names = ["openai-chat:gpt-4o", "openai:gpt-4o", "openai:gpt-4o-2031-01-01"].map(str::to_owned);
        let prices = Prices::new(names.into_iter().zip([1.0, 2.0, 3.0].map(price)));
        for (asked, input) in [
            ("openai-chat:gpt-4o", 1.0),
            ("openai:gpt-4o", 2.0),
            ("openai:gpt-4o-2032-01-01", 2.0),
            ("openai-responses:gpt-4o-2031-01-01", 3.0),
        ] {
            assert_eq!(prices.named(asked, Day::today()).unwrap().price.input, input, "{asked}");
        }
        let prices = Prices::new([("gemini:models/gemini-2.5-pro".to_owned(), Price::FREE.into())]);
        assert_eq!(prices.own("gemini", "gemini-2.5-pro", Day::today()), Some(&Price::FREE));
    }

    #[test]
    fn the_most_exact_own_price_counts() {
        let model = "anthropic.claude-opus-4-8";
        let arn = format!("arn:aws:bedrock:us-east-1:123456789012:inference-profile/global.{model}");
        let price = |name: &str, input: f64| (format!("bedrock:{name}"), priced(input, None, None));
        let mut prices: Vec<_> = vec![price(model, 1.0)];
        let mut found = Vec::new();
        for more in [price(&format!("global.{model}"), 2.0), price(&arn, 3.0)] {
            prices.push(more);
            let all = prices.iter().map(|(name, dated)| (name.clone(), DatedPrices(vec![dated.clone()])));
            found.push(Prices::new(all).own("bedrock", &arn, Day::today()).map(|price| price.input));
        }
        assert_eq!(found, [Some(2.0), Some(3.0)]);
    }

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
            ("openai", "gpt-4o-3", None),
            ("openai", "no-such", None),
            ("mistral", "mistral-large-latest", Some(0.5)),
            ("anthropic", "claude-sonnet-4-5-20250929", Some(3.0)),
            ("anthropic", "claude-sonnet-4-5@20250929", Some(3.0)),
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
    fn the_users_price_replaces_the_list_price_and_that_of_a_more_exact_name_counts() {
        let price = |name: &str, dated| (name.to_owned(), DatedPrices(vec![dated]));
        let prices = Prices::new([
            price("openai:gpt-4o", priced(1.5, None, Some("2026-12-31"))),
            price("openai:mine", priced(7.0, None, None)),
            price("house:gpt-4o", priced(0.5, None, None)),
        ]);
        let (open, mine) = ("https://api.openai.com/v1", "http://10.0.0.5/v1");
        for (provider, url, model, on, expected) in [
            ("openai", open, "gpt-4o", "2026-12-31", Some(1.5)),
            ("openai-chat", open, "gpt-4o", "2026-12-31", Some(1.5)),
            ("openai", open, "gpt-4o", "2027-01-01", Some(2.5)),
            ("openai", open, "gpt-4o-2031-01-01", "2026-12-31", Some(1.5)),
            // The table has a price of this edition.
            ("openai", open, "gpt-4o-2024-05-13", "2026-12-31", Some(5.0)),
            ("openai", open, "gpt-4o-mini", "2026-12-31", Some(0.15)),
            ("openai", open, "mine", "2026-12-31", Some(7.0)),
            ("house", mine, "gpt-4o", "2026-12-31", Some(0.5)),
            // Another name for the same host has no lower price.
            ("house", open, "gpt-4o", "2026-12-31", Some(1.5)),
            ("other", mine, "gpt-4o", "2026-12-31", None),
            // Named like a local server: free where it can be one, and never where something else is known to be.
            ("vllm", mine, "qwen3", "2026-12-31", Some(0.0)),
            ("vllm", "http://gpu:8000/v1", "qwen3", "2026-12-31", Some(0.0)),
            ("ollama", "http://localhost:11434", "qwen3", "2026-12-31", Some(0.0)),
            ("vllm", "https://gpu.example.com/v1", "qwen3", "2026-12-31", None),
            ("vllm", "https://openrouter.ai/api/v1", "unheard/of", "2026-12-31", None),
            ("openai", "https://openrouter.ai/api/v1", "gpt-4o-mini", "2026-12-31", None),
        ] {
            let found = prices.at(provider, url, model, day(on)).map(|price| price.input);
            assert_eq!(found, expected, "{provider}:{model} at {url} on {on}");
        }
    }
}
