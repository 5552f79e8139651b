//! What a team is run over, row by row: tasks, and values of its variables.

mod cross;
mod csv;
mod lines;
mod row;

use std::collections::BTreeMap;

use self::lines::Lines;
pub use self::row::Row;
use self::row::{LONGEST_ID, MOST_ROWS};
use crate::diagnostic::Diagnostics;

/// The rows over which a team is run.
///
/// ```
/// use polylogue_team::Rows;
/// let text = "role: [poet, thief]\ntask: [write, steal, rest]";
/// let rows = Rows::cross(text, "roles.yaml")?;
/// let row = rows.get(4).unwrap();
/// assert_eq!((rows.len(), &*row.id), (6, "002_002"));
/// assert_eq!((&*row.vars["role"], row.task.as_deref()), ("thief", Some("steal")));
///
/// let text = "{\"task\": \"write\", \"role\": \"poet\"}\n{\"id\": \"b\", \"task\": \"steal\", \"role\": \"thief\"}\n";
/// let rows = Rows::over(text, "tasks.jsonl")?;
/// assert_eq!([0, 1].map(|index| rows.get(index).unwrap().id), ["00001", "b"]);
/// # Ok::<(), polylogue_team::Diagnostics>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rows(Source);

#[derive(Debug, Clone)]
enum Source {
    /// As they were given.
    Lines(Lines),
    /// Made when they are asked for: a product is much larger than its factors.
    Product(Vec<(String, Vec<String>)>),
}

impl Rows {
    /// Maximum length of the id of a row, in characters.
    pub const LONGEST_ID: usize = LONGEST_ID;
    /// Maximum number of rows.
    pub const MOST: usize = MOST_ROWS;

    /// Reads the rows of a text in JSON lines: an object a line, whose `task` is the task, whose `id` is what the row is called
    /// (default: the number of the line in five digits), and whose other keys are variables. A number stands for its digits.
    /// Blank lines are none. Errors call the text `file_name`.
    ///
    /// If `file_name` ends in `.csv` or `.tsv`, the text is a table of values separated by commas or tabs. Its first line
    /// names the columns: `task`, `id` and variables. An empty cell sets nothing.
    ///
    /// # Errors
    /// Everything that is wrong with the text, all at once: no JSON, no object, a value that is not text, a row with too many
    /// cells, an id that is illegal or there twice, no row at all.
    pub fn over(text: &str, file_name: &str) -> Result<Self, Diagnostics> {
        let ending = file_name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let rows = match ending.as_deref() {
            Some("csv") => csv::read(text, file_name, b','),
            Some("tsv") => csv::read(text, file_name, b'\t'),
            _ => lines::read(text, file_name),
        };
        rows.map(|rows| Self(Source::Lines(rows)))
    }

    /// Returns the product of the lists in a text of YAML (or JSON): each value of the first key with each of the second and so
    /// on, the last going fastest. `task` is the task, other keys are variables. A row is called by its place in each list,
    /// counted from 1 in at least three digits, such as `001_012_003`: so CAMEL calls the conversations of its roles.
    ///
    /// # Errors
    /// Everything that is wrong with the text, all at once: no mapping of lists of texts, an empty list, a key that is there
    /// twice; when there would be more than [`MOST`](Self::MOST).
    pub fn cross(text: &str, file_name: &str) -> Result<Self, Diagnostics> {
        cross::read(text, file_name).map(|lists| Self(Source::Product(lists)))
    }

    /// Returns the number of rows; at least one.
    #[allow(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        match &self.0 {
            Source::Lines(lines) => lines.rows.len(),
            Source::Product(lists) => lists.iter().map(|(_, values)| values.len()).product(),
        }
    }

    /// Returns the row at `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<Row> {
        match &self.0 {
            Source::Lines(lines) => lines.rows.get(index).cloned(),
            Source::Product(lists) => cross::row(lists, index),
        }
    }

    /// Returns the names of the columns, `task` and `id` among them if they are given, in the order of the file.
    ///
    /// ```
    /// use polylogue_team::Rows;
    /// let rows = Rows::over("role,id,task\nthief,a,steal\n", "rows.csv")?;
    /// assert_eq!(rows.columns(), ["role", "id", "task"]);
    /// # Ok::<(), polylogue_team::Diagnostics>(())
    /// ```
    pub fn columns(&self) -> Vec<String> {
        match &self.0 {
            Source::Lines(lines) => lines.columns.clone(),
            Source::Product(lists) => lists.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Returns one row of every set of keys that there is: what is wrong with the keys of any row is wrong with one of these.
    pub fn samples(&self) -> Vec<Row> {
        let mut samples: BTreeMap<(bool, Vec<&str>), &Row> = BTreeMap::new();
        match &self.0 {
            Source::Product(_) => self.get(0).into_iter().collect(),
            Source::Lines(lines) => {
                for row in &lines.rows {
                    let keys = row.vars.keys().map(String::as_str).collect();
                    samples.entry((row.task.is_some(), keys)).or_insert(row);
                }
                samples.into_values().cloned().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
