//! A few connections, which carry the statements of all conversations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use polylogue_core::{LEASE, StoreError};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};

use crate::address::Address;
use crate::connection::{Connection, connect, warnings};
use crate::error::{Failure, changed};
use crate::schema::{self, FORMATS, Formats};

/// The value of a statement's parameter, with its type: statements are not prepared, because a pooler may give each one to another
/// session.
pub(crate) trait Parameter: Sync {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type);
}

impl<T: Typed + ToSql + Sync> Parameter for T {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        (self, T::TYPE)
    }
}

/// A type whose values are of one type in the database.
pub(crate) trait Typed {
    const TYPE: Type;
}

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
}

macro_rules! types {
    ($($column:ident: $($rust:ty),+;)+) => {
        $($(impl Typed for $rust {
            const TYPE: Type = Type::$column;
        })+)+
    };
}

types! {
    BOOL: bool;
    BOOL_ARRAY: Vec<bool>;
    BYTEA: &[u8], Vec<u8>;
    BYTEA_ARRAY: Vec<&[u8]>, Vec<Vec<u8>>;
    FLOAT8: f64;
    INT4: i32;
    INT4_ARRAY: Vec<i32>;
    INT8: i64;
    INT8_ARRAY: Vec<i64>;
    TEXT: &str, &String, String;
    TEXT_ARRAY: &[&str], Vec<&str>, Vec<String>;
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// How long a statement may take.
const STATEMENT: Duration = Duration::from_secs(60);

/// How long a database that was reached before is waited for. Longer, and claims would be lost.
const PATIENCE: Duration = LEASE;

/// The pauses between two tries, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A database.
#[derive(Debug)]
pub(crate) struct Database {
    address: Address,
    /// The migrations of this version.
    formats: Formats,
    slots: [Slot; Self::CONNECTIONS],
    /// How many of them are used.
    connections: usize,
    /// Whether it was ever reached.
    was_reached: AtomicBool,
}

/// A place for a connection.
#[derive(Default, derive_more::Debug)]
#[debug("Slot {{ in_flight: {in_flight:?}, .. }}")]
struct Slot {
    connection: Mutex<Option<Arc<Connection>>>,
    /// How many statements wait for their results.
    in_flight: AtomicUsize,
}

impl Database {
    /// How many connections there are at most.
    pub(crate) const CONNECTIONS: usize = 4;

    /// Nothing is connected before the first statement.
    pub(crate) fn new(address: Address) -> Self {
        Self::of_formats(address, FORMATS)
    }

    /// As [`new`](Self::new), for a version with other migrations.
    pub(crate) fn of_formats(address: Address, formats: Formats) -> Self {
        let (slots, connections) = (Default::default(), Self::CONNECTIONS);
        Self { address, formats, slots, connections, was_reached: AtomicBool::new(false) }
    }

    /// Limits the connections, for what needs them seldom: a server has only so many for all processes.
    pub(crate) fn with_connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) const fn formats(&self) -> Formats {
        self.formats
    }

    /// The format of the tables, as the parameter of `polylogue.is_format`.
    pub(crate) fn format(&self) -> i32 {
        i32::try_from(schema::last(self.formats)).unwrap_or(i32::MAX)
    }

    /// Executes a statement that can be repeated: it changes nothing when it was executed before. Waits for a database that was
    /// reached before.
    pub(crate) async fn query(
        &self,
        access: Access,
        sql: &str,
        parameters: &[&dyn Parameter],
    ) -> Result<Vec<Row>, StoreError> {
        let mut retry = Retry::new(self);
        loop {
            match self.query_once(access, sql, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => retry.after(failure).await?,
            }
        }
    }

    /// Executes a statement once.
    pub(crate) async fn query_once(
        &self,
        access: Access,
        sql: &str,
        parameters: &[&dyn Parameter],
    ) -> Result<Vec<Row>, Failure> {
        let slot = self.least_busy();
        let _in_flight = InFlight::begin(&slot.in_flight);
        let connection = self.connection(slot).await?;
        if let Some(found) = connection.newer.filter(|_| access == Access::Write) {
            return Err(Failure::Refused(schema::refusal(&self.address, self.formats, found)));
        }
        let parameters: Vec<_> = parameters.iter().map(|parameter| parameter.typed()).collect();
        let failure = match timeout(STATEMENT, connection.client.query_typed(sql, &parameters)).await {
            Ok(Ok(rows)) => return Ok(rows),
            Ok(Err(error)) => match schema::changed_format(&error) {
                Some(found) => {
                    self.reconnect().await;
                    Failure::Refused(schema::refusal(&self.address, self.formats, found))
                }
                None => Failure::of(&self.address, &error),
            },
            Err(_) => Failure::Lost(format!("it did not answer for {} s", STATEMENT.as_secs())),
        };
        if matches!(failure, Failure::Lost(_)) {
            slot.forget(&connection).await;
        }
        Err(failure)
    }

    fn least_busy(&self) -> &Slot {
        let [first, others @ ..] = &self.slots;
        let load = |slot: &Slot| slot.in_flight.load(Ordering::Relaxed);
        let others = others.iter().take(self.connections.saturating_sub(1));
        others.fold(first, |least, slot| if load(slot) < load(least) { slot } else { least })
    }

    async fn connection(&self, slot: &Slot) -> Result<Arc<Connection>, Failure> {
        let mut place = slot.connection.lock().await;
        if let Some(connection) = place.as_ref().filter(|connection| !connection.client.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(connect(&self.address, self.formats).await?);
        self.was_reached.store(true, Ordering::Relaxed);
        *place = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Has each next statement connect again, which checks the format.
    async fn reconnect(&self) {
        for slot in &self.slots {
            *slot.connection.lock().await = None;
        }
    }

    /// A column of a row.
    pub(crate) fn get<T: FromSqlOwned>(&self, row: &Row, column: usize) -> Result<T, StoreError> {
        row.try_get(column).map_err(|error| changed(&self.address, &error.to_string()))
    }

    /// What is against using it, though it can be used. Fails if a table is missing.
    pub(crate) async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        let give_up = |failure: Failure| failure.give_up(&self.address);
        let connection = self.connection(self.least_busy()).await.map_err(give_up)?;
        // Tables of a later format may have other names.
        if connection.newer.is_none() {
            schema::check_tables(&connection.client, &self.address).await.map_err(give_up)?;
        }
        let found = warnings(&connection.client).await;
        found.map_err(|error| give_up(Failure::of(&self.address, &error)))
    }
}

impl Slot {
    /// Closes a connection, unless there is another one since.
    async fn forget(&self, lost: &Arc<Connection>) {
        let mut place = self.connection.lock().await;
        if place.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, lost)) {
            *place = None;
        }
    }
}

struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tries again for a while.
pub(crate) struct Retry<'a> {
    database: &'a Database,
    until: Instant,
    pause: Duration,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database, until: Instant::now() + PATIENCE, pause: PAUSES.0 }
    }

    /// Waits before another try.
    ///
    /// # Errors
    /// When there is no sense in another one: what is to be reported.
    pub(crate) async fn after(&mut self, failure: Failure) -> Result<(), StoreError> {
        let is_worth_it = match &failure {
            // On first use, a setting is at fault.
            Failure::Lost(_) | Failure::Again(StoreError::Unsuitable { .. }) => {
                self.database.was_reached.load(Ordering::Relaxed)
            }
            Failure::Again(_) => true,
            Failure::Duplicate | Failure::Refused(_) => false,
        };
        if !is_worth_it || Instant::now() + self.pause > self.until {
            return Err(failure.give_up(self.database.address()));
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        Ok(())
    }
}
