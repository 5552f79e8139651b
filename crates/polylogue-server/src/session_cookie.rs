//! The cookie of the page. Its text is a token of the kind `Session`, so that sessions are listed, limited and revoked as tokens are.

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method};

use crate::names::is_same_origin;

/// How long browsers keep it, in seconds: as long as a session lasts.
const MAX_AGE: u64 = 30 * 24 * 60 * 60;

/// Its name. Cookies are shared by all ports of a host, so it has the port.
fn name(headers: &HeaderMap, is_tls: bool) -> String {
    let port = host(headers).and_then(|host| host.port_u16());
    let port = port.map(|port| format!("-{port}")).unwrap_or_default();
    let prefix = if is_tls { "__Host-" } else { "" };
    format!("{prefix}polylogue{port}")
}

fn host(headers: &HeaderMap) -> Option<Authority> {
    headers.get(HOST)?.to_str().ok()?.parse().ok()
}

/// The text of the session in a request.
pub(crate) fn read(headers: &HeaderMap, is_tls: bool) -> Option<&str> {
    let name = name(headers, is_tls);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, text)| text)
}

/// The header that sets it to `text`, or removes it.
pub(crate) fn write(headers: &HeaderMap, is_tls: bool, text: Option<&str>) -> Option<HeaderValue> {
    let (name, secure) = (name(headers, is_tls), if is_tls { "; Secure" } else { "" });
    let (text, age) = text.map_or(("", 0), |text| (text, MAX_AGE));
    let cookie = format!("{name}={text}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}");
    HeaderValue::from_str(&cookie).ok()
}

/// Whether the page sent a request, as far as browsers tell: another port of this host is another origin, but gets the cookie as well.
/// What only reads can come from a person, too, who opens it.
pub(crate) fn is_from_page(method: &Method, headers: &HeaderMap) -> bool {
    let reads = [Method::GET, Method::HEAD].contains(method);
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let own =
        text(ORIGIN.as_str()).map(|origin| host(headers).is_some_and(|host| is_same_origin(origin, &host)));
    match (text("sec-fetch-site"), own) {
        (_, Some(false)) => false,
        (Some("same-origin"), _) => true,
        (Some("none"), _) => reads,
        (Some(_), _) => false,
        (None, own) => own.unwrap_or(reads),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn each_port_has_a_cookie_of_its_own() {
        let own =
            headers(&[("host", "localhost:8787"), ("cookie", "a=b; polylogue-8787=ply_1; polylogue=x")]);
        assert_eq!(read(&own, false), Some("ply_1"));
        assert_eq!(read(&own, true), None);
        let public = headers(&[("host", "teams.example"), ("cookie", "__Host-polylogue=ply_2")]);
        assert_eq!(read(&public, true), Some("ply_2"));
        assert_eq!(read(&public, false), None);
        assert_eq!(
            write(&public, true, Some("ply_3")).unwrap(),
            "__Host-polylogue=ply_3; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000; Secure"
        );
        assert_eq!(
            write(&own, false, None).unwrap(),
            "polylogue-8787=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"
        );
    }

    #[test]
    fn only_the_page_changes_something_with_the_cookie() {
        let of = |method, pairs: &[(&'static str, &'static str)]| {
            let mut headers = headers(pairs);
            headers.insert(HOST, HeaderValue::from_static("localhost:8787"));
            is_from_page(&method, &headers)
        };
        let (get, post) = (Method::GET, Method::POST);
        assert!(of(get.clone(), &[]) && !of(post.clone(), &[]));
        assert!(
            of(get.clone(), &[("sec-fetch-site", "none")])
                && !of(post.clone(), &[("sec-fetch-site", "none")])
        );
        assert!(of(post.clone(), &[("sec-fetch-site", "same-origin")]));
        assert!(of(post.clone(), &[("origin", "http://localhost:8787")]));
        for pair in [
            ("origin", "http://localhost:1"),
            ("origin", "https://app.example"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "cross-site"),
        ] {
            assert!(!of(get.clone(), &[pair]) && !of(post.clone(), &[pair]), "{pair:?}");
        }
    }
}
