//! The web.

use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{As, Config, Cx, Switch};
use serde_json::Value;

use crate::duration::Time;
use crate::team::Team;
use crate::text::{HostText, PathText, UrlText, VariableText};
use crate::working::WorkFile;

/// Settings of the tools `web_search` and `web_fetch`. Web access must also be allowed on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct Web {
    /// Folder of local pages in Markdown, HTML or plain text, below the folder of this file. `web_search` searches them
    /// if `search` is not given; `web_fetch` reads them by addresses such as `page:/bees.md`.
    #[key(none = "no pages")]
    pub pages: Option<PageFolder>,
    /// Search engine of `web_search`: its name, or a mapping.
    #[key(none = "none: no web search")]
    pub search: Option<WebSearch>,
    /// Pages that `web_fetch` can read: `true` for all public hosts, or a mapping.
    #[key(as = Switch<FetchSettings>)]
    pub fetch: WebFetch,
}

/// A folder of pages, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFolder {
    /// Its path, relative to the team file's folder.
    pub folder: String,
    /// The pages, by their paths in the folder.
    pub pages: Vec<WorkFile>,
}

/// The pages are read by the loader.
impl Config for PageFolder {
    fn ty() -> &'static Type {
        PathText::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Self { folder: PathText::read(node, cx).0, pages: Vec::new() }
    }

    fn hole() -> Self {
        Self { folder: String::new(), pages: Vec::new() }
    }

    fn write(&self) -> Value {
        Value::String(self.folder.clone())
    }
}

/// Search engine: its name, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(by_shape)]
pub enum WebSearch {
    /// A search engine whose key is in `BRAVE_API_KEY` or `TAVILY_API_KEY`.
    Named(KeyedEngine),
    /// A search engine with custom settings.
    Own(SearchEngine),
}

/// A search engine that needs a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub enum KeyedEngine {
    /// Brave, with the key in `BRAVE_API_KEY`.
    Brave,
    /// Tavily, with the key in `TAVILY_API_KEY`.
    Tavily,
}

/// A search engine with custom settings.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct SearchEngine {
    /// Search engine.
    pub engine: EngineName,
    /// Address of the search engine. Required for `searxng`.
    #[key(as = Option<UrlText>, none = "the engine's public address", nonempty)]
    pub url: Option<String>,
    /// Environment variable that holds the API key.
    #[key(as = Option<VariableText>, none = "the engine's usual variable")]
    pub key: Option<String>,
}

/// A search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub enum EngineName {
    /// `SearXNG`. The server must allow JSON results.
    Searxng,
    /// Brave.
    Brave,
    /// Tavily.
    Tavily,
}

/// Whether pages of the web are fetched, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebFetch {
    /// Whether all public pages are.
    Switch(bool),
    /// Which pages are, and how.
    Own(FetchSettings),
}

/// Pages that `web_fetch` can read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct FetchSettings {
    /// The only hosts whose pages can be read. Private hosts are possible.
    #[key(as = Vec<HostText>, none = "all public hosts", unique)]
    pub hosts: Vec<String>,
    /// Private hosts and networks that can be read in addition to all public hosts, such as `wiki.house.example`,
    /// `localhost:8080` or `10.1.0.0/16`.
    #[key(unique)]
    pub private: Vec<String>,
    /// Reads pages that the `robots.txt` of their site excludes.
    #[key(default = false)]
    pub ignore_robots: bool,
    /// Time limit of a page, such as `30 s`.
    #[key(none = "30 s")]
    pub timeout: Option<Time>,
}

impl As<WebFetch> for Switch<FetchSettings> {
    fn into_value(self) -> WebFetch {
        match self {
            Self::Off => WebFetch::Switch(false),
            Self::On(settings) if settings == FetchSettings::default() => WebFetch::Switch(true),
            Self::On(settings) => WebFetch::Own(settings),
        }
    }

    fn from_value(value: &WebFetch) -> Self {
        value.settings().map_or(Self::Off, Self::On)
    }
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
    /// Hosts that the web tools reach, for display.
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
