//! The file of records.
//!
//! Lines are appended as rows end. When the batch does, they are put into the order of the rows, so that the file is the same
//! however many conversations were held at the same time. A line that was cut off is taken away: its conversation is over and
//! in the store, and gives the line again. A table of results is written from them then.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use polylogue_core::{CacheSavings, CountedUsage, Money, PromptCache};
use polylogue_files::Draft;
use polylogue_team::{Row, Rows};
use serde::Deserialize;

use super::record::{CacheRecord, Record, SavedRecord};
use super::table::{ResultRow, Table};
use crate::error::CliError;
use crate::screen::RunState;

/// The file of records, and where in it the last line of each row is.
pub(crate) struct Records {
    path: PathBuf,
    file: File,
    end: u64,
    lines: HashMap<String, Entry>,
    /// What is written from them.
    table: Option<Table>,
}

/// A line of the file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) state: RunState,
    pub(crate) reason: String,
    pub(crate) calls: u64,
    pub(crate) tokens: Option<u64>,
    pub(crate) input: Option<u64>,
    pub(crate) cost: Option<f64>,
    pub(crate) prompt_cache: PromptCache,
    pub(crate) saved: CacheSavings,
    /// Tells its task and variables from others.
    content: u64,
    at: u64,
    len: u64,
}

impl Entry {
    /// What of it counts toward a budget, where that is known.
    pub(crate) fn counted(&self) -> CountedUsage {
        let (tokens, cost) = (self.tokens.unwrap_or_default(), self.cost.unwrap_or_default());
        CountedUsage { calls: self.calls, tokens, cost: Money::dollars(cost) }
    }

    /// Whether it is of `row`, and not of another one with the same id.
    fn is_of(&self, row: &Row) -> bool {
        self.content == content(row.task.as_deref(), &row.vars)
    }
}

/// What is read again of a line.
#[derive(Deserialize)]
struct Line {
    id: String,
    task: Option<String>,
    vars: BTreeMap<String, String>,
    state: RunState,
    reason: String,
    calls: u64,
    tokens: Option<u64>,
    input: Option<u64>,
    cost: Option<f64>,
    prompt_cache: Option<CacheRecord>,
    saved: Option<SavedRecord>,
    team: String,
}

impl Records {
    /// Opens or makes the file at `output`, or next to it, if that is a table. Records of a team other than `key`, and of rows that have
    /// changed since, are refused, unless they are to be kept.
    pub(crate) fn open(output: &Path, key: &str, rows: &Rows, keep: bool) -> Result<Self, CliError> {
        let table = Table::at(output);
        let path = &table.as_ref().map_or_else(|| output.to_owned(), Table::records);
        admit_file(output)?;
        admit_file(path)?;
        table.as_ref().map_or(Ok(()), Table::admit)?;
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = file.map_err(|error| unwritten(path, &error))?;
        // Two at a time would each sort the other's lines away. One that has just ended may have replaced the file that was opened here.
        if file.try_lock().is_err() || !is_at(&file, path) {
            let what = format!("the records `{}` are being written by another process", path.display());
            return Err(
                CliError::usage(what).hint("wait for it to end, or choose another file with `--output`")
            );
        }
        let mut records = Self { path: path.to_owned(), file, end: 0, lines: HashMap::new(), table };
        records.read(key, keep)?;
        if !keep {
            records.admit_rows(rows)?;
        }
        Ok(records)
    }

    /// Ids are often numbers of lines: in a file that was edited, another row can have the id of a finished one, and would count
    /// as finished with its result. A row that failed can be changed: it is run again.
    fn admit_rows(&self, rows: &Rows) -> Result<(), CliError> {
        let is_other = |entry: &Entry, row: &Row| entry.state.is_settled() && !entry.is_of(row);
        let mut all = (0..rows.len()).filter_map(|index| rows.get(index));
        match all.find(|row| self.of(&row.id).is_some_and(|entry| is_other(entry, row))) {
            None => Ok(()),
            Some(row) => {
                let (id, path) = (row.id, self.path.display());
                let what = format!("the record of `{id}` in `{path}` is of another task or other variables");
                let todo =
                    "choose another file with `--output`, or `--keep` it: the row then counts as finished";
                Err(CliError::usage(what).hint(todo))
            }
        }
    }

