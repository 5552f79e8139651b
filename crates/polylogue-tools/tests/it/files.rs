//! Files that are read and changed, and attempts to get at others.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polylogue_core::{AnyTool, Tool, ToolStatus};
use polylogue_tools::code::{Limits, Sandbox};
use polylogue_tools::files::{self, Folder, edit, list, read, search, write};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::{Dir, done, failed, result_of};

fn folder(dir: &Dir) -> Folder {
    Folder::at(dir.work())
}

#[tokio::test]
async fn files_are_written_read_edited_and_listed() {
    let dir = Dir::new();
    let folder = folder(&dir);
    let out = done(&write(&folder), json!({"path": "src/a.py", "content": "x = 1\ny = 1\n"})).await;
    assert_eq!((&*out, &*dir.read("work/src/a.py")), ("Wrote `src/a.py` (12 bytes).", "x = 1\ny = 1\n"));
    assert_eq!(done(&read(&folder), json!({"path": "src/a.py"})).await, "x = 1\ny = 1\n");
    let out =
        done(&edit(&folder), json!({"path": "./src/../src/a.py", "old": "x = 1", "new": "x = 2"})).await;
    assert_eq!((&*out, &*dir.read("work/src/a.py")), ("Replaced it once in `src/a.py`.", "x = 2\ny = 1\n"));
    let out = done(&edit(&folder), json!({"path": "src/a.py", "old": " = ", "new": "=", "all": true})).await;
    assert_eq!((&*out, &*dir.read("work/src/a.py")), ("Replaced it 2 times in `src/a.py`.", "x=2\ny=1\n"));
    assert_eq!(done(&list(&folder), json!({})).await, "src/");
    assert_eq!(done(&list(&folder), json!({"recursive": true})).await, "src/\nsrc/a.py (8 bytes)");
    assert_eq!(done(&list(&folder), json!({"path": "src"})).await, "a.py (8 bytes)");
    let out = done(&write(&folder), json!({"path": "src/a.py", "content": ""})).await;
    assert_eq!(out, "Replaced `src/a.py` (0 bytes).");
    assert_eq!(done(&read(&folder), json!({"path": "src/a.py"})).await, "`src/a.py` is empty");
    // Drafts are gone.
    assert_eq!(std::fs::read_dir(dir.work().join("src")).unwrap().count(), 1);
}

