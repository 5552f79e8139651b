//! Limits: of a run, of a chat, of an agent, and those that runs and processes share.
//!
//! | about | look at |
//! |---|---|
//! | one run | [`Limits`], [`ChatLimits`], [`Allowance`], [`OnLimit`], [`LimitRaise`], [`LimitOverrides`] |
//! | several runs | [`Budget`], [`BudgetDemand`], [`BudgetStanding`] |
//! | what a call or a run can use at most | [`Bound`], [`RunBound`] |
//! | model servers that processes share | [`SharedLimits`], [`Rate`], [`Slot`], [`LearnedRates`] |
//! | time and cancellation | [`Timer`], [`Cancellation`] |

mod account;
mod bound;
mod budget;
pub(crate) mod budgets;
mod busy_time;
mod cancellation;
mod changes;
mod counted;
mod fit;
mod lowering;
mod overrides;
mod piece;
mod pooled;
mod raise;
mod run_bound;
mod shared;
mod timer;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::account::{Account, AccountState};
pub use self::bound::{Bound, InputTokens};
pub use self::budget::Budget;
pub(crate) use self::budgets::Budgets;
pub(crate) use self::cancellation::CancelMode;
pub use self::cancellation::Cancellation;
pub use self::counted::CountedUsage;
use self::fit::{Amount, Fit, ReservedAmount};
pub(crate) use self::lowering::{Lowered, Lowering, Standing};
pub use self::overrides::LimitOverrides;
pub use self::piece::{BudgetDemand, BudgetStanding, BudgetWants};
pub use self::raise::LimitRaise;
pub use self::run_bound::{BoundException, BoundSummary, RunBound};
pub use self::shared::{
    LearnedRate, LearnedRates, LimitScope, LimitsFuture, Rate, RateDemand, RateGrant, RateTimes,
    SharedLimits, Slot,
};
pub use self::timer::Timer;
use crate::{Money, StopReason};

/// The limits of a whole run, nested chats included. Checked before every turn. Every model call is reserved at its
/// upper bound before it is sent, so that concurrent calls cannot exceed a limit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Turns of agents in all chats. Private turns do not count, and neither does the turn of a nested chat as a
    /// whole. Turns that run in parallel begin together or not at all.
    pub turns: Option<u64>,
    /// Model calls over the whole log. Every attempt that reaches a server counts, and so do calls that were in
    /// flight at a crash. `None`: the limit is [`calls_per_run`](Self::calls_per_run).
    pub calls: Option<u64>,
    /// The limit on model calls if [`calls`](Self::calls) is `None`, counted for each run of a chat and each
    /// [`Log::call`](crate::Log::call) of an agent. So it does not end a session in which agents are called
    /// repeatedly.
    pub calls_per_run: u64,
    /// Tokens read and written. A call is refused if its upper bound ([`Bound`]) exceeds what is left.
    pub tokens: Option<u64>,
    /// Money. A call is refused if its upper bound ([`Bound`]) exceeds what is left.
    pub cost: Option<Money>,
    /// Output tokens of one reply of an agent in the outermost chat, private turns excluded. The lower of this and the
    /// agent's own `max_tokens` is sent. It ends no run: a reply that reaches it is cut off.
    pub reply_tokens: Option<u64>,
    /// Running time in milliseconds, without the time in which people are waited for. Calls in flight are aborted when it
    /// is up, if the log has a [`timer`](crate::Log::timer).
    pub time_ms: Option<u64>,
    /// Whether models of unknown price may be called under a limit on money. Their calls then count as free. Default:
    /// no, and the run ends with [`StopReason::UnknownPrice`].
    pub allow_unknown_price: bool,
    /// Nesting depth of chats.
    pub depth: usize,
    /// Background tasks that are open at the same time, in all chats. A further one is refused, and the run continues.
    pub background: usize,
    /// What happens when a limit is reached: one of these (except [`depth`](Self::depth)), or one of an agent or a chat.
    pub on_limit: OnLimit,
    /// The terms on which people are asked to raise limits.
    pub raise: RaiseTerms,
    /// The limits at which the outermost chat ends by itself, which a person can raise, too.
    pub chat: ChatLimits,
}

/// Limits of one agent or one chat, next to those of the whole run: a call is sent only if it fits into all of them.
/// Default: no limit.
///
/// ```
/// # use polylogue_core::{Allowance, Log, Money, Name};
/// let cheap = Allowance { cost: Some(Money::dollars(0.10)), ..Allowance::default() };
/// let log = Log::in_memory().agent_limits([(Name::new("Ann")?, cheap)]);
/// # Ok::<(), polylogue_core::NameError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Model calls.
    pub calls: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Money>,
    /// Running time in milliseconds: of an agent, that of its turns; of a chat, the time in which it is open. The time in
    /// which people are waited for does not count.
    pub time_ms: Option<u64>,
}

impl From<Money> for Allowance {
    /// A limit on money alone.
    fn from(cost: Money) -> Self {
        Self { cost: Some(cost), ..Self::default() }
    }
}

