//! Tests of commits, which need a hand on the writer.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use futures_util::future::{join, join_all};
use polylogue_core::{Body, Due, Event, Message, Name, Path, Queue, Timestamp};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::*;

fn store() -> (tempfile::TempDir, Sqlite) {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(dir.path().join("chats.db")).unwrap();
    (dir, store)
}

fn said(seq: u64, bytes: usize) -> Arc<Event> {
    let body = Body::Message(Message::new(Name::user(), "x".repeat(bytes)));
    Arc::new(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body })
}

async fn begin(store: &Sqlite, name: &str) -> Claim {
    store.create(&LogId::new(name).unwrap(), &Meta::default()).await.unwrap()
}

async fn limit_pages(store: &Sqlite, pages: u32) {
    let sql = format!("PRAGMA max_page_count = {pages}");
    let limited = store
        .writer
        .as_ref()
        .unwrap()
        .run(move |transaction| Ok(transaction.connection().execute_batch(&sql)?));
    limited.await.unwrap();
}

/// Keeps the writer busy until `meanwhile` has asked for everything, and waits for all of it.
async fn at_once<T>(store: &Sqlite, meanwhile: impl Future<Output = T>) -> T {
    let (open, gate) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel::<()>();
    let (gate, begin) = (Mutex::new(gate), Mutex::new(Some(begin)));
    let waiting = store.writer.as_ref().unwrap().run(move |_| {
        if let Some(begin) = begin.lock().unwrap().take() {
            begin.send(()).unwrap();
        }
        let _ = gate.lock().unwrap().recv();
        Ok(())
    });
    let asking = async {
        // What is asked for earlier could share the commit of what it is to wait for.
        begun.await.unwrap();
        // Each is polled once, in this order, before any of them continues.
        join(meanwhile, async move { open.send(()).unwrap() }).await.0
    };
    let (waited, done) = join(waiting, asking).await;
    waited.unwrap();
    done
}

#[tokio::test]
async fn waiting_appends_share_a_commit() {
    let (_dir, store) = store();
    let place = store.place.clone();
    let (writer, tasks) = (store.writer.as_ref().unwrap(), 10);
    let insert_and_look = |nth| {
        let place = place.clone();
        writer.run(move |transaction| {
            transaction.create(&LogId::new(&format!("log-{nth}"))?, &Meta::default())?;
            let outside = Connection::open(&*place)?;
            Ok(outside.query_row("SELECT count(*) FROM logs", [], |row| row.get::<_, i64>(0))?)
        })
    };
    let seen = at_once(&store, join_all((0..tasks).map(insert_and_look))).await;
    // No reader saw any of them before all were written.
    assert_eq!(seen, vec![Ok(0); tasks]);
    assert_eq!(store.list(&ListQuery::default()).await.unwrap().logs.len(), tasks);
}

#[tokio::test]
async fn an_append_that_does_not_fit_fails_alone() {
    let (_dir, store) = store();
    let claims = [begin(&store, "a").await, begin(&store, "b").await, begin(&store, "c").await];
    limit_pages(&store, 30).await;
    let (small, big) = ([said(0, 100)], [said(0, 100), said(1, 1 << 20)]);
    let appends = [&small[..], &big[..], &small[..]].into_iter().zip(&claims);
    let results = at_once(&store, join_all(appends.map(|(batch, claim)| store.append(claim, batch)))).await;
    let full = StoreError::Full { place: store.place.display().to_string() };
    assert_eq!(results, [Ok(()), Err(full), Ok(())]);
    let kept = async |claim: &Claim| store.read(&claim.id, 0).await.unwrap().len();
    assert_eq!([kept(&claims[0]).await, kept(&claims[1]).await, kept(&claims[2]).await], [1, 0, 1]);
    // With space it continues where it was.
    limit_pages(&store, 10_000).await;
    store.append(&claims[1], &big).await.unwrap();
    assert_eq!(kept(&claims[1]).await, 2);
}

