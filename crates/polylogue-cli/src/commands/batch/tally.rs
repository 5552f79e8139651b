//! The result of a batch, as a table.

use std::collections::BTreeMap;
use std::path::Path;

use polylogue_core::{Allowance, Budget, Money, RunOutcome, StopReason, TotalUsage};
use polylogue_team::Rows;
use serde_json::{Map, Value, json};

use super::record::{CacheRecord, SavedRecord};
use super::records::{Entry, Records};
use crate::error::Exit;
use crate::limit::budget_option;
use crate::place::PlaceOption;
use crate::screen::RunState;
use crate::screen::text::folded;
use crate::screen::{cost, prompt_cache, saved, tokens};

/// So many rows that failed, and so many reasons, are shown; the records have all.
const SHOWN: usize = 10;

/// Where the conversations are.
pub(crate) struct Place {
    pub(crate) shown: String,
    /// With which commands find them.
    pub(crate) option: PlaceOption,
}

impl Place {
    pub(crate) fn of_store(path: &Path) -> Self {
        Self { shown: path.display().to_string(), option: PlaceOption::naming_store(path) }
    }
}

/// The outcomes of the rows.
pub(crate) struct Tally {
    /// How many ended how, and what they took.
    states: BTreeMap<RunState, (usize, TotalUsage)>,
    /// How many were over for which reason, the most frequent first.
    reasons: Vec<(String, usize)>,
    /// Those that failed or wait, and why.
    open: Vec<(String, RunState, String)>,
    total: usize,
    /// The budget of the batch, and those that it shares with other processes.
    paying: Vec<Budget>,
}

impl Tally {
    /// Records of other rows that are kept count only toward the budget.
    pub(crate) fn of(records: &Records, rows: &Rows, paying: Vec<Budget>) -> Self {
        let total = rows.len();
        let mut states: BTreeMap<RunState, (usize, TotalUsage)> = BTreeMap::new();
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let mut open = Vec::new();
        let all = (0..total).filter_map(|index| rows.get(index));
        for entry in all.filter_map(|row| records.of(&row.id)) {
            let (count, usage) = states.entry(entry.state).or_default();
            *count += 1;
            add(usage, entry);
            if entry.state.is_settled() {
                *reasons.entry(&entry.reason).or_default() += 1;
            } else {
                open.push((entry.id.clone(), entry.state, entry.reason.clone()));
            }
        }
        open.sort();
        let mut reasons: Vec<(String, usize)> =
            reasons.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Self { states, reasons, open, total, paying }
    }

    fn count(&self) -> usize {
        self.states.values().map(|(count, _)| count).sum()
    }

    /// What all rows took.
    fn usage(&self) -> TotalUsage {
        let mut whole = TotalUsage::default();
        self.states.values().for_each(|(_, usage)| whole.merge(usage));
        whole
    }

    /// The table, who failed, and what to do next.
    pub(crate) fn text(&self, output: &Path, place: &Place) -> String {
        let mut lines = vec![row("", "rows", "calls", "tokens", "cost")];
        let line = |name: &str, count: usize, usage: &TotalUsage| {
            row(name, &count.to_string(), &usage.calls.to_string(), &bare_tokens(usage), &cost(usage))
        };
        let states = self.states.iter();
        lines.extend(states.map(|(state, (count, usage))| line(state.name(), *count, usage)));
        let whole = self.usage();
        match self.total.saturating_sub(self.count()) {
            0 => lines.push(line("all", self.count(), &whole)),
            // What these have used so far is in no record.
            left => {
                lines.push(line("over", self.count(), &whole));
                lines.push(row("not over", &left.to_string(), "", "", ""));
            }
        }
        lines.push(String::new());
        let caches = prompt_cache(&whole).into_iter().chain(saved(&whole));
        lines.extend(caches.map(|fact| format!("{fact}\n")));
        lines.extend(
            self.reasons.iter().take(SHOWN).map(|(why, count)| format!("{count:>8}  {}", folded(why))),
        );
        lines.extend(more(self.reasons.len(), "reasons"));
        for (id, state, why) in self.open.iter().take(SHOWN) {
            lines.push(format!("{:>8}  {id}: {}", state.name(), folded(why)));
        }
        lines.extend(more(self.open.len(), "rows that failed or wait"));
        lines.push(String::new());
        lines.push(format!("records: {} · conversations: {}", output.display(), place.shown));
        lines.extend(self.limited(place));
        lines.extend(self.waiting(place));
        lines.extend(self.next());
        lines.join("\n") + "\n"
    }

