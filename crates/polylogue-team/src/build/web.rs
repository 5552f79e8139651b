//! The web as tools.

use polylogue::Result;
use polylogue_core::{AnyTool, ConfigError};
use polylogue_tools::web::{web_fetch, web_search};

use super::builder::AgentBuilder;
use crate::grant::Grant;
use crate::web::{FETCH, SEARCH};

impl AgentBuilder<'_> {
    /// The tool of the web that is called `name`, if there is one.
    pub(super) fn web_tool(&self, name: &str) -> Result<Option<AnyTool>> {
        if name != SEARCH && name != FETCH {
            return Ok(None);
        }
        let reached = self.team.reached_by_web();
        self.context.check(Grant::Network, &reached)?;
        if name == SEARCH {
            self.context.check(Grant::Env, &self.team.sent_by_search())?;
        }
        let browser = self.browser()?;
        if name == FETCH {
            return Ok(Some(web_fetch(browser.fetcher.clone(), browser.pages.clone())));
        }
        let search = browser.search.clone();
        let search = search.ok_or_else(|| ConfigError::missing(format!("`{SEARCH}`"), "search engine"))?;
        Ok(Some(web_search(search)))
    }
}
