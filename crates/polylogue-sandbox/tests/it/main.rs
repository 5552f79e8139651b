//! Programs that try to get out, to use more than they may, or simply run.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod attacks;
mod containers;
mod hosts;
mod limits;
mod runs;
mod venvs;
mod work;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use polylogue_sandbox::{Cancellation, Program, ProgramResult, Sandbox, what_is_enforced};
use polylogue_test::skip::can_enclose;

/// A directory that is gone when the test is over.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("polylogue-sandbox-{}-{nth}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sandbox in `dir`; none, with the reason on the error output, where the kernel makes no namespaces for this user.
/// Where it does, there is no excuse.
pub(crate) fn sandbox(dir: &Dir) -> Option<Sandbox> {
    let missing = what_is_enforced().into_iter().find(|measure| measure.required && !measure.holds);
    if let Some(missing) = &missing {
        let all = ["--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"];
        let makes_namespaces = Command::new("unshare").args(all).stderr(Stdio::null()).status();
        let is_able = makes_namespaces.is_ok_and(|status| status.success());
        assert!(!is_able, "namespaces can be made here, a sandbox cannot: {}", missing.detail);
    }
    if !can_enclose(missing.as_ref().map(|missing| &*missing.detail)) {
        return None;
    }
    let work = dir.0.join("work");
    std::fs::create_dir_all(&work).unwrap();
    Some(Sandbox::enclosed(work.canonicalize().unwrap()))
}

pub(crate) fn run(sandbox: &Sandbox, program: &Program) -> ProgramResult {
    sandbox.run(program, &Cancellation::new()).unwrap()
}

pub(crate) fn text(ended: &ProgramResult) -> String {
    String::from_utf8_lossy(&ended.output).into_owned()
}

pub(crate) fn sh(code: &str) -> Program {
    Program::new("/bin/sh").arg("-c").arg(code)
}

pub(crate) fn python(code: &str) -> Program {
    Program::new("python3").arg("-c").arg(code)
}
