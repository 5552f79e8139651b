//! Files that follow a conversation.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use polylogue::{Chat, sequential};
use polylogue_core::{
    Act, Agent, AnyStore, AnyTool, BlobId, Body, Event, FileEntry, FileKind, FilePath, FileTree, Log, LogId,
    Meta, Name, SkipReason, Store as _, StoreError, StoreWrapper, StoredFiles, Tool, ToolCall, ToolCx,
    ToolError, ToolResult, ToolSpec, Turn,
};
use polylogue_store::Memory;
use polylogue_tools::files::{KeptFiles, RestoreError, restore};
use serde_json::{Value, json};

use crate::Dir;

type Step = Box<dyn Fn(&Path) + Send + Sync>;

/// Changes files by the step that its argument names.
struct Change {
    spec: ToolSpec,
    dir: Arc<Path>,
    steps: Arc<Vec<Step>>,
}

impl Tool for Change {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let step = usize::try_from(args["step"].as_u64().unwrap()).unwrap();
        fs::create_dir_all(&self.dir).unwrap();
        self.steps[step](&self.dir);
        // What failed may have changed files as well.
        if step % 2 == 1 { Err("it failed".into()) } else { Ok(ToolResult::done("changed")) }
    }
}

/// Calls its tool once for each step.
struct Worker(Name, AnyTool, usize);

impl Agent for Worker {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue_core::Result<Act> {
        for step in 0..self.2 {
            let call =
                ToolCall { id: format!("c{step}"), tool: "change".into(), args: json!({"step": step}) };
            turn.call_tools(std::slice::from_ref(&self.1), &[call]).await?;
        }
        Ok(Act::say("done"))
    }
}

/// Counts the blobs that are stored.
struct Counting(AnyStore, Arc<AtomicUsize>);

impl StoreWrapper for Counting {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
    async fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<bool, StoreError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.store_blob(id, blob, bytes).await
    }
}

struct World {
    dir: Dir,
    store: AnyStore,
    id: LogId,
    stored: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        let stored = Arc::new(AtomicUsize::new(0));
        let store = AnyStore::new(Counting(AnyStore::new(Memory::default()), Arc::clone(&stored)));
        Self { dir: Dir::new(), store, id: LogId::new("test").unwrap(), stored }
    }

    /// The outcomes of calls that make these steps.
    async fn run(&self, steps: Vec<Step>) -> Vec<ToolResult> {
        let dir: Arc<Path> = self.dir.work().as_path().into();
        let (count, steps) = (steps.len(), Arc::new(steps));
        let spec = ToolSpec::new("change", "Changes files.", json!({"type": "object"}));
        let tool = KeptFiles::at(&*dir).around(Change { spec, dir, steps });
        let agent = Worker(Name::new("Ann").unwrap(), tool, count);
        let chat = Chat::builder("work").participant(agent).policy(sequential()).build().unwrap();
        let mut log = Log::create_with(self.store.clone(), self.id.clone(), &Meta::default()).await.unwrap();
        chat.run_in(&mut log, "Change files.").await.unwrap();
        let events = log.events().await;
        log.release().await.unwrap();
        outcomes(&events)
    }

    async fn tree(&self, files: &StoredFiles) -> FileTree {
        FileTree::from_bytes(&self.store.stored_blob(&self.id, &files.tree).await.unwrap().unwrap()).unwrap()
    }

    async fn restore(&self, to: &Path, files: &StoredFiles) -> Result<bool, RestoreError> {
        restore(to, files, false, &self.store, &self.id).await
    }
}

fn outcomes(events: &[Arc<Event>]) -> Vec<ToolResult> {
    let outcome = |event: &Arc<Event>| match &event.body {
        Body::ToolReturned { result: outcome, .. } => Some(outcome.clone()),
        _ => None,
    };
    events.iter().filter_map(outcome).collect()
}