#[tokio::test]
async fn a_claim_whose_release_cannot_be_written_is_released_later() {
    let (dir, store) = store();
    let claims = [begin(&store, "a").await, begin(&store, "b").await];
    let away = dir.path().join("away.db");
    std::fs::rename(&*store.place, &away).unwrap();
    let [released, rested] = claims.clone();
    let released = store.release(released).await;
    let rested = Queue::release_at_rest(&store, rested, Due::Now).await;
    for failed in [released, rested] {
        assert!(matches!(failed, Err(StoreError::Replaced { .. })), "{failed:?}");
    }
    std::fs::rename(&away, &*store.place).unwrap();
    for Claim { id, .. } in &claims {
        let again = store.claim(id).await.unwrap();
        store.append(&again, &[said(0, 1)]).await.unwrap();
    }
}

#[tokio::test]
async fn a_claim_is_void_when_its_process_lock_is_gone() {
    let (dir, first) = store();
    let claim = begin(&first, "a").await;
    // As when a person removes the folder, or the file system loses its locks.
    std::fs::remove_dir_all(dir.path().join("chats.db.writers")).unwrap();
    let second = Sqlite::open(&*first.place).unwrap();
    let taken = second.claim(&claim.id).await.unwrap();
    let fenced = Err(StoreError::Fenced { id: claim.id.clone() });
    assert_eq!(first.append(&claim, &[said(0, 1)]).await, fenced);
    second.append(&taken, &[said(0, 1)]).await.unwrap();
    assert_eq!(first.append(&claim, &[said(1, 1)]).await, fenced);
}

#[cfg(unix)]
#[tokio::test]
async fn a_database_behind_a_link_has_one_writer_for_each_log() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("disk")).unwrap();
    let (file, link) = (dir.path().join("disk/real.db"), dir.path().join("chats.db"));
    // The database is made where the link leads, and the link stays.
    std::os::unix::fs::symlink("disk/real.db", &link).unwrap();
    let first = Sqlite::open(&link).unwrap();
    assert!(link.is_symlink() && std::fs::metadata(&file).unwrap().len() > 0);
    let claim = begin(&first, "a").await;
    for path in [&file, &link] {
        let taken = Sqlite::open(path).unwrap().claim(&claim.id).await;
        assert!(matches!(taken, Err(StoreError::Busy { .. })), "{}: {taken:?}", path.display());
    }
    first.append(&claim, &[said(0, 1)]).await.unwrap();
}

/// The pages of the database file, without those that are only in the write-ahead log.
fn copied_pages(store: &Sqlite) -> u64 {
    std::fs::metadata(&*store.place).unwrap().len() / 4096
}

#[tokio::test]
async fn what_was_committed_is_copied_from_the_journal_while_no_append_waits() {
    let (_dir, store) = store();
    let claim = begin(&store, "a").await;
    let before = copied_pages(&store);
    // More than are due, and far from so many that writing waits.
    store.append(&claim, &[said(0, 6 << 20)]).await.unwrap();
    while copied_pages(&store) < before + 1_500 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_journal_stays_bounded_when_commits_come_faster_than_its_thread() {
    let (dir, store) = store();
    let claim = begin(&store, "a").await;
    let late = 64 << 20;
    for seq in 0..20 {
        store.append(&claim, &[said(seq, 8 << 20)]).await.unwrap();
    }
    let journal = connect::journal_bytes(&store.place);
    assert!(journal < 2 * late, "{journal} bytes");
    drop(store);
    assert!(!dir.path().join("chats.db-wal").exists(), "the last connection removes it");
}

/// Statements without comments, default values and the way they are laid out.
fn bare<'s>(lines: impl Iterator<Item = &'s str>) -> String {
    let code = lines.map(|line| line.split("--").next().unwrap_or_default());
    let text = code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    text.replace(" DEFAULT 0", "").replace(" DEFAULT ''", "")
}

#[test]
fn the_documentation_shows_the_tables_and_the_format() {
    let doc = || include_str!("../sqlite.rs").lines().filter_map(|line| line.strip_prefix("/// "));
    let shown =
        doc().skip_while(|line| !line.starts_with("CREATE")).take_while(|line| !line.starts_with("```"));
    let created = schema::CREATE.lines().filter(|line| !line.starts_with("PRAGMA"));
    assert_eq!(bare(shown), bare(created));
    let format = format!("`user_version`, {}", schema::FORMAT);
    assert!(doc().any(|line| line.ends_with(&format)), "{format}");
    assert!(schema::CREATE.contains(&format!("user_version = {};", schema::FORMAT)));
}
