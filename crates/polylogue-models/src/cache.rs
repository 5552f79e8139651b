//! A cache of model replies, so that the same request is not paid for twice.

mod file;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::{
    AnyModel, Capability, DeltaSink, Digest, FinishReason, Model, ModelError, ModelWrapper, Reply, Request,
    push_parts,
};

use self::file::CacheFile;
use crate::wire::pictures;

/// A cache of model replies, in memory or in a file: returns the stored reply for the same request.
///
/// Caching is opt-in: wrap a model with [`around`](Self::around). Two requests are the same if model, system message,
/// conversation, tools and parameters are exactly equal; the chat and the agent do not matter. A reply from the cache
/// is [marked](Reply::cached), so that what it would have cost is separate from what was paid. Errors are never
/// cached, nor replies that are asked for again: with a malformed call, paused, or interrupted.
///
/// Cloning shares the replies; any number of models and conversations can use one cache. It keeps
/// [`CAPACITY`](Self::CAPACITY) replies and evicts the oldest. With a [file](Self::open), later processes have the
/// replies, too. To repeat a run exactly, record it with a [`Cassette`](crate::Cassette).
///
/// ```
/// # use polylogue_core::{Entry, Model, Name, Origin, Params, Path, Request, EncodeCache};
/// use polylogue_models::{Cache, Script, ScriptStep};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (at, who, params, wire) = (Path::root(), Name::new("Greeter")?, Params::default(), EncodeCache::default());
/// # let entries = [Entry::user("hello")];
/// # let origin = Origin::new(&at, &who, 0);
/// # let request = Request { origin, system: None, entries: &entries, tools: &[], params: &params, encoded: &wire, reserved: None };
/// let cache = Cache::memory();
/// let model = cache.around(Script::new([ScriptStep::say(Name::new("Greeter")?, "Good morning")]).model("demo"));
/// assert!(!model.complete(&request, &mut ()).await?.cached);
/// assert!(model.complete(&request, &mut ()).await?.cached);
/// // In another namespace it is another request.
/// assert!(cache.namespace("2").is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Cache {{ namespace: {namespace:?}, .. }}")]
pub struct Cache {
    namespace: Arc<str>,
    replies: Arc<Mutex<Replies>>,
    file: Option<Arc<CacheFile>>,
}

type Key = (Arc<str>, Digest);

/// Replies by request.
#[derive(Default)]
struct Replies {
    map: HashMap<Key, Reply>,
    /// The keys, oldest first.
    order: VecDeque<Key>,
}

impl Cache {
    /// The maximum number of replies in memory: with replies of a page, about 50 MB.
    pub const CAPACITY: usize = 10_000;

    /// Creates an empty cache.
    pub fn memory() -> Self {
        Self { namespace: "".into(), replies: Arc::default(), file: None }
    }

    /// Opens the cache in the file `place`, which is created if there is none. Each new reply is appended to it; several
    /// processes can use it at the same time, but each has only those replies of others that were there when it opened the
    /// file.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is not a cache.
    pub fn open(place: impl AsRef<FilePath>) -> Result<Self, ModelError> {
        let (file, stored) = CacheFile::open(place.as_ref())?;
        let mut replies = Replies::default();
        for (namespace, request, reply) in stored {
            replies.insert((namespace, request), reply);
        }
        Ok(Self { namespace: "".into(), replies: Arc::new(Mutex::new(replies)), file: Some(Arc::new(file)) })
    }

    /// Returns the same cache, separate from other namespaces: for the second of two runs that must differ.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Self {
        Self { namespace: name.into(), ..self.clone() }
    }

    /// Wraps `model`: it is called only for new requests.
    pub fn around<M: Model>(&self, model: M) -> Cached<M> {
        Cached { model, cache: self.clone() }
    }

    /// Returns the number of replies in this namespace.
    pub fn len(&self) -> usize {
        self.replies().map.keys().filter(|(namespace, _)| *namespace == self.namespace).count()
    }

    /// Returns whether this namespace has no reply.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn replies(&self) -> MutexGuard<'_, Replies> {
        // A panic elsewhere leaves nothing half done.
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replies {
    fn insert(&mut self, key: Key, reply: Reply) {
        if self.map.insert(key.clone(), reply).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > Cache::CAPACITY {
            if let Some(oldest) = self.order.pop_front() {
                self.map.remove(&oldest);
            }
        }
    }
}

impl Replies {
    /// Keeps the reply of `key` longer than all others, if there is one: it is about to be read.
    fn renew(&mut self, key: &Key) -> bool {
        let place = self.order.iter().position(|other| other == key);
        if let Some(key) = place.and_then(|place| self.order.remove(place)) {
            self.order.push_back(key);
        }
        place.is_some()
    }
}

/// A model with cached replies; see [`Cache`]. Otherwise like the model that it wraps.
#[derive(Debug, Clone)]
pub struct Cached<M = AnyModel> {
    model: M,
    cache: Cache,
}

impl<M: Model> ModelWrapper for Cached<M> {
    type Inner = M;

    fn inner(&self) -> &Self::Inner {
        &self.model
    }

    /// A reply from the cache comes in one piece.
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let key = self.key(request);
        let stored = self.cache.replies().map.get(&key).cloned();
        if let Some(reply) = stored {
            push_parts(&reply.parts, deltas);
            return Ok(Reply { cached: true, ..reply });
        }
        let reply = self.model.complete(request, deltas).await?;
        // A reply from an inner cache is stored there already.
        if !reply.cached && is_final(&reply.finish) {
            if let Some(file) = &self.cache.file {
                file.append(&key.0, key.1, &reply);
            }
            self.cache.replies().insert(key, reply.clone());
        }
        Ok(reply)
    }

    fn is_cached(&self, request: &Request<'_>) -> bool {
        self.cache.replies().renew(&self.key(request)) || self.model.is_cached(request)
    }
}

impl<M: Model> Cached<M> {
    fn key(&self, request: &Request<'_>) -> Key {
        (Arc::clone(&self.cache.namespace), request.digest(&self.asked(request)))
    }

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

/// Whether the same request is not sent again for another reply.
const fn is_final(finish: &FinishReason) -> bool {
    !matches!(finish, FinishReason::Malformed | FinishReason::Paused | FinishReason::Interrupted)
}