    fn read(&mut self, key: &str, keep: bool) -> Result<(), CliError> {
        let mut lines = BufReader::new(self.file.try_clone().map_err(|error| self.unwritten(&error))?);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let len = lines.read_until(b'\n', &mut line).map_err(|error| self.unwritten(&error))? as u64;
            if line.last() != Some(&b'\n') {
                self.admit_torn(number, &line)?;
                break;
            }
            let read: Line = serde_json::from_slice(&line).map_err(|error| self.foreign(number, &error))?;
            if read.team != key && !keep {
                return Err(self.of_others(&read.id));
            }
            self.add(read.entry(self.end, len));
            self.end += len;
        }
        // What follows was cut off.
        self.file.set_len(self.end).map_err(|error| self.unwritten(&error))
    }

    /// Whether `line`, the last and without an end, is a piece of a record: a file of another origin must not be cut.
    fn admit_torn(&self, number: usize, line: &[u8]) -> Result<(), CliError> {
        const BEGIN: &[u8] = b"{\"id\":\"";
        let Err(error) = serde_json::from_slice::<Line>(line) else { return Ok(()) };
        let is_piece = line.starts_with(BEGIN) || BEGIN.starts_with(line);
        if is_piece && error.is_eof() { Ok(()) } else { Err(self.foreign(number, &error)) }
    }

    fn add(&mut self, entry: Entry) {
        self.lines.insert(entry.id.clone(), entry);
    }

    fn foreign(&self, number: usize, error: &serde_json::Error) -> CliError {
        let path = self.path.display();
        CliError::usage(format!("line {number} of `{path}` is not a record of a batch: {error}"))
            .hint("choose another file with `--output`")
    }

    fn of_others(&self, row: &str) -> CliError {
        let path = self.path.display();
        let what = format!("the record of `{row}` in `{path}` is of another team, model or setting");
        CliError::usage(what)
            .hint("choose another file with `--output`, or `--keep` the records of rows that are over")
    }

    fn unwritten(&self, error: &io::Error) -> CliError {
        unwritten(&self.path, error)
    }

    /// The rows that are not run again.
    pub(crate) fn settled(&self) -> impl Iterator<Item = &Entry> {
        self.all().filter(|entry| entry.state.is_settled())
    }

    /// The ids of those of `rows` that are not run again.
    pub(crate) fn finished(&self, rows: &Rows) -> HashSet<String> {
        let ids = (0..rows.len()).filter_map(|index| rows.get(index)).map(|row| row.id);
        ids.filter(|id| self.of(id).is_some_and(|entry| entry.state.is_settled())).collect()
    }

    /// The last line of the row `id`.
    pub(crate) fn of(&self, id: &str) -> Option<&Entry> {
        self.lines.get(id)
    }

    /// The last line of every row.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.lines.values()
    }

    /// What the rows cost that are not run again, as far as that is known.
    pub(crate) fn cost(&self) -> Money {
        self.settled()
            .filter_map(|entry| entry.cost)
            .fold(Money::default(), |sum, cost| sum + Money::dollars(cost))
    }

    pub(crate) fn append(&mut self, record: &Record<'_>) -> Result<(), CliError> {
        let mut line = serde_json::to_vec(record)
            .map_err(|error| CliError::failed(format!("a record cannot be written: {error}")))?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Half a line would be in the way of the next.
            let _ = self.file.set_len(self.end);
            return Err(self.unwritten(&error));
        }
        let read: Line = serde_json::from_slice(&line).map_err(|error| self.foreign(0, &error))?;
        let len = line.len() as u64;
        self.add(read.entry(self.end, len));
        self.end += len;
        Ok(())
    }

    /// Puts the lines into the order of `rows`, one of each row, and writes the table of results, if there is one. Lines of other
    /// rows come last.
    pub(crate) fn finish(&self, rows: &Rows) -> Result<(), CliError> {
        let ids = (0..rows.len()).filter_map(|index| rows.get(index)).map(|row| row.id);
        let order: HashMap<String, usize> = ids.enumerate().map(|(at, id)| (id, at)).collect();
        let mut lines: Vec<Entry> = self.all().cloned().collect();
        let place = |entry: &Entry| (order.get(&entry.id).copied().unwrap_or(usize::MAX), entry.id.clone());
        lines.sort_by_cached_key(place);
        if let Some(table) = &self.table {
            let results = lines.iter().map(|entry| self.result(entry));
            table.write(&rows.columns(), results).map_err(|error| unwritten(table.path(), &error))?;
        }
        let sorted = lines.iter().try_fold(0, |at, entry| (entry.at == at).then_some(at + entry.len));
        if sorted == Some(self.end) {
            return Ok(());
        }
        self.rewrite(&lines).map_err(|error| self.unwritten(&error))
    }

    /// Replaces the file by one with `lines`.
    fn rewrite(&self, lines: &[Entry]) -> io::Result<()> {
        let mut out = BufWriter::new(Draft::of(&self.path)?);
        for entry in lines {
            out.write_all(&self.line(entry)?)?;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.put_durably()
    }

    /// The line of `entry`.
    fn line(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        let (mut source, mut line) = (&self.file, Vec::new());
        source.seek(SeekFrom::Start(entry.at))?;
        Read::take(source, entry.len).read_to_end(&mut line)?;
        Ok(line)
    }

    fn result(&self, entry: &Entry) -> io::Result<ResultRow> {
        Ok(serde_json::from_slice(&self.line(entry)?)?)
    }
}

