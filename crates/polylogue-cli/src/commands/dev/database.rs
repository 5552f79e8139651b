//! A Postgres of the system's packages, in a folder of its own, for this user alone.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use polylogue_files::make_private_folder;
use tokio::time::sleep;

use super::guarded::Guarded;
use crate::error::CliError;
use crate::place;

/// How long it may take to start, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(100);

/// The longest path of a Unix socket that Linux takes, without its last NUL.
const LONGEST: usize = 107;

/// The file that Postgres makes in the folder of its socket.
const SOCKET: &str = ".s.PGSQL.5432";

const INSTALL: &str =
    "install it: `apt install postgresql`, `dnf install postgresql-server`, or `brew install postgresql`";

/// A database that is ended with this process.
pub(super) struct LocalDatabase {
    programs: PathBuf,
    folder: PathBuf,
    /// Whether the folder is removed at the end.
    is_temporary: bool,
    address: String,
    /// How many connections it takes.
    connections: u64,
    server: Option<Guarded>,
}

impl LocalDatabase {
    /// Starts it in `folder`, or in a temporary one, for so many `connections`.
    pub(super) async fn start(folder: Option<&Path>, connections: u64) -> Result<Self, CliError> {
        let programs = programs()
            .ok_or_else(|| CliError::usage("Postgres is not installed on this machine").hint(INSTALL))?;
        let is_temporary = folder.is_none();
        let folder = match folder {
            Some(folder) => absolute(folder)?,
            None => temporary()?,
        };
        if folder.join(SOCKET).as_os_str().len() > LONGEST {
            let what = format!("the path `{}` is too long for a database", folder.display());
            return Err(CliError::usage(what).hint("choose a shorter one, of at most 93 bytes"));
        }
        let encoded = utf8_percent_encode(&folder.to_string_lossy(), NON_ALPHANUMERIC).to_string();
        let address = format!("postgres://polylogue@{encoded}/polylogue");
        let mut database = Self { programs, folder, is_temporary, address, connections, server: None };
        database.prepare()?;
        database.run().await?;
        Ok(database)
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(super) fn is_over(&mut self) -> bool {
        self.server.as_mut().is_none_or(Guarded::is_over)
    }

    /// Makes the folder and the files of the database, unless they are there.
    fn prepare(&self) -> Result<(), CliError> {
        let failed = |error: std::io::Error| self.failed("made", &error.to_string());
        let has_database = self.data().join("PG_VERSION").exists();
        // The folder becomes that of Postgres, whose user may be another one.
        if !has_database && fs::read_dir(&self.folder).is_ok_and(|mut files| files.next().is_some()) {
            let what =
                format!("the folder `{}` has other files than those of a database", self.folder.display());
            return Err(CliError::usage(what).hint("name an empty folder, or one that does not exist"));
        }
        make_private_folder(&self.folder).map_err(failed)?;
        if let Some((user, group)) = other_user() {
            chown(&self.folder, Some(user), Some(group)).map_err(failed)?;
        }
        if has_database {
            return Ok(());
        }
        let mut make = self.command("initdb");
        make.arg("-D")
            .arg(self.data())
            .args(["-U", "polylogue", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        self.must(&mut make, "made")
    }

    async fn run(&mut self) -> Result<(), CliError> {
        // Before its log is replaced.
        if self.is_in_use() {
            let what = format!("another process runs the database in `{}`", self.folder.display());
            return Err(
                CliError::usage(what).hint("end it, such as another `polylogue dev`, or name another folder")
            );
        }
        let log = File::create(self.log()).map_err(|error| self.failed("started", &error.to_string()))?;
        let copy = log.try_clone().map_err(|error| self.failed("started", &error.to_string()))?;
        // Only by a socket of this user: others may be able to look into the folder.
        let mut words: Vec<OsString> =
            vec![self.programs.join("postgres").into(), "-D".into(), self.data().into()];
        words.extend(["-k".into(), self.folder.clone().into_os_string()]);
        let only_here = ["-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-p", "5432"];
        words.extend(only_here.map(OsString::from));
        words.extend(["-c".into(), format!("max_connections={}", self.connections).into()]);
        let folder = self.folder.clone();
        self.server = Some(Guarded::spawn("the database", "INT", &words, |command| {
            command.stdout(log).stderr(copy).current_dir(folder);
            as_other_user(command);
        })?);
        let begun = Instant::now();
        while !self.answers() {
            if self.is_over() || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                let last = log.lines().last().unwrap_or("it says nothing").to_owned();
                return Err(self.failed("started", &last));
            }
            sleep(PAUSE).await;
        }
        self.create()
    }

    fn answers(&self) -> bool {
        self.readiness() == Some(0)
    }

    /// Whether a database runs in the folder, also one that starts or ends.
    fn is_in_use(&self) -> bool {
        matches!(self.readiness(), Some(0 | 1))
    }

    /// The exit code of `pg_isready`: 0 if a database takes connections, 1 if it refuses them.
    fn readiness(&self) -> Option<i32> {
        let mut ready = self.command("pg_isready");
        ready.args(["-q", "-p", "5432", "-h"]).arg(&self.folder);
        ready.status().ok()?.code()
    }

    /// Creates the database in it, unless it is there.
    fn create(&self) -> Result<(), CliError> {
        let mut create = self.command("createdb");
        create.args(["-U", "polylogue", "-p", "5432", "-h"]).arg(&self.folder).arg("polylogue");
        match create.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) if String::from_utf8_lossy(&output.stderr).contains("already exists") => Ok(()),
            Ok(output) => Err(self.failed("made", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(self.failed("made", &error.to_string())),
        }
    }

    /// Ends it, and removes a temporary folder.
    pub(super) async fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.ask_to_end();
            let begun = Instant::now();
            while !server.is_over() && begun.elapsed() < PATIENCE {
                sleep(PAUSE).await;
            }
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(&self.folder).env("LC_ALL", "C");
        as_other_user(&mut command);
        command
    }

    fn must(&self, command: &mut Command, what: &str) -> Result<(), CliError> {
        match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(self.failed(what, String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(self.failed(what, &error.to_string())),
        }
    }

    fn failed(&self, what: &str, why: &str) -> CliError {
        CliError::failed(format!("a database in `{}` cannot be {what}: {why}", self.folder.display()))
            .hint("choose another folder with `--postgres=FOLDER`")
    }
}

impl Drop for LocalDatabase {
    fn drop(&mut self) {
        self.server = None;
        if self.is_temporary {
            // What is left is in the folder of temporary files.
            let _ = fs::remove_dir_all(&self.folder);
            // Work directories and tokens for a database that is gone.
            if let Ok(Some(folder)) = place::folder_of_database(&self.address) {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }
}

fn absolute(folder: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(folder)
        .map_err(|error| CliError::usage(format!("`{}` is no path: {error}", folder.display())))
}

/// The path of a folder that no other process has.
fn temporary() -> Result<PathBuf, CliError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|error| CliError::failed(format!("there is no randomness: {error}")))?;
    Ok(std::env::temp_dir().join(format!("polylogue-dev-{:016x}", u64::from_ne_bytes(random))))
}

/// The folder of Postgres' programs: of the newest version where the system keeps several, or in the search path.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        let number = entry.file_name().to_string_lossy().parse();
        versions.extend(number.ok().map(|number| (number, entry.path().join("bin"))));
    }
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders =
        versions.into_iter().rev().map(|(_, folder)| folder).chain(std::env::split_paths(&path));
    folders.find(|folder| {
        ["initdb", "postgres", "createdb", "pg_isready"].iter().all(|name| folder.join(name).exists())
    })
}

/// Postgres refuses to run as root: then its own user of the system runs it.
fn other_user() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").ok()?.uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = users.lines().find(|line| line.starts_with("postgres:"))?.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn as_other_user(command: &mut Command) {
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group);
    }
}
