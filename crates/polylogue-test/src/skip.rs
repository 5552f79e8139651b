//! Skips tests that cannot run on a machine, with a reason, and fails where they must run.
//!
//! - [`skipped`]: something is missing that no machine must have.
//! - [`has`]: something that `.ci/test` installs; a test without it fails in CI.
//! - [`can_enclose`]: what the sandbox needs of the kernel; a test without it fails in CI, unless the machine is known to
//!   have no sandbox.

use std::io::Write;
use std::path::{Path, PathBuf};

/// A file to which the reasons for skipped tests are appended, since test runners hide what passing tests print.
const FILE: &str = "POLYLOGUE_SKIPPED";
/// `none` on machines whose kernel has no sandbox: tests of the sandbox are then skipped even in CI.
const SANDBOX: &str = "POLYLOGUE_SANDBOX";

/// Reports that a test, or a part of it, is skipped, and why.
pub fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Not by a macro, whose output a test runner keeps to itself. It may be closed.
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // The reason was printed as well.
    let _ = file.and_then(|mut file| file.write_all(format!("{name}: {why}\n").as_bytes()));
}

/// Returns whether a test can use `what`, which `.ci/test` installs: `is_there`. Otherwise reports that the test is skipped.
///
/// # Panics
/// When `CI` is set, where it must be installed.
pub fn has(what: &str, is_there: bool) -> bool {
    if !is_there {
        assert!(!is_ci(), "{what} is not installed\nhint: `CI` is set, and `.ci/test` installs it");
        skipped(&format!("{what} is not installed"));
    }
    is_there
}

/// Returns whether a test can run `python3`, from a directory that is visible in the sandbox. Otherwise as [`has`].
pub fn has_python() -> bool {
    let mut dirs = ["/usr/local/bin", "/usr/bin", "/bin"].iter();
    has("`python3`", dirs.any(|dir| Path::new(dir).join("python3").exists()))
}

/// Returns whether a test can run `strace`. Otherwise as [`has`].
pub fn has_strace() -> bool {
    let ran = std::process::Command::new("strace").arg("-V").output();
    has("`strace`", ran.is_ok_and(|ran| ran.status.success()))
}

/// Returns the folder with the reference servers and clients of MCP, below the target directory that `tmp`, a
/// `CARGO_TARGET_TMPDIR`, is in. Otherwise as [`has`].
pub fn mcp_servers(tmp: &str) -> Option<PathBuf> {
    let folder = Path::new(tmp).parent()?.join("mcp-servers");
    has("the reference software of MCP", folder.join("installed").exists()).then_some(folder)
}

fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false")
}

/// Returns whether a sandbox test can run: when nothing is `missing`. Otherwise reports what is.
///
/// # Panics
/// When `CI` is set, where the sandbox must work, unless `POLYLOGUE_SANDBOX` is `none`.
pub fn can_enclose(missing: Option<&str>) -> bool {
    let Some(missing) = missing else { return true };
    let is_excused = std::env::var_os(SANDBOX).is_some_and(|sandbox| sandbox == "none");
    assert!(
        !is_ci() || is_excused,
        "the sandbox does not work here: {missing}\nhint: `CI` is set; where the kernel does not support the sandbox set {SANDBOX}=none"
    );
    skipped(missing);
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    const MISSING: &str = "POLYLOGUE_TEST_MISSING";
    const PROGRAM: &str = "POLYLOGUE_TEST_PROGRAM";

    /// For the next tests only: what a test does that needs a sandbox or a program.
    #[test]
    fn a_test_that_needs_something() {
        let missing = std::env::var(MISSING).ok();
        let _ = can_enclose(missing.as_deref());
        let _ = std::env::var(PROGRAM).map(|program| has(&program, false));
    }

    fn passes(set: &[(&str, &str)], file: &Path) -> bool {
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "skip::tests::a_test_that_needs_something"])
            .env_remove("CI")
            .env_remove(SANDBOX);
        test.env(FILE, file).envs(set.iter().copied()).output().unwrap().status.success()
    }

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("polylogue-skipped-{name}-{}", std::process::id()))
    }

    fn reported(file: &Path) -> String {
        let reported = std::fs::read_to_string(file).unwrap();
        std::fs::remove_file(file).unwrap();
        reported.replace("skip::tests::a_test_that_needs_something: ", "")
    }

    #[test]
    fn a_missing_sandbox_is_reported_and_fails_in_ci() {
        let file = file("sandbox");
        let missing = (MISSING, "no namespaces");
        assert!(passes(&[("CI", "true")], &file) && !file.exists(), "nothing is missing");
        assert!(!passes(&[missing, ("CI", "true")], &file) && !file.exists());
        assert!(passes(&[missing, ("CI", "true"), (SANDBOX, "none")], &file));
        assert!(passes(&[missing, ("CI", "false")], &file) && passes(&[missing], &file));
        assert_eq!(reported(&file), "no namespaces\n".repeat(3));
    }

    #[test]
    fn a_missing_program_is_reported_and_fails_in_ci() {
        let file = file("program");
        let missing = (PROGRAM, "`strace`");
        assert!(!passes(&[missing, ("CI", "true"), (SANDBOX, "none")], &file) && !file.exists());
        assert!(passes(&[missing], &file));
        assert_eq!(reported(&file), "`strace` is not installed\n");
    }
}
