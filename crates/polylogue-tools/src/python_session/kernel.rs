//! An interpreter that runs, and how it is spoken with.

use std::io::{ErrorKind, PipeWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use polylogue_sandbox::{Error, Halt, Limits, Program, Sandbox, Streams};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::reply::{Event, Reply, What};

/// The program that the interpreter runs.
const DRIVER: &str = include_str!("driver.py");
/// How long code may take to end when it is interrupted.
const GRACE: Duration = Duration::from_secs(3);
/// How long a line of the driver may be, and how many bytes of lines may wait to be looked at.
const MAX_LINE: usize = 16 << 20;
const MAX_WAITING: usize = 32 << 20;
/// How long to wait before the next attempt to write to somebody who does not read.
const PAUSE: Duration = Duration::from_millis(5);

/// An interpreter. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Kernel {
    line: Arc<Line>,
    told: UnboundedReceiver<Told>,
    runs: u64,
}

/// What is heard of it.
#[derive(Debug)]
enum Told {
    Event(Event),
    /// It is gone: why, and whether it was never there.
    Over(Result<String, Error>),
}

/// The way to it.
#[derive(Debug)]
struct Line {
    input: Mutex<PipeWriter>,
    halt: Halt,
    is_over: AtomicBool,
    /// Bytes that wait to be looked at, and those that were thrown away because too many did.
    waiting: AtomicUsize,
    left_out: AtomicUsize,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.line.halt.halt();
    }
}

impl Kernel {
    /// Starts it, and waits until it listens.
    pub(super) async fn start(sandbox: &Sandbox, interpreter: &str) -> Result<Self, Error> {
        let piped = |source| Error::System { what: "there is no pipe for the session", source };
        let (source, input) = std::io::pipe().map_err(piped)?;
        rustix::fs::fcntl_setfl(&input, rustix::fs::OFlags::NONBLOCK).map_err(|error| piped(error.into()))?;
        let line = Arc::new(Line {
            input: Mutex::new(input),
            halt: Halt::new(),
            is_over: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            left_out: AtomicUsize::new(0),
        });
        // Time and output are watched call by call.
        let limits = Limits { time: Duration::MAX, output_bytes: usize::MAX, ..*sandbox.limits() };
        let sandbox = sandbox.clone().limited(limits);
        let program = Program::new(interpreter).arg("-I").arg("-c").arg(DRIVER);
        let (tell, told) = unbounded_channel();
        let own = Arc::clone(&line);
        let listen = move || listen(&sandbox, &program, source, &own, &tell);
        let thread = std::thread::Builder::new().name("polylogue-python".into()).spawn(listen);
        thread.map_err(|source| Error::System { what: "there is no thread for the session", source })?;
        let mut kernel = Self { line, told, runs: 0 };
        match kernel.told.recv().await {
            Some(Told::Event(_)) => Ok(kernel),
            Some(Told::Over(Err(error))) => Err(error),
            Some(Told::Over(Ok(why))) => {
                Err(Error::Config(format!("`{interpreter}` started no session: {why}")))
            }
            None => Err(Error::Config(format!("`{interpreter}` started no session"))),
        }
    }

    pub(super) fn lives(&self) -> bool {
        !self.line.is_over.load(Ordering::Acquire)
    }

    /// Runs `code`, within the limits on time and output.
    pub(super) async fn run(&mut self, code: &str, limits: &Limits) -> Reply {
        self.runs += 1;
        let run = self.runs;
        let call = Call::begin(&self.line, run, code, limits.time);
        let mut reply = Reply::new();
        while let Some(told) = self.told.recv().await {
            match told {
                Told::Event(event) => {
                    self.line.waiting.fetch_sub(event.what.size(), Ordering::AcqRel);
                    // What earlier code still writes is written into the one that runs, as in any terminal; what else is
                    // left of a call that was given up is nobody's.
                    let is_own = event.run == run || matches!(event.what, What::Stream { .. });
                    if is_own && reply.take(event.what, limits.output_bytes) {
                        break;
                    }
                }
                Told::Over(why) => {
                    reply.lives = false;
                    let why = why.unwrap_or_else(|error| error.to_string());
                    reply.note(format!(
                        "The session ended ({why}): what it had set is gone, and the next call begins anew"
                    ));
                    break;
                }
            }
        }
        reply.add_left_out(self.line.left_out.swap(0, Ordering::AcqRel));
        if call.end() {
            reply.note(format!("Timeout: interrupted after {} s", limits.time.as_secs_f64()));
        }
        reply
    }
}

