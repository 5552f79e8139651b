//! A run that blocks, awaited.

use polylogue_sandbox::{Ended, Error, Halt, Program, Sandbox};
use tokio::sync::oneshot;

/// Ends the program when nobody waits for it any more.
struct Abandoned(Halt);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.halt();
    }
}

/// Runs `program` on a thread of its own, so that no runtime is held up, and none is needed.
pub(crate) async fn run(sandbox: Sandbox, program: Program) -> Result<Ended, Error> {
    let halt = Halt::new();
    let _abandoned = Abandoned(halt.clone());
    let (done, result) = oneshot::channel();
    let work = move || drop(done.send(sandbox.run(&program, &halt)));
    let thread = std::thread::Builder::new().name("polylogue-code".into()).spawn(work);
    thread.map_err(|error| Error::System { what: "there is no thread for the program", source: error })?;
    result.await.unwrap_or_else(|_| Err(Error::Config("running the program broke down".into())))
}
