//! Where conversations are kept, and what is next to them.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use polylogue_core::{AnyStore, Features, LogId};
use polylogue_files::behind_links;
use polylogue_models::ClusterLimits;
use polylogue_postgres::{
    Address, LivePoint, Migrated, Postgres, PostgresAsked, PostgresBudgets, PostgresWatch,
};
use polylogue_store::parts::this_process;
use polylogue_store::{Jsonl, Sqlite};

use crate::error::FilesPlace;
use crate::lease_renewal::LeaseRenewal;
use crate::{Error, Result, cluster};

/// The words that say what becomes of the files of a conversation: the beginnings of those for a machine and a volume, and those for files that
/// are stored, and that are not kept.
const FILES_ON: &str = "files-on-";
const FILES_IN: &str = "files-in-";
const FILES_KEPT: &str = "files-kept";
const FILES_NONE: &str = "files-none";

/// The place of a store of conversations: a folder of JSON lines, a SQLite database, or a Postgres database. The work directories of the
/// conversations are next to it, or for Postgres in a folder of this machine, and the long-term memory of agents is in the SQLite database.
///
/// ```
/// # use polylogue_runtime::StoreLocation;
/// assert!(StoreLocation::new("runs/").is_folder());
/// assert!(!StoreLocation::new("runs.db").is_folder());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLocation {
    path: PathBuf,
    database: Option<Database>,
    files: FilesPolicy,
    patience: Option<Duration>,
    /// Where others follow what is run here.
    live: Option<LivePoint>,
    /// The folder of a tenant in a volume.
    tenant: Option<String>,
}

/// The policy for the work directory of a conversation that another process, perhaps on another machine, continues. A
/// conversation that works in a folder of the user's has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FilesPolicy {
    /// The files are stored with the conversation after each call that may have changed them, and each process begins with those of the last finished call.
    /// Default with Postgres.
    Kept,
    /// The files stay where they are: a process on another machine begins with the files that the team brings along. Default
    /// elsewhere.
    #[default]
    Local,
    /// The files are in this folder, which all machines share at the same path. It must exist: a volume that is not mounted is
    /// an error.
    Volume(PathBuf),
    /// The files are not kept: each process begins with the files that the team brings along.
    None,
}

impl FilesPolicy {
    /// Parses the policy that `text` names: `kept`, `local`, `none`, or `volume:PATH`, where `volume:` can be left out. `PATH` is absolute, so
    /// that it names the same folder in all processes, and not too long for the [feature](StoreLocation::files_feature) that names it. `None` if
    /// it is none of these.
    ///
    /// ```
    /// use polylogue_runtime::FilesPolicy;
    ///
    /// assert_eq!(FilesPolicy::parse("kept"), Some(FilesPolicy::Kept));
    /// for text in ["volume:/mnt/shared", "/mnt/shared", "/mnt//shared/"] {
    ///     assert_eq!(FilesPolicy::parse(text), Some(FilesPolicy::Volume("/mnt/shared".into())));
    /// }
    /// assert_eq!(FilesPolicy::parse("keep"), None);
    /// assert_eq!(FilesPolicy::parse("volume:shared"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "kept" => Some(Self::Kept),
            "local" => Some(Self::Local),
            "none" => Some(Self::None),
            path => {
                let path = path.strip_prefix("volume:").unwrap_or(path);
                // Without a slash at its end, and two after one another: one folder has one name.
                let folder: PathBuf = Path::new(path).components().collect();
                let fits = FILES_IN.len() + encoded(&folder.to_string_lossy()).len() <= Features::MAX_BYTES;
                (folder.is_absolute() && fits).then_some(Self::Volume(folder))
            }
        }
    }
}

/// A Postgres database, and whose conversations in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Database {
    address: Address,
    tenant: String,
}

/// The end of the name of the folder of work directories, after the name of the store.
const WORK: &str = ".work";

