//! The work directory as a trap: for what is written there for the next program, and for a reader of it.

use std::time::Duration;

use polylogue_sandbox::{Cancellation, ExitReason, Limits};

use super::{SECRET, bait};
use crate::{Dir, python, run, sandbox, sh, text};

#[test]
fn a_link_in_the_place_of_a_file() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    bait(&dir.0);
    let outside = dir.0.display();
    run(
        &sandbox,
        &sh(&format!("ln -s {outside}/victim main.py; ln -s {outside} dir; ln -s ../victim up.py")),
    );
    for file in ["main.py", "dir/victim", "up.py"] {
        let program = sh("true").file(file, "broken");
        assert!(sandbox.run(&program, &Cancellation::new()).is_err(), "{file}");
        assert_eq!(std::fs::read_to_string(dir.0.join("victim")).unwrap(), SECRET);
    }
}

/// Two programs at once in one directory: one swaps a directory for a link while files are written there for the other.
#[test]
fn a_folder_that_is_swapped_with_a_link() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    bait(&dir.0);
    let swap = format!(
        "import os\nos.makedirs('real', exist_ok=True)\nos.symlink({:?}, 'fake')\nwhile True:\n  for name in ['real', 'fake']:\n    try: os.rename(name, 'd'); os.rename('d', name)\n    except OSError: pass",
        dir.0.display().to_string()
    );
    let cancellation = Cancellation::new();
    std::thread::scope(|scope| {
        let (sandbox, swapping) = (&sandbox, &cancellation);
        scope.spawn(move || sandbox.run(&python(&swap), swapping).unwrap());
        for _ in 0..60 {
            // Whether it succeeds depends on who is faster; where it is written does not.
            drop(sandbox.run(&sh("true").file("d/victim", "broken"), &Cancellation::new()));
        }
        cancellation.cancel();
    });
    assert_eq!(std::fs::read_to_string(dir.0.join("victim")).unwrap(), SECRET);
}

#[test]
fn a_hard_link_in_the_place_of_a_file() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let code = "for path in /usr/bin/env /etc/passwd /etc/ld.so.cache /dev/null; do ln $path main.py && echo ESCAPED; done; true";
    assert!(!text(&run(&sandbox, &sh(code))).contains("ESCAPED"));
}

#[test]
fn a_pipe_in_the_place_of_a_file() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    run(&sandbox, &sh("mkfifo main.py"));
    let limits = Limits { time: Duration::from_secs(1), ..*sandbox.limits() };
    // The call does not wait for a reader that never comes.
    let error = sandbox.limited(limits).run(&sh("true").file("main.py", "x"), &Cancellation::new());
    assert!(error.is_err(), "{error:?}");
}

/// What the work directory takes is counted from outside: links must not lead the count astray.
#[test]
fn links_to_large_files_do_not_count_as_disk_use() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    std::fs::create_dir(dir.0.join("large")).unwrap();
    std::fs::write(dir.0.join("large/file"), vec![1; 8 << 20]).unwrap();
    let code = format!(
        "import os, time\nos.mkdir('real')\nos.symlink({:?}, 'fake')\nend = time.time() + 1.5\nwhile time.time() < end:\n  for name in ['real', 'fake']:\n    os.rename(name, 'd'); os.rename('d', name)",
        dir.0.join("large").display().to_string()
    );
    let limits = Limits { disk_bytes: 4 << 20, ..*sandbox.limits() };
    assert_eq!(run(&sandbox.limited(limits), &python(&code)).how, ExitReason::Exited(0));
}

#[test]
fn a_directory_within_a_directory_without_end() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let code = r"
import os, time
depth = 0
for _ in range(3000):
    os.mkdir('d')
    os.chdir('d')
print('deep', flush=True)
time.sleep(50)";
    let ended = run(&sandbox, &python(code));
    // Deeper than anyone looks: it counts as too much.
    assert_eq!(ended.how, ExitReason::TooMuchDisk);
}

#[test]
fn names_that_are_no_text() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let code = "import os\nfor name in [b'\\xff\\xfe', b'a\\nb', b'\\x1b[2J', b'x' * 255, b'-rf']: open(name, 'w').close()\nprint('made')";
    assert_eq!(text(&run(&sandbox, &python(code))), "made\n");
}
