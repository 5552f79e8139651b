//! One row of a batch.

use std::collections::BTreeMap;

use polylogue_core::text::excerpt;
use serde::Serialize;
use serde_json::Value;

/// The longest id of a row, in characters.
pub(super) const LONGEST_ID: usize = 48;
/// The most rows that there may be.
pub(super) const MOST_ROWS: usize = 1_000_000;

/// One run of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The id, unlike all others: 1 to 48 ASCII letters, digits, `-` and `_`.
    pub id: String,
    /// The task; `None` is the team's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Values of variables, which the team has to define.
    pub vars: BTreeMap<String, String>,
}

impl Row {
    pub(super) fn new(id: String) -> Self {
        Self { id, task: None, vars: BTreeMap::new() }
    }

    pub(super) fn set(&mut self, key: &str, value: String) {
        if key == crate::vars::TASK {
            self.task = Some(value);
        } else {
            self.vars.insert(key.to_owned(), value);
        }
    }
}

/// The name of a column, or the id of a row, as errors show it: a file of rows can have any text there.
pub(super) fn shown(name: &str) -> String {
    excerpt(name, LONGEST_ID)
}

/// A value as text, if it stands for one.
pub(super) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}
