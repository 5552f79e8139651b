//! W21: the disk of the database is full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use polylogue_core::{Meta, Store, StoreError};
use polylogue_test::postgres::PostgresServer;
use polylogue_test::skip::skipped;

use crate::support::{assert_events, id, open, said, some};

/// A file system of a few megabytes, in memory; gone when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where this process may not mount one, which is reported.
    fn mount(server: &PostgresServer) -> Option<Self> {
        let folder = server.data().with_file_name("small");
        fs::create_dir(&folder).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&folder).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            skipped("a small file system takes root");
            return None;
        }
        let owner = fs::metadata(server.data()).unwrap();
        let owner = |of: fn(&fs::Metadata) -> u32| Some(of(&owner));
        use std::os::unix::fs::MetadataExt;
        std::os::unix::fs::chown(&folder, owner(MetadataExt::uid), owner(MetadataExt::gid)).unwrap();
        Some(Self(folder))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Files of the server are open in it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_an_error_of_its_own_until_there_is_room() {
    let Some(server) = PostgresServer::start() else { return };
    let Some(disk) = SmallDisk::mount(&server) else { return };
    let store = open(&server);
    let claim = store.create(&id("a"), &Meta::default()).await.unwrap();
    // Events are on the small disk; the log of the server is not, since it stops when that is full.
    let _ = server.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.path().display()));
    let _ = server.sql("ALTER TABLE polylogue.events SET TABLESPACE small");
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![0; 2 << 20]).unwrap();
    // It cannot be compressed, as a row of one letter would be.
    let text: String =
        (0..40_000_u64).map(|n| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let mut next = 0;
    let refused = loop {
        match store.append(&claim, &[said(next, &text)]).await {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
        assert!(next < 20, "the disk does not become full");
    };
    assert!(matches!(&refused, StoreError::Full { place } if place.contains("postgres://")), "{refused:?}");
    assert!(refused.hint().is_some(), "{refused:?}");
    // What is there can be read, and other writes that need no room succeed.
    assert_eq!(store.read(&claim.id, 0).await.unwrap().len() as u64, next);
    store.renew(&claim).await.unwrap();
    fs::remove_file(&ballast).unwrap();
    store.append(&claim, &[said(next, &text)]).await.unwrap();
    assert_eq!(store.read(&claim.id, 0).await.unwrap().len() as u64, next + 1);
    let other = store.create(&id("b"), &Meta::default()).await.unwrap();
    store.append(&other, &some(0, 3)).await.unwrap();
    assert_events(&store.read(&other.id, 0).await.unwrap(), 3);
}
