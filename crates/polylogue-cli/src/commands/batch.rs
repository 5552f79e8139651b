//! `polylogue batch`: a team on many tasks.

pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod records;
mod table;
pub(crate) mod tally;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use polylogue::runs::batch::{Batch, BatchResult, BatchStart, BudgetSource};
use polylogue::{Error, Status};
use polylogue_core::{
    Allowance, AnyStore, Budget, Cancellation, ConfigError, LogId, Progress as LogProgress, Store as _,
    StoreError, Summary, Timer,
};
use polylogue_runtime::database::SharedBudgetSource;
use polylogue_runtime::stored::{begun_bound, limits_of};
use polylogue_runtime::{Prepared, Runtime, StoreLocation};
use polylogue_team::{Overrides, Row, Rows};

use super::{price, write_rows};
use crate::error::{CliError, Exit};
use crate::launch::{Launch, print_default_model, print_local_models, print_scripted, warn_of_unbounded};
use crate::limit::counted;
use crate::screen::Sanitized;
use crate::signals::{FINISHING, Signals};
use crate::stderr::print_note_wrapped;
use crate::text_arg::unreadable;
use crate::user_config::{SettingValue, default_max_cost, default_model};
use crate::{args, place, trust};
use progress::Progress;
use record::Record;
use records::Records;
use tally::{Place, Tally};

/// What all rows are called together.
const BATCH: &str = "budget of the batch";

/// How often progress is shown.
pub(crate) const TICK: Duration = Duration::from_millis(200);

pub(crate) async fn run(cli: &args::Cli, args: &args::batch::Batch) -> Result<Exit, CliError> {
    let rows = rows(args)?;
    let job = Job::prepare(cli, args, &rows).await?;
    let records = Records::open(&args.output, &job.key, &rows, args.keep)?;
    let over = records.finished(&rows);
    let ids: HashSet<String> =
        (0..rows.len()).filter_map(|index| rows.get(index)).map(|row| row.id).collect();
    let is_row = |id: &str| ids.contains(id);
    let total = rows.len();
    let budget = (job.most != Allowance::default()).then(|| Budget::new(BATCH, job.most));
    let all = || (0..total).filter_map(|index| rows.get(index));
    let (settled, left) =
        (|| all().filter(|row| over.contains(&row.id)), || all().filter(|row| !over.contains(&row.id)));
    let runtime = Runtime::open_at(job.place.clone())?.with_shared_budgets(&args.budgets.shared()).await?;
    let store = runtime.store().clone();
    job.introduce(total, over.len() + job.finished_in(&store, left()).await?);
    if let Some(budget) = &budget {
        records.settled().filter(|entry| !is_row(&entry.id)).for_each(|entry| budget.spend(entry.counted()));
        job.count(budget, &store, settled(), &records).await?;
    }
    let progress = Progress::new(total, over.len(), records.cost());
    let state = RefCell::new(State { records, progress, broken: None });
    let payers = runtime.batch_budget_source(&job.prepared);
    let ended = job.run_rows((store, &payers), budget.as_ref(), left, &state).await;
    let place = Place::of_store(Path::new(&job.place.shown()));
    let paying = budget.into_iter().chain(payers.budgets()).collect();
    state.into_inner().end(args, (ended, &rows), paying, &place)
}

/// What happens to a batch while it runs.
pub(crate) struct State {
    pub(crate) records: Records,
    pub(crate) progress: Progress,
    /// Why a record could not be written.
    pub(crate) broken: Option<CliError>,
}

