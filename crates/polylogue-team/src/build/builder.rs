//! What builds the agents and chats of a team.

use std::cell::OnceCell;

use polylogue::tools::Approval;
use polylogue::tools::approval::ApprovalRequest;
use polylogue::{AnyModel, Assistant, Chat, Error, Human, Name, Result};
use polylogue_core::{AnyAgent, ChatBuilder, ConfigError, PatternError, TaskFrom, UnknownName};
use polylogue_models::{Retries, model_names};

use super::resources::{ToolFactory, WebTools};
use crate::agent::Agent;
use crate::approval::Approver;
use crate::build_context::BuildContext;
use crate::chat::InnerChat;
use crate::limits::UsageLimits;
use crate::path::Paths;
use crate::pattern::{Agents, Task};
use crate::sandbox::SandboxBackend;
use crate::team::{SubTeam, Team};

/// Returns the model of a name.
pub type Provide<'a> = &'a dyn Fn(&str) -> Result<AnyModel>;

/// Builds the agents and chats of a team.
pub(crate) struct AgentBuilder<'a> {
    pub(crate) team: &'a Team,
    /// Name of the team where it takes part.
    pub(crate) name: &'a Name,
    model: Option<&'a str>,
    provide: Provide<'a>,
    pub(super) context: &'a BuildContext,
    /// Made with the first tool that needs it.
    factory: OnceCell<ToolFactory>,
    /// Made with the first tool that needs it.
    browser: OnceCell<WebTools>,
}

/// Where something is built: the chats around it, the outermost first, and the agents in whose nested chats it is.
#[derive(Clone, Default)]
pub(crate) struct BuildScope<'a> {
    chats: Vec<&'a Name>,
    pub(super) owners: Vec<&'a Name>,
}

impl<'a> AgentBuilder<'a> {
    /// The builder of `team`, called `name`; `outer_model` is the model of the team around it.
    pub(crate) fn of(
        team: &'a Team,
        name: &'a Name,
        outer_model: Option<&'a str>,
        provide: Provide<'a>,
        context: &'a BuildContext,
    ) -> Self {
        let model = team.model.as_deref().map(String::as_str).or(outer_model);
        Self { team, name, model, provide, context, factory: OnceCell::new(), browser: OnceCell::new() }
    }

    pub(crate) fn of_sub(&self, sub: &'a SubTeam) -> Self {
        Self::of(&sub.team, &sub.name, self.model, self.provide, self.context)
    }

    /// The outermost chat of a run.
    pub(super) fn outermost(&self) -> Result<Chat> {
        self.outermost_within(self.team.chat.limits)?.build()
    }

    /// The outermost chat of a team that takes part in another.
    pub(super) fn participating(&self, task_from: TaskFrom) -> Result<Chat> {
        let limits = self.team.limits.usage.and(self.team.chat.limits);
        self.outermost_within(limits)?.task_from(task_from).build()
    }

    fn outermost_within(&self, limits: UsageLimits) -> Result<ChatBuilder> {
        let agents = ScopedAgents { builder: self, around: BuildScope::default() };
        self.team.chat.build_within(limits, self.name, &self.team.description, &agents)
    }

    pub(super) fn inner(&self, inner: &'a InnerChat, around: &BuildScope<'a>) -> Result<ChatBuilder> {
        if around.chats.contains(&&*inner.name) {
            return Err(PatternError::Recursive { chat: inner.name.value.clone() }.into());
        }
        let mut around = around.clone();
        around.chats.push(&inner.name);
        inner.chat.build(&inner.name, &inner.description, &ScopedAgents { builder: self, around })
    }

    /// The agent, chat or team `name`.
    pub(super) fn participant(&self, name: &Name, around: &BuildScope<'a>) -> Result<AnyAgent> {
        if let Some(agent) = self.team.agents.iter().find(|agent| agent.name == *name) {
            return self.agent(agent, around);
        }
        if let Some(inner) = self.team.chats.iter().find(|inner| inner.name == *name) {
            return Ok(AnyAgent::new(inner.with_task(self.inner(inner, around)?).build()?));
        }
        match self.team.teams.iter().find(|sub| sub.name == *name) {
            Some(sub) => Ok(AnyAgent::new(self.of_sub(sub).participating(sub.task_from.clone())?)),
            None => {
                let place = format!("of `{}`", self.team.name);
                Err(UnknownName::new("agent, chat or team", name).within(place).into())
            }
        }
    }

    /// The agents of the team outside of any chat.
    pub(crate) fn agents(&self) -> ScopedAgents<'_, 'a> {
        ScopedAgents { builder: self, around: BuildScope::default() }
    }

