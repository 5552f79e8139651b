//! A store of logs in Postgres: the same conversations from many machines.
//!
//! [`Postgres`] is a [`Store`](polylogue_core::Store) with the guarantees of the stores of `polylogue-store`. Its tables are in the schema
//! `polylogue` of a database, and are created on first use.
//!
//! ```no_run
//! use polylogue_core::{LogId, Meta, Store};
//! use polylogue_postgres::{Address, Postgres};
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let address = Address::parse("postgres://polylogue@db.example.com/polylogue")?;
//! let store = Postgres::open(address)?;
//! let claim = store.create(&LogId::new("monday")?, &Meta::default()).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - A few connections carry the statements of all conversations; none is held by one.
//! - Claims have leases by the clock of the database, which may jump: workers also count for how long they have known a lease, and who
//!   claims a log by its id waits a minute longer, or takes it over. A process that is killed holds its conversations until their leases expire.
//! - An append checks the claim and the number of events in the statement that writes. One whose connection was lost is settled
//!   by reading: it is neither lost nor repeated.
//! - Statements need no state of a session, so poolers in transaction mode work.

mod address;
mod announcements;
mod append;
mod append_group;
mod archive;
mod asked;
mod blobs;
mod budgets;
mod claim;
mod connection;
mod database;
mod error;
mod inbox;
mod inbox_notifications;
mod keys;
mod limits;
mod listing;
mod live_point;
mod logs;
mod migrate;
mod monitoring;
mod overview;
mod password;
mod queue;
mod read;
mod repair;
mod schema;
mod store;
mod thread;
mod tls;
mod watch;

pub use address::Address;
pub use asked::PostgresAsked;
pub use budgets::{
    BudgetListing, LogUsage, PostgresBudgets, Recount, is_daily, shared_budget_name, token_budget,
};
pub use limits::PostgresLimits;
pub use live_point::LivePoint;
pub use migrate::Migrated;
pub use monitoring::{BudgetFigures, DatabaseFigures, RateLimitFigures, SharedAmount};
pub use store::Postgres;
pub use watch::{PostgresWatch, WatchedLog};
