//! The web: what its tools need is there, and what is there is used.

use crate::diagnostic::Report;
use crate::source::Span;
use crate::team::Team;
use crate::web::{EngineName, FETCH, SEARCH, WebSearch};
use crate::yaml::Node;

/// Reports web tools without settings, invalid hosts, and unused settings.
pub(super) fn check_built(root: &Node, team: &Team, report: &mut Report<'_>) {
    let web = root.get("web");
    if let Some(settings) = team.web.fetch.on()
        && let Err(error) = settings.reach()
    {
        report.error(&web.get("fetch").span, error.to_string());
    }
    if let Some(WebSearch::Own(engine)) = &team.web.search {
        if engine.engine == EngineName::Searxng && engine.url.is_none() {
            let hint = "add `url`, such as `url: http://localhost:8888`; it is run by oneself";
            report.error_with_hint(&web.get("search").span, "`searxng` needs an address", hint);
        }
        if engine.engine == EngineName::Searxng && engine.key.is_some() {
            report.error(&web.get("search").get("key").span, "`searxng` takes no key");
        }
    }
    let can_search = team.web.search.is_some() || team.web.pages.is_some();
    let can_fetch = team.web.fetch.on().is_some() || team.web.pages.is_some();
    for (tool, can, hint) in [
        (
            SEARCH,
            can_search,
            "add `web`, such as `web: {search: brave}`, or `web: {pages: FOLDER}` for local pages",
        ),
        (
            FETCH,
            can_fetch,
            "add `web`, such as `web: {fetch: true}`, or `web: {pages: FOLDER}` for local pages",
        ),
    ] {
        if !can && let Some(at) = named(team, tool) {
            report.error_with_hint(at, format!("`{tool}` has nothing to work with"), hint);
        }
    }
    let is_used = |key: &str| match key {
        "search" => team.names_tool(SEARCH),
        "fetch" => team.names_tool(FETCH),
        _ => team.names_tool(SEARCH) || team.names_tool(FETCH),
    };
    for entry in web.entries().iter().filter(|entry| !is_used(&entry.key)) {
        let tool = if entry.key == "fetch" { FETCH } else { SEARCH };
        let hint = format!("name `{tool}` among the `tools` of an agent, or leave it out");
        report.warning(&entry.key_span, format!("no agent uses `{}` of `web`", entry.key), hint);
    }
}

/// Where `tool` is first given to an agent or a task.
fn named<'t>(team: &'t Team, tool: &str) -> Option<&'t Span> {
    let of_agents = team.agents.iter().flat_map(|agent| {
        let keys = agent.model();
        let own = keys.into_iter().flat_map(|keys| keys.tools.iter()).filter_map(|given| given.own());
        let own = own.map(|own| &own.tool);
        let suggested = keys.into_iter().flat_map(|keys| keys.suggests_tools.iter());
        own.chain(suggested).chain(agent.executes_tools.iter().map(|run| &run.tool))
    });
    let of_tasks = team.given_tools().filter_map(|given| given.own()).map(|own| &own.tool);
    of_agents.chain(of_tasks).find(|name| name.as_str() == tool).map(|name| &name.span)
}
