//! Prices of models, and the cost of calls.

use serde::{Deserialize, Serialize};

use super::money::Money;
use super::usage::Usage;

/// The prices of a model in dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of a million input tokens.
    pub input: f64,
    /// The price of a million input tokens from the prompt cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// The price of a million input tokens that are written to the prompt cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<f64>,
    /// The price of a million input tokens that are written to the prompt cache for an hour or more. Default: `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_long: Option<f64>,
    /// The price of a million input tokens of sound that are not from the prompt cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<f64>,
    /// The price of a million output tokens.
    pub output: f64,
    /// The prices of all tokens of longer requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}

/// The prices of all tokens of a call whose request is longer. Those that are missing are the price's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PriceTier {
    /// The number of input tokens above which the prices apply.
    pub over: u64,
    /// The price of these requests, as [`Price::input`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<f64>,
    /// The price of these requests, as [`Price::cached`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// The price of these requests, as [`Price::write`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<f64>,
    /// The price of these requests, as [`Price::write_long`]. Where the tier changes what writing costs, the default is no less
    /// than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_long: Option<f64>,
    /// The price of these requests, as [`Price::output`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<f64>,
}

/// The price of each kind of token.
#[derive(Clone, Copy)]
struct Rates {
    input: f64,
    cached: f64,
    write: f64,
    write_long: f64,
    audio: f64,
    output: f64,
}

impl Price {
    /// The price of a local model.
    pub const FREE: Self = Self {
        input: 0.0,
        cached: None,
        write: None,
        write_long: None,
        audio: None,
        output: 0.0,
        tiers: Vec::new(),
    };

    /// Returns the higher price of both, for each kind of token in requests of every length.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        let mut overs: Vec<u64> = self.tiers.iter().chain(&other.tiers).map(|tier| tier.over).collect();
        overs.sort_unstable();
        overs.dedup();
        let higher = |over: Option<u64>| {
            let input = over.map_or(0, |over| over.saturating_add(1));
            let (one, two) = (self.rates(input), other.rates(input));
            PriceTier {
                over: over.unwrap_or_default(),
                input: Some(one.input.max(two.input)),
                cached: Some(one.cached.max(two.cached)),
                write: Some(one.write.max(two.write)),
                write_long: Some(one.write_long.max(two.write_long)),
                output: Some(one.output.max(two.output)),
            }
        };
        let audio = [&self, &other].map(Self::dearest_audio);
        let is_apart = self.audio.is_some() || other.audio.is_some();
        let base = higher(None);
        let (input, output) = (base.input.unwrap_or_default(), base.output.unwrap_or_default());
        let other_than = |rate: Option<f64>, default: f64| rate.filter(|rate| *rate != default);
        Self {
            input,
            cached: other_than(base.cached, input),
            write: other_than(base.write, input),
            write_long: other_than(base.write_long, base.write.unwrap_or(input)),
            audio: is_apart.then(|| audio.into_iter().fold(input, f64::max)),
            output,
            tiers: overs.into_iter().map(|over| higher(Some(over))).collect(),
        }
    }

    /// The highest price of sound in requests of any length.
    fn dearest_audio(&self) -> f64 {
        let of_tiers = self.tiers.iter().filter_map(|tier| tier.input);
        self.audio.unwrap_or_else(|| of_tiers.fold(self.input, f64::max))
    }

    /// Returns whether a price that this one names is lower than that of `other`, for some kind of token in requests of some
    /// length.
    pub fn is_below(&self, other: &Self) -> bool {
        let Self { input, cached, write, write_long, output, .. } = *self;
        let base = PriceTier { over: 0, input: Some(input), cached, write, write_long, output: Some(output) };
        if self.audio.is_some_and(|own| own < other.rates(0).audio) {
            return true;
        }
        let tiers = self.tiers.iter().map(|tier| (tier.over.saturating_add(1), *tier));
        std::iter::once((0, base)).chain(tiers).any(|(input, own)| {
            let other = other.rates(input);
            let named = [
                (own.input, other.input),
                (own.cached, other.cached),
                (own.write, other.write),
                (own.write_long, other.write_long),
                (own.output, other.output),
            ];
            named.into_iter().any(|(own, other)| own.is_some_and(|own| own < other))
        })
    }

    /// Returns the cost of a call, or `None` if its tokens are unknown. A free model costs nothing, whatever its usage.
    pub fn of(&self, usage: &Usage) -> Option<Money> {
        if *self == Self::FREE {
            return Some(Money::default());
        }
        let (input, output) = (usage.input?, usage.output?);
        let rates = self.rates(input);
        let cached = usage.cached.unwrap_or(0).min(input);
        let written = usage.written.unwrap_or(0).min(input - cached);
        let long = usage.written_long.unwrap_or(0).min(written);
        let audio = usage.audio.unwrap_or(0).min(input - cached - written);
        let amounts = [
            (rates.input, input - cached - written - audio),
            (rates.audio, audio),
            (rates.cached, cached),
            (rates.write, written - long),
            (rates.write_long, long),
            (rates.output, output),
        ];
        Some(amounts.into_iter().map(|(dollars, tokens)| per_token(dollars, tokens)).sum())
    }

    /// Returns the number of input tokens above which a kind of token costs less than in shorter requests. The longest request
    /// is then not the dearest one, and no upper bound of a call can be computed from it.
    ///
    /// ```
    /// use polylogue_core::{Price, PriceTier};
    /// let tier = |input| PriceTier { over: 200_000, input: Some(input), ..PriceTier::default() };
    /// let price = |input| Price { input: 3.0, output: 15.0, tiers: vec![tier(input)], ..Price::FREE };
    /// assert_eq!((price(6.0).falls_over(), price(1.0).falls_over()), (None, Some(200_000)));
    /// ```
    pub fn falls_over(&self) -> Option<u64> {
        let falls = |over: &u64| {
            let (below, above) = (self.rates(*over), self.rates(over.saturating_add(1)));
            let pairs = [
                (below.input, above.input),
                (below.cached, above.cached),
                (below.write, above.write),
                (below.write_long, above.write_long),
                (below.output, above.output),
            ];
            pairs.into_iter().any(|(below, above)| above < below)
        };
        self.tiers.iter().map(|tier| tier.over).filter(falls).min()
    }

    /// The prices of a call whose request has so many tokens: those of the highest tier that it is over.
    fn rates(&self, input: u64) -> Rates {
        let over = self.tiers.iter().filter(|tier| input > tier.over);
        let tier = over.max_by_key(|tier| tier.over).copied().unwrap_or_default();
        let fresh = tier.input.unwrap_or(self.input);
        // Without a price of its own, writing costs what input costs.
        let of_tier = tier.write.or(tier.input.filter(|_| self.write.is_none()));
        let write = of_tier.or(self.write).unwrap_or(self.input);
        // A tier that changes what writing costs, and does not say that for an hour: no less.
        let long = self.write_long.map(|long| of_tier.map_or(long, |write| long.max(write)));
        Rates {
            input: fresh,
            cached: tier.cached.or(self.cached).unwrap_or(fresh),
            write,
            write_long: tier.write_long.or(long).unwrap_or(write),
            audio: self.audio.unwrap_or(fresh),
            output: tier.output.unwrap_or(self.output),
        }
    }
}

