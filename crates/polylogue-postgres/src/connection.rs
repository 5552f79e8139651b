//! Connecting, and whether a database keeps what it acknowledges.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};
use tokio_postgres::{AsyncMessage, Client, NoTls, Row};
use tracing::{debug, warn};

use crate::address::Address;
use crate::error::{Failure, on_connecting, unsuitable};
use crate::schema::{self, Formats};
use crate::tls;

/// How long connecting to all hosts of an address may take, and the checks after it.
const LIMIT: Duration = Duration::from_secs(30);

/// The oldest supported version of Postgres.
const OLDEST: i32 = 140_000;

/// A round trip that is longer than this slows every step of a conversation.
const SLOW: Duration = Duration::from_millis(5);

/// A connection, and what may be done with it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The format of the tables, if it is newer than the supported one: they are only read.
    pub(crate) newer: Option<u64>,
}

/// Connects, checks the database, and creates the tables if there are none.
pub(crate) async fn connect(address: &Address, formats: Formats) -> Result<Connection, Failure> {
    in_time(async {
        let (client, has_format) = suitable(address).await?;
        let newer = schema::ensure(&client, address, formats, has_format).await?;
        Ok(Connection { client, newer })
    })
    .await
}

/// Connects to a database whose tables may have another format. If there are none, those of the last format are created.
pub(crate) async fn connect_to_migrate(address: &Address, formats: Formats) -> Result<Client, Failure> {
    in_time(async {
        let (client, has_format) = suitable(address).await?;
        if !has_format {
            schema::create(&client, address, formats).await?;
        }
        Ok(client)
    })
    .await
}

async fn in_time<T>(connecting: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let late = |_| Failure::Lost(format!("it did not answer for {} s", LIMIT.as_secs()));
    timeout(LIMIT, connecting).await.map_err(late)?
}

/// Connects to a database that keeps what it acknowledges. Returns whether it has tables.
async fn suitable(address: &Address) -> Result<(Client, bool), Failure> {
    let client = open(address).await?;
    let failed = |error: tokio_postgres::Error| Failure::of(address, &error);
    let begun = Instant::now();
    let row = client.query_typed_one(SETTINGS, &[]).await.map_err(failed)?;
    let settings = Settings::read(&row).map_err(failed)?;
    settings.check(address).map_err(Failure::Refused)?;
    debug!(%address, round_trip = ?begun.elapsed(), "connected");
    Ok((client, settings.has_format))
}

async fn open(address: &Address) -> Result<Client, Failure> {
    open_with(address, None).await
}

/// What is done with the payload of each notification; an empty one when the connection ends.
pub(crate) type OnNotification = Arc<dyn Fn(&str) + Send + Sync>;

/// A connection that tells of its notifications, and of its end.
pub(crate) async fn open_with(address: &Address, heard: Option<OnNotification>) -> Result<Client, Failure> {
    use tokio_postgres::config::SslMode;
    match address.config.get_ssl_mode() {
        SslMode::Disable => {
            let connected = address.config.connect(NoTls).await;
            let (client, connection) = connected.map_err(|error| on_connecting(address, &error))?;
            tokio::spawn(drive(connection, heard));
            Ok(client)
        }
        _ => {
            let tls = tls::connector(address.root_certificates.as_deref()).map_err(Failure::Refused)?;
            let connected = address.config.connect(tls).await;
            let (client, connection) = connected.map_err(|error| on_connecting(address, &error))?;
            tokio::spawn(drive(connection, heard));
            Ok(client)
        }
    }
}

/// Runs a connection, which ends with its client. Each statement reports its own error.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, heard: Option<OnNotification>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(notification) = message {
            heard.iter().for_each(|heard| heard(notification.payload()));
        }
    }
    heard.iter().for_each(|heard| heard(""));
}

const SETTINGS: &str = "SELECT current_setting('server_version_num')::int, current_setting('fsync'),
    current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('server_encoding'),
    pg_is_in_recovery(), to_regclass('polylogue.format') IS NOT NULL,
    current_setting('synchronous_standby_names') <> '', current_setting('transaction_read_only')::bool,
    current_setting('transaction_isolation')";

/// What decides whether a database can be used.
struct Settings {
    version: i32,
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    encoding: String,
    is_replica: bool,
    has_format: bool,
    /// Whether a commit waits for a standby, unless `synchronous_commit` says otherwise.
    has_synchronous_standby: bool,
    /// Whether transactions cannot write unless they ask for it.
    is_read_only: bool,
    /// The isolation level of transactions that ask for none, as those of single statements.
    isolation: String,
}

