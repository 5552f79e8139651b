//! The web: tools and settings fit together.

use crate::codes;
use crate::diagnostic::Report;
use crate::source::Span;
use crate::team::Team;
use crate::web::{EngineName, FETCH, SEARCH, WebSearch};

/// Reports web tools without settings, invalid hosts, and unused settings.
pub(super) fn check_built(team: &Team, report: &mut Report<'_>) {
    let web = &team.web;
    if let Some(Err(error)) = web.fetch.on().map(|settings| settings.reach()) {
        report.error(&web.fetch.span, error.to_string());
    }
    if let Some(search) = &web.search
        && let WebSearch::Own(engine) = &search.value
        && engine.engine == EngineName::Searxng
    {
        if engine.url.is_none() {
            let hint = "add `url`, such as `url: http://localhost:8888`; it is run by oneself";
            report.error_with_hint(&search.span, "`searxng` needs an address", hint);
        }
        if let Some(key) = &engine.key {
            report.error(&key.span, "`searxng` takes no key");
        }
    }
    let has_pages = web.pages.is_some();
    for (tool, can, example) in [
        (SEARCH, has_pages || web.search.is_some(), "search: brave"),
        (FETCH, has_pages || web.fetch.on().is_some(), "fetch: true"),
    ] {
        if let Some(at) = named(team, tool).filter(|_| !can) {
            let hint = format!(
                "add `web`, such as `web: {{{example}}}`, or `web: {{pages: FOLDER}}` for local pages"
            );
            report.error_with_hint(at, format!("`{tool}` has no source"), hint);
        }
    }
    for (key, at, tool, is_used) in [
        (
            "pages",
            web.pages.as_ref().map(|of| of.key()),
            SEARCH,
            team.names_tool(SEARCH) || team.names_tool(FETCH),
        ),
        ("search", web.search.as_ref().map(|of| of.key()), SEARCH, team.names_tool(SEARCH)),
        ("fetch", web.fetch.given(), FETCH, team.names_tool(FETCH)),
    ] {
        if let Some(at) = at.filter(|_| !is_used) {
            let hint = format!("name `{tool}` among the `tools` of an agent, or leave it out");
            report.warning(codes::UNUSED, at, format!("no agent uses `{key}` of `web`"), hint);
        }
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