    /// How often a request of an agent with the model `own`, or that of the team, is sent at most: all models of a list
    /// are asked, each as often as its endpoint allows. Endpoints are those of the outermost team, `root`.
    pub(crate) fn attempts_of(&self, root: &Team, own: Option<&str>) -> u128 {
        let names = own.or(self.model).unwrap_or_default();
        let retries = |name: &str| root.endpoint_of(name).and_then(|(_, endpoint)| endpoint.retries);
        let default = Retries::default().attempts;
        let attempts = |name| u128::from(retries(name).map_or(default, |retries| retries.saturating_add(1)));
        model_names(names).map(attempts).sum::<u128>().max(1)
    }

    /// The model of `who`: its `own`, or that of the team.
    pub(crate) fn model_of(&self, who: &Name, own: Option<&str>) -> Result<AnyModel> {
        match own.or(self.model) {
            Some(model) => (self.provide)(model),
            None => Err(ConfigError::missing(format!("`{who}`"), "model").into()),
        }
    }

    /// Approval of the tool calls of `agent`.
    pub(super) fn approval_of_calls(&self, agent: &Agent) -> Result<Approval<ApprovalRequest>> {
        self.approver().of_calls(agent.approval.as_deref())
    }

    /// What decides whether a person is asked.
    pub(super) fn approver(&self) -> Approver {
        Approver {
            rules: self.context.rules().clone(),
            team: self.context.content().map(str::to_owned),
            commands: self.team.commands.iter().map(|of| (of.name.clone(), of.value.clone())).collect(),
            hosts: self.team.hosts_of_calls(),
            paths: self.paths(),
            is_open: self.team.sandbox.backend == SandboxBackend::None,
            is_project: self.context.is_project(),
        }
    }

    /// Where paths in arguments lead.
    fn paths(&self) -> Paths {
        // Without a work directory there are no tools that work in one: that is an error where they are made.
        let factory = if self.team.works() { self.factory().ok() } else { None };
        let commands = self.team.commands.iter().map(|command| command.name.clone());
        Paths::new(factory.map(|factory| factory.files.clone()), commands)
    }

    pub(super) fn factory(&self) -> Result<&ToolFactory> {
        made(&self.factory, || ToolFactory::of(self.context, &self.team.sandbox))
    }

    pub(super) fn browser(&self) -> Result<&WebTools> {
        made(&self.browser, || WebTools::of(&self.team.web, self.context))
    }
}

/// The value of `cell`, made by the first call.
fn made<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if cell.get().is_none() {
        let _ = cell.set(make()?);
    }
    cell.get().ok_or_else(|| Error::Bug("a value that was set is missing".into()))
}

/// The agents of a team in some place.
pub(crate) struct ScopedAgents<'b, 'a> {
    builder: &'b AgentBuilder<'a>,
    around: BuildScope<'a>,
}

impl Agents for ScopedAgents<'_, '_> {
    fn model(&self, who: &Name, own: Option<&str>) -> Result<AnyModel> {
        self.builder.model_of(who, own)
    }

    fn speaker(&self, name: &Name) -> Result<Assistant> {
        self.builder.speaker(name, &self.around)
    }

    fn person(&self, name: &Name) -> Result<Option<AnyAgent>> {
        let agents = &self.builder.team.agents;
        let Some(person) = agents.iter().find(|agent| agent.is_human() && agent.name == *name) else {
            return Ok(None);
        };
        let human = Human::new(person.name.as_str())?.description(&*person.description);
        Ok(Some(person.with_default_answer(AnyAgent::new(human))))
    }

    fn with_default_answer(&self, name: &Name, agent: AnyAgent) -> AnyAgent {
        match self.builder.team.agents.iter().find(|agent| agent.name == *name) {
            Some(person) => person.with_default_answer(agent),
            None => agent,
        }
    }

    fn participant(&self, name: &Name) -> Result<AnyAgent> {
        self.builder.participant(name, &self.around)
    }

    fn worker(&self, task: &Task) -> Result<Option<Assistant>> {
        self.builder.worker(task, &self.around)
    }

    fn description_of(&self, name: &Name) -> &str {
        self.builder.team.description_of(name)
    }

    fn executors(&self) -> Vec<(&Name, Vec<String>)> {
        let agents = self.builder.team.agents.iter().filter(|agent| !agent.executes_tools.is_empty());
        let tools = |agent: &Agent| agent.executes_tools.iter().map(|run| run.tool.value.clone()).collect();
        agents.map(|agent| (&agent.name.value, tools(agent))).collect()
    }
}
