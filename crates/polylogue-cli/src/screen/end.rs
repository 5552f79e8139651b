//! The last thing a person reads of a run: why it stopped, what it took, and how to continue.

use std::time::Duration;

use polylogue_core::{FinishReason, LogId, Money, RunOutcome as Kind, Status, StopReason, TotalUsage};
use serde::{Deserialize, Serialize};

use super::style::Style;
use super::text::{Line, folded, wrap};
use crate::place::PlaceOption;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunEnd {
    /// Why it stopped, in one word.
    pub(crate) state: RunState,
    /// Why it stopped, as [`RunEnd::why`] says it, or in the caller's words.
    pub(crate) status: String,
    /// What its model calls consumed.
    pub(crate) usage: TotalUsage,
    /// Turns taken.
    pub(crate) turns: u64,
    /// How long it ran.
    pub(crate) elapsed: Duration,
    /// Its id.
    pub(crate) id: LogId,
    /// Whether there is anything to continue.
    pub(crate) resumable: bool,
    /// The option that continues it, if one is needed: a higher limit, or the answer to a question.
    pub(crate) option: Option<String>,
    /// What is said of the files of its programs, if there are any.
    pub(crate) files: Option<String>,
    /// Where commands find it.
    pub(crate) place: PlaceOption,
    /// How many replies have more tokens than their requests allowed.
    pub(crate) overlong: u64,
    /// Why facts were looked for by words only, if they were to be found by meaning, too.
    pub(crate) words_only: Option<String>,
}

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// The conversation reached its end.
    Done,
    /// A limit on turns, calls, time or depth was reached.
    Limit,
    /// A limit on tokens or cost was reached.
    Budget,
    /// It was stopped from outside.
    Stopped,
    /// No participant said anything.
    NoOutput,
    /// A person must answer a question.
    Waiting,
    /// A turn, the store or the program failed.
    Failed,
}

impl RunState {
    /// Whether a row of a batch that stopped so is not run again.
    pub(crate) const fn is_settled(self) -> bool {
        !matches!(self, Self::Waiting | Self::Failed)
    }

    /// Its name in JSON and in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Limit => "limit",
            Self::Budget => "budget",
            Self::Stopped => "stopped",
            Self::NoOutput => "no_output",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }

    /// That of a conversation that ended for this reason.
    pub(crate) fn of(reason: &StopReason) -> Self {
        match reason.outcome() {
            Kind::Done => Self::Done,
            Kind::Limit => Self::Limit,
            Kind::Budget => Self::Budget,
            Kind::Stopped => Self::Stopped,
            Kind::NoOutput => Self::NoOutput,
        }
    }
}

impl RunEnd {
    /// Why a run with this `status` stopped.
    pub(crate) fn state<E>(status: &Result<Status, E>) -> RunState {
        match status {
            Ok(Status::Closed { reason, .. }) => RunState::of(reason),
            Ok(Status::Waiting(_)) => RunState::Waiting,
            Ok(Status::Cancelled) => RunState::Stopped,
            Err(_) => RunState::Failed,
        }
    }

    /// The command that continues it.
    pub(crate) fn resume(&self) -> String {
        self.command("resume", self.option.as_deref())
    }

    fn command(&self, name: &str, option: Option<&str>) -> String {
        let words = [name, self.id.as_str()].into_iter().chain(option);
        self.place.command(&words.collect::<Vec<_>>().join(" "))
    }

    /// What a status line says of `reason`.
    pub(crate) fn why(reason: &StopReason) -> String {
        let kind = match reason.outcome() {
            Kind::Done => "done",
            Kind::Limit | Kind::Budget => "limit",
            Kind::Stopped => "stopped",
            Kind::NoOutput => "no output",
        };
        let reason = reason.to_string();
        // The kind has named it.
        let reason = reason.strip_prefix("the limit of ").filter(|_| kind == "limit").unwrap_or(&reason);
        format!("{kind}: {reason}")
    }

    /// What a status line says of `reason`, and of a result that is cut off.
    pub(crate) fn why_cut(reason: &StopReason, cut: Option<FinishReason>) -> String {
        let why = Self::why(reason);
        cut.map_or_else(|| why.clone(), |cut| format!("{why} · the result is {cut}"))
    }

    /// The number of turns, unless the status ends with it. One that ends with another number counts those since the last message, or of
    /// the outermost chat alone.
    fn turns_besides(&self) -> Option<String> {
        let all = turns(self.turns);
        let counts = self.status.ends_with(" turns") || self.status.ends_with(" turn");
        let is_said = counts && self.status.ends_with(&format!(" {all}"));
        let all = if counts { format!("{all} in all") } else { all };
        (!is_said).then_some(all)
    }

