//! Addresses of an endpoint and its resources.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::{ParseError, Url};

use crate::api::Api;

/// Parses a base URL.
pub(crate) fn base(text: &str) -> Result<Url, String> {
    match Url::parse(text.trim()) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host_str().is_some() => Ok(url),
        Ok(_) | Err(ParseError::RelativeUrlWithoutBase) => {
            Err("does not begin with `http://` or `https://`".to_owned())
        }
        Err(why) => Err(format!("cannot be read: {why}")),
    }
}

/// The URL of `target`, a path that may have a query, at the base URL, which may be that of chat requests, too.
pub(crate) fn place(api: Api, base: &Url, target: &str) -> Url {
    let mut url = base.clone();
    let (path, query) = target.split_once('?').unzip();
    url.set_path(&format!("{}{}", api.root(base.path()), path.unwrap_or(target)));
    let both: Vec<&str> = base.query().into_iter().chain(query).collect();
    url.set_query(Some(both.join("&")).as_deref().filter(|query| !query.is_empty()));
    url.set_fragment(None);
    url
}

/// What is encoded in a segment of a path.
const ENCODED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');

/// As [`ENCODED`], and all that RFC 3986 reserves.
const STRICTLY_ENCODED: AsciiSet = ENCODED.add(b':').add(b'@');

/// `text` as one segment of a path, percent-encoded as Amazon's services expect it: with `:` and `@`.
pub(crate) fn strict_segment(text: &str) -> String {
    utf8_percent_encode(text, &STRICTLY_ENCODED).to_string()
}

/// `text` as one segment of a path, percent-encoded.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, &ENCODED).to_string()
}

/// A URL without possible secrets: credentials and query.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path().trim_end_matches('/'))
}

/// The possible secrets of a URL, as it has them and as they are sent: its password, a user without one, which is a token, and the
/// values of its query.
pub(crate) fn secrets(url: &Url) -> Vec<String> {
    let user = Some(url.username()).filter(|_| url.password().is_none_or(str::is_empty));
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let credentials =
        url.password().into_iter().chain(user).flat_map(|text| [text.to_owned(), decoded(text)]);
    credentials.chain(url.query_pairs().map(|(_, value)| value.into_owned())).collect()
}

/// `OLLAMA_HOST` as a client address. The variable is made for the server: scheme and port may be missing, and the
/// host may be the one that listens on all interfaces.
pub(crate) fn of_ollama(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (name, Some(port))
        }
        _ => (authority.trim_end_matches(':'), None),
    };
    let name = match name {
        "" | "0.0.0.0" | "[::]" | "::" => "127.0.0.1",
        name => name,
    };
    let port = match (port, host.contains("://"), scheme) {
        (Some(port), ..) => format!(":{port}"),
        (None, true, "https" | "http") => String::new(),
        _ => ":11434".to_owned(),
    };
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{name}{port}{slash}{path}")
}
