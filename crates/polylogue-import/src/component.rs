//! Teams of AgentChat, as AutoGen Studio writes them.

mod agents;
mod graph;
mod stops;

use serde_json::Value;

use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::models::of_client;
use crate::report::{Result, STREAMS};
use crate::yaml::{Entries, Yaml};

/// Whether a file is a component, or a gallery of components.
pub(crate) fn is_component(root: &Value) -> bool {
    root.get("provider").is_some()
        || root.pointer("/components/teams").is_some()
        || root.get("component").is_some()
}

/// Reads the team of a file: the component itself, the one in a database row, or the only team of a gallery.
pub(crate) fn team_of(root: &At<'_>, draft: &mut Draft) -> Result<()> {
    let mut fields = root.fields()?;
    if let Some(inner) = fields.take("component") {
        fields.ignore(&["id", "user_id", "created_at", "updated_at", "version"]);
        fields.rest(draft);
        return team_of(&inner, draft);
    }
    if let Some(components) = fields.take("components") {
        fields.ignore(&["id", "name", "url", "metadata"]);
        fields.rest(draft);
        return gallery(root, &components, draft);
    }
    let class = fields.class()?;
    if class.ends_with("Agent") {
        return root.wrong("this is an agent; a team file is made of a team");
    }
    let name = own_name(&fields, &class);
    draft.name = draft.name(&name, "$")?;
    draft.description = own_description(&fields)?;
    draft.chat = team(&class, fields, draft)?;
    Ok(())
}

/// Reads the only team of a gallery.
fn gallery(root: &At<'_>, components: &At<'_>, draft: &mut Draft) -> Result<()> {
    let mut kinds = components.fields()?;
    let teams = kinds.need("teams")?.items()?;
    let [team] = teams.as_slice() else {
        let labels: Vec<String> = teams.iter().map(|team| format!("`{}`", label(team.value))).collect();
        let what = "teams: give one of them in a file";
        return root.wrong(format!("a gallery of {} {what}: {}", teams.len(), labels.join(", ")));
    };
    for (kind, _) in components.entries()?.into_iter().filter(|(kind, _)| *kind != "teams") {
        kinds.cannot(kind, "left out: it is no part of the team", draft);
    }
    team_of(team, draft)
}

fn label(team: &Value) -> &str {
    team.get("label").and_then(Value::as_str).unwrap_or("?")
}

/// A team's name, unless it is that of its class.
fn own_name(fields: &Fields<'_>, class: &str) -> String {
    let mut fields = fields.clone();
    let label = fields.text("label").ok().flatten();
    let config = fields.take("config").and_then(|config| config.fields().ok());
    let name = config.and_then(|mut config| config.text("name").ok().flatten());
    [name, label].into_iter().flatten().find(|name| *name != class).unwrap_or(class).to_owned()
}

/// A team's description, unless it is that of all teams: what a model reads that selects it, or the text of its component.
fn own_description(fields: &Fields<'_>) -> Result<String> {
    let mut fields = fields.clone();
    let component = fields.text("description")?;
    let own = fields.need("config")?.fields()?.text("description")?;
    let own = own.filter(|text| text.trim_end_matches('.') != "A team of agents");
    Ok(own.or(component).unwrap_or_default().to_owned())
}

/// The chat of a team of a class.
fn team(class: &str, mut fields: Fields<'_>, draft: &mut Draft) -> Result<Entries> {
    let mut config = fields.need("config")?.fields()?;
    config.ignore(&["name", "description"]);
    config.cannot("emit_team_events", "left out: every event is in the log", draft);
    config.cannot("model_client_streaming", STREAMS, draft);
    let participants = config.need("participants")?.items()?;
    let mut names = Vec::new();
    for at in &participants {
        names.push(reserve(at, draft)?);
    }
    if names.is_empty() {
        return config.at.wrong("a team without participants");
    }
    for (at, name) in participants.iter().zip(&names) {
        participant(at, name, draft)?;
    }
    if class != "Swarm" {
        agents::leave_out_handoffs(&participants, draft)?;
    }
    let mut extra = Vec::new();
    let pattern = match class {
        "RoundRobinGroupChat" => None,
        "SelectorGroupChat" => Some(selector(&mut config, draft)?),
        "Swarm" => Some(swarm(&participants, &names, &mut extra, draft)?),
        "MagenticOneGroupChat" => Some(ledger(&mut config, draft)?),
        "GraphFlow" => Some(graph::pattern(&mut config, draft)?),
        other => {
            return fields.at.wrong(format!("there is no equivalent of a team of the class `{other}`"));
        }
    };
    names.extend(extra);
    let mut chat: Entries = Vec::new();
    chat.extend(pattern.map(|pattern| ("pattern".to_owned(), pattern)));
    chat.push(("participants".into(), Yaml::texts(names)));
    chat.extend(stops::stop(&mut config, draft)?.map(|stop| ("stop".to_owned(), stop)));
    config.rest(draft);
    fields.rest(draft);
    Ok(chat)
}

