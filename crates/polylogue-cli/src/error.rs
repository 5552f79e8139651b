//! Errors, as a person reads them.

use std::fmt;
use std::process::ExitCode;

use polylogue::{Error, Status};
use polylogue_client::ClientError;
use polylogue_core::{Fault, ModelError, RunOutcome, StopReason, StoreError};
use polylogue_models::{CassetteError, EnvError};
use polylogue_team::Diagnostics;

/// What the program says by its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The chat ended by a condition of its own.
    Done = 0,
    /// A turn, a tool, the store or the program failed.
    Failed = 1,
    /// The command line or a team file is wrong.
    Usage = 2,
    /// A limit on turns, time, calls or depth was met, or the chat went in circles.
    Limit = 3,
    /// A limit on tokens or money was met.
    Budget = 4,
    /// A person has to answer.
    Waiting = 5,
    /// It was stopped from outside.
    Stopped = 6,
    /// No participant said anything, so there is no result.
    NoOutput = 7,
    /// The chat ended by a condition of its own, but its result is cut off.
    Cut = 8,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&Status> for Exit {
    fn from(status: &Status) -> Self {
        match status {
            Status::Closed { reason, .. } => Self::from(reason),
            Status::Waiting(_) => Self::Waiting,
            Status::Cancelled => Self::Stopped,
        }
    }
}

impl Exit {
    /// The same, or [`Cut`](Self::Cut) if the run is done and its result is cut off.
    pub(crate) fn or_cut(self, is_cut: bool) -> Self {
        if is_cut && self == Self::Done { Self::Cut } else { self }
    }
}

impl From<&StopReason> for Exit {
    fn from(reason: &StopReason) -> Self {
        match reason.outcome() {
            RunOutcome::Done => Self::Done,
            RunOutcome::Limit => Self::Limit,
            RunOutcome::Budget => Self::Budget,
            RunOutcome::Stopped => Self::Stopped,
            RunOutcome::NoOutput => Self::NoOutput,
        }
    }
}

/// What went wrong, whose fault it is and what to do.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    what: String,
    fault: Option<Fault>,
    hint: Option<String>,
}

impl CliError {
    /// The command line asks for something that cannot be.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, what: what.into(), fault: Some(Fault::Config), hint: None }
    }

    /// An operation of the system failed: a file, a process or the network.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, what: what.into(), fault: Some(Fault::System), hint: None }
    }

    /// The same, where `name` says what is wrong.
    pub(crate) fn about(self, name: &str) -> Self {
        // Errors of team files have their label already.
        let what = self.what.strip_prefix("error: ").unwrap_or(&self.what);
        Self { what: format!("`{name}`: {what}"), ..self }
    }

    /// What went wrong, and what to do.
    pub(crate) fn into_parts(self) -> (String, Option<String>) {
        (self.what, self.hint)
    }

    /// Whether this is what went wrong.
    pub(crate) fn says(&self, what: &str) -> bool {
        self.what == what
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same with its hint changed, if it has one.
    pub(crate) fn map_hint(self, change: impl FnOnce(String) -> String) -> Self {
        Self { hint: self.hint.map(change), ..self }
    }
}

impl fmt::Display for CliError {
    /// A first line with what happened and whose fault it is, then what to do about it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Some(fault) => write!(f, "error ({fault}): {}", self.what)?,
            // Errors of other crates are complete already.
            None => f.write_str(&self.what)?,
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
    }
}

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        let (what, fault, hint) = (error.to_string(), Some(error.fault()), error.hint());
        Self { exit: Exit::Failed, what, fault, hint }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let (exit, fault) = match error.is_usage() {
            true => (Exit::Usage, Fault::Config),
            false => (Exit::Failed, Fault::System),
        };
        Self { exit, what: error.to_string(), fault: Some(fault), hint: error.hint() }
    }
}

impl From<polylogue_runtime::Error> for CliError {
    fn from(error: polylogue_runtime::Error) -> Self {
        use polylogue_runtime::Error as Runtime;
        match error {
            Runtime::Run(error) => error.into(),
            Runtime::Model(error) => error.into(),
            Runtime::Recording(error) => error.into(),
            Runtime::Team(diagnostics) => diagnostics.into(),
            error => {
                let exit = if error.is_usage() { Exit::Usage } else { Exit::Failed };
                Self { exit, what: error.to_string(), fault: Some(error.fault()), hint: error.hint() }
            }
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Error::Store(error).into()
    }
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        Self { exit: Exit::Usage, ..Error::Model(error).into() }
    }
}

impl From<CassetteError> for CliError {
    fn from(error: CassetteError) -> Self {
        let (what, fault, hint) = (error.to_string(), error.fault(), error.hint());
        let exit = if fault == Fault::Config { Exit::Usage } else { Exit::Failed };
        Self { exit, what, fault: Some(fault), hint }
    }
}

impl From<EnvError> for CliError {
    fn from(error: EnvError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<Diagnostics> for CliError {
    fn from(diagnostics: Diagnostics) -> Self {
        let what = diagnostics.to_string().trim_end().to_owned();
        Self { exit: Exit::Usage, what, fault: None, hint: None }
    }
}
