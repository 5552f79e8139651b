//! Throughput of worker processes on one Postgres: how many steps a second they make together, next to one of them.
//!
//! Each process runs 64 conversations whose model calls take 0.5 to 2 seconds, so that the ideal is 51.2 steps a second for each. The
//! database and the workers are on this machine: where it is busy, the figures say that, and nothing of scaling.

mod apart;
mod machine;
mod worker;

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use polylogue::kernel::data::LogId;
use polylogue::kernel::log::{AnyQueue, Due, Meta, Queue as _, Store as _};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::PostgresServer;

use self::apart::{Apart, Part};
use self::machine::Ticks;
use self::worker::{Figures, LATENCY_MS, PLACES};
use crate::child::Process;
use crate::job::Result;
use crate::table;

/// The argument that makes this program a worker.
pub(crate) const WORKER: &str = "cluster-worker";

/// What a worker receives for models that take no time.
const AT_ONCE: &str = "at-once";

/// Steps a second by a program without Polylogue that stored the same on two processors: the reference.
const REFERENCE: [(usize, f64); 6] =
    [(1, 51.0), (2, 109.0), (4, 216.0), (8, 426.0), (16, 832.0), (32, 1_697.0)];

/// The goal for the share of the ideal, and the busy share of the machine above which it says nothing.
const GOAL: f64 = 0.95;
const SATURATED: f64 = 0.8;
const MISSED: &str = "missed";

/// How long the conversations get out of step before the measurement begins, and how long it may take until all are run.
const SETTLE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(120);

/// Numbers of processes, for how long each is measured, and how often.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    processes: Vec<usize>,
    time: Duration,
    runs: usize,
}

impl Options {
    /// `[PROCESSES,...] [SECONDS] [RUNS]`
    pub(crate) fn parse(args: &[&str]) -> Result<Self> {
        const USAGE: &str = "`cluster` takes numbers of processes from 1 to 32, separated by commas, seconds from 1 to 600, and runs from \
                             1 to 9: `cluster 1,2,4,8 30 3`";
        let (processes, seconds, runs) = match args {
            [] => ("1,2,4,8,16,32", "30", "3"),
            [processes] => (*processes, "30", "3"),
            [processes, seconds] => (*processes, *seconds, "3"),
            [processes, seconds, runs] => (*processes, *seconds, *runs),
            _ => return Err(USAGE.into()),
        };
        let processes = processes.split(',').map(|text| text.trim().parse()).collect();
        match (processes, seconds.parse(), runs.parse()) {
            (Ok::<Vec<usize>, _>(processes), Ok(seconds @ 1..=600), Ok(runs @ 1..=9))
                if processes.iter().all(|count| (1..=32).contains(count)) =>
            {
                Ok(Self { processes, time: Duration::from_secs(seconds), runs })
            }
            _ => Err(USAGE.into()),
        }
    }

    /// Measures each number of processes, all of them in turn, and as often as it says. Returns the medians.
    fn measure(
        &self,
        processes: &[usize],
        has_latency: bool,
        apart: Option<&Apart>,
    ) -> Result<Vec<Measured>> {
        let mut measured: Vec<Vec<Measured>> = processes.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.runs {
            for (processes, measured) in processes.iter().zip(&mut measured) {
                measured.push(measure(*processes, self.time, has_latency, apart)?);
            }
        }
        Ok(measured.iter().filter_map(|runs| Measured::median(runs)).collect())
    }
}

/// The columns of the tables.
const HEAD: [&str; 16] = [
    "processes", "steps/s", "of n times one", "of the ideal", "reference", "goal", "between calls, ms: p50",
    "p99", "append, ms: p50", "p99", "CPU ms a step: worker", "database", "appends/s", "commits/s",
    "connections", "machine busy",
];

/// Prints these columns.
fn print(title: &str, columns: &[usize], rows: &[Vec<String>]) {
    let head: Vec<&str> = columns.iter().filter_map(|column| HEAD.get(*column).copied()).collect();
    let kept = |row: &Vec<String>| -> Vec<String> {
        columns.iter().filter_map(|column| row.get(*column).cloned()).collect()
    };
    table::print(title, &head, &rows.iter().map(kept).collect::<Vec<_>>());
}

/// Runs a worker process.
pub(crate) fn work(url: &str, latency: &str) -> Result<()> {
    worker::work(url, latency != AT_ONCE)
}