impl Line {
    /// Says something, as long as `until` if nobody reads it. Whether it was said.
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

/// A call under way: it says the code, and sees to it that it ends.
struct Call {
    over: mpsc::Sender<()>,
    timed_out: Arc<AtomicBool>,
}

impl Call {
    /// When this is dropped before the code has ended, the code is interrupted: nobody waits for it.
    fn begin(line: &Arc<Line>, run: u64, code: &str, time: Duration) -> Self {
        let (over, is_over) = mpsc::channel();
        let timed_out = Arc::new(AtomicBool::new(false));
        let (line, told, code) = (Arc::clone(line), Arc::clone(&timed_out), code.to_owned());
        let watched = Arc::clone(&line);
        let watch = move || watch(&watched, run, &code, time, &is_over, &told);
        if std::thread::Builder::new().name("polylogue-python-call".into()).spawn(watch).is_err() {
            // Nobody could end it.
            line.halt.halt();
        }
        Self { over, timed_out }
    }

    /// The code has ended. Whether its time was up.
    fn end(self) -> bool {
        // Whoever watched may be gone already.
        let _ = self.over.send(());
        self.timed_out.load(Ordering::Acquire)
    }
}

/// Says the code and waits for its end; interrupts it when that does not come, and kills it when that does not help.
fn watch(
    line: &Line,
    run: u64,
    code: &str,
    time: Duration,
    over: &mpsc::Receiver<()>,
    timed_out: &AtomicBool,
) {
    let now = Instant::now();
    let until = now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(u32::MAX.into()));
    if line.say(&json!({"run": run, "code": code}), until) {
        match over.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(()) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => timed_out.store(true, Ordering::Release),
            // Nobody waits for it any more.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                line.say(&json!({"interrupt": run}), Instant::now() + GRACE);
                return;
            }
        }
    } else {
        timed_out.store(Instant::now() >= until, Ordering::Release);
    }
    let is_said = line.say(&json!({"interrupt": run}), Instant::now() + GRACE);
    if !is_said || matches!(over.recv_timeout(GRACE), Err(mpsc::RecvTimeoutError::Timeout)) {
        line.halt.halt();
    }
}

/// Runs the interpreter to its end, and hands on what it tells.
fn listen(
    sandbox: &Sandbox,
    program: &Program,
    source: std::io::PipeReader,
    line: &Line,
    tell: &UnboundedSender<Told>,
) {
    let mut kept = Vec::new();
    let mut hear = |bytes: &[u8]| {
        kept.extend_from_slice(bytes);
        while let Some(end) = kept.iter().position(|byte| *byte == b'\n') {
            let text: Vec<u8> = kept.drain(..=end).collect();
            heard(&text, line, tell);
        }
        if kept.len() > MAX_LINE {
            kept.clear();
            line.halt.halt();
        }
    };
    let streams = Streams { input: Some(source), output: &mut hear };
    let how = sandbox.run_streamed(program, &line.halt, streams);
    line.is_over.store(true, Ordering::Release);
    // What is no line of the driver's are an interpreter's last words.
    let last = String::from_utf8_lossy(&kept).trim().chars().take(2000).collect::<String>();
    let why = how.map(|how| if last.is_empty() { how.to_string() } else { format!("{how}: {last}") });
    // Nobody may be left to be told.
    drop(tell.send(Told::Over(why)));
}

fn heard(text: &[u8], line: &Line, tell: &UnboundedSender<Told>) {
    // Code that finds the way to tell something itself is heard if it makes sense, and it is its own session only.
    let Ok(event) = serde_json::from_slice::<Event>(text) else { return };
    let size = event.what.size();
    let is_stream = matches!(event.what, What::Stream { .. });
    if is_stream && line.waiting.load(Ordering::Acquire) > MAX_WAITING {
        line.left_out.fetch_add(size, Ordering::AcqRel);
        return;
    }
    line.waiting.fetch_add(size, Ordering::AcqRel);
    drop(tell.send(Told::Event(event)));
}

impl What {
    /// Bytes that it takes.
    const fn size(&self) -> usize {
        match self {
            Self::Stream { text } => text.len(),
            Self::Result { result } => result.len(),
            Self::Picture { picture } => picture.len(),
            Self::Error { error } => error.len(),
            Self::Done { .. } | Self::Ready { .. } => 0,
        }
    }
}
