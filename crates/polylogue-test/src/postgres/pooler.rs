//! A pooler in front of a server: `PgBouncer`, of the system's package.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{PostgresServer, free_port, fresh_folder, own};
use crate::skip::has;

/// A pooler in transaction mode: each statement of its clients may reach another session of the server. Ended when it is dropped.
#[derive(Debug)]
pub struct Pooler {
    folder: PathBuf,
    port: u16,
    process: Child,
}

/// Where the program is. It is in no folder of an ordinary user's path.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// How long it may take to start.
const LIMIT: Duration = Duration::from_secs(60);

impl Pooler {
    /// Starts one with `sessions` connections to `server`; `None` where it is not installed, which is reported as [`has`] does.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(server: &PostgresServer, sessions: u16) -> Option<Self> {
        if !has("PgBouncer", Path::new(PROGRAM).exists()) {
            return None;
        }
        let (folder, port) = (fresh_folder(), free_port());
        let started = spawn(server, &folder, port, sessions);
        let process = started.unwrap_or_else(|error| panic!("PgBouncer cannot be started: {error}"));
        let mut pooler = Self { folder, port, process };
        pooler.wait();
        Some(pooler)
    }

    /// Returns the address of the server's database through the pooler.
    pub fn url(&self) -> String {
        format!("postgres://polylogue@127.0.0.1:{}/polylogue", self.port)
    }

    fn wait(&mut self) {
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let is_running = matches!(self.process.try_wait(), Ok(None)) && begun.elapsed() < LIMIT;
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(is_running, "PgBouncer does not start:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn spawn(server: &PostgresServer, folder: &Path, port: u16, sessions: u16) -> std::io::Result<Child> {
    fs::create_dir(folder)?;
    own(folder)?;
    let settings = format!(
        "[databases]\npolylogue = host=127.0.0.1 port={} user=polylogue pool_size={sessions}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\nmax_client_conn = 900\n",
        server.port()
    );
    let file = folder.join("pgbouncer.ini");
    fs::write(&file, settings)?;
    let log = File::create(folder.join("log"))?;
    let mut program: Command = server.command(PROGRAM);
    program.arg(file).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    program.spawn()
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // It was ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
