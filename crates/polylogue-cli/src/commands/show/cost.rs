//! `show --cost`: what a conversation cost, by agent and purpose.

use std::sync::Arc;

use polylogue::runs::report::{Purpose, Report};
use polylogue_core::{Event, TotalUsage};
use serde_json::json;

use crate::screen::text::Line;
use crate::screen::{Sanitized, Style, cost, tokens};

/// One line of the table, or its head.
type Row = [String; 6];

/// What all runs of a conversation cost: a line for each agent, purpose and model, and the sum.
pub(super) fn shown(events: &[Event], as_json: bool, color: bool) -> serde_json::Result<Sanitized> {
    let events: Vec<Arc<Event>> = events.iter().cloned().map(Arc::new).collect();
    let report = Report::of_all(&events);
    let mut parts: Vec<(String, Purpose, Arc<str>)> = Vec::new();
    for row in &report.rows {
        let part = (row.who.to_string(), row.purpose, Arc::clone(&row.model));
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    let spent_on = |(who, purpose, model): &(String, Purpose, Arc<str>)| {
        report.usage_of(|row| row.who.as_str() == who && row.purpose == *purpose && row.model == *model)
    };
    if as_json {
        let line = |part: &(String, Purpose, Arc<str>)| {
            let (who, purpose, model) = part;
            Sanitized::json(
                &json!({"agent": who, "purpose": purpose, "model": model, "spent": spent_on(part)}),
            )
        };
        let total = Sanitized::json(&json!({"total": report.spent}));
        return parts.iter().map(line).chain(std::iter::once(total)).collect();
    }
    let mut rows: Vec<Row> = vec![["agent", "for", "model", "calls", "tokens", "cost"].map(str::to_owned)];
    rows.extend(parts.iter().map(|part| row(&part.0, words(part.1), &part.2, &spent_on(part))));
    rows.push(row("total", "", "", &report.spent));
    Ok(Sanitized::lines(&table(&rows), color))
}

const fn words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Speaking => "speaking",
        Purpose::Private => "choosing, summing up",
        Purpose::Nested => "chats within",
    }
}

fn row(who: &str, purpose: &str, model: &str, spent: &TotalUsage) -> Row {
    let calls = (spent.calls + spent.saved.calls).to_string();
    [who.to_owned(), purpose.to_owned(), model.to_owned(), calls, tokens(spent), cost(spent)]
}

/// The rows in columns; the first is their head.
fn table(rows: &[Row]) -> Vec<Line> {
    let mut widths = [0; 6];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(Line::new(cell, Style::PLAIN).width());
        }
    }
    let line = |(nth, row): (usize, &Row)| {
        let style = if nth == 0 { Style::BOLD } else { Style::PLAIN };
        let mut line = Line::default();
        for (cell, width) in row.iter().zip(widths) {
            let cell = Line::new(cell, style);
            let blanks = width.saturating_sub(cell.width()) + 2;
            line.append(&cell);
            line.push(&" ".repeat(blanks), Style::PLAIN);
        }
        line.trimmed()
    };
    rows.iter().enumerate().map(line).collect()
}
