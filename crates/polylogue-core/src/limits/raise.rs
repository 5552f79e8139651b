//! Raising a limit that a person is asked about.

use serde::{Deserialize, Serialize};

use super::{Allowance, ChatLimits, LimitOverrides, Limits};
use crate::{AllowanceOwner, Money, StopReason};

/// The limit that a [question](crate::Question) asks to raise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitRaise {
    /// The limit that was reached: the stop reason without an answer.
    pub reached: StopReason,
    /// By how much `yes` raises the limit.
    pub more: LimitOverrides,
}

impl LimitRaise {
    /// Returns by how much `answer` raises the limit: `yes`, or an amount in the unit of the limit, such as `20`, `$0.50` or
    /// `5 min`. `None` if it is anything else.
    pub fn allowed_by(&self, answer: &str) -> Option<LimitOverrides> {
        let answer = answer.trim().to_lowercase();
        if matches!(answer.as_str(), "y" | "yes") {
            return Some(self.more);
        }
        let none = LimitOverrides::default();
        Some(match self.more {
            LimitOverrides { turns: Some(_), .. } => LimitOverrides { turns: Some(count(&answer)?), ..none },
            LimitOverrides { calls: Some(_), .. } => LimitOverrides { calls: Some(count(&answer)?), ..none },
            LimitOverrides { tokens: Some(_), .. } => {
                LimitOverrides { tokens: Some(count(&answer)?), ..none }
            }
            LimitOverrides { cost: Some(_), .. } => LimitOverrides { cost: Some(money(&answer)?), ..none },
            _ => LimitOverrides { time_ms: Some(milliseconds(&answer)?), ..none },
        })
    }

    /// Returns an amount in the unit of the limit, as an example of an answer.
    pub const fn example(&self) -> &'static str {
        match self.more {
            LimitOverrides { turns: Some(_), .. } | LimitOverrides { calls: Some(_), .. } => "5",
            LimitOverrides { tokens: Some(_), .. } => "5000",
            LimitOverrides { cost: Some(_), .. } => "0.50",
            _ => "5 min",
        }
    }

    /// The text of the question.
    pub(crate) fn text(&self) -> String {
        let Self { reached, more } = self;
        let more = match *more {
            LimitOverrides { turns: Some(more), .. } => counted(more, "more turn"),
            LimitOverrides { calls: Some(more), .. } => counted(more, "more model call"),
            LimitOverrides { tokens: Some(more), .. } => counted(more, "more token"),
            LimitOverrides { cost: Some(more), .. } => format!("{more} more"),
            LimitOverrides { time_ms: Some(more), .. } => format!("{} more", crate::data::in_units(more)),
            _ => "more".into(),
        };
        match reached.owned().0 {
            None => format!("The run has reached {reached}. Allow {more}?"),
            // The reason begins with the name of the agent or the chat.
            Some(_) => format!("{}. Allow {more}?", reached.to_string().replacen("the", "The", 1)),
        }
    }

    /// What ends if the limit is not raised.
    pub(crate) fn ends(&self) -> &'static str {
        match self.reached.owned().0 {
            Some(AllowanceOwner::Agent(_)) => "the chat in which it has its turn",
            Some(AllowanceOwner::Chat { path: at, .. }) if !at.is_root() => "this chat",
            _ => "the run",
        }
    }
}

impl StopReason {
    /// Returns as much as the limit that it names, or as the next step needs, if that is more. Empty if it names none.
    pub fn as_limit(&self) -> LimitOverrides {
        match self {
            // As many as the next step needs do not grow with a limit that was tried.
            Self::Turns { next: Some(_), .. } => self.next_needs(),
            Self::Turns { .. } | Self::Calls { .. } => self.limit(),
            _ => self.limit().at_least(self.next_needs()),
        }
    }

    /// The limit that it names, a total. Empty if it names none.
    pub(crate) fn limit(&self) -> LimitOverrides {
        let none = LimitOverrides::default();
        match *self {
            Self::Turns { limit, .. } => LimitOverrides { turns: Some(limit), ..none },
            Self::Calls { limit } => LimitOverrides { calls: Some(limit), ..none },
            Self::Tokens { limit, .. } => LimitOverrides { tokens: Some(limit), ..none },
            Self::Cost { limit, .. } => LimitOverrides { cost: Some(limit), ..none },
            Self::Time { limit_ms, .. } => LimitOverrides { time_ms: Some(limit_ms), ..none },
            _ => none,
        }
    }