// A process of the same id was killed while it wrote, or writes now, in another container that has this folder.
#[tokio::test]
async fn drafts_of_other_processes_are_left_alone() {
    let dir = Dir::new();
    let drafts: Vec<String> =
        (0..5_000).map(|nth| format!("work/.polylogue-{}-{nth}.part", std::process::id())).collect();
    drafts.iter().for_each(|draft| dir.write(draft, "theirs"));
    done(&write(&folder(&dir)), json!({"path": "a", "content": "ours"})).await;
    assert_eq!(dir.read("work/a"), "ours");
    assert!(drafts.iter().all(|draft| dir.read(draft) == "theirs"));
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_empty_and_made_when_written_to() {
    let dir = Dir::new();
    let folder = Folder::at(dir.work().join("new/one"));
    assert_eq!(done(&list(&folder), json!({})).await, "There are no files.");
    assert_eq!(done(&search(&folder), json!({"pattern": "x"})).await, "Nothing was found.");
    assert_eq!(failed(&read(&folder), json!({"path": "a"})).await, "there is no `a`");
    done(&write(&folder), json!({"path": "a", "content": "1"})).await;
    assert_eq!(dir.read("work/new/one/a"), "1");
}

#[tokio::test]
async fn parts_of_long_files_are_read() {
    let dir = Dir::new();
    let tool = read(&folder(&dir));
    let lines: String = (1..=5000).map(|nth| format!("line {nth}\n")).collect();
    dir.write("work/long", &lines);
    let out = done(&tool, json!({"path": "long"})).await;
    assert!(
        out.starts_with("line 1\n")
            && out.ends_with("line 2000\n\n\n(lines 1 to 2000 of 5000; continue from 2001)")
    );
    let out = done(&tool, json!({"path": "long", "from": 4999, "lines": 9})).await;
    assert_eq!(out, "line 4999\nline 5000\n\n\n(lines 4999 to 5000 of 5000)");
    assert_eq!(failed(&tool, json!({"path": "long", "from": 5001})).await, "`long` has 5000 lines");
    dir.write("work/wide", "é".repeat(50_000) + "\nend");
    let out = done(&tool, json!({"path": "wide"})).await;
    assert!(out.ends_with("(lines 1 to 1 of 2; continue from 2)"), "{}", out.len());
}

#[tokio::test]
async fn lines_are_found_by_a_regular_expression() {
    let dir = Dir::new();
    let tool = search(&folder(&dir));
    dir.write("work/a.txt", "Alpha\nbeta\nGamma alpha\n");
    dir.write("work/sub/b.txt", "alpha\r\n");
    dir.write("work/sub/c.bin", b"alpha\0");
    let out = done(&tool, json!({"pattern": "(?i)alpha"})).await;
    assert_eq!(out, "a.txt:1: Alpha\na.txt:3: Gamma alpha\nsub/b.txt:1: alpha");
    assert_eq!(done(&tool, json!({"pattern": "^alpha$", "path": "sub"})).await, "sub/b.txt:1: alpha");
    assert_eq!(
        done(&tool, json!({"pattern": "a$", "path": "a.txt"})).await,
        "a.txt:1: Alpha\na.txt:2: beta\na.txt:3: Gamma alpha"
    );
    assert_eq!(failed(&tool, json!({"pattern": "x", "path": "no"})).await, "there is no `no`");
    let out = failed(&tool, json!({"pattern": "("})).await;
    assert!(out.starts_with("`pattern` is not a valid regular expression: "), "{out}");
    dir.write("work/many", "x\n".repeat(1000));
    let out = done(&tool, json!({"pattern": "x"})).await;
    assert!(
        out.lines().count() == 201 && out.ends_with("(there may be more: search a part of it, or for less)")
    );
    // Nothing that can be asked for takes long.
    dir.write("work/evil", "a".repeat(100_000));
    assert_eq!(done(&tool, json!({"pattern": "^(a+)+$b"})).await, "Nothing was found.");
}

#[tokio::test]
async fn errors_name_the_path_and_the_reason() {
    let dir = Dir::new();
    let folder = folder(&dir);
    dir.write("work/a", "one one");
    dir.write("work/sub/b", "");
    dir.write("work/bin", b"a\0b");
    dir.write("work/latin", b"caf\xe9");
    for (tool, args, expected) in [
        (read(&folder), json!({}), "`path` must be a text"),
        (read(&folder), json!({"path": "a", "from": 0}), "`from` must be a whole number from 1"),
        (read(&folder), json!({"path": ""}), "the path must name a file of the work directory"),
        (read(&folder), json!({"path": "sub"}), "`sub` is not a file"),
        (read(&folder), json!({"path": "bin"}), "`bin` is not text (3 bytes)"),
        (
            read(&folder),
            json!({"path": "a/b"}),
            "`a/b` leads over what is not a directory, or a link; links are not followed",
        ),
        (
            list(&folder),
            json!({"path": "a"}),
            "`a` leads over what is not a directory, or a link; links are not followed",
        ),
        (list(&folder), json!({"recursive": 1}), "`recursive` must be `true` or `false`"),
        (
            write(&folder),
            json!({"path": "sub", "content": ""}),
            "`sub` is not a file: a directory, a link or a device",
        ),
        (
            edit(&folder),
            json!({"path": "a", "old": "", "new": "x"}),
            "`old` is empty: `write_file` writes a whole file",
        ),
        (
            edit(&folder),
            json!({"path": "a", "old": "two", "new": "x"}),
            "`old` is not in `a`: it must be exactly the same",
        ),
        (
            edit(&folder),
            json!({"path": "a", "old": "one", "new": "x"}),
            "`old` occurs 2 times in `a`: add more context, or set `all`",
        ),
        (
            edit(&folder),
            json!({"path": "latin", "old": "c", "new": "x"}),
            "`latin` is not UTF-8 text, and is left unchanged",
        ),
    ] {
        assert_eq!(failed(&tool, args).await, expected);
    }
    assert_eq!(done(&read(&folder), json!({"path": "latin"})).await, "caf\u{fffd}");
    std::fs::File::create(dir.work().join("huge")).unwrap().set_len(1 << 40).unwrap();
    let out = failed(&read(&folder), json!({"path": "huge"})).await;
    assert_eq!(out, "`huge` is too large: at most 16777216 bytes are possible");
    let out = done(&search(&folder), json!({"pattern": "nowhere"})).await;
    assert_eq!(out, "Nothing was found.\n(1 files are too large to be searched)");
}

#[tokio::test]
async fn no_path_leads_outside() {
    let dir = Dir::new();
    let folder = folder(&dir);
    dir.write("secret", "mine");
    dir.write("work/sub/a", "");
    let outside = dir.0.join("secret").display().to_string();
    for path in [
        "..", "../secret", "sub/../../secret", "/etc/passwd", &outside, "/", "./../work/../secret",
        "//etc/passwd",
    ] {
        let expected = format!("`{path}` is not in the work directory");
        for (tool, more) in [
            (read(&folder), json!({})),
            (list(&folder), json!({})),
            (search(&folder), json!({"pattern": "."})),
            (write(&folder), json!({"content": "x"})),
            (edit(&folder), json!({"old": "m", "new": "x"})),
        ] {
            let mut args = more;
            args["path"] = json!(path);
            assert_eq!(failed(&tool, args).await, expected);
        }
    }
    assert_eq!(dir.read("secret"), "mine");
    assert!(failed(&read(&folder), json!({"path": "a\0b"})).await.starts_with("`a\0b`: "));
    // The folder's own path, and the one by which programs know it, lead into it.
    let known = Folder::of(&Sandbox::enclosed(dir.work()));
    dir.write("work/a", "in");
    let own = dir.work().join("a").display().to_string();
    assert_eq!(done(&read(&folder), json!({"path": own})).await, "in");
    assert_eq!(done(&read(&known), json!({"path": "/work/a"})).await, "in");
    assert_eq!(
        failed(&read(&known), json!({"path": "/workshop"})).await,
        "`/workshop` is not in the work directory"
    );
}

#[tokio::test]
async fn links_are_not_followed() {
    let dir = Dir::new();
    let folder = folder(&dir);
    dir.write("secret", "mine");
    dir.write("out/a", "mine");
    dir.write("work/plain", "yes");
    for (target, name) in
        [("../secret", "file"), ("../out", "dir"), ("plain", "inner"), ("loop", "loop"), ("/", "root")]
    {
        symlink(target, dir.work().join(name)).unwrap();
    }
    for path in ["file", "inner", "loop"] {
        let expected = format!("`{path}` leads over a link, and links are not followed");
        assert_eq!(failed(&read(&folder), json!({"path": path})).await, expected);
        let out = failed(&write(&folder), json!({"path": path, "content": "x"})).await;
        assert_eq!(out, format!("`{path}` is not a file: a directory, a link or a device"));
    }
    for path in ["dir/a", "dir/new", "root/etc/passwd", "loop/a"] {
        let out = failed(&read(&folder), json!({"path": path})).await;
        assert!(out.ends_with("links are not followed"), "{out}");
        let out = failed(&write(&folder), json!({"path": path, "content": "x"})).await;
        assert!(out.ends_with("links are not followed"), "{out}");
    }
    let listed = done(&list(&folder), json!({"recursive": true})).await;
    assert!(listed.contains("dir (a link, which is not followed)") && !listed.contains("passwd"), "{listed}");
    assert_eq!(done(&search(&folder), json!({"pattern": "mine|yes"})).await, "plain:1: yes");
    assert_eq!((dir.read("secret"), dir.read("out/a")), ("mine".into(), "mine".into()));
    assert!(!dir.0.join("out/new").exists());
}

// A pipe would be waited for, and a device do what it does.
#[tokio::test]
async fn a_named_pipe_is_not_read_as_a_file() {
    let dir = Dir::new();
    let folder = folder(&dir);
    let made = std::process::Command::new("mkfifo").arg(dir.work().join("pipe")).status().unwrap();
    assert!(made.success());
    assert_eq!(failed(&read(&folder), json!({"path": "pipe"})).await, "`pipe` is not a file");
    assert_eq!(done(&list(&folder), json!({})).await, "pipe (no file)");
    assert_eq!(done(&search(&folder), json!({"pattern": "x"})).await, "Nothing was found.");
}

// A file that is another's as well is replaced, not written through; what may be executed still may.
#[tokio::test]
async fn files_are_replaced_and_keep_their_rights() {
    let dir = Dir::new();
    let folder = folder(&dir);
    dir.write("secret", "mine");
    std::fs::hard_link(dir.0.join("secret"), dir.work().join("hard")).unwrap();
    done(&write(&folder), json!({"path": "hard", "content": "x"})).await;
    assert_eq!((dir.read("secret"), dir.read("work/hard")), ("mine".into(), "x".into()));
    dir.write("work/run.sh", "echo 1");
    std::fs::set_permissions(dir.work().join("run.sh"), PermissionsExt::from_mode(0o4755)).unwrap();
    done(&edit(&folder), json!({"path": "run.sh", "old": "1", "new": "2"})).await;
    let mode = std::fs::metadata(dir.work().join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755, "a file that runs as its owner does so no more");
}

/// Another process exchanges a directory for a link to the outside, repeatedly, while the tools work in it.
#[tokio::test]
async fn a_file_exchanged_during_a_read_does_not_lead_outside() {
    let dir = Dir::new();
    let folder = folder(&dir);
    dir.write("work/sub/file", "inside");
    dir.write("out/file", "outside");
    let (link, sub) = (dir.work().join("link"), dir.work().join("sub"));
    symlink("../out", &link).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let exchanges = std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            renameat_with(CWD, &sub, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            std::thread::yield_now();
        }
    });
    let (mut inside, mut links) = (0_u32, 0_u32);
    for nth in 0..1_000 {
        let (status, text) = result_of(&read(&folder), json!({"path": "sub/file"})).await;
        match status {
            ToolStatus::Done => assert!(text == "inside" || text.starts_with("new"), "{text}"),
            _ => links += u32::from(text.contains("link")),
        }
        inside += u32::from(status == ToolStatus::Done);
        let args = json!({"path": "sub/file", "content": format!("new {nth}")});
        let _ = result_of(&write(&folder), args).await;
        let found = done(&search(&folder), json!({"pattern": "outside"})).await;
        assert_eq!(found, "Nothing was found.");
    }
    over.store(true, Ordering::Relaxed);
    exchanges.join().unwrap();
    assert_eq!(dir.read("out/file"), "outside");
    assert_eq!(std::fs::read_dir(dir.0.join("out")).unwrap().count(), 1, "nothing was written there");
    assert!(inside > 0 && links > 0, "{inside} times inside, {links} times refused: there was no race");
}

