//! Usage and cost of model calls.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::Money;
use super::name::Name;

/// Tokens of one model call as counted by the provider. `None` is unknown, not 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input tokens of the whole request: read from a cache, written to one, or neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Output tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// The part of `input` that came from the provider's prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// The part of `input` that was written to the provider's prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<u64>,
    /// The part of `written` with a lifetime of an hour or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_long: Option<u64>,
    /// The part of `input` that was sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<u64>,
    /// The part of `output` that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Returns whether the provider reported nothing at all.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the usage of a further call. The input and the output are unknown if one of them is.
    #[must_use]
    pub fn and(self, further: Self) -> Self {
        let both = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        let any = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            input: both(self.input, further.input),
            output: both(self.output, further.output),
            cached: any(self.cached, further.cached),
            written: any(self.written, further.written),
            written_long: any(self.written_long, further.written_long),
            audio: any(self.audio, further.audio),
            reasoning: any(self.reasoning, further.reasoning),
        }
    }

    /// Returns the same tokens without a prompt cache: all input is fresh.
    #[must_use]
    pub fn without_prompt_cache(self) -> Self {
        Self { cached: None, written: None, written_long: None, ..self }
    }

    /// Returns whether a prompt cache was read or written.
    pub fn used_prompt_cache(&self) -> bool {
        self.cached.unwrap_or(0) > 0 || self.written.unwrap_or(0) > 0
    }

    /// Returns the input and output tokens together, if both are known.
    pub fn total(&self) -> Option<u64> {
        Some(self.input?.saturating_add(self.output?))
    }
}

/// The cost of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCost {
    /// The cost.
    pub cost: Money,
    /// The cost without the provider's prompt cache; `None` if that was not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncached: Option<Money>,
}

/// The usage of a model that a tool called itself, or what the tool itself cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUsage {
    /// The model, as `provider:model`; of what a tool itself cost, `tool:NAME`.
    pub model: Arc<str>,
    /// The tokens.
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
    /// The cost, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

impl ToolUsage {
    /// What precedes the name of a tool whose own cost this is.
    const OWN: &str = "tool:";

    /// Creates the usage of a call of the tool `name`: its cost, besides that of models.
    pub fn of_tool(name: &str, cost: Money) -> Self {
        let usage = Usage { input: Some(0), output: Some(0), ..Usage::default() };
        Self { model: format!("{}{name}", Self::OWN).into(), usage, cost: Some(cost) }
    }

    /// Returns whether the usage is what a tool itself cost.
    pub fn is_of_tool(&self) -> bool {
        self.model.starts_with(Self::OWN)
    }
}

/// Model calls that count against limits and are in no reply of the log: at their upper bound, because their usage is unknown, or with
/// the usage of a reply that was discarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The agent that asked.
    pub who: Name,
    /// The model, as `provider:model`.
    pub model: Arc<str>,
    /// The reason.
    pub why: ChargeReason,
    /// The number of calls.
    #[serde(default)]
    pub calls: u64,
    /// Tokens at most; `None` when there is no known bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The part of the tokens that was output, if a reply was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Money at most; `None` when there is no known bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The id of the tool call whose tool asked the model; `None` for a model call of the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<str>>,
    /// Its upper bound, where less counts: no more was left of the limits of the run, into which all calls in flight at the same time
    /// fitted. It counts in the limits of agents and chats, up to what is left of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<ChargeBound>,
}

/// The most that a call can have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeBound {
    /// The number of calls.
    pub calls: u64,
    /// Tokens at most; `None` when there is no known bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money at most; `None` when there is no known bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

impl Charge {
    /// A charge of nothing so far.
    pub(crate) const fn of(who: Name, model: Arc<str>, why: ChargeReason) -> Self {
        Self { who, model, why, calls: 0, tokens: None, output: None, cost: None, call: None, bound: None }
    }

    /// The same where only so much is left of limits, `None` where there is no limit.
    #[must_use]
    pub(crate) fn within(self, calls: Option<u64>, tokens: Option<u64>, cost: Option<Money>) -> Self {
        let most = ChargeBound { calls: self.calls, tokens: self.tokens, cost: self.cost };
        let most = self.bound.unwrap_or(most);
        let counts = ChargeBound {
            calls: at_most(most.calls, calls),
            tokens: most.tokens.map(|most| at_most(most, tokens)),
            cost: most.cost.map(|most| at_most(most, cost)),
        };
        let ChargeBound { calls, tokens, cost } = counts;
        Self { calls, tokens, cost, bound: (counts != most).then_some(most), ..self }
    }

