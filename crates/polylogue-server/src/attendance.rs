//! Clients that wait for chat completions, and what their requests have begun, so that a client that tries again joins its run. A file has
//! the latter, for the next process: whether a request has had its effect is still decided by the log.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::LogId;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::line_file;
use crate::request::RequestDigest;
use crate::token_file::now_ms;

/// For how long a repeated request joins the run of the first: without a key, and with one.
pub(crate) const JOINS: [Duration; 2] = [Duration::from_mins(10), Duration::from_hours(24)];
/// How long it is waited for the server to notice that a client is gone.
pub(crate) const LEAVES: Duration = Duration::from_secs(1);
/// How often it is looked.
pub(crate) const POLL: Duration = Duration::from_millis(20);
/// The most requests that are remembered.
const MOST: usize = 4096;
/// The most lines of the file, which has a line for what is forgotten, too.
const MOST_LINES: usize = 4 * MOST;

/// A run, and where the response to a request begins in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) id: LogId,
    /// The first event.
    pub(crate) from: u64,
    /// The key of what the request has put into the inbox of the conversation; `None` if it has made the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    of: RequestDigest,
    at_ms: u64,
    begun: Begun,
    /// Whether no request joins it any more: the client has the whole response.
    #[serde(default)]
    is_over: bool,
}

impl Line {
    fn is_fresh(&self) -> bool {
        let ([without, with], age) = (JOINS, now_ms().saturating_sub(self.at_ms));
        let joins = if self.of.has_key { with } else { without };
        u128::from(age) < joins.as_millis()
    }
}

/// Counts the clients of a request: each has a clone.
pub(crate) type Clients = Arc<()>;

/// What earlier requests like one have begun.
pub(crate) enum Earlier {
    Nothing,
    /// All of them have their clients.
    Attended,
    /// One that the client of the request has lost.
    Lost(Begun, Clients),
}

/// Requests and the responses that clients wait for.
pub(crate) struct Attendance {
    file: PathBuf,
    /// How many lines the file has.
    lines: AtomicUsize,
    /// How many wait for each conversation.
    waiting: Mutex<HashMap<LogId, usize>>,
    begun: Mutex<VecDeque<(Line, Clients)>>,
    /// The conversations of which the log is about to have that a client has disconnected.
    pub(crate) notes: watch::Sender<Vec<LogId>>,
}

