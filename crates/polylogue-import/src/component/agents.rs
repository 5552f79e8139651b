//! Agents of AgentChat.

use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::models::of_client;
use crate::report::{CODE, Result, STREAMS};
use crate::yaml::{Entries, Yaml};

/// Adds the agent `name` of a class.
pub(super) fn agent(class: &str, mut fields: Fields<'_>, name: &str, draft: &mut Draft) -> Result<()> {
    let mut config = fields.need("config")?.fields()?;
    // Handoffs are added when all participants have names.
    config.ignore(&["name", "handoffs"]);
    config.cannot("metadata", "left out: an agent has no metadata", draft);
    config.cannot("model_client_stream", STREAMS, draft);
    let what = "left out: an agent reads what its tools return, and calls them until it has an answer";
    config.unusual("tool_call_summary_format", "{result}", what, draft);
    config.cannot("reflect_on_tool_use", what, draft);
    let mut entries: Entries = vec![("name".into(), Yaml::text(name))];
    // AgentChat writes its default of 1 into every definition.
    if let Some(rounds) = config.count("max_tool_iterations")?.filter(|rounds| *rounds != 1) {
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
    tools(config, draft)?;
    config.cannot("memory", "not converted: `memory` of an agent remembers across conversations", draft);
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
    let Some(bench) = config.take("workbench") else { return Ok(()) };
    let benches = if bench.value.is_array() { bench.items()? } else { vec![bench] };
    benches.iter().try_for_each(|bench| workbench(bench, draft))
}

fn workbench(at: &At<'_>, draft: &mut Draft) -> Result<()> {
    let mut fields = at.fields()?;
    if !["StaticWorkbench", "StaticStreamWorkbench"].contains(&fields.class()?.as_str()) {
        draft.note(&at.path, "not converted: give an MCP server in `mcp` of the team, and its tools as `tools: [{mcp: NAME}]` of the agent");
        return Ok(());
    }
    let mut config = fields.need("config")?.fields()?;
    for at in config.take("tools").map(|at| at.items()).transpose()?.unwrap_or_default() {
        tool(&at, draft);
    }
    config.cannot("tool_overrides", "left out, as the tools are", draft);
    config.rest(draft);
    fields.rest(draft);
    Ok(())
}

fn tool(at: &At<'_>, draft: &mut Draft) {
    let name =
        ["/config/name", "/label"].iter().find_map(|path| at.value.pointer(path)?.as_str()).unwrap_or("?");
    draft.note(&at.path, format!("the tool `{name}` is left out: {CODE}"));
}

/// What an agent reads of a conversation by default.
const ALL: &str = "UnboundedChatCompletionContext";

/// The window of a `model_context`.
fn window(config: &mut Fields<'_>, draft: &mut Draft) -> Result<Option<Yaml>> {
    let Some(context) = config.take("model_context") else { return Ok(None) };
    let mut fields = context.fields()?;
    let class = fields.class()?;
    let mut config = fields.need("config")?.fields()?;
    let count = match class.as_str() {
        ALL => None,
        "BufferedChatCompletionContext" => config.count("buffer_size")?.map(|size| ("messages", size)),
        "TokenLimitedChatCompletionContext" => {
            config.cannot("model_client", "left out: the tokens of the agent's own model are counted", draft);
            config.cannot("tool_schema", "left out: the agent's own tools count", draft);
            config.count("token_limit")?.map(|limit| ("tokens", limit))
        }
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
            return Ok(None);
        }
    };
    config.cannot("initial_messages", "left out: a conversation begins with its task", draft);
    config.rest(draft);
    fields.rest(draft);
    Ok(count.map(|(key, count)| Yaml::one(key, Yaml::plain(count))))
}

/// Notes the `model_context` of a model that reads the whole conversation here, unless it does so in the definition.
pub(super) fn leave_out_window(config: &mut Fields<'_>, why: &str, draft: &mut Draft) -> Result<()> {
    let Some(context) = config.take("model_context") else { return Ok(()) };
    let mut fields = context.fields()?;
    let class = fields.class()?;
    if class != ALL || !fields.need("config")?.fields()?.left().is_empty() {
        draft.note(&context.path, why);
    }
    Ok(())
}

/// The handoffs of an agent.
fn handoffs<'a>(at: &At<'a>) -> Result<Vec<At<'a>>> {
    let Some(config) = at.fields()?.take("config") else { return Ok(Vec::new()) };
    config.fields()?.take("handoffs").map_or_else(|| Ok(Vec::new()), |at| at.items())
}

/// The target of a handoff, by its name in the definition.
fn target<'a>(at: &At<'a>) -> Result<&'a str> {
    at.value.as_str().map_or_else(|| at.fields()?.need("target")?.text(), Ok)
}

/// The handoff targets of an agent, by their names in the definition.
pub(super) fn handed_to<'a>(at: &At<'a>) -> Result<Vec<&'a str>> {
    handoffs(at)?.iter().map(target).collect()
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
        handoffs(at)?.iter().filter(|at| at.value.is_object()).try_for_each(|at| handoff_texts(at, draft))?;
    }
    Ok(())
}

/// Notes what a handoff has besides its target. AutoGen writes its defaults into every definition.
fn handoff_texts(at: &At<'_>, draft: &mut Draft) -> Result<()> {
    let mut fields = at.fields()?;
    let target = fields.need("target")?.text()?;
    let tool = format!("transfer_to_{target}").to_lowercase();
    fields.unusual("name", tool, "left out: the tool of a handoff is `transfer_to_NAME` here", draft);
    let what = "left out: the tool of a handoff is described by the description of its target";
    fields.unusual("description", format!("Handoff to {target}."), what, draft);
    let message = format!("Transferred to {target}, adopting the role of {target} immediately.");
    let what = "left out: the next agent reads the conversation, and the note of the agent that hands over";
    fields.unusual("message", message, what, draft);
    fields.rest(draft);
    Ok(())
}

/// Notes the handoffs of agents of a team without the pattern for them.
pub(super) fn leave_out_handoffs(participants: &[At<'_>], draft: &mut Draft) -> Result<()> {
    let why = "left out: agents hand over where the pattern is `handoffs`, which a `Swarm` becomes";
    for at in participants {
        if let Some(config) = at.fields()?.take("config") {
            config.fields()?.cannot("handoffs", why, draft);
        }
    }
    Ok(())
}
