//! A folder with a team, a store and its own model, where the program is run.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use polylogue_test::server::{Behavior, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::random::Moment;
use crate::replies::{TEAM, model};

/// Where conversations are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Sqlite,
    Jsonl,
}

impl Kind {
    /// The store, in the folder of the place.
    const fn store(self) -> &'static str {
        match self {
            Self::Sqlite => "talk.db",
            Self::Jsonl => "talks/",
        }
    }
}

/// What a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The talk, for people.
    Talk,
    /// Every event.
    Events,
}

/// Nothing here takes nearly as long: what does hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with one conversation, and its model.
pub(crate) struct Place {
    dir: TempDir,
    kind: Kind,
    pub(crate) server: Server,
}

impl Place {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::of(kind, TEAM, model())
    }

    /// With this team, whose model behaves in this way.
    pub(crate) fn of(kind: Kind, team: &str, model: Behavior) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("team.yaml"), team).unwrap();
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), model).unwrap();
        Self { dir, kind, server }
    }

    /// Where its conversations are.
    pub(crate) fn store(&self) -> PathBuf {
        self.dir.path().join(self.kind.store())
    }

    /// Writes a file, next to the team or in a folder below.
    pub(crate) fn file(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Whether such a file was written.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.dir.path().join(name).exists()
    }

    fn program(&self, args: &[&str]) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_polylogue"));
        // Nothing of the user's own settings is to count.
        program.env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path());
        program.env("OPENAI_BASE_URL", self.server.base_url()).env("OPENAI_API_KEY", "test");
        program.args(args).args(["--store", self.kind.store()]).stdin(Stdio::null());
        program
    }

    /// Begins or resumes the conversation.
    pub(crate) fn start(&self, is_begun: bool, shows: Shows) -> Process<'_> {
        let args: &[&str] = match is_begun {
            true => &["resume", "last"],
            false => &["run", "team.yaml", "--model", "openai:test"],
        };
        let json: &[&str] = if shows == Shows::Events { &["--json"] } else { &[] };
        self.begin(&[args, json].concat())
    }

    /// Begins to run the program with these arguments.
    pub(crate) fn begin(&self, args: &[&str]) -> Process<'_> {
        let mut program = self.program(args);
        let [output, errors] = ["output", "errors"].map(|name| self.dir.path().join(name));
        program.stdout(File::create(&output).unwrap()).stderr(File::create(&errors).unwrap());
        let (asked, replied) = (self.server.count(), self.server.replies());
        Process {
            child: program.spawn().unwrap(),
            begun: Instant::now(),
            asked,
            replied,
            server: &self.server,
            output,
            errors,
        }
    }

    /// What the program writes with these arguments, in lines of JSON.
    pub(crate) fn lines(&self, args: &[&str]) -> Vec<Value> {
        let output = self.program(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Takes the last events out of the JSON lines, as a store would that had not kept what it acknowledged.
    pub(crate) fn forget_events(&self, events: usize) {
        let mut logs =
            std::fs::read_dir(self.dir.path().join("talks")).unwrap().map(|entry| entry.unwrap().path());
        let log = logs.find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let kept = lines[..lines.len() - events].join("\n");
        std::fs::write(&log, format!("{kept}\n")).unwrap();
        // It says how many there were.
        std::fs::remove_file(log.with_extension("head")).unwrap();
    }

    /// The events of `polylogue show --json`, one a line; `None` when there is no conversation yet.
    pub(crate) fn shown(&self) -> Option<Vec<String>> {
        let output = self.program(&["show", "last", "--json"]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        // Killed before the store was there, or before the conversation was in it.
        if ["there is no store at", "there are no conversations yet"].iter().any(|none| errors.contains(none))
        {
            return None;
        }
        assert!(output.status.success(), "the conversation cannot be shown: {errors}");
        let text = String::from_utf8(output.stdout).unwrap();
        // The bound is no event.
        let events = text.lines().filter(|line| line.contains("\"seq\":"));
        Some(events.map(str::to_owned).collect())
    }
}

/// The program while it runs. Dropping it kills it.
pub(crate) struct Process<'a> {
    child: Child,
    begun: Instant,
    /// How many requests came before it was started.
    asked: usize,
    /// How many replies had gone out by then.
    replied: usize,
    server: &'a Server,
    output: PathBuf,
    errors: PathBuf,
}

impl Process<'_> {
    /// Kills it at this moment; how it ended when it was done by itself before.
    pub(crate) fn kill(&mut self, moment: Moment) -> Option<ExitStatus> {
        let (requests, replies, pause) = match moment {
            Moment::Start(pause) => (0, 0, pause),
            Moment::Request(requests, pause) => (requests, 0, pause),
            Moment::Reply(replies, pause) => (0, replies, pause),
        };
        let (server, requests, replies) = (self.server, self.asked + requests, self.replied + replies);
        self.kill_when(|| server.count() >= requests && server.replies() >= replies, pause)
    }

    /// The same a while after `is_reached`.
    pub(crate) fn kill_when(&mut self, is_reached: impl Fn() -> bool, pause: Duration) -> Option<ExitStatus> {
        while !is_reached() {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            self.look_at_the_clock();
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(pause);
        if let Some(status) = self.child.try_wait().unwrap() {
            return Some(status);
        }
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        // It may have come to its end in the last moment.
        status.code().is_some().then_some(status)
    }

    /// Asks it to end, by `SIGTERM`.
    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            self.look_at_the_clock();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The events it has written in full lines, when it shows events; not the lines around them, which are no events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.output).unwrap();
        let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
        let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["seq"].is_u64()).collect()
    }

    /// The first line of its output, once it is there.
    pub(crate) fn first_line(&self) -> String {
        loop {
            let text = std::fs::read_to_string(&self.output).unwrap();
            if let Some((line, _)) = text.split_once('\n') {
                return line.to_owned();
            }
            self.look_at_the_clock();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What it wrote in addition to its output.
    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap()
    }

    fn look_at_the_clock(&self) {
        assert!(self.begun.elapsed() < PATIENCE, "the program hangs; it said: {}", self.errors());
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        // Fails when it has ended, as it should have.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