    /// The closing lines, for rows of `width` columns; unwrapped if there is none.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<Line> {
        let status = Line::new(&folded(&self.status), Style::BOLD);
        let facts = [tokens(&self.usage), cost(&self.usage), time(self.elapsed)];
        let facts = self.turns_besides().into_iter().chain(facts);
        let facts = facts.chain(uncertain(&self.usage));
        let facts = facts.chain(prompt_cache(&self.usage)).chain(saved(&self.usage));
        let facts = facts.chain(overlong(self.overlong));
        let facts: Vec<String> = facts.collect();
        let mut rows = vec![status];
        for fact in facts {
            let fact = format!(" · {fact}");
            let columns = fact.chars().count();
            let is_full = |row: &&mut Line| width.is_some_and(|width| row.width() + columns > width);
            match rows.last_mut().filter(|row| !is_full(row)) {
                Some(row) => row.push(&fact, Style::PLAIN),
                None => rows.push(Line::new(fact.trim_start(), Style::PLAIN)),
            }
        }
        let show = format!("`{}`", self.command("show", None));
        let resume = format!("`{}`", self.resume());
        let both = format!("{show} / {resume}");
        let fits = width.is_none_or(|width| both.len() <= width);
        let hints = match self.resumable {
            false => vec![show],
            true if fits => vec![both],
            true => vec![show, resume],
        };
        let hints = hints.iter().map(|hint| Line::new(hint, Style::DIM));
        let files = self.files.iter().map(|files| Line::new(files, Style::DIM));
        let words_only = self.words_only.iter().map(|why| Line::new(why, Style::PLAIN));
        let lines: Vec<Line> = rows.into_iter().chain(words_only).chain(files).chain(hints).collect();
        match width {
            Some(width) => lines.iter().flat_map(|line| wrap(line, width)).collect(),
            None => lines,
        }
    }
}

fn turns(turns: u64) -> String {
    if turns == 1 { "1 turn".into() } else { format!("{} turns", grouped(turns)) }
}

pub(crate) fn tokens(usage: &TotalUsage) -> String {
    match (usage.unmetered, usage.tokens()) {
        (0, 1) => "1 token".into(),
        (0, tokens) => format!("{} tokens", grouped(tokens)),
        (_, 0) => "tokens unknown".into(),
        (_, tokens) => format!("at least {} tokens", grouped(tokens)),
    }
}

pub(crate) fn cost(usage: &TotalUsage) -> String {
    let nothing = usage.cost.picodollars == 0;
    match usage.unpriced {
        0 if nothing => "$0".into(),
        0 => usage.cost.to_string(),
        _ if nothing => "cost unknown".into(),
        _ => format!("at least {}", usage.cost),
    }
}

/// The same for a column: with what calls without a reply can have cost.
pub(crate) fn most_cost(usage: &TotalUsage) -> String {
    let unpriced = usage.unpriced.saturating_add(usage.uncertain.unpriced);
    match usage.uncertain.cost.picodollars > 0 && unpriced == 0 {
        true => format!("at most {}", usage.counted_cost()),
        false => cost(&TotalUsage { unpriced, ..*usage }),
    }
}

/// What calls took at most that got no reply: it counts against limits; the exact usage is unknown.
pub(crate) fn uncertain(usage: &TotalUsage) -> Option<String> {
    let most = &usage.uncertain;
    let s = if most.calls == 1 { "" } else { "s" };
    let calls = format!("{} call{s} without a reply", grouped(most.calls));
    match (most.calls, most.cost.picodollars) {
        (0, 0) => None,
        (0, _) => Some(format!("at most {} more", most.cost)),
        _ if most.unpriced > 0 => Some(format!("{calls}, cost unknown")),
        (_, 0) => Some(calls),
        _ => Some(format!("{calls}, at most {} more", most.cost)),
    }
}

/// Replies of servers that ignore the output limit of a request.
fn overlong(count: u64) -> Option<String> {
    let s = if count == 1 { "y has" } else { "ies have" };
    (count > 0).then(|| format!("{} repl{s} more tokens than the server was asked for", grouped(count)))
}

/// What a cache of replies saved, if it did.
pub(crate) fn saved(usage: &TotalUsage) -> Option<String> {
    let saved = &usage.saved;
    let all = saved.calls.saturating_add(usage.calls);
    let calls = format!("{} of {} calls", grouped(saved.calls), grouped(all));
    let cost = if saved.cost.picodollars == 0 { String::new() } else { format!(", {}", saved.cost) };
    let what = format!("{calls} from the cache ({} tokens{cost} saved)", grouped(saved.tokens));
    (!saved.is_nothing()).then_some(what)
}