// Calls of one reply run at the same time.
#[tokio::test]
async fn edits_at_the_same_time_do_not_undo_each_other() {
    let dir = Dir::new();
    let folder = folder(&dir);
    let names: Vec<String> = (0..30).map(|nth| format!("<{nth}>")).collect();
    dir.write("work/a", names.concat());
    let mut edits = tokio::task::JoinSet::new();
    for name in names {
        let tool = edit(&folder);
        edits.spawn(async move { done(&tool, json!({"path": "a", "old": name, "new": "done "})).await });
    }
    while let Some(edited) = edits.join_next().await {
        assert_eq!(edited.unwrap(), "Replaced it once in `a`.");
    }
    assert_eq!(dir.read("work/a"), "done ".repeat(30));
}

#[test]
fn reading_tools_can_be_given_without_writing_tools() {
    let folder = Folder::at("never-made");
    let names = |tools: Vec<AnyTool>| tools.iter().map(|tool| tool.spec().name.clone()).collect::<Vec<_>>();
    assert_eq!(names(files::reading(&folder)), ["read_file", "list_files", "search_files"]);
    let all = files::all(&folder);
    let again: Vec<bool> = all.iter().map(|tool| tool.spec().repeatable).collect();
    assert_eq!(again, [true, true, true, true, false]);
    assert_eq!(names(all).len(), 5);
    assert!(!folder.path().exists());
}

