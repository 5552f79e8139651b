//! Whose rights the tests are run with.

use std::io::Write;
use std::process::{Command, Stdio};

const ORDINARY: &str = "POLYLOGUE_ORDINARY";

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0)
}

/// All tests once more as an ordinary user, where they run as root.
#[test]
fn an_ordinary_user_is_enclosed_as_well() {
    if std::env::var_os(ORDINARY).is_some() {
        return;
    }
    if !is_root() {
        polylogue_test::skip::skipped("the tests run as an ordinary user already");
        return;
    }
    let copy = std::env::temp_dir().join(format!("polylogue-attacks-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let ran = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["--test-threads=2", "--nocapture"])
        .env(ORDINARY, "1")
        .env("CARGO_MANIFEST_DIR", "/")
        .current_dir("/")
        .stdin(Stdio::null())
        .output();
    std::fs::remove_file(&copy).unwrap();
    let Ok(ran) = ran else {
        polylogue_test::skip::skipped("there is no `setpriv` to become an ordinary user with");
        return;
    };
    let (output, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let skipped: Vec<_> = errors.lines().filter(|line| line.contains("SKIPPED")).collect();
    writeln!(std::io::stderr(), "as an ordinary user: {}", skipped.join("; ")).unwrap();
    assert!(ran.status.success(), "{output}\n{errors}");
}
