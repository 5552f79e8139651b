//! Addresses of databases: `postgres://USER@HOST/DATABASE`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use polylogue_core::StoreError;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Config, config};

use crate::error::wrong;
use crate::password;

/// How long connecting to one host may take.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a connection is silent before the other side is asked whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The address of a database, and how to log in.
///
/// `Display` and `Debug` show no password.
#[derive(Clone, derive_more::Debug)]
#[debug("Address({shown:?})")]
pub struct Address {
    pub(crate) config: Config,
    /// A file of certificates to trust instead of the system's.
    pub(crate) root_certificates: Option<PathBuf>,
    shown: String,
    /// Whether the text had a password.
    has_password: bool,
}

impl Address {
    /// Returns whether `text` is an address, right or wrong, and not a path.
    pub fn is_address(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Parses `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, as `psql` takes it. Several hosts are tried in order, until one is a
    /// primary. A password that it lacks is that of the variable `PGPASSWORD`, or of the file `PGPASSFILE`, by default
    /// `~/.pgpass`.
    ///
    /// The connection is encrypted and the server's certificate verified, unless all hosts are on this machine. `sslmode=disable` and
    /// `sslmode=require` decide otherwise; `sslrootcert=FILE` has certificates to trust instead of the system's.
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] when it is not an address, or the file with the password can be read by others.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let (plain, own) = OwnParameters::take_from(text)?;
        let mut config: Config = plain.parse().map_err(|error| wrong(&reason(&error), HINT))?;
        let shown = shown(&config);
        // An `@` or `:` in a password that is not escaped makes the rest of it a part of the host.
        let is_host = |host: &Host| match host {
            Host::Tcp(name) => !name.is_empty() && !name.contains(['@', '/']),
            #[cfg(unix)]
            Host::Unix(_) => true,
        };
        if !config.get_hosts().iter().all(is_host) {
            return Err(wrong(
                "its host is not a name",
                "write `@` in a password as `%40`, and `/` as `%2F`",
            ));
        }
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no host", HINT));
        }
        if config.get_options().is_some_and(|options| options.contains("search_path")) {
            return Err(wrong(
                "its `search_path` chooses no tables: all are in the schema `polylogue`",
                "remove it; another cluster needs a database of its own, which `createdb` makes",
            ));
        }
        let has_password = config.get_password().is_some();
        if !has_password && let Some(password) = password::look_up(&config)? {
            config.password(password);
        }
        config.ssl_mode(own.mode.unwrap_or_else(|| match config.get_hosts().iter().all(is_here) {
            true => SslMode::Disable,
            false => SslMode::Require,
        }));
        set_defaults(&mut config);
        Ok(Self { config, root_certificates: own.root_certificates, shown, has_password })
    }

    /// Returns whether the parsed text had a password. On a command line, other users of the machine can read it.
    pub const fn has_password(&self) -> bool {
        self.has_password
    }

    /// Returns a name for folders of this database on this machine: hosts, ports and the database.
    pub fn folder_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '.' };
        let text = self.shown.split_once("://").map_or("", |(_, rest)| rest);
        decoded(text.rsplit_once('@').map_or(text, |(_, rest)| rest)).chars().map(plain).collect()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config && self.root_certificates == other.root_certificates
    }
}

impl Eq for Address {}

const HINT: &str = "write it as `postgres://USER@HOST:5432/DATABASE`";

/// What is wrong, which names keys but no values.
fn reason(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Parameters that `tokio-postgres` does not know, or takes otherwise.
#[derive(Default)]
struct OwnParameters {
    mode: Option<SslMode>,
    root_certificates: Option<PathBuf>,
}

impl OwnParameters {
    /// The text without these parameters, and their values.
    fn take_from(text: &str) -> Result<(String, Self), StoreError> {
        let mut own = Self::default();
        let Some((base, query)) = text.rsplit_once('?') else { return Ok((text.to_owned(), own)) };
        let mut others = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => own.mode = Some(mode_of(mode)?),
                Some(("sslrootcert", file)) => own.root_certificates = Some(decoded(file).into()),
                _ => others.push(pair),
            }
        }
        let rest = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
        Ok((format!("{base}{rest}"), own))
    }
}

fn mode_of(text: &str) -> Result<SslMode, StoreError> {
    match text {
        "disable" => Ok(SslMode::Disable),
        // Certificates are always verified.
        "require" | "verify-full" => Ok(SslMode::Require),
        _ => Err(wrong(
            "its `sslmode` is neither `require` nor `disable`",
            "use `sslmode=require`, which verifies the server's certificate, or `sslmode=disable`",
        )),
    }
}

/// Text with `%2F` and the like.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Text with `%2F` and the like for what has a meaning in addresses.
fn encoded(text: &str) -> String {
    const MEANS_SOMETHING: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');
    utf8_percent_encode(text, MEANS_SOMETHING).to_string()
}

/// Whether a host is this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn set_defaults(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_application_name().is_none() {
        config.application_name("polylogue");
    }
    config.keepalives_idle(KEEP_ALIVE).keepalives_interval(KEEP_ALIVE).keepalives_retries(3);
    config.tcp_user_timeout(KEEP_ALIVE * 4);
    if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