impl State {
    /// Puts the records in order, writes the table of results, and prints how the batch ended.
    pub(crate) fn end(
        self,
        args: &args::batch::Batch,
        (ended, rows): (Result<(), CliError>, &Rows),
        paying: Vec<Budget>,
        place: &Place,
    ) -> Result<Exit, CliError> {
        let Self { records, mut progress, broken } = self;
        progress.clear();
        let finished = records.finish(rows);
        // Why the batch ended is the error that counts, also if the records cannot be put in order because of it.
        ended?;
        broken.map_or(Ok(()), Err)?;
        finished?;
        let tally = Tally::of(&records, rows, paying);
        let unwritable = |error| CliError::failed(format!("the output cannot be written: {error}"));
        let text = match args.json {
            true => Sanitized::json(&tally.json(&args.output, place)).map_err(unwritable)?,
            false => Sanitized::plain(&tally.text(&args.output, place)),
        };
        write_rows(&text, args.json)?;
        Ok(tally.exit())
    }

    /// Keeps the record of a row. Returns whether it could be written; if not, [`end`](Self::end) says why.
    pub(crate) fn keep(&mut self, record: &Record<'_>) -> bool {
        self.progress.count(record);
        match self.records.append(record) {
            Ok(()) => true,
            Err(error) => {
                // What is over is kept in its log, and comes into the records when they can be written again.
                self.broken.get_or_insert(error);
                false
            }
        }
    }
}

/// The rows that are named.
pub(crate) fn rows(args: &args::batch::Batch) -> Result<Rows, CliError> {
    let read = |path: &Path| {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            CliError::usage(format!("the rows `{shown}` cannot be read: {}", unreadable(&error)))
        })?;
        Ok::<_, CliError>((text, shown))
    };
    match (&args.over, &args.cross) {
        (Some(path), _) => {
            let (text, shown) = read(path)?;
            Ok(Rows::over(&text, &shown)?)
        }
        (None, Some(path)) => {
            let (text, shown) = read(path)?;
            Ok(Rows::cross(&text, &shown)?)
        }
        (None, None) => Err(CliError::usage("the file has no rows")),
    }
}

/// The file for conversations that go with the records in `output`.
fn default_store(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".db");
    name.into()
}

/// What is to be done with every row.
struct Job<'a> {
    args: &'a args::batch::Batch,
    /// The team without any row.
    prepared: Prepared,
    /// The user's default model.
    default: Option<SettingValue>,
    /// What all conversations together can use: as the command line says; what they can cost, else as the user's settings say.
    most: Allowance,
    /// Where the conversations are: their work directories are next to it.
    place: StoreLocation,
    /// Tells records of this team, its models and its settings from those of others.
    key: String,
}

impl<'a> Job<'a> {
    /// Reads the team, and finds out what is wrong with it or with the keys of the rows before anything costs anything.
    async fn prepare(cli: &args::Cli, args: &'a args::batch::Batch, rows: &Rows) -> Result<Self, CliError> {
        let permits = &args.options.allowed.permits;
        let default = default_model(cli, &args.options.models)?;
        let model = default.as_ref().map(|given| given.value.clone());
        let loaded = trust::load(&args.team, &overrides(args, model.as_ref(), None), permits)?;
        for row in rows.samples() {
            trust::load(&args.team, &overrides(args, model.as_ref(), Some(&row)), permits).map_err(
                |wrong| {
                    CliError::usage(format!("the team cannot be run over the row `{}`:\n{wrong}", row.id))
                },
            )?;
        }
        let place = match &cli.store {
            Some(_) => place::of(&cli.named_store())?,
            None => StoreLocation::new(default_store(&args.output)),
        };
        let mut most = args.budgets.allowance();
        if most.cost.is_none() {
            most.cost = default_max_cost(cli, &args.options.models)?;
        }
        let mut launch = Launch::of(loaded, &args.team, &args.options);
        launch.shared_budget = most.cost.is_some() || args.budgets.limits_cost();
        let prepared = launch.prepare(&place).await?;
        let key = key(&prepared, args)?;
        Ok(Self { args, prepared, default, most, place, key })
    }