/// Reserves the name of a participant before others refer to it.
fn reserve(at: &At<'_>, draft: &mut Draft) -> Result<String> {
    let mut fields = at.fields()?;
    let class = fields.class()?;
    let mut config = fields.need("config")?.fields()?;
    let name = config.text("name")?.map_or_else(|| own_name(&fields, &class), str::to_owned);
    draft.name(&name, &at.path)
}

fn participant(at: &At<'_>, name: &str, draft: &mut Draft) -> Result<()> {
    let mut fields = at.fields()?;
    let class = fields.class()?;
    match class.as_str() {
        "SocietyOfMindAgent" => society_of_mind(fields, name, draft),
        "RoundRobinGroupChat" | "SelectorGroupChat" | "Swarm" | "MagenticOneGroupChat" | "GraphFlow" => {
            let description = own_description(&fields)?;
            let chat = team(&class, fields, draft)?;
            inner(name, &description, chat, Vec::new(), draft);
            Ok(())
        }
        _ => agents::agent(&class, fields, name, draft),
    }
}

/// Adds a chat that is a participant of another.
fn inner(name: &str, description: &str, chat: Entries, summary: Entries, draft: &mut Draft) {
    let mut entries: Entries = vec![("name".into(), Yaml::text(name))];
    if !description.trim().is_empty() {
        entries.push(("description".into(), Yaml::text(description.trim())));
    }
    entries.push(("task_from".into(), Yaml::text("all")));
    entries.extend(chat);
    entries.extend(summary);
    draft.chats.push(entries);
}

/// Adds a society of mind: an agent that is a team, whose conversation a model summarizes in one reply.
fn society_of_mind(mut fields: Fields<'_>, name: &str, draft: &mut Draft) -> Result<()> {
    let mut config = fields.need("config")?.fields()?;
    let description = config.text("description")?.unwrap_or_default().to_owned();
    config.ignore(&["name"]);
    let mut team_fields = config.need("team")?.fields()?;
    let class = team_fields.class()?;
    let chat = team(&class, team_fields, draft)?;
    let prompt = config.text("response_prompt")?;
    config.cannot("instruction", "left out: the summary is asked for by its prompt alone", draft);
    let mut reflect: Entries =
        prompt.map(|prompt| ("prompt".to_owned(), Yaml::text(prompt))).into_iter().collect();
    if let Some(client) = config.take("model_client") {
        reflect.extend(of_client(&client, draft)?.entries());
    }
    agents::leave_out_window(&mut config, "left out: a summary is made of the whole conversation", draft)?;
    config.rest(draft);
    fields.rest(draft);
    let summary = vec![("summary".to_owned(), Yaml::one("reflect", Yaml::Map(reflect)))];
    inner(name, &description, chat, summary, draft);
    Ok(())
}

/// The pattern of a `SelectorGroupChat`: a model selects the speakers.
fn selector(config: &mut Fields<'_>, draft: &mut Draft) -> Result<Yaml> {
    let model = config.take("model_client").map(|at| of_client(&at, draft)).transpose()?.unwrap_or_default();
    let mut entries: Entries = model.entries();
    if let Some(prompt) = config.take("selector_prompt") {
        selector_texts(&prompt, &mut entries, draft)?;
    }
    if let Some(attempts) = config.count("max_selector_attempts")?.filter(|attempts| *attempts != 3) {
        entries.push(("attempts".into(), Yaml::plain(attempts)));
    }
    config.cannot("selector_func", "Python code is not converted; see `state_machine` for rules", draft);
    config.cannot("candidate_func", "Python code is not converted; see `transitions`", draft);
    agents::leave_out_window(config, "left out: the model that selects reads the whole conversation", draft)?;
    let pick = if entries.is_empty() { Yaml::text("model") } else { Yaml::one("model", Yaml::Map(entries)) };
    let mut group: Entries = vec![("select".into(), pick)];
    if !config.flag("allow_repeated_speaker")?.unwrap_or(false) {
        group.push(("allow_repeat_speaker".into(), Yaml::plain(false)));
    }
    Ok(Yaml::one("group", Yaml::Map(group)))
}

