//! The web as tools.

use std::sync::Arc;

use polylogue::{Error, Result};
use polylogue_core::AnyTool;
use polylogue_models::{Env, Key, Proxies};
use polylogue_tools::web::{AnySearch, Engine, EngineKind, Fetcher, Pages, Reach, web_fetch, web_search};

use super::AgentBuilder;
use crate::build_context::BuildContext;
use crate::permission::Grant;
use crate::web::{EngineName, FETCH, FetchSettings, SEARCH, SearchEngine, Web};

/// The tools of the web, whatever they will find.
pub(super) fn known_web_tools() -> [AnyTool; 2] {
    [web_search(AnySearch::new(Pages::default())), web_fetch(None, None)]
}

/// What the agents of a crew have of the web: one for all, so that pages are read and sites asked once.
pub(super) struct Browser {
    search: Option<AnySearch>,
    fetcher: Option<Arc<Fetcher>>,
    pages: Option<Arc<Pages>>,
}

impl Browser {
    fn of(web: &Web, workplace: &BuildContext) -> Result<Self> {
        let env = workplace.env();
        let pages = web.pages.as_ref().map(|folder| {
            let files = folder.pages.iter().map(|page| (page.file.as_str(), page.content.as_str()));
            Arc::new(Pages::of(files))
        });
        let engine = match &web.search {
            Some(search) if !workplace.is_unused() => Some(engine(&search.engine(), &env)?),
            // To be looked at, a tool that finds nothing is as good.
            Some(_) => Some(AnySearch::new(Pages::default())),
            None => None,
        };
        let search = engine.or_else(|| pages.as_ref().map(|pages| AnySearch::new(Pages::clone(pages))));
        let fetcher = web.fetch.settings().map(|settings| fetcher(&settings, &env)).transpose()?;
        Ok(Self { search, fetcher: fetcher.map(Arc::new), pages })
    }
}

fn engine(given: &SearchEngine, env: &Env) -> Result<AnySearch> {
    let kind = given.engine.kind();
    let variable = given.key.as_deref().or(kind.key_variable());
    let key = variable.and_then(|name| env.get(name)).and_then(|text| Key::new(&text));
    if let (Some(variable), None) = (variable, &key) {
        let text = format!(
            "there is no key for the search engine: set `{variable}`, in the environment or in `.env`"
        );
        return Err(Error::config(text));
    }
    let engine = Engine::new(kind, given.url.as_deref(), key);
    let engine = engine.map_err(|why| Error::config(format!("the search engine cannot be used: {why}")))?;
    Ok(AnySearch::new(engine.proxies(Proxies::of(env))))
}

/// Whom pages are fetched from.
pub(crate) fn reach(settings: &FetchSettings) -> Result<Reach> {
    let place = |text: &String| text.parse().map_err(|why| Error::config(format!("{why}")));
    let private = settings.private.iter().map(place).collect::<Result<Vec<_>>>()?;
    if settings.hosts.is_empty() {
        return Ok(Reach::public().allowing(private));
    }
    let hosts = settings.hosts.iter().map(place).collect::<Result<Vec<_>>>()?;
    Ok(Reach::only(hosts).allowing(private))
}

fn fetcher(settings: &FetchSettings, env: &Env) -> Result<Fetcher> {
    let mut fetcher = Fetcher::new(reach(settings)?).proxies(Proxies::of(env));
    if settings.ignore_robots {
        fetcher = fetcher.ignoring_robots();
    }
    Ok(match settings.timeout {
        Some(time) => fetcher.time(time.into()),
        None => fetcher,
    })
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

impl AgentBuilder<'_> {
    /// The tool of the web that is called `name`, if there is one.
    pub(super) fn web_tool(&self, name: &str) -> Result<Option<AnyTool>> {
        if name != SEARCH && name != FETCH {
            return Ok(None);
        }
        let reached = self.team.reached_by_web();
        self.workplace.check(Grant::Network, &reached)?;
        if name == SEARCH {
            self.workplace.check(Grant::Env, &self.team.sent_by_search())?;
        }
        if self.browser.get().is_none() {
            let _ = self.browser.set(Browser::of(&self.team.web, self.workplace)?);
        }
        let browser = self.browser.get().ok_or_else(|| Error::Bug("what was set is not there".into()))?;
        if name == FETCH {
            return Ok(Some(web_fetch(browser.fetcher.clone(), browser.pages.clone())));
        }
        let search = browser.search.clone();
        let search = search.ok_or_else(|| Error::config(format!("`{SEARCH}` has nothing to search")))?;
        Ok(Some(web_search(search)))
    }
}