    /// The same for programs, with all reasons and all rows that failed or wait.
    pub(crate) fn json(&self, output: &Path, place: &Place) -> Value {
        let known = |usage: &TotalUsage| (usage.unmetered == 0).then(|| usage.tokens());
        let priced = |usage: &TotalUsage| (usage.unpriced == 0).then(|| usage.cost.as_dollars());
        let state = |(state, (rows, usage)): (&RunState, &(usize, TotalUsage))| {
            let facts =
                json!({"rows": rows, "calls": usage.calls, "tokens": known(usage), "cost": priced(usage)});
            (state.name().to_owned(), facts)
        };
        let reasons = self.reasons.iter().map(|(reason, rows)| json!({"reason": reason, "rows": rows}));
        let open = self.open.iter().map(|(id, state, why)| json!({"id": id, "state": state, "reason": why}));
        let whole = self.usage();
        json!({
            "rows": self.total,
            "not_over": self.total.saturating_sub(self.count()),
            "states": self.states.iter().map(state).collect::<Map<_, _>>(),
            "input": whole.input,
            "prompt_cache": CacheRecord::of(&whole.prompt_cache),
            "saved": SavedRecord::of(&whole.saved),
            "reasons": reasons.collect::<Vec<_>>(),
            "failed_or_waiting": open.collect::<Vec<_>>(),
            "budget": self.paying.first().map(|budget| limits(budget.limits())),
            "used": self.paying.first().map(used),
            "reached": self.reached().map(|reason| reason.to_string()),
            "records": output.display().to_string(),
            "conversations": place.shown,
        })
    }

    /// The limit of a budget that is reached.
    fn reached(&self) -> Option<StopReason> {
        self.paying.iter().find_map(Budget::reached)
    }

    /// That rows met limits of their own, if any did.
    fn limited(&self, place: &Place) -> Option<String> {
        let count = |state| self.states.get(&state).map_or(0, |(rows, _)| *rows);
        let rows = match count(RunState::Limit) + count(RunState::Budget) {
            0 => return None,
            1 => "1 row".to_owned(),
            rows => format!("{rows} rows"),
        };
        let resume = place.option.command("resume ID");
        Some(format!(
            "{rows} met their own limit: `{resume}` with a limit, such as `--max-turns 10`, continues one for that much more"
        ))
    }

    /// How people answer, if any are waited for.
    fn waiting(&self, place: &Place) -> Option<String> {
        let answer = place.option.command("resume ID --answer TEXT");
        self.states.contains_key(&RunState::Waiting).then(|| {
            format!("who is waited for answers by `{answer}`, with the `conversation` of the record")
        })
    }

    /// What to do next, if there is anything left.
    fn next(&self) -> Option<String> {
        if let Some(reason) = self.reached().filter(|_| self.count() < self.total) {
            let option = budget_option(&reason);
            let more = option.map_or_else(|| "more".to_owned(), |option| format!("a higher `{option}`"));
            return Some(format!("{reason}: run it again with {more} to continue"));
        }
        let is_open = self.count() < self.total || !self.open.is_empty();
        is_open.then(|| "run it again to continue: finished rows are not run again".to_owned())
    }

    /// The worst of what happened. A row that met its own limits is over, and the batch does not report success for it.
    pub(crate) fn exit(&self) -> Exit {
        let any = |state| self.states.contains_key(&state);
        match self.count() < self.total {
            _ if any(RunState::Failed) => Exit::Failed,
            true => match self.reached().map(|reason| reason.outcome()) {
                Some(RunOutcome::Budget) => Exit::Budget,
                Some(_) => Exit::Limit,
                None => Exit::Stopped,
            },
            false if any(RunState::Waiting) => Exit::Waiting,
            false if any(RunState::Budget) => Exit::Budget,
            false if any(RunState::Limit) => Exit::Limit,
            false if any(RunState::Stopped) => Exit::Stopped,
            false if any(RunState::NoOutput) => Exit::NoOutput,
            false => Exit::Done,
        }
    }
}

/// The limits of a budget, for programs: absent where there is none.
fn limits(most: Allowance) -> Value {
    let Allowance { calls, tokens, cost, time_ms } = most;
    let given = [
        ("cost", cost.map(|cost| cost.as_dollars().into())),
        ("tokens", tokens.map(Value::from)),
        ("calls", calls.map(Value::from)),
        ("time_ms", time_ms.map(Value::from)),
    ];
    given.into_iter().filter_map(|(name, most)| Some((name.to_owned(), most?))).collect()
}

/// What counts of a budget, for programs.
fn used(budget: &Budget) -> Value {
    let used = budget.used();
    json!({"cost": used.cost.as_dollars(), "tokens": used.tokens, "calls": used.calls, "time_ms": budget.used_ms()})
}

fn row(name: &str, rows: &str, calls: &str, tokens: &str, cost: &str) -> String {
    format!("{name:<8}  {rows:>8}  {calls:>9}  {tokens:>12}  {cost}").trim_end().to_owned()
}

fn more(count: usize, what: &str) -> Option<String> {
    (count > SHOWN).then(|| format!("          and {} more {what}: see the records", count - SHOWN))
}

/// Without the word, which stands above.
fn bare_tokens(usage: &TotalUsage) -> String {
    let text = tokens(usage);
    text.trim_start_matches("tokens ").trim_end_matches(" tokens").to_owned()
}

fn add(usage: &mut TotalUsage, entry: &Entry) {
    let input = entry.input.unwrap_or_default();
    usage.merge(&TotalUsage {
        calls: entry.calls,
        input,
        output: entry.tokens.unwrap_or_default().saturating_sub(input),
        // How many calls of the row are unknown is not kept: that any is is what counts.
        unmetered: u64::from(entry.tokens.is_none()),
        unpriced: u64::from(entry.cost.is_none()),
        cost: Money::dollars(entry.cost.unwrap_or_default()),
        prompt_cache: entry.prompt_cache,
        saved: entry.saved,
        ..TotalUsage::default()
    });
}
