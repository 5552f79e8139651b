//! What happens to a store when its process is killed, its disk is full or its folder cannot be written: other
//! processes, which are this very program, which read their task from variables.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use polylogue_core::{AnyStore, Event, Meta, Store, StoreError};
use polylogue_test::random::Random;
use polylogue_test::skip::can_enclose;

use crate::support::{Kind, assert_events, begin, event, events, id, list};

pub(crate) const BOTH: [Kind; 2] = [Kind::Jsonl, Kind::Sqlite];

/// What a child process must do, and where.
const TASK: &str = "POLYLOGUE_TEST_TASK";
const KIND: &str = "POLYLOGUE_TEST_KIND";
const PLACE: &str = "POLYLOGUE_TEST_PLACE";

/// This program as a child that does `task`, started by `wrapper`, a shell script that ends with `exec "$@"`.
pub(crate) fn child(wrapper: &str, task: &str, kind: Kind, place: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", wrapper, "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::child_process", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(TASK, task).env(KIND, format!("{kind:?}")).env(PLACE, place);
    // Resolving the names of a backtrace takes longer than what the child does.
    command.env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

#[test]
#[ignore = "is the other process: the tests next to it start it"]
fn child_process() {
    let get = |name| std::env::var(name).expect("is started by the other tests only");
    let (task, place) = (get(TASK), get(PLACE));
    let kind = if get(KIND) == "Jsonl" { Kind::Jsonl } else { Kind::Sqlite };
    let place = Path::new(&place);
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        match task.as_str() {
            "append" => append_forever(kind, place, Duration::ZERO).await,
            "stroll" => append_forever(kind, place, Duration::from_millis(50)).await,
            "begin" => begin_and_close(kind, place).await,
            "fill" => fill_up(kind, place).await,
            "grow" => grow_to_the_limit(kind, place).await,
            "prepare" => drop(begin(&kind.open(place).unwrap(), "a", 3).await),
            "look" => look_without_writing(kind, place).await,
            other => panic!("{other}"),
        }
    });
}

/// Says on which line a child's numbers stand.
const ACKNOWLEDGED: &str = "acknowledged ";

/// Appends to the log `a`, telling what was acknowledged, until it is killed.
async fn append_forever(kind: Kind, place: &Path, pause: Duration) {
    let store = kind.open(place).unwrap();
    let claim = match store.claim(&id("a")).await {
        Err(StoreError::NotFound { .. }) => store.create(&id("a"), &Meta::default()).await.unwrap(),
        claim => claim.unwrap(),
    };
    let mut next = store.read(&id("a"), 0).await.unwrap().len() as u64;
    println!("\n{ACKNOWLEDGED}{next}");
    loop {
        let to = next + 1 + next % 3;
        store.append(&claim, &events(next, to)).await.unwrap();
        next = to;
        println!("{ACKNOWLEDGED}{next}");
        std::thread::sleep(pause);
    }
}

/// A first conversation of five events, closed.
async fn begin_and_close(kind: Kind, place: &Path) {
    let store = kind.open(place).unwrap();
    let claim = begin(&store, "a", 3).await;
    println!("\n{ACKNOWLEDGED}3");
    store.append(&claim, &events(3, 5)).await.unwrap();
    println!("{ACKNOWLEDGED}5");
    store.release(claim).await.unwrap();
}

/// The last number that a child printed.
pub(crate) fn acknowledged(output: &[u8]) -> u64 {
    last_number(&mut output.lines(), usize::MAX).unwrap_or_default()
}

/// The last number that a child printed, reading to the end or to the `most`-th number.
pub(crate) fn last_number(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    most: usize,
) -> Option<u64> {
    lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix(ACKNOWLEDGED)?.parse().ok())
        .take(most)
        .last()
}

