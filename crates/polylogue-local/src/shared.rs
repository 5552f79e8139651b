//! What the clones of a model share, and the models that the process has open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use tokio::sync::mpsc;

use crate::call_format::CallFormat;
use crate::memory::Memory;
use crate::options::LocalOptions;
use crate::sequence::Job;
use crate::template::Template;
use crate::tokenizer::Tokenizer;

/// A model without its name. Its thread ends, and its memory is free, when it is dropped.
pub(crate) struct Shared {
    pub(crate) memory: Memory,
    pub(crate) window: usize,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: Template,
    pub(crate) format: Option<&'static CallFormat>,
    pub(crate) jobs: mpsc::Sender<Job>,
    /// Whether it could not be loaded.
    pub(crate) has_failed: Arc<AtomicBool>,
}

/// What makes two models the same: a file that has been replaced is another one.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Key {
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
    options: LocalOptions,
}

impl Key {
    /// That of the file at `path`; none if there is no such file.
    pub(crate) fn of(path: &Path, options: &LocalOptions) -> Option<Self> {
        let path = std::fs::canonicalize(path).ok()?;
        let about = std::fs::metadata(&path).ok()?;
        Some(Self { path, length: about.len(), modified: about.modified().ok(), options: options.clone() })
    }
}

/// The models that something in the process uses.
#[derive(Default)]
pub(crate) struct OpenModels(HashMap<Key, Weak<Shared>>);

static MODELS: LazyLock<Mutex<OpenModels>> = LazyLock::new(Mutex::default);

impl OpenModels {
    /// Those of the process. While they are locked, no model is opened a second time.
    pub(crate) fn lock() -> MutexGuard<'static, Self> {
        MODELS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model of this key, unless its thread has ended, or it could not be loaded: another try may succeed.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Shared>> {
        self.0
            .get(key)?
            .upgrade()
            .filter(|shared| !shared.jobs.is_closed() && !shared.has_failed.load(Ordering::Relaxed))
    }

    pub(crate) fn insert(&mut self, key: Key, shared: &Arc<Shared>) {
        self.0.retain(|_, other| other.strong_count() > 0);
        self.0.insert(key, Arc::downgrade(shared));
    }
}