    /// Returns whether the charge counts against limits.
    pub const fn counts(&self) -> bool {
        !matches!(self.why, ChargeReason::Repeated | ChargeReason::Reserved)
    }

    /// Whether it may have cost money of which no bound is known. An attempt that the server refused costs none, and has no
    /// tokens either.
    const fn is_unpriced(&self) -> bool {
        self.cost.is_none() && (self.tokens.is_some() || !matches!(self.why, ChargeReason::Failed))
    }
}

fn at_most<T: Ord + Copy>(amount: T, left: Option<T>) -> T {
    left.map_or(amount, |left| amount.min(left))
}

/// Why a call counts that is in no reply of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChargeReason {
    /// It may have been in flight when the process died.
    Crashed,
    /// It was in flight when the run was cancelled.
    Cancelled,
    /// It reached the server and got no reply: each attempt counts.
    Failed,
    /// No use is made of its reply, such as a refusal after which another model is asked. Tokens and money are those that it used.
    Discarded,
    /// Its reply did not report the usage.
    Unreported,
    /// Nothing counts: logs that the call is sent again, so that a further crash charges it again.
    Repeated,
    /// Nothing counts yet: logs that a request is sent besides the next model call of the turn, by a tool or for the rest
    /// of a paused reply, so that a crash charges it.
    Reserved,
}

/// A sum over charges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncertainUsage {
    /// Calls.
    pub calls: u64,
    /// Tokens at most, where there is a known bound.
    pub tokens: u64,
    /// Money at most, where there is a known bound.
    pub cost: Money,
    /// Calls without a known bound in money.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

impl UncertainUsage {
    /// Returns whether nothing was charged.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The usage of several model calls. Unknown figures are counted, not guessed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalUsage {
    /// Finished model calls.
    pub calls: u64,
    /// Input tokens, where known.
    pub input: u64,
    /// Output tokens, where known.
    pub output: u64,
    /// The part of the output that was reasoning, where known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
    /// Calls with unknown tokens.
    pub unmetered: u64,
    /// Cost, where known.
    pub cost: Money,
    /// Calls with unknown cost.
    pub unpriced: u64,
    /// How the prompt caches of providers were used; included in the other figures.
    #[serde(default, skip_serializing_if = "PromptCache::is_unused")]
    pub prompt_cache: PromptCache,
    /// What a cache of replies saved; not included in the other figures.
    #[serde(default, skip_serializing_if = "CacheSavings::is_nothing")]
    pub saved: CacheSavings,
    /// Upper bounds of calls without a known usage; not included in the other figures, but in limits.
    #[serde(default, skip_serializing_if = "UncertainUsage::is_nothing")]
    pub uncertain: UncertainUsage,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The use of providers' prompt caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptCache {
    /// Input tokens that were read from a cache.
    pub read: u64,
    /// Input tokens that were written to a cache.
    pub written: u64,
    /// The cost of the calls that used a cache, where it is known with and without it.
    pub cost: Money,
    /// What the same calls would have cost without it.
    pub uncached: Money,
}

/// Providers report what they like: sums end at the highest number.
const fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl PromptCache {
    /// Returns whether no cache was read or written.
    pub const fn is_unused(&self) -> bool {
        self.read == 0 && self.written == 0
    }

    /// Returns the money saved, in 10⁻¹² dollars; negative if writing cost more than reading saved.
    pub fn saved_picodollars(&self) -> i128 {
        i128::from(self.uncached.picodollars) - i128::from(self.cost.picodollars)
    }

    pub(super) fn add(&mut self, usage: &Usage, cost: Option<Money>, uncached: Option<Money>) {
        add(&mut self.read, usage.cached.unwrap_or(0));
        add(&mut self.written, usage.written.unwrap_or(0));
        if let (Some(cost), Some(uncached)) = (cost, uncached) {
            self.cost += cost;
            self.uncached += uncached;
        }
    }
}

/// The savings by a cache of replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheSavings {
    /// Model calls that were not made.
    pub calls: u64,
    /// Input and output tokens, where known.
    pub tokens: u64,
    /// Cost, where known.
    pub cost: Money,
}

impl CacheSavings {
    /// Returns whether no call was saved.
    pub const fn is_nothing(&self) -> bool {
        self.calls == 0
    }

