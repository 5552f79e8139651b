//! Proxies from the environment.

use std::fmt;

use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use crate::env::Env;

/// The proxies of requests, from the variables of `curl` and most others: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` as
/// the default of both, and `NO_PROXY` with the hosts that are reached directly; each also in lower case.
///
/// This machine itself is always reached directly. A proxy is an `http://` or `https://` address, optionally with
/// user and password.
///
/// ```
/// use polylogue_http::{Env, Proxies};
///
/// let env = Env::of([("HTTPS_PROXY", "http://proxy.example:3128"), ("NO_PROXY", "house.example")]);
/// let proxies = Proxies::of(&env);
/// assert_eq!(format!("{proxies:?}"), r#"["HTTPS_PROXY", "NO_PROXY"]"#);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    all: Option<String>,
    http: Option<String>,
    https: Option<String>,
    no: Option<String>,
}

impl Proxies {
    /// The environment variables with proxies, each also in lower case.
    pub const VARIABLES: [&'static str; 4] = ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

    /// Uses no proxies: everything is reached directly.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads the proxies from `env`.
    pub fn of(env: &Env) -> Self {
        // In a CGI program `HTTP_PROXY` is a header of the request.
        if env.address("REQUEST_METHOD").is_some() {
            return Self::none();
        }
        let get = |upper: &str| env.address(upper).or_else(|| env.address(&upper.to_ascii_lowercase()));
        Self {
            all: get("ALL_PROXY"),
            http: get("HTTP_PROXY"),
            https: get("HTTPS_PROXY"),
            no: get("NO_PROXY"),
        }
    }

    /// The proxy for `uri`.
    pub(crate) fn before(&self, uri: &Uri) -> Option<Intercept> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let builder = Matcher::builder().all(text(&self.all)).http(text(&self.http)).https(text(&self.https));
        builder.no(text(&self.no)).build().intercept(uri)
    }
}

/// Shows only which are set: they may contain passwords.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, http, https, no } = self;
        let named = [("ALL_PROXY", all), ("HTTP_PROXY", http), ("HTTPS_PROXY", https), ("NO_PROXY", no)];
        let set = named.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name);
        f.debug_list().entries(set).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies<const N: usize>(vars: [(&str, &str); N]) -> Proxies {
        Proxies::of(&Env::of(vars))
    }

    fn before(proxies: &Proxies, url: &str) -> Option<String> {
        proxies.before(&url.parse().unwrap()).map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn each_scheme_has_its_proxy_and_some_hosts_have_none() {
        let by_scheme = proxies([
            ("HTTP_PROXY", "http://one:1"),
            ("https_proxy", "two:2"),
            ("NO_PROXY", "house.example, 10.0.0.0/8"),
        ]);
        assert_eq!(before(&by_scheme, "http://a.example/v1").as_deref(), Some("http://one:1/"));
        assert_eq!(before(&by_scheme, "https://a.example/v1").as_deref(), Some("http://two:2/"));
        for direct in ["http://house.example/", "https://x.house.example/", "http://10.1.2.3/"] {
            assert_eq!(before(&by_scheme, direct), None, "{direct}");
        }
        let for_all = proxies([("ALL_PROXY", "https://three:3")]);
        assert_eq!(before(&for_all, "http://a.example/").as_deref(), Some("https://three:3/"));
        assert_eq!(before(&Proxies::none(), "http://a.example/"), None);
    }

    #[test]
    fn a_header_of_a_request_is_no_proxy() {
        let cgi = proxies([("HTTP_PROXY", "http://evil:1"), ("REQUEST_METHOD", "GET")]);
        assert_eq!(before(&cgi, "http://a.example/"), None);
    }

    #[test]
    fn a_password_is_not_shown() {
        let secret = proxies([("HTTP_PROXY", "http://me:secret@one:1"), ("NO_PROXY", "x")]);
        assert_eq!(format!("{secret:?}"), r#"["HTTP_PROXY", "NO_PROXY"]"#);
        let proxy = secret.before(&"http://a.example/".parse().unwrap()).unwrap();
        assert!(!format!("{proxy:?} {}", proxy.uri()).contains("secret"));
        assert!(proxy.basic_auth().is_some());
    }
}
