//! A team as agents and chats that run.

mod agent;
mod approval;
mod beyond;
mod calls;
mod memory;
mod order;
mod reasoning;
mod role_play;
mod room;
mod task;
mod tools;
mod web;

use std::cell::OnceCell;
use std::collections::BTreeSet;

use polylogue::agents::tooling::Asks;
use polylogue::{AnyModel, Assistant, Chat, Error, Limits, Name, Result, Transcript};
use polylogue_core::{Money, Params};
use polylogue_mcp::Catalog;

use crate::build_context::BuildContext;
use crate::chat::{self, Summary, TaskFrom};
use crate::pattern::{Group, Pattern, SelectSpeaker};
use crate::private_agents::PrivateRole;
use crate::team::{SubTeam, Team};
pub(crate) use beyond::graph;
use room::Around;
use tools::ToolFactory;
pub use tools::built_in_tools;
pub(crate) use tools::{FILES, file_tool_names, is_work_tool, known_tools, of_one_chat, runs_programs};
use web::Browser;
pub(crate) use web::reach;

/// Gives the model that is called so.
pub type Provide<'a> = &'a dyn Fn(&str) -> Result<AnyModel>;

impl Team {
    /// Makes the outermost chat, with models that `provide` gives by name.
    ///
    /// # Errors
    /// When an agent has no model, when `provide` fails, and when a participant is not in the team: teams that were
    /// loaded from a file are checked, those that were made otherwise may not be. When it runs programs: that takes
    /// [`build_at`](Self::build_at).
    pub fn build(&self, provide: Provide<'_>) -> Result<Chat> {
        self.build_at(provide, &BuildContext::none())
    }

    /// The same for a team that runs programs: they work at `workplace`. Nothing is run, and nothing is made there, before
    /// an agent wants it.
    ///
    /// # Errors
    /// As [`build`](Self::build); when the team asks for what was not [granted](BuildContext::grant), and when what its programs
    /// are to read is not there.
    pub fn build_at(&self, provide: Provide<'_>, workplace: &BuildContext) -> Result<Chat> {
        AgentBuilder::of(self, &self.name, None, provide, workplace).outermost(TaskFrom::default())
    }

    /// Builds the agents with models, including those of inner chats, without the chats: to show what their models
    /// receive.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn assistants(&self, provide: Provide<'_>) -> Result<Vec<Assistant>> {
        self.assistants_with(provide, Catalog::default())
    }

    /// The same with tools of MCP servers, as far as these are known.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn assistants_with(&self, provide: Provide<'_>, tools: Catalog) -> Result<Vec<Assistant>> {
        let place = BuildContext::unused().with_tools(tools);
        AgentBuilder::of(self, &self.name, None, provide, &place).assistants()
    }

    /// The same as they are in `chat`: those of a society have system texts that are made of what was said there.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn assistants_in(&self, chat: &Transcript, provide: Provide<'_>) -> Result<Vec<Assistant>> {
        let mut all = self.assistants(provide)?;
        let workplace = BuildContext::unused();
        all.extend(AgentBuilder::of(self, &self.name, None, provide, &workplace).players_in(chat)?);
        Ok(all)
    }

    /// The ways in which the picker `who` asks its model to choose among `names`, with their system texts. Teams within the team
    /// may have a picker of the same name each.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn choices_of(
        &self,
        who: &Name,
        names: &[Name],
        provide: Provide<'_>,
    ) -> Result<Vec<(Asks, String)>> {
        let workplace = BuildContext::unused();
        AgentBuilder::of(self, &self.name, None, provide, &workplace).choices_of(who, names)
    }

    /// Limits of the whole run: those the team sets, over the defaults.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let (set, default) = (&self.limits, Limits::default());
        Limits {
            turns: None,
            calls: set.calls,
            calls_each: default.calls_each,
            tokens: set.tokens,
            cost: set.cost.map(Money::dollars),
            depth: set.depth.and_then(|depth| depth.try_into().ok()).unwrap_or(default.depth),
        }
    }
}

/// Who can be called into a chat.
struct AgentBuilder<'a> {
    team: &'a Team,
    /// What the team is called where it takes part.
    name: &'a Name,
    model: Option<&'a str>,
    provide: Provide<'a>,
    workplace: &'a BuildContext,
    /// Where its programs run; it is there when the first of them is made.
    desk: OnceCell<ToolFactory>,
    /// What it has of the web; it is there when the first of its tools is made.
    browser: OnceCell<Browser>,
}

impl<'a> AgentBuilder<'a> {
    /// The crew of `team`, called `name`; `around` is the model of the team around it.
    fn of(
        team: &'a Team,
        name: &'a Name,
        around: Option<&'a str>,
        provide: Provide<'a>,
        workplace: &'a BuildContext,
    ) -> Self {
        let model = team.model.as_deref().or(around);
        Self { team, name, model, provide, workplace, desk: OnceCell::new(), browser: OnceCell::new() }
    }

