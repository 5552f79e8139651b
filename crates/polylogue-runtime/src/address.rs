//! Addresses of endpoints: whether one is reachable, tested without a call that costs, and what can be shown of it.

use std::net::SocketAddr;
use std::time::Duration;

use polylogue_http::is_loopback;
use polylogue_models::{Config, Provider};
use tokio::net::TcpStream;
use url::{Position, Url};

/// How long an endpoint of this machine has to accept a connection.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns whether something accepts connections at the address of `url`, within half a second.
pub async fn listens(url: &str) -> bool {
    let Some(address) = address(url) else { return false };
    matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_)))
}

/// Returns `url` without what may be secret in it: credentials and query.
///
/// ```
/// # use polylogue_runtime::address::shown;
/// assert_eq!(shown("https://me:secret@host:8000/v1?key=secret"), "https://host:8000/v1");
/// assert_eq!(shown("secret"), "an address that is not a URL");
/// ```
pub fn shown(url: &str) -> String {
    let Some(mut url) = parsed(url) else { return "an address that is not a URL".into() };
    // A URL with a host can have both.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    let end = if url.path() == "/" { Position::BeforePath } else { Position::AfterPath };
    url[..end].to_owned()
}

/// Returns whether an endpoint is a local server, which may not be running.
pub fn is_local(config: &Config) -> bool {
    Provider::find(&config.provider).map_or_else(|| is_here(&config.base_url), Provider::is_local)
}

/// Whether an address is one of this machine.
fn is_here(url: &str) -> bool {
    parsed(url).is_some_and(|url| is_loopback(&url))
}

fn address(url: &str) -> Option<SocketAddr> {
    parsed(url)?.socket_addrs(|| None).ok()?.into_iter().next()
}

/// A URL with a host.
fn parsed(url: &str) -> Option<Url> {
    Url::parse(url.trim()).ok().filter(Url::has_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        assert_eq!(shown("https://me:secret@host:8000/v1?key=secret"), "https://host:8000/v1");
        assert_eq!(shown("http://host?key=secret"), "http://host");
        assert_eq!(shown("socks5://me:secret@host:1080"), "socks5://host:1080");
        assert_eq!(shown("secret"), "an address that is not a URL");
        assert_eq!(shown("localhost:8000"), "an address that is not a URL");
    }

    #[test]
    fn the_host_that_is_shown_is_the_one_that_is_reached() {
        for url in [
            r"https://evil.example\@api.example/v1",
            "https:/evil.example/@api.example/v1",
            "https:evil.example/@api.example/v1?x=://api.example",
        ] {
            assert_eq!(shown(url), "https://evil.example/@api.example/v1", "{url}");
        }
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
