//! The names under which a server is reached.

use std::net::IpAddr;

use axum::http::uri::{Authority, Uri};

/// The names under which a server is reached, and the origins whose pages may use it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Whether it listens on loopback addresses only.
    pub(crate) is_loopback: bool,
    /// The host of its public address.
    pub(crate) public: Option<String>,
    /// Whether clients reach it by TLS.
    pub(crate) is_tls: bool,
    /// Origins of other sites.
    pub(crate) origins: Vec<String>,
}

impl Names {
    /// The host in a URL with `http://` or `https://` and no path: the page and the routes are at the root of a host.
    pub(crate) fn host_of(url: &str) -> Option<String> {
        let url = url.parse::<Uri>().ok()?;
        let host = url.host().filter(|host| !host.is_empty())?;
        let is_root = url.path_and_query().is_none_or(|path| path.as_str() == "/");
        (is_root && ["http", "https"].contains(&url.scheme_str()?)).then(|| host.to_owned())
    }

    /// Whether `host` is a name of this server. An IP address is, because no other site can be reached under it.
    pub(crate) fn is_own(&self, host: &str) -> bool {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match address {
            Ok(address) => address.is_loopback() || !self.is_loopback,
            Err(_) => {
                host.eq_ignore_ascii_case("localhost")
                    || self.public.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(host))
            }
        }
    }

    /// Whether pages of `origin` may use the server that was reached as `host`.
    pub(crate) fn is_allowed_origin(&self, origin: &str, host: &Authority) -> bool {
        is_same_origin(origin, host) || self.origins.iter().any(|allowed| allowed == origin)
    }
}

/// Whether a page of `origin` is one of the server that was reached as `host`.
pub(crate) fn is_same_origin(origin: &str, host: &Authority) -> bool {
    let own = origin.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme));
    own.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_refused() {
        let public = Names::host_of("https://polylogue.example:8443/");
        let names = Names { is_loopback: true, public, ..Names::default() };
        for own in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "Polylogue.example"] {
            assert!(names.is_own(own), "{own}");
        }
        for other in ["evil.test", "localhost.evil.test", "10.0.0.1", ""] {
            assert!(!names.is_own(other), "{other}");
        }
        assert!(Names::default().is_own("10.0.0.1"));
        for wrong in ["foo", "a.test:8080", "ftp://a.test", "https://", "https://a.test/x", ""] {
            assert_eq!(Names::host_of(wrong), None, "{wrong}");
        }
        let host: Authority = "localhost:8787".parse().unwrap();
        assert!(names.is_allowed_origin("http://localhost:8787", &host));
        for origin in ["null", "http://localhost:1", "http://evil.test", "file://localhost:8787"] {
            assert!(!names.is_allowed_origin(origin, &host), "{origin}");
        }
    }
}