/// Measures and prints everything. A goal that is missed is an error.
pub(crate) fn report(options: &Options) -> Result<()> {
    if let Some(load) = machine::load() {
        println!("Load of this machine before: {load}\n");
    }
    let all = options.measure(&options.processes, true, None)?;
    let one = all.iter().find(|measured| measured.processes == 1).map(|measured| measured.steps);
    let rows: Vec<Vec<String>> = all.iter().map(|measured| measured.row(one)).collect();
    let (least, most) = LATENCY_MS;
    let title = format!(
        "Steps a second of worker processes with {PLACES} conversations each, whose model calls take {least} to {most} ms; one Postgres; \
         medians of {} runs",
        options.runs
    );
    print(&title, &(0..HEAD.len()).collect::<Vec<_>>(), &rows);
    companions(options)?;
    let missed = all.iter().filter(|measured| measured.goal() == MISSED);
    let missed: Vec<String> = missed.map(|measured| measured.processes.to_string()).collect();
    match missed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "with {} processes, less than {GOAL} of the ideal, though the machine was not saturated",
            missed.join(" and ")
        )
        .into()),
    }
}

/// Measures and prints what says nothing of scaling: the ceiling of this machine, and the largest number of processes where the database and
/// the workers have processors of their own.
fn companions(options: &Options) -> Result<()> {
    let rows = |measured: Vec<Measured>| -> Vec<Vec<String>> {
        measured.iter().map(|measured| measured.row(None)).collect()
    };
    let title =
        "The same with models that take no time: the ceiling of this machine, which says nothing of scaling";
    // What says something of scaling is left out.
    let columns = |first: &[usize]| -> Vec<usize> { first.iter().copied().chain(6..HEAD.len()).collect() };
    print(title, &columns(&[0, 1]), &rows(options.measure(&[2], false, None)?));
    let Some(apart) = Apart::of_this_machine() else {
        println!(
            "Not measured: processors apart for the database and the workers, of which there must be two\n"
        );
        return Ok(());
    };
    let largest: Vec<usize> = options.processes.iter().copied().max().into_iter().collect();
    let title = format!("The same with processors apart: {apart}");
    let measured = options.measure(&largest, true, Some(&apart))?;
    print(&title, &columns(&[0, 1, 3]), &rows(measured));
    Ok(())
}

/// What a number of processes did.
#[derive(Debug)]
struct Measured {
    processes: usize,
    /// A second.
    steps: f64,
    /// The median and the 99th percentile between a reply and the next call, in milliseconds.
    between_ms: [f64; 2],
    /// The same of an append, as the worker waits for it.
    append_ms: [f64; 2],
    /// Milliseconds of processor time for a step.
    worker_ms: f64,
    database_ms: Option<f64>,
    /// A second.
    appends: f64,
    /// A second. Appends that wait at the same time share one.
    commits: f64,
    /// To the database, at the end.
    connections: f64,
    /// The busy share of the machine.
    busy: Option<f64>,
}

fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

impl Measured {
    /// The median of each figure of these runs of the same number of processes.
    fn median(runs: &[Self]) -> Option<Self> {
        let figure = |of: fn(&Self) -> f64| median(runs.iter().map(of).collect());
        let known = |of: fn(&Self) -> Option<f64>| median(runs.iter().filter_map(of).collect());
        Some(Self {
            processes: runs.first()?.processes,
            steps: figure(|run| run.steps)?,
            between_ms: [figure(|run| run.between_ms[0])?, figure(|run| run.between_ms[1])?],
            append_ms: [figure(|run| run.append_ms[0])?, figure(|run| run.append_ms[1])?],
            worker_ms: figure(|run| run.worker_ms)?,
            database_ms: known(|run| run.database_ms),
            appends: figure(|run| run.appends)?,
            commits: figure(|run| run.commits)?,
            connections: figure(|run| run.connections)?,
            busy: known(|run| run.busy),
        })
    }

    /// Its share of what its processes would make together if each made so many steps a second.
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    fn share(&self, one: f64) -> f64 {
        self.steps / (one * self.processes as f64)
    }

