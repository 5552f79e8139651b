//! A bound in words.

use polylogue_core::{Money, OnLimit};

use super::TeamBound;
use super::amount::Amount;

/// What stands for an amount without a limit.
const NO_BOUND: &str = "no bound";

impl Amount {
    /// Returns the model calls in words, such as `1,234`.
    pub fn calls_in_words(&self) -> String {
        self.calls().map_or_else(|| NO_BOUND.to_owned(), grouped)
    }

    /// Returns the input and output tokens in words, such as `20,375,288`.
    pub fn tokens_in_words(&self) -> String {
        self.tokens().map_or_else(|| NO_BOUND.to_owned(), grouped)
    }
}

impl TeamBound {
    /// Describes what a run takes at most, as a part of a sentence that begins with `at most`: in money, or in tokens where the models
    /// cost nothing or a price is unknown, and which limit makes it no more. `None` if it calls no model.
    ///
    /// ```
    /// # use polylogue::{AnyModel, Limits};
    /// # use polylogue_models::{Env, Models};
    /// # use polylogue_team::{Overrides, parse};
    /// # let text = "{name: t, model: 'openai:gpt-4o-mini', agents: [{name: Ann, parameters: {max_tokens: 100}}], \
    /// #     task: hi, chat: {participants: [Ann], max_turns: 3}}";
    /// # let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// # let models = Models::new(Env::default());
    /// # let limits = Limits::default();
    /// let bound = team.bound(&|name| Ok(AnyModel::from(models.model(name)?)), &limits)?;
    /// let said = bound.in_words(limits.on_limit).unwrap();
    /// assert!(said.starts_with("at most $") && said.contains(" in 3 model calls, "), "{said}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_words(&self, on_limit: OnLimit) -> Option<String> {
        let calls = match self.at_most.calls().unwrap_or(u64::MAX) {
            0 => return None,
            1 => "1 model call".to_owned(),
            calls => format!("{calls} model calls"),
        };
        let tools = if self.at_most.tools > 0 { " and calls of tools" } else { "" };
        let unless = match on_limit {
            OnLimit::Ask => " unless a person raises a limit",
            OnLimit::Stop => "",
        };
        let calls = format!("{calls}{tools}{unless}");
        if !self.is_finite() {
            return Some(self.unbounded_in_words(&calls));
        }
        let in_tokens = |amount: &Amount| format!("{} tokens", amount.tokens_in_words());
        let limit = if self.at_limit.tokens { " (the limit on tokens)" } else { "" };
        Some(match self.no_price() {
            Some(why) => format!("{}; {why}", self.amounts_in_words(limit, &calls, in_tokens)),
            None => {
                let cost = if self.at_limit.cost { " (the limit on cost)" } else { "" };
                let tokens = match self.at_limit.tokens {
                    true => format!(" and {}{limit}", in_tokens(&self.at_most)),
                    false => String::new(),
                };
                self.amounts_in_words(&format!("{cost}{tokens}"), &calls, |amount| self.money(amount))
            }
        })
    }

    /// The same without a bound on tokens: money has one if a limit sets it, or if the models cost nothing.
    fn unbounded_in_words(&self, calls: &str) -> String {
        let why = self.unbounded.join("; ");
        match self.at_most.picodollars().filter(|_| self.unpriced.is_empty()) {
            None => format!("at most {calls}; no bound on tokens and cost: {why}"),
            Some(0) => format!("at most {calls}, which cost nothing"),
            // Not at most that: the last call can exceed it.
            Some(_) => {
                let money = self.money(&self.at_most);
                format!("at most {calls} within the limit of {money}; no bound on tokens: {why}")
            }
        }
    }

    /// `reached` says why the first amount is not more.
    fn amounts_in_words(&self, reached: &str, calls: &str, in_words: impl Fn(&Amount) -> String) -> String {
        let [most, retried, typical] = [&self.at_most, &self.with_retries, &self.typical].map(in_words);
        let retries = match retried == most {
            true => String::new(),
            false => format!(", {retried} if every request is retried"),
        };
        format!("at most {most}{reached} in {calls}{retries}; usually about {typical}")
    }

    /// Why it says nothing about money; `None` if it does.
    fn no_price(&self) -> Option<String> {
        let unpriced: Vec<String> = self.unpriced.iter().map(|name| format!("`{name}`")).collect();
        if !unpriced.is_empty() {
            return Some(format!("the price of {} is unknown", unpriced.join(", ")));
        }
        match self.at_most.picodollars() {
            None => Some("the cost has no limit of its own".to_owned()),
            Some(0) => Some("its models cost nothing".to_owned()),
            Some(_) => None,
        }
    }

    /// Returns the money of `amount`, one of its own, as far as prices are known.
    pub fn money(&self, amount: &Amount) -> String {
        let known = match amount.picodollars().map(u64::try_from) {
            None => return NO_BOUND.to_owned(),
            Some(Ok(picodollars)) => Money { picodollars }.to_string(),
            Some(Err(_)) => "over $18 million".to_owned(),
        };
        match (self.unpriced.is_empty(), amount.picodollars()) {
            (true, _) => known,
            (false, Some(0)) => "unknown".to_owned(),
            (false, _) => format!("{known} and unknown prices"),
        }
    }
}

/// `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        let numbers = [0, 999, 1_000, 123_456, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}
