//! `polylogue batch`: a team on many tasks.

mod progress;
mod record;
mod records;
mod tally;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polylogue::batch::{Batch, BatchResult, BatchStart};
use polylogue::{
    AnyStore, Budget, Cancellation, Error, LogId, Meta, Money, Report, Status, Store as _, StoreError,
    Timestamp,
};
use polylogue_team::{BuildContext, Loaded, Overrides, Row, Rows, Team, Usage};

use super::limit::counted;
use super::remote::{self, Remote, Wanted};
use super::run::{has_budget, manner, settings, tell_unbounded, usage};
use super::{StoredRun, limits_of, work, write};
use crate::error::{CliError, Exit};
use crate::model_builder::{MODEL_HINT, ModelBuilder};
use crate::runner::{tell, tell_wrapped};
use crate::screen::Sanitized;
use crate::signals::{FINISHING, Signals};
use crate::team_memory::TeamMemoryStore;
use crate::trust::pins::Asking;
use crate::trust::{self, Access, Request};
use crate::{args, place, team_memory};
use progress::Progress;
use record::Record;
use records::Records;
use tally::Tally;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(200);

pub(crate) async fn run(cli: &args::Cli, args: &args::Batch) -> Result<Exit, CliError> {
    let rows = rows(args)?;
    let job = Job::prepare(cli, args, &rows).await?;
    let records = Records::open(&args.output, &job.key, args.keep)?;
    let over: HashSet<String> = records.settled().map(|entry| entry.id.clone()).collect();
    let total = rows.len();
    job.introduce(total, over.len());
    let budget = args.budget.map(|dollars| Budget::new(Money::dollars(dollars)));
    if let Some(budget) = &budget {
        budget.spend(records.spent());
    }
    let all = || (0..total).filter_map(|index| rows.get(index));
    let (settled, left) =
        (|| all().filter(|row| over.contains(&row.id)), || all().filter(|row| !over.contains(&row.id)));
    let store = place::open(Some(&job.store))?;
    if let Some(budget) = &budget {
        budget.spend(job.uncertain(&store, settled()).await?);
    }
    let progress = Progress::new(total, over.len(), records.spent());
    let state = RefCell::new(State { records, progress, broken: None });
    let held = job.hold(store, budget.as_ref(), left, &state).await;
    let State { mut records, mut progress, broken } = state.into_inner();
    progress.clear();
    records.sort(all().map(|row| row.id))?;
    held?;
    broken.map_or(Ok(()), Err)?;
    let tally = Tally::of(&records, total, budget);
    let unwritable = |error| CliError::failed(format!("the output cannot be written: {error}"));
    write(&match args.json {
        true => Sanitized::json(&tally.json(&args.output, &job.store)).map_err(unwritable)?,
        false => Sanitized::plain(&tally.text(&args.output, &job.store)),
    })?;
    Ok(tally.exit())
}

/// What happens to a batch while it runs.
struct State {
    records: Records,
    progress: Progress,
    /// Why a record could not be written.
    broken: Option<CliError>,
}

fn rows(args: &args::Batch) -> Result<Rows, CliError> {
    let read = |path: &Path| {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CliError::usage(format!("the rows `{shown}` cannot be read: {error}")))?;
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
        (None, None) => Err(CliError::usage("there are no rows")),
    }
}

/// The file for conversations that go with the records in `output`.
fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".db");
    name.into()
}

/// What is to be done with every row.
struct Job<'a> {
    args: &'a args::Batch,
    /// The team without any row.
    team: Team,
    /// Identifies its content.
    digest: String,
    usage: Usage,
    access: Access,
    /// The memory that other teams have written to.
    memory_of_others: BTreeSet<String>,
    crew: ModelBuilder,
    /// The MCP servers, which all conversations share.
    servers: Remote,
    /// What all rows remember together.
    memory: TeamMemoryStore,
    /// Where the conversations are: their work directories are beside.
    store: PathBuf,
    /// Tells records of this team, its models and its settings from those of others.
    key: String,
}

