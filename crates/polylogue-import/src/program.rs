//! The declarative part of an AutoGen 0.2 program: agents, a group chat, a list of chats.

mod agent;
mod chats;
mod coding;
mod definition;
mod group;
mod manager;
mod model_list;
mod nested;

use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::{CODE_BLOCKS, Result, UNCACHED};
use definition::Program;

/// Reads a definition.
pub(crate) fn team_of(root: &At<'_>, draft: &mut Draft) -> Result<()> {
    let mut fields = root.fields()?;
    let Some(agents) = fields.first(&["agents", "agent_configs"]) else {
        return root.wrong(
            "this is neither a component of AutoGen Studio (`provider`, `config`) nor a list of `agents` of AutoGen 0.2",
        );
    };
    let name = fields.text("name")?.unwrap_or("team");
    draft.name = draft.name(name, "$")?;
    draft.description = fields.text("description")?.unwrap_or_default().to_owned();
    let task = fields.first(&["task", "building_task"]);
    draft.task = task.as_ref().map(At::text).transpose()?.map(str::to_owned);
    let llm = models(&mut fields, draft);
    fields.cannot("coding", CODE_BLOCKS, draft);
    fields.cannot("cache_seed", UNCACHED, draft);
    let code = fields.take("code_execution_config").filter(|at| coding::is_on(at.value));
    if let Some(at) = &code {
        draft.note(&at.path, CODE_BLOCKS);
    }
    let (managers, agents): (Vec<_>, Vec<_>) = agents.items()?.into_iter().partition(manager::is_manager);
    let manager = manager::only(managers, &mut fields)?;
    let runners = agents.iter().filter_map(coding::runner).collect();
    let group = fields.first(&["groupchat", "group_chat", "groupchat_config"]);
    let group = manager::group(manager.as_ref(), group)?;
    let is_coding = code.is_some();
    let mut program = Program { agents: Vec::new(), llm, manager, group, runners, is_coding };
    for at in agents {
        let member = agent::agent(&at, &program, draft)?;
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
    chats::chats(&chats, &program, draft)?;
    if let Some(at) = task.filter(|at| at.value.as_str() != draft.task.as_deref()) {
        draft.note(&at.path, "left out: the task is the message of the chat");
    }
    nested_chats(&mut fields, &program, draft)?;
    if !draft.has_group {
        for at in program.group.iter().chain(&program.manager) {
            draft.note(&at.path, "left out: no chat is with the group");
        }
    }
    fields.rest(draft);
    Ok(())
}

/// The `llm_config` of agents that have none.
fn models<'a>(fields: &mut Fields<'a>, draft: &mut Draft) -> Option<At<'a>> {
    let list = fields.take("config_list");
    let llm = fields.first(&["llm_config", "default_llm_config"]);
    if let (Some(list), Some(_)) = (&list, &llm) {
        draft.note(&list.path, "left out: the models are those of `llm_config`, which can have the list");
    }
    llm.or(list)
}

fn nested_chats(fields: &mut Fields<'_>, program: &Program<'_>, draft: &mut Draft) -> Result<()> {
    for at in fields.take("nested_chats").map(|at| at.items()).transpose()?.unwrap_or_default() {
        nested::of_program(&at, program, draft)?;
    }
    for member in &program.agents {
        for at in &member.nested {
            nested::of_agent(at, member, program, draft)?;
        }
    }
    Ok(())
}
