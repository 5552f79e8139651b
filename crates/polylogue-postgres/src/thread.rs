//! The thread on which the statements of a store run, so that its callers need no runtime.

use polylogue_core::StoreError;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::address::Address;

/// A thread with a runtime. What still runs there when it is dropped is stopped.
pub(crate) struct Thread {
    pub(crate) handle: Handle,
    /// Until it is dropped.
    runtime: Option<Runtime>,
    /// The database, for errors.
    place: String,
}

impl Thread {
    pub(crate) fn start(name: &str, address: &Address) -> Result<Self, StoreError> {
        let place = address.to_string();
        match Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build() {
            Ok(runtime) => Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime), place }),
            Err(error) => Err(StoreError::Io { place, why: error.to_string() }),
        }
    }

    /// Runs an operation from now on, even if its result is not waited for.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        let task = self.handle.spawn(operation);
        async move {
            task.await.map_err(|error| StoreError::Io {
                place: self.place.clone(),
                why: format!("an operation stopped: {error}"),
            })?
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
