//! Runs programs with the backend of their sandbox.

use std::path::{Component, Path};
use std::time::Instant;

use crate::error::Error;
use crate::program::{Cancellation, Program, Streams};
use crate::program_result::{ExitReason, ProgramResult};
use crate::sandbox::{Backend, Sandbox};

impl Sandbox {
    /// Runs `program` to its end, and blocks until it and all processes that it started are dead.
    ///
    /// # Errors
    /// [`Error::Refused`] where the sandbox is not supported; when the program cannot be started. Failures of the program itself are
    /// not errors.
    pub fn run(&self, program: &Program, cancellation: &Cancellation) -> Result<ProgramResult, Error> {
        let started = Instant::now();
        let mut output = Vec::new();
        let streams = Streams { input: None, output: &mut |bytes| output.extend_from_slice(bytes) };
        let how = self.run_streamed(program, cancellation, streams)?;
        Ok(ProgramResult { how, output, took: started.elapsed() })
    }

    /// Runs `program` with [`Streams`]: input, and a callback for output while it runs.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_streamed(
        &self,
        program: &Program,
        cancellation: &Cancellation,
        streams: Streams<'_>,
    ) -> Result<ExitReason, Error> {
        for (path, _) in &program.files {
            check_file(path)?;
        }
        let placed = self.placed()?;
        match &self.place {
            Backend::Enclosed => enclosed(&placed, program, cancellation, streams),
            #[cfg(unix)]
            Backend::Container(engine) => {
                crate::container::run(engine, &placed, program, cancellation, streams)
            }
            Backend::Host => exposed(&placed, program, cancellation, streams),
        }
    }

    /// Returns how many bytes can still be added to the work directory. Without a sandbox there is no limit.
    pub fn free_bytes(&self) -> u64 {
        if self.is_enclosed() { self.limits().disk_bytes.saturating_sub(used(self.work())) } else { u64::MAX }
    }
}

/// Checks that a file for a program is in its work directory.
fn check_file(path: &Path) -> Result<(), Error> {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_plain && path.file_name().is_some() {
        return Ok(());
    }
    Err(Error::Config(format!("`{}` is not in the work directory", path.display())))
}

#[cfg(target_os = "linux")]
use crate::disk::used;

/// Bytes of all files in `dir`. No link is followed.
#[cfg(not(target_os = "linux"))]
fn used(dir: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(about.len());
            if about.is_dir() {
                open.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(target_os = "linux")]
fn enclosed(
    sandbox: &Sandbox,
    program: &Program,
    cancellation: &Cancellation,
    streams: Streams<'_>,
) -> Result<ExitReason, Error> {
    if let Some(why) = crate::enforced::obstacle() {
        return Err(Error::Refused { why });
    }
    crate::linux::run(sandbox, program, cancellation, streams)
}

#[cfg(not(target_os = "linux"))]
fn enclosed(_: &Sandbox, _: &Program, _: &Cancellation, _: Streams<'_>) -> Result<ExitReason, Error> {
    Err(Error::Refused { why: crate::enforced::NOT_LINUX.into() })
}

#[cfg(unix)]
fn exposed(
    sandbox: &Sandbox,
    program: &Program,
    cancellation: &Cancellation,
    streams: Streams<'_>,
) -> Result<ExitReason, Error> {
    crate::host::run(sandbox, program, cancellation, streams)
}

#[cfg(not(unix))]
fn exposed(_: &Sandbox, _: &Program, _: &Cancellation, _: Streams<'_>) -> Result<ExitReason, Error> {
    Err(Error::Refused { why: "programs can be run on Unix only".into() })
}
