//! Secrets, which no diagnostic shows.

use crate::codes;
use crate::diagnostic::Report;
use crate::masking::parse_yaml;
use crate::secret::{
    contains_credential, contains_key, is_curl, is_secret_name, is_secret_option, is_secret_value,
    is_user_option, is_user_with_password, looks_like_key,
};
use crate::source::Source;
use crate::text::is_variable;
use crate::yaml::{Data, Entry, Node};

/// Hides whatever may be a secret, wherever it is: also in parts of the file that cannot be read.
pub(super) fn hide(root: &Node, report: &mut Report<'_>) {
    hide_within(root, "", report);
}

/// The same in a text whose mistakes were reported when it was read.
pub(super) fn hide_in<'s>(source: &'s Source<'s>) {
    if let Some(root) = parse_yaml(&mut Report::new(source)) {
        hide(&root, &mut Report::new(source));
    }
}

fn hide_within(node: &Node, key: &str, report: &mut Report<'_>) {
    match &node.data {
        Data::Text(text) if looks_like_key(text) || contains_credential(text) => report.hide(&node.span),
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
            let is_filled = match within {
                "headers" | "env" => text.contains("${"),
                "query" => text.contains('{'),
                _ => return false,
            };
            is_scalar && is_secret_name(key) && !is_filled
        }
    }
}

/// Warns of texts that contain a key. Where a key belongs by its name, the reader reports it, but for what an HTTP call sends and for variables.
pub(super) fn check(root: &Node, report: &mut Report<'_>) {
    check_within(root, report);
    let is_named = |key: &str, text: &str| is_secret_name(key) && is_secret_value(text);
    for call in root.get("calls").items() {
        for Entry { key, value, .. } in ["query", "json"].iter().flat_map(|part| call.get(part).entries()) {
            if value.text().is_some_and(|text| is_named(key, text) || looks_like_key(text)) {
                warn(value, report);
            }
        }
    }
    for Entry { key, value, .. } in root.get("vars").entries() {
        if value.text().is_some_and(|text| is_named(key, text)) {
            warn(value, report);
        }
    }
}

fn check_within(node: &Node, report: &mut Report<'_>) {
    match &node.data {
        Data::Text(text) if contains_key(text) || contains_credential(text) => warn(node, report),
        Data::List(items) => {
            items.iter().for_each(|item| check_within(item, report));
            // Such as `--token` and the word after it.
            let has_user = items.iter().any(|item| item.text().is_some_and(is_curl));
            let is_given = |word: &str, next: &str| {
                is_secret_option(word) && is_secret_value(next)
                    || has_user && is_user_option(word) && is_user_with_password(next)
            };
            for (one, next) in items.iter().zip(items.iter().skip(1)) {
                if one.text().zip(next.text()).is_some_and(|(word, next)| is_given(word, next)) {
                    warn(next, report);
                }
            }
        }
        Data::Map(entries) => entries.iter().for_each(|entry| check_within(&entry.value, report)),
        _ => {}
    }
}

fn warn(node: &Node, report: &mut Report<'_>) {
    report.hide(&node.span);
    let hint = "remove it, revoke it, and set keys as environment variables";
    report.warning(
        codes::SECRET,
        &node.span,
        "this text contains what looks like an API key or a password",
        hint,
    );
}
