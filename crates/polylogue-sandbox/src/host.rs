//! Programs without an enclosure.
#![allow(unsafe_code, reason = "a whole group of processes is ended by a system call")]

use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::supervise::{Running, Source, supervise};
use crate::{Ended, Error, Halt, How, Program, Sandbox};

/// Runs `program` with all rights of the user.
pub(crate) fn run(sandbox: &Sandbox, program: &Program, halt: &Halt) -> Result<Ended, Error> {
    let started = Instant::now();
    for (path, content) in &program.files {
        let path = sandbox.work().join(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, content))
            .map_err(|error| Error::system("a file cannot be written", error))?;
    }
    let piped = |error| Error::system("there is no pipe for the output", error);
    let (output, input) = std::io::pipe().map_err(piped)?;
    let mut command = Command::new(Sandbox::path_of(program)?);
    command.args(&program.args).current_dir(sandbox.work()).env_clear().envs(sandbox.environment());
    command.stdin(Stdio::null()).stdout(input.try_clone().map_err(piped)?).stderr(input).process_group(0);
    let mut child = command.spawn().map_err(|error| Error::system("the program cannot be started", error))?;
    // It holds the other end of the pipe.
    drop(command);
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    let kill = || {
        // SAFETY: the group is that of the child, and a call on numbers touches no memory.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    };
    let mut is_over = || {
        let status = child.try_wait().ok().flatten()?;
        Some(status.code().map_or_else(|| How::Signalled(status.signal().unwrap_or_default()), How::Exited))
    };
    let running = Running {
        output: Source::new(output.as_raw_fd())?,
        over: None,
        watch: &mut || None,
        is_over: &mut is_over,
        kill: &kill,
    };
    let (how, output) = supervise(running, sandbox.limits(), halt, started);
    // What it left behind in its group goes, too.
    kill();
    drop(child.wait());
    Ok(Ended { how, output, took: started.elapsed() })
}