/// The address without password and parameters, as [`Address::parse`] takes it.
fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let host = |(at, host): (usize, &config::Host)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(at)),
        Host::Tcp(name) => format!("{name}:{}", port(at)),
        #[cfg(unix)]
        Host::Unix(path) => format!("{}:{}", encoded(&path.to_string_lossy()), port(at)),
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let user = config.get_user().map(|user| format!("{}@", encoded(user))).unwrap_or_default();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{}/{}", hosts.join(","), encoded(database))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password_and_can_be_given_again() {
        let cases = [
            ("postgres://ann:s3cret@db.example.com/chats", "postgres://ann@db.example.com:5432/chats"),
            ("postgresql://ann:s3cret@a:5433,b/chats?sslmode=require", "postgres://ann@a:5433,b:5432/chats"),
            ("postgres://ann@%2Fvar%2Frun/chats?password=s3cret", "postgres://ann@%2Fvar%2Frun:5432/chats"),
            ("postgres://ann%40x:s3cret@db/my%20chats", "postgres://ann%40x@db:5432/my%20chats"),
            ("postgres://ann:s3cret@[::1]:7/x", "postgres://ann@[::1]:7/x"),
        ];
        for (text, wanted) in cases {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), wanted);
            assert!(address.has_password() && !format!("{address:?}").contains("s3cret"));
            assert!(!format!("{:?}", address.config).contains("s3cret"));
            assert_eq!(Address::parse(wanted).unwrap().to_string(), wanted);
        }
    }

    #[test]
    fn a_wrong_address_is_refused_without_quoting_it() {
        let cases = [
            ("postgres://ann:s3@cret@db/x", "its host is not a name"),
            ("postgres://ann:s3cret@/x", "it names no host"),
            ("postgres://ann:s3cret@db:s3cret/x", "invalid value for option `port`"),
            ("postgres://ann:s3cret@db/x?shade=red", "unknown option `shade`"),
            (
                "postgres://ann:s3cret@db/x?options=-csearch_path%3Dother",
                "its `search_path` chooses no tables: all are in the schema `polylogue`",
            ),
            ("postgres://ann:s3cret@db/x?sslmode=prefer", "its `sslmode` is neither `require` nor `disable`"),
        ];
        for (text, wanted) in cases {
            let error = Address::parse(text).unwrap_err();
            let said = format!("{error} {error:?} {:?}", error.hint());
            assert!(error.to_string().ends_with(wanted), "{error}");
            assert!(!said.contains("s3") && error.hint().is_some(), "{said}");
        }
    }

    #[test]
    fn a_connection_to_another_machine_is_encrypted_by_default() {
        let cases = [
            ("postgres://a:b@db.example.com/x", SslMode::Require),
            ("postgres://a:b@db.example.com/x?sslmode=disable", SslMode::Disable),
            ("postgres://a:b@localhost,db.example.com/x", SslMode::Require),
            ("postgres://a:b@127.0.0.1/x", SslMode::Disable),
            ("postgres://a:b@%2Ftmp/x", SslMode::Disable),
            ("postgres://a:b@localhost/x?sslmode=verify-full&connect_timeout=3", SslMode::Require),
        ];
        for (text, wanted) in cases {
            assert_eq!(Address::parse(text).unwrap().config.get_ssl_mode(), wanted, "{text}");
        }
        let own =
            Address::parse("postgres://a:b@db/x?sslrootcert=%2Fetc%2Fmy.pem&connect_timeout=3").unwrap();
        assert_eq!(own.root_certificates, Some("/etc/my.pem".into()));
        assert_eq!(own.config.get_connect_timeout(), Some(&Duration::from_secs(3)));
    }

    #[test]
    fn several_hosts_are_tried_until_one_is_a_primary() {
        let address = Address::parse("postgres://a:b@one,two/x").unwrap();
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn a_folder_of_a_database_is_named_by_it() {
        let name = |text| Address::parse(text).unwrap().folder_name();
        assert_eq!(name("postgres://ann:b@db.example.com/chats"), "db.example.com.5432.chats");
        assert_eq!(name("postgres://ann:b@%2Fvar%2Frun/../x"), ".var.run.5432....x");
    }
}
