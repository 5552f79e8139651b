//! Errors of the database as errors of a store.

use std::error::Error as _;
use std::fmt::Display;

use polylogue_core::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why a statement failed.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The connection was lost, for this reason: whether the statement was executed is unknown.
    Lost(String),
    /// It was not executed, because of another transaction, or in the time that the database allows. Another try may succeed; if none
    /// does, this is the error.
    Again(StoreError),
    /// It was not executed, because a row has the same key.
    Duplicate,
    /// It was not executed.
    Refused(StoreError),
}

impl Failure {
    /// What `error` of a statement on the database at `address` means.
    pub(crate) fn of(address: &impl Display, error: &Error) -> Self {
        let Some(code) = error.code() else {
            return match is_of_connection(error) {
                true => Self::Lost(why(error)),
                false => Self::Refused(io(address, error)),
            };
        };
        match *code {
            SqlState::UNIQUE_VIOLATION => Self::Duplicate,
            SqlState::T_R_DEADLOCK_DETECTED
            // A team that was there is removed.
            | SqlState::FOREIGN_KEY_VIOLATION => Self::Again(io(address, error)),
            SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE => {
                Self::Again(unsuitable(address, &why(error), TIMEOUT))
            }
            // After a failover the server may be a replica: the next connection looks for the primary. If it was only made read-only, or
            // transactions were given another isolation level, the checks of that connection say so.
            SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::T_R_SERIALIZATION_FAILURE => {
                Self::Lost(why(error))
            }
            _ if LOST.iter().any(|class| code.code().starts_with(class)) => Self::Lost(why(error)),
            _ => Self::Refused(refusal(address, error, code)),
        }
    }

    /// As the error of an operation that is given up.
    pub(crate) fn give_up(self, address: &impl Display) -> StoreError {
        match self {
            Self::Lost(why) => StoreError::Unreachable { place: address.to_string(), why },
            Self::Duplicate => {
                StoreError::Io { place: address.to_string(), why: "a row has the same key".into() }
            }
            Self::Again(error) | Self::Refused(error) => error,
        }
    }
}

/// Codes and classes of codes after which the server closes the connection: it is shut down, or by its timeouts of transactions.
const LOST: [&str; 4] = ["57P", "08", "25P03", "25P04"];

const TIMEOUT: &str = "`ALTER ROLE ... SET statement_timeout = 0` for the user in the address, and the same of `lock_timeout`, or give both a \
                       minute or more";

/// How a user gets the rights that every process needs.
pub(crate) const GRANT: &str = "let its user create the schema `polylogue` once, or grant it the rights on that schema: `GRANT USAGE ON SCHEMA \
                                polylogue`, `GRANT ALL ON ALL TABLES IN SCHEMA polylogue` and `GRANT ALL ON ALL SEQUENCES IN SCHEMA \
                                polylogue`";

const PASSWORD: &str =
    "set the password with `PGPASSWORD` or in `~/.pgpass`, and check the user in the address";

/// Why connecting to the database at `address` failed.
pub(crate) fn on_connecting(address: &impl Display, error: &Error) -> Failure {
    let Some(code) = error.code() else {
        let why = why(error);
        return match is_configuration(error) {
            true if why.contains("password") => Failure::Refused(unsuitable(address, &why, PASSWORD)),
            true => Failure::Refused(unsuitable(
                address,
                &why,
                "check `sslmode` in the address; `sslrootcert=FILE` in it names the authority that signed the server's certificate",
            )),
            false => Failure::Lost(why),
        };
    };
    let hint = match *code {
        SqlState::INVALID_CATALOG_NAME => "create it with `createdb`, or correct its name in the address",
        _ if code.code().starts_with("28") => PASSWORD,
        _ => match Failure::of(address, error) {
            // There may be a place for one more connection soon.
            Failure::Refused(_) if *code == SqlState::TOO_MANY_CONNECTIONS => {
                return Failure::Lost(format!("it takes no more connections: {}", why(error)));
            }
            failure => return failure,
        },
    };
    Failure::Refused(unsuitable(address, &why(error), hint))
}

pub(crate) fn unsuitable(address: &impl Display, why: &str, hint: &str) -> StoreError {
    StoreError::Unsuitable { place: address.to_string(), why: why.into(), hint: hint.into() }
}

/// The error for tables that are not those that were made. No conversation is at fault.
pub(crate) fn changed(address: &impl Display, why: &str) -> StoreError {
    let why = format!("its schema `polylogue` was changed: {why}");
    unsuitable(address, &why, "restore that schema from a backup, or name another database with `--store`")
}

/// The error about an address, which it does not quote: it may have a password.
pub(crate) fn wrong(why: &str, hint: &str) -> StoreError {
    unsuitable(&"the address of the database", why, hint)
}

fn io(address: &impl Display, error: &Error) -> StoreError {
    StoreError::Io { place: address.to_string(), why: why(error) }
}

fn refusal(address: &impl Display, error: &Error, code: &SqlState) -> StoreError {
    match *code {
        SqlState::DISK_FULL => StoreError::Full { place: address.to_string() },
        SqlState::INSUFFICIENT_PRIVILEGE => unsuitable(address, &why(error), GRANT),
        SqlState::UNDEFINED_TABLE
        | SqlState::UNDEFINED_COLUMN
        | SqlState::UNDEFINED_FUNCTION
        | SqlState::INVALID_SCHEMA_NAME => changed(address, &why(error)),
        _ => io(address, error),
    }
}

/// Whether the connection failed, not a statement.
fn is_of_connection(error: &Error) -> bool {
    error.is_closed() || sources(error).any(|source| source.is::<std::io::Error>())
}

/// Whether connecting failed by what was configured, and would fail again.
fn is_configuration(error: &Error) -> bool {
    let is_refused_certificate = |source: &(dyn std::error::Error + 'static)| {
        source
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
            .is_some_and(|inner| inner.is::<rustls::Error>())
    };
    let text = error.to_string();
    text.contains("authentication")
        || text.contains("configuration")
        || (text.contains("TLS") && !is_of_connection(error))
        || sources(error).any(is_refused_certificate)
}

fn sources(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |source| (*source).source())
}

/// What happened, in one line.
fn why(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        return format!("{}{detail}", error.message()).replace('\n', ", ");
    }
    let sources: Vec<String> = sources(error).map(ToString::to_string).collect();
    match sources.last() {
        Some(source) if error.is_closed() || sources.len() == 1 => source.replace('\n', ", "),
        Some(source) => format!("{error}: {source}").replace('\n', ", "),
        None => error.to_string(),
    }
}
