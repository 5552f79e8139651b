//! Rows of every combination.

use super::row::{LONGEST_ID, MOST_ROWS, Row, as_text, shown};
use crate::diagnostic::{Diagnostics, Report};
use crate::masking::parse_yaml;
use crate::source::Source;
use crate::yaml::{Data, Entry, Node};

pub(super) fn read(text: &str, file_name: &str) -> Result<Vec<(String, Vec<String>)>, Diagnostics> {
    let source = Source::new(file_name, text);
    let mut report = Report::new(&source);
    let root = parse_yaml(&mut report);
    let lists = root.map(|root| lists(&root, &mut report)).unwrap_or_default();
    if report.failed() { Err(report.finish()) } else { Ok(lists) }
}

fn lists(root: &Node, report: &mut Report<'_>) -> Vec<(String, Vec<String>)> {
    let Data::Map(entries) = &root.data else {
        let hint = "name lists: `role: [poet, thief]`, and `task: [...]` for tasks";
        report.error_with_hint(&root.span, "this is not a mapping of lists", hint);
        return Vec::new();
    };
    let lists: Vec<_> = entries.iter().map(|entry| (entry.key.clone(), values(entry, report))).collect();
    let count = lists.iter().try_fold(1_usize, |count, (_, values)| count.checked_mul(values.len()));
    if entries.is_empty() {
        report.error(&root.span, "there is no list");
    } else if count.is_none_or(|count| count > MOST_ROWS) {
        report.error(&root.span, format!("these are more than {} rows", MOST_ROWS));
    } else if id_len(&lists) > LONGEST_ID {
        report.error(&root.span, "too many lists: the ids of the rows would be too long");
    }
    lists
}

fn values(entry: &Entry, report: &mut Report<'_>) -> Vec<String> {
    let (key, value) = (shown(&entry.key), &entry.value);
    let Data::List(items) = &value.data else {
        let hint = format!("a list of one is one, too: `{key}: [...]`");
        report.error_with_hint(&value.span, format!("`{key}` is not a list"), hint);
        return Vec::new();
    };
    if items.is_empty() {
        report.error(&value.span, format!("`{key}` is empty: there would be no row"));
    }
    let mut values = Vec::new();
    for item in items {
        match as_text(&item.to_value()) {
            Some(value) => values.push(value),
            None => report.error(&item.span, format!("this value of `{key}` is neither a text nor a number")),
        }
    }
    values
}

/// How many digits the places of a list have.
fn digits(values: &[String]) -> usize {
    values.len().to_string().len().max(3)
}

fn id_len(lists: &[(String, Vec<String>)]) -> usize {
    lists.iter().map(|(_, values)| digits(values) + 1).sum::<usize>().saturating_sub(1)
}

/// The row at `index` of the product.
pub(super) fn row(lists: &[(String, Vec<String>)], index: usize) -> Option<Row> {
    let mut rest = index;
    let mut places = Vec::new();
    for (key, values) in lists.iter().rev() {
        let place = rest.checked_rem(values.len())?;
        rest /= values.len();
        places.push((key, place, values));
    }
    if rest > 0 {
        return None;
    }
    places.reverse();
    let ids =
        places.iter().map(|(_, place, values)| format!("{:0width$}", place + 1, width = digits(values)));
    let mut row = Row::new(ids.collect::<Vec<_>>().join("_"));
    for (key, place, values) in places {
        row.set(key, values.get(place)?.clone());
    }
    Some(row)
}