/// Everything below `dir`: paths, modes, contents, and targets of links.
fn listed(dir: &Path) -> Vec<(Vec<u8>, u32, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let about = path.symlink_metadata().unwrap();
        let content = match about.file_type() {
            kind if kind.is_symlink() => fs::read_link(&path).unwrap().into_os_string().as_bytes().to_vec(),
            kind if kind.is_file() => fs::read(&path).unwrap(),
            _ => Vec::new(),
        };
        let mode = if about.is_symlink() { 0 } else { about.mode() };
        all.push((path.file_name().unwrap().as_bytes().to_vec(), mode, content));
        if about.is_dir() {
            let inner = listed(&path);
            let name = path.file_name().unwrap().as_bytes();
            all.extend(
                inner.into_iter().map(|(path, mode, content)| ([name, b"/", &path].concat(), mode, content)),
            );
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn the_next_worker_has_the_files_of_the_last_finished_call() {
    let world = World::new();
    let outcomes = world
        .run(vec![
            Box::new(|dir| {
                for nth in 0..50 {
                    fs::create_dir_all(dir.join(format!("part{}", nth % 5))).unwrap();
                    fs::write(dir.join(format!("part{}/{nth}.txt", nth % 5)), format!("file {nth}")).unwrap();
                }
                fs::write(dir.join("run.sh"), "#!/bin/sh\n").unwrap();
                fs::set_permissions(dir.join("run.sh"), Permissions::from_mode(0o755)).unwrap();
            }),
            Box::new(|dir| {
                fs::remove_dir_all(dir.join("part4")).unwrap();
                fs::write(dir.join("part0/0.txt"), "changed").unwrap();
                fs::write(dir.join("large"), vec![7; 9 << 20]).unwrap();
            }),
        ])
        .await;
    let [first, second] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    let (first, second) = (first.files.clone().unwrap(), second.files.clone().unwrap());
    assert_eq!((first.files, second.files), (51, 42));
    // Two pieces of the large file are alike.
    let new = (4 << 20) + (1 << 20) + 7 + world.tree(&second).await.to_bytes().len() as u64;
    assert_eq!(second.total_bytes - first.total_bytes, new);
    let (work, other) = (world.dir.work(), world.dir.work().with_file_name("other"));
    let as_kept = listed(&work);
    assert!(world.restore(&other, &second).await.unwrap());
    assert_eq!(listed(&other), as_kept);
    assert!(!world.restore(&other, &second).await.unwrap(), "nothing had to be changed");
    // A call that did not finish.
    fs::write(work.join("half"), "done").unwrap();
    fs::write(work.join("part0/0.txt"), "changex").unwrap();
    assert!(world.restore(&work, &second).await.unwrap());
    assert_eq!(listed(&work), as_kept);
    // An earlier point, as for a fork.
    assert!(world.restore(&other, &first).await.unwrap());
    assert_eq!(fs::read_to_string(other.join("part4/4.txt")).unwrap(), "file 4");
    assert_eq!(fs::metadata(other.join("run.sh")).unwrap().mode() & 0o777, 0o755);
    assert!(!other.join("large").exists());
}

/// What this process has read, in bytes: nextest runs each test in a process of its own.
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// W36: within 50 ms in a release build. Of several calls the fastest counts, because the machine may be busy.
#[tokio::test]
async fn files_that_have_not_changed_are_neither_read_nor_stored_again() {
    const CALLS: usize = 8;
    static READ: std::sync::Mutex<Vec<(u64, Instant)>> = std::sync::Mutex::new(Vec::new());
    let world = World::new();
    let note = || READ.lock().unwrap().push((bytes_read(), Instant::now()));
    let write: Step = Box::new(|dir| {
        for nth in 0..9_999 {
            fs::write(dir.join(format!("{nth:05}")), format!("{nth}").repeat(200)).unwrap();
        }
        // Until their times are old enough to be relied on.
        std::thread::sleep(Duration::from_millis(200));
    });
    let change: Step = Box::new(move |dir| {
        note();
        fs::write(dir.join("00007"), "7").unwrap();
    });
    let unchanged = (0..CALLS).map(|_| -> Step { Box::new(move |_| note()) });
    world.run([write].into_iter().chain(unchanged).chain([change]).collect()).await;
    let notes = READ.lock().unwrap().clone();
    // The files have 9 MB; the directory itself is no file.
    let read = notes[CALLS].0 - notes[0].0;
    assert!(read < 1_000_000, "{read} bytes were read");
    // From the end of a call to the beginning of the next one.
    let fastest = notes.windows(2).map(|two| two[1].1 - two[0].1).min().unwrap();
    println!("{fastest:?} for 9,999 files");
    // `.ci/nightly` runs this with optimization.
    assert!(cfg!(debug_assertions) || fastest < Duration::from_millis(50), "{fastest:?}");
    // All contents, and the tree, then nothing, then one file and the tree.
    assert_eq!(world.stored.load(Ordering::SeqCst), 9_999 + 1 + 2);
}

#[tokio::test]
async fn odd_entries_are_kept_or_left_out_and_nothing_else_is_read() {
    let world = World::new();
    let outside = world.dir.work().with_file_name("outside");
    fs::write(&outside, "secret").unwrap();
    let target = outside.clone();
    let outcomes = world
        .run(vec![Box::new(move |dir| {
            symlink(&target, dir.join("link")).unwrap();
            symlink("loop", dir.join("loop")).unwrap();
            symlink("/", dir.join("root")).unwrap();
            fs::write(dir.join(OsStr::from_bytes(b"new\nline \xff")), "odd").unwrap();
            fs::create_dir_all(dir.join("empty/inner")).unwrap();
            fs::create_dir(dir.join("closed")).unwrap();
            fs::write(dir.join("closed/file"), "inner").unwrap();
            fs::set_permissions(dir.join("closed"), Permissions::from_mode(0o500)).unwrap();
            File::create(dir.join("sparse")).unwrap().set_len(3 << 20).unwrap();
            File::create(dir.join("huge")).unwrap().set_len(FileTree::MAX_FILE_BYTES + 1).unwrap();
            drop(UnixListener::bind(dir.join("socket")).unwrap());
            let made = std::process::Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap();
            assert!(made.success());
        })])
        .await;
    let files = outcomes[0].files.clone().unwrap();
    assert_eq!((files.files, files.left_out), (3, 3));
    let tree = world.tree(&files).await;
    let left_out: Vec<(String, SkipReason)> =
        tree.left_out.iter().map(|left| (left.path.to_string(), left.why)).collect();
    let special = SkipReason::Special;
    assert_eq!(
        left_out,
        [("huge".into(), SkipReason::TooLarge), ("pipe".into(), special), ("socket".into(), special)]
    );
    assert_eq!(
        outcomes[0].text(),
        "changed\n\n(Not kept if the conversation continues elsewhere: `huge` (larger than 100 MiB), `pipe` (neither a \
         file nor a folder nor a link), `socket` (neither a file nor a folder nor a link).)"
    );
    let other = world.dir.work().with_file_name("other");
    assert!(world.restore(&other, &files).await.unwrap());
    let work = world.dir.work();
    for name in ["huge", "pipe", "socket"] {
        fs::remove_file(work.join(name)).unwrap();
    }
    assert_eq!(listed(&other), listed(&work));
    assert!(other.join("link").symlink_metadata().unwrap().file_type().is_symlink());
    assert!(!other.join("socket").exists());
    // No blob has what is behind the link.
    assert_eq!(world.store.stored_blob(&world.id, &BlobId::of("secret")).await.unwrap(), None);
    for dir in [&work, &other] {
        fs::set_permissions(dir.join("closed"), Permissions::from_mode(0o700)).unwrap();
    }
}

/// A tree that names what is not in a work directory, as a damaged store might.
#[tokio::test]
async fn a_tree_cannot_lead_out_of_the_directory() {
    let world = World::new();
    let outside = world.dir.work().with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    world.store.create(&world.id, &Meta::default()).await.unwrap();
    let content = BlobId::of("planted");
    world.store.store_blob(&world.id, &content, b"planted").await.unwrap();
    let path = |path: &str| FilePath::of(path.as_bytes());
    let file = |at: &str| FileEntry {
        path: path(at),
        kind: FileKind::File { mode: 0o4777, bytes: 7, pieces: vec![content.clone()] },
    };
    let link = |at: &str, to: &str| FileEntry { path: path(at), kind: FileKind::Link { to: path(to) } };
    let out = outside.to_str().unwrap();
    let trees = [
        vec![file("../outside/planted")],
        vec![file(&format!("{out}/planted"))],
        vec![link("a", out), file("a/planted")],
        vec![link("a", out), link("a/planted", "x")],
        vec![file("a/./../../outside/planted")],
        vec![file("nul\0")],
        vec![file("")],
    ];
    let work = world.dir.work();
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("old"), "old").unwrap();
    for entries in trees {
        let tree = FileTree { entries, left_out: Vec::new() };
        let bytes = tree.to_bytes();
        let id = BlobId::of(&bytes);
        world.store.store_blob(&world.id, &id, &bytes).await.unwrap();
        let files = StoredFiles { tree: id, files: 1, bytes: 7, total_bytes: 7, left_out: 0 };
        let refused = world.restore(&work, &files).await;
        assert!(
            matches!(refused, Err(RestoreError::Damaged(_) | RestoreError::Io(_))),
            "{tree:?}: {refused:?}"
        );
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{tree:?}");
        assert_eq!(fs::read_to_string(work.join("old")).unwrap(), "old", "{tree:?}");
        assert!(!work.with_file_name("work.restored").exists(), "{tree:?}");
    }
    // No program gets the rights of another user by a mode.
    let tree = FileTree { entries: vec![file("plain")], left_out: Vec::new() };
    let id = BlobId::of(tree.to_bytes());
    world.store.store_blob(&world.id, &id, &tree.to_bytes()).await.unwrap();
    let files = StoredFiles { tree: id, files: 1, bytes: 7, total_bytes: 7, left_out: 0 };
    assert!(world.restore(&work, &files).await.unwrap());
    assert_eq!(fs::metadata(work.join("plain")).unwrap().mode() & 0o7777, 0o777);
    let lost = StoredFiles { tree: BlobId::of("lost"), ..files };
    assert!(matches!(world.restore(&work, &lost).await, Err(RestoreError::Missing(_))));
}
