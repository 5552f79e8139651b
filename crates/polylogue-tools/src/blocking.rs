//! Runs blocking work in a thread.

use polylogue_core::ToolError;
use tokio::sync::oneshot;

/// Runs blocking `work` in a new thread; no runtime is needed. It continues when the future is dropped.
///
/// # Errors
/// When the thread cannot be started, or the work panics.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    let (done, result) = oneshot::channel();
    let work = move || drop(done.send(work()));
    let thread = std::thread::Builder::new().name("polylogue-tool".into()).spawn(work);
    thread.map_err(|error| ToolError(format!("no thread can be started for the tool: {error}")))?;
    result.await.map_err(|_| ToolError("the tool crashed; this is a fault of the tool".into()))
}
