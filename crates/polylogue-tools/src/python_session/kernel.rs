//! A running interpreter, and its protocol.

use std::io::{ErrorKind, PipeWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use polylogue_sandbox::{Cancellation, Error, Limits, Program, Sandbox, Streams};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::reply::{Message, Reply};

/// The program that the interpreter runs.
const DRIVER: &str = include_str!("driver.py");
/// How long an interpreter may take to start: a machine may be busy, and an environment large.
const START: Duration = Duration::from_secs(60);
/// How long interrupted code may take to end.
const GRACE: Duration = Duration::from_secs(3);
/// Maximum length of a line of the driver in bytes: longer than the longest picture, result or error.
const MAX_LINE: usize = 6 << 20;
/// How much of an interpreter's last output is kept, in characters.
const LAST_WORDS: usize = 2000;
/// How long to wait for further output between calls.
const IDLE: Duration = Duration::from_millis(10);
/// Delay before the next attempt to write to a full pipe, or the next look at a call.
const PAUSE: Duration = Duration::from_millis(5);

/// An interpreter. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Kernel {
    line: Arc<Line>,
    runs: u64,
}

/// The connection to an interpreter.
#[derive(Debug)]
struct Line {
    input: Mutex<PipeWriter>,
    cancellation: Cancellation,
    state: Mutex<State>,
    /// Notified when a call is done, and when the interpreter is ready or has ended.
    changed: Notify,
}

/// The state of an interpreter, of limited size.
#[derive(Debug)]
struct State {
    listens: bool,
    /// The call in progress.
    call: Option<Key>,
    /// The calls whose code has not ended, those included whose callers are gone.
    running: Vec<Key>,
    is_done: bool,
    /// Output of that call; between two calls, output before the next.
    reply: Reply,
    /// Maximum size of the text of a reply in bytes.
    limit: usize,
    /// Why it has ended, and whether it never started.
    over: Option<Result<String, Error>>,
}

/// A key that the messages of one call must contain, so that remains of earlier calls are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key(String);

impl Key {
    fn new() -> Result<Self, Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::Config(format!("the system has no random numbers: {error}")))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.line.cancellation.cancel();
    }
}

impl Kernel {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, ends, or is not ready in time.
    pub(super) async fn start(sandbox: &Sandbox, interpreter: &str) -> Result<Self, Error> {
        Self::start_within(START, sandbox, interpreter).await
    }

    async fn start_within(time: Duration, sandbox: &Sandbox, interpreter: &str) -> Result<Self, Error> {
        let piped = |source| Error::System { what: "no pipe can be created for the session", source };
        let (source, input) = std::io::pipe().map_err(piped)?;
        rustix::fs::fcntl_setfl(&input, rustix::fs::OFlags::NONBLOCK).map_err(|error| piped(error.into()))?;
        let line = Arc::new(Line {
            input: Mutex::new(input),
            cancellation: Cancellation::new(),
            state: Mutex::new(State::new(sandbox.limits().output_bytes)),
            changed: Notify::new(),
        });
        // Time and output are watched call by call.
        let limits = Limits { time: Duration::MAX, output_bytes: usize::MAX, ..*sandbox.limits() };
        let sandbox = sandbox.clone().limited(limits);
        let program = Program::new(interpreter).arg("-I").arg("-c").arg(DRIVER);
        let own = Arc::clone(&line);
        let listen = move || listen(&sandbox, &program, source, &own);
        let kernel = Self { line, runs: 0 };
        let thread = std::thread::Builder::new().name("polylogue-python".into()).spawn(listen);
        thread
            .map_err(|source| Error::System { what: "no thread can be started for the session", source })?;
        let start = Start::begin(&kernel.line, time)?;
        kernel.line.until(|state| state.listens).await;
        let is_late = start.end();
        let over = kernel.line.state().over.take();
        match over {
            None => Ok(kernel),
            Some(Err(error)) => Err(error),
            Some(Ok(why)) => {
                let why =
                    if is_late { format!("it was not ready within {} s", time.as_secs_f64()) } else { why };
                Err(Error::Config(format!("`{interpreter}` started no session: {why}")))
            }
        }
    }

    pub(super) fn lives(&self) -> bool {
        self.line.state().over.is_none()
    }