impl Settings {
    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            version: row.try_get(0)?,
            fsync: row.try_get(1)?,
            full_page_writes: row.try_get(2)?,
            synchronous_commit: row.try_get(3)?,
            encoding: row.try_get(4)?,
            is_replica: row.try_get(5)?,
            has_format: row.try_get(6)?,
            has_synchronous_standby: row.try_get(7)?,
            is_read_only: row.try_get(8)?,
            isolation: row.try_get(9)?,
        })
    }

    fn check(&self, address: &Address) -> Result<(), StoreError> {
        let crash = "a crash of its machine would lose or damage conversations";
        let rules = [
            (
                self.version < OLDEST,
                format!("it is version {} of Postgres", self.version / 10_000),
                "use version 14 or later",
            ),
            (
                self.is_replica,
                "it is a replica, which lags behind".into(),
                "name the primary; of several hosts, separated by commas, the primary is found",
            ),
            (
                self.is_read_only,
                "it is read-only: `default_transaction_read_only` is on".into(),
                "`ALTER ROLE ... RESET default_transaction_read_only` for the user in the address, or the same of the database or its \
                 configuration; some providers set it while a disk is full",
            ),
            (
                self.fsync == "off",
                format!("`fsync` is off: {crash}"),
                "set `fsync = on` in its configuration, and restart it",
            ),
            (
                self.full_page_writes == "off",
                format!("`full_page_writes` is off: {crash}"),
                "set `full_page_writes = on` in its configuration",
            ),
            (
                self.synchronous_commit == "off",
                "`synchronous_commit` is off: a crash of it would lose acknowledged events".into(),
                "`ALTER ROLE ... SET synchronous_commit = on` for the user in the address, or set it in its configuration",
            ),
            (
                self.has_synchronous_standby
                    && matches!(self.synchronous_commit.as_str(), "local" | "remote_write"),
                format!(
                    "`synchronous_commit` is {}: a failover to its synchronous standby would lose acknowledged events",
                    self.synchronous_commit
                ),
                "`ALTER ROLE ... SET synchronous_commit = on` for the user in the address, or set it in its configuration",
            ),
            (
                !self.isolation.starts_with("read "),
                format!(
                    "`default_transaction_isolation` is {}: statements that wait for each other would fail",
                    self.isolation
                ),
                "`ALTER ROLE ... IN DATABASE ... SET default_transaction_isolation = 'read committed'` for the user and the database in \
                 the address",
            ),
            (
                self.encoding != "UTF8",
                format!("its encoding is {}, which cannot hold every text", self.encoding),
                "create a database with `createdb --encoding=UTF8 --template=template0`",
            ),
        ];
        match rules.into_iter().find(|(is_broken, ..)| *is_broken) {
            None => Ok(()),
            Some((_, why, hint)) => Err(unsuitable(address, &why, hint)),
        }
    }
}

/// How many standbys follow asynchronously. Users without the role `pg_monitor` see that there are standbys, but not how they follow.
const ASYNCHRONOUS: &str = "SELECT count(*) FROM pg_stat_replication WHERE coalesce(state, '') <> 'backup'
    AND CASE WHEN sync_state IS NULL THEN current_setting('synchronous_standby_names') = '' ELSE sync_state = 'async' END";

/// Timeouts of the database that are shorter than those here.
const TIMEOUTS: &str = "SELECT format('`%s` is %s', name, current_setting(name)) FROM pg_settings
    WHERE CASE WHEN name IN ('lock_timeout', 'statement_timeout', 'transaction_timeout') THEN setting::bigint BETWEEN 1 AND 59999 ELSE false END
    ORDER BY name";

/// What a database that can be used has against it, in words.
pub(crate) async fn warnings(client: &Client) -> Result<Vec<String>, tokio_postgres::Error> {
    let begun = Instant::now();
    client.query_typed("SELECT 1", &[]).await?;
    let round_trip = begun.elapsed();
    let standbys: i64 = client.query_typed_one(ASYNCHRONOUS, &[]).await?.try_get(0)?;
    let mut warnings = Vec::new();
    let loses = "may lose acknowledged events";
    match standbys {
        0 => {}
        1 => warnings.push(format!("a standby follows asynchronously: a failover to it {loses}")),
        _ => warnings
            .push(format!("{standbys} standbys follow asynchronously: a failover to one of them {loses}")),
    }
    if round_trip > SLOW {
        warnings.push(format!(
            "a statement takes {} ms: every step of a conversation waits for one",
            round_trip.as_millis()
        ));
    }
    for row in client.query_typed(TIMEOUTS, &[]).await? {
        let setting: String = row.try_get(0)?;
        warnings.push(format!(
            "{setting}: statements that take longer are canceled, and fail after half a minute"
        ));
    }
    warnings.iter().for_each(|warning| warn!("{warning}"));
    Ok(warnings)
}
