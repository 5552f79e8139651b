//! Addresses of endpoints: whether one is reachable, tested without a call that costs, and what can be shown of it.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use polylogue_models::{Config, Provider};
use tokio::net::TcpStream;

/// How long an endpoint of this machine has to accept a connection.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether something accepts connections at the address of `url`, within half a second.
pub async fn listens(url: &str) -> bool {
    let Some(address) = address(url) else { return false };
    matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_)))
}

/// `url` without what may be secret in it: credentials and query.
///
/// ```
/// # use polylogue_runtime::address::shown;
/// assert_eq!(shown("https://me:secret@host:8000/v1?key=secret"), "https://host:8000/v1");
/// assert_eq!(shown("secret"), "an address that is not a URL");
/// ```
#[must_use]
pub fn shown(url: &str) -> String {
    let Some((scheme, host, path)) = split(url) else { return "an address that is not a URL".into() };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Whether an endpoint is a local server, which may not be running.
#[must_use]
pub fn is_local(config: &Config) -> bool {
    Provider::find(&config.provider).map_or_else(|| is_here(&config.base_url), Provider::is_local)
}

/// Whether an address is one of this machine.
fn is_here(url: &str) -> bool {
    let host = host(url).unwrap_or_default();
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The host in `url`, without its port and without the brackets of an address.
fn host(url: &str) -> Option<&str> {
    let (_, authority, _) = split(url)?;
    match authority.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => authority.split(':').next(),
    }
}

fn address(url: &str) -> Option<SocketAddr> {
    let (scheme, host, _) = split(url)?;
    let port = if scheme == "https" { 443 } else { 80 };
    let found = host.to_socket_addrs().or_else(|_| (host.trim_matches(['[', ']']), port).to_socket_addrs());
    found.ok()?.next()
}

/// The scheme, the host with its port, and the rest.
fn split(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    Some((scheme, authority.rsplit('@').next()?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        assert_eq!(shown("https://me:secret@host:8000/v1?key=secret"), "https://host:8000/v1");
        assert_eq!(shown("http://host?key=secret"), "http://host");
        assert_eq!(shown("secret"), "an address that is not a URL");
    }

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        assert!(["http://localhost:1/v1", "http://127.0.0.2", "https://[::1]:8/v1"].into_iter().all(is_here));
        assert!(
            !["http://10.0.0.5:8000/v1", "http://localhost.example/v1", "localhost"].into_iter().any(is_here)
        );
    }

    #[test]
    fn ports_are_known_by_the_scheme() {
        let found = |url| address(url).map(|address| address.to_string());
        assert_eq!(found("http://127.0.0.1/v1").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(found("https://127.0.0.1").as_deref(), Some("127.0.0.1:443"));
        assert_eq!(found("http://[::1]:9/v1").as_deref(), Some("[::1]:9"));
        assert_eq!(found("http://[::1]/v1").as_deref(), Some("[::1]:80"));
        assert_eq!(found("127.0.0.1"), None);
    }
}
