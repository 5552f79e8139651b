//! Stores for logs: three [`Store`](polylogue_core::Store)s with the same guarantees.
//!
//! | store | location | purpose |
//! |---|---|---|
//! | [`Sqlite`] | one database file | the default: many conversations, several processes, workers |
//! | [`Jsonl`] | a folder, one text file per log | reading and versioning logs with other tools |
//! | [`Memory`] | this process | tests, and runs that need not be stored |
//!
//! All of them pass the conformance tests of `polylogue_test::store`. Acknowledged events in [`Sqlite`] and [`Jsonl`]
//! survive a killed process and a loss of power. A log has one writer at a time, across processes, and a writer that
//! died does not block others.
//!
//! ```
//! use polylogue_core::{Body, Event, LogId, Meta, Path, Store, Timestamp};
//! use polylogue_store::Sqlite;
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let dir = tempfile::tempdir()?;
//! # let place = dir.path().join("chats.polylogue.db");
//! let store = Sqlite::open(&place)?;
//! let id = LogId::new("monday")?;
//! let claim = store.create(&id, &Meta::default()).await?;
//! let event = Event { seq: 0, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body: Body::reopened(None) };
//! store.append(&claim, &[event.clone().into()]).await?;
//! store.release(claim).await?;
//! assert_eq!(store.read(&id, 0).await?, [event]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Facts`] is the long-term memory of agents, in the same database or in a separate one. The other two stores have
//! none.
//!
//! None of them needs an async runtime: blocking work is done on the store's own threads. Dropping a future does not
//! undo its operation, except that a claim that the caller did not receive is released.

mod batch;
mod claims;
mod clock;
mod head;
mod intact;
mod io_error;
mod jsonl;
mod locked_file;
mod memory;
mod message;
mod packed;
pub mod parts;
mod sealed;
mod sqlite;
mod workers;

pub use jsonl::Jsonl;
pub use memory::Memory;
pub use sqlite::{Facts, Sqlite};
