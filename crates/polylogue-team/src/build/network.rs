//! Tools that use the network: the web, and services over HTTP.

use polylogue::Result;
use polylogue_core::{AnyTool, ConfigError};
use polylogue_models::{Env, Proxies};
use polylogue_tools::http::{Call, Client};
use polylogue_tools::openapi;
use polylogue_tools::web::{web_fetch, web_search};

use super::builder::AgentBuilder;
use crate::grant::Grant;
use crate::tooling::costing;
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

    /// The tools that call services and that `name` stands for; none if it is no such name.
    pub(super) fn call_tools(&self, name: &str) -> Result<Vec<AnyTool>> {
        let call = self.team.calls.iter().find(|call| call.name == name);
        let operations = self.team.operations(name);
        if call.is_none() && operations.is_empty() {
            return Ok(Vec::new());
        }
        self.context.check(Grant::Network, &self.team.reached_by_calls())?;
        self.context.check(Grant::Env, &self.team.sent_by_calls())?;
        // To be looked at, a tool needs no real key.
        let env = match self.context.is_unused() {
            true => Env::of(self.team.variables_of_calls().map(|name| (name.clone(), "unused:unused"))),
            false => self.context.env(),
        };
        let client = |reach| Client::new(reach).proxies(Proxies::of(&env));
        if let Some(call) = call {
            return Ok(vec![AnyTool::new(Call::new(call.value.clone(), client, &env)?)]);
        }
        let tools = operations.into_iter().map(|(document, operation)| {
            let time = document.timeout.map(Into::into);
            let tool = openapi::tool(operation.clone(), client, &document.keys(), &env, time)?;
            Ok(costing(tool, document.max_cost))
        });
        tools.collect()
    }
}