/// The turns, messages, tokens and money at which the policy of the outermost chat ends it. These numbers end nothing
/// themselves: they declare which limits of the policy a person can raise while the chat is open
/// ([`Instruction::RaiseLimits`](crate::Instruction::RaiseLimits)).
///
/// ```
/// # use polylogue_core::{ChatLimits, Limits, Log};
/// // For a chat that ends after 9 turns.
/// let chat = ChatLimits { turns: Some(9), ..ChatLimits::default() };
/// let log = Log::in_memory().limits(Limits { chat, ..Limits::default() });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChatLimits {
    /// Turns in the chat itself.
    pub turns: Option<u64>,
    /// Messages. More turns are also more messages.
    pub messages: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Money>,
}

/// The behavior when a limit of the whole run, of an agent or of a chat is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The run ends, or the chat whose limit it is, or in which the agent has its turn.
    #[default]
    Stop,
    /// A person is asked to raise the limit. The run waits for the answer; with every one but yes or an amount, it or the chat ends.
    Ask,
}

/// The terms on which people are asked to raise limits: how far, and how long. Default: without a ceiling, until they answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RaiseTerms {
    /// Totals above which no answer raises a limit: at them the run or the chat ends without a question.
    pub ceiling: Allowance,
    /// The time in milliseconds after which no answer counts as no.
    pub timeout_ms: Option<u64>,
}

impl Limits {
    /// The fewest tokens of a reply for which a call is sent whose output limit has to be lowered to what is left: about a paragraph.
    /// Models that reason need more ([`Model::min_useful_output`](crate::Model::min_useful_output)).
    pub const USEFUL_OUTPUT: u64 = 256;

    /// The output limit that is lowered where the longest reply of a model is unknown: nearly every server accepts it. As long as more
    /// is left, such calls are sent without a limit.
    pub(crate) const SAFE_OUTPUT: u64 = 4_096;

    /// The default of [`background`](Self::background).
    pub const DEFAULT_BACKGROUND: usize = 16;
}

impl Default for Limits {
    /// 1,000 model calls for each run of a chat and each call of an agent, nesting depth 8, 16 background tasks, no limit on turns, tokens,
    /// money and time.
    fn default() -> Self {
        Self {
            turns: None,
            calls: None,
            calls_per_run: 1_000,
            tokens: None,
            cost: None,
            reply_tokens: None,
            time_ms: None,
            allow_unknown_price: false,
            depth: 8,
            background: Self::DEFAULT_BACKGROUND,
            on_limit: OnLimit::Stop,
            raise: RaiseTerms::default(),
            chat: ChatLimits::default(),
        }
    }
}

impl Allowance {
    /// As limits of a run.
    pub(crate) fn limits(self) -> Limits {
        let Self { calls, tokens, cost, time_ms } = self;
        Limits { calls, tokens, cost, time_ms, ..Limits::none() }
    }
}

/// What a run has used so far.
#[derive(Clone, Copy)]
pub(crate) struct RunUsage<'a> {
    pub(crate) counted: CountedUsage,
    /// Running time.
    pub(crate) time_ms: u64,
    /// A model whose cost is unknown.
    pub(crate) unpriced: Option<&'a Arc<str>>,
}

/// Whether a call can be reserved.
pub(crate) enum Admission {
    /// Reserved: this much.
    Now(RunReservation),
    /// Not before another call is settled.
    Later,
    /// A limit does not allow it.
    Never(StopReason),
}

/// The reservation of one call within the limits of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunReservation {
    pub(crate) calls: u64,
    pub(crate) cost: Amount<Money>,
    pub(crate) tokens: Amount<u64>,
}

/// The reservations of all calls in flight within the limits of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reserved {
    calls: u64,
    tokens: ReservedAmount<u64>,
    money: ReservedAmount<Money>,
}

impl Reserved {
    pub(crate) fn add(&mut self, hold: RunReservation) {
        self.calls += hold.calls;
        self.tokens.add(hold.tokens);
        self.money.add(hold.cost);
    }

    /// Money.
    pub(crate) const fn money(&self) -> Money {
        self.money.most()
    }

    /// All of it.
    pub(crate) const fn counted(&self) -> CountedUsage {
        CountedUsage { calls: self.calls, tokens: self.tokens.most(), cost: self.money.most() }
    }

    pub(crate) fn remove(&mut self, hold: RunReservation) {
        self.calls = self.calls.saturating_sub(hold.calls);
        self.tokens.remove(hold.tokens);
        self.money.remove(hold.cost);
    }
}

impl Limits {
    /// No limit at all.
    pub(crate) fn none() -> Self {
        Self { calls_per_run: u64::MAX, depth: usize::MAX, background: usize::MAX, ..Self::default() }
    }

    /// Returns the limit on model calls that applies: [`calls`](Self::calls), else [`calls_per_run`](Self::calls_per_run).
    pub const fn max_calls(&self) -> u64 {
        match self.calls {
            Some(calls) => calls,
            None => self.calls_per_run,
        }
    }