impl<'a> Job<'a> {
    /// Reads the team, and finds out what is wrong with it or with the keys of the rows before anything costs anything.
    async fn prepare(cli: &args::Cli, args: &'a args::Batch, rows: &Rows) -> Result<Self, CliError> {
        let permits = &args.allowed.permits;
        let Loaded { mut team, warnings, digest, outside } =
            trust::load(&args.team, &overrides(args, None), permits)?;
        warnings.iter().for_each(|warning| tell(&warning.to_string()));
        for row in rows.samples() {
            trust::load(&args.team, &overrides(args, Some(&row)), permits).map_err(|wrong| {
                CliError::usage(format!("the team cannot be run over the row `{}`:\n{wrong}", row.id))
            })?;
        }
        let settings = settings(cli.color, args::Output { no_stream: true, ..args::Output::default() });
        let budget = args.budget.is_some() || has_budget(&team, args.limits.overrides());
        let store = cli.store.clone().unwrap_or_else(|| beside(&args.output));
        let file = args.allowed.mcp.as_deref();
        let usage = usage(&args.models, file)?;
        let request = Request {
            team: &team,
            digest: &digest,
            file: &args.team.display().to_string(),
            outside: &outside,
            usage: usage.clone(),
            permits,
            before: Vec::new(),
            memory: team_memory::of_others(&team, Some(&store), &digest).await?,
            asks: true,
            tells: true,
        };
        let access = request.pass(trust::of_folder(Some(&store))?).await?;
        let mut manner = manner(&args.models, &settings, budget, false, &access);
        manner.watched = false;
        let crew = ModelBuilder::choose(&mut team, &manner).await?;
        work::tell_refusals(&team);
        let servers =
            Remote::start(&team, &Wanted { file, access: &access, asking: Asking { permits, asks: true } })
                .await?;
        let memory = TeamMemoryStore::of(&team, Some(&store), &crew)?;
        let memory_of_others = team_memory::all_of_others(&team, Some(&store), &digest).await?;
        let workplace = servers.furnish(work::place_of(&team, Some(&store), &place::fresh_id()?, &access)?);
        let workplace = memory.furnish(workplace);
        team.build_at(&|name| crew.model(name), &workplace).map_err(CliError::from)?;
        let key = key(&team, args)?;
        Ok(Self { args, team, digest, usage, access, memory_of_others, crew, servers, memory, store, key })
    }

    fn introduce(&self, total: usize, skipped: usize) {
        if self.crew.is_scripted() {
            let why = self.crew.why_scripted().map(|why| format!(", because {why}")).unwrap_or_default();
            tell_wrapped(&format!("This is a demonstration: the agents speak by the team's script{why}."));
            tell_wrapped(&format!("For a real model, use {MODEL_HINT}."));
        }
        let over = if skipped > 0 { format!(", {skipped} of them over before") } else { String::new() };
        let cost = match self.args.budget {
            Some(dollars) => format!(", {} for all", Money::dollars(dollars)),
            None if self.crew.is_scripted() => String::new(),
            None => "; no limit on cost (`--budget`)".into(),
        };
        let at_once = self.args.at_once;
        tell_wrapped(&format!(
            "{}: {}{over}, {at_once} at once{cost}",
            self.team.name,
            counted(total as u64, "row")
        ));
        if self.args.budget.is_some() {
            tell_unbounded(&self.team, &self.crew);
        }
    }

