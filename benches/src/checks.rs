//! Cost of what is done before a run and before each call: the checks of a team file, its bound, and reservations.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polylogue::kernel::data::{DeltaSink, ModelError, Money, Params, Reply, Usage};
use polylogue::kernel::limits::{Allowance, Budget, RunBound};
use polylogue::kernel::model::{Model, Request};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Limits, Log, Name, round_robin};
use polylogue_models::{Env, Models};
use polylogue_runtime::{Access, RunOptions, check_models};
use polylogue_team::{Overrides, Team, load};

use crate::job::{RUNS, Result};
use crate::meter::Meter;
use crate::table;

/// The shipped teams.
const TEAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../teams");

/// The model of all agents, for the bound.
const MODEL: &str = "openai:gpt-4o-mini";

/// Chats in a measurement of reservations, and calls in each.
const CHATS: u32 = 200;
const CALLS: u32 = 20;

/// What a team file and its bound may take each, in milliseconds, and a reservation, in CPU microseconds.
const TEAM_MS: f64 = 10.0;
const RESERVATION_US: f64 = 2.0;

/// Prints the same as [`print()`]. A goal that is missed is an error.
pub(crate) fn report() -> Result<()> {
    let missed = print()?;
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n       ").into()) }
}

/// Prints the times of all shipped teams, and the CPU time of a reservation. Returns what takes longer than it may.
pub(crate) fn print() -> Result<Vec<String>> {
    let mut missed = teams()?;
    missed.extend(reservations()?);
    Ok(missed)
}

/// What `took` as long as it may at `most`, or longer, in words.
fn missed(what: &str, took: f64, (most, unit): (f64, &str)) -> Option<String> {
    (took >= most).then(|| format!("{what} takes {took:.2} {unit}: it must be less than {most}"))
}

/// The team files below the folder, without what they include.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn teams() -> Result<Vec<String>> {
    let model = AnyModel::from(Models::new(Env::default()).model(MODEL)?);
    let (mut checks, mut bounds) = (Vec::new(), Vec::new());
    for file in files(Path::new(TEAMS))? {
        let given = Overrides { model: Some(MODEL.to_owned()), ..Overrides::default() };
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (time, _) = least(|| check(&file))?;
        checks.push((time, name.clone()));
        let team = load(&file, &given)?.team;
        let (time, _) = least(|| bound(&team, &model))?;
        bounds.push((time, name));
    }
    let rows = [row("check", &mut checks), row("bound", &mut bounds)];
    let title = format!("Milliseconds for a team file, over {} shipped teams", checks.len());
    table::print(&title, &["", "median", "slowest", "of"], &rows);
    let slowest = |what: &str, times: &[(Duration, String)]| {
        let (time, name) = times.last()?;
        missed(&format!("{what} `{name}`"), milliseconds(*time), (TEAM_MS, "ms"))
    };
    Ok(slowest("checking", &checks).into_iter().chain(slowest("the bound of", &bounds)).collect())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Checks a team file as `polylogue check` does, with the models that it names.
fn check(file: &Path) -> Result<Team> {
    let loaded = load(file, &Overrides::default())?;
    let access = Access::new(Env::default(), loaded.digest.as_str());
    Ok(check_models(loaded, &access, &RunOptions::default())?.team)
}

fn bound(team: &Team, model: &AnyModel) -> Result<u64> {
    let bound = team.bound(&|_| Ok(model.clone()), &team.limits())?;
    Ok(bound.at_most.calls().unwrap_or(u64::MAX))
}

/// The least time of several runs, with the result.
fn least<T>(work: impl Fn() -> Result<T>) -> Result<(Duration, T)> {
    let mut least = Duration::MAX;
    let mut last = None;
    for _ in 0..RUNS {
        let begun = Instant::now();
        let result = std::hint::black_box(work()?);
        least = least.min(begun.elapsed());
        last = Some(result);
    }
    Ok((least, last.ok_or("no run")?))
}

