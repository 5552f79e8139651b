//! What tools hold for a conversation as long as it is open in this process.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What tools hold for one conversation as long as it is open in this process, such as an interpreter that runs.
///
/// It belongs to the [`Log`](crate::Log): no other conversation sees it, and it is dropped with the log. It is in no store:
/// when the conversation is opened again there is nothing in it, and a tool that holds something tells its model so.
///
/// ```
/// use polylogue_core::{Held, Holder};
/// let (count, other) = (Holder::new(), Holder::new());
/// let (mine, yours) = (Held::default(), Held::default());
/// *mine.of(&count, || std::sync::Mutex::new(0)).lock().unwrap() += 1;
/// assert_eq!(*mine.of(&count, || std::sync::Mutex::new(0)).lock().unwrap(), 1);
/// assert_eq!(*yours.of(&count, || std::sync::Mutex::new(0)).lock().unwrap(), 0);
/// assert_eq!(*mine.of(&other, || std::sync::Mutex::new(0)).lock().unwrap(), 0);
/// ```
#[derive(Default)]
pub struct Resources(Mutex<Vec<(u64, Arc<dyn Any + Send + Sync>)>>);

/// Tells one that holds something from all others. A tool makes one when it is made, and keeps it.
#[derive(Debug, PartialEq, Eq)]
pub struct ResourceKey(u64);

impl ResourceKey {
    /// Another one.
    #[must_use]
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
    /// What `holder` holds of this type; what `make` gives, when it is nothing yet.
    pub fn of<T: Send + Sync + 'static>(&self, holder: &ResourceKey, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter().filter(|(id, _)| *id == holder.0);
        if let Some(found) = own.filter_map(|(_, held)| Arc::clone(held).downcast::<T>().ok()).next() {
            return found;
        }
        let made = Arc::new(make());
        all.push((holder.0, Arc::clone(&made) as Arc<dyn Any + Send + Sync>));
        made
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("Held").field(&all.len()).finish()
    }
}
