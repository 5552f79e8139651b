//! A cluster on one machine: a home folder, a database, and worker processes.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::Server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_polylogue");

/// Nothing here takes nearly as long: what does hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A home folder whose conversations are in one store.
pub(crate) struct Place {
    dir: TempDir,
    program: String,
    vars: Vec<(String, String)>,
}

impl Place {
    /// With conversations at `store`.
    pub(crate) fn new(store: &str) -> Self {
        Self::of_default_store().with_var("POLYLOGUE_STORE", store)
    }

    /// With conversations where they are by default.
    pub(crate) fn of_default_store() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), program: PROGRAM.to_owned(), vars: Vec::new() }
    }

    /// With another build of the program.
    pub(crate) fn with_program(self, program: String) -> Self {
        Self { program, ..self }
    }

    /// With `model` instead of OpenAI's.
    pub(crate) fn with_model(mut self, model: &Server) -> Self {
        self.vars.push(("OPENAI_BASE_URL".into(), model.base_url()));
        self.vars.push(("OPENAI_API_KEY".into(), "test".into()));
        self
    }

    /// With this `team.yaml`.
    pub(crate) fn with_team(self, text: &str) -> Self {
        self.file("team.yaml", text);
        self
    }

    /// With an environment variable.
    pub(crate) fn with_var(mut self, name: &str, value: &str) -> Self {
        self.vars.push((name.into(), value.into()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of(&self.program, args)
    }

    fn command_of(&self, program: &str, args: &[&str]) -> Command {
        let mut program = Command::new(program);
        program.args(args).env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path());
        program.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        program.envs(self.vars.iter().map(|(name, value)| (name, value)));
        program
    }

    /// Runs the program to its end, which must have this exit code.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str], exit: i32) -> Ran {
        let Output { status, stdout, stderr } = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ran = Ran { out: text(stdout), err: text(stderr) };
        assert_eq!(status.code(), Some(exit), "{args:?}\n{}\n{}", ran.out, ran.err);
        ran
    }

    /// Hands a conversation over to workers, and returns its id.
    #[track_caller]
    pub(crate) fn detach(&self, args: &[&str]) -> String {
        let ran = self.run(&[&["run", "--detach"], args].concat(), 0);
        ran.out.trim().to_owned()
    }

    pub(crate) fn events(&self, id: &str) -> Vec<Value> {
        let lines = self.run(&["show", id, "--json"], 0).lines().into_iter();
        // The bound is no event.
        lines.filter(|line| line["type"] != "bound").collect()
    }

    /// What `cluster` shows: workers, and conversations that are not idle.
    pub(crate) fn cluster(&self) -> (Vec<Value>, Vec<Value>) {
        let rows = self.run(&["cluster", "--json"], 0).lines().into_iter();
        let is_shared = |row: &Value| row.get("budget").is_some() || row.get("provider").is_some();
        rows.filter(|row| !is_shared(row)).partition(|row| row.get("worker").is_some())
    }

    /// Whether `holds` of every conversation that `runs` lists, of which there are `count`.
    pub(crate) fn all(&self, count: usize, holds: impl Fn(&str) -> bool) -> bool {
        let listed = self.run(&["runs", "--json"], 0).lines();
        assert_eq!(listed.len(), count, "no conversation is lost");
        listed.iter().all(|row| holds(row["status"].as_str().unwrap()))
    }

    /// Starts a worker.
    pub(crate) fn worker(&self, args: &[&str]) -> WorkerProcess {
        self.start(self.command(&[&["worker"], args].concat()), "worker.out")
    }

    /// Starts this program of tests again, as the process that a test is which is ignored otherwise.
    pub(crate) fn process(&self, test: &str) -> WorkerProcess {
        let program = std::env::current_exe().unwrap().display().to_string();
        let args = ["--exact", test, "--ignored", "--nocapture", "--test-threads=1"];
        self.start(self.command_of(&program, &args), "process.out")
    }

    /// Starts a worker that ignores `SIGHUP`.
    pub(crate) fn worker_with_nohup(&self, args: &[&str]) -> WorkerProcess {
        self.start(
            self.command_of("nohup", &[&[self.program.as_str(), "worker"], args].concat()),
            "worker.out",
        )
    }

    /// Starts the program, whose output is in the file `output`.
    pub(crate) fn begin(&self, args: &[&str], output: &str) -> WorkerProcess {
        self.start(self.command(args), output)
    }

    fn start(&self, mut program: Command, output: &str) -> WorkerProcess {
        let log = tempfile::NamedTempFile::new_in(self.dir.path()).unwrap();
        let errors = File::options().append(true).open(log.path()).unwrap();
        let output = File::create(self.path(output)).unwrap();
        let child = program.stdout(output).stderr(errors).spawn().unwrap();
        WorkerProcess { child, log }
    }
}

/// What a process printed.
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Each line of the output as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A worker, or a server. Killed when it is dropped.
pub(crate) struct WorkerProcess {
    child: Child,
    log: tempfile::NamedTempFile,
}

impl WorkerProcess {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it as a crash of its machine would: its claims stay.
    pub(crate) fn kill(mut self) -> u32 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child.id()
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, and returns its exit code.
    pub(crate) fn end(&mut self) -> i32 {
        until("the worker ends", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Has it release all that it runs, and end.
    #[track_caller]
    pub(crate) fn drain(&mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.end(), 0, "{}", self.log());
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends the leases of a process that was killed, by the clock of the database and by their numbers, instead of waiting for a minute and a half.
pub(crate) fn expire(server: &PostgresServer, process: u32) {
    let _ = server.sql(&format!(
        "UPDATE polylogue.logs SET lease = now() - interval '2 minutes', lease_nr = 0, due = CASE WHEN due IS NULL THEN NULL ELSE now() END
         WHERE holder IN (SELECT id FROM polylogue.nodes WHERE process ~ '^process {process}( |$)')"
    ));
}

/// The conversations that a worker has.
pub(crate) fn held_by(server: &PostgresServer, worker: &WorkerProcess) -> Vec<String> {
    let ids = server.sql(&format!(
        "SELECT logs.id FROM polylogue.logs JOIN polylogue.nodes ON holder = nodes.id
         WHERE process ~ '^process {}( |$)'",
        worker.id()
    ));
    ids.lines().map(str::to_owned).collect()
}

/// A number of the environment.
pub(crate) fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Waits until `holds`.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not yet: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The bodies of events of one type.
pub(crate) fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}
