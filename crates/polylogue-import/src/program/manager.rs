//! The manager of a group chat of AutoGen 0.2: its termination predicate and the model that selects the speakers.

use super::coding::{class_of, is_on};
use super::definition::{Program, predicate};
use super::model_list::model;
use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::{CODE, Result, SILENT, UNASKED};
use crate::yaml::{Entries, Yaml};

/// Whether an agent of the list is a group chat manager.
pub(super) fn is_manager(at: &At<'_>) -> bool {
    let class = class_of(at).and_then(|class| class.rsplit('.').next()).unwrap_or_default();
    class.to_ascii_lowercase().replace('_', "") == "groupchatmanager"
}

/// The manager: in the list of agents, or under its own key.
pub(super) fn only<'a>(listed: Vec<At<'a>>, fields: &mut Fields<'a>) -> Result<Option<At<'a>>> {
    let own = fields.first(&["manager", "group_chat_manager"]);
    let mut all = own.into_iter().chain(listed);
    let first = all.next();
    match all.next() {
        Some(second) => second.wrong("there is another manager: a definition is of one group"),
        None => Ok(first),
    }
}

/// The group chat: under its own key, or in the manager.
pub(super) fn group<'a>(manager: Option<&At<'a>>, own: Option<At<'a>>) -> Result<Option<At<'a>>> {
    let within = manager.map(At::fields).transpose()?.and_then(|mut fields| fields.take("groupchat"));
    match (own, within) {
        (Some(_), Some(within)) => within.wrong("there is a `groupchat` next to the manager, too: give one"),
        (own, within) => Ok(own.or(within)),
    }
}

/// The manager's name.
pub(super) fn name<'a>(manager: Option<&At<'a>>) -> Option<&'a str> {
    manager?.value.get("name")?.as_str()
}

/// The termination text of the group chat, and the `llm_config` of its speaker selection.
pub(super) fn settings<'a>(
    manager: Option<&At<'a>>,
    group: &mut Fields<'_>,
    draft: &mut Draft,
) -> Result<(Yaml, Option<At<'a>>)> {
    let of_group = group.take("is_termination_msg");
    let mut says = of_group.as_ref().and_then(|at| said(at, draft));
    let Some(manager) = manager else { return Ok((says.unwrap_or_else(usual), None)) };
    let mut fields = manager.fields()?;
    if let Some(at) = fields.take("is_termination_msg") {
        let own = said(&at, draft);
        if let (Some(_), Some(other)) = (&own, &of_group) {
            draft.note(&other.path, "left out: that of the manager counts");
        }
        says = own.or(says);
    }
    let llm = fields.take("llm_config");
    fields.ignore(&["name", "class", "type", "agent_type", "groupchat"]);
    fields.cannot("silent", SILENT, draft);
    fields.cannot("description", "left out: a manager is not a participant, so no model picks it", draft);
    fields.cannot("system_message", "left out: a manager says nothing itself", draft);
    for key in ["max_consecutive_auto_reply", "default_auto_reply"] {
        fields.cannot(key, "left out: a manager says nothing itself, in AutoGen either", draft);
    }
    fields.unusual("human_input_mode", "NEVER", UNASKED, draft);
    for key in ["function_map", "tools"] {
        fields.cannot(key, &format!("left out: {CODE}"), draft);
    }
    if let Some(at) = fields.take("code_execution_config").filter(|at| is_on(at.value)) {
        draft.note(&at.path, "left out: a manager runs no code, in AutoGen either");
    }
    fields.rest(draft);
    Ok((says.unwrap_or_else(usual), llm))
}

impl Program<'_> {
    /// The entries of the manager's model, if it has one.
    pub(super) fn manager_model(&self, draft: &mut Draft) -> Result<Option<Entries>> {
        let own = self
            .manager
            .as_ref()
            .map(At::fields)
            .transpose()?
            .and_then(|mut fields| fields.take("llm_config"));
        match own.as_ref().or(self.llm.as_ref()) {
            Some(llm) if llm.value != false => Ok(Some(model(llm, None, draft)?.entries())),
            _ => Ok(None),
        }
    }
}

fn said(at: &At<'_>, draft: &mut Draft) -> Option<Yaml> {
    let text = predicate(at);
    if text.is_none() {
        draft.note(&at.path, format!("{CODE}: give the text as `stop.says`, if it is not `TERMINATE`"));
    }
    text.map(Yaml::text)
}

/// AutoGen's default termination of a group chat.
fn usual() -> Yaml {
    let entries: Entries =
        vec![("text".into(), Yaml::text("TERMINATE")), ("whole".into(), Yaml::plain(true))];
    Yaml::Map(entries)
}
