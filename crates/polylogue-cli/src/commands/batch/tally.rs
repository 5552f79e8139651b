//! What came of a batch, as a table.

use std::collections::BTreeMap;
use std::path::Path;

use polylogue::Spent;

use super::record::State;
use super::records::{Entry, Records};
use crate::screen::text::folded;
use crate::screen::{cost, tokens};
use crate::trouble::Exit;

/// So many rows that failed, and so many reasons, are shown; the records have all.
const SHOWN: usize = 10;

/// What came of the rows.
pub(super) struct Tally {
    /// How many ended how, and what they took.
    states: BTreeMap<State, (usize, Spent)>,
    /// How many were over for which reason, the most frequent first.
    reasons: Vec<(String, usize)>,
    /// Those that failed or wait, and why.
    open: Vec<(String, State, String)>,
    total: usize,
    /// Whether the money of all is spent.
    is_spent: bool,
}

impl Tally {
    pub(super) fn of(records: &Records, total: usize, is_spent: bool) -> Self {
        let mut states: BTreeMap<State, (usize, Spent)> = BTreeMap::new();
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let mut open = Vec::new();
        for entry in records.all() {
            let (count, spent) = states.entry(entry.state).or_default();
            *count += 1;
            add(spent, entry);
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
        Self { states, reasons, open, total, is_spent }
    }

    fn count(&self) -> usize {
        self.states.values().map(|(count, _)| count).sum()
    }

    /// The table, who failed, and what to do next.
    pub(super) fn text(&self, output: &Path, store: &Path) -> String {
        let mut lines = vec![row("", "rows", "calls", "tokens", "cost")];
        let line = |name: &str, count: usize, spent: &Spent| {
            row(name, &count.to_string(), &spent.calls.to_string(), &bare_tokens(spent), &cost(spent))
        };
        let mut whole = Spent::default();
        for (state, (count, spent)) in &self.states {
            lines.push(line(state.name(), *count, spent));
            whole = sum(whole, spent);
        }
        let left = self.total.saturating_sub(self.count());
        if left > 0 {
            lines.push(row("not over", &left.to_string(), "", "", ""));
        }
        lines.push(line("all", self.total.max(self.count()), &whole));
        lines.push(String::new());
        lines.extend(
            self.reasons.iter().take(SHOWN).map(|(why, count)| format!("{count:>8}  {}", folded(why))),
        );
        lines.extend(more(self.reasons.len(), "reasons"));
        for (id, state, why) in self.open.iter().take(SHOWN) {
            lines.push(format!("{:>8}  {id}: {}", state.name(), folded(why)));
        }
        lines.extend(more(self.open.len(), "rows that failed or wait"));
        lines.push(String::new());
        lines.push(format!("records: {} · conversations: {}", output.display(), store.display()));
        lines.extend(self.next().map(str::to_owned));
        lines.join("\n") + "\n"
    }

    /// What to do next, if there is anything left.
    fn next(&self) -> Option<&'static str> {
        if self.is_spent && self.count() < self.total {
            return Some("the budget is spent: run it again with more to go on");
        }
        let is_open = self.count() < self.total || !self.open.is_empty();
        is_open.then_some("run it again to go on: what is over is not run again")
    }

    /// That rows met their own limits is an end like others.
    pub(super) fn exit(&self) -> Exit {
        let any = |state| self.states.contains_key(&state);
        match self.count() < self.total {
            _ if any(State::Failed) => Exit::Failed,
            true if self.is_spent => Exit::Budget,
            true => Exit::Stopped,
            false if any(State::Waiting) => Exit::Waiting,
            false => Exit::Done,
        }
    }
}

fn row(name: &str, rows: &str, calls: &str, tokens: &str, cost: &str) -> String {
    format!("{name:<8}  {rows:>8}  {calls:>9}  {tokens:>12}  {cost}").trim_end().to_owned()
}

fn more(count: usize, what: &str) -> Option<String> {
    (count > SHOWN).then(|| format!("          and {} more {what}: see the records", count - SHOWN))
}

/// Without the word, which stands above.
fn bare_tokens(spent: &Spent) -> String {
    let text = tokens(spent);
    text.trim_start_matches("tokens ").trim_end_matches(" tokens").to_owned()
}

fn add(spent: &mut Spent, entry: &Entry) {
    spent.calls += entry.calls;
    // How many calls of the row are unknown is not kept: that any is is what counts.
    spent.unmetered += u64::from(entry.tokens.is_none());
    spent.unpriced += u64::from(entry.cost.is_none());
    spent.input += entry.tokens.unwrap_or_default();
    spent.cost += polylogue::Money::dollars(entry.cost.unwrap_or_default());
}

fn sum(whole: Spent, part: &Spent) -> Spent {
    Spent {
        calls: whole.calls + part.calls,
        input: whole.input + part.input,
        unmetered: whole.unmetered + part.unmetered,
        cost: whole.cost + part.cost,
        unpriced: whole.unpriced + part.unpriced,
        ..whole
    }
}