/// The share of input tokens that providers' prompt caches had, and the money that this saved, if they were used.
pub(crate) fn prompt_cache(usage: &TotalUsage) -> Option<String> {
    let share = format!("{} of input from prompt caches", cached_share(usage)?);
    Some(match prompt_savings(usage) {
        None => share,
        Some(saved) if saved.starts_with('-') => format!("{share} ({} more)", saved.trim_start_matches('-')),
        Some(saved) => format!("{share} ({saved} saved)"),
    })
}

/// Such as `71%`; `None` if no prompt cache was used.
pub(crate) fn cached_share(usage: &TotalUsage) -> Option<String> {
    let cache = &usage.prompt_cache;
    let percent = u128::from(cache.read) * 100 / u128::from(usage.input.max(1));
    (!cache.is_unused()).then(|| format!("{percent}%"))
}

/// The money that prompt caches saved; with a minus sign if writing to them cost more. `None` if unknown.
pub(crate) fn prompt_savings(usage: &TotalUsage) -> Option<String> {
    let (cache, saved) = (&usage.prompt_cache, usage.prompt_cache.saved_picodollars());
    let amount = Money { picodollars: u64::try_from(saved.unsigned_abs()).unwrap_or(u64::MAX) };
    let sign = if saved < 0 { "-" } else { "" };
    (cache.uncached.picodollars > 0).then(|| format!("{sign}{amount}"))
}

