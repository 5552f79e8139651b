//! Measurements in separate processes.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::job::{By, Cost, Job, RUNS, Result, What};
use crate::meter::Meter;
use crate::server::{Server, Way};
use crate::{bare, chats, groups, scripted};

/// The argument that makes this program measure and print a [`Cost`].
pub(crate) const MEASURE: &str = "measure";

/// Runs a job and prints its cost.
pub(crate) fn answer(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cost = runtime.block_on(do_it(&job))?;
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

async fn do_it(job: &Job) -> Result<Cost> {
    let url = &*job.base_url;
    match job.what {
        What::Nothing => Ok(Meter::start().stop()),
        What::Calls { by: By::Bare, chats, calls } => bare::calls(url, chats, calls).await,
        What::Calls { by, chats, calls } => chats::calls(url, by, chats, calls).await,
        What::Api { dialect, chats, calls, stream } => {
            chats::by_api(url, dialect, chats, calls, stream).await
        }
        What::Pieces { by: By::Bare, chats, .. } => bare::pieces(url, chats).await,
        What::Pieces { by, chats, watched } => chats::pieces(url, by, chats, watched).await,
        What::Crowd { by, chats, calls } => chats::crowd(url, by, chats, calls).await,
        What::Messages { count } => chats::messages(count).await,
        What::Library => scripted::library().await,
        What::Groups { groups, rounds, picked } => groups::crowd(groups, rounds, picked).await,
    }
}

/// The command that does a job.
pub(crate) fn command(base_url: String, what: What) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(MEASURE).arg(serde_json::to_string(&Job { base_url, what })?);
    Ok(command)
}

/// The command that runs one chat with the library alone, next to a server.
pub(crate) fn measure_library() -> Result<Command> {
    command(String::new(), What::Library)
}

/// Runs a job in a new process.
pub(crate) fn measure(server: &Server, way: Way, what: What) -> Result<Cost> {
    cost(command(server.base_url(way), what)?)
}

/// Measures each job [`RUNS`] times, in turn.
pub(crate) fn least(server: &Server, jobs: &[(Way, What)]) -> Result<Vec<Cost>> {
    let mut best: Vec<Option<Cost>> = vec![None; jobs.len()];
    for _ in 0..RUNS {
        for ((way, what), best) in jobs.iter().zip(&mut best) {
            let cost = measure(server, *way, *what)?;
            let least = best.map_or(cost, |best| Cost {
                cpu_us: best.cpu_us.min(cost.cpu_us),
                wall_us: best.wall_us.min(cost.wall_us),
                peak_kib: best.peak_kib.min(cost.peak_kib),
            });
            *best = Some(least);
        }
    }
    Ok(best.into_iter().flatten().collect())
}

/// Runs the job of a command.
pub(crate) fn cost(mut job: Command) -> Result<Cost> {
    let output = job.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{job:?} failed: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The instructions of a process, as callgrind counts them. `None` without valgrind.
pub(crate) fn instructions(job: &Command) -> Result<Option<u64>> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(job.get_program());
    let output = match valgrind.args(job.get_args()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("the program failed under valgrind: {stderr}").into());
    }
    let collected = stderr.lines().find_map(|line| line.split_once("Collected :"));
    let (_, collected) = collected.ok_or_else(|| format!("callgrind counted nothing: {stderr}"))?;
    Ok(Some(collected.trim().parse()?))
}

/// A process of this program that answers each line of its input with one of JSON, and ends with its input.
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this program with these arguments.
    pub(crate) fn start(args: &[&OsStr]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().ok_or("the process has no output")?);
        Ok(Self { child, stdin, lines })
    }

    /// The next line that it prints.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            return Err(format!("a process of the measurement has ended: {}", self.child.wait()?).into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Its answer to a line.
    pub(crate) fn ask<T: DeserializeOwned>(&mut self) -> Result<T> {
        let stdin = self.stdin.as_mut().ok_or("the process has ended")?;
        stdin.write_all(b"\n")?;
        stdin.flush()?;
        self.next()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let mut rest = Vec::new();
        let _ = self.lines.read_to_end(&mut rest);
        let _ = self.child.wait();
    }
}

/// Answers each line of this process' input, as [`Process::ask`] wants it. What is returned resolves when the input ends.
pub(crate) fn answer_lines<T: Serialize>(
    mut answer: impl FnMut() -> T + Send + 'static,
) -> oneshot::Receiver<()> {
    let (over, is_over) = oneshot::channel();
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines() {
            println!("{}", serde_json::to_string(&answer()).unwrap_or_default());
        }
        drop(over);
    });
    is_over
}