    /// Runs `code`, within the limits on time and output.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) async fn run(&mut self, code: &str, limits: &Limits) -> Result<Reply, Error> {
        self.runs += 1;
        let key = Key::new()?;
        self.line.state().begin(&key, limits.output_bytes);
        let _under_way = ActiveCall(&self.line);
        let call =
            Call::begin(&self.line, json!({"run": self.runs, "key": key.0, "code": code}), limits.time);
        self.line.until(|state| state.is_done).await;
        let (mut reply, over) = {
            let mut state = self.line.state();
            (std::mem::take(&mut state.reply), state.over.as_ref().map(why))
        };
        if let Some(why) = over {
            reply.is_over = true;
            reply.note(format!(
                "The session ended ({why}): its variables are lost, and the next call starts a new session"
            ));
        }
        if call.end() {
            reply.note(format!("Timeout: interrupted after {} s", limits.time.as_secs_f64()));
        }
        Ok(reply)
    }
}

/// An interpreter that starts. It is killed if it is not ready in time: the limits of a call hold from then on.
struct Start {
    over: mpsc::Sender<()>,
    timed_out: Arc<AtomicBool>,
}

impl Start {
    fn begin(line: &Arc<Line>, time: Duration) -> Result<Self, Error> {
        let (over, is_over) = mpsc::channel();
        let timed_out = Arc::new(AtomicBool::new(false));
        let (watched, is_timed_out) = (Arc::clone(line), Arc::clone(&timed_out));
        let watch = move || {
            if is_over.recv_timeout(time) == Err(mpsc::RecvTimeoutError::Timeout) {
                is_timed_out.store(true, Ordering::Release);
                watched.cancellation.cancel();
            }
        };
        let thread = std::thread::Builder::new().name("polylogue-python-start".into()).spawn(watch);
        thread
            .map_err(|source| Error::System { what: "no thread can be started for the session", source })?;
        Ok(Self { over, timed_out })
    }

    /// Ends the wait. Returns whether it timed out.
    fn end(self) -> bool {
        // The watcher may be gone already.
        let _ = self.over.send(());
        self.timed_out.load(Ordering::Acquire)
    }
}

fn why(over: &Result<String, Error>) -> String {
    match over {
        Ok(why) => why.clone(),
        Err(error) => error.to_string(),
    }
}

impl State {
    fn new(limit: usize) -> Self {
        let (call, running, reply) = (None, Vec::new(), Reply::default());
        Self { listens: false, call, running, is_done: false, reply, limit, over: None }
    }

    /// Late output of earlier code is part of the new call, as in a terminal; other messages of an aborted call are dropped.
    fn begin(&mut self, key: &Key, limit: usize) {
        self.reply = std::mem::take(&mut self.reply).text_only();
        self.call = Some(key.clone());
        self.running.push(key.clone());
        self.is_done = false;
        self.limit = limit;
    }

    /// Handles a message. Returns whether waiters must be notified.
    fn take(&mut self, message: Message<'_>) -> bool {
        if let Some(text) = message.text {
            // Writers of the code's output can write to it.
            self.reply.write(&text, self.limit);
            return false;
        }
        if !self.listens {
            self.listens = message.ready;
            return self.listens;
        }
        if message.done.is_some() {
            self.running.retain(|call| message.key.as_deref() != Some(&*call.0));
        }
        let is_own = self.call.as_ref().is_some_and(|call| message.key.as_deref() == Some(&*call.0));
        if !is_own || self.is_done {
            return false;
        }
        self.is_done = message.done.is_some();
        self.reply.take(message);
        self.is_done
    }
}