    fn goal(&self) -> &'static str {
        match self.busy {
            _ if self.share(ideal()) >= GOAL => "met",
            Some(busy) if busy >= SATURATED => "saturated",
            _ => MISSED,
        }
    }

    fn row(&self, one: Option<f64>) -> Vec<String> {
        let reference = REFERENCE.iter().find(|(processes, _)| *processes == self.processes);
        let known = |figure: Option<String>| figure.unwrap_or_else(|| "?".to_owned());
        vec![
            self.processes.to_string(),
            format!("{:.1}", self.steps),
            known(one.map(|one| format!("{:.3}", self.share(one)))),
            format!("{:.3}", self.share(ideal())),
            known(reference.map(|(_, steps)| format!("{steps:.0}"))),
            self.goal().to_owned(),
            format!("{:.1}", self.between_ms[0]),
            format!("{:.1}", self.between_ms[1]),
            format!("{:.2}", self.append_ms[0]),
            format!("{:.2}", self.append_ms[1]),
            format!("{:.2}", self.worker_ms),
            known(self.database_ms.map(|ms| format!("{ms:.2}"))),
            format!("{:.0}", self.appends),
            format!("{:.0}", self.commits),
            format!("{:.0}", self.connections),
            known(self.busy.map(|busy| format!("{:.0} %", busy * 100.0))),
        ]
    }
}

/// Steps a second of one process that adds nothing to the time of its models.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn ideal() -> f64 {
    PLACES as f64 * 2_000.0 / (LATENCY_MS.0 + LATENCY_MS.1) as f64
}

fn measure(processes: usize, time: Duration, has_latency: bool, apart: Option<&Apart>) -> Result<Measured> {
    let server = apart::start(apart, Part::Database, || {
        PostgresServer::start()
            .ok_or_else(|| "Postgres is not installed; hint: `apt install postgresql`".into())
    })?;
    create(&server.url(), processes * PLACES)?;
    let args = [WORKER, &server.url(), if has_latency { "slow" } else { AT_ONCE }];
    let mut workers = apart::start(apart, Part::Workers, || {
        (0..processes).map(|_| Process::start(&args.map(AsRef::as_ref))).collect::<Result<Vec<_>>>()
    })?;
    fill(&mut workers)?;
    std::thread::sleep(SETTLE);
    let before = (Ticks::now(), machine::database_seconds(&server.data()), commits(&server)?);
    // What was counted until now.
    let _ = ask(&mut workers)?;
    std::thread::sleep(time);
    let figures = ask(&mut workers)?;
    let after = (Ticks::now(), machine::database_seconds(&server.data()), commits(&server)?);
    let connections = connections(&server)?;
    undisturbed(&figures)?;
    let steps = figures.iter().map(|each| each.steps).sum::<u64>().max(1) as f64;
    let wall = figures.iter().map(|each| each.wall_us).sum::<f64>() / 1e6 / processes as f64;
    let database = after.1.zip(before.1).map(|(after, before)| (after - before) * 1e3 / steps);
    Ok(Measured {
        processes,
        steps: steps / wall,
        between_ms: percentiles(figures.iter().flat_map(|each| &each.between_us)),
        append_ms: percentiles(figures.iter().flat_map(|each| &each.append_us)),
        worker_ms: figures.iter().map(|each| each.cpu_us).sum::<f64>() / 1e3 / steps,
        database_ms: database,
        appends: figures.iter().map(|each| each.append_us.len()).sum::<usize>() as f64 / wall,
        commits: (after.2 - before.2) / wall,
        connections,
        busy: after.0.zip(before.0).map(|(after, before)| after.busy_since(before)),
    })
}

/// Hands conversations over to the workers of a database.
fn create(url: &str, count: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let queue = AnyQueue::new(Postgres::open(Address::parse(url)?)?).ok_or("Postgres is no queue")?;
        let queue = &queue;
        let one = |nth: usize| async move {
            let claim = queue.create(&LogId::new(&format!("bench-{nth}"))?, &Meta::default()).await?;
            Ok::<_, crate::job::Error>(queue.release_until(claim, Due::Now).await?)
        };
        futures_util::stream::iter(0..count).map(one).buffer_unordered(32).try_collect().await
    })
}

fn ask(workers: &mut [Process]) -> Result<Vec<Figures>> {
    workers.iter_mut().map(Process::ask).collect()
}

