//! Runs one program so that it can do no harm outside of its work directory.
//!
//! # What holds
//! On Linux a program of [`Sandbox::enclosed`] has
//!
//! - namespaces of its own for users, processes, mounts, network, IPC, host name and control groups;
//! - a file system of its own: the system read-only, its work directory as `/work`, a `/tmp` of its own and of limited size;
//!   no home, no `/sys`, of `/proc` its own processes only, of `/dev` what is harmless;
//! - a filter of system calls, a Landlock ruleset where the kernel has it, no capabilities, no new privileges;
//! - an environment from nothing, no open file but its output, no terminal;
//! - no network, unless it is [given](Network): hosts by name, or all;
//! - limits on time, memory, output, processes, the size of files and of the work directory. When it ends, or is ended,
//!   everything that it started is dead before [`Sandbox::run`] returns.
//!
//! Where the kernel cannot do this there is a [refusal](Error::Refused), when a program is to run, that says why and what the choices are; never a weaker
//! enclosure. [`Sandbox::unsafe_host`] runs programs without one, and has to be asked for by name.
//!
//! # Example
//! ```no_run
//! use polylogue_sandbox::{Cancellation, How, Program, Sandbox};
//!
//! # fn main() -> Result<(), polylogue_sandbox::Error> {
//! let sandbox = Sandbox::enclosed("work");
//! let program = Program::new("python3").arg("hello.py").file("hello.py", "print('hello')");
//! let ended = sandbox.run(&program, &Cancellation::new())?;
//! assert_eq!((ended.how, &*ended.output), (How::Exited(0), &b"hello\n"[..]));
//! # Ok(())
//! # }
//! ```

#[cfg(unix)]
mod container;
#[cfg(target_os = "linux")]
mod disk;
mod ended;
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
#[cfg(target_os = "linux")]
mod proxy;
mod run;
mod sandbox;
#[cfg(unix)]
mod supervise;
#[cfg(target_os = "linux")]
mod usage;
mod work;

pub use ended::{Ended, How};
pub use enforced::{Measure, what_is_enforced};
#[cfg(unix)]
pub use engine::Engine;
pub use error::Error;
pub use program::{Cancellation, Program, Streams};
pub use sandbox::{Limits, Network, Sandbox};
pub use work::{make_work_directory, remove_work_directory};
