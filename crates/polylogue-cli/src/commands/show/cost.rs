//! `show --cost`: what a conversation cost, by chat, agent and purpose.

use std::ops::Range;
use std::sync::Arc;

use polylogue::runs::report::{Purpose, Report, Row};
use polylogue_core::{Event, Name, PrefixChange, TotalUsage};
use serde_json::json;

use crate::screen::text::Line;
use crate::screen::{
    OutputStyle, Sanitized, Size, Style, cached_share, cost, grouped, prompt_savings, saved, uncertain,
};

/// One line of the table, or its head.
type Cells = [String; COLUMNS];

const COLUMNS: usize = 12;

/// The columns; `thinking` is a part of the tokens. The chat is shown only if there are several, `from cache` only if a cache of replies
/// had some, tokens only if any are known, `thinking` only if models did, `cached` and `saved` only if a prompt cache was used, and
/// `uncertain` only if a call had no reply.
const HEAD: [&str; COLUMNS] = [
    "agent", "chat", "for", "model", "calls", "from cache", "tokens", "thinking", "cost", "cached", "saved",
    "uncertain",
];

/// Those of numbers, which end below each other.
const NUMBERS: Range<usize> = 4..11;

/// Shown in a column for what is not known.
const UNKNOWN: &str = "unknown";

/// What all runs of a conversation cost: a line for each chat, agent, purpose and model, and the sum.
pub(crate) fn shown(events: &[Event], as_json: bool, looks: OutputStyle) -> serde_json::Result<Sanitized> {
    let events: Vec<Arc<Event>> = events.iter().cloned().map(Arc::new).collect();
    let report = Report::of_all_runs(&events);
    if as_json {
        let line = |row: &Row| {
            let Row { chat, who, model, purpose, usage } = row;
            let chat = chat.as_str();
            Sanitized::json(
                &json!({"chat": chat, "agent": who, "purpose": purpose, "model": model, "usage": usage}),
            )
        };
        let total = Sanitized::json(&json!({"total": report.usage}));
        return report.rows.iter().map(line).chain(std::iter::once(total)).collect();
    }
    let has_tokens = has_tokens(&report.usage);
    let mut rows: Vec<Cells> = vec![HEAD.map(str::to_owned)];
    rows.extend(report.rows.iter().map(|row| {
        let labels = [row.who.as_str(), row.chat.as_str(), words(row.purpose), &row.model];
        cells(labels, &row.usage, has_tokens)
    }));
    rows.push(cells(["total", "", "", ""], &report.usage, has_tokens));
    let mut lines = table(&rows);
    if !has_tokens {
        lines.push(Line::new(NO_TOKENS, Style::DIM));
    }
    lines.extend(saved(&report.usage).map(|saved| Line::new(&saved, Style::PLAIN)));
    let change = |(who, change): &(Name, PrefixChange)| Line::new(&format!("{who}: {change}"), Style::PLAIN);
    lines.extend(report.prefix_changes.iter().map(change));
    if looks.terminal {
        lines = Size::of_terminal().table_rows(lines);
    }
    Ok(Sanitized::lines(&lines, looks.color))
}

const fn words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Speaking => "turns",
        Purpose::Private => "private turns",
        Purpose::Nested => "nested chats",
        Purpose::Compaction => "compaction",
    }
}

/// Below a table of calls none of which has a known number of tokens.
const NO_TOKENS: &str =
    "tokens unknown: the replies are from a script, or from a server that reports no usage";

/// Whether there is a number of tokens to show.
const fn has_tokens(usage: &TotalUsage) -> bool {
    usage.unmetered == 0 || usage.tokens() > 0
}

fn cells([who, chat, purpose, model]: [&str; 4], usage: &TotalUsage, has_tokens: bool) -> Cells {
    let calls = grouped(usage.calls);
    let stored = if usage.saved.is_nothing() { String::new() } else { grouped(usage.saved.calls) };
    let tokens = if has_tokens { tokens(usage) } else { String::new() };
    let thinking = if usage.reasoning > 0 { grouped(usage.reasoning) } else { String::new() };
    let cost = match usage.unpriced > 0 && usage.cost.picodollars == 0 {
        true => UNKNOWN.to_owned(),
        false => cost(usage),
    };
    let [cached, saved, uncertain] =
        [cached_share(usage), prompt_savings(usage), uncertain(usage)].map(Option::unwrap_or_default);
    let [who, chat, purpose, model] = [who, chat, purpose, model].map(str::to_owned);
    [who, chat, purpose, model, calls, stored, tokens, thinking, cost, cached, saved, uncertain]
}

/// The number of tokens, without the word of the column's head.
fn tokens(usage: &TotalUsage) -> String {
    match (usage.unmetered, usage.tokens()) {
        (0, tokens) => grouped(tokens),
        (_, 0) => UNKNOWN.to_owned(),
        (_, tokens) => format!("at least {}", grouped(tokens)),
    }
}

/// The rows in columns; the first is their head. Columns that are empty below it are left out.
fn table(rows: &[Cells]) -> Vec<Line> {
    let mut widths = [0; COLUMNS];
    for (nth, row) in rows.iter().enumerate().rev() {
        for (width, cell) in widths.iter_mut().zip(row) {
            let own = Line::new(cell, Style::PLAIN).width();
            *width = if nth == 0 && *width == 0 { 0 } else { (*width).max(own) };
        }
    }
    let line = |(nth, row): (usize, &Cells)| {
        let style = if nth == 0 { Style::BOLD } else { Style::PLAIN };
        let mut line = Line::default();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate().filter(|(_, (_, width))| *width > 0)
        {
            let cell = Line::new(cell, style);
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            let [before, after] = if NUMBERS.contains(&column) { [&*blanks, ""] } else { ["", &*blanks] };
            line.push(before, Style::PLAIN);
            line.append(&cell);
            line.push(&format!("{after}  "), Style::PLAIN);
        }
        line.trimmed()
    };
    rows.iter().enumerate().map(line).collect()
}