impl Attendance {
    /// With what an earlier process has noted in `file`.
    pub(crate) fn at(file: PathBuf) -> Self {
        let mut begun = VecDeque::new();
        match fs::read_to_string(&file) {
            Ok(text) => {
                // One that was being written when the process died can be torn: its request had no effect.
                for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
                    begun.retain(|(earlier, _): &(Line, Clients)| earlier.begun != line.begun);
                    if !line.is_over && line.is_fresh() {
                        begun.push_back((line, Clients::default()));
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => warn!(%error, "repeated requests of earlier clients will not join their runs"),
        }
        let lines = AtomicUsize::new(begun.len());
        let (waiting, begun, notes) = (Mutex::default(), Mutex::new(begun), watch::Sender::default());
        let attendance = Self { file, lines, waiting, begun, notes };
        if let Err(error) = attendance.rewrite(&attendance.begun()) {
            warn!(%error, "notes on earlier requests stay");
        }
        attendance
    }

    pub(crate) fn waiting(&self) -> MutexGuard<'_, HashMap<LogId, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no client waits for a response of the conversation `id`, now or at `until`: the server may not have noticed yet that it is
    /// gone.
    pub(crate) async fn is_left(&self, id: &LogId, until: Instant) -> bool {
        while self.waiting().contains_key(id) {
            if Instant::now() >= until {
                return false;
            }
            sleep(POLL).await;
        }
        true
    }

    fn begun(&self) -> MutexGuard<'_, VecDeque<(Line, Clients)>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a request is about to begin.
    pub(crate) fn note(&self, of: &RequestDigest, run: &Begun) -> Clients {
        let line = Line { of: of.clone(), at_ms: now_ms(), begun: run.clone(), is_over: false };
        let clients = Clients::default();
        let mut begun = self.begun();
        begun.retain(|(line, _)| line.is_fresh());
        if begun.len() >= MOST {
            begun.pop_front();
        }
        self.append(&line, &begun);
        begun.push_back((line, Arc::clone(&clients)));
        clients
    }

    /// Notes that no request joins a run any more, because it has not begun, or the client has the whole response.
    pub(crate) fn forget(&self, run: &Begun) {
        let mut begun = self.begun();
        if let Some(at) = begun.iter().position(|(line, _)| line.begun == *run)
            && let Some((line, _)) = begun.remove(at)
        {
            self.append(&Line { is_over: true, ..line }, &begun);
        }
    }

    /// What the last request like this one has begun that it can join: with a key, that of any; otherwise one without a client.
    pub(crate) fn find(&self, of: &RequestDigest) -> Earlier {
        let begun = self.begun();
        let mut found = Earlier::Nothing;
        let equal = |(line, _): &&(Line, Clients)| line.of == *of && line.is_fresh();
        for (line, clients) in begun.iter().rev().filter(equal) {
            if of.has_key || Arc::strong_count(clients) == 1 {
                return Earlier::Lost(line.begun.clone(), Arc::clone(clients));
            }
            found = Earlier::Attended;
        }
        found
    }

    /// Adds a line to the file, which is read when the process was killed. A file with many lines is first written again with those that
    /// are remembered.
    fn append(&self, line: &Line, begun: &VecDeque<(Line, Clients)>) {
        if self.lines.fetch_add(1, Ordering::Relaxed) >= MOST_LINES && self.rewrite(begun).is_ok() {
            self.lines.store(begun.len() + 1, Ordering::Relaxed);
        }
        if let Err(error) = line_file::append(&self.file, line) {
            warn!(%error, "after a restart, a repeated request will not join its run");
        }
    }

    fn rewrite(&self, begun: &VecDeque<(Line, Clients)>) -> io::Result<()> {
        line_file::rewrite(&self.file, begun.iter().map(|(line, _)| line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(request: &str, has_key: bool) -> RequestDigest {
        RequestDigest { request: request.into(), body: "b".into(), has_key }
    }

    fn run(id: &str) -> Begun {
        Begun { id: LogId::new(id).unwrap(), from: 0, message: None }
    }

    #[test]
    fn a_request_joins_what_has_no_client_and_with_a_key_any() {
        let dir = tempfile::tempdir().unwrap();
        let attendance = Attendance::at(dir.path().join("server/requests.jsonl"));
        let (plain, keyed) = (digest("a", false), digest("k", true));
        let first = attendance.note(&plain, &run("one"));
        assert!(matches!(attendance.find(&plain), Earlier::Attended));
        assert!(matches!(attendance.find(&digest("c", false)), Earlier::Nothing));
        drop(first);
        let Earlier::Lost(begun, joined) = attendance.find(&plain) else { panic!("it is lost") };
        assert_eq!(begun, run("one"));
        assert!(matches!(attendance.find(&plain), Earlier::Attended), "it was joined");
        drop(joined);
        attendance.forget(&begun);
        assert!(matches!(attendance.find(&plain), Earlier::Nothing));
        let _client = attendance.note(&keyed, &run("two"));
        assert!(matches!(attendance.find(&keyed), Earlier::Lost(..)));
        let other = RequestDigest { body: "c".into(), ..keyed };
        assert!(matches!(attendance.find(&other), Earlier::Nothing));
    }

    #[test]
    fn the_next_process_knows_what_was_begun_and_not_what_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("server/requests.jsonl");
        let first = Attendance::at(file.clone());
        for id in ["one", "two"] {
            drop(first.note(&digest(id, false), &run(id)));
        }
        first.forget(&run("one"));
        // Torn by a full disk.
        let mut text = fs::read_to_string(&file).unwrap();
        text.push_str("{\"request\":\"thr");
        fs::write(&file, text).unwrap();
        for _ in 0..2 {
            let next = Attendance::at(file.clone());
            assert!(matches!(next.find(&digest("one", false)), Earlier::Nothing));
            assert!(
                matches!(next.find(&digest("two", false)), Earlier::Lost(begun, _) if begun == run("two"))
            );
        }
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1, "what is over is dropped");
    }

    #[test]
    fn old_requests_join_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("requests.jsonl");
        let hour = 60 * 60 * 1000;
        let line = |of: RequestDigest, age: u64| {
            let line = Line { of, at_ms: now_ms() - age, begun: run(&format!("r{age}")), is_over: false };
            serde_json::to_string(&line).unwrap() + "\n"
        };
        let lines = [
            line(digest("a", false), hour),
            line(digest("k", true), hour),
            line(digest("l", true), 25 * hour),
        ];
        fs::write(&file, lines.concat()).unwrap();
        let attendance = Attendance::at(file);
        assert!(matches!(attendance.find(&digest("a", false)), Earlier::Nothing));
        assert!(matches!(attendance.find(&digest("k", true)), Earlier::Lost(..)));
        assert!(matches!(attendance.find(&digest("l", true)), Earlier::Nothing));
    }

    #[test]
    fn the_file_does_not_grow_with_the_requests_that_are_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("requests.jsonl");
        let attendance = Attendance::at(file.clone());
        let kept = attendance.note(&digest("kept", true), &run("kept"));
        for nth in 0..MOST_LINES {
            let begun = run(&format!("run-{nth}"));
            attendance.note(&digest(&nth.to_string(), true), &begun);
            attendance.forget(&begun);
        }
        drop(kept);
        let lines = fs::read_to_string(&file).unwrap().lines().filter(|line| !line.is_empty()).count();
        assert!(lines <= MOST_LINES + 1, "{lines}");
        let again = Attendance::at(file);
        assert!(matches!(again.find(&digest("kept", true)), Earlier::Lost(begun, _) if begun == run("kept")));
        assert_eq!(again.begun().len(), 1);
    }
}
