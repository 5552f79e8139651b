//! Checkpoints: what is in the write-ahead log is copied to the database. They happen outside of commits, because one takes ten times
//! as long as a commit: SQLite's automatic ones made every fortieth answer of a busy server wait for one.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::connect;
use super::process_lock::Place;

/// The pages in the write-ahead log from which on they are copied by a thread of their own: those of SQLite's automatic checkpoints.
const DUE: c_int = 1000;
/// The pages from which on writing waits for a checkpoint: with pages of 4 KiB, the log has 64 MiB. It gets there only if commits follow
/// each other so fast that the thread never comes to the end of the log, or if the thread cannot open the database.
const LATE: c_int = 16 * DUE;

/// The checkpoints of a database, for the thread that writes to it.
pub(super) struct Checkpoints {
    place: Place,
    /// The pages in the write-ahead log after the last commit.
    pages: Arc<AtomicI32>,
    thread: Option<CheckpointThread>,
}

impl Checkpoints {
    /// Replaces the automatic checkpoints of `connection`.
    pub(super) fn replace_automatic(connection: &mut Connection, place: Place) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicI32::new(0));
        let counted = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut Wal, pages: c_int| {
            counted.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { place, pages, thread: None })
    }

    /// Begins a checkpoint if one is due. To be called when those who waited for the commit have their answers.
    pub(super) fn committed(&mut self, connection: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages >= LATE {
            checkpoint(connection);
        } else if pages >= DUE {
            self.thread.get_or_insert_with(|| CheckpointThread::start(self.place.clone())).wake();
        }
    }
}

/// The thread, which ends when this is dropped.
struct CheckpointThread {
    wakes: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CheckpointThread {
    fn start(place: Place) -> Self {
        let (wakes, woken) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("polylogue-checkpoint".into())
            .spawn(move || copy_when_woken(&place, &woken));
        // Without it, the log grows until writing waits for checkpoints.
        Self { wakes: Some(wakes), thread: thread.ok() }
    }

    fn wake(&self) {
        if let Some(wakes) = &self.wakes {
            // Fails if it will look again anyway, or could not open the database.
            let _ = wakes.try_send(());
        }
    }
}

impl Drop for CheckpointThread {
    /// Waits for a checkpoint in progress, so that the connection of the writer is the last one, which removes the log.
    fn drop(&mut self) {
        self.wakes = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn copy_when_woken(place: &Place, woken: &Receiver<()>) {
    let Ok(connection) = connect::to_write(place) else { return };
    while woken.recv().is_ok() {
        checkpoint(&connection);
    }
}

/// Copies as far as no reader needs the older pages. What fails is tried again after one of the next commits, as SQLite does: everything
/// is in the log.
fn checkpoint(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
}
