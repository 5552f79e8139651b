//! The web.

use polylogue::Result;
use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{At, Config, Cx, Switch};
use polylogue_core::ConfigError;
use polylogue_models::{Env, Key, Proxies};
use polylogue_tools::web::{AnySearch, Destination, Engine, EngineKind, Fetcher, NetworkAccess};
use serde_json::Value;

use crate::duration::Time;
use crate::set::Set as _;
use crate::text::{HostText, PathText, UrlText, VariableText};
use crate::working::WorkFile;

/// Settings of the tools `web_search` and `web_fetch`. Web access must also be allowed on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct Web {
    /// Folder of local pages in Markdown, HTML or plain text, below the folder of this file. `web_search` searches them
    /// if `search` is not given; `web_fetch` reads them by addresses such as `page:/bees.md`.
    #[key(none = "no pages")]
    pub pages: Option<At<PageFolder>>,
    /// Search engine of `web_search`: its name, or a mapping.
    #[key(none = "none: no web search")]
    pub search: Option<At<WebSearch>>,
    /// Pages that `web_fetch` can read: `true` for all public hosts, or a mapping.
    pub fetch: At<Switch<FetchSettings>>,
}

/// A folder of pages, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFolder {
    /// The path, relative to the team file's folder.
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
    #[key(as = Option<At<VariableText>>, none = "the engine's usual variable")]
    pub key: Option<At<String>>,
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

impl EngineName {
    pub(crate) const fn kind(self) -> EngineKind {
        match self {
            Self::Searxng => EngineKind::Searxng,
            Self::Brave => EngineKind::Brave,
            Self::Tavily => EngineKind::Tavily,
        }
    }
}

impl SearchEngine {
    /// The environment variable that holds the API key, if there is one.
    pub(crate) fn variable(&self) -> Option<&str> {
        self.key.as_deref().map(String::as_str).or(self.engine.kind().key_variable())
    }

    /// The search, with its key out of `env`.
    pub(crate) fn build(&self, env: &Env) -> Result<AnySearch> {
        let kind = self.engine.kind();
        let variable = self.variable();
        let key = variable.and_then(|name| env.get(name)).and_then(|text| Key::new(&text));
        if let (Some(variable), None) = (variable, &key) {
            let hint = format!("set `{variable}`, in the environment or in `.env`");
            let (of, what) = ("the search engine".into(), "API key".into());
            return Err(ConfigError::Missing { of, what, hint: Some(hint.into()) }.into());
        }
        let engine = Engine::new(kind, self.url.as_deref(), key);
        let engine = engine.map_err(|why| ConfigError::invalid("the search engine", why.to_string()))?;
        Ok(AnySearch::new(engine.proxies(Proxies::of(env))))
    }
}

impl FetchSettings {
    /// The hosts whose pages are fetched.
    pub(crate) fn reach(&self) -> Result<NetworkAccess> {
        let place = |text: &String| {
            text.parse::<Destination>().map_err(|why| ConfigError::invalid("the address", why.to_string()))
        };
        let private = self.private.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        if self.hosts.is_empty() {
            return Ok(NetworkAccess::public().allowing(private));
        }
        let hosts = self.hosts.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        Ok(NetworkAccess::only(hosts).allowing(private))
    }

    /// What fetches pages, through the proxies of `env`.
    pub(crate) fn build(&self, env: &Env) -> Result<Fetcher> {
        let mut fetcher = Fetcher::new(self.reach()?).proxies(Proxies::of(env));
        fetcher = fetcher.set_if(self.ignore_robots, Fetcher::ignoring_robots);
        Ok(fetcher.set(self.timeout, |fetcher, time| fetcher.time(time.into())))
    }
}

/// The names of the tools.
pub(crate) const SEARCH: &str = "web_search";
pub(crate) const FETCH: &str = "web_fetch";
