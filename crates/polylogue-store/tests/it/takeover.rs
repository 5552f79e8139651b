//! A writer that is stopped: its log is taken over when its lease has run out, and what it still writes is refused.

use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use polylogue_core::{Claim, Store, StoreError};

use crate::processes::{BOTH, writing};
use crate::support::{Kind, assert_events, begin, event, id};

/// Where a writer's lease is written down.
fn notes(kind: Kind, dir: &Path) -> Vec<PathBuf> {
    match kind {
        Kind::Jsonl => vec![dir.join("a.head")],
        Kind::Sqlite => {
            let locks = fs::read_dir(dir.join("chats.db.writers")).unwrap();
            locks.map(|entry| entry.unwrap().path()).collect()
        }
    }
}

/// Puts the lease of the log `a` into the past, as if it had not been renewed for long.
fn expire(kind: Kind, dir: &Path) {
    for note in notes(kind, dir) {
        let text = fs::read(&note).unwrap();
        let line = text.chunks(192).position(|line| line.starts_with(b"a "));
        let Some(start) = line.map(|line| line * 192) else { continue };
        let line = String::from_utf8(text[start..start + 192].to_vec()).unwrap();
        let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
        words[4] = "1";
        let said =
            format!("{:<64} {:>20} {:>20} {} {:>20} ", words[0], words[1], words[2], words[3], words[4]);
        let check = blake3::hash(said.as_bytes()).to_hex();
        let mut bytes = format!("{said}{}", &check[..16]).into_bytes();
        bytes.resize(191, b' ');
        let mut whole = fs::read(&note).unwrap();
        whole[start..start + 191].copy_from_slice(&bytes);
        // Written in place: it is the file that the writer has open.
        let mut file = fs::File::options().write(true).open(&note).unwrap();
        std::io::Write::write_all(&mut file, &whole).unwrap();
    }
}

fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[tokio::test]
async fn a_stopped_process_is_taken_over_after_its_lease_and_loses_nothing_and_adds_nothing() {
    for kind in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut child = writing("stroll", kind, dir.path());
        let mut taken: Option<(_, Claim, u64)> = None;
        // It may be stopped in the middle of a commit, which keeps all others out: then it is stopped again a moment later.
        for _ in 0..50 {
            signal(&child, "-STOP");
            let store = kind.open(dir.path()).unwrap();
            let early = store.take_over(&id("a")).await;
            if let Err(StoreError::Io { .. }) = early {
                signal(&child, "-CONT");
                continue;
            }
            let Err(StoreError::Busy { holder, .. }) = early else { panic!("{kind:?}: {early:?}") };
            assert!(holder.contains("whose lease expires in"), "{holder}");
            expire(kind, dir.path());
            let busy = store.claim(&id("a")).await.unwrap_err();
            assert!(busy.to_string().ends_with("whose lease has expired"), "{busy}");
            match store.take_over(&id("a")).await {
                Ok(claim) => {
                    let kept = store.read(&id("a"), 0).await.unwrap().len() as u64;
                    taken = Some((store, claim, kept));
                    break;
                }
                Err(StoreError::Io { .. }) => signal(&child, "-CONT"),
                Err(error) => panic!("{kind:?}: {error:?}"),
            }
        }
        let (store, claim, kept) = taken.expect("it was taken over");
        // The old writer continues: its next append is refused, on which it panics, and nothing of it is stored.
        signal(&child, "-CONT");
        assert!(!child.wait().unwrap().success(), "{kind:?}: the fenced writer does not notice");
        assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, kept);
        store.append(&claim, &[event(kept)]).await.unwrap();
        store.release(claim).await.unwrap();
        drop(store);
        assert_events(&kind.open(dir.path()).unwrap().read(&id("a"), 0).await.unwrap(), 0, kept + 1);
    }
}

#[tokio::test]
async fn a_lease_is_renewed_by_appending_and_by_renewing() {
    for kind in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let store = kind.open(dir.path()).unwrap();
        let claim = begin(&store, "a", 1).await;
        let other = kind.open(dir.path()).unwrap();
        expire(kind, dir.path());
        store.append(&claim, &[event(1)]).await.unwrap();
        assert!(matches!(other.take_over(&id("a")).await, Err(StoreError::Busy { .. })), "{kind:?}");
        expire(kind, dir.path());
        store.renew(&claim).await.unwrap();
        assert!(matches!(other.take_over(&id("a")).await, Err(StoreError::Busy { .. })), "{kind:?}");
        expire(kind, dir.path());
        let taken = other.take_over(&id("a")).await.unwrap();
        let fenced = Err(StoreError::Fenced { id: id("a") });
        let late = store.append(&claim, &[event(2)]).await;
        assert!(late == fenced || matches!(late, Err(StoreError::Replaced { .. })), "{kind:?}: {late:?}");
        assert!(store.renew(&claim).await.is_err(), "{kind:?}");
        // The end of the old writer takes nothing from the new one.
        let _ = store.release(claim).await;
        drop(store);
        other.append(&taken, &[event(2)]).await.unwrap();
        assert_events(&other.read(&id("a"), 0).await.unwrap(), 0, 3);
        assert!(matches!(kind.open(dir.path()).unwrap().claim(&id("a")).await, Err(StoreError::Busy { .. })));
    }
}

#[tokio::test]
async fn a_process_that_is_gone_is_taken_over_at_once() {
    for kind in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut child = writing("stroll", kind, dir.path());
        child.kill().unwrap();
        child.wait().unwrap();
        kind.open(dir.path()).unwrap().take_over(&id("a")).await.unwrap();
    }
}

/// The test above reads what writers write; if that changes, it says so.
#[tokio::test]
async fn the_lease_of_a_log_is_found_by_its_id() {
    for kind in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let store = kind.open(dir.path()).unwrap();
        let _claim = begin(&store, "a", 1).await;
        let found = notes(kind, dir.path()).into_iter().filter(|note| {
            fs::read(note).unwrap().lines().map_while(Result::ok).any(|line| line.starts_with("a "))
        });
        assert_eq!(found.count(), 1, "{kind:?}");
    }
}
