//! Work that blocks, awaited.

use polylogue_core::ToolError;
use tokio::sync::oneshot;

/// Does `work` on a thread of its own, so that no runtime is held up, and none is needed. It continues when the caller stops waiting
/// any more.
///
/// # Errors
/// When there is no thread, or the work broke down.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    let (done, result) = oneshot::channel();
    let work = move || drop(done.send(work()));
    let thread = std::thread::Builder::new().name("polylogue-tool".into()).spawn(work);
    thread.map_err(|error| ToolError(format!("there is no thread for the tool: {error}")))?;
    result.await.map_err(|_| ToolError("the tool broke down; this is a fault of the tool".into()))
}
