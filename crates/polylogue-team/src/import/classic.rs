//! What is declarative of an AutoGen 0.2 program: agents, a group chat, a list of chats.

use serde_json::{Map, Value};

use super::Result;
use super::agents::CODE;
use super::cursor::{At, Fields};
use super::draft::Draft;
use super::models::{Model, of_entry};
use super::yaml::{Entries, Yaml};
use super::{coding, fallback, group, manager, nested, sequence};

/// What is said of settings of AutoGen's cache.
pub(super) const UNCACHED: &str =
    "left out: every reply is asked for; `--record` and `--replay` keep replies of a run";

/// What is said of a chat that prints nothing.
pub(super) const SILENT: &str = "left out: what is printed is said on the command line (`--quiet`)";

/// How an assistant is described that has neither a description nor a system text.
const ASSISTANT: &str = "A general assistant that writes text and code";

/// What every part of a definition may need to know.
pub(super) struct Program<'a> {
    /// Who there is, in order: what the definition and the team file call them.
    pub(super) agents: Vec<Member<'a>>,
    /// How models are reached where an agent does not say it.
    pub(super) llm: Option<At<'a>>,
    /// What is said of the manager of the group.
    pub(super) manager: Option<At<'a>>,
    /// Which agents run code in AutoGen, as the definition calls them.
    runners: Vec<&'a str>,
    /// Whether the definition as a whole has code run.
    is_coding: bool,
    /// Whether a model picks the speakers of its group.
    is_picked_by_model: bool,
}

/// An agent of the definition.
#[derive(Debug, Clone)]
pub(super) struct Member<'a> {
    pub(super) wanted: &'a str,
    pub(super) name: String,
    /// Whether a person may speak for it.
    pub(super) has_person: bool,
    /// The entries of its model, if it speaks by one.
    pub(super) model: Option<Entries>,
    /// Chats that reply for it.
    nested: Vec<At<'a>>,
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
    fields.cannot("coding", coding::CODE_BLOCKS, draft);
    fields.cannot("cache_seed", UNCACHED, draft);
    let code = fields.take("code_execution_config").filter(|at| coding::is_on(at.value));
    if let Some(at) = &code {
        draft.note(&at.path, coding::CODE_BLOCKS);
    }
    let (managers, agents): (Vec<_>, Vec<_>) = agents.items()?.into_iter().partition(manager::is_manager);
    let manager = manager::only(managers, &mut fields)?;
    let runners = agents.iter().filter_map(coding::runner).collect();
    let group = fields.first(&["groupchat", "group_chat", "groupchat_config"]);
    let group = manager::group(manager.as_ref(), group)?;
    let is_picked_by_model = group.as_ref().is_some_and(group::is_picked_by_model);
    let is_coding = code.is_some();
    let mut program = Program { agents: Vec::new(), llm, manager, runners, is_coding, is_picked_by_model };
    for at in agents {
        let member = agent(&at, &program, draft)?;
        program.agents.push(member);
    }
    let one = fields.first(&["initiate_chat", "chat"]);
    let many = fields.first(&["chats", "initiate_chats", "chat_queue"]);
    let chats = match (one, many) {
        (Some(one), None) => vec![one],
        (None, Some(many)) => many.items()?,
        (None, None) => Vec::new(),
        (Some(one), Some(_)) => return one.wrong("there is a list of chats, too: give one of them"),
    };
    sequence::chats(&chats, group.as_ref(), &program, draft)?;
    nested_chats(&mut fields, group.as_ref(), &program, draft)?;
    if !draft.has_group {
        for at in group.iter().chain(&program.manager) {
            draft.note(&at.path, "left out: no chat is with the group");
        }
    }
    fields.rest(draft);
    Ok(())
}

fn nested_chats(
    fields: &mut Fields<'_>,
    group: Option<&At<'_>>,
    program: &Program<'_>,
    draft: &mut Draft,
) -> Result<()> {
    for at in fields.take("nested_chats").map(|at| at.items()).transpose()?.unwrap_or_default() {
        nested::of_program(&at, group, program, draft)?;
    }
    for member in &program.agents {
        for at in &member.nested {
            nested::of_agent(at, member, group, program, draft)?;
        }
    }
    Ok(())
}

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
    let system = system(&mut fields)?;
    if let Some(text) = description.or_else(|| program.described(kind, &fields, system.as_deref())) {
        entries.push(("description".into(), Yaml::text(text.trim())));
    }
    let model = speech(&mut fields, (kind, wanted, system), program, &mut entries, draft)?;
    let has_person = people(&mut fields, kind, &mut entries, draft)?;
    // AutoGen's default reply is empty and the chat continues. Where a person may be asked, that is the default here, too.
    if !has_person && model.is_none() && !entries.iter().any(|(key, _)| key == "default_reply") {
        entries.push(("default_reply".into(), Yaml::text("")));
    }
    for key in ["function_map", "functions", "tools"] {
        fields.cannot(key, CODE, draft);
    }
    coding::runs(&mut fields, kind, &mut entries, draft)?;
    fields.cannot("chat_messages", "left out: a conversation begins with its task", draft);
    fields.cannot("tags", "left out: nothing is chosen by tags of an agent", draft);
    fields.cannot("silent", SILENT, draft);
    fields.cannot("admin_name", "left out: an agent has no administrator, in AutoGen neither", draft);
    let nested = fields.take("nested_chats").map(|at| at.items()).transpose()?.unwrap_or_default();
    fields.rest(draft);
    draft.agents.push(entries);
    Ok(Member { wanted, name, has_person, model, nested })
}