    fn introduce(&self, total: usize, skipped: usize) {
        print_scripted(&self.prepared, false);
        print_default_model(&self.prepared, self.default.as_ref());
        print_local_models(&self.prepared);
        let over = if skipped > 0 { format!(", {skipped} already finished") } else { String::new() };
        let cost = match self.most.cost {
            Some(most) => format!(", {most} for all"),
            None if self.prepared.is_scripted() => String::new(),
            None => "; no limit on cost (`--budget`)".into(),
        };
        let at_once = self.args.at_once;
        print_note_wrapped(&format!(
            "{}: {}{over}, {at_once} at once{cost}",
            self.prepared.team().name,
            counted(total as u64, "row")
        ));
        let left = total.saturating_sub(skipped) as u64;
        if let Some(line) = price::line_of_rows(&self.prepared, left, self.most.cost) {
            print_note_wrapped(&line);
        }
        if self.most.cost.is_some() || self.most.tokens.is_some() {
            warn_of_unbounded(&self.prepared);
        }
    }

    /// Runs the rows that are left, until all are at rest or the person stops the batch.
    async fn run_rows<L: Iterator<Item = Row>>(
        &self,
        (store, payers): (AnyStore, &Arc<SharedBudgetSource>),
        budget: Option<&Budget>,
        left: impl Fn() -> L,
        state: &RefCell<State>,
    ) -> Result<(), CliError> {
        let batch = Batch::new(store).concurrency(self.args.at_once.into());
        let batch = batch.budget_source(Arc::clone(payers) as Arc<dyn BudgetSource>);
        let batch = batch
            .limits(self.prepared.team_limits())
            .agent_limits(self.prepared.team().agent_limits())
            .timer(Timer::new(tokio::time::sleep))
            .overrides(self.args.options.limits.overrides(), limits_of)
            .begun_bounds(begun_bound);
        let batch = match budget {
            Some(budget) => {
                let batch = batch.budget(budget.clone());
                batch.charge(left(), |row| self.id(row), |row| self.start(row)).await?
            }
            None => batch,
        };
        let cancellation = batch.cancellation();
        let start = |row: &Row| self.start(row);
        let each = |ended: BatchResult<Row>| self.note(&ended, &mut state.borrow_mut(), &cancellation);
        let mut run = std::pin::pin!(batch.run(left(), start, each));
        let mut signals = Signals::new()?;
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                () = signals.next() => {
                    if signals.pass_on(&cancellation) {
                        state.borrow_mut().progress.say(FINISHING);
                    }
                }
                _ = ticks.tick() => state.borrow_mut().progress.tick(),
                done = &mut run => return Ok(done?),
            }
        }
    }

    /// The conversation about `row`.
    fn start(&self, row: &Row) -> polylogue::Result<BatchStart> {
        let config = |error: String| ConfigError::invalid(format!("the row `{}`", row.id), error.trim_end());
        let given = overrides(self.args, self.default.as_ref().map(|given| &given.value), Some(row));
        let loaded = trust::load(&self.args.team, &given, &self.args.options.allowed.permits);
        let run = self.prepared.run_of(loaded.map_err(|error| config(error.to_string()))?);
        let run = run.map_err(|error| config(CliError::from(error).to_string()))?;
        let title = format!("{} {}", run.team().name, row.id);
        run.batch_start(self.id(row)?, title).map_err(|error| match error {
            polylogue_runtime::Error::Run(error) => error,
            error => config(CliError::from(error).to_string()).into(),
        })
    }

    /// Counts what the conversations about `rows` used, by their logs: records, which are the same however often a batch was
    /// interrupted, do not say what calls without a known usage took at most. Where a log is gone, its record counts.
    async fn count(
        &self,
        budget: &Budget,
        store: &AnyStore,
        rows: impl Iterator<Item = Row>,
        records: &Records,
    ) -> Result<(), CliError> {
        for row in rows {
            match store.read_intact(&self.id(&row)?).await {
                Err(StoreError::NotFound { .. }) => {
                    records.of(&row.id).into_iter().for_each(|entry| budget.spend(entry.counted()));
                }
                found => budget.count_events(&found.map_err(Error::from)?.events),
            }
        }
        Ok(())
    }

    /// How many conversations about `rows`, which have no record, are over in the store: they are recorded, and make no call.
    async fn finished_in(
        &self,
        store: &AnyStore,
        rows: impl Iterator<Item = Row>,
    ) -> Result<usize, CliError> {
        let mut finished = 0;
        for row in rows {
            // What cannot be read is reported when it is to continue.
            let Ok(found) = store.read_intact(&self.id(&row)?).await else { continue };
            let progress = Summary::of(&found.events, true).progress;
            finished += usize::from(matches!(progress, LogProgress::Closed(reason) if !reason.is_shared()));
        }
        Ok(finished)
    }

    /// What the conversation about `row` is called: the same in every run over this row with this team.
    fn id(&self, row: &Row) -> polylogue::Result<LogId> {
        let text = serde_json::to_string(&(&self.key, row))
            .map_err(|error| Error::Bug(format!("the row cannot be written: {error}")))?;
        Ok(LogId::new(&format!("{}-{}", row.id, digest(&text)))?)
    }

    fn note(&self, ended: &BatchResult<Row>, state: &mut State, cancellation: &Cancellation) {
        // A row that the budget interrupted continues, as one that was cancelled.
        match &ended.status {
            Ok(Status::Cancelled) => return,
            Ok(Status::Closed { reason, .. }) if reason.is_shared() => return,
            _ => {}
        }
        let run = self.id(&ended.item).map(|id| id.to_string()).unwrap_or_default();
        let record = Record::of(ended, &run, &self.key);
        if !state.keep(&record) {
            cancellation.cancel_after_step();
        }
    }
}