    /// What the step that did not fit needs at most, as far as known.
    pub(crate) fn next_needs(&self) -> LimitOverrides {
        let none = LimitOverrides::default();
        match *self {
            Self::Turns { next, .. } => LimitOverrides { turns: next.or(Some(1)), ..none },
            Self::Calls { .. } => LimitOverrides { calls: Some(1), ..none },
            Self::Tokens { next, .. } => LimitOverrides { tokens: next, ..none },
            Self::Cost { next, .. } => LimitOverrides { cost: next, ..none },
            _ => none,
        }
    }
}

impl Limits {
    /// Whether the limit that `reason` names is not higher here.
    pub(crate) fn holds(&self, reason: &StopReason) -> bool {
        match reason {
            StopReason::Turns { limit, .. } => self.turns.is_some_and(|now| now <= *limit),
            StopReason::Calls { limit } => self.max_calls() <= *limit,
            StopReason::Tokens { limit, .. } => self.tokens.is_some_and(|now| now <= *limit),
            StopReason::Cost { limit, .. } => self.cost.is_some_and(|now| now <= *limit),
            StopReason::Time { limit_ms, .. } => self.time_ms.is_some_and(|now| now <= *limit_ms),
            StopReason::UnknownPrice { .. } => self.cost.is_some() && !self.allow_unknown_price,
            _ => false,
        }
    }

    /// The limit that `reason` names, and no other.
    pub(crate) fn only(reason: &StopReason) -> Self {
        let none = Self::none();
        match *reason {
            StopReason::Calls { limit } => Self { calls: Some(limit), ..none },
            StopReason::Tokens { limit, .. } => Self { tokens: Some(limit), ..none },
            StopReason::Cost { limit, .. } => Self { cost: Some(limit), ..none },
            StopReason::Time { limit_ms, .. } => Self { time_ms: Some(limit_ms), ..none },
            _ => none,
        }
    }

    /// By how much a person is asked to raise the limit `reached`: by as much as it was raised `last`, at first by as much as the
    /// limit, and by no less than the next step needs, for which the totals `needed` are enough. `None` if that raises nothing below the
    /// `ceiling`.
    pub(crate) fn asked_raise(
        &self,
        reached: &StopReason,
        last: LimitOverrides,
        needed: LimitOverrides,
        ceiling: Allowance,
    ) -> Option<LimitOverrides> {
        let limit = reached.limit();
        let totals = limit.plus(last.instead_of(limit)).at_least(needed).at_most(ceiling.into());
        let is_raise = self.holds(reached) && !totals.is_empty() && !totals.apply_to(*self).holds(reached);
        is_raise.then(|| totals.above(limit))
    }

    /// Without the limits on tokens and money that people can raise when they are asked: those below `ceiling`.
    pub(crate) fn at_ceiling(self, ceiling: Allowance) -> Self {
        Self {
            tokens: self.tokens.filter(|limit| ceiling.tokens.is_some_and(|most| most <= *limit)),
            cost: self.cost.filter(|limit| ceiling.cost.is_some_and(|most| most <= *limit)),
            ..self
        }
    }

    /// Why `totals` of the run, and the `own` ones of its outermost chat, are no raise: one of them is below the limit that is set, or would
    /// be the first limit of its kind. `None` if they are one.
    pub(crate) fn lowered_by(&self, totals: LimitOverrides, own: &ChatLimits) -> Option<String> {
        let limits = Self { calls: Some(self.max_calls()), ..*self };
        limits.lowered_of("the run", totals, own)
    }

    /// The same of limits that `whose` has.
    pub(crate) fn lowered_of(&self, whose: &str, totals: LimitOverrides, own: &ChatLimits) -> Option<String> {
        let chat = &self.chat;
        let in_chat = [(chat.turns, own.turns), (chat.messages, own.messages)];
        let turns = (self.turns, totals.turns);
        let turns = lowered((whose, "turns"), turns, &in_chat, |limit| counted(limit, "turn"));
        let calls = (self.calls, totals.calls);
        let calls = || lowered((whose, "calls"), calls, &[], |limit| counted(limit, "model call"));
        let (tokens, in_chat) = ((self.tokens, totals.tokens), [(chat.tokens, own.tokens)]);
        let tokens = || lowered((whose, "tokens"), tokens, &in_chat, |limit| counted(limit, "token"));
        let (cost, in_chat) = ((self.cost, totals.cost), [(chat.cost, own.cost)]);
        let cost = || lowered((whose, "cost"), cost, &in_chat, |limit| limit.to_string());
        let time = (self.time_ms, totals.time_ms);
        let time = || lowered((whose, "time"), time, &[], crate::data::in_units);
        turns.or_else(calls).or_else(tokens).or_else(cost).or_else(time)
    }
}

