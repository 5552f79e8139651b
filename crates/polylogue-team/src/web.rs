//! What a team file says of the web.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Time;
use crate::team::Team;
use crate::text::{HostText, PathText, UrlText, VariableText};
use crate::working::WorkFile;

/// What the tools `web_search` and `web_fetch` find and read: pages that the team brings along, and those of the web. The web
/// has to be allowed on the command line as well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// A folder of pages below this file's folder, in Markdown, HTML or plain text. They are searched when there is no
    /// `search`, and read by their addresses, such as `page:/bees.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageFolder>,
    /// Who searches the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<WebSearch>,
    /// Whether pages of the web are fetched, and from where: `true` for all that is public.
    #[serde(skip_serializing_if = "WebFetch::is_off")]
    pub fetch: WebFetch,
}

impl Web {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A folder of pages, with what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, with = "PathText")]
pub struct PageFolder {
    /// Where it was read from, seen from the team file's folder.
    pub folder: String,
    /// The pages, by their paths in the folder.
    pub pages: Vec<WorkFile>,
}

/// Who searches the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum WebSearch {
    /// A search engine that takes a key, which is in `BRAVE_API_KEY` or `TAVILY_API_KEY`.
    Named(KeyedEngine),
    /// One with settings of its own.
    Own(SearchEngine),
}

/// A search engine that takes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum KeyedEngine {
    /// Brave; its key is in `BRAVE_API_KEY`.
    Brave,
    /// Tavily; its key is in `TAVILY_API_KEY`.
    Tavily,
}

/// A search engine, with settings of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchEngine {
    /// Which one it is.
    pub engine: EngineName,
    /// Where it is; `searxng` needs an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<UrlText>")]
    pub url: Option<String>,
    /// The name of the environment variable that holds its key; the usual one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<VariableText>")]
    pub key: Option<String>,
}

/// A search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum EngineName {
    /// `SearXNG`, which has to answer in JSON.
    Searxng,
    /// Brave.
    Brave,
    /// Tavily.
    Tavily,
}

/// Whether pages of the web are fetched, and from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum WebFetch {
    /// Whether all public pages are.
    Switch(bool),
    /// Which ones are, and how.
    Own(FetchSettings),
}

/// Which pages of the web are fetched, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FetchSettings {
    /// The only hosts that pages are fetched from, which may be private; all public ones when left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<HostText>", extend("uniqueItems" = true))]
    pub hosts: Vec<String>,
    /// Hosts and nets that may be private, besides all public hosts: `wiki.house.example`, `localhost:8080`, `10.1.0.0/16`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", extend("uniqueItems" = true))]
    pub private: Vec<String>,
    /// Whether pages are fetched that their sites ask programs to leave alone, in `robots.txt`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_robots: bool,
    /// How long a page may take; 30 s when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

impl Default for WebFetch {
    fn default() -> Self {
        Self::Switch(false)
    }
}

impl WebFetch {
    /// Whether nothing is fetched.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self, Self::Switch(false))
    }

    /// The settings, if something is fetched.
    pub(crate) fn settings(&self) -> Option<FetchSettings> {
        match self {
            Self::Switch(false) => None,
            Self::Switch(true) => Some(FetchSettings::default()),
            Self::Own(settings) => Some(settings.clone()),
        }
    }
}

impl WebSearch {
    /// It with its settings.
    pub(crate) fn engine(&self) -> SearchEngine {
        match self {
            Self::Named(named) => {
                let engine = match named {
                    KeyedEngine::Brave => EngineName::Brave,
                    KeyedEngine::Tavily => EngineName::Tavily,
                };
                SearchEngine { engine, url: None, key: None }
            }
            Self::Own(engine) => engine.clone(),
        }
    }
}

/// The names of the tools.
pub(crate) const SEARCH: &str = "web_search";
pub(crate) const FETCH: &str = "web_fetch";

impl Team {
    /// Whom the tools of the web reach over the network, in words.
    pub(crate) fn reached_by_web(&self) -> Vec<String> {
        let mut reached = Vec::new();
        if let Some(search) = self.web.search.as_ref().filter(|_| self.names_tool(SEARCH)) {
            let SearchEngine { engine, url, .. } = search.engine();
            let usual = engine.kind().url().unwrap_or_default();
            let url = url.unwrap_or_else(|| usual.to_owned());
            let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?']).next()).unwrap_or(&url);
            reached.push(host.to_owned());
        }
        if let Some(settings) = self.web.fetch.settings().filter(|_| self.names_tool(FETCH)) {
            if settings.hosts.is_empty() {
                reached.push("the public web".to_owned());
            }
            reached.extend(settings.hosts);
            reached.extend(settings.private);
        }
        reached
    }
}