/// AutoGen's default prompt of a selector.
const USUAL_PROMPT: &str = "\
You are in a role play game. The following roles are available:
{roles}.
Read the following conversation. Then select the next role from {participants} to play. Only return the role.

{history}

Read the above conversation. Then select the next role from {participants} to play. Only return the role.";

/// Splits the selector's prompt: AutoGen inserts the conversation into it, team files send the conversation as messages between two texts.
fn selector_texts(at: &At<'_>, entries: &mut Entries, draft: &mut Draft) -> Result<()> {
    if at.text()?.trim() == USUAL_PROMPT {
        return Ok(());
    }
    let text = at.text()?.replace("{participants}", "{agentlist}");
    let (before, after) = text.split_once("{history}").unwrap_or((&text, ""));
    if after.contains("{history}") {
        return at.wrong("`{history}` is in it twice");
    }
    for (key, text) in [("system", before), ("prompt", after)] {
        if !text.trim().is_empty() {
            entries.push((key.into(), Yaml::text(text.trim())));
        }
    }
    if text.contains("{history}") {
        let what =
            "cut in two at `{history}`: the model reads the conversation between `system` and `prompt`";
        draft.note(&at.path, what);
    }
    Ok(())
}

/// The pattern of a `Swarm`: the speaker continues until it hands off. Undefined targets of handoffs are added to `extra` as people.
fn swarm(
    participants: &[At<'_>],
    names: &[String],
    extra: &mut Vec<String>,
    draft: &mut Draft,
) -> Result<Yaml> {
    let mut undefined_names = Vec::new();
    for at in participants {
        undefined_names
            .extend(agents::handed_to(at)?.into_iter().filter(|target| draft.known(target).is_none()));
    }
    undefined_names.sort_unstable();
    undefined_names.dedup();
    for undefined in undefined_names {
        // An undefined target is the surrounding program, which asks the person.
        let name = draft.undefined_name(undefined);
        draft.note(
            "$.config.participants",
            format!("`{name}` is added as a person: agents hand over to `{undefined}`"),
        );
        draft.agents.push(vec![("name".into(), Yaml::text(&name)), ("human".into(), Yaml::plain(true))]);
        extra.push(name);
    }
    agents::add_handoffs(participants, names, draft)?;
    let start = names.first().map(String::as_str).unwrap_or_default();
    let handoffs = vec![("start".to_owned(), Yaml::text(start)), ("then".to_owned(), Yaml::text("stay"))];
    Ok(Yaml::one("handoffs", Yaml::Map(handoffs)))
}

/// The pattern of a `MagenticOneGroupChat`: a planner with a ledger, to which the definition gives no name.
fn ledger(config: &mut Fields<'_>, draft: &mut Draft) -> Result<Yaml> {
    let model = config.take("model_client").map(|at| of_client(&at, draft)).transpose()?.unwrap_or_default();
    let planner = draft.undefined_name("Planner");
    let mut agent: Entries = vec![("name".into(), Yaml::text(&planner))];
    agent.extend(model.entries());
    draft.agents.push(agent);
    let mut plan: Entries = vec![("planner".into(), Yaml::text(planner))];
    // Both have a default of 20 turns.
    for key in ["max_turns", "max_stalls"] {
        plan.extend(config.count(key)?.map(|count| (key.to_owned(), Yaml::plain(count))));
    }
    if let Some(answer) = config.text("final_answer_prompt")? {
        plan.push(("prompts".into(), Yaml::one("answer", Yaml::text(answer))));
    }
    Ok(Yaml::one("orchestrator", Yaml::Map(plan)))
}
