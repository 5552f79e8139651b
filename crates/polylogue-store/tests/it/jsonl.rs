//! Logs as text files: what the files look like, and what is left of damaged ones.

use std::fs;
use std::path::{Path, PathBuf};

use polylogue_core::{AnyStore, Event, Meta, Store, StoreError};
use polylogue_store::Jsonl;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::support::{assert_events, begin, contents, event, events, id, list, seqs};

/// A folder with the log `a` of `to` events, and its file.
async fn folder(to: u64) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    begin(&Jsonl::open(dir.path()).unwrap(), "a", to).await;
    let file = dir.path().join("a.jsonl");
    (dir, file)
}

fn open(dir: &tempfile::TempDir) -> Jsonl {
    Jsonl::open(dir.path()).unwrap()
}

/// Changes the lines of a file.
fn edit(file: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines: Vec<String> = fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(file, lines.join("\n") + "\n").unwrap();
}

#[tokio::test]
async fn a_log_is_a_header_and_one_event_a_line() {
    let (dir, file) = folder(2).await;
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.split('\n').collect();
    assert!(
        lines[0].starts_with(r#"{"polylogue":3,"title":"a","created_ms":0,"has_team":false,"chain":""#),
        "{text}"
    );
    assert!(lines[1].starts_with(r#"{"team":null,"chain":""#), "{text}");
    assert_eq!(serde_json::from_str::<Event>(lines[2]).unwrap(), *event(0));
    let chain = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["chain"].as_str().unwrap().len()
    };
    assert_eq!([0, 1, 2, 3].map(|line| chain(lines[line])), [32; 4]);
    assert_eq!(lines[4..], [""]);
    let names: Vec<String> = contents(dir.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a.head", "a.jsonl"]);
}

#[tokio::test]
async fn a_log_of_another_version_or_with_a_damaged_first_line_is_not_listed_as_sound() {
    let (dir, file) = folder(2).await;
    let sound = list(&open(&dir)).await;
    let text = fs::read_to_string(&file).unwrap();
    for (of, changed) in [(r#"{"polylogue":3"#, r#"{"polylogue":2"#), (r#"{"pol"#, "#####")] {
        fs::write(&file, text.replacen(of, changed, 1)).unwrap();
        let listed = list(&open(&dir)).await;
        assert!(!sound[0].is_damaged && listed[0].is_damaged, "{changed}");
        assert_eq!((&listed[0].title, listed[0].created), (&sound[0].title, sound[0].created), "{changed}");
    }
}

/// Whether a log is being written that has no name yet.
#[cfg(unix)]
fn has_draft(dir: &Path) -> bool {
    contents(dir).iter().any(|(name, _)| name.starts_with(".a."))
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_that_another_process_creates_at_the_same_time_keeps_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    // As a process does that is about to name its log.
    let naming = fs::File::open(dir.path()).unwrap();
    naming.lock().unwrap();
    let creating = tokio::spawn(async move { store.create(&id("a"), &Meta::default()).await });
    while !has_draft(dir.path()) && !creating.is_finished() {
        tokio::task::yield_now().await;
    }
    for name in ["a.jsonl", "a.head", "a.inbox"] {
        fs::write(dir.path().join(name), "theirs").unwrap();
    }
    naming.unlock().unwrap();
    let refused = creating.await.unwrap();
    assert!(matches!(refused, Err(StoreError::Exists { .. })), "{refused:?}");
    let files: Vec<_> = contents(dir.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(files, ["a.head", "a.inbox", "a.jsonl"]);
}

#[tokio::test]
async fn a_claimed_log_names_its_writer() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let claim = begin(&store, "a", 1).await;
    let Err(StoreError::Busy { holder, .. }) = open(&dir).claim(&claim.id).await else { panic!("not busy") };
    assert!(holder.starts_with(&format!("process {}", std::process::id())), "{holder}");
    store.release(claim).await.unwrap();
    assert!(!fs::read_to_string(dir.path().join("a.head")).unwrap().contains("process"));
}

#[tokio::test]
async fn a_log_of_a_newer_version_is_left_alone() {
    let (dir, file) = folder(2).await;
    edit(&file, |lines| lines[0] = r#"{"polylogue":4,"named":"moved"}"#.into());
    let before = contents(dir.path());
    let place = file.display().to_string();
    let newer = StoreError::Newer { place, found: 4, known: 3 };
    let store = open(&dir);
    assert_eq!(store.read(&id("a"), 0).await, Err(newer.clone()));
    assert_eq!(store.read_intact(&id("a")).await, Err(newer.clone()));
    assert_eq!(store.meta(&id("a")).await, Err(newer.clone()));
    assert_eq!(store.claim(&id("a")).await, Err(newer));
    assert_eq!(list(&store).await[0].summary.events, 0);
    assert_eq!(contents(dir.path()), before);
}

#[tokio::test]
async fn a_log_of_an_earlier_version_is_refused_and_unchanged() {
    let (dir, file) = folder(2).await;
    edit(&file, |lines| lines[0] = lines[0].replacen(r#"{"polylogue":3"#, r#"{"polylogue":2"#, 1));
    let before = contents(dir.path());
    let older = StoreError::Older { place: file.display().to_string(), found: 2, known: 3 };
    let store = open(&dir);
    assert_eq!(store.read(&id("a"), 0).await, Err(older.clone()));
    assert_eq!(store.meta(&id("a")).await, Err(older.clone()));
    assert_eq!(store.claim(&id("a")).await, Err(older));
    assert_eq!(contents(dir.path()), before);
}

#[tokio::test]
async fn what_is_around_a_damaged_line_is_readable() {
    let (dir, file) = folder(9).await;
    edit(&file, |lines| lines[7].insert(8, '"'));
    let store = open(&dir);
    let damage = store.read(&id("a"), 0).await.unwrap_err();
    let StoreError::Damaged { why, intact: 5, .. } = &damage else { panic!("{damage:?}") };
    assert!(why.starts_with("line 8 is not an event: "), "{why}");
    assert!(!why.contains("line 1 "), "{why}");
    let intact = store.read_intact(&id("a")).await.unwrap();
    assert_eq!(intact.damage, Some(damage));
    assert_events(&intact.events[..5], 0, 5);
    assert_events(&intact.events[5..], 6, 9);
    assert!(store.read(&id("a"), 6).await.is_err(), "whatever is read, all of it has to hold");
}

#[tokio::test]
async fn a_missing_line_is_damage() {
    let (dir, file) = folder(9).await;
    edit(&file, |lines| drop(lines.remove(5)));
    let intact = open(&dir).read_intact(&id("a")).await.unwrap();
    assert_eq!(seqs(&intact.events), [0, 1, 2, 4, 5, 6, 7, 8]);
    let Some(StoreError::Damaged { why, intact: 3, .. }) = intact.damage else {
        panic!("{:?}", intact.damage)
    };
    assert_eq!(why, "event 3 is missing");
}

#[tokio::test]
async fn events_survive_a_damaged_header() {
    for header in ["", "{}", "\u{0}\u{0}", "{\"polylogue\":1,\"meta\":"] {
        let (dir, file) = folder(3).await;
        edit(&file, |lines| lines[0] = header.into());
        let store = open(&dir);
        let damage = store.read(&id("a"), 0).await.unwrap_err();
        assert!(matches!(damage, StoreError::Damaged { intact: 3, .. }), "{damage:?}");
        assert_eq!(store.claim(&id("a")).await, Err(damage.clone()));
        assert_eq!(store.meta(&id("a")).await, Err(damage.clone()));
        let intact = store.read_intact(&id("a")).await.unwrap();
        assert_eq!(intact.damage, Some(damage));
        assert_events(&intact.events, 0, 3);
        assert_eq!(list(&store).await[0].summary.events, 3);
    }
}

#[tokio::test]
async fn events_survive_a_missing_header() {
    let (dir, file) = folder(3).await;
    edit(&file, |lines| drop(lines.remove(0)));
    let intact = open(&dir).read_intact(&id("a")).await.unwrap();
    assert!(intact.damage.is_some());
    assert_events(&intact.events, 0, 3);
}

#[tokio::test]
async fn one_damaged_log_does_not_hide_others() {
    let (dir, file) = folder(3).await;
    begin(&open(&dir), "b", 2).await;
    edit(&file, |lines| lines[4] = "?".into());
    for name in ["no id.jsonl", "notes.txt", ".hidden.jsonl"] {
        fs::write(dir.path().join(name), "?").unwrap();
    }
    let list = list(&open(&dir)).await;
    let found: Vec<_> =
        list.iter().map(|log| (log.id.as_str(), log.title.as_str(), log.summary.events)).collect();
    assert_eq!(found, [("b", "b", 2), ("a", "a", 2)]);
    assert!(!list[0].is_damaged && list[1].is_damaged);
}

#[tokio::test]
async fn a_folder_that_is_a_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    let error = Jsonl::open(&file).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "text");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

const EVENTS: u64 = 8;

/// How many whole lines of events are in `bytes`; `None` if the header is not whole.
fn whole_events(bytes: &[u8]) -> Option<u64> {
    (bytes.iter().filter(|byte| **byte == b'\n').count() as u64).checked_sub(2)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_file_cut_at_any_byte_is_readable_up_to_there_and_continues(cut in 0.0..1.0) {
        runtime().block_on(async move {
            let (dir, file) = folder(EVENTS).await;
            let mut bytes = fs::read(&file).unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            bytes.truncate((bytes.len() as f64 * cut) as usize);
            fs::write(&file, &bytes).unwrap();
            let lost = whole_events(&bytes).is_none_or(|kept| kept < EVENTS);
            assert_eq!(open(&dir).read(&id("a"), 0).await.is_err(), lost, "its writer has said how many there are");
            fs::remove_file(dir.path().join("a.head")).unwrap();
            let store = AnyStore::new(open(&dir));
            let Some(kept) = whole_events(&bytes) else {
                let error = store.claim(&id("a")).await.unwrap_err();
                assert!(matches!(error, StoreError::Damaged { intact: 0, .. }), "{error:?}");
                return;
            };
            assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, kept);
            assert_eq!(fs::read(&file).unwrap(), bytes, "reading changes nothing");
            assert_eq!(list(&store).await[0].summary.events, kept);
            let claim = store.claim(&id("a")).await.unwrap();
            store.append(&claim, &events(kept, kept + 2)).await.unwrap();
            assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, kept + 2);
        });
    }

    #[test]
    fn a_file_with_any_byte_changed_keeps_what_is_before(at in 0.0..1.0, byte: u8) {
        runtime().block_on(async move {
            let (dir, file) = folder(EVENTS).await;
            let mut bytes = fs::read(&file).unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let at = (bytes.len() as f64 * at) as usize;
            let before = whole_events(&bytes[..at]).unwrap_or(0);
            bytes[at] = byte;
            fs::write(&file, &bytes).unwrap();
            let store = open(&dir);
            let intact = store.read_intact(&id("a")).await;
            if let Ok(intact) = &intact {
                let before = usize::try_from(before).unwrap();
                assert_events(&intact.events[..before], 0, before as u64);
            }
            match (store.read(&id("a"), 0).await, intact) {
                (Ok(events), Ok(intact)) => assert_eq!((events, None), (intact.events, intact.damage)),
                (Err(error), Ok(intact)) => assert_eq!(Some(error), intact.damage),
                (result, Err(error)) => assert_eq!(result, Err(error)),
            }
        });
    }
}
