//! Resources that tools keep for a conversation while it is open in this process.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Resources that tools keep for one conversation while it is open in this process, such as a running interpreter.
///
/// They belong to the [`Log`](crate::Log): no other conversation sees them, and they are dropped with the log. They
/// are not stored: when the conversation is opened again they are gone, and the tool must tell its model. The kernel keeps there what it has
/// folded of chats that rest.
///
/// ```
/// use polylogue_core::{ResourceKey, Resources};
/// let (count, other) = (ResourceKey::new(), ResourceKey::new());
/// let (mine, yours) = (Resources::default(), Resources::default());
/// *mine.of(&count, || std::sync::Mutex::new(0)).lock().unwrap() += 1;
/// assert_eq!(*mine.of(&count, || std::sync::Mutex::new(0)).lock().unwrap(), 1);
/// assert_eq!(*yours.of(&count, || std::sync::Mutex::new(0)).lock().unwrap(), 0);
/// assert_eq!(*mine.of(&other, || std::sync::Mutex::new(0)).lock().unwrap(), 0);
/// ```
#[derive(Default)]
pub struct Resources(Mutex<Vec<(u64, Arc<dyn Any + Send + Sync>)>>);

/// Identifies a resource of a tool. A tool creates its key once, and keeps it.
#[derive(Debug, PartialEq, Eq)]
pub struct ResourceKey(u64);

impl ResourceKey {
    /// Creates a new, unique key.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for ResourceKey {
    fn default() -> Self {
        Self::new()
    }
}

impl Resources {
    /// Returns the resource of this type for `key`, created by `make` if it does not exist yet.
    pub fn of<T: Send + Sync + 'static>(&self, key: &ResourceKey, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter().filter(|(id, _)| *id == key.0);
        if let Some(found) = own.filter_map(|(_, resource)| Arc::clone(resource).downcast::<T>().ok()).next()
        {
            return found;
        }
        let made = Arc::new(make());
        all.push((key.0, Arc::clone(&made) as Arc<dyn Any + Send + Sync>));
        made
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("Resources").field(&all.len()).finish()
    }
}
