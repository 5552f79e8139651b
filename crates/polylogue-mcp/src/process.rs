//! The processes of a server, which all end with the connection.
//!
//! A server is often a tree of processes (`npx` runs a shell that runs `node`), so it gets its own process group. Next to
//! it runs a supervisor: a shell that waits for the end of its input, whose other end only this process holds, and then
//! terminates the group, first with SIGTERM, and processes that left it. The input ends with the connection, and with this process,
//! however it dies.

use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::declaration::Launch;

/// The environment variables that servers inherit: what programs commonly need, and no secrets.
const INHERITED: [&str; 11] =
    ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Ends the process group `$1` when its input ends, and then whatever left it: processes that have `$2` in their environment,
/// again until there are none.
#[cfg(unix)]
const WATCHMAN: &str = r#"trap "" HUP INT TERM
read -r _
kill -s TERM -- "-$1" && { sleep 1; kill -s KILL -- "-$1"; }
for _ in 1 2 3 4 5 6 7 8; do
  left=$(grep -lszxF -e "$2" /proc/[0-9]*/environ)
  [ -n "$left" ] || exit 0
  for one in $left; do pid=${one#/proc/}; kill -s KILL "${pid%/environ}"; done
done"#;

/// An environment variable with a unique value for each server, by which processes that left its process group are found.
#[cfg(unix)]
const MARK: &str = "POLYLOGUE_MCP_SERVER";

/// A value that no other server has.
#[cfg(unix)]
fn mark() -> String {
    static NTH: AtomicU64 = AtomicU64::new(0);
    let nth = NTH.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let whole = format!("{} {nth} {now}", std::process::id());
    blake3::hash(whole.as_bytes()).to_hex().to_string()
}

/// How much of the end of a server's error output is kept, in bytes.
const TAIL_BYTES: usize = 2048;

/// A running server. Dropping it terminates the server.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The supervisor, whose input ends when it is dropped.
    #[cfg(unix)]
    _watchman: Child,
    tail: Arc<Mutex<Vec<u8>>>,
    /// The task that reads the error output.
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts the server. Must be called in a runtime.
    ///
    /// # Errors
    /// When the program does not exist or cannot be started.
    pub(crate) fn start(launch: &Launch) -> Result<(Self, ChildStdout, ChildStdin), String> {
        let mut command = Command::new(&launch.command);
        command.args(&launch.args).env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(launch.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        let mark = mark();
        #[cfg(unix)]
        command.process_group(0).env(MARK, &mark);
        #[cfg(not(unix))]
        command.kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot be started: `{}`: {}", launch.command, said(&error)))?;
        #[cfg(unix)]
        let supervisor = supervisor(&mut child, &mark)?;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(output), Some(input), Some(errors)) = pipes else {
            return Err("cannot be started: it has no pipes".into());
        };
        let tail = Arc::default();
        let reader = Some(tokio::spawn(keep_tail(errors, Arc::clone(&tail))));
        let process = Self {
            child,
            #[cfg(unix)]
            _watchman: supervisor,
            tail,
            reader,
        };
        Ok((process, output, input))
    }

    /// Waits for its end, and the end of its error output.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        // Remaining processes may hold the other end open: then the caller's timeout ends the wait.
        if let Some(reader) = &mut self.reader {
            let _ = reader.await;
            self.reader = None;
        }
        status
    }

    /// The end of its error output.
    pub(crate) fn last_words(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).trim().to_owned()
    }
}

/// Starts the supervisor of `child`, which is terminated if that fails.
#[cfg(unix)]
fn supervisor(child: &mut Child, mark: &str) -> Result<Child, String> {
    let group = child.id().map(|id| id.to_string()).unwrap_or_default();
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", WATCHMAN, "sh", &group, &format!("{MARK}={mark}")])
        .env_clear()
        .envs(std::env::var_os("PATH").map(|p| ("PATH", p)));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().map_err(|error| {
        // The process is being dropped, so an error cannot be reported.
        let _ = child.start_kill();
        format!("cannot be watched over: `/bin/sh`: {error}")
    })
}

fn said(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "the program or directory does not exist".into(),
        _ => error.to_string(),
    }
}

/// Reads `errors` to the end, so that the server never blocks, and keeps the last part.
async fn keep_tail(mut errors: impl AsyncRead + Unpin, tail: Arc<Mutex<Vec<u8>>>) {
    let mut piece = vec![0; 8192];
    while let Ok(read @ 1..) = errors.read(&mut piece).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(piece.get(..read).unwrap_or_default());
        let exceeded = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..exceeded);
    }
}