/// The cost of `tokens` at `dollars` per million. A dollar per million is 10⁶ picodollars a token, so this is exact.
fn per_token(dollars: f64, tokens: u64) -> Money {
    if tokens == 0 {
        return Money::default();
    }
    let per_token = Money::dollars(dollars / 1e6).picodollars;
    Money { picodollars: per_token.saturating_mul(tokens) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picodollars(price: &Price, usage: Usage) -> Option<u64> {
        price.of(&usage).map(|money| money.picodollars)
    }

    fn price() -> Price {
        let long = PriceTier { over: 200_000, input: Some(6.0), output: Some(22.5), ..PriceTier::default() };
        let (write, write_long) = (Some(3.75), Some(6.0));
        Price {
            input: 3.0,
            cached: Some(0.3),
            write,
            write_long,
            audio: None,
            output: 15.0,
            tiers: vec![long],
        }
    }

    #[test]
    fn cost_is_exact_and_unknown_usage_costs_an_unknown_amount() {
        let usage = Usage {
            input: Some(1_000),
            cached: Some(400),
            written: Some(300),
            written_long: Some(100),
            audio: None,
            output: Some(10),
            reasoning: Some(4),
        };
        // 300 fresh, 400 read, 200 written, 100 written for an hour, 10 out; in 10⁶ picodollars a token.
        let by_hand = 300 * 3_000_000 + 400 * 300_000 + 200 * 3_750_000 + 100 * 6_000_000 + 10 * 15_000_000;
        assert_eq!(picodollars(&price(), usage), Some(by_hand));
        assert_eq!(picodollars(&price(), Usage::default()), None);
        assert_eq!(picodollars(&Price::FREE, Usage::default()), Some(0));
    }

    #[test]
    fn writing_for_an_hour_costs_no_less_than_writing_in_any_tier() {
        let only_input = PriceTier { over: 200_000, input: Some(6.5), ..PriceTier::default() };
        let long = PriceTier { write: Some(7.5), ..only_input };
        let both = PriceTier { write_long: Some(12.0), ..long };
        let own = price().write;
        let tokens = Some(300_000);
        let of_writing = Usage { input: tokens, written: tokens, output: Some(0), ..Usage::default() };
        // In 10⁶ picodollars a token.
        for (write, tier, ordinary, for_an_hour) in [
            (own, long, 7_500_000, 7_500_000),
            (own, both, 7_500_000, 12_000_000),
            // The prices of writing are the price's own.
            (own, only_input, 3_750_000, 6_000_000),
            // Writing costs what input costs, also in the tier.
            (None, only_input, 6_500_000, 6_500_000),
            (None, long, 7_500_000, 7_500_000),
        ] {
            let price = Price { write, tiers: vec![tier], ..price() };
            let hourly = Usage { written_long: tokens, ..of_writing };
            assert_eq!(picodollars(&price, of_writing), Some(300_000 * ordinary), "{price:?}");
            assert_eq!(picodollars(&price, hourly), Some(300_000 * for_an_hour), "{price:?}");
        }
    }

    #[test]
    fn sound_has_its_own_price_where_it_is_not_from_the_cache() {
        let price = Price { audio: Some(32.0), ..price() };
        let of =
            |cached, audio| Usage { input: Some(100), output: Some(0), cached, audio, ..Usage::default() };
        assert_eq!(picodollars(&price, of(None, Some(40))), Some(60 * 3_000_000 + 40 * 32_000_000));
        assert_eq!(picodollars(&price, of(Some(90), Some(40))), Some(90 * 300_000 + 10 * 32_000_000));
        assert_eq!(picodollars(&price, of(None, None)), Some(100 * 3_000_000));
        let plain = Price { audio: None, ..price.clone() };
        assert_eq!(picodollars(&plain, of(None, Some(40))), Some(100 * 3_000_000));
        assert_eq!(plain.clone().at_least(price.clone()).audio, Some(32.0));
        assert!(Price { audio: Some(31.0), ..plain }.is_below(&price));
    }

    #[test]
    fn a_longer_request_has_the_prices_of_its_tier_for_all_tokens() {
        let usage = |input| Usage { input: Some(input), output: Some(1), ..Usage::default() };
        assert_eq!(picodollars(&price(), usage(200_000)), Some(200_000 * 3_000_000 + 15_000_000));
        assert_eq!(picodollars(&price(), usage(200_001)), Some(200_001 * 6_000_000 + 22_500_000));
    }

    #[test]
    fn a_price_is_below_another_if_it_names_a_lower_one() {
        let plain = Price { cached: None, write: None, write_long: None, tiers: Vec::new(), ..price() };
        assert!(!price().is_below(&price()) && !plain.is_below(&price()));
        let tier = |over, output| PriceTier { over, output: Some(output), ..PriceTier::default() };
        for lower in [
            Price { input: 2.9, ..price() },
            Price { output: 14.0, ..price() },
            Price { cached: Some(0.2), ..plain.clone() },
            Price { write: Some(3.7), ..plain.clone() },
            Price { write_long: Some(5.9), ..plain.clone() },
            // The output of the other is 22.5 there.
            Price { tiers: vec![tier(200_000, 22.0)], ..plain.clone() },
        ] {
            assert!(lower.is_below(&price()), "{lower:?}");
        }
        assert!(!Price { tiers: vec![tier(100_000, 15.0)], ..plain }.is_below(&price()));
    }

    #[test]
    fn parts_that_exceed_the_whole_do_not_count() {
        let usage = Usage { cached: Some(9), written: Some(9), ..Usage::default() };
        let usage = Usage { input: Some(10), output: Some(0), written_long: Some(9), ..usage };
        assert_eq!(picodollars(&price(), usage), Some(9 * 300_000 + 6_000_000));
    }

    #[test]
    fn the_higher_of_two_prices_is_higher_for_every_usage() {
        let other = Price { input: 4.0, output: 1.0, ..Price::FREE };
        let both = price().at_least(other.clone());
        for input in [1, 100, 200_000, 200_001, 1_000_000] {
            let usage = Usage { cached: Some(input / 2), written: Some(input / 4), ..Usage::default() };
            let usage = Usage { input: Some(input), output: Some(50), ..usage };
            assert!(both.of(&usage) >= price().of(&usage) && both.of(&usage) >= other.of(&usage), "{input}");
        }
        assert_eq!(price().at_least(price()).of(&Usage::default()), None);
    }
}
