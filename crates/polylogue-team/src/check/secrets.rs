//! Secrets, which no diagnostic shows.

use crate::codes;
use crate::diagnostic::Report;
use crate::secret::{contains_key, is_secret_name, looks_like_key};
use crate::text::is_variable;
use crate::yaml::{Data, Entry, Node};

/// Hides whatever may be a secret, wherever it is: also in parts of the file that cannot be read.
pub(super) fn hide(root: &Node, report: &mut Report<'_>) {
    hide_within(root, "", report);
}

fn hide_within(node: &Node, key: &str, report: &mut Report<'_>) {
    match &node.data {
        Data::Text(text) if looks_like_key(text) => report.hide(&node.span),
        Data::List(items) => items.iter().for_each(|item| hide_within(item, key, report)),
        Data::Map(entries) => {
            for entry in entries {
                if is_secret(entry, key) {
                    report.hide(&entry.value.span);
                }
                hide_within(&entry.value, &entry.key, report);
            }
        }
        _ => {}
    }
}

/// Whether an entry of the mapping at `within` holds a secret by its key.
fn is_secret(Entry { key, value, .. }: &Entry, within: &str) -> bool {
    let text = value.text().unwrap_or_default();
    match key.as_str() {
        // Where the name of a variable belongs, any other text may be a key.
        "key" | "env" if !matches!(value.data, Data::Map(_)) => !is_variable(text),
        key => {
            let is_scalar = !matches!(value.data, Data::Map(_));
            matches!(within, "headers" | "env") && is_scalar && is_secret_name(key) && !text.contains("${")
        }
    }
}

/// Warns of texts that contain a key. Where a key belongs by its name, the reader reports it.
pub(super) fn check(node: &Node, report: &mut Report<'_>) {
    match &node.data {
        Data::Text(text) if contains_key(text) => {
            report.hide(&node.span);
            let hint = "remove it, revoke it, and set keys as environment variables";
            report.warning(codes::SECRET, &node.span, "this text contains what looks like an API key", hint);
        }
        Data::List(items) => items.iter().for_each(|item| check(item, report)),
        Data::Map(entries) => entries.iter().for_each(|entry| check(&entry.value, report)),
        _ => {}
    }
}
