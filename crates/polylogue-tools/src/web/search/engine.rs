//! Search engines over HTTP.

use std::time::Duration;

use polylogue_core::text;
use polylogue_http::header::HeaderValue;
use polylogue_http::{Client, Key, Method, NetworkAccess, Proxies, Redactor};
use serde_json::{Value, json};
use url::Url;

use super::{Hit, Search};
use crate::exchange::{Ask, End, ask, status_in_words};
use crate::web::fetch::LONGEST_ADDRESS;
use crate::web::html::read_html;

/// Timeout, and maximum size of a response.
const TIME: Duration = Duration::from_secs(20);
const MAX_BYTES: usize = 2 << 20;
/// Maximum number of results of engines with a key.
const MOST: usize = 20;

/// A search engine over HTTP.
#[derive(Debug)]
pub struct Engine {
    kind: EngineKind,
    url: Url,
    host: String,
    key: Option<Key>,
    client: Client,
}

/// The API of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// `SearXNG` on a server of your own, which must answer in JSON (`search.formats` of its settings).
    Searxng,
    /// Brave's web search; requires a key.
    Brave,
    /// Tavily; requires a key.
    Tavily,
}

impl EngineKind {
    /// Returns the default address, if there is one.
    pub const fn url(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Self::Tavily => Some("https://api.tavily.com/search"),
        }
    }

    /// Returns the usual environment variable of its key, if it requires one.
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Tavily => Some("TAVILY_API_KEY"),
        }
    }
}

impl Engine {
    /// Creates the engine at `base`. Default: the provider's address. For `SearXNG`, the address of its start page.
    ///
    /// # Errors
    /// When the address or a required key is missing, or the address is invalid.
    pub fn new(kind: EngineKind, base: Option<&str>, key: Option<Key>) -> Result<Self, String> {
        let base = base.or(kind.url()).ok_or("it has no default address: set one")?;
        let mut url = Url::parse(base).map_err(|why| format!("`{base}` is not an address: {why}"))?;
        if kind == EngineKind::Searxng && !url.path().ends_with("/search") {
            let path = format!("{}/search", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        if let (None, Some(variable)) = (&key, kind.key_variable()) {
            return Err(format!("no API key is set for it: set `{variable}`"));
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(format!("`{base}` names no host"));
        };
        let place = format!("{host}:{port}").parse().map_err(|why| format!("{why}"))?;
        let client = Client::new(NetworkAccess::only([place]));
        client.reach().check_url(&url).map_err(|why| why.to_string())?;
        Ok(Self { kind, host: host.to_owned(), client, key, url })
    }

    /// Sets the proxies.
    #[must_use]
    pub fn proxies(self, proxies: Proxies) -> Self {
        Self { client: self.client.proxies(proxies), ..self }
    }

    fn request(&self, query: &str, limit: usize) -> (Url, Ask) {
        let mut url = self.url.clone();
        let mut request = Ask::get().header("accept", "application/json");
        let secret = |scheme: &str| {
            let key = self.key.as_ref().map(Key::reveal).unwrap_or_default();
            let mut value = HeaderValue::from_str(&format!("{scheme}{key}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        match self.kind {
            EngineKind::Searxng => {
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
            }
            EngineKind::Brave => {
                let count = limit.min(MOST).to_string();
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &count);
                secret("").map(|key| request.headers.insert("x-subscription-token", key));
            }
            EngineKind::Tavily => {
                request.method = Method::POST;
                request = request.header("content-type", "application/json");
                request.body = json!({"query": query, "max_results": limit.min(MOST)}).to_string().into();
                secret("Bearer ").map(|key| request.headers.insert("authorization", key));
            }
        }
        (url, request)
    }

    fn hits(&self, answer: &Value, limit: usize) -> Option<Vec<Hit>> {
        let (results, excerpt) = match self.kind {
            EngineKind::Searxng | EngineKind::Tavily => (answer.get("results"), "content"),
            // Where nothing is found there is nothing at all.
            EngineKind::Brave => match answer.get("web") {
                None if answer.is_object() => return Some(Vec::new()),
                web => (web.and_then(|web| web.get("results")), "description"),
            },
        };
        let hit = |result: &Value| {
            let text = |key| result.get(key).and_then(Value::as_str).unwrap_or_default();
            let url = Url::parse(text("url")).ok().filter(|url| url.as_str().len() <= LONGEST_ADDRESS)?;
            // Engines mark what they found as pages do.
            let words = |html: &str| text::one_line(&read_html(html, &url).text);
            Some(Hit { title: words(text("title")), excerpt: words(text(excerpt)), url: url.into() })
        };
        Some(results?.as_array()?.iter().filter_map(hit).take(limit).collect())
    }
}

impl Search for Engine {
    fn source(&self) -> &str {
        &self.host
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, String> {
        let cannot = |why: String| format!("`{}` cannot be searched: {why}", self.host);
        let (url, request) = self.request(query, limit);
        let asking = tokio::time::timeout(TIME, ask(&self.client, &url, request, MAX_BYTES)).await;
        let reply = asking.map_err(|_| cannot(format!("it did not answer within {} s", TIME.as_secs())))?;
        let reply = reply.map_err(cannot)?;
        if !(200..=299).contains(&reply.status) {
            let redactor = Redactor::new(self.key.as_ref().map(Key::reveal));
            let said = redactor.excerpt(&String::from_utf8_lossy(&reply.body), reply.end != End::Whole, 300);
            let said = text::one_line(&said);
            return Err(cannot(format!("it answers {}: {said}", status_in_words(reply.status))));
        }
        let answer = serde_json::from_slice(&reply.body).ok();
        let hits = answer.and_then(|answer| self.hits(&answer, limit));
        hits.ok_or_else(|| {
            let hint = if self.kind == EngineKind::Searxng {
                " (`search.formats` of its settings must have `json`)"
            } else {
                ""
            };
            cannot(format!("its answer is not what it should be{hint}"))
        })
    }
}