/// Waits until every place of every worker is taken.
fn fill(workers: &mut [Process]) -> Result<()> {
    let begun = Instant::now();
    loop {
        let running: usize = ask(workers)?.iter().map(|each| each.running).sum();
        if running == workers.len() * PLACES {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            let places = workers.len() * PLACES;
            return Err(format!("only {running} of {places} conversations run after two minutes").into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Whether all conversations ran all the time, without an error of the store.
fn undisturbed(figures: &[Figures]) -> Result<()> {
    let failures: u64 = figures.iter().map(|each| each.failures).sum();
    let running: usize = figures.iter().map(|each| each.running).sum();
    if failures > 0 || running < figures.len() * PLACES {
        return Err(format!(
            "{failures} failures during the measurement; {running} conversations run at its end"
        )
        .into());
    }
    Ok(())
}

/// Committed transactions of the database.
fn commits(server: &PostgresServer) -> Result<f64> {
    Ok(server.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'polylogue'").parse()?)
}

/// Connections to the database, without that of this question.
fn connections(server: &PostgresServer) -> Result<f64> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'polylogue' AND pid <> pg_backend_pid()";
    Ok(server.sql(sql).parse()?)
}

/// The median and the 99th percentile of times in microseconds, in milliseconds.
fn percentiles<'t>(times: impl Iterator<Item = &'t u32>) -> [f64; 2] {
    let mut times: Vec<u32> = times.copied().collect();
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    [50, 99].map(|share| f64::from(at(share)) / 1e3)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn options_are_numbers_of_processes_and_seconds() {
        let options = |args: &[&str]| {
            Options::parse(args).map(|options| (options.processes, options.time.as_secs(), options.runs))
        };
        assert_eq!(options(&[]).unwrap(), (vec![1, 2, 4, 8, 16, 32], 30, 3));
        assert_eq!(options(&["1,32", "20"]).unwrap(), (vec![1, 32], 20, 3));
        assert_eq!(options(&["1", "20", "5"]).unwrap(), (vec![1], 20, 5));
        for wrong in [
            &["0"] as &[&str],
            &["33"],
            &["1,,2"],
            &["many"],
            &["1", "0"],
            &["1", "601"],
            &["1", "2", "0"],
            &["1", "2", "10"],
            &["1", "2", "3", "4"],
        ] {
            assert!(options(wrong).unwrap_err().to_string().contains("`cluster 1,2,4,8 30 3`"), "{wrong:?}");
        }
    }

    fn measured(steps: f64, busy: Option<f64>) -> Measured {
        Measured {
            processes: 2,
            steps,
            between_ms: [1.0, 2.0],
            append_ms: [0.5, 1.0],
            worker_ms: 0.5,
            database_ms: None,
            appends: 400.0,
            commits: 300.0,
            connections: 12.0,
            busy,
        }
    }

    #[test]
    fn the_median_of_each_figure_counts() {
        let runs = [measured(90.0, Some(0.9)), measured(102.0, None), measured(101.0, Some(0.5))];
        let median = Measured::median(&runs).unwrap();
        assert_eq!((median.steps, median.busy, median.database_ms), (101.0, Some(0.9), None));
        assert!(Measured::median(&[]).is_none());
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        assert_eq!(measured(1.0, None).row(None).len(), HEAD.len());
    }

    #[test]
    fn a_row_says_what_the_figures_say_of_scaling() {
        let columns = |measured: Measured| measured.row(Some(51.2))[2..6].join(" ");
        assert_eq!(columns(measured(102.4, Some(0.99))), "1.000 1.000 109 met");
        assert_eq!(columns(measured(90.0, Some(0.9))), "0.879 0.879 109 saturated");
        assert_eq!(columns(measured(90.0, Some(0.5))), "0.879 0.879 109 missed");
    }

    #[test]
    fn conversations_that_stopped_or_failed_are_an_error() {
        let figures = |running, failures| Figures {
            cpu_us: 1.0,
            wall_us: 1.0,
            steps: 1,
            running,
            failures,
            between_us: vec![1_000],
            append_us: vec![500],
        };
        assert!(undisturbed(&[figures(PLACES, 0), figures(PLACES, 0)]).is_ok());
        assert!(undisturbed(&[figures(PLACES, 0), figures(PLACES - 1, 0)]).is_err());
        assert!(undisturbed(&[figures(PLACES, 1)]).is_err());
    }
}