impl StoreLocation {
    /// Creates the location of a store in the file system. An existing folder, or a path that ends in `/`, is one of JSON
    /// lines; everything else is a SQLite file. A link stands for what it leads to, so that all processes have the same work directories next to it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let (path, files): (PathBuf, _) = (path.into(), FilesPolicy::Local);
        Self { path: behind_links(&path), database: None, files, patience: None, live: None, tenant: None }
    }

    /// Creates the location of a store in a Postgres database. What is kept on this machine is next to `path`, where nothing
    /// needs to be.
    pub fn postgres(address: Address, path: impl Into<PathBuf>) -> Self {
        let database = Database { address, tenant: Postgres::LOCAL.into() };
        let (path, database, files) = (path.into(), Some(database), FilesPolicy::Kept);
        Self { path, database, files, patience: None, live: None, tenant: None }
    }

    /// Returns the location of the conversations of another tenant: in the same Postgres database, or else at `path`.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str, path: impl Into<PathBuf>) -> Self {
        let database = |Database { address, .. }: &Database| Database {
            address: address.clone(),
            tenant: tenant.to_owned(),
        };
        let (path, files, patience) = (path.into(), self.files.clone(), self.patience);
        let (database, tenant) = (self.database.as_ref().map(database), Some(tenant.to_owned()));
        Self { path, database, files, patience, live: None, tenant }
    }

    /// Returns the tenant of [`of_tenant`](Self::of_tenant), whose conversations these are; `None` for those of the command line.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Sets the policy for the files of conversations. Default: they are kept with Postgres, and stay where they are elsewhere.
    #[must_use]
    pub fn with_files(self, files: FilesPolicy) -> Self {
        Self { files, ..self }
    }

    /// Sets how long a model call waits for a rate limit or a slot that processes share: one that would wait longer fails at once, with
    /// [`ModelError::wait`](polylogue_core::ModelError::wait). Default: calls wait, and those of a [worker](crate::worker::Worker) for 5 seconds.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Sets where other processes follow what this one runs, if the store is one that processes share. Default: nowhere, so
    /// that they read what is stored.
    #[must_use]
    pub fn with_live(self, point: Option<LivePoint>) -> Self {
        Self { live: point, ..self }
    }

    /// Follows conversations that other processes run; `None` where a store is of one machine.
    pub fn watch(&self) -> Option<PostgresWatch> {
        let Database { address, tenant } = self.database.as_ref()?;
        Some(PostgresWatch::new(address.clone(), tenant))
    }

    /// Hears which conversations other processes ask a server to continue, those of other tenants as well; `None` where a store is of one
    /// machine.
    ///
    /// # Panics
    /// Outside of a tokio runtime, with a database.
    pub fn asked(&self) -> Option<PostgresAsked> {
        let Database { address, .. } = self.database.as_ref()?;
        Some(PostgresAsked::listen(address.clone()))
    }

    /// Returns whether processes on other machines can have the same store.
    pub const fn is_shared(&self) -> bool {
        self.database.is_some()
    }

    /// Returns the policy for the files of conversations.
    pub const fn files(&self) -> &FilesPolicy {
        &self.files
    }

    /// Returns the feature that a worker with the same policy offers, and that such conversations need: `files-on-HOST` for
    /// local files, `files-in-PATH` for those in a volume, `files-kept`, or `files-none`. `None` where all workers are on one
    /// machine anyway.
    pub fn files_feature(&self) -> Option<String> {
        self.database.as_ref()?;
        Some(match &self.files {
            FilesPolicy::Local => {
                let process = this_process();
                let host = process.split_once(" on ").map_or("unknown", |(_, host)| host);
                format!("{FILES_ON}{}", feature_part(host))
            }
            FilesPolicy::Volume(folder) => format!("{FILES_IN}{}", feature_part(&folder.to_string_lossy())),
            FilesPolicy::Kept => FILES_KEPT.to_owned(),
            FilesPolicy::None => FILES_NONE.to_owned(),
        })
    }

    /// Whether a word says what becomes of the files of a conversation, as [`files_feature`](Self::files_feature) does.
    pub(crate) fn is_files_feature(word: &str) -> bool {
        Self::is_of_folder(word) || [FILES_KEPT, FILES_NONE].contains(&word)
    }

    /// Whether it says in which folder they are.
    pub(crate) fn is_of_folder(word: &str) -> bool {
        word.starts_with(FILES_ON) || word.starts_with(FILES_IN)
    }

    /// The folder or the machine that it names; `None` of other words.
    pub(crate) fn files_place(word: &str) -> Option<FilesPlace> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let volume = word.strip_prefix(FILES_IN).map(|folder| FilesPlace::Volume(decoded(folder).into()));
        volume.or_else(|| word.strip_prefix(FILES_ON).map(|host| FilesPlace::Machine(decoded(host))))
    }

    /// Whether files stay in a folder, of this machine or a volume.
    pub(crate) const fn has_files_in_folder(&self) -> bool {
        matches!(self.files, FilesPolicy::Local | FilesPolicy::Volume(_))
    }

    /// Checks that the folder is there in which all machines have the files of conversations, if this is the policy.
    ///
    /// # Errors
    /// [`Error::NoVolume`].
    pub fn check_volume(&self) -> Result<()> {
        match &self.files {
            FilesPolicy::Volume(folder) if !folder.is_dir() => Err(Error::NoVolume(folder.clone())),
            _ => Ok(()),
        }
    }

    /// Returns the path next to which work directories are, and that of the store if it is in the file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the location for people, and for the option `--store`: a path, or an address without a password.
    pub fn shown(&self) -> String {
        match &self.database {
            Some(database) => database.address.to_string(),
            None => self.path.display().to_string(),
        }
    }

    /// Returns whether conversations are kept as JSON lines.
    pub fn is_folder(&self) -> bool {
        self.database.is_none()
            && (self.path.is_dir() || self.path.as_os_str().to_string_lossy().ends_with('/'))
    }

    /// The file of the long-term memory of agents.
    ///
    /// # Errors
    /// [`Error::NoMemory`] where conversations are kept without one.
    pub(crate) fn memory_file(&self) -> Result<&Path> {
        let form = match self.database {
            Some(_) => "in Postgres",
            None if self.is_folder() => "as JSON lines",
            None => return Ok(&self.path),
        };
        Err(Error::NoMemory { place: self.shown(), form })
    }

    /// Opens the store, and creates it if it does not exist. Its claims are renewed while this process is well, which
    /// takes a tokio runtime. Postgres is connected to on first use.
    ///
    /// # Errors
    /// When it cannot be made, or is not a store.
    pub fn open(&self) -> Result<AnyStore> {
        self.open_for_worker().map(LeaseRenewal::of)
    }

    /// Opens the store as [`open`](Self::open), for a [`Worker`](crate::worker::Worker), which renews all claims of its process together.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_for_worker(&self) -> Result<AnyStore> {
        if let Some(database) = &self.database {
            let store = database.open()?;
            return Ok(AnyStore::new(match &self.live {
                Some(point) => store.with_live(point.clone())?,
                None => store,
            }));
        }
        if self.is_folder() {
            return Ok(AnyStore::new(Jsonl::open(&self.path)?));
        }
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            polylogue_files::make_private_folder(folder).map_err(|error| Error::Io {
                path: folder.to_owned(),
                what: "made",
                why: error.to_string(),
            })?;
        }
        Ok(AnyStore::new(Sqlite::open(&self.path)?))
    }

    /// The limits that all processes with this store share; none where a store is of one machine.
    pub(crate) fn cluster_limits(&self) -> Result<Option<ClusterLimits>> {
        let Some(Database { address, .. }) = &self.database else { return Ok(None) };
        let limits = cluster::limits(address)?;
        Ok(Some(ClusterLimits { patience: self.patience, ..ClusterLimits::new(limits) }))
    }

    /// The budgets that all processes with this store share; none where a store is of one machine.
    pub(crate) fn shared_budgets(&self) -> Result<Option<Arc<PostgresBudgets>>> {
        let Some(Database { address, tenant }) = &self.database else { return Ok(None) };
        cluster::budgets(address, tenant).map(Some)
    }

    /// Returns warnings about a store that can be used: a database that is slow, or whose failover may lose events.
    ///
    /// # Errors
    /// When a database cannot be used.
    pub async fn warnings(&self) -> Result<Vec<String>> {
        match &self.database {
            Some(database) => Ok(database.open()?.check().await?),
            None => Ok(Vec::new()),
        }
    }

    /// Migrates a database of an earlier version to the format of this one: [`Postgres::migrate`]. `None` where a store is of one machine.
    ///
    /// # Errors
    /// When the database cannot be used, or its tables cannot be migrated.
    pub async fn migrate(&self) -> Result<Option<Migrated>> {
        match &self.database {
            Some(database) => Ok(Some(database.open()?.migrate().await?)),
            None => Ok(None),
        }
    }

    /// Returns the work directory of the conversation `id`, whether it exists or not: an absolute path.
    ///
    /// # Errors
    /// When there is no current directory.
    pub fn work_dir(&self, id: &LogId) -> Result<PathBuf> {
        let root = self.work_root();
        let whole = std::path::absolute(&root);
        let whole = whole.map_err(|error| Error::Io { path: root, what: "found", why: error.to_string() })?;
        Ok(whole.join(id.as_str()))
    }

    /// The folder of the work directories.
    fn work_root(&self) -> PathBuf {
        if let FilesPolicy::Volume(folder) = &self.files {
            // No conversation has a name with a dot.
            return match &self.tenant {
                Some(tenant) => folder.join(format!("tenant.{tenant}")),
                None => folder.clone(),
            };
        }
        // A folder may be written with a slash at its end, which belongs to no name.
        let mut work: OsString = behind_links(self.path.components().as_path()).into_os_string();
        work.push(WORK);
        PathBuf::from(work)
    }

    /// Returns whether `folder` is within a work directory of this store, or of any store: what is in it may have been written
    /// by code that models wrote.
    pub fn is_in_work_dir(&self, folder: &Path) -> bool {
        let own = std::fs::canonicalize(self.work_root()).ok();
        let of_any = |folder: &Path| {
            let store = folder.as_os_str().to_string_lossy().strip_suffix(WORK).map(PathBuf::from);
            store.is_some_and(|store| store.exists())
        };
        own.is_some_and(|own| folder.starts_with(own)) || folder.ancestors().any(of_any)
    }
}

