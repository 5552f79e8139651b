//! What is declarative of an AutoGen 0.2 program: agents, a group chat, a list of chats.

use serde_json::{Map, Value};

use super::Result;
use super::agents::CODE;
use super::cursor::{At, Fields};
use super::draft::Draft;
use super::models::{Model, of_entry};
use super::yaml::{Entries, Yaml};
use super::{group, sequence};

/// What every part of a definition may need to know.
pub(super) struct Program<'a> {
    /// Who there is, in order: what the definition and the team file call them.
    pub(super) agents: Vec<Member<'a>>,
    /// How models are reached where an agent does not say it.
    pub(super) llm: Option<At<'a>>,
}

/// An agent of the definition.
#[derive(Debug, Clone)]
pub(super) struct Member<'a> {
    pub(super) wanted: &'a str,
    pub(super) name: String,
    /// Whether a person may speak for it.
    pub(super) has_person: bool,
}

/// Reads a definition.
pub(super) fn team_of(root: &At<'_>, draft: &mut Draft) -> Result<()> {
    let mut fields = root.fields()?;
    let Some(agents) = fields.first(&["agents", "agent_configs"]) else {
        return root.wrong(
            "this is neither a component of AutoGen Studio (`provider`, `config`) nor a list of `agents` of AutoGen 0.2",
        );
    };
    let name = fields.text("name")?.unwrap_or("team");
    draft.name = draft.name(name, "$");
    draft.description = fields.text("description")?.unwrap_or_default().to_owned();
    draft.task = fields.first(&["task", "building_task"]).map(|at| at.text()).transpose()?.map(str::to_owned);
    let list = fields.take("config_list");
    let llm = fields.first(&["llm_config", "default_llm_config"]).or(list);
    fields.ignore(&["coding", "cache_seed"]);
    fields.cannot("code_execution_config", CODE_BLOCKS, draft);
    let mut program = Program { agents: Vec::new(), llm };
    for at in agents.items()? {
        let member = agent(&at, &program, draft)?;
        program.agents.push(member);
    }
    let group = fields.first(&["groupchat", "group_chat", "groupchat_config"]);
    let one = fields.first(&["initiate_chat", "chat"]);
    let many = fields.first(&["chats", "initiate_chats", "chat_queue"]);
    let chats = match (one, many) {
        (Some(one), None) => vec![one],
        (None, Some(many)) => many.items()?,
        (None, None) => Vec::new(),
        (Some(one), Some(_)) => return one.wrong("there is a list of chats, too: give one of them"),
    };
    sequence::chats(&chats, group.as_ref(), &program, draft)?;
    fields.rest(draft);
    Ok(())
}

const CODE_BLOCKS: &str =
    "left out, so that nothing runs unasked: `runs_code: true` lets an agent run blocks of code in a sandbox";

/// The system text of an assistant that has none of its own, in short.
const USUAL: &str =
    "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE.";

fn agent<'a>(at: &At<'a>, program: &Program<'_>, draft: &mut Draft) -> Result<Member<'a>> {
    let mut outer = at.fields()?;
    let kind = outer.first(&["class", "type", "agent_type"]).map(|at| at.text()).transpose()?;
    // An older form keeps all but the type within.
    let mut fields = match outer.take("config") {
        Some(config) => {
            outer.cannot("skills", CODE, draft);
            outer.rest(draft);
            config.fields()?
        }
        None => outer,
    };
    let wanted = fields.need("name")?.text()?;
    let name = draft.name(wanted, &at.path);
    let kind = Kind::of(kind.unwrap_or_default(), wanted);
    let mut entries: Entries = vec![("name".into(), Yaml::text(&name))];
    let description = fields.text("description")?;
    entries.extend(description.map(|text| ("description".to_owned(), Yaml::text(text.trim()))));
    let system = system(&mut fields)?;
    let own = fields.first(&["llm_config", "model_config"]);
    let picked = fields.take("model").map(|at| at.texts()).transpose()?;
    let model = match own {
        Some(own) if own.value == &Value::Bool(false) => None,
        Some(own) => Some(model(&own, picked.as_deref(), draft)?),
        None if kind == Kind::Proxy => None,
        None => match &program.llm {
            Some(llm) => Some(model(llm, picked.as_deref(), draft)?),
            // The command line gives one.
            None => Some(Model::default()),
        },
    };
    let speaks = model.is_some();
    match model {
        Some(model) => {
            let is_usual = system.is_none() && kind == Kind::Assistant;
            if is_usual {
                draft.note(
                    &at.path,
                    "its usual long system text is put in short, without what it says of code",
                );
            }
            let system = system.or_else(|| is_usual.then(|| USUAL.to_owned()));
            entries.extend(system.map(|text| ("system".to_owned(), Yaml::text(text))));
            entries.extend(model.entries());
        }
        None => entries.push(("model".into(), Yaml::text("none"))),
    }
    let has_person = people(&mut fields, kind, &mut entries, draft)?;
    // AutoGen's default reply is empty and the chat continues. Where a person may be asked, that is the default here, too.
    if !has_person && !speaks && !entries.iter().any(|(key, _)| key == "auto_reply") {
        entries.push(("auto_reply".into(), Yaml::text("")));
    }
    for key in ["function_map", "functions", "tools"] {
        fields.cannot(key, CODE, draft);
    }
    fields.cannot("code_execution_config", CODE_BLOCKS, draft);
    fields.ignore(&["tags", "silent", "admin_name", "chat_messages"]);
    fields.rest(draft);
    draft.agents.push(entries);
    Ok(Member { wanted, name, has_person })
}

