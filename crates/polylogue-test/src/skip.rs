//! Tests that cannot run on a machine say so, and fail where they must run.

use std::io::Write;

/// A file to which the reasons for skipped tests are appended, since test runners hide what passing tests print.
const FILE: &str = "POLYLOGUE_SKIPPED";
/// `none` on machines whose kernel cannot enclose programs: tests of the sandbox are then skipped even in CI.
const SANDBOX: &str = "POLYLOGUE_SANDBOX";

/// Says that a test, or a part of it, does not run, and why.
pub fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Not by a macro, whose output a test runner keeps to itself. It may be closed.
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // The reason was printed as well.
    let _ = file.and_then(|mut file| file.write_all(format!("{name}: {why}\n").as_bytes()));
}

/// Whether a test of enclosed programs can run: when nothing is `missing`. Otherwise says what is.
///
/// # Panics
/// When `CI` is set, where the sandbox has to work, unless `POLYLOGUE_SANDBOX` is `none`.
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
