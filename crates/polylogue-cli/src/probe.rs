//! Whether an endpoint is reachable, tested without a call that costs.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use polylogue::ModelError;
use polylogue_models::{Api, Config, Endpoint, ServedModel, Timeouts};
use tokio::net::TcpStream;

/// How long an endpoint of this machine has to accept a connection.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether something accepts connections at the address of `url`.
pub(crate) async fn listens(url: &str) -> bool {
    let Some(address) = address(url) else { return false };
    matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_)))
}

/// How long a server has to say what models it has.
const LISTING: Duration = Duration::from_secs(2);

/// So many models are named.
const MAX_NAMED: usize = 20;

/// What an Ollama server says of itself and of its models, a few lines; nothing of other servers.
pub(crate) async fn ollama(config: &Config) -> Vec<String> {
    if config.api != Api::Ollama {
        return Vec::new();
    }
    let models = async {
        let timeouts = Timeouts { total: LISTING, connect: LISTING, ..config.timeouts };
        let endpoint = Endpoint::new(Config { timeouts, ..config.clone() })?;
        Ok::<_, ModelError>((endpoint.version().await?, endpoint.models().await?))
    };
    match models.await {
        Ok((version, models)) => {
            [format!("Ollama {}", version.unwrap_or_default())].into_iter().chain([named(&models)]).collect()
        }
        Err(error) => vec![format!("which models it has is not known: {}", error.message)],
    }
}

fn named(models: &[ServedModel]) -> String {
    if models.is_empty() {
        return "no models yet: get one with `ollama pull llama3.2`".to_owned();
    }
    let size = |model: &ServedModel| model.bytes.map(|bytes| format!(" ({})", gigabytes(bytes)));
    let name = |model: &ServedModel| format!("{}{}", model.name, size(model).unwrap_or_default());
    let names: Vec<String> = models.iter().take(MAX_NAMED).map(name).collect();
    let more = models.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("models: {}{more}", names.join(", "))
}

/// In units of 10⁹ bytes, with one digit after the point, as `ollama list` shows it.
fn gigabytes(bytes: u64) -> String {
    let tenths = bytes.saturating_add(50_000_000) / 100_000_000;
    format!("{}.{} GB", tenths / 10, tenths % 10)
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
    fn models_are_named_with_their_sizes_up_to_a_bound() {
        assert_eq!([2_019_393_189, 49_999_999, 950_000_000].map(gigabytes), ["2.0 GB", "0.0 GB", "1.0 GB"]);
        assert!(named(&[]).contains("`ollama pull llama3.2`"));
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
