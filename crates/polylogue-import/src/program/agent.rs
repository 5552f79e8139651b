//! Agents of AutoGen 0.2.

use serde_json::{Map, Value};

use super::coding;
use super::definition::{Kind, Member, Program, predicate};
use super::model_list::model;
use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::models::Model;
use crate::report::{CODE, FUNCTIONS, Result, SILENT};
use crate::yaml::{Entries, Yaml};

pub(super) fn agent<'a>(at: &At<'a>, program: &Program<'_>, draft: &mut Draft) -> Result<Member<'a>> {
    let mut outer = at.fields()?;
    let class = outer.first(&["class", "type", "agent_type"]);
    // An older format has everything but the class in `config`.
    let mut fields = match outer.take("config") {
        Some(config) => {
            outer.cannot("skills", CODE, draft);
            outer.rest(draft);
            config.fields()?
        }
        None => outer,
    };
    let wanted = fields.need("name")?.text()?;
    let name = draft.name(wanted, &at.path)?;
    let kind = kind(class.as_ref(), wanted, draft)?;
    let mut entries: Entries = vec![("name".into(), Yaml::text(&name))];
    let description = fields.text("description")?;
    let system = system(&mut fields)?;
    let described = description.or_else(|| program.described(kind, &fields, system.as_deref()));
    let is_only_system = system.is_some() && described != system.as_deref();
    if let Some(text) = described {
        entries.push(("description".into(), Yaml::text(text.trim())));
    }
    let model = speech(&mut fields, (kind, wanted, system), program, &mut entries, draft)?;
    if model.is_none() && is_only_system {
        let what = "left out: an agent without a model reads none, in AutoGen either";
        draft.note(&format!("{}.system_message", fields.at.path), what);
    }
    let has_person = people(&mut fields, kind, &mut entries, draft)?;
    // AutoGen's default reply is empty, and the chat continues. For agents that can ask a person, that is the default of team files, too.
    if !has_person && model.is_none() && !entries.iter().any(|(key, _)| key == "default_reply") {
        entries.push(("default_reply".into(), Yaml::text("")));
    }
    for key in ["function_map", "functions", "tools"] {
        fields.cannot(key, FUNCTIONS, draft);
    }
    coding::runs(&mut fields, kind, &mut entries, draft)?;
    fields.cannot("chat_messages", "left out: a conversation begins with its task", draft);
    fields.cannot("tags", "left out: nothing is chosen by tags of an agent", draft);
    fields.cannot("silent", SILENT, draft);
    fields.cannot("admin_name", "left out: agents have no administrator, in AutoGen either", draft);
    let nested = fields.take("nested_chats").map(|at| at.items()).transpose()?.unwrap_or_default();
    fields.rest(draft);
    draft.agents.push(entries);
    Ok(Member { wanted, name, has_person, model, nested })
}

/// The kind of an agent, by its class or else by its name. What other classes do besides is not converted.
fn kind(class: Option<&At<'_>>, name: &str, draft: &mut Draft) -> Result<Kind> {
    let Some(at) = class else { return Ok(Kind::of("", name)) };
    let class = at.text()?;
    let kind = Kind::of(class, name);
    if !class.is_empty() && !kind.is_all_of(class) {
        let usual = kind.class();
        draft
            .note(&at.path, format!("`{class}` is converted as `{usual}`: what it does besides is left out"));
    }
    Ok(kind)
}

/// Adds the system message and the model of an agent. Returns the entries of the model, if it has one.
fn speech(
    fields: &mut Fields<'_>,
    (kind, wanted, system): (Kind, &str, Option<String>),
    program: &Program<'_>,
    entries: &mut Entries,
    draft: &mut Draft,
) -> Result<Option<Entries>> {
    let own = fields.first(&["llm_config", "model_config"]);
    let pick = fields.take("model");
    let picked = pick.as_ref().map(At::texts).transpose()?;
    let model = match own {
        Some(own) if own.value == &Value::Bool(false) => None,
        Some(own) => Some(model(&own, picked.as_deref(), draft)?),
        None if kind == Kind::Proxy => None,
        None => match &program.llm {
            Some(llm) => Some(model(llm, picked.as_deref(), draft)?),
            None if picked.is_some() => {
                let (value, path) = (Value::Object(Map::new()), fields.at.path.clone());
                Some(model(&At { value: &value, path }, picked.as_deref(), draft)?)
            }
            // The command line sets the default model.
            None => Some(Model::default()),
        },
    };
    let Some(model) = model else {
        if let Some(at) = pick {
            draft.note(&at.path, "left out: the agent has no `llm_config`, so no model");
        }
        entries.push(("model".into(), Yaml::text("none")));
        return Ok(None);
    };
    let is_usual = system.is_none() && kind == Kind::Assistant;
    let usual = is_usual.then(|| coding::usual(&fields.at.path, program.has_other_runner(wanted), draft));
    entries.extend(system.or(usual).map(|text| ("system".to_owned(), Yaml::text(text))));
    let model = model.entries();
    entries.extend(model.clone());
    Ok(Some(model))
}

fn system(fields: &mut Fields<'_>) -> Result<Option<String>> {
    let texts = fields.take("system_message").map(|at| at.texts()).transpose()?;
    Ok(texts.map(|texts| texts.join("\n")).filter(|text| !text.trim().is_empty()))
}

/// Adds human input, limits on automatic replies and the termination predicate. Returns whether a person can be asked.
fn people(fields: &mut Fields<'_>, kind: Kind, entries: &mut Entries, draft: &mut Draft) -> Result<bool> {
    let mode = fields.take("human_input_mode");
    let input =
        mode.as_ref().map(|at| at.text()).transpose()?.unwrap_or(kind.default_input()).to_ascii_lowercase();
    match (&mode, input.as_str()) {
        (_, "always" | "terminate" | "never") => {}
        (Some(at), _) => return at.wrong("must be `ALWAYS`, `TERMINATE` or `NEVER`"),
        _ => {}
    }
    entries.push(("human_input".into(), Yaml::text(&input)));
    if let Some(limit) = fields.count("max_consecutive_auto_reply")? {
        entries.push(("max_auto_replies".into(), Yaml::plain(limit)));
    }
    if let Some(at) = fields.take("is_termination_msg") {
        match predicate(&at) {
            Some(text) => entries.push(("terminate_on".into(), Yaml::one("says", Yaml::text(text)))),
            None => draft
                .note(&at.path, format!("{CODE}: give the text as `terminate_on`, if it is not `TERMINATE`")),
        }
    }
    if let Some(reply) = fields.text("default_auto_reply")? {
        entries.push(("default_reply".into(), Yaml::text(reply)));
    }
    Ok(input != "never")
}
