//! Whether somebody is there, found out without asking anything that costs.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::net::TcpStream;

/// How long an endpoint of this machine has to accept a connection.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether something accepts connections at the address of `url`.
pub(crate) async fn listens(url: &str) -> bool {
    let Some(address) = address(url) else { return false };
    matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_)))
}

/// `url` without what may be secret in it: credentials and query.
pub(crate) fn shown(url: &str) -> String {
    let Some((scheme, host, path)) = split(url) else { return "an address that is no URL".into() };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// The host in `url`, without its port and without the brackets of an address.
pub(crate) fn host(url: &str) -> Option<&str> {
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
        assert_eq!(shown("secret"), "an address that is no URL");
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
