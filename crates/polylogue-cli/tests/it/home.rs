//! Its own folder for each test, and the program run in it.

use std::fs;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use polylogue_test::server::{Behavior, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Nothing here takes nearly as long: what does hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// The key that models are reached with. It may be written nowhere.
pub(crate) const KEY: &str = "sk-test-7f3a9c51d2";

/// Where nothing listens: a port that the system assigns only on request.
pub(crate) const UNREACHABLE: &str = "http://127.0.0.1:1/v1";

/// A home folder, where conversations are kept in `store.db`. When it is given up, nothing in it may hold the key.
pub(crate) struct Home {
    dir: TempDir,
    vars: Vec<(String, String)>,
}

impl Home {
    /// Without a key or a server.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store.db").display().to_string();
        Self { dir, vars: vec![("POLYLOGUE_STORE".into(), store)] }
    }

    /// With a key, and `server` instead of OpenAI's.
    pub(crate) fn at(server: &Server) -> Self {
        Self::new().var("OPENAI_API_KEY", KEY).var("OPENAI_BASE_URL", &server.base_url())
    }

    /// With this `team.yaml`.
    pub(crate) fn with_team(self, text: &str) -> Self {
        self.file("team.yaml", text);
        self
    }

    /// With one more environment variable.
    pub(crate) fn var(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.vars.retain(|(known, _)| known != name);
        self.vars.push((name.into(), value.into()));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and gives its name, for the command line.
    pub(crate) fn file<'n>(&self, name: &'n str, text: &str) -> &'n str {
        fs::write(self.path(name), text).unwrap();
        name
    }

    /// Gives the user rules for approvals.
    pub(crate) fn rules(&self, text: &str) {
        fs::create_dir_all(self.path(".config/polylogue")).unwrap();
        self.file(".config/polylogue/approvals.yaml", text);
    }

    /// Has the user allow all programs without a question, also those without a sandbox.
    pub(crate) fn allow_programs(&self) {
        self.rules("- allow: {command: '*'}\n");
    }

    /// The program, or another one, with nothing of the user's own settings.
    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.dir.path()).env_clear().env("HOME", self.dir.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.vars.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Begins to run the program, without a terminal.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::spawn(&mut self.command(PROGRAM, args), "")
    }

    /// Runs the program, without a terminal, to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.start(args).end()
    }

    /// The same with something to read on its standard input.
    pub(crate) fn run_reading(&self, input: &str, args: &[&str]) -> Ran {
        Running::spawn(&mut self.command(PROGRAM, args), input).end()
    }

    /// Runs a script of the shell, in which the program is called `polylogue`.
    pub(crate) fn shell(&self, script: &str) -> Ran {
        let script = format!("polylogue() {{ {PROGRAM} \"$@\"; }}\n{script}");
        Running::spawn(&mut self.command("sh", &["-c", &script]), "").end()
    }

    /// The conversations there are, newest first.
    pub(crate) fn listed(&self) -> Vec<Value> {
        self.run(&["runs", "--json"]).ok().lines()
    }

    /// The id of the newest conversation.
    pub(crate) fn id(&self) -> String {
        self.listed()[0]["id"].as_str().unwrap().to_owned()
    }

    /// The events of the newest conversation.
    pub(crate) fn events(&self) -> Vec<Value> {
        events_of(self.run(&["show", "last", "--json"]).ok().lines())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_secret(self.dir.path());
        }
    }
}

/// No file below `folder` holds the key.
fn assert_secret(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_secret(&path);
        } else if let Ok(bytes) = fs::read(&path) {
            let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_polylogue");

/// The path of a team that ships.
pub(crate) fn shipped(team: &str) -> String {
    format!("{}/../../teams/{team}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// A server on a free port of this machine.
pub(crate) fn serve(behavior: impl Into<Behavior>) -> Server {
    Server::bind((Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap()
}

/// A process that runs.
pub(crate) struct Running {
    child: Child,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
}

impl Running {
    fn spawn(command: &mut Command, input: &str) -> Self {
        let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
        let command = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).unwrap();
        }
        let (out, err) = (collect(child.stdout.take().unwrap()), collect(child.stderr.take().unwrap()));
        Self { child, out, err }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        let status = wait(&mut self.child);
        let (out, err) = (self.out.join().unwrap(), self.err.join().unwrap());
        assert!(!out.contains(KEY) && !err.contains(KEY), "the key is shown: {out}\n{err}");
        Ran { code: status.code().unwrap_or(-1), out, err }
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error is the end, too.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end of `child`, and ends it if it hangs.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `holds`.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not yet: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a process left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// It must have ended well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.exits(0)
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    /// Each line of the output as JSON.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The output, and the errors below a line, without what differs from run to run.
    pub(crate) fn masked(&self, home: &Home) -> String {
        let ids: Vec<String> =
            home.listed().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
        let mut text = format!("{}--- {}\n{}", self.out, self.code, self.err);
        for id in ids {
            text = text.replace(&id, "ID");
        }
        let text = text.replace(&home.dir.path().display().to_string(), "HOME");
        undated(&text).lines().map(|line| without_time(line) + "\n").collect()
    }
}

/// The events among the lines of `show --json`, before which its bound can be.
pub(crate) fn events_of(lines: Vec<Value>) -> Vec<Value> {
    lines.into_iter().filter(|line| line["type"] != "bound").collect()
}

/// The text without the date of the prices and the digest of the team that a bound has, wherever its rows break.
pub(crate) fn undated(text: &str) -> String {
    let masked = |word: &str| {
        let before =
            |count: usize, end: char| word.split_at_checked(count).filter(|(_, rest)| rest.starts_with(end));
        let is_date = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '-');
        let is_digest = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
        match (before(10, ','), before(12, ')')) {
            (Some((date, rest)), _) if is_date(date) => format!("DATE{rest}"),
            (_, Some((digest, rest))) if is_digest(digest) => format!("DIGEST{rest}"),
            _ => word.to_owned(),
        }
    };
    text.split_inclusive(char::is_whitespace).map(masked).collect()
}

/// A closing line ends with how long the run took.
fn without_time(line: &str) -> String {
    let is_closing = line.contains(" turns · ") || line.contains(" turn · ");
    match line.rsplit_once(" · ").filter(|_| is_closing) {
        Some((before, _)) => format!("{before} · TIME"),
        None => line.to_owned(),
    }
}

/// The lines that commands on one conversation printed with `--json` begin and end as those of a run, and all together have every event
/// of its log once.
#[track_caller]
pub(crate) fn assert_whole(outputs: &[Vec<Value>], events: &[Value]) {
    for lines in outputs {
        let ends = [lines.first(), lines.last()].map(|line| line.unwrap()["type"].as_str().unwrap());
        assert_eq!(ends, ["run_started", "run_ended"]);
    }
    let shown: Vec<&Value> = outputs.iter().flatten().filter(|line| line.get("seq").is_some()).collect();
    assert_eq!(shown, events.iter().collect::<Vec<_>>());
}

/// The bodies of events of one type.
pub(crate) fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The events without what differs from run to run.
pub(crate) fn timeless(events: &[Value]) -> Vec<Value> {
    let without = |event: &Value| {
        let mut event = event.clone();
        event.as_object_mut().unwrap().shift_remove("time_ms");
        event.as_object_mut().unwrap().shift_remove("ran_ms");
        event
    };
    events.iter().map(without).collect()
}
