//! `show --history` and `show --side-by-side`: what every agent received and said.

use std::sync::Arc;

use serde_json::json;

use polylogue::tasks::History;
use polylogue::{Agent as _, Name, Transcript};
use polylogue_core::{AnyModel, Body, Event, Path, ViewOptions};
use polylogue_models::Script;
use polylogue_runtime::StoredTeam;

use crate::args;
use crate::commands::unwritable;
use crate::error::CliError;
use crate::screen::side_by_side::{AgentHistory, alone, below, columns};
use crate::screen::{OutputStyle, Sanitized, Size};
use crate::stderr::print_note;

/// The points of view of those who speak by models, or that of one of them.
pub(super) fn shown(
    kept: &StoredTeam,
    events: &[Event],
    args: &args::Show,
    looks: OutputStyle,
) -> Result<Sanitized, CliError> {
    let sides = sides(kept, events)?;
    if sides.is_empty() {
        print_note("No model was asked anything yet.");
    }
    if args.json {
        let wanted = |side: &&AgentHistory| {
            args.agent.as_ref().is_none_or(|agent| side.who.as_str() == Name::composed(agent))
        };
        let wanted: Vec<&AgentHistory> = sides.iter().filter(wanted).collect();
        if let Some(agent) = args.agent.as_ref().filter(|_| wanted.is_empty()) {
            return Err(CliError::from(kept.no_model_for(agent)));
        }
        return wanted.into_iter().map(as_json).collect::<Result<_, _>>().map_err(unwritable);
    }
    if let Some(agent) = &args.agent {
        let of = |side: &&AgentHistory| side.who.as_str() == Name::composed(agent);
        let last = sides.iter().rfind(of).ok_or_else(|| CliError::from(kept.no_model_for(agent)))?;
        return Ok(alone(last, looks.color));
    }
    Ok(match args.side_by_side {
        true => columns(&sides, Size::of_terminal().columns.saturating_sub(1), looks.color),
        false => below(&sides, looks.color),
    })
}

/// A point of view as one line of JSON.
fn as_json(side: &AgentHistory) -> serde_json::Result<Sanitized> {
    let AgentHistory { at, who, system, history } = side;
    Sanitized::json(&json!({"at": at, "agent": who, "system": system, "entries": history.entries}))
}

/// Whether `agent` solves tasks: what it was sent is then its history, as a person reads it.
pub(super) fn works_on_tasks(kept: &StoredTeam, agent: &str) -> Result<bool, CliError> {
    let assistants = kept.assistants()?;
    Ok(assistants
        .iter()
        .any(|assistant| assistant.name().as_str() == agent && assistant.view_options().forget_private_turns))
}

/// Everyone whose model was asked as a member of a chat, in the order of the chats and of their members.
fn sides(kept: &StoredTeam, events: &[Event]) -> Result<Vec<AgentHistory>, CliError> {
    let assistants = kept.assistants()?;
    // Agents that solve tasks are listed once more, with the views of these tasks.
    let agent = |who: &Name| assistants.iter().rfind(|agent| agent.name() == who);
    let view_options =
        |who: &Name| agent(who).map_or_else(ViewOptions::default, |agent| agent.view_options().clone());
    let events: Vec<Arc<Event>> = events.iter().cloned().map(Arc::new).collect();
    let mut sides = Vec::new();
    for at in chats(&events) {
        let chat = Transcript::of(&at, &events).map_err(CliError::failed)?;
        for who in
            speakers(&chat, &|who| agent(who).is_some_and(|agent| agent.view_options().forget_private_turns))
        {
            let history = History::through(&chat, &who, view_options(&who));
            let there =
                kept.team.assistants_in(&chat, &|_| Ok(AnyModel::new(Script::default().model("silent"))))?;
            let described = there.iter().rfind(|agent| *agent.name() == who);
            let system = described.and_then(|agent| agent.system_for(chat.task()));
            sides.push(AgentHistory { at: at.clone(), who, system, history });
        }
    }
    Ok(sides)
}

/// Those of `chat` whose models were asked: its members in their order, and who solved a task next to them.
fn speakers(chat: &Transcript, works: &dyn Fn(&Name) -> bool) -> Vec<Name> {
    let asked = chat.events().iter().filter_map(|event| match &event.body {
        Body::ModelReplied(sample) => Some(&sample.who),
        _ => None,
    });
    let mut all: Vec<Name> = Vec::new();
    let members = chat.participants().iter().filter(|who| asked.clone().any(|asked| asked == *who));
    for who in members.chain(asked.clone().filter(|who| works(who))) {
        if !all.contains(who) {
            all.push(who.clone());
        }
    }
    all
}

/// The chats there were, in the order in which they began.
fn chats(events: &[Arc<Event>]) -> Vec<Path> {
    let opened = events.iter().filter(|event| matches!(event.body, Body::Opened(_)));
    opened.map(|event| event.at.clone()).collect()
}