// Paths of any names, over links and directories of all kinds: what is read is inside, and nothing outside changes.
#[tokio::test]
async fn no_path_of_many_leads_outside() {
    let dir = Dir::new();
    dir.write("secret", "outside");
    dir.write("out/secret", "outside");
    dir.write("work/a/secret", "inside");
    dir.write("work/a/b/secret", "inside");
    for (target, name) in
        [("..", "work/up"), ("../../out", "work/a/out"), ("../../..", "work/a/b/up"), ("/", "work/root")]
    {
        symlink(target, dir.0.join(name)).unwrap();
    }
    let folder = folder(&dir);
    let own = dir.0.display().to_string();
    let names =
        ["..", ".", "a", "b", "up", "out", "root", "secret", "", "work", "/", &own, "secret/..", "new"];
    let mut state = 3_u64;
    let (mut read_some, mut wrote_some) = (0, 0);
    for _ in 0..4_000 {
        let mut path = Vec::new();
        for _ in 0..1 + (state >> 40) % 5 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            path.push(names[usize::try_from((state >> 33) % names.len() as u64).unwrap()]);
        }
        let path = path.join("/");
        let (status, text) = result_of(&read(&folder), json!({"path": path})).await;
        assert!(status != ToolStatus::Done || text == "inside" || text == "new", "{path}: {text}");
        read_some += u32::from(status == ToolStatus::Done);
        let (status, _) =
            result_of(&write(&folder), json!({"path": format!("{path}/new"), "content": "new"})).await;
        wrote_some += u32::from(status == ToolStatus::Done);
    }
    assert!(read_some > 20 && wrote_some > 20, "{read_some} read, {wrote_some} written");
    let listed = std::fs::read_dir(&dir.0).unwrap().count();
    assert_eq!(
        (listed, std::fs::read_dir(dir.0.join("out")).unwrap().count()),
        (3, 1),
        "nothing is new outside"
    );
    assert_eq!((dir.read("secret"), dir.read("out/secret")), ("outside".into(), "outside".into()));
}

