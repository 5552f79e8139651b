//! Signs the requests of an endpoint, with credentials that are kept until they expire, by the clock of the server.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use polylogue_core::text;
use polylogue_http::Key;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;
use url::{Position, Url};

use super::Aws;
use super::credentials::{Credentials, CredentialsError, Source, printed};
use super::sign::{Signable, sign};
use super::signing_key::SigningKey;

/// How long before they expire credentials are no longer used.
const EARLY: Duration = Duration::from_secs(120);

/// How long a credential process may run.
const PROCESS: Duration = Duration::from_secs(60);

/// How far from the server's clock a signature may be. The services accept five minutes.
const MAX_SKEW: u64 = 240;

/// How often the clock is corrected: a server whose clock jumps is not asked forever.
const MAX_CORRECTIONS: u8 = 10;

/// A request to be signed.
pub(crate) struct Unsigned<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a Url,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a [u8],
}

/// Signs requests.
#[derive(Debug)]
pub(crate) struct Signer {
    aws: Aws,
    /// Where credentials come from, as it was found last.
    source: std::sync::Mutex<Result<Source, CredentialsError>>,
    /// What a process printed last.
    held: Mutex<Option<Held>>,
    /// Whether the process is run again because a service did not accept what it printed.
    replaces: AtomicBool,
    key: SigningKey,
    /// The seconds by which the clock of the server is ahead of ours.
    skew: AtomicI64,
    /// How often that changed.
    corrections: AtomicU8,
}

/// What authorizes a request.
#[derive(Debug)]
pub(crate) struct Signed {
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The secrets with which it was signed.
    pub(crate) secrets: Vec<Key>,
    /// As [`Signer::skew`] was.
    pub(crate) skew: i64,
}

#[derive(Debug, Clone)]
struct Held {
    credentials: Credentials,
    expires: Option<SystemTime>,
    /// Whether they replace others that a service did not accept.
    is_replacement: bool,
}

impl Signer {
    pub(crate) fn new(aws: Aws) -> Self {
        Self {
            source: std::sync::Mutex::new(aws.source.clone()),
            held: Mutex::default(),
            replaces: AtomicBool::new(false),
            key: SigningKey::new(&aws.region, aws.service.signing_name()),
            aws,
            skew: AtomicI64::new(0),
            corrections: AtomicU8::new(0),
        }
    }

    /// Signs `request`.
    ///
    /// # Errors
    /// When there are no credentials.
    pub(crate) async fn sign(&self, request: &Unsigned<'_>) -> Result<Signed, CredentialsError> {
        let credentials = self.credentials().await?;
        let url = request.url;
        let query: Vec<(&str, &str)> = url
            .query()
            .into_iter()
            .flat_map(|query| query.split('&'))
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .collect();
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let signable = Signable {
            method: request.method,
            path: url.path(),
            query: &query,
            headers: &[("content-type", request.content_type), ("host", host)],
            body: request.body,
        };
        let skew = self.skew.load(Ordering::Relaxed);
        let headers = sign(&signable, &credentials, moved(SystemTime::now(), skew), &self.key);
        Ok(Signed { headers, secrets: credentials.secrets().cloned().collect(), skew })
    }

    /// Whether a request that was signed with `skew` and refused at `date`, by the server's clock, was refused because of our
    /// clock: the next one is signed by the server's.
    pub(crate) fn corrects(&self, skew: i64, date: Option<&str>) -> bool {
        let theirs = date.and_then(|date| httpdate::parse_http_date(date.trim()).ok());
        let Some(theirs) = theirs else { return false };
        let right = seconds(theirs).saturating_sub(seconds(SystemTime::now()));
        if right.abs_diff(skew) <= MAX_SKEW {
            return false;
        }
        let before = self.skew.swap(right, Ordering::Relaxed);
        // Several requests may be refused before the first correction.
        let is_new = before.abs_diff(right) > MAX_SKEW;
        !is_new || self.corrections.fetch_add(1, Ordering::Relaxed) < MAX_CORRECTIONS
    }

    /// Forgets the credentials with the secrets `refused`, which a service no longer accepts. Returns whether the next request
    /// has others: those that the files have by now, or those of another run of the process.
    pub(crate) fn renews(&self, refused: &[Key]) -> bool {
        let is_refused = |credentials: &Credentials| credentials.secrets().eq(refused);
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        match &*source {
            Ok(Source::Known(known)) if !is_refused(known) => return true,
            Ok(Source::Known(_)) => {
                let found = Source::find(&self.aws.env);
                let is_new = found.is_ok() && found != *source;
                if is_new {
                    *source = found;
                }
                return is_new;
            }
            Ok(Source::Process(_)) => {}
            Err(_) => return false,
        }
        // Another request runs the process.
        let Ok(mut held) = self.held.try_lock() else { return true };
        let Some(last) = held.take_if(|held| is_refused(&held.credentials)) else { return true };
        self.replaces.store(!last.is_replacement, Ordering::Relaxed);
        !last.is_replacement
    }

    async fn credentials(&self) -> Result<Credentials, CredentialsError> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let command = match source {
            Source::Known(known) => return Ok(known),
            Source::Process(command) => command,
        };
        let mut held = self.held.lock().await;
        let soon = SystemTime::now() + EARLY;
        if let Some(held) = held.as_ref().filter(|held| held.expires.is_none_or(|at| at > soon)) {
            return Ok(held.credentials.clone());
        }
        let (credentials, expires) = printed(&run(&command).await?)?;
        let is_replacement = self.replaces.swap(false, Ordering::Relaxed);
        *held = Some(Held { credentials: credentials.clone(), expires, is_replacement });
        Ok(credentials)
    }
}

/// What a command prints. It is a line for a shell, as other clients of Amazon take it.
async fn run(command: &str) -> Result<Vec<u8>, CredentialsError> {
    let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut program = Command::new(shell);
    program.args([option, command]).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let failed = |why: String| CredentialsError::Process(why);
    let output =
        timeout(PROCESS, program.output()).await.map_err(|_| failed(format!("it ran for {PROCESS:?}")))?;
    let output = output.map_err(|why| failed(why.to_string()))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let line = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let line = text::excerpt(line, 200);
            Err(failed(format!("{}: {line}", output.status)))
        }
    }
}

fn moved(time: SystemTime, by: i64) -> SystemTime {
    let distance = Duration::from_secs(by.unsigned_abs());
    let moved = if by < 0 { time.checked_sub(distance) } else { time.checked_add(distance) };
    moved.unwrap_or(time)
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "signer_tests.rs"]
mod tests;