    fn add(&mut self, usage: &Usage, cost: Option<Money>) {
        add(&mut self.calls, 1);
        add(&mut self.tokens, usage.input.unwrap_or(0));
        add(&mut self.tokens, usage.output.unwrap_or(0));
        self.cost += cost.unwrap_or_default();
    }
}

impl TotalUsage {
    /// Adds all figures of `other`.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.calls, other.calls);
        add(&mut self.input, other.input);
        add(&mut self.output, other.output);
        add(&mut self.reasoning, other.reasoning);
        add(&mut self.unmetered, other.unmetered);
        self.cost += other.cost;
        add(&mut self.unpriced, other.unpriced);
        add(&mut self.prompt_cache.read, other.prompt_cache.read);
        add(&mut self.prompt_cache.written, other.prompt_cache.written);
        self.prompt_cache.cost += other.prompt_cache.cost;
        self.prompt_cache.uncached += other.prompt_cache.uncached;
        add(&mut self.saved.calls, other.saved.calls);
        add(&mut self.saved.tokens, other.saved.tokens);
        self.saved.cost += other.saved.cost;
        add(&mut self.uncertain.calls, other.uncertain.calls);
        add(&mut self.uncertain.tokens, other.uncertain.tokens);
        self.uncertain.cost += other.uncertain.cost;
        add(&mut self.uncertain.unpriced, other.uncertain.unpriced);
    }

    /// Adds a model call. A `cached` reply costs nothing, and counts as saved.
    pub(super) fn add_call(&mut self, usage: &Usage, cost: Option<Money>, cached: bool) {
        if cached {
            return self.saved.add(usage, cost);
        }
        add(&mut self.calls, 1);
        add(&mut self.input, usage.input.unwrap_or(0));
        add(&mut self.output, usage.output.unwrap_or(0));
        add(&mut self.reasoning, usage.reasoning.unwrap_or(0));
        add(&mut self.unmetered, u64::from(usage.total().is_none()));
        self.cost += cost.unwrap_or_default();
        add(&mut self.unpriced, u64::from(cost.is_none()));
    }

    /// Adds the usage of a tool. It does not count as a model call.
    pub fn add_tool(&mut self, used: &ToolUsage) {
        add(&mut self.input, used.usage.input.unwrap_or(0));
        add(&mut self.output, used.usage.output.unwrap_or(0));
        add(&mut self.reasoning, used.usage.reasoning.unwrap_or(0));
        add(&mut self.unmetered, u64::from(used.usage.total().is_none()));
        self.cost += used.cost.unwrap_or_default();
        add(&mut self.unpriced, u64::from(used.cost.is_none()));
    }

    /// Adds calls that count at their upper bound, or whose reply was discarded.
    pub fn charge(&mut self, charge: &Charge) {
        if !charge.counts() {
            return;
        }
        if charge.why == ChargeReason::Discarded {
            return self.add_discarded(charge);
        }
        let UncertainUsage { calls, tokens, cost, unpriced } = &mut self.uncertain;
        add(calls, charge.calls);
        add(tokens, charge.tokens.unwrap_or(0));
        *cost += charge.cost.unwrap_or_default();
        add(unpriced, if charge.is_unpriced() { charge.calls } else { 0 });
    }

    /// Adds a call whose reply was discarded: its usage is known.
    fn add_discarded(&mut self, charge: &Charge) {
        let tokens = charge.tokens.unwrap_or(0);
        let output = charge.output.unwrap_or(0).min(tokens);
        add(&mut self.calls, charge.calls);
        add(&mut self.input, tokens - output);
        add(&mut self.output, output);
        self.cost += charge.cost.unwrap_or_default();
        add(&mut self.unpriced, if charge.cost.is_none() { charge.calls } else { 0 });
    }

    /// Returns the cost that counts against limits: what is known, and the upper bounds of the rest.
    pub fn counted_cost(&self) -> Money {
        self.cost + self.uncertain.cost
    }

    /// Returns the tokens that count against limits.
    pub const fn counted_tokens(&self) -> u64 {
        self.tokens().saturating_add(self.uncertain.tokens)
    }

    /// Returns the model calls that count against limits, including those answered by a cache.
    pub const fn counted_calls(&self) -> u64 {
        self.calls + self.saved.calls + self.uncertain.calls
    }

    /// Returns the input and output tokens together, where known.
    pub const fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
