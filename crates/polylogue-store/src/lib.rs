//! Where Polylogue keeps logs: three [`Store`](polylogue_core::Store)s that keep the same promises.
//!
//! | store | keeps logs in | meant for |
//! |---|---|---|
//! | [`Sqlite`] | one database file | the default: many conversations, several processes |
//! | [`Jsonl`] | a folder, one text file a log | reading and versioning logs with other tools |
//! | [`Memory`] | this process | tests, and runs that nobody wants to keep |
//!
//! All of them pass the tests of `polylogue_test::store`. What [`Sqlite`] and [`Jsonl`] have acknowledged survives a
//! killed process and a loss of power; a log has one writer at a time, in whatever process, and a writer that died
//! blocks nobody.
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
//! let event = Event { seq: 0, at: Path::root(), time: Timestamp(0), ran_ms: 0, body: Body::Reopened { message: None } };
//! store.append(&claim, &[event.clone().into()]).await?;
//! store.release(claim).await?;
//! assert_eq!(store.read(&id, 0).await?, [event]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Facts`] keeps what agents write down for later conversations, in the same database or in one of its own; the other two
//! stores have no such memory.
//!
//! None of them needs an async runtime: what blocks is done on threads of the store's own. Dropping a future that the
//! store returned does not undo what it asked for, except that a claim nobody received is given back.

mod batch;
mod claim_guard;
mod fence;
mod head;
mod holder;
mod intact;
mod io_error;
mod jsonl;
mod memory;
mod private;
mod sqlite;
mod workers;

pub use jsonl::Jsonl;
pub use memory::Memory;
pub use sqlite::{Facts, Sqlite};