/// Why `total` raises neither the `limit` of its owner on `what`, nor, if a run has none, one of those of its outermost chat, each with its
/// own total.
fn lowered<T: Ord + Copy>(
    (whose, what): (&str, &str),
    (limit, total): (Option<T>, Option<T>),
    in_chat: &[(Option<T>, Option<T>)],
    shown: impl Fn(T) -> String,
) -> Option<String> {
    let total = total?;
    let own = || in_chat.iter().filter_map(|(limit, total)| limit.zip(*total));
    let of_chat = || own().find(|(limit, total)| total >= limit).or_else(|| own().next());
    let Some((limit, total)) = limit.map(|limit| (limit, total)).or_else(of_chat) else {
        return Some(format!("{whose} has no limit on {what} that could be raised: it would be a new one"));
    };
    (total < limit).then(|| {
        let (limit, total) = (shown(limit), shown(total));
        format!("it would lower the limit of {limit} to {total}: an amount counts in addition to what was used so far")
    })
}

impl LimitOverrides {
    /// What of these a run under `limits` has a limit on. The others would be new limits.
    pub(crate) fn where_limited(self, limits: &Limits) -> Self {
        Self {
            turns: self.turns.filter(|_| limits.turns.is_some()),
            tokens: self.tokens.filter(|_| limits.tokens.is_some()),
            cost: self.cost.filter(|_| limits.cost.is_some()),
            time_ms: self.time_ms.filter(|_| limits.time_ms.is_some()),
            ..self
        }
    }

    /// What of these a chat with limits of its `own` counts.
    pub(crate) fn of_chat(self, own: &ChatLimits) -> Self {
        let ChatLimits { turns, messages, tokens, cost } = own;
        Self {
            turns: self.turns.filter(|_| turns.or(*messages).is_some()),
            tokens: self.tokens.filter(|_| tokens.is_some()),
            cost: self.cost.filter(|_| cost.is_some()),
            ..Self::default()
        }
    }

    /// These totals, none of which is below that of `limits`.
    pub(crate) fn not_below(self, limits: &Limits) -> Self {
        Self {
            turns: self.turns.map(|total| total.max(limits.turns.unwrap_or_default())),
            calls: self.calls.map(|total| total.max(limits.max_calls())),
            tokens: self.tokens.map(|total| total.max(limits.tokens.unwrap_or_default())),
            cost: self.cost.map(|total| total.max(limits.cost.unwrap_or_default())),
            time_ms: self.time_ms.map(|total| total.max(limits.time_ms.unwrap_or_default())),
            ..self
        }
    }

    /// These totals, raised by what `more` has of the same kind.
    pub(crate) fn plus(self, more: Self) -> Self {
        self.each(more, |total, more| Some(total?.saturating_add(more.unwrap_or_default())))
    }

    /// How far these totals are above `limit`, where both are set.
    pub(crate) fn above(self, limit: Self) -> Self {
        let amounts = self.each(limit, |total, limit| Some(total?.saturating_sub(limit?)));
        Self { reply_tokens: None, on_limit: None, ..amounts }
    }

    /// These totals, none of which is above that of `most`.
    pub(crate) fn at_most(self, most: Self) -> Self {
        self.each(most, |total, most| Some(total?.min(most.unwrap_or(u64::MAX))))
    }
}

impl From<Allowance> for LimitOverrides {
    /// The limits on calls, tokens, money and time.
    fn from(allowance: Allowance) -> Self {
        let Allowance { calls, tokens, cost, time_ms } = allowance;
        Self { calls, tokens, cost, time_ms, ..Self::default() }
    }
}

/// A whole number above 0, also with a comma before each three digits. In other places, as in `5,5`, a comma is a decimal point for many people.
fn count(text: &str) -> Option<u64> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let others: Vec<&str> = groups.collect();
    let are_groups = (1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3);
    let digits = (others.is_empty() || are_groups).then(|| text.replace(',', ""))?;
    digits.parse().ok().filter(|count| *count > 0)
}

fn money(text: &str) -> Option<Money> {
    let dollars: f64 = text.trim_start_matches('$').trim().parse().ok()?;
    (dollars.is_finite() && dollars > 0.0).then(|| Money::dollars(dollars))
}

fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "min" | "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|ms| *ms > 0)
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
