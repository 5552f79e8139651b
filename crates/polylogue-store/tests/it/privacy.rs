//! Other users of the machine can read nothing that a store makes.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use polylogue_core::Store as _;

use crate::support::{Kind, begin};

/// All that is in `dir`, itself included, with its mode.
fn modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mode = std::fs::metadata(dir).unwrap().permissions().mode() & 0o777;
    let mut found = vec![(dir.to_owned(), mode)];
    if dir.is_dir() {
        let entries = std::fs::read_dir(dir).unwrap();
        found.extend(entries.flat_map(|entry| modes(&entry.unwrap().path())));
    }
    found
}

#[tokio::test]
async fn files_of_a_store_are_private_to_their_owner() {
    for kind in [Kind::Jsonl, Kind::Sqlite] {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("new/inner");
        if let Kind::Sqlite = kind {
            // Its folder is made by the store as well.
            drop(polylogue_store::Sqlite::open(place.join("chats.db")).unwrap());
        }
        let store = kind.open(&place).unwrap();
        // While it is claimed, so that what lies next to it exists, too.
        let _claim = begin(&store, "a", 3).await;
        store.reserve_key("key", "request").await.unwrap();
        let found = modes(&dir.path().join("new"));
        assert!(found.len() > 3, "{kind:?}: {found:?}");
        let open: Vec<_> = found.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
        assert!(open.is_empty(), "{kind:?}: {open:?}");
    }
}
