//! The web: what its tools need is there, and what is there is used.

use crate::build::reach;
use crate::diagnostic::Report;
use crate::team::Team;
use crate::web::{EngineName, FETCH, SEARCH, WebSearch};
use crate::yaml::Node;

/// Reports web tools without settings, invalid hosts, and unused settings.
pub(super) fn check_built(root: &Node, team: &Team, report: &mut Report<'_>) {
    let web = root.get("web");
    if let Some(settings) = team.web.fetch.settings()
        && let Err(error) = reach(&settings)
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
    let can_fetch = !team.web.fetch.is_off() || team.web.pages.is_some();
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
        if !can && let Some(at) = named(root, tool) {
            report.error_with_hint(&at.span, format!("`{tool}` has nothing to work with"), hint);
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

/// Where `tool` is first given to an agent.
fn named<'n>(root: &'n Node, tool: &str) -> Option<&'n Node> {
    let keys = ["tools", "suggests_tools", "executes_tools"];
    let given = root.get("agents").items().iter().flat_map(|agent| keys.map(|key| agent.get(key).items()));
    let is = |node: &&Node| node.text() == Some(tool) || node.get("tool").text() == Some(tool);
    // A tool of a task has no such place and is reported at the start of the file.
    Some(given.flatten().find(is).unwrap_or(root))
        .filter(|at| !std::ptr::eq(*at, root) || is_of_task(root, tool))
}

fn is_of_task(root: &Node, tool: &str) -> bool {
    let is = |node: &Node| node.text() == Some(tool) || node.get("tool").text() == Some(tool);
    let chats = std::iter::once(root.get("chat")).chain(root.get("chats").items());
    let solving = chats.map(|chat| chat.get("pattern"));
    solving.into_iter().any(|pattern| {
        let lists = [
            pattern.get("tasks"),
            pattern.get("group_solve").get("tasks"),
            pattern.get("group_solve").get("before"),
            pattern.get("group_solve").get("after"),
        ];
        lists.into_iter().flat_map(Node::items).any(|task| task.get("tools").items().iter().any(is))
    })
}