/// What is escaped in a word, besides characters that are not ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// `text` in a word. Two texts have two words.
fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// A part of a feature: the end of `text`, [encoded].
fn feature_part(text: &str) -> String {
    let part = encoded(text);
    let most = Features::MAX_BYTES - FILES_ON.len();
    part.get(part.len().saturating_sub(most)..).unwrap_or_default().to_owned()
}

impl Database {
    fn open(&self) -> Result<Postgres> {
        Ok(Postgres::open(self.address.clone())?.of_tenant(&self.tenant)?)
    }
}

impl fmt::Display for StoreLocation {
    /// Which kind of store it is, with its format.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.database {
            Some(_) => write!(f, "Postgres, format {}", Postgres::FORMAT),
            None if self.is_folder() => write!(f, "JSON lines, format {}", Jsonl::FORMAT),
            None => write!(f, "SQLite, format {}", Sqlite::FORMAT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_next_to_a_store_is_next_to_the_file_that_a_link_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("runs.db"), dir.path().join("link.db"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("runs.db", &link).unwrap();
        let work = StoreLocation::new(&link).work_dir(&LogId::new("a").unwrap()).unwrap();
        assert_eq!(work, std::fs::canonicalize(dir.path()).unwrap().join("runs.db.work/a"));
        assert_eq!(StoreLocation::new(dir.path().join("none.db")).path(), dir.path().join("none.db"));
    }

    /// Otherwise a worker with another volume would claim a conversation, and run it without its files.
    #[test]
    fn each_volume_has_its_own_word_that_names_its_folder() {
        let word = |path: &str| {
            let address = Address::parse("postgres://polylogue@127.0.0.1/polylogue").unwrap();
            let files = FilesPolicy::parse(path).unwrap();
            StoreLocation::postgres(address, "conversations").with_files(files).files_feature().unwrap()
        };
        let paths = ["/mnt/ü", "/mnt/ö", "/mnt/a b", "/mnt/a-b", "/mnt/a%20b", "/mnt/a\u{a0}b"];
        for path in paths {
            let words = Features::parse(&word(path)).unwrap();
            assert_eq!(words.words().count(), 1, "{path}");
            assert_eq!(StoreLocation::files_place(&word(path)), Some(FilesPlace::Volume(path.into())));
            assert_eq!(paths.iter().filter(|other| word(other) == word(path)).count(), 1, "{path}");
        }
        assert_eq!(word("volume:/mnt/x/"), "files-in-/mnt/x", "one folder has one word");
        assert_eq!(FilesPolicy::parse("volume:mnt/x"), None);
        assert_eq!(FilesPolicy::parse("volume:"), None);
        assert!(FilesPolicy::parse(&format!("/{}", "x".repeat(118))).is_some());
        assert_eq!(FilesPolicy::parse(&format!("/{}", "x".repeat(119))), None);
    }
}