impl Line {
    fn entry(self, at: u64, len: u64) -> Entry {
        let Self { id, task, vars, state, reason, calls, tokens, input, cost, prompt_cache, saved, team: _ } =
            self;
        let prompt_cache = prompt_cache.map(PromptCache::from).unwrap_or_default();
        let saved = saved.map(CacheSavings::from).unwrap_or_default();
        let content = content(task.as_deref(), &vars);
        Entry { id, state, reason, calls, tokens, input, cost, prompt_cache, saved, content, at, len }
    }
}

/// Equal for equal tasks and variables, within this process.
fn content(task: Option<&str>, vars: &BTreeMap<String, String>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (task, vars).hash(&mut hasher);
    hasher.finish()
}

/// Refuses what is no file: records are read, put in order, and continued.
fn admit_file(path: &Path) -> Result<(), CliError> {
    let no_file = |metadata: std::fs::Metadata| !metadata.is_file();
    if path != Path::new("-") && !std::fs::metadata(path).is_ok_and(no_file) {
        return Ok(());
    }
    let what = format!("the records cannot be written to `{}`, which is not a file", path.display());
    Err(CliError::usage(what).hint("set a file with `--output`"))
}

/// Whether `file` still is the one at `path`: lines in one that was replaced would be lost.
fn is_at(file: &File, path: &Path) -> bool {
    let (own, found) = (file.metadata(), std::fs::metadata(path));
    own.is_ok_and(|own| found.is_ok_and(|found| (own.dev(), own.ino()) == (found.dev(), found.ino())))
}

fn unwritten(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("the records `{}` cannot be written: {error}", path.display()))
        .hint("run it again when they can: finished rows are not run again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_replaced_is_not_the_one_at_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.jsonl");
        let file = File::create(&path).unwrap();
        assert!(is_at(&file, &path));
        polylogue_files::replace(&path, b"").unwrap();
        assert!(!is_at(&file, &path));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path));
    }
}
