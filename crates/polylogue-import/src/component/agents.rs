//! Agents of AgentChat.

use serde_json::json;

use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::models::of_client;
use crate::report::{CODE, Result, STREAMS};
use crate::yaml::{Entries, Yaml};

/// Adds the agent `name` of a class.
pub(super) fn agent(class: &str, mut fields: Fields<'_>, name: &str, draft: &mut Draft) -> Result<()> {
    let mut config = fields.need("config")?.fields()?;
    fields.ignore(&["label", "description"]);
    config.ignore(&["name"]);
    config.cannot("metadata", "left out: an agent has no metadata", draft);
    config.cannot("model_client_stream", STREAMS, draft);
    let what = "left out: an agent reads what its tools return, and calls them until it has an answer";
    // AgentChat writes these defaults into every definition.
    let format = config.take("tool_call_summary_format");
    if let Some(at) = format.filter(|at| *at.value != json!("{result}")) {
        draft.note(&at.path, what);
    }
    config.cannot("reflect_on_tool_use", what, draft);
    let mut entries: Entries = vec![("name".into(), Yaml::text(name))];
    let rounds = config.take("max_tool_iterations").filter(|at| *at.value != json!(1));
    if let Some(rounds) = rounds.and_then(|at| at.value.as_u64()) {
        entries.push(("max_tool_rounds".into(), Yaml::plain(rounds)));
    }
    let description = config.text("description")?.filter(|text| !is_usual(text));
    entries.extend(description.map(|text| ("description".to_owned(), Yaml::text(text.trim()))));
    match class {
        "AssistantAgent" => assistant(&mut config, &mut entries, draft)?,
        "UserProxyAgent" => {
            entries.push(("human".into(), Yaml::plain(true)));
            config.cannot("input_func", CODE, draft);
        }
        other => {
            let what = format!("`{other}` has no equivalent: it becomes an agent without those abilities");
            draft.note(&fields.at.path, what);
            if let Some(client) = config.take("model_client") {
                entries.extend(of_client(&client, draft)?.entries());
            }
        }
    }
    config.rest(draft);
    fields.rest(draft);
    draft.agents.push(entries);
    Ok(())
}

/// Default descriptions of agents.
fn is_usual(text: &str) -> bool {
    ["An agent that provides assistance with ability to use tools.", "A human user"].contains(&text)
}

fn assistant(config: &mut Fields<'_>, entries: &mut Entries, draft: &mut Draft) -> Result<()> {
    let system = config.text("system_message")?;
    entries.extend(system.map(|text| ("system".to_owned(), Yaml::text(text))));
    if let Some(client) = config.take("model_client") {
        entries.extend(of_client(&client, draft)?.entries());
    }
    if let Some(sees) = window(config, draft)? {
        entries.push(("view".into(), Yaml::one("window", sees)));
    }
    // Handoffs are added when all participants have names.
    config.take("handoffs");
    tools(config, draft)?;
    config.cannot("memory", "not converted: there is no memory across conversations", draft);
    config.cannot(
        "structured_message_factory",
        "not converted: give the JSON Schema as `parameters.schema`",
        draft,
    );
    Ok(())
}

fn tools(config: &mut Fields<'_>, draft: &mut Draft) -> Result<()> {
    for at in config.take("tools").map(|at| at.items()).transpose()?.unwrap_or_default() {
        tool(&at, draft);
    }
    let Some(workbench) = config.take("workbench") else { return Ok(()) };
    let benches = if workbench.value.is_array() { workbench.items()? } else { vec![workbench] };
    for bench in benches {
        let tools = bench.value.pointer("/config/tools").and_then(serde_json::Value::as_array);
        let is_static = bench
            .value
            .get("provider")
            .and_then(|p| p.as_str())
            .is_some_and(|p| p.ends_with("StaticWorkbench"));
        match tools {
            Some(tools) if is_static => {
                for (index, value) in tools.iter().enumerate() {
                    tool(&At { value, path: format!("{}.config.tools[{index}]", bench.path) }, draft);
                }
            }
            _ => draft
                .note(&bench.path, "not converted: tools of other servers cannot be named in a team file"),
        }
    }
    Ok(())
}

fn tool(at: &At<'_>, draft: &mut Draft) {
    let name =
        ["/config/name", "/label"].iter().find_map(|path| at.value.pointer(path)?.as_str()).unwrap_or("?");
    draft.note(&at.path, format!("the tool `{name}` is left out: {CODE}"));
}

/// The window of a `model_context`.
pub(super) fn window(config: &mut Fields<'_>, draft: &mut Draft) -> Result<Option<Yaml>> {
    let Some(context) = config.take("model_context") else { return Ok(None) };
    let mut fields = context.fields()?;
    let class = fields.class()?;
    let mut config = fields.need("config")?.fields()?;
    let count = match class.as_str() {
        "UnboundedChatCompletionContext" => None,
        "BufferedChatCompletionContext" => config.count("buffer_size")?.map(|size| ("messages", size)),
        "TokenLimitedChatCompletionContext" => config.count("token_limit")?.map(|limit| ("tokens", limit)),
        "HeadAndTailChatCompletionContext" => {
            config.cannot(
                "head_size",
                "left out: the latest part of a conversation is seen, and no more",
                draft,
            );
            config.count("tail_size")?.map(|size| ("messages", size))
        }
        _ => {
            draft.note(&context.path, format!("`{class}` is unknown: everything is seen"));
            None
        }
    };
    Ok(count.map(|(key, count)| Yaml::one(key, Yaml::plain(count))))
}

/// The handoff targets of an agent, by their names in the definition.
pub(super) fn handed_to<'a>(at: &At<'a>) -> Result<Vec<&'a str>> {
    let Some(config) = at.fields()?.take("config") else { return Ok(Vec::new()) };
    let Some(handoffs) = config.fields()?.take("handoffs") else { return Ok(Vec::new()) };
    let target = |at: At<'a>| match at.value.as_str() {
        Some(name) => Ok(name),
        None => at.fields()?.need("target")?.text(),
    };
    handoffs.items()?.into_iter().map(target).collect()
}

/// Adds the handoffs of the agents `names`.
pub(super) fn add_handoffs(participants: &[At<'_>], names: &[String], draft: &mut Draft) -> Result<()> {
    for (at, name) in participants.iter().zip(names) {
        let targets = handed_to(at)?;
        if targets.is_empty() {
            continue;
        }
        let known = draft.all_known(&targets, &format!("{}.config.handoffs", at.path));
        if let Some(agent) = draft.agent(name) {
            agent.push(("handoffs".into(), Yaml::texts(known)));
        }
    }
    Ok(())
}
