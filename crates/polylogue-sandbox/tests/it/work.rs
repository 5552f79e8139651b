//! Removing work directories.

use std::fs::create_dir_all;
use std::os::unix::fs::PermissionsExt;

use polylogue_sandbox::remove_work_directory;

fn fresh(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("polylogue-work-{name}-{}", std::process::id()))
}

#[test]
fn a_work_directory_that_is_gone_is_no_error() {
    let dir = fresh("gone");
    create_dir_all(dir.join("inner")).unwrap();
    remove_work_directory(&dir).unwrap();
    assert!(!dir.exists());
    remove_work_directory(&dir).unwrap();
}

#[test]
fn a_work_directory_is_removed_with_any_content() {
    let dir = fresh("removed");
    let outside = fresh("outside");
    create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("kept"), "").unwrap();
    create_dir_all(dir.join("a/b/c")).unwrap();
    // Names that the removal itself would choose.
    create_dir_all(dir.join(".polylogue-removed-1/x")).unwrap();
    std::fs::write(dir.join(".polylogue-removed-2"), "").unwrap();
    std::fs::write(dir.join("a/b/c/file"), "").unwrap();
    std::os::unix::fs::symlink(&outside, dir.join("a/link")).unwrap();
    for hidden in ["a/b/c", "a/b", "a"] {
        let mode = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(dir.join(hidden), mode).unwrap();
    }
    remove_work_directory(&dir).unwrap();
    assert!(!dir.exists() && outside.join("kept").exists());
    remove_work_directory(&outside).unwrap();
}

#[test]
fn a_tree_deeper_than_a_path_is_removed() {
    let dir = fresh("deep");
    create_dir_all(&dir).unwrap();
    let deep = "import os\nfor _ in range(1100): os.mkdir('longer-than-it-can-be'); os.chdir('longer-than-it-can-be')";
    let made = std::process::Command::new("python3").args(["-c", deep]).current_dir(&dir).status().unwrap();
    assert!(made.success());
    remove_work_directory(&dir).unwrap();
    assert!(!dir.exists());
}