    /// Holds the conversations that are left.
    async fn hold<L: Iterator<Item = Row>>(
        &self,
        store: AnyStore,
        budget: Option<&Budget>,
        left: impl Fn() -> L,
        state: &RefCell<State>,
    ) -> Result<(), CliError> {
        let batch = Batch::new(store).concurrency(self.args.at_once.into());
        let batch = batch.limits(self.team.limits()).overrides(self.args.limits.overrides(), limits_of);
        let batch = match budget {
            Some(budget) => {
                let batch = batch.budget(budget.clone());
                batch.charge(left(), |row| self.id(row), |row| self.start(row)).await?
            }
            None => batch,
        };
        let halt = batch.cancellation();
        let start = |row: &Row| self.start(row);
        let each = |ended: BatchResult<Row>| self.note(&ended, &mut state.borrow_mut(), &halt);
        let mut run = std::pin::pin!(batch.run(left(), start, each));
        let mut signals = Signals::new()?;
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                () = signals.next() => {
                    if signals.pass_on(&halt) {
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
        let config = |trouble: CliError| Error::config(trouble.to_string().trim_end());
        let given = overrides(self.args, Some(row));
        let loaded = trust::load(&self.args.team, &given, &self.args.allowed.permits).map_err(config)?;
        if loaded.digest != self.digest {
            return Err(Error::config("the team file was changed while the batch ran"));
        }
        let mut team = loaded.team;
        self.check(&team).map_err(config)?;
        let provide = self.crew.cast(&mut team);
        if team.mcp_document() != self.team.mcp_document() {
            let why = "a variable of the row changes an MCP server, and all rows share them";
            return Err(Error::config(why));
        }
        let id = self.id(row)?;
        let chat = team.build_at(&provide, &self.workplace(&team, &id)?)?;
        let (title, task) = (format!("{} {}", team.name, row.id), team.task.clone().unwrap_or_default());
        let (offline, allowed, digest) =
            (self.crew.is_scripted(), self.access.kept(&team), self.digest.clone());
        let file = remote::kept(self.args.allowed.mcp.as_deref());
        let mcp = file.map_err(|trouble| Error::config(trouble.to_string()))?;
        let (capabilities, remote_tools) = (self.args.models.capabilities, self.servers.described());
        let limits = self.args.limits.overrides();
        let kept =
            StoredRun { team, offline, capabilities, digest, allowed, mcp, remote_tools, limits, seal: None }
                .sealed();
        let kept = serde_json::to_value(&kept)
            .map_err(|error| Error::Bug(format!("the team cannot be kept: {error}")))?;
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let created = Timestamp(u64::try_from(created).unwrap_or(u64::MAX));
        Ok(BatchStart { id, meta: Meta { title, created, team: kept }, chat, task })
    }

    /// Refuses a row whose variables make the team ask for more than was allowed before the first one.
    fn check(&self, team: &Team) -> Result<(), CliError> {
        self.access.check(team, &self.usage)?;
        self.access.check_memory(team, &self.memory_of_others)
    }

    /// What calls without a known usage took at most in the conversations about `rows`. Records, which are the same however
    /// often a batch was interrupted, do not say it.
    async fn uncertain(&self, store: &AnyStore, rows: impl Iterator<Item = Row>) -> Result<Money, CliError> {
        let mut sum = Money::default();
        for row in rows {
            let events = match store.read_intact(&self.id(&row)?).await {
                Err(StoreError::NotFound { .. }) => continue,
                found => found.map_err(Error::from)?.events,
            };
            let events: Vec<_> = events.into_iter().map(std::sync::Arc::new).collect();
            sum += Report::of_all(&events).spent.uncertain.cost;
        }
        Ok(sum)
    }

    /// Where the programs of the conversation `id` work, with the files that the team brings along.
    fn workplace(&self, team: &Team, id: &LogId) -> polylogue::Result<BuildContext> {
        let place = work::place_of(team, Some(&self.store), id, &self.access);
        let place = place.and_then(|place| work::prepare(team, Some(&self.store), id).map(|()| place));
        let place = place.map_err(|trouble| Error::config(trouble.to_string()))?;
        Ok(self.memory.furnish(self.servers.furnish(place)))
    }

    /// What the conversation about `row` is called: the same in every run over this row with this team.
    fn id(&self, row: &Row) -> polylogue::Result<LogId> {
        let text = serde_json::to_string(&(&self.key, row))
            .map_err(|error| Error::Bug(format!("the row cannot be written: {error}")))?;
        Ok(LogId::new(&format!("{}-{}", row.id, digest(&text)))?)
    }

    fn note(&self, ended: &BatchResult<Row>, state: &mut State, halt: &Cancellation) {
        if matches!(ended.status, Ok(Status::Halted)) {
            return;
        }
        let run = self.id(&ended.item).map(|id| id.to_string()).unwrap_or_default();
        let record = Record::of(ended, &run, &self.key);
        state.progress.count(&record);
        if let Err(trouble) = state.records.append(&record) {
            // What is over is kept in its log, and comes into the records when they can be written again.
            state.broken.get_or_insert(trouble);
            halt.after_step();
        }
    }
}

fn overrides(args: &args::Batch, row: Option<&Row>) -> Overrides {
    let own = row.map(|row| row.vars.clone()).unwrap_or_default();
    Overrides {
        vars: args.vars.iter().cloned().chain(own).collect(),
        task: row.and_then(|row| row.task.clone()),
        model: args.models.model.clone(),
        ..Overrides::default()
    }
}

/// What makes conversations those of this batch: the team, and what its models are said to be able to do.
fn key(team: &Team, args: &args::Batch) -> Result<String, CliError> {
    let text = serde_json::to_string(&(team, args.models.capabilities))
        .map_err(|error| CliError::failed(format!("the team cannot be written: {error}")))?;
    Ok(digest(&text))
}

/// Twelve hexadecimal digits: enough to tell a million apart.
fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(12).collect()
}
