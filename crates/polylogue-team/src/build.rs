//! A team as agents and chats that run.

mod agent;
mod builder;
mod network;
mod resources;
mod speaker;
mod tools;

use polylogue::agents::tooling::ModelSettings;
use polylogue::{Assistant, Chat, Name, Result, Transcript};
use polylogue_core::ViewOptions;
use polylogue_mcp::Catalog;

pub use self::builder::Provide;
pub(crate) use self::builder::{AgentBuilder, BuildScope};
use crate::build_context::BuildContext;
use crate::pattern::Agents as _;
use crate::private_agents::PrivateRole;
use crate::team::Team;

impl Team {
    /// Builds the outermost chat, with models that `provide` gives by name.
    ///
    /// # Errors
    /// When an agent has no model, when `provide` fails, and when a participant is not in the team: teams that were
    /// loaded from a file are checked, those that were made otherwise may not be. When it runs programs: that takes
    /// [`build_at`](Self::build_at).
    pub fn build(&self, provide: Provide<'_>) -> Result<Chat> {
        self.build_at(provide, &BuildContext::none())
    }

    /// Builds a team that runs programs: they work where `build_context` says. Nothing is run, and nothing is made there, before
    /// an agent wants it.
    ///
    /// # Errors
    /// As [`build`](Self::build); when the team asks for what was not [granted](BuildContext::grant), and when what its programs
    /// are to read is not there.
    pub fn build_at(&self, provide: Provide<'_>, build_context: &BuildContext) -> Result<Chat> {
        AgentBuilder::of(self, &self.name, None, provide, build_context).outermost()
    }

    /// Builds the agents with models, including those of inner chats, without the chats: to show what their models
    /// receive.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn assistants(&self, provide: Provide<'_>) -> Result<Vec<Assistant>> {
        self.assistants_with(provide, Catalog::default())
    }

    /// Builds the assistants with tools of MCP servers, as far as these are known.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn assistants_with(&self, provide: Provide<'_>, tools: Catalog) -> Result<Vec<Assistant>> {
        let place = BuildContext::unused().with_tools(tools);
        AgentBuilder::of(self, &self.name, None, provide, &place).assistants()
    }

    /// Builds the assistants in their form in `chat`: those of a role-play have system texts that are made of what was said there.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn assistants_in(&self, chat: &Transcript, provide: Provide<'_>) -> Result<Vec<Assistant>> {
        let mut all = self.assistants(provide)?;
        let build_context = BuildContext::unused();
        all.extend(AgentBuilder::of(self, &self.name, None, provide, &build_context).assistants_in(chat)?);
        Ok(all)
    }

    /// Returns the ways in which the picker `who` asks its model to choose among `names`, with their system texts. Teams within
    /// the team may have a picker of the same name each.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn choices_of(
        &self,
        who: &Name,
        names: &[Name],
        provide: Provide<'_>,
    ) -> Result<Vec<(ModelSettings, String)>> {
        let build_context = BuildContext::unused();
        AgentBuilder::of(self, &self.name, None, provide, &build_context).choices_of(who, names)
    }
}

/// Agents for inspection.
impl AgentBuilder<'_> {
    fn assistants(&self) -> Result<Vec<Assistant>> {
        let mut all = Vec::new();
        for agent in &self.team.agents {
            if let Some(keys) = agent.model() {
                all.extend(self.speakers(agent, keys)?);
            }
        }
        let agents = self.agents();
        for (name, chat) in self.team.chats_as(self.name) {
            for task in chat.pattern.part().tasks() {
                all.extend(agents.worker(task)?.map(without_private_turns));
            }
            all.extend(chat.summary.author(name, &agents)?);
        }
        for sub in &self.team.teams {
            all.extend(self.of_sub(sub).assistants()?);
        }
        Ok(all)
    }

    /// The agents whose system messages depend on `chat`.
    fn assistants_in(&self, chat: &Transcript) -> Result<Vec<Assistant>> {
        let mut all = Vec::new();
        for (_, given) in self.team.all_chats() {
            all.extend(given.pattern.part().assistants_in(chat, &self.agents())?);
        }
        for sub in &self.team.teams {
            all.extend(self.of_sub(sub).assistants_in(chat)?);
        }
        Ok(all)
    }

    fn choices_of(&self, who: &Name, names: &[Name]) -> Result<Vec<(ModelSettings, String)>> {
        let mut all = Vec::new();
        for (name, chat) in self.team.chats_as(self.name) {
            let Some(given) = chat.pattern.selector() else { continue };
            if PrivateRole::Selector.of(name).as_ref() == Some(who) {
                let selector = given.build(name, &self.agents())?;
                let described: Vec<_> =
                    names.iter().map(|name| (name, self.team.description_of(name))).collect();
                all.push((selector.request_settings(names), selector.system_for(&described)));
            }
        }
        for sub in &self.team.teams {
            all.extend(self.of_sub(sub).choices_of(who, names)?);
        }
        Ok(all)
    }
}

/// The agent of a task as the task shows it the conversation.
fn without_private_turns(worker: Assistant) -> Assistant {
    let view = ViewOptions { forget_private_turns: true, ..worker.view_options().clone() };
    worker.view(view)
}
