//! Cost of `polylogue serve`: many conversations with live tails, one conversation next to the library, and the first token.
//!
//! The server runs in a process of its own, on one thread as the program does; the clients are the reporting process. Models are scripted.

mod crowd;
mod host;
mod rest;
mod single;

use crate::job::Result;

pub(crate) use host::host;

/// Measures and prints everything, with `most` conversations at the same time.
pub(crate) fn report(most: usize) -> Result<()> {
    let files = host::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        single::report().await?;
        for conversations in [most / 10, most] {
            // A socket on each side; each process has its own.
            if files.is_some_and(|files| (conversations as u64) + 100 > files) {
                println!("{conversations} conversations need more open files than this process may have.");
                continue;
            }
            rest::report(conversations.max(1)).await?;
            crowd::report(conversations.max(1)).await?;
        }
        Ok(())
    })
}