fn row(name: &str, times: &mut [(Duration, String)]) -> Vec<String> {
    times.sort();
    let shown = |time: Option<&(Duration, String)>| {
        format!("{:.2}", time.map_or(0.0, |(time, _)| milliseconds(*time)))
    };
    let slowest = times.last().map_or(String::new(), |(_, name)| name.clone());
    vec![name.to_owned(), shown(times.get(times.len() / 2)), shown(times.last()), slowest]
}

/// A model that replies at once, at a known price.
struct Ready;

impl Model for Ready {
    fn name(&self) -> &str {
        "bench:ready"
    }
    async fn complete(
        &self,
        _: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        let usage = Usage { input: Some(50), output: Some(5), ..Usage::default() };
        Ok(Reply { usage, ..Reply::new("A reply of a few words.") })
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(Money { picodollars: usage.total()? })
    }
    fn max_output(&self, _: &Params) -> Option<u64> {
        Some(20)
    }
}

/// Prints the CPU time of a call without limits, and within limits of the run, its agents, its bound and two budgets.
fn reservations() -> Result<Option<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut free, mut limited) = (f64::MAX, f64::MAX);
    for _ in 0..RUNS {
        free = free.min(runtime.block_on(chats(false))?);
        limited = limited.min(runtime.block_on(chats(true))?);
    }
    let row = |name: &str, us: f64| vec![name.to_owned(), format!("{us:.2}")];
    let rows = [
        row("without limits", free),
        row("within limits of run, agents, bound and two budgets", limited),
        row("reservation", limited - free),
    ];
    table::print("CPU microseconds of a call in memory, of a chat of 20 calls", &["", "us"], &rows);
    Ok(missed("a reservation", limited - free, (RESERVATION_US, "us")))
}

/// The CPU time of a call in microseconds.
async fn chats(is_limited: bool) -> Result<f64> {
    let chat = Chat::builder("pair")
        .participant(Assistant::new("Ann", AnyModel::new(Ready))?)
        .participant(Assistant::new("Bob", AnyModel::new(Ready))?)
        .policy(with_termination(round_robin(), max_turns(CALLS.into())))
        .build()?;
    let meter = Meter::start();
    for _ in 0..CHATS {
        let mut log = if is_limited { limited()? } else { Log::in_memory() };
        chat.run_in(&mut log, "Talk.").await?;
    }
    Ok(meter.stop().cpu_us / f64::from(CHATS * CALLS))
}

fn limited() -> Result<Log> {
    let most = Allowance {
        calls: Some(1_000),
        tokens: Some(1_000_000),
        cost: Some(Money::dollars(9.0)),
        time_ms: None,
    };
    let Allowance { calls, tokens, cost, .. } = most;
    let bound = RunBound { calls, tokens, cost, ..RunBound::default() };
    let log = Log::in_memory().limits(Limits { calls, tokens, cost, ..Limits::default() });
    let log = log.agent_limits([(Name::new("Ann")?, most), (Name::new("Bob")?, most)]);
    Ok(log.bound(bound).budget(Budget::new("process", most)).budget(Budget::new("token", most)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn what_takes_as_long_as_its_goal_is_an_error() {
        assert_eq!(missed("a reservation", 1.99, (RESERVATION_US, "us")), None);
        let said = missed("checking `council`", 12.3456, (TEAM_MS, "ms")).unwrap();
        assert_eq!(said, "checking `council` takes 12.35 ms: it must be less than 10");
        assert!(missed("a reservation", 2.0, (RESERVATION_US, "us")).is_some());
    }

    #[test]
    fn every_shipped_team_is_right_and_has_a_bound_and_limits_allow_all_calls() {
        let files = files(Path::new(TEAMS)).unwrap();
        assert!(files.len() > 10);
        let model = AnyModel::new(Ready);
        for file in files {
            check(&file).unwrap();
            let given = Overrides { model: Some(MODEL.to_owned()), ..Overrides::default() };
            assert!(bound(&load(&file, &given).unwrap().team, &model).unwrap() < u64::MAX);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert!(runtime.block_on(chats(true)).unwrap() > 0.0);
    }
}
