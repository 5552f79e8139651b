//! Runs programs in a thread.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use polylogue_sandbox::{Cancellation, Error, Program, ProgramResult, Sandbox};
use tokio::sync::oneshot;

/// Maximum wait for the end of a cancelled program. The sandbox checks its cancellation every 20 ms.
const END: Duration = Duration::from_millis(500);

/// Cancels the program when its future is dropped.
struct CancelOnDrop {
    cancellation: Cancellation,
    /// Closed when the run is over.
    over: Receiver<()>,
}

impl Drop for CancelOnDrop {
    /// Waits until the program is dead: this process may be about to exit, and without a sandbox the program would survive it.
    fn drop(&mut self) {
        self.cancellation.cancel();
        let _ = self.over.recv_timeout(END);
    }
}

/// Runs `program` in a new thread; no runtime is needed.
pub(crate) async fn run(sandbox: Sandbox, program: Program) -> Result<ProgramResult, Error> {
    let cancellation = Cancellation::new();
    let (running, over) = channel::<()>();
    let _abandoned = CancelOnDrop { cancellation: cancellation.clone(), over };
    let (done, result) = oneshot::channel();
    let work = move || {
        let ended = sandbox.run(&program, &cancellation);
        drop(running);
        drop(done.send(ended));
    };
    let thread = std::thread::Builder::new().name("polylogue-code".into()).spawn(work);
    thread
        .map_err(|error| Error::System { what: "no thread can be started for the program", source: error })?;
    result.await.unwrap_or_else(|_| Err(Error::Config("the thread that runs the program crashed".into())))
}
