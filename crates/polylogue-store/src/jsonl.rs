//! Logs as text files.

mod blobs;
mod file;
mod folder;
mod inbox;
mod keys;
mod note;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use polylogue_core::{
    AnyStore, BlobId, Claim, Event, InboxMessage, ListQuery, LogId, Meta, Page, RecoveredEvents, Store,
    StoreError,
};

use crate::batch::Batch;
use crate::claims::ClaimGuard;
use crate::io_error;
use crate::workers::Workers;
use folder::Folder;

/// A folder with one text file per log.
///
/// # Format
///
/// The log `monday` is the file `monday.jsonl`, in UTF-8, one JSON object per line. The first line has the type and
/// format of the file, 3 being the only supported one; the second has what is needed to run the log again; the others
/// are the events in order, from 0 on:
///
/// ```text
/// {"polylogue":3,"title":"Plans","created_ms":1763712000000,"has_team":false,"chain":"6d1e..."}
/// {"team":null,"chain":"90a4..."}
/// {"seq":0,"time_ms":1763712000000,"type":"opened","participants":["a","b"],"task":"plan the week","messages":[],"chain":"c2f0..."}
/// {"seq":1,"time_ms":1763712000050,"type":"turn_started","turns":[{"who":"a"}],"chain":"17b3..."}
/// ```
///
/// After a crash, the first events of a batch may be stored; like every prefix of a log, they are a conversation that
/// can continue. A last line without its newline was not acknowledged, unless `monday.head` says so: readers skip it,
/// and the next writer removes it. A batch that fails with an error leaves nothing.
///
/// # Detected damage
///
/// `monday.head` also has what lists show, with the length of the log's file: a list reads only the logs whose files have
/// another length.
///
/// `chain` is the link of the line: 32 hexadecimal digits of BLAKE3 over the link of the line before and the line's
/// JSON without it. So every reader detects a line that was changed, lost or moved. `monday.head`, which is not
/// synced, has the number of acknowledged events and the link of the last: a log with fewer has lost some. If a log
/// is copied without it, missing last lines cannot be detected. The links are not a signature: someone who recomputes
/// them can change everything.
///
/// If a file is replaced, removed or changed under its writer, the next append fails with
/// [`StoreError::Replaced`].
///
/// # Writers
///
/// A writer holds an exclusive lock of the operating system on the log's file, which ends with the process. Its name
/// and its lease are in `monday.head`. [`take_over`](Store::take_over) replaces the file of a writer whose lease has
/// expired by a copy: later writes of that writer go to an unnamed file. Programs other than Polylogue should not
/// write to the files.
///
/// `monday.inbox` has the instructions that other processes have posted, one per line; the event that carries out line 3 has
/// `"inbox":3`.
///
/// The file `.keys` has the [keys](Store::reserve_key) that are reserved for requests, one per line; those that have expired are
/// removed from time to time.
///
/// Claiming checks the beginning and the end, reading checks all lines. A claimed log keeps two files open; the
/// default limit of a process is about a thousand.
///
/// Each append is written and synced separately; with many concurrent conversations [`Sqlite`](crate::Sqlite) is
/// faster, because they share its commits.
#[derive(Debug)]
pub struct Jsonl {
    folder: Arc<Folder>,
    workers: Workers<()>,
}

impl Jsonl {
    /// The format that is written, and the only one that is read.
    pub const FORMAT: u64 = file::FORMAT;

    /// How many files are written or read at once. The disk is the bottleneck.
    const THREADS: usize = 4;

    /// Opens the folder `dir`, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] or [`StoreError::Io`] when the folder cannot be created.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        // Absolute, so that changing the working directory does not move the store.
        let dir =
            std::path::absolute(dir.as_ref()).map_err(|error| io_error::reading(dir.as_ref(), &error))?;
        if !dir.is_dir() {
            polylogue_files::make_private_folder(&dir).map_err(|error| io_error::writing(&dir, &error))?;
        }
        Ok(Self { folder: Arc::new(Folder::new(dir)), workers: Workers::new(Self::THREADS) })
    }

    /// Returns a whole log as the text of its file, to be read elsewhere.
    ///
    /// # Errors
    /// When the metadata or an event cannot be written as JSON.
    pub fn to_text(meta: &Meta, events: &[Event]) -> std::io::Result<Vec<u8>> {
        file::text(meta, events)
    }

    /// Parses the log whose file has this `text`. Every line is checked against its link; nothing may be torn or missing within
    /// it.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    ///
    /// ```
    /// use polylogue_core::Meta;
    /// use polylogue_store::Jsonl;
    /// let text = Jsonl::to_text(&Meta { title: "Plans".into(), ..Meta::default() }, &[])?;
    /// assert_eq!(Jsonl::parse_text(&text)?.0.title, "Plans");
    /// assert!(Jsonl::parse_text(&text[1..]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse_text(text: &[u8]) -> Result<(Meta, Vec<Event>), String> {
        file::parse(text)
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

impl From<Jsonl> for AnyStore {
    fn from(store: Jsonl) -> Self {
        Self::new(store)
    }
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

    async fn holder(&self, id: &LogId) -> Result<Option<String>, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.holder(&id)).await
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let batch = Batch::new(&claim.id, batch)?;
        let claim = claim.clone();
        self.run(move |folder| folder.append(&claim, &batch)).await
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        // On the first poll: a dropped log polls only once, and does not wait.
        self.folder.release(&claim);
        Ok(())
    }

    /// Reads the lines up to the end of the range: where a line begins is known only from those before it.
    async fn read_range(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.read(&id, range)).await
    }

    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.read_intact(&id)).await
    }

    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.meta(&id)).await
    }

    /// All logs, newest first. Includes files with a damaged first line, without a title.
    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let query = query.clone();
        self.run(move |folder| folder.list(&query)).await
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

    async fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        let (id, message) = (id.clone(), message.clone());
        self.run(move |folder| folder.post(&id, &message)).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.run(|folder| folder.check_writable()).await
    }

    async fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.inbox(&id, after)).await
    }

    async fn reserve_key(&self, key: &str, request: &str) -> Result<String, StoreError> {
        let (key, request) = (key.to_owned(), request.to_owned());
        self.run(move |folder| folder.reserve_key(&key, &request)).await
    }

    async fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<bool, StoreError> {
        let (id, blob, bytes) = (id.clone(), blob.clone(), bytes.to_vec());
        self.run(move |folder| folder.store_blob(&id, &blob, &bytes)).await.map(|()| true)
    }

    async fn stored_blob(&self, id: &LogId, blob: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let (id, blob) = (id.clone(), blob.clone());
        self.run(move |folder| folder.stored_blob(&id, &blob)).await
    }

    async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        let id = id.clone();
        self.run(move |folder| folder.repair(&id)).await
    }
}
