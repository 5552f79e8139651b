//! Servers of Postgres, of the system's package, in temporary folders.

#![expect(clippy::panic, reason = "for tests: an error would only be unwrapped")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use pooler::Pooler;

use crate::skip::has;

mod pooler;

/// A server of Postgres on the loopback interface, ended when it is dropped, and when its process is killed.
///
/// Its user is `polylogue`, without a password, and so is its database.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    running: Option<Running>,
}

/// A shell that ends the server when its input is closed.
#[derive(Debug)]
struct Running {
    shell: Child,
    input: Option<ChildStdin>,
}

/// How long a server may take to start or to end.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `"$@"` until the input of this shell is closed.
const GUARD: &str = r#""$@" & server=$!; cat >/dev/null; kill -QUIT "$server"; wait "$server""#;

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl PostgresServer {
    /// Starts a server; `None` where Postgres is not installed, which is reported as [`has`] does.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with settings, such as `fsync=off`.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_with(settings: &[&str]) -> Option<Self> {
        let programs = programs();
        if !has("Postgres", programs.is_some()) {
            return None;
        }
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut server =
            Self { programs: programs?, folder: fresh_folder(), port: 0, settings, running: None };
        server.prepare().unwrap_or_else(|error| panic!("a server of Postgres cannot be made: {error}"));
        server.run();
        Some(server)
    }

    /// Starts a standby, which follows this server. Whether commits wait for it is this server's setting `synchronous_standby_names`:
    /// [`wait_for_standby`](Self::wait_for_standby).
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn standby(&self) -> Self {
        let (programs, settings) = (self.programs.clone(), self.settings.clone());
        let mut standby = Self { programs, folder: fresh_folder(), port: 0, settings, running: None };
        let made = fs::create_dir(&standby.folder).and_then(|()| own(&standby.folder));
        made.unwrap_or_else(|error| panic!("a folder of Postgres cannot be made: {error}"));
        let mut copy = standby.command("pg_basebackup");
        copy.arg("-D").arg(standby.data()).args(["-R", "-c", "fast", "-X", "stream", "--no-sync"]);
        copy.args(["-h", "127.0.0.1", "-U", "polylogue", "-p", &self.port.to_string()]);
        must(&mut copy);
        standby.run();
        standby
    }

    /// Sets whether commits wait for the standby.
    ///
    /// # Panics
    /// When it takes minutes until a standby follows.
    pub fn wait_for_standby(&self, wait: bool) {
        let names = if wait { "*" } else { "" };
        let _ = self.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
        let _ = self.sql("SELECT pg_reload_conf()");
        let state = if wait { "sync" } else { "async" };
        let begun = Instant::now();
        while self.sql("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'") != state {
            assert!(begun.elapsed() < LIMIT, "no standby follows");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes a standby a primary.
    ///
    /// # Panics
    /// When it is none.
    pub fn promote(&self) {
        must(self.command("pg_ctl").arg("promote").arg("-D").arg(self.data()));
    }

    /// Returns the address of its database, over TCP.
    pub fn url(&self) -> String {
        format!("postgres://polylogue@127.0.0.1:{}/polylogue", self.port)
    }

    /// Returns the port it listens on.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of its data.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Executes SQL with `psql`, and returns what it prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn sql(&self, script: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url(), "-c", script]);
        let output = psql.output().unwrap_or_else(|error| panic!("psql: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {said}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Kills it with all its processes, as a crash of the machine would, but for what the kernel has.
    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            // The server and its shell, and the sessions, which are groups of their own.
            let sessions = self.sessions();
            let group = format!("-{}", running.shell.id());
            signal("-KILL", &[&[group], sessions.as_slice()].concat());
            // It was killed.
            let _ = running.shell.wait();
            let begun = Instant::now();
            let is_there = |session: &String| Path::new("/proc").join(session).exists();
            while sessions.iter().any(is_there) && begun.elapsed() < LIMIT {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// The ids of its processes but the first.
    fn sessions(&self) -> Vec<String> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let server = file.lines().next().unwrap_or_default().trim().to_owned();
        let output = Command::new("ps").args(["-o", "pid=", "--ppid", &server]).output();
        let listed = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&listed).split_whitespace().map(str::to_owned).collect()
    }

    /// Starts it again at the same port, with the same data.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.kill();
        // Its processes may take a moment to go.
        let _ = fs::remove_file(self.data().join("postmaster.pid"));
        self.run();
    }

    fn prepare(&self) -> io::Result<()> {
        fs::create_dir(&self.folder)?;
        let mut initdb = self.command("initdb");
        initdb.arg("-D").arg(self.data());
        initdb.args(["--no-sync", "--no-instructions", "--locale=C", "--encoding=UTF8", "--auth=trust"]);
        initdb.args(["-U", "polylogue"]);
        own(&self.folder)?;
        must(&mut initdb);
        Ok(())
    }

    /// Starts it, and creates the database if there is none.
    fn run(&mut self) {
        // A free port may be taken by another process before the server takes it.
        let wanted = self.port;
        for _ in 0..5 {
            self.port = if wanted == 0 { free_port() } else { wanted };
            self.spawn().unwrap_or_else(|error| panic!("Postgres cannot be started: {error}"));
            if self.is_ready() {
                let mut create = self.command("createdb");
                create.args([
                    "-h",
                    "127.0.0.1",
                    "-p",
                    &self.port.to_string(),
                    "-U",
                    "polylogue",
                    "polylogue",
                ]);
                // After a restart it is there.
                let _ = create.output();
                return;
            }
            self.kill();
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        panic!("Postgres does not start:\n{log}");
    }

    fn spawn(&mut self) -> io::Result<()> {
        let log = File::create(self.folder.join("log"))?;
        let mut shell = self.command("sh");
        shell.args(["-c", GUARD, "sh"]).arg(self.programs.join("postgres")).arg("-D").arg(self.data());
        shell.args(["-p", &self.port.to_string(), "-k", "", "-c", "listen_addresses=127.0.0.1"]);
        shell.args(["-c", "max_connections=200"]);
        shell.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        shell.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let mut shell = shell.spawn()?;
        let input = shell.stdin.take();
        self.running = Some(Running { shell, input });
        Ok(())
    }

    /// Waits until it answers; not if it ended. It says so in its own folder: at its port, the server of another test can answer, which took
    /// that port first.
    fn is_ready(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            // The eighth line, as `pg_ctl` reads it.
            if file.lines().nth(7).is_some_and(|status| matches!(status.trim(), "ready" | "standby")) {
                return true;
            }
            let ended =
                self.running.as_mut().is_none_or(|running| !matches!(running.shell.try_wait(), Ok(None)));
            // The shell waits for its input; the server is gone when its file is.
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if ended
                || log.contains("FATAL:  could not create")
                || log.contains("database system is shut down")
            {
                return false;
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        false
    }

    /// A program of Postgres or of the system, as a user that Postgres accepts.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let own = self.programs.join(program.as_ref());
        let mut command = Command::new(if own.exists() { own.as_os_str() } else { program.as_ref() });
        command.current_dir(&self.folder).env("HOME", &self.folder).env("LC_ALL", "C");
        #[cfg(unix)]
        if let Some((user, group)) = unprivileged() {
            std::os::unix::process::CommandExt::uid(&mut command, user);
            std::os::unix::process::CommandExt::gid(&mut command, group);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            // Closed, so that the shell ends the server.
            running.input = None;
            let begun = Instant::now();
            while matches!(running.shell.try_wait(), Ok(None)) && begun.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs a program that must succeed.
fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The path of a folder that no other server has.
fn fresh_folder() -> PathBuf {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("polylogue-postgres-{}-{number}", std::process::id()))
}

/// The folder of the newest installed server's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| number(path));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = newest.map(|version| version.join("bin")).into_iter().chain(std::env::split_paths(&path));
    folders.into_iter().find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no free port: {error}"));
    listener.local_addr().map_or(0, |address| address.port())
}

fn signal(signal: &str, whom: &[String]) {
    // Where it is gone there is nothing to end.
    let _ = Command::new("kill").args([signal, "--"]).args(whom).stderr(Stdio::null()).status();
}

/// The user and group to run Postgres as, which refuses to run as root; `None` if this process is not root.
#[cfg(unix)]
fn unprivileged() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    if fs::metadata("/proc/self").map_or(1, |own| own.uid()) != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = |line: &str| {
        let mut fields = line.split(':').skip(2).map(str::parse);
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    };
    users.lines().find(|line| line.starts_with("postgres:")).and_then(user)
}

#[cfg(unix)]
fn own(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    match unprivileged() {
        Some((user, group)) => chown(folder, Some(user), Some(group)),
        None => Ok(()),
    }
}

#[cfg(not(unix))]
fn own(_: &Path) -> io::Result<()> {
    Ok(())
}
