//! The table of results, of comma-separated values (RFC 4180) or with tabs: written from the records whenever a batch ends.
//!
//! A batch continues from its records, which are JSON lines next to the table, so that a table that was edited or cut off costs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use csv::{IntoInnerError, WriterBuilder};
use polylogue_core::text::of_json;
use polylogue_files::Draft;
use serde::Deserialize;
use serde_json::Value;

use crate::error::CliError;

/// The columns after those of the input. One whose name is also a variable begins with `result_`.
const RESULTS: [&str; 10] =
    ["state", "reason", "hint", "summary", "cut", "calls", "tokens", "input", "cost", "conversation"];

/// A table of results.
pub(super) struct Table {
    path: PathBuf,
    delimiter: u8,
}

impl Table {
    /// The table that the output `path` is; `None` for records alone.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let delimiter = match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => b',',
            "tsv" => b'\t',
            _ => return None,
        };
        Some(Self { path: path.to_owned(), delimiter })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the records from which it is written.
    pub(super) fn records(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".jsonl");
        name.into()
    }

    /// Refuses to replace a file that no batch has written, such as the rows themselves.
    pub(super) fn admit(&self) -> Result<(), CliError> {
        let (path, records) = (self.path.display(), self.records());
        if !self.path.exists() || records.exists() {
            return Ok(());
        }
        let what = format!("`{path}` would be replaced, and has no records `{}`", records.display());
        Err(CliError::usage(what).hint("choose another file with `--output`"))
    }

    /// Writes `rows`, read twice, below the names of the columns: those of the input, in the order of `columns`, and those of
    /// results.
    pub(super) fn write(
        &self,
        columns: &[String],
        rows: impl Iterator<Item = io::Result<ResultRow>> + Clone,
    ) -> io::Result<()> {
        let inputs = inputs(columns, rows.clone())?;
        let mut out = WriterBuilder::new().delimiter(self.delimiter).from_writer(Draft::of(&self.path)?);
        let result = |name: &str| {
            let is_taken = inputs.iter().any(|input| input == name);
            if is_taken { format!("result_{name}") } else { name.to_owned() }
        };
        out.write_record(inputs.iter().cloned().chain(RESULTS.map(result)))?;
        for row in rows {
            let row = row?;
            out.write_record(inputs.iter().map(|name| inert(row.input(name))).chain(row.results()))?;
        }
        out.into_inner().map_err(IntoInnerError::into_error)?.put_durably()
    }
}

/// The columns of the input: `columns`, with `id` first if it has none, and those that only kept records of other rows have.
fn inputs(columns: &[String], rows: impl Iterator<Item = io::Result<ResultRow>>) -> io::Result<Vec<String>> {
    let mut names = columns.to_vec();
    if !names.iter().any(|name| name == "id") {
        names.insert(0, "id".to_owned());
    }
    let mut others = BTreeSet::new();
    for row in rows {
        let row = row?;
        others.extend(row.task.map(|_| "task".to_owned()));
        others.extend(row.vars.into_keys());
    }
    others.retain(|name| !names.contains(name));
    names.extend(others);
    Ok(names)
}

/// What the table has of a record.
#[derive(Deserialize)]
pub(super) struct ResultRow {
    id: String,
    task: Option<String>,
    vars: BTreeMap<String, String>,
    state: String,
    reason: String,
    hint: Option<String>,
    summary: Value,
    cut: Option<Value>,
    calls: u64,
    tokens: Option<u64>,
    input: Option<u64>,
    cost: Option<f64>,
    conversation: String,
}

impl ResultRow {
    /// The cell of the input's column `name`.
    fn input(&self, name: &str) -> &str {
        match name {
            "id" => &self.id,
            "task" => self.task.as_deref().unwrap_or_default(),
            name => self.vars.get(name).map_or("", String::as_str),
        }
    }