/// What the limit on the disk is for programs it is for these tools as well.
#[tokio::test]
async fn the_limit_of_the_work_directory_holds_for_files_that_are_written() {
    let dir = Dir::new();
    let limits = Limits { disk_bytes: 1 << 20, ..Limits::default() };
    let folder = Folder::of(&Sandbox::enclosed(dir.work()).limited(limits));
    let write = files::write(&folder);
    let content = "x".repeat(300_000);
    for nth in 0..3 {
        done(&write, json!({"path": format!("f{nth}"), "content": content})).await;
    }
    let shown = failed(&write, json!({"path": "f3", "content": content})).await;
    assert!(
        shown.starts_with("the work directory has no room for 300000 bytes: it may hold 1048576"),
        "{shown}"
    );
    assert!(!dir.work().join("f3").exists());
    std::fs::remove_file(dir.work().join("f0")).unwrap();
    done(&write, json!({"path": "f3", "content": content})).await;
}

#[tokio::test]
async fn an_edit_that_would_grow_beyond_all_bounds_is_refused_before_it_is_made() {
    let dir = Dir::new();
    let folder = folder(&dir);
    let content = "a".repeat(16 << 20);
    dir.write("work/many", &content);
    // A mebi of these would be a tebibyte.
    let args = json!({"path": "many", "old": "a", "new": "b".repeat(64 * 1024), "all": true});
    assert_eq!(
        failed(&edit(&folder), args).await,
        "`many` is too large: at most 16777216 bytes are possible"
    );
    assert_eq!(dir.read("work/many"), content, "it is left as it was");
    let args = json!({"path": "many", "old": "aaaa", "new": "bbbb", "all": true});
    assert_eq!(done(&edit(&folder), args).await, "Replaced it 4194304 times in `many`.");
}

#[tokio::test]
async fn a_file_of_empty_lines_is_read_in_parts() {
    let dir = Dir::new();
    dir.write("work/lines", "\n".repeat(16 << 20));
    let out = done(&read(&folder(&dir)), json!({"path": "lines", "from": 16_777_215})).await;
    assert!(out.ends_with("(lines 16777215 to 16777216 of 16777216)"), "{out:?}");
}
