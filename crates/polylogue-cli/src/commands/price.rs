//! What a run of a team takes at most, as a table and as a line.

use polylogue_core::{BoundSummary, Money};
use polylogue_runtime::{Prepared, bound_of};
use polylogue_team::{Amount, Team, TeamBound};

use super::write_rows;
use crate::error::CliError;
use crate::screen::Sanitized;
use crate::user_prices;

/// The most rows of agents. Teams with more print the most expensive ones.
const ROWS: usize = 30;

/// What a run of `team` takes at most, with `model` for all agents if it is given.
pub(super) fn of(team: &Team, model: Option<&str>) -> Result<TeamBound, CliError> {
    let mut team = team.clone();
    if let Some(model) = model {
        team.use_model(model);
    }
    let missing = team.answering_without_model();
    if let Some(who) = missing.first() {
        let what = format!("the price is unknown: `{who}` has no model");
        return Err(
            CliError::usage(what).hint("name one: `polylogue check --price --model PROVIDER:MODEL TEAM`")
        );
    }
    Ok(bound_of(&team, &team.limits(), &user_prices::read()?)?)
}

/// Prints `bound` as a table, with what it rests on.
pub(super) fn print(bound: &TeamBound) -> Result<(), CliError> {
    let mut rows = vec![["a run takes", "calls", "tokens", "money"].map(str::to_owned)];
    rows.push(row("at most", &bound.at_most, bound));
    if bound.with_retries != bound.at_most {
        rows.push(row("at most, with all retries", &bound.with_retries, bound));
    }
    rows.push(row("usually, about", &bound.typical, bound));
    if bound.rows.len() > 1 {
        rows.push(["of this, at most", "", "", ""].map(str::to_owned));
        for part in bound.rows.iter().take(ROWS) {
            rows.push(row(&format!("  {} in {}", part.agent, part.chat), &part.at_most, bound));
        }
    }
    let lines = aligned(&rows).into_iter().chain(notes(bound));
    lines.map(|line| format!("  {line}")).try_for_each(|line| write_rows(&Sanitized::row(&line), false))
}

fn notes(bound: &TeamBound) -> Vec<String> {
    let mut notes: Vec<String> =
        bound.unbounded.iter().map(|why| format!("no bound on tokens: {why}")).collect();
    notes.extend(bound.open_loops.iter().take(ROWS).map(ToString::to_string));
    if let Some(more) = bound.open_loops.len().checked_sub(ROWS).filter(|more| *more > 0) {
        notes.push(format!("and {more} more loops without a limit of their own; `--json` lists all"));
    }
    if bound.rows.len() > ROWS {
        notes.push(format!("and {} more agents; `--json` lists all", bound.rows.len() - ROWS));
    }
    let unpriced: Vec<String> = bound.unpriced.iter().map(|name| format!("`{name}`")).collect();
    if !unpriced.is_empty() {
        notes.push(format!("the price of {} is unknown: set it in `prices`", unpriced.join(", ")));
    }
    notes.push(format!("prices of {}, without discounts for caches", bound.price_date));
    notes.push(format!("assumed: {}", bound.rests_on.join("; ")));
    notes
}

fn row(what: &str, amount: &Amount, bound: &TeamBound) -> [String; 4] {
    [what.to_owned(), amount.calls_in_words(), amount.tokens_in_words(), bound.money(amount)]
}

/// The rows with columns of equal width: the first to the left, numbers to the right.
fn aligned(rows: &[[String; 4]]) -> Vec<String> {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let [first, calls, tokens, cost] = [width(0), width(1), width(2), width(3)];
    let line = |[what, a, b, c]: &[String; 4]| {
        format!("{what:first$}  {a:>calls$}  {b:>tokens$}  {c:>cost$}").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Where what is in the line of a run is explained.
const PARTS: &str = "`polylogue check --price` has the parts.";

/// The line that says before a run of the team `name` what `ends` it at the latest, and what it takes at most until then. The turn
/// in which it reaches one of `last` is its last one.
pub(crate) fn line_of_run(name: &str, ends: &[String], bound: &BoundSummary, last: &[String]) -> String {
    let ends = if ends.is_empty() { String::new() } else { format!("{} and ", ends.join(", ")) };
    let most = bound.text.strip_prefix("at most ").unwrap_or(&bound.text);
    let last = match last.is_empty() {
        true => String::new(),
        false => format!(" The turn that reaches {} is the last one.", last.join(" or ")),
    };
    format!("{name}: at most {ends}{most}.{last} {PARTS}")
}

/// The same before the reply to the first message of a chat. `None` where only the calls have a bound: a chat with one model has no team
/// file in which a limit on its replies could be set.
pub(crate) fn line_of_message(bound: &BoundSummary) -> Option<String> {
    bound.tokens.map(|_| format!("This message takes {}.", bound.text))
}

/// The same before a batch of `rows`, which its `budget` can end before. `None` where the script speaks.
pub(super) fn line_of_rows(prepared: &Prepared, rows: u64, budget: Option<Money>) -> Option<String> {
    let bound = prepared.run().bound_summary(rows).filter(|_| rows > 0)?;
    let (subject, takes) = match rows {
        1 => ("1 row".to_owned(), "takes"),
        rows => (format!("{rows} rows, each no longer than the task of the team file,"), "take"),
    };
    let ends = |budget: &Money| bound.cost.is_some_and(|most| *budget < most);
    let text = &bound.text;
    Some(match budget.filter(ends) {
        Some(budget) => format!("Without the budget of {budget}, {subject} would take {text}. {PARTS}"),
        None => format!("{subject} {takes} {text}. {PARTS}"),
    })
}