fn overrides(args: &args::batch::Batch, default_model: Option<&String>, row: Option<&Row>) -> Overrides {
    let own = row.map(|row| row.vars.clone()).unwrap_or_default();
    Overrides {
        vars: args.vars.iter().cloned().chain(own).collect(),
        task: row.and_then(|row| row.task.clone()),
        model: args.options.models.model.clone(),
        default_model: default_model.cloned(),
        ..Overrides::default()
    }
}

/// What makes conversations those of this batch: the team, and what its models are said to be able to do.
fn key(prepared: &Prepared, args: &args::batch::Batch) -> Result<String, CliError> {
    // Not where the team file is: a batch that was moved continues.
    let vars: BTreeMap<&str, &str> = args.vars.iter().map(|(name, value)| (&**name, &**value)).collect();
    let default = prepared.team().default_model();
    let models = (
        args.options.models.model.as_deref().or(default),
        prepared.is_scripted(),
        args.options.models.capabilities,
    );
    let text = serde_json::to_string(&(prepared.digest(), vars, models))
        .map_err(|error| CliError::failed(format!("the batch cannot be identified: {error}")))?;
    Ok(digest(&text))
}

/// Twelve hexadecimal digits: enough to tell a million apart.
pub(crate) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::place::PlaceOption;

    #[test]
    fn the_error_with_which_a_batch_ends_is_not_lost_if_its_records_cannot_be_finished() {
        let error = |ended: Result<(), CliError>| {
            let dir = tempfile::tempdir().unwrap();
            let output = dir.path().join("out.csv");
            let words =
                ["polylogue", "batch", "team.yaml", "--over", "rows.jsonl", "-o", output.to_str().unwrap()];
            let Command::Batch(args) = Cli::try_parse_from(words).unwrap().command else {
                panic!("it is a batch")
            };
            let rows = Rows::over("{\"task\": \"Talk.\"}\n", "rows.jsonl").unwrap();
            let records = Records::open(&output, "key", &rows, false).unwrap();
            // The table has no folder any more.
            dir.close().unwrap();
            let progress = Progress::new(1, 0, records.cost());
            let state = State { records, progress, broken: None };
            let place = Place { shown: "here".into(), option: PlaceOption::default() };
            state.end(&args, (ended, &rows), Vec::new(), &place).unwrap_err().to_string()
        };
        assert!(error(Err(CliError::failed("the server is gone"))).contains("the server is gone"));
        assert!(error(Ok(())).contains("cannot be written"));
    }
}
