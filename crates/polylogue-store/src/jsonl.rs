//! Logs as text files.

mod file;
mod folder;
mod note;
mod writer;

use std::path::Path;
use std::sync::Arc;

use polylogue_core::{Claim, Event, Intact, Listing, LogId, Meta, Store, StoreError};

use crate::batch::Batch;
use crate::claim_guard::ClaimGuard;
use crate::io_error;
use crate::private;
use crate::workers::Workers;
use folder::Folder;

/// A folder with one text file a log.
///
/// # Format
///
/// The log `monday` is the file `monday.jsonl`, in UTF-8, one JSON object a line. The first line says what the file
/// is and in which format, 3 being the only one that is read; the second is what it takes to run the log again; the others are
/// events in order, from 0 on:
///
/// ```text
/// {"polylogue":3,"title":"Plans","created_ms":1763712000000,"has_team":false,"chain":"6d1e..."}
/// {"team":null,"chain":"90a4..."}
/// {"seq":0,"time_ms":1763712000000,"type":"opened","participants":["a","b"],"task":"plan the week","messages":[],"chain":"c2f0..."}
/// {"seq":1,"time_ms":1763712000050,"type":"turn_started","turns":[{"who":"a"}],"chain":"17b3..."}
/// ```
///
/// Of a batch that a crash interrupts, the first events may be kept; like every beginning of a log, they are a
/// conversation that can go on. A last line without its newline was not acknowledged, unless `monday.head` says so: readers pass
/// over it, and the next writer cuts it off. A batch that fails with an error leaves nothing.
///
/// # What is noticed
///
/// `chain` is the link of the line: 32 hexadecimal digits of BLAKE3 over the link of the line before and the line's JSON without
/// it. So a line that is changed, lost or moved is noticed by whoever reads the log. `monday.head`, which is not synchronised,
/// says how many events were acknowledged and the link of the last: a log with fewer has lost some. Copied without it, a log
/// whose last lines are missing looks like one that is shorter. The links are no signature: who computes them anew can change
/// everything.
///
/// A file that is replaced, removed or changed under its writer is noticed by the next append, which fails with
/// [`StoreError::Replaced`].
///
/// # Writers
///
/// Whoever has claimed a log holds an exclusive lock of the operating system on its file, which ends with the process,
/// and names itself in `monday.head`, together with its lease. [`take_over`](Store::take_over) puts a copy in the place of the
/// file of a writer whose lease has run out: what that one still writes goes to a file that has no name any more. Programs other
/// than Polylogue should not write to the files.
///
/// Claiming looks at the beginning and the end, reading at all lines. A claimed log keeps two files open, of which the
/// system allows a process about a thousand by default.
///
/// Each append is written and synchronised on its own; with many conversations at once [`Sqlite`](crate::Sqlite) is
/// faster, because conversations share its commits.
#[derive(Debug)]
pub struct Jsonl {
    folder: Arc<Folder>,
    workers: Workers<()>,
}

impl Jsonl {
    /// The version of the format that is written, and the last that is read.
    pub const FORMAT: u64 = file::FORMAT;

    /// How many files are written or read at once. The disk is what they wait for.
    const THREADS: usize = 4;

    /// Opens the folder `dir`, and makes it if it is not there.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] or [`StoreError::Io`] when there is no such folder and it cannot be made.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        // Absolute, so that changing the working directory does not move the store.
        let dir =
            std::path::absolute(dir.as_ref()).map_err(|error| io_error::reading(dir.as_ref(), &error))?;
        if !dir.is_dir() {
            private::make_folder(&dir).map_err(|error| io_error::writing(&dir, &error))?;
        }
        Ok(Self { folder: Arc::new(Folder::new(dir)), workers: Workers::new(Self::THREADS) })
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Arc<Folder>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let folder = Arc::clone(&self.folder);
        self.workers.run(move |()| job(&folder)).await
    }
}

fn grant(folder: &Arc<Folder>, claim: Claim) -> ClaimGuard {
    let folder = Arc::clone(folder);
    ClaimGuard::new(claim, move |claim| folder.release(claim))
}

impl Store for Jsonl {
    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        let (id, meta) = (id.clone(), meta.clone());
        self.run(move |folder| folder.create(&id, &meta).map(|claim| grant(folder, claim)))
            .await
            .map(ClaimGuard::accept)
    }

    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.claim(&id).map(|claim| grant(folder, claim)))
            .await
            .map(ClaimGuard::accept)
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let batch = Batch::new(&claim.id, batch)?;
        let claim = claim.clone();
        self.run(move |folder| folder.append(&claim, &batch)).await
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        // At once: a log that is dropped asks only for the first time, and waits for nothing.
        self.folder.release(&claim);
        Ok(())
    }

    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.read(&id, from)).await
    }

    async fn read_intact(&self, id: &LogId) -> Result<Intact, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.read_intact(&id)).await
    }

    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.meta(&id)).await
    }

    /// All logs, newest first. A file whose first line is damaged is in the list, without a title.
    async fn list(&self) -> Result<Vec<Listing>, StoreError> {
        self.run(|folder| folder.list()).await
    }

    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.remove(&id)).await
    }

    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.run(move |folder| folder.renew(&claim)).await
    }

    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.take_over(&id).map(|claim| grant(folder, claim)))
            .await
            .map(ClaimGuard::accept)
    }

    async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.repair(&id)).await
    }
}
