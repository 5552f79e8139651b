//! Addresses of an endpoint and its resources.

use url::Url;

use crate::api::Api;

/// The URL for chat requests. Also accepts a base URL that is already this URL.
pub(crate) fn chat_url(api: Api, base: &str) -> Result<Url, String> {
    place(api, base, api.chat())
}

/// The URL of `path` at the base URL.
pub(crate) fn place(api: Api, base: &str, path: &str) -> Result<Url, String> {
    let mut url = Url::parse(base.trim()).map_err(|why| format!("cannot be read: {why}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("does not begin with `http://` or `https://`".to_owned());
    }
    let path = format!("{}{path}", api.root(url.path()));
    url.set_path(&path);
    url.set_fragment(None);
    Ok(url)
}

/// A URL without possible secrets: credentials and query.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path().trim_end_matches('/'))
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