/// What kind of agent it is, which decides what it is when nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Assistant,
    Proxy,
    Conversable,
}

impl Kind {
    fn of(class: &str, name: &str) -> Self {
        let class = class.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().replace('_', "");
        match class.as_str() {
            "userproxyagent" | "userproxy" => Self::Proxy,
            "conversableagent" | "conversable" => Self::Conversable,
            "" if name.to_ascii_lowercase().replace(['_', '-', ' '], "").contains("userproxy") => Self::Proxy,
            _ => Self::Assistant,
        }
    }

    const fn usual_input(self) -> &'static str {
        match self {
            Self::Assistant => "never",
            Self::Proxy => "always",
            Self::Conversable => "terminate",
        }
    }
}

fn system(fields: &mut Fields<'_>) -> Result<Option<String>> {
    let texts = fields.take("system_message").map(|at| at.texts()).transpose()?;
    Ok(texts.map(|texts| texts.join("\n")).filter(|text| !text.trim().is_empty()))
}

/// When a person is asked, and what else decides on replies. Gives whether a person may be asked.
fn people(fields: &mut Fields<'_>, kind: Kind, entries: &mut Entries, draft: &mut Draft) -> Result<bool> {
    let mode = fields.take("human_input_mode");
    let input =
        mode.as_ref().map(|at| at.text()).transpose()?.unwrap_or(kind.usual_input()).to_ascii_lowercase();
    match (&mode, input.as_str()) {
        (_, "always" | "terminate" | "never") => {}
        (Some(at), _) => return at.wrong("this is `ALWAYS`, `TERMINATE` or `NEVER`"),
        _ => {}
    }
    entries.push(("human_input".into(), Yaml::text(&input)));
    if let Some(limit) = fields.count("max_consecutive_auto_reply")? {
        entries.push(("max_auto_replies".into(), Yaml::plain(limit)));
    }
    if let Some(at) = fields.take("is_termination_msg") {
        match at.value.as_str().filter(|text| !text.contains("lambda") && !text.contains('(')) {
            Some(text) => entries.push(("ends_on".into(), Yaml::one("says", Yaml::text(text)))),
            None => {
                draft.note(&at.path, format!("{CODE}: give the text as `ends_on`, if it is not `TERMINATE`"))
            }
        }
    }
    if let Some(reply) = fields.text("default_auto_reply")? {
        entries.push(("auto_reply".into(), Yaml::text(reply)));
    }
    Ok(input != "never")
}

/// The model of an `llm_config`: the first entry of its list, or the one that is `picked`.
pub(super) fn model(at: &At<'_>, picked: Option<&[&str]>, draft: &mut Draft) -> Result<Model> {
    let (common, list) = match at.value {
        Value::Array(_) => (Map::new(), Some(at.clone())),
        _ => {
            let mut fields = at.fields()?;
            let list = fields.take("config_list");
            for key in ["functions", "tools"] {
                fields.cannot(key, CODE, draft);
            }
            fields.cannot("filter_dict", "left out: the first model of the list is taken", draft);
            fields.ignore(&["cache_seed", "cache", "context", "use_cache"]);
            (fields.left(), list)
        }
    };
    let Some(list) = list else {
        let value = Value::Object(named(common, picked));
        return of_entry(At { value: &value, path: at.path.clone() }.fields()?, draft);
    };
    if list.value.is_string() {
        draft.note(&list.path, "the list is kept elsewhere: name a model, or give one with `--model`");
        return Ok(Model::default());
    }
    let items = list.items()?;
    let is_picked = |at: &&At<'_>| {
        let name = at.value.get("model").and_then(Value::as_str);
        picked.is_some_and(|picked| name.is_some_and(|name| picked.contains(&name)))
    };
    let Some(chosen) = items.iter().find(is_picked).or(items.first()) else {
        return list.wrong("the list is empty");
    };
    if items.len() > 1 {
        draft.note(&list.path, "one model of the list is taken: there are no others to fall back on");
    }
    let mut merged = common;
    merged.extend(chosen.entries()?.into_iter().map(|(key, at)| (key.to_owned(), at.value.clone())));
    let value = Value::Object(named(merged, picked));
    of_entry(At { value: &value, path: chosen.path.clone() }.fields()?, draft)
}

/// An entry that names no model is about the one that is `picked`.
fn named(mut entry: Map<String, Value>, picked: Option<&[&str]>) -> Map<String, Value> {
    if let Some(model) = picked.and_then(|picked| picked.first()).filter(|_| !entry.contains_key("model")) {
        entry.insert("model".into(), (*model).into());
    }
    entry
}

impl Program<'_> {
    /// What all of its agents are called in the team file.
    pub(super) fn names(&self) -> Vec<String> {
        self.agents.iter().map(|member| member.name.clone()).collect()
    }

    /// The chat of a group, but for its participants, and those.
    pub(super) fn group(&self, at: Option<&At<'_>>, draft: &mut Draft) -> Result<(Entries, Vec<String>)> {
        group::chat(at, self, draft)
    }
}