/// `41 s`, `3 min 20 s`, `2 h 05 min`.
pub(crate) fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `3480` as `3,480`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use polylogue::stop::LibraryStopReason;
    use polylogue_core::{CacheSavings, Name, PromptCache, UncertainUsage};

    use super::*;
    use crate::screen::tests::ending;

    fn check(status: &str, usage: TotalUsage, turns: u64, seconds: u64, expected: &Expect) {
        let elapsed = Duration::from_secs(seconds);
        let resumable = !status.starts_with("done");
        let option = status.starts_with("limit").then_some("--max-turns N");
        let option = option.or(status.starts_with("waiting").then_some("--answer TEXT")).map(str::to_owned);
        let status = status.to_owned();
        let ending = RunEnd { status, usage, turns, elapsed, resumable, option, ..ending() };
        let lines: Vec<_> = ending.lines(None).iter().map(Line::text).collect();
        expected.assert_eq(&lines.join("\n"));
        assert!(ending.lines(Some(40)).iter().all(|line| line.width() <= 40));
        for width in 20..100 {
            let rows: Vec<_> = ending.lines(Some(width)).iter().map(Line::text).collect();
            let time = time(ending.elapsed);
            assert!(rows.iter().any(|row| row.contains(&time)), "{time} is in one row: {rows:?}");
        }
    }

    #[test]
    fn any_usage_of_a_log_from_elsewhere_can_be_shown() {
        let most = CacheSavings { calls: u64::MAX, tokens: u64::MAX, cost: Money::default() };
        let usage = TotalUsage { calls: u64::MAX, saved: most, ..TotalUsage::default() };
        let all = grouped(u64::MAX);
        let expected = format!("{all} of {all} calls from the cache ({all} tokens saved)");
        assert_eq!(saved(&usage), Some(expected));
    }

    #[test]
    fn the_last_line_has_stop_reason_usage_and_cost() {
        let by = Name::new("Stock_Trader").unwrap();
        let why = RunEnd::why(&StopReason::from(LibraryStopReason::Mentioned {
            text: "<CAMEL_TASK_DONE>".into(),
            by,
        }));
        let cost = Money::dollars(0.0021);
        let usage = TotalUsage { calls: 12, input: 3000, output: 480, cost, ..TotalUsage::default() };
        check(
            &why,
            usage,
            12,
            41,
            &expect![[r#"
            done: Stock_Trader said `<CAMEL_TASK_DONE>` · 12 turns · 3,480 tokens · $0.0021 · 41 s
            `polylogue show 3k7v9x`"#]],
        );
    }

    #[test]
    fn unknown_tokens_and_costs_are_shown_as_unknown() {
        let unknown = TotalUsage { calls: 2, unmetered: 2, unpriced: 2, ..TotalUsage::default() };
        check(
            "limit: 2 turns",
            unknown,
            2,
            200,
            &expect![[r#"
            limit: 2 turns · tokens unknown · cost unknown · 3 min 20 s
            `polylogue show 3k7v9x` / `polylogue resume 3k7v9x --max-turns N`"#]],
        );
        check(
            "done: 2 of 2 turns",
            unknown,
            12,
            200,
            &expect![[r#"
            done: 2 of 2 turns · 12 turns in all · tokens unknown · cost unknown · 3 min 20 s
            `polylogue show 3k7v9x`"#]],
        );
        let partly = TotalUsage { input: 999, output: 1, cost: Money::dollars(1.5), ..unknown };
        check(
            "stopped\nby you",
            partly,
            1,
            7500,
            &expect![[r#"
            stopped (+1 line) · 1 turn · at least 1,000 tokens · at least $1.50 · 2 h 05 min
            `polylogue show 3k7v9x` / `polylogue resume 3k7v9x`"#]],
        );
        check(
            "waiting for Human",
            TotalUsage::default(),
            1_234_567,
            0,
            &expect![[r#"
            waiting for Human · 1,234,567 turns · 0 tokens · $0 · 0 s
            `polylogue show 3k7v9x` / `polylogue resume 3k7v9x --answer TEXT`"#]],
        );
    }

    #[test]
    fn what_a_cache_saved_is_shown_next_to_the_usage() {
        let saved = CacheSavings { calls: 2, tokens: 3480, cost: Money::dollars(0.01) };
        check(
            "done: yes",
            TotalUsage { calls: 3, saved, ..TotalUsage::default() },
            2,
            1,
            &expect![[r#"
                done: yes · 2 turns · 0 tokens · $0 · 1 s · 2 of 5 calls from the cache (3,480 tokens, $0.01 saved)
                `polylogue show 3k7v9x`"#]],
        );
    }

    #[test]
    fn what_prompt_caches_saved_is_shown_and_what_they_cost_more() {
        let usage = |cost, uncached| {
            let (cost, uncached) = (Money::dollars(cost), Money::dollars(uncached));
            let prompt_cache = PromptCache { read: 710, written: 200, cost, uncached };
            TotalUsage { calls: 3, input: 1000, cost, prompt_cache, ..TotalUsage::default() }
        };
        let shown = |usage: &TotalUsage| prompt_cache(usage).unwrap();
        assert_eq!(shown(&usage(0.01, 0.04)), "71% of input from prompt caches ($0.03 saved)");
        assert_eq!(shown(&usage(0.04, 0.01)), "71% of input from prompt caches ($0.03 more)");
        assert_eq!(shown(&usage(0.0, 0.0)), "71% of input from prompt caches");
        assert_eq!(prompt_cache(&TotalUsage::default()), None);
    }

    #[test]
    fn calls_without_a_reply_are_counted_with_what_they_can_have_cost() {
        let usage = |calls, cost| {
            let uncertain = UncertainUsage { calls, cost: Money::dollars(cost), ..UncertainUsage::default() };
            TotalUsage { uncertain, ..TotalUsage::default() }
        };
        let shown = |usage: &TotalUsage| uncertain(usage).unwrap_or_default();
        assert_eq!(shown(&usage(2, 0.0)), "2 calls without a reply");
        assert_eq!(shown(&usage(1, 0.5)), "1 call without a reply, at most $0.50 more");
        assert_eq!(shown(&usage(0, 0.0)), "");
        let column = |known, unpriced| {
            most_cost(&TotalUsage { cost: Money::dollars(known), unpriced, ..usage(1, 0.5) })
        };
        assert_eq!(column(1.0, 0), "at most $1.50");
        assert_eq!((column(1.0, 1), column(0.0, 1)), ("at least $1.00".into(), "cost unknown".into()));
        assert_eq!(most_cost(&usage(1, 0.0)), "$0");
        let mut unknown = usage(2, 0.5);
        unknown.uncertain.unpriced = 1;
        assert_eq!(
            (most_cost(&unknown), shown(&unknown)),
            ("cost unknown".into(), "2 calls without a reply, cost unknown".into())
        );
    }

    #[test]
    fn every_kind_of_end_has_its_word() {
        assert!(RunEnd::why(&StopReason::Turns { limit: 1, next: None }).starts_with("limit: "));
        assert!(RunEnd::why(&StopReason::UnknownPrice { model: "m".into() }).starts_with("limit: "));
        assert!(RunEnd::why(&StopReason::Stopped { by: "you".into() }).starts_with("stopped: "));
        assert!(RunEnd::why(&StopReason::Finished).starts_with("done: "));
        let silent = StopReason::NoOutput { ended: Box::new(StopReason::Finished) };
        assert_eq!(RunEnd::why(&silent), "no output: no participant said anything; the chat is complete");
    }
}
