//! A cache of model replies, so that the same request is not paid for twice.

mod error;
mod file;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::{
    AnyModel, Capabilities, Capability, DeltaRef, DeltaSink, Digest, Model, ModelError, Money, Params, Part,
    Reply, Request, Usage,
};

pub use self::error::CacheError;
use self::file::{Kept, KeptFile};
use crate::wire::pictures;

/// A cache of model replies, in memory or in a file: returns the stored reply for the same request.
///
/// Caching is opt-in: wrap a model with [`around`](Self::around). Two requests are the same if model, system message,
/// conversation, tools and parameters are exactly equal; the chat and the agent do not matter. A reply from the cache
/// is [marked](Reply::cached), so that what it would have cost is separate from what was paid. Errors are never
/// cached.
///
/// Cloning shares the replies; any number of models and conversations can use one cache. It keeps
/// [`CAPACITY`](Self::CAPACITY) replies and evicts the oldest. A file only grows: delete it when it is too large.
///
/// ```
/// # use polylogue_core::{Entry, Model, Name, Origin, Params, Path, Request, EncodeCache};
/// use polylogue_models::{Cache, Script, ScriptStep};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let place = folder.path().join("replies.jsonl");
/// # let (at, who, params, wire) = (Path::root(), Name::new("Greeter")?, Params::default(), EncodeCache::default());
/// # let entries = [Entry::user("hello")];
/// # let origin = Origin { at: &at, who: &who, nth: 0 };
/// # let request = Request { origin, system: None, entries: &entries, tools: &[], params: &params, encoded: &wire, reserved: None };
/// let cache = Cache::open(place)?;
/// let model = cache.around(Script::new([ScriptStep::say(Name::new("Greeter")?, "Good morning")]).model("demo"));
/// assert!(!model.complete(&request, &mut ()).await?.cached);
/// assert!(model.complete(&request, &mut ()).await?.cached);
/// // In another namespace it is another request.
/// assert!(cache.namespace("2").is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cache {
    namespace: Arc<str>,
    shelf: Arc<Mutex<Shelf>>,
}

type Key = (Arc<str>, Digest);

/// The replies.
#[derive(Default)]
struct Shelf {
    replies: HashMap<Key, Reply>,
    /// Oldest first.
    order: VecDeque<Key>,
    file: Option<KeptFile>,
    trouble: Option<CacheError>,
}

impl Cache {
    /// The maximum number of replies in memory: with replies of a page, about 50 MB.
    pub const CAPACITY: usize = 10_000;

    /// A cache in memory only.
    #[must_use]
    pub fn memory() -> Self {
        Self { namespace: "".into(), shelf: Arc::default() }
    }

    /// The cache in the file `place`, which is created if it does not exist. A truncated last line is removed.
    ///
    /// # Errors
    /// [`CacheError::Busy`] when another program uses it, [`CacheError::NoCache`], [`CacheError::Newer`],
    /// [`CacheError::Damaged`], [`CacheError::Io`].
    pub fn open(place: impl AsRef<Path>) -> Result<Self, CacheError> {
        let mut shelf = Shelf::default();
        let file = KeptFile::open(place.as_ref(), |kept| {
            shelf.put((kept.namespace.into_owned().into(), kept.request), kept.reply.into_owned());
        })?;
        shelf.file = Some(file);
        Ok(Self { namespace: "".into(), shelf: Arc::new(Mutex::new(shelf)) })
    }

    /// The same cache, separate from other namespaces: for the second of two runs that must differ.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Self {
        Self { namespace: name.into(), shelf: Arc::clone(&self.shelf) }
    }

    /// Wraps `model`: it is called only for new requests.
    #[must_use]
    pub fn around<M: Model>(&self, model: M) -> Cached<M> {
        Cached { model, cache: self.clone() }
    }

    /// The number of replies in this namespace.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shelf().replies.keys().filter(|(namespace, _)| *namespace == self.namespace).count()
    }

    /// Whether this namespace has no reply.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why replies could not be written to the file, if that happened. They are still cached in memory, and the
    /// conversation continues.
    #[must_use]
    pub fn trouble(&self) -> Option<CacheError> {
        self.shelf().trouble.clone()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // A panic elsewhere leaves nothing half done.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &Key) -> Option<Reply> {
        self.shelf().replies.get(key).cloned()
    }

    fn keep(&self, key: Key, reply: &Reply) {
        let mut shelf = self.shelf();
        if let Some(file) = &mut shelf.file
            && let Err(error) = file.append(&Kept::of(&key.0, key.1, reply))
        {
            shelf.trouble = Some(error);
        }
        shelf.put(key, reply.clone());
    }
}

impl Shelf {
    fn put(&mut self, key: Key, reply: Reply) {
        if self.replies.insert(key.clone(), reply).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > Cache::CAPACITY {
            if let Some(oldest) = self.order.pop_front() {
                self.replies.remove(&oldest);
            }
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// A model with cached replies; see [`Cache`]. Otherwise like the model that it wraps.
#[derive(Debug, Clone)]
pub struct Cached<M = AnyModel> {
    model: M,
    cache: Cache,
}

impl<M: Model> Model for Cached<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    /// A reply from the cache comes in one piece.
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let key = (Arc::clone(&self.cache.namespace), request.digest(&self.asked(request)));
        if let Some(reply) = self.cache.get(&key) {
            tell(&reply, deltas);
            return Ok(Reply { cached: true, ..reply });
        }
        let reply = self.model.complete(request, deltas).await?;
        // A reply from an inner cache is stored there already.
        if !reply.cached {
            self.cache.keep(key, &reply);
        }
        Ok(reply)
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.model.cost(usage)
    }

    fn max_output(&self, params: &Params) -> Option<u64> {
        self.model.max_output(params)
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }
}

impl<M: Model> Cached<M> {
    /// The model name in keys. A model with vision has another one, because it receives the pictures of `request`.
    fn asked(&self, request: &Request<'_>) -> Cow<'_, str> {
        let name = self.model.name();
        let sees = self.model.capabilities().has(Capability::Vision) == Some(true);
        match sees && request.entries.iter().any(|entry| pictures::of(entry).next().is_some()) {
            true => format!("{name}, which sees").into(),
            false => name.into(),
        }
    }
}

fn tell(reply: &Reply, deltas: &mut dyn DeltaSink) {
    let mut calls = 0;
    for part in &reply.parts {
        match part {
            Part::Text(text) => deltas.push(DeltaRef::Text(text)),
            Part::Thought(text) => deltas.push(DeltaRef::Thought(text)),
            Part::Call(call) => {
                deltas.push(DeltaRef::Call {
                    index: calls,
                    tool: Some(&call.tool),
                    args: &call.args.to_string(),
                });
                calls += 1;
            }
            _ => {}
        }
    }
}
