//! Skips tests that cannot run on a machine, with a reason, and fails where they must run.

use std::io::Write;

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

/// Whether a sandbox test can run: when nothing is `missing`. Otherwise reports what is.
///
/// # Panics
/// When `CI` is set, where the sandbox must work, unless `POLYLOGUE_SANDBOX` is `none`.
#[must_use]
#[allow(clippy::panic, reason = "this is for tests")]
pub fn can_enclose(missing: Option<&str>) -> bool {
    let Some(missing) = missing else { return true };
    let is_required = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
    let is_excused = std::env::var_os(SANDBOX).is_some_and(|sandbox| sandbox == "none");
    assert!(
        !is_required || is_excused,
        "programs cannot be enclosed here: {missing}\nhint: `CI` is set; where the kernel cannot enclose programs set {SANDBOX}=none"
    );
    skipped(missing);
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    const MISSING: &str = "POLYLOGUE_TEST_MISSING";

    /// For the next test only: what a test of the sandbox does.
    #[test]
    fn a_test_that_needs_something() {
        let missing = std::env::var(MISSING).ok();
        let _ = can_enclose(missing.as_deref());
    }

    fn passes(set: &[(&str, &str)], file: &std::path::Path) -> bool {
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "skip::tests::a_test_that_needs_something"])
            .env_remove("CI")
            .env_remove(SANDBOX);
        test.env(FILE, file).envs(set.iter().copied()).output().unwrap().status.success()
    }

    #[test]
    fn what_is_missing_is_said_and_fails_in_ci() {
        let file = std::env::temp_dir().join(format!("polylogue-skipped-{}", std::process::id()));
        let missing = (MISSING, "no namespaces");
        assert!(passes(&[("CI", "true")], &file) && !file.exists(), "nothing is missing");
        assert!(!passes(&[missing, ("CI", "true")], &file) && !file.exists());
        assert!(passes(&[missing, ("CI", "true"), (SANDBOX, "none")], &file));
        assert!(passes(&[missing, ("CI", "false")], &file) && passes(&[missing], &file));
        let told = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(told, "skip::tests::a_test_that_needs_something: no namespaces\n".repeat(3));
    }
}