/// The system text and the model of an agent. Returns the entries of the model, if it speaks by one.
fn speech(
    fields: &mut Fields<'_>,
    (kind, wanted, system): (Kind, &str, Option<String>),
    program: &Program<'_>,
    entries: &mut Entries,
    draft: &mut Draft,
) -> Result<Option<Entries>> {
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
    let Some(model) = model else {
        entries.push(("model".into(), Yaml::text("none")));
        return Ok(None);
    };
    let is_usual = system.is_none() && kind == Kind::Assistant;
    let usual = is_usual.then(|| coding::usual(&fields.at.path, program.hears_of_code(wanted), draft));
    entries.extend(system.or(usual).map(|text| ("system".to_owned(), Yaml::text(text))));
    let model = model.entries();
    entries.extend(model.clone());
    Ok(Some(model))
}

/// What kind of agent it is, which decides what it is when nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Assistant,
    Proxy,
    Conversable,
}

impl Kind {
    /// The kind of a class; without one, the name tells.
    pub(super) fn of(class: &str, name: &str) -> Self {
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

/// The text that a message has to hold for a predicate; nothing when the predicate is code.
pub(super) fn predicate<'a>(at: &At<'a>) -> Option<&'a str> {
    at.value.as_str().filter(|text| !text.contains("lambda") && !text.contains('('))
}

/// The model of an `llm_config`: the first entry of its list, or the one that is `picked`.
pub(super) fn model(at: &At<'_>, picked: Option<&[&str]>, draft: &mut Draft) -> Result<Model> {
    let mut filter = None;
    let (common, list) = match at.value {
        Value::Array(_) => (Map::new(), Some(at.clone())),
        _ => {
            let mut fields = at.fields()?;
            let list = fields.take("config_list");
            for key in ["functions", "tools"] {
                fields.cannot(key, CODE, draft);
            }
            filter = fields.take("filter_dict");
            for key in ["cache_seed", "cache", "use_cache"] {
                fields.cannot(key, UNCACHED, draft);
            }
            fields.cannot("context", "left out: texts have no templates that would be filled in", draft);
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
    let items = fallback::fitting(list.items()?, filter.as_ref())?;
    let is_picked = |at: &&At<'_>| {
        let name = at.value.get("model").and_then(Value::as_str);
        picked.is_some_and(|picked| name.is_some_and(|name| picked.contains(&name)))
    };
    let Some(chosen) = items.iter().find(is_picked).or(items.first()) else {
        return list.wrong("the list is empty");
    };
    fallback::note(&list, &items, chosen, draft);
    let mut merged = common;
    // The tags of an entry are known to the filter, and to nothing else.
    let is_tag = |key: &str| key == "tags" && filter.is_some();
    let own = chosen.entries()?.into_iter().filter(|(key, _)| !is_tag(key));
    merged.extend(own.map(|(key, at)| (key.to_owned(), at.value.clone())));
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
    /// Whether an agent other than `wanted` runs code.
    fn hears_of_code(&self, wanted: &str) -> bool {
        self.is_coding || self.runners.iter().any(|runner| *runner != wanted)
    }

    /// How AutoGen describes an agent without a description to the model that picks the speakers, where one picks.
    fn described<'d>(&self, kind: Kind, fields: &Fields<'_>, system: Option<&'d str>) -> Option<&'d str> {
        let mode = fields.peek("human_input_mode").and_then(Value::as_str).unwrap_or(kind.usual_input());
        let described = system.or((kind == Kind::Assistant).then_some(ASSISTANT));
        match (self.is_picked_by_model, kind, mode.to_ascii_lowercase().as_str()) {
            (false, ..) => None,
            (true, Kind::Proxy, "always") => Some("A person who answers questions and can run code"),
            (true, Kind::Proxy, "terminate") => Some("A user who can run code and report its output"),
            (true, Kind::Proxy, _) => {
                Some("A computer terminal that runs code it is given, and does nothing else")
            }
            _ => described,
        }
    }

    /// What all of its agents are called in the team file.
    pub(super) fn names(&self) -> Vec<String> {
        self.agents.iter().map(|member| member.name.clone()).collect()
    }

    /// The chat of a group, but for its participants, and those.
    pub(super) fn group(&self, at: Option<&At<'_>>, draft: &mut Draft) -> Result<(Entries, Vec<String>)> {
        group::chat(at, self, draft)
    }
}