pub(crate) fn seed() -> u64 {
    let seed = std::env::var("POLYLOGUE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("POLYLOGUE_TEST_SEED={seed}");
    seed
}

async fn killed(kind: Kind) {
    const ROUNDS: usize = 15;
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(seed());
    for round in 0..ROUNDS {
        let mut child = child("exec \"$@\"", "append", kind, dir.path()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let some = last_number(&mut lines, 2 + usize::try_from(random.below(40)).unwrap());
        std::thread::sleep(Duration::from_micros(random.below(3000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged = last_number(&mut lines, usize::MAX).or(some).expect("the child printed a number");
        // The dead process's claim blocks no other, and a live one's is refused at once.
        let store = kind.open(dir.path()).unwrap();
        let claim = store.claim(&id("a")).await.unwrap();
        let kept = store.read(&id("a"), 0).await.unwrap();
        let count = kept.len() as u64;
        assert!(count >= acknowledged, "round {round}: {count} kept, {acknowledged} acknowledged");
        assert_events(&kept, 0, count);
        store.append(&claim, &[event(count)]).await.unwrap();
    }
}

#[tokio::test]
async fn jsonl_loses_nothing_when_its_process_is_killed() {
    killed(Kind::Jsonl).await;
}

#[tokio::test]
async fn sqlite_loses_nothing_when_its_process_is_killed() {
    killed(Kind::Sqlite).await;
}

/// A child that writes, as `task` says, once it does.
pub(crate) fn writing(task: &str, kind: Kind, place: &Path) -> Child {
    let mut child = child("exec \"$@\"", task, kind, place).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    last_number(&mut lines, 2).expect("the child writes");
    // It continues to write: its lines are read so that it does not block.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    child
}

#[tokio::test]
async fn a_log_is_busy_while_another_process_writes_it() {
    for kind in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut child = writing("append", kind, dir.path());
        let store = kind.open(dir.path()).unwrap();
        let busy = store.claim(&id("a")).await.unwrap_err();
        let StoreError::Busy { holder, .. } = &busy else { panic!("{busy:?}") };
        assert!(holder.starts_with(&format!("process {}", child.id())), "{holder}");
        assert!(matches!(store.remove(&id("a")).await, Err(StoreError::Busy { .. })));
        // Others can read meanwhile, and write other logs.
        assert!(!store.read(&id("a"), 0).await.unwrap().is_empty());
        begin(&store, "b", 3).await;
        child.kill().unwrap();
        child.wait().unwrap();
        store.claim(&id("a")).await.unwrap();
    }
}

/// A script that runs the child in its own file system with `size` bytes, mounted at `$PLACE`.
fn small_disk(size: &str, before: &str) -> String {
    let mount = format!("mount -t tmpfs -o size={size} none \"${PLACE}\"");
    format!("exec unshare -rm sh -c '{mount} && {before} exec \"$@\"' sh \"$@\"")
}

/// Whether this machine allows [`small_disk`].
fn can_mount(place: &Path) -> bool {
    let mut command = child(&small_disk("1m", "exit 0;"), "none", Kind::Jsonl, place);
    let allowed = command.output().is_ok_and(|output| output.status.success());
    // The sandbox mounts file systems, too.
    can_enclose((!allowed).then_some("file systems cannot be mounted here"))
}

fn assert_succeeds(mut command: Command, what: &str) {
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{what}: {}\n{}", output.status, String::from_utf8_lossy(&said));
}

/// Appends until the disk is full, and looks at what is left.
async fn fill_up(kind: Kind, place: &Path) {
    let ballast = place.join("ballast");
    std::fs::write(&ballast, vec![1; 600_000]).unwrap();
    let store = kind.open(place).unwrap();
    let claim = begin(&store, "a", 1).await;
    let (mut next, full) = fill(&store, &claim).await;
    assert!(matches!(full, StoreError::Full { .. }), "{full:?}");
    assert!(next > 20, "{next}");
    // What was acknowledged is there, nothing else is, and a second try changes nothing.
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, next);
    assert!(store.append(&claim, &events(next, next + 300)).await.is_err());
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, next);
    // Without a byte left, it says so without an event.
    let rest = place.join("rest");
    let stuffed = std::fs::File::create(&rest).and_then(|mut file| {
        loop {
            std::io::Write::write_all(&mut file, &[1; 512])?;
        }
    });
    assert_eq!(stuffed.map(|()| 0).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    let mut checked = Ok(());
    // What the journal has space for can still be written.
    for _ in 0..300 {
        checked = checked.and(store.check_writable().await);
    }
    assert!(matches!(checked, Err(StoreError::Full { .. })), "{checked:?}");
    std::fs::remove_file(rest).unwrap();
    // With free space it continues, in the same process and in another one. (SQLite needs as much as its journal takes.)
    std::fs::remove_file(ballast).unwrap();
    store.append(&claim, &[event(next)]).await.unwrap();
    next += 1;
    drop(store);
    let store = kind.open(place).unwrap();
    let claim = store.claim(&id("a")).await.unwrap();
    store.append(&claim, &[event(next)]).await.unwrap();
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, next + 1);
}

/// Appends until that fails. Says how many events were acknowledged, and why it failed.
async fn fill(store: &AnyStore, claim: &polylogue_core::Claim) -> (u64, StoreError) {
    let mut next = store.read(&claim.id, 0).await.unwrap().len() as u64;
    loop {
        match store.append(claim, &events(next, next + 3)).await {
            Ok(()) => next += 3,
            Err(error) => return (next, error),
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_loses_no_acknowledged_event() {
    let dir = tempfile::tempdir().unwrap();
    if !can_mount(dir.path()) {
        return;
    }
    for kind in BOTH {
        for size in ["1000k", "1112k", "1233k"] {
            assert_succeeds(
                child(&small_disk(size, ""), "fill", kind, dir.path()),
                &format!("{kind:?} {size}"),
            );
        }
    }
}

/// Appends until a file may not become longer, where that is an error.
async fn grow_to_the_limit(kind: Kind, place: &Path) {
    let store = kind.open(place).unwrap();
    let claim = begin(&store, "a", 1).await;
    let (next, error) = fill(&store, &claim).await;
    assert!(matches!(error, StoreError::Full { .. } | StoreError::Io { .. }), "{error:?}");
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, next);
    println!("\n{ACKNOWLEDGED}{next}");
}

#[tokio::test]
async fn a_limit_on_the_length_of_files_costs_nothing_that_was_kept() {
    for kind in BOTH {
        let dir = tempfile::tempdir().unwrap();
        // In blocks of 512 bytes or more. The signal that comes with the error is ignored, as servers do.
        let output =
            child("trap '' XFSZ; ulimit -f 800; exec \"$@\"", "grow", kind, dir.path()).output().unwrap();
        assert!(output.status.success(), "{kind:?}: {}", String::from_utf8_lossy(&output.stdout));
        let next = last_number(&mut output.stdout.lines(), usize::MAX).unwrap();
        let kept = kind.open(dir.path()).unwrap().read(&id("a"), 0).await.unwrap();
        assert_events(&kept, 0, next);
    }
}

#[tokio::test]
async fn a_process_that_dies_of_the_limit_loses_nothing() {
    for kind in BOTH {
        let dir = tempfile::tempdir().unwrap();
        // Here the signal is not ignored: it kills.
        let output = child("ulimit -f 800; exec \"$@\"", "append", kind, dir.path()).output().unwrap();
        assert!(!output.status.success());
        let next = last_number(&mut output.stdout.lines(), usize::MAX).unwrap();
        let store = kind.open(dir.path()).unwrap();
        let kept: Vec<Event> = store.read(&id("a"), 0).await.unwrap();
        assert!(kept.len() as u64 >= next && next > 20, "{} kept, {next} acknowledged", kept.len());
        assert_events(&kept, 0, kept.len() as u64);
        let claim = store.claim(&id("a")).await.unwrap();
        store.append(&claim, &[event(kept.len() as u64)]).await.unwrap();
    }
}

/// Looks at a store that cannot be written.
async fn look_without_writing(kind: Kind, place: &Path) {
    let store = kind.open(place).unwrap();
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, 3);
    assert_eq!(list(&store).await.len(), 1);
    for refused in [store.claim(&id("a")).await, store.create(&id("b"), &Meta::default()).await] {
        assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
    }
    let removed = store.remove(&id("a")).await;
    assert!(matches!(removed, Err(StoreError::ReadOnly { .. })), "{removed:?}");
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, 3);
    // Nothing can be made there either.
    let made = kind.open(&place.join("new")).map(drop);
    assert!(matches!(made, Err(StoreError::ReadOnly { .. })), "{made:?}");
}

#[test]
fn a_store_that_cannot_be_written_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    if !can_mount(dir.path()) {
        return;
    }
    for kind in BOTH {
        let prepare = format!("env {TASK}=prepare \"$@\" && mount -o remount,ro \"${PLACE}\" &&");
        assert_succeeds(child(&small_disk("5m", &prepare), "look", kind, dir.path()), &format!("{kind:?}"));
    }
}
