//! A sandbox for programs: code that runs in it cannot change or read anything outside of its work directory.
//!
//! # Guarantees
//! On Linux a program of [`Sandbox::enclosed`] has
//!
//! - separate namespaces for users, processes, mounts, network, IPC, host name and control groups;
//! - a separate file system: the system read-only, its work directory as `/work`, a private `/tmp` of limited size; no home, no
//!   `/sys`, only its own processes in `/proc`, only harmless devices in `/dev`;
//! - a filter of system calls, a Landlock ruleset where the kernel supports it, no capabilities, no new privileges;
//! - an empty environment, no open files except its output, no terminal;
//! - no network by default; [`Network`] allows hosts by name, or everything;
//! - limits on time, memory, output, processes, the size of files and of the work directory. When it ends, or is killed, all
//!   processes that it started are dead before [`Sandbox::run`] returns.
//!
//! Where the kernel does not support this, running a program is [refused](Error::Refused) with the reason and the alternatives; there
//! is never a weaker sandbox. [`Sandbox::unsafe_host`] runs programs without one.
//!
//! # Example
//! ```no_run
//! use polylogue_sandbox::{Cancellation, ExitReason, Program, Sandbox};
//!
//! # fn main() -> Result<(), polylogue_sandbox::Error> {
//! let sandbox = Sandbox::enclosed("work");
//! let program = Program::new("python3").arg("hello.py").file("hello.py", "print('hello')");
//! let ended = sandbox.run(&program, &Cancellation::new())?;
//! assert_eq!((ended.how, &*ended.output), (ExitReason::Exited(0), &b"hello\n"[..]));
//! # Ok(())
//! # }
//! ```

#[cfg(unix)]
mod container;
#[cfg(target_os = "linux")]
mod disk;
mod enforced;
#[cfg(unix)]
mod engine;
mod error;
#[cfg(unix)]
mod files;
#[cfg(unix)]
mod host;
#[cfg(target_os = "linux")]
mod linux;
mod program;
mod program_result;
#[cfg(target_os = "linux")]
mod proxy;
mod run;
mod sandbox;
#[cfg(unix)]
mod supervise;
#[cfg(target_os = "linux")]
mod usage;
mod venv;
mod visible;
mod work;

pub use enforced::{Measure, what_is_enforced};
#[cfg(unix)]
pub use engine::Engine;
pub use error::Error;
pub use program::{Cancellation, Program, Streams};
pub use program_result::{ExitReason, ProgramResult};
pub use sandbox::{Limits, Network, Sandbox};
pub use venv::{Package, Venv};
pub use work::remove_work_directory;
