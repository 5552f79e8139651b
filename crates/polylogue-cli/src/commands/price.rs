//! What a run of a team takes at most, as a table and as a line.

use polylogue_core::{Money, OnLimit};
use polylogue_runtime::{Prepared, bound_of};
use polylogue_team::{Amount, Team, TeamBound};

use super::write_rows;
use crate::error::CliError;
use crate::limit::counted;
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
    [what.to_owned(), number(amount.calls()), number(amount.tokens()), money(amount, bound)]
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "no bound".to_owned(), grouped)
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

fn money(amount: &Amount, bound: &TeamBound) -> String {
    let known = match amount.picodollars().map(u64::try_from) {
        None => return "no bound".to_owned(),
        Some(Ok(picodollars)) => Money { picodollars }.to_string(),
        Some(Err(_)) => "over $18 million".to_owned(),
    };
    match (bound.unpriced.is_empty(), amount.picodollars()) {
        (true, _) => known,
        (false, Some(0)) => "unknown".to_owned(),
        (false, _) => format!("{known} and unknown prices"),
    }
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

/// The line of a run, or of a batch of `rows`, that says what it takes at most: in money, or in tokens where the models cost nothing
/// or a price is unknown. `None` where the script speaks.
pub(super) fn line_of(prepared: &Prepared, rows: Option<u64>) -> Option<String> {
    if prepared.is_scripted() || rows == Some(0) {
        return None;
    }
    let bound = prepared.run().bound().ok()?.times(rows.unwrap_or(1));
    let subject = match rows {
        None => "It takes".to_owned(),
        Some(1) => "The row takes".to_owned(),
        Some(rows) => format!("With rows as long as the task of the team file, {rows} of them take"),
    };
    let (most, calls) = (&bound.at_most, bound.at_most.calls().unwrap_or(u64::MAX));
    if calls == 0 {
        return None;
    }
    let unless = match prepared.run().limits().on_limit {
        OnLimit::Ask => " unless a person raises a limit",
        OnLimit::Stop => "",
    };
    let calls = format!("{}{unless}", counted(calls, "model call"));
    if let Some(why) = no_price(&bound) {
        return Some(in_tokens(&subject, &calls, &bound, &why));
    }
    if !bound.is_finite() {
        return Some(format!("No bound on the cost: {}.", bound.unbounded.join("; ")));
    }
    let retries = match bound.with_retries.picodollars() == most.picodollars() {
        true => String::new(),
        false => format!(", {} if every request is retried", money(&bound.with_retries, &bound)),
    };
    Some(format!(
        "{subject} at most {} in {calls}{retries}; usually about {} (prices of {}; `polylogue check --price` has the parts).",
        money(most, &bound),
        money(&bound.typical, &bound),
        bound.price_date
    ))
}

/// Why the bound says nothing about money; `None` if it does.
fn no_price(bound: &TeamBound) -> Option<String> {
    let unpriced: Vec<String> = bound.unpriced.iter().map(|name| format!("`{name}`")).collect();
    if !unpriced.is_empty() {
        return Some(format!("the price of {} is unknown", unpriced.join(", ")));
    }
    (bound.at_most.picodollars() == Some(0)).then(|| "its models cost nothing".to_owned())
}

/// The line without money.
fn in_tokens(subject: &str, calls: &str, bound: &TeamBound, why: &str) -> String {
    let Some(tokens) = bound.at_most.tokens() else {
        return format!("{subject} at most {calls}. No bound on tokens: {}.", bound.unbounded.join("; "));
    };
    let retries = match bound.with_retries.tokens() {
        Some(most) if most != tokens => format!(", {} if every request is retried", grouped(most)),
        _ => String::new(),
    };
    format!(
        "{subject} at most {} tokens in {calls}{retries}; usually about {} ({why}; `polylogue check --price` has the parts).",
        grouped(tokens),
        number(bound.typical.tokens())
    )
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
