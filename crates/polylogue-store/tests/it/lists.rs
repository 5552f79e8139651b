//! Lists come from summaries: no log is read for them, unless its summary is not that of its end.

use std::fs;
use std::path::Path;

use futures_util::future::join_all;
use polylogue_core::{ListQuery, Listing, Page, Store};
use rusqlite::Connection;

use crate::processes::BOTH;
use crate::support::{Kind, begin, contents, list};

const LOGS: usize = 300;

/// A closed store with many logs, and its list.
async fn stored(kind: Kind) -> (tempfile::TempDir, Vec<Listing>) {
    let dir = tempfile::tempdir().unwrap();
    let store = kind.open(dir.path()).unwrap();
    let names: Vec<String> = (0..LOGS).map(|nth| format!("log-{nth:03}")).collect();
    for claim in join_all(names.iter().map(|name| begin(&store, name, 3))).await {
        store.release(claim).await.unwrap();
    }
    let listed = list(&store).await;
    assert!(listed.len() == LOGS && listed.iter().all(|log| log.summary.turns == 3 && !log.is_damaged));
    drop(store);
    (dir, listed)
}

fn edit(dir: &Path, sql: &str) {
    Connection::open(dir.join("chats.db")).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_page_reads_no_log_nor_its_end() {
    for kind in BOTH {
        let (dir, listed) = stored(kind).await;
        match kind {
            Kind::Sqlite => edit(dir.path(), "ALTER TABLE events RENAME TO hidden"),
            Kind::Jsonl => {
                for (name, bytes) in contents(dir.path()) {
                    if name.ends_with(".jsonl") {
                        // The version, with which every file begins, is read.
                        let version = r#"{"polylogue":3,"#.as_bytes();
                        assert!(bytes.starts_with(version));
                        let rest = vec![b'?'; bytes.len() - version.len()];
                        fs::write(dir.path().join(name), [version, &rest].concat()).unwrap();
                    }
                }
            }
        }
        let store = kind.open(dir.path()).unwrap();
        let query = ListQuery { limit: Some(50), ..ListQuery::default() };
        let Page { logs, next } = store.list(&query).await.unwrap();
        assert_eq!((logs.as_slice(), next.is_some()), (&listed[..50], true), "{kind:?}");
        assert_eq!(list(&store).await, listed, "{kind:?}");
    }
}

#[tokio::test]
async fn a_summary_that_is_lost_or_changed_is_made_again_from_the_log() {
    for kind in BOTH {
        let (dir, listed) = stored(kind).await;
        match kind {
            Kind::Sqlite => edit(
                dir.path(),
                r#"UPDATE heads SET summary = replace(summary, '"turns":3', '"turns":9');
                   UPDATE heads SET summary = '' WHERE log > 150"#,
            ),
            Kind::Jsonl => {
                for (name, bytes) in contents(dir.path()) {
                    if name.ends_with("1.head") {
                        fs::remove_file(dir.path().join(name)).unwrap();
                    } else if name.ends_with(".head") {
                        let text = String::from_utf8(bytes).unwrap();
                        fs::write(dir.path().join(name), text.replace("\"turns\":3", "\"turns\":9")).unwrap();
                    }
                }
            }
        }
        let store = kind.open(dir.path()).unwrap();
        assert_eq!(list(&store).await, listed, "{kind:?}");
        // The next append continues from what is made again.
        let claim = store.claim(&listed[0].id).await.unwrap();
        store.append(&claim, &crate::support::events(3, 4)).await.unwrap();
        assert_eq!(list(&store).await[0].summary.turns, 4, "{kind:?}");
    }
}