    /// The cells of [`RESULTS`]; empty where something is unknown.
    fn results(&self) -> [String; RESULTS.len()] {
        let count = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        [
            self.state.clone(),
            inert(&self.reason),
            inert(self.hint.as_deref().unwrap_or_default()),
            inert(&of_json(&self.summary)),
            self.cut.as_ref().map(of_json).unwrap_or_default(),
            self.calls.to_string(),
            count(self.tokens),
            count(self.input),
            self.cost.map(|dollars| dollars.to_string()).unwrap_or_default(),
            self.conversation.clone(),
        ]
    }
}

/// `text`, with a `'` before what a spreadsheet would compute as a formula: models, and authors of what they have read, must not run
/// formulas in the spreadsheet of a reader. Numbers stay.
fn inert(text: &str) -> String {
    let is_number = |rest: &str| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','))
    };
    let is_formula = match text.strip_prefix(['+', '-']) {
        Some(rest) => !is_number(rest),
        None => text.starts_with(['=', '@', '\t', '\r']),
    };
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(id: &str, vars: &Value, summary: &Value) -> Value {
        json!({
            "id": id, "vars": vars, "state": "done", "reason": "all have spoken", "summary": summary, "calls": 2, "tokens": 30,
            "input": 20, "cost": 0.000_000_5, "conversation": "c", "messages": [], "team": "t",
        })
    }

    fn written(name: &str, columns: &[&str], rows: &[Value]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let table = Table::at(&folder.path().join(name)).unwrap();
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let rows = rows.iter().map(|row| ResultRow::deserialize(row).map_err(io::Error::other));
        table.write(&columns, rows).unwrap();
        std::fs::read_to_string(table.path()).unwrap()
    }

    #[test]
    fn columns_are_those_of_the_input_and_then_those_of_results() {
        let rows = [
            row("a", &json!({"mood": "sad, very", "reason": "r"}), &json!("Two\nlines")),
            row("b", &json!({"mood": "glad", "extra": "e"}), &json!({"b": [1], "a": "\"x\""})),
        ];
        assert_eq!(
            written("o.csv", &["mood", "id", "reason"], &rows),
            "mood,id,reason,extra,state,result_reason,hint,summary,cut,calls,tokens,input,cost,conversation\n\
             \"sad, very\",a,r,,done,all have spoken,,\"Two\nlines\",,2,30,20,0.0000005,c\n\
             glad,b,,e,done,all have spoken,,\"{\"\"b\"\":[1],\"\"a\"\":\"\"\\\"\"x\\\"\"\"\"}\",,2,30,20,0.0000005,c\n"
        );
        let mut unknown = row("a", &json!({}), &json!("x"));
        unknown["task"] = "Do it".into();
        unknown["cost"] = Value::Null;
        unknown["cut"] = "length".into();
        assert_eq!(
            written("o.TSV", &["task"], &[unknown]),
            "id\ttask\tstate\treason\thint\tsummary\tcut\tcalls\ttokens\tinput\tcost\tconversation\n\
             a\tDo it\tdone\tall have spoken\t\tx\tlength\t2\t30\t20\t\tc\n"
        );
    }

    #[test]
    fn no_cell_is_a_formula() {
        for formula in ["=1+1", "@SUM(A1)", "+A1", "-A1", "- one\n- two", "-", "+1-1", "\t=1", "\r=1"] {
            assert_eq!(inert(formula), format!("'{formula}"));
        }
        for plain in ["", "one = two", "-5", "+3.25", "-1,000.5", "'=1", "a@b"] {
            assert_eq!(inert(plain), plain);
        }
    }

    #[test]
    fn only_csv_and_tsv_are_tables() {
        let is_table = |name: &str| Table::at(Path::new(name)).is_some();
        assert_eq!(
            ["a.csv", "a.TSV", "a.jsonl", "csv", "a"].map(is_table),
            [true, true, false, false, false]
        );
    }
}