    fn of_sub(&self, sub: &'a SubTeam) -> Self {
        Self::of(&sub.team, &sub.name, self.model, self.provide, self.workplace)
    }

    fn outermost(&self, brief: TaskFrom) -> Result<Chat> {
        let chat = self.chat(self.name, &self.team.chat, &self.team.description, &Around::default())?;
        chat.task_from(brief.into()).build()
    }

    fn assistants(&self) -> Result<Vec<Assistant>> {
        let mut all = Vec::new();
        for agent in &self.team.agents {
            if let Some(keys) = agent.model() {
                all.extend(self.speakers(agent, keys)?);
            }
        }
        let inner = self.team.chats.iter().map(|inner| (&*inner.name, &inner.chat));
        for (name, chat) in std::iter::once((self.name, &self.team.chat)).chain(inner) {
            all.extend(self.workers(chat)?);
            all.extend(self.summarizer(name, chat)?);
        }
        for sub in &self.team.teams {
            all.extend(self.of_sub(sub).assistants()?);
        }
        Ok(all)
    }

    /// The agents of its role-plays, with their system messages in `chat`.
    fn players_in(&self, chat: &Transcript) -> Result<Vec<Assistant>> {
        let mut all = Vec::new();
        for given in std::iter::once(&self.team.chat).chain(self.team.chats.iter().map(|inner| &inner.chat)) {
            if let Pattern::RolePlay(role_play) = &given.pattern {
                all.extend(self.players(role_play, chat)?);
            }
        }
        for sub in &self.team.teams {
            all.extend(self.of_sub(sub).players_in(chat)?);
        }
        Ok(all)
    }

    fn choices_of(&self, who: &Name, names: &[Name]) -> Result<Vec<(Asks, String)>> {
        let mut all = Vec::new();
        let inner = self.team.chats.iter().map(|inner| (&*inner.name, &inner.chat));
        for (name, chat) in std::iter::once((self.name, &self.team.chat)).chain(inner) {
            let Pattern::Group(Group { select: SelectSpeaker::Model(given), .. }) = &chat.pattern else {
                continue;
            };
            if PrivateRole::Selector.of(name).as_ref() == Some(who) {
                let selector = self.selector(name, given)?;
                let described: Vec<_> =
                    names.iter().map(|name| (name, self.team.description_of(name))).collect();
                all.push((selector.asks_for(names), selector.system_for(&described)));
            }
        }
        for sub in &self.team.teams {
            all.extend(self.of_sub(sub).choices_of(who, names)?);
        }
        Ok(all)
    }

    fn summarizer(&self, name: &Name, chat: &chat::Chat) -> Result<Option<Assistant>> {
        let (Summary::Reflect(reflect), Some(author)) = (&chat.summary, PrivateRole::Summary.of(name)) else {
            return Ok(None);
        };
        if reflect.by.is_some() {
            return Ok(None);
        }
        let model = self.model_of(&author, reflect.model.as_deref().map(String::as_str))?;
        let params = Params::from(reflect.parameters.value.clone());
        let assistant = Assistant::new(author.as_str(), model)?.params(params);
        Ok(Some(match reflect.parameters.max_continuations {
            Some(times) => assistant.max_continuations(times),
            None => assistant,
        }))
    }

    fn model_of(&self, who: &Name, own: Option<&str>) -> Result<AnyModel> {
        match own.or(self.model) {
            Some(model) => (self.provide)(model),
            None => Err(Error::config(format!("`{who}` has no model"))),
        }
    }
}

impl From<TaskFrom> for polylogue_core::TaskFrom {
    fn from(brief: TaskFrom) -> Self {
        match brief {
            TaskFrom::Last => Self::Last,
            TaskFrom::All => Self::All,
            TaskFrom::Task => Self::Task,
        }
    }
}

impl Team {
    /// The models that are asked for, by name, each once.
    #[must_use]
    pub fn models(&self) -> BTreeSet<&str> {
        let chats = || std::iter::once(&self.chat).chain(self.chats.iter().map(|inner| &inner.chat));
        let summaries = chats().filter_map(|chat| match &chat.summary {
            Summary::Reflect(reflect) => reflect.model.as_deref().map(String::as_str),
            _ => None,
        });
        let picks = chats().filter_map(|chat| match &chat.pattern {
            Pattern::Group(Group { select: SelectSpeaker::Model(selector), .. }) => selector.model.as_deref(),
            _ => None,
        });
        let agents = self.agents.iter().filter_map(|agent| Some(agent.model()?.model.as_ref()?.as_str()));
        let within = self.teams.iter().flat_map(|sub| sub.team.models());
        self.model.as_deref().into_iter().chain(agents).chain(picks).chain(summaries).chain(within).collect()
    }
}