/// A call with a waiting caller.
struct ActiveCall<'a>(&'a Line);

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        self.0.state().call = None;
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a condition holds, or the interpreter has ended.
    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            {
                let state = self.state();
                if state.over.is_some() || holds(&state) {
                    return;
                }
            }
            // What changed in between is remembered.
            self.changed.notified().await;
        }
    }

    /// Waits at most `time` until the code of the call `key` has ended, or the interpreter. Returns whether it has.
    fn ends_within(&self, time: Duration, key: Option<&str>) -> bool {
        let until = Instant::now() + time;
        let runs = || {
            let state = self.state();
            state.over.is_none() && state.running.iter().any(|call| Some(&*call.0) == key)
        };
        while runs() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }

    /// Writes a message, with the deadline `until`. Returns whether it was written.
    fn say(&self, what: &Value, until: Instant) -> bool {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let text = format!("{what}\n");
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match input.write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                    std::thread::sleep(PAUSE)
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// A call in progress: sends the code, and enforces its end.
struct Call {
    over: mpsc::Sender<()>,
    timed_out: Arc<AtomicBool>,
}

impl Call {
    /// When this is dropped before the code has ended, the code is interrupted.
    fn begin(line: &Arc<Line>, request: Value, time: Duration) -> Self {
        let (over, is_over) = mpsc::channel();
        let timed_out = Arc::new(AtomicBool::new(false));
        let (watched, is_timed_out) = (Arc::clone(line), Arc::clone(&timed_out));
        let watch = move || watch(&watched, &request, time, &is_over, &is_timed_out);
        if std::thread::Builder::new().name("polylogue-python-call".into()).spawn(watch).is_err() {
            // It could not be ended.
            line.cancellation.cancel();
        }
        Self { over, timed_out }
    }

    /// Ends the call. Returns whether it timed out.
    fn end(self) -> bool {
        // The watcher may be gone already.
        let _ = self.over.send(());
        self.timed_out.load(Ordering::Acquire)
    }
}

/// Sends the code and waits for its end; interrupts it on timeout, and kills the interpreter if that fails.
fn watch(line: &Line, request: &Value, time: Duration, over: &mpsc::Receiver<()>, timed_out: &AtomicBool) {
    let interrupt = json!({"interrupt": request.get("run")});
    let now = Instant::now();
    let until = now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(u32::MAX.into()));
    if line.say(request, until) {
        match over.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(()) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => timed_out.store(true, Ordering::Release),
            // Its caller is gone. The next one is not to wait for code that cannot be interrupted, nor to be blamed for it.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                line.say(&interrupt, Instant::now() + GRACE);
                if !line.ends_within(GRACE, request.get("key").and_then(Value::as_str)) {
                    line.cancellation.cancel();
                }
                return;
            }
        }
    } else {
        timed_out.store(Instant::now() >= until, Ordering::Release);
    }
    let is_said = line.say(&interrupt, Instant::now() + GRACE);
    if !is_said || matches!(over.recv_timeout(GRACE), Err(mpsc::RecvTimeoutError::Timeout)) {
        line.cancellation.cancel();
    }
}

/// Runs the interpreter to its end, and handles its messages.
fn listen(sandbox: &Sandbox, program: &Program, source: std::io::PipeReader, line: &Line) {
    let mut lines = Lines::default();
    let mut read = |bytes: &[u8]| {
        lines.take(bytes, &mut |text| {
            // What makes no sense was written by something else.
            let Ok(message) = serde_json::from_slice::<Message<'_>>(text) else { return };
            if line.state().take(message) {
                line.changed.notify_one();
            }
        });
        let is_idle = {
            let state = line.state();
            state.listens && state.call.is_none()
        };
        if is_idle {
            // Whatever still writes is to take no more than a little time of this process.
            std::thread::sleep(IDLE);
        }
    };
    let streams = Streams { input: Some(source), output: &mut read };
    let how = sandbox.run_streamed(program, &line.cancellation, streams);
    // What is not a line of the driver's are an interpreter's last words.
    let last = String::from_utf8_lossy(&lines.kept).trim().chars().take(LAST_WORDS).collect::<String>();
    let why = how.map(|how| if last.is_empty() { how.to_string() } else { format!("{how}: {last}") });
    line.state().over = Some(why);
    line.changed.notify_one();
}

/// Splits bytes into lines. Lines that are too long are skipped.
#[derive(Default)]
struct Lines {
    /// The beginning of an incomplete line.
    kept: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], state: &mut dyn FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (last, next) = rest.split_at(end + 1);
            self.keep(last);
            if !std::mem::take(&mut self.is_too_long) {
                state(&self.kept);
            }
            self.kept.clear();
            rest = next;
        }
        self.keep(rest);
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.kept.len() + bytes.len() > MAX_LINE;
        if self.is_too_long {
            self.kept = Vec::new();
        } else {
            self.kept.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn an_interpreter_that_is_never_ready_is_given_up() {
        let dir = std::env::temp_dir().join(format!("polylogue-never-ready-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let interpreter = dir.join("python");
        std::fs::write(&interpreter, "#!/bin/sh\nexec sleep 10\n").unwrap();
        std::fs::set_permissions(&interpreter, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (sandbox, interpreter) = (Sandbox::unsafe_host(&dir), interpreter.display().to_string());
        let error = Kernel::start_within(Duration::from_millis(200), &sandbox, &interpreter).await;
        let expected = format!("`{interpreter}` started no session: it was not ready within 0.2 s");
        assert_eq!(error.map(drop).unwrap_err().to_string(), expected);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
