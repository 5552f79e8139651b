//! What agents received and said, each from its own point of view.

use std::sync::Arc;

use polylogue::tasks::History;
use polylogue::{Agent as _, Assistant, Transcript};
use polylogue_core::{AnyModel, Body, Event, Name, Path, ViewOptions};
use polylogue_models::Script;

use crate::Result;
use crate::stored::StoredTeam;

/// One agent's point of view of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentHistory {
    /// The chat.
    pub chat: Path,
    /// The agent.
    pub who: Name,
    /// The system message.
    pub system: Option<Arc<str>>,
    /// What the agent received and said.
    pub history: History,
}

impl AgentHistory {
    /// Returns the histories of all agents whose models were asked as participants of a chat, in the order of the chats and of
    /// their participants.
    ///
    /// # Errors
    /// When the team cannot be built, or the events are not those of a conversation.
    pub fn all(stored: &StoredTeam, events: &[Event]) -> Result<Vec<Self>> {
        let assistants = stored.assistants()?;
        // Agents that solve tasks are listed once more, with the views of these tasks.
        let agent = |who: &Name| assistants.iter().rfind(|agent| agent.name() == who);
        let view_options =
            |who: &Name| agent(who).map_or_else(ViewOptions::default, |agent| agent.view_options().clone());
        let works = |who: &Name| agent(who).is_some_and(solves_tasks);
        let events: Vec<Arc<Event>> = events.iter().cloned().map(Arc::new).collect();
        let mut all = Vec::new();
        for at in chats(&events) {
            let chat = Transcript::from_events(&at, &events).map_err(polylogue_core::Error::Bug)?;
            for who in speakers(&chat, &works) {
                let history = History::through(&chat, &who, view_options(&who));
                let there = stored
                    .team
                    .assistants_in(&chat, &|_| Ok(AnyModel::new(Script::default().model("silent"))))?;
                let described = there.iter().rfind(|agent| *agent.name() == who);
                let system = described.and_then(|agent| agent.system_for(chat.task()));
                all.push(Self { chat: at.clone(), who, system, history });
            }
        }
        Ok(all)
    }
}

impl StoredTeam {
    /// Returns whether `agent` solves tasks: its history is then what a person reads instead of a request.
    ///
    /// # Errors
    /// When the team cannot be built.
    pub fn works_on_tasks(&self, agent: &str) -> Result<bool> {
        let assistants = self.assistants()?;
        Ok(assistants.iter().any(|assistant| assistant.name().as_str() == agent && solves_tasks(assistant)))
    }
}

fn solves_tasks(assistant: &Assistant) -> bool {
    assistant.view_options().forget_private_turns
}

/// Those of `chat` whose models were asked: its participants in their order, and who solved a task next to them.
fn speakers(chat: &Transcript, works: &dyn Fn(&Name) -> bool) -> Vec<Name> {
    let asked = chat.events().iter().filter_map(|event| match &event.body {
        Body::ModelReplied(reply) => Some(&reply.who),
        _ => None,
    });
    let mut all: Vec<Name> = Vec::new();
    let participants = chat.participants().iter().filter(|who| asked.clone().any(|asked| asked == *who));
    for who in participants.chain(asked.clone().filter(|who| works(who))) {
        if !all.contains(who) {
            all.push(who.clone());
        }
    }
    all
}

/// The chats there were, in the order in which they began.
fn chats(events: &[Arc<Event>]) -> Vec<Path> {
    let opened = events.iter().filter(|event| matches!(event.body, Body::Opened(_)));
    opened.map(|event| event.chat.clone()).collect()
}