    /// The model calls that count, `before` of which were made before the outermost agent call.
    const fn calls_of(&self, calls: u64, before: u64) -> u64 {
        if self.calls.is_some() { calls } else { calls.saturating_sub(before) }
    }

    /// What is left of them after `used`, `before` of whose calls were made before the outermost agent call.
    pub(crate) fn left(&self, used: CountedUsage, before: u64) -> Allowance {
        Allowance {
            calls: Some(self.max_calls().saturating_sub(self.calls_of(used.calls, before))),
            tokens: self.tokens.map(|limit| limit.saturating_sub(used.tokens)),
            cost: self.cost.map(|limit| limit.saturating_sub(used.cost)),
            time_ms: None,
        }
    }

    /// Whether upper bounds must be known. Computing them reads whole requests.
    pub(crate) const fn need_bounds(&self) -> bool {
        self.cost.is_some() || self.tokens.is_some()
    }

    /// Whether `calls` more of this bound fit together with the usage and the reservations. `before` as in
    /// [`calls_of`](Self::calls_of).
    pub(crate) fn admit(
        &self,
        used: RunUsage<'_>,
        reserved: &Reserved,
        before: u64,
        (bound, calls): (&Bound, u64),
    ) -> Admission {
        let made = self.calls_of(used.counted.calls, before);
        if calls > 0 && made >= self.max_calls() {
            return Admission::Never(StopReason::Calls { limit: self.max_calls() });
        }
        if let Some(reason) = self.met(used) {
            return Admission::Never(reason);
        }
        if calls > 0 && made + reserved.calls >= self.max_calls() {
            return Admission::Later;
        }
        let mut hold = RunReservation { calls, ..RunReservation::default() };
        if let Some(limit) = self.tokens {
            let tokens = used.counted.tokens;
            hold.tokens = match reserved.tokens.fit(limit, tokens, (bound.tokens, bound.least_tokens())) {
                Fit::Now(amount) => amount,
                Fit::Later => return Admission::Later,
                Fit::Never => {
                    let next = Some(bound.least_tokens());
                    return Admission::Never(StopReason::Tokens { limit, used: tokens, next, cut: None });
                }
            };
        }
        let is_free = self.allow_unknown_price && bound.least_cost.is_none();
        if let Some(limit) = self.cost.filter(|_| !is_free) {
            let spent = used.counted.cost;
            hold.cost = match reserved.money.fit(limit, spent, (bound.cost, bound.least())) {
                Fit::Now(amount) => amount,
                Fit::Later => return Admission::Later,
                Fit::Never => {
                    let next = Some(bound.least());
                    return Admission::Never(StopReason::Cost { limit, spent, next, cut: None });
                }
            };
        }
        Admission::Now(hold)
    }

    /// Why `next` turns, which begin at once, may not follow `begun` earlier ones.
    pub(crate) fn too_many_turns(&self, begun: u64, next: u64) -> Option<StopReason> {
        let limit = self.turns.filter(|limit| next > 0 && begun.saturating_add(next) > *limit)?;
        Some(StopReason::turns(limit, begun, next))
    }

    /// The limit on time, if `used_ms` reach it.
    pub(crate) fn time_reached(&self, used_ms: u64) -> Option<StopReason> {
        let limit_ms = self.time_ms.filter(|limit| used_ms >= *limit)?;
        Some(StopReason::Time { limit_ms, used_ms })
    }

    /// The limit on money, tokens or time that is reached, if one is.
    fn met(&self, RunUsage { counted, time_ms, unpriced }: RunUsage<'_>) -> Option<StopReason> {
        if let Some(reason) = self.time_reached(time_ms) {
            return Some(reason);
        }
        if let Some(limit) = self.cost {
            let cost = counted.cost;
            if cost >= limit {
                return Some(StopReason::Cost { limit, spent: cost, next: None, cut: None });
            }
            if let Some(model) = unpriced.filter(|_| !self.allow_unknown_price) {
                return Some(StopReason::UnknownPrice { model: Arc::clone(model) });
            }
        }
        let (limit, used) = (self.tokens?, counted.tokens);
        (used >= limit).then_some(StopReason::Tokens { limit, used, next: None, cut: None })
    }

    /// The limit that was exceeded, if one was: such a run does not end as done.
    pub(crate) fn passed(&self, used: CountedUsage, before: u64) -> Option<StopReason> {
        if self.calls_of(used.calls, before) > self.max_calls() {
            return Some(StopReason::Calls { limit: self.max_calls() });
        }
        let cost = used.cost;
        if let Some(limit) = self.cost.filter(|limit| cost > *limit) {
            return Some(StopReason::Cost { limit, spent: cost, next: None, cut: None });
        }
        let used = used.tokens;
        self.tokens.filter(|limit| used > *limit).map(|limit| StopReason::Tokens {
            limit,
            used,
            next: None,
            cut: None,
        })
    }
}
