//! Agents: a model, a person, or layers of replies.

use polylogue::agents::tooling::PromptedTool;
use polylogue::layers::nested::{Nested as Chats, OuterContext};
use polylogue::layers::reply::{Stack, labeled};
use polylogue::layers::{Executor, HumanInput};
use polylogue::policies::handoff::Handoff;
use polylogue::{Assistant, Human, Result, Tool as _};
use polylogue_config::{At, Switch};
use polylogue_core::{AnyAgent, AnyTool, Name, Params, StateScope, UnknownName};

use super::builder::{AgentBuilder, BuildScope};
use crate::agent::{Agent, ModelKeys};
use crate::built_in::state_setter;
use crate::human_input::HumanInputMode;
use crate::nested_chats::{NestedChat, NestedContext};
use crate::pattern::Task;
use crate::reasoning::Example;
use crate::set::Set as _;
use crate::text::Schema;
use crate::tooling::{RunTool, ToolEntry, ToolLimits};

impl Agent {
    /// `built`, whose questions have the default answer of this agent, if it has one.
    pub(super) fn with_default_answer(&self, built: AnyAgent) -> AnyAgent {
        match &self.default_answer {
            Some(default) => AnyAgent::new(default.around(built)),
            None => built,
        }
    }
}

impl<'a> AgentBuilder<'a> {
    pub(super) fn agent(&self, agent: &'a Agent, around: &BuildScope<'a>) -> Result<AnyAgent> {
        Ok(agent.with_default_answer(self.without_default_answer(agent, around)?))
    }

    fn without_default_answer(&self, agent: &'a Agent, around: &BuildScope<'a>) -> Result<AnyAgent> {
        if agent.is_layered() {
            return self.stack(agent, around).map(AnyAgent::new);
        }
        if agent.is_human() {
            let human = Human::new(agent.name.as_str())?.description(&*agent.description);
            return Ok(AnyAgent::new(human));
        }
        match agent.model() {
            Some(keys) => self.with_reminders(agent, keys, around),
            None => Ok(AnyAgent::new(Stack::new(agent.name.as_str())?.description(&*agent.description))),
        }
    }

    /// A person, then the agent's own chats, then tools, then code, then its model.
    fn stack(&self, agent: &'a Agent, around: &BuildScope<'a>) -> Result<Stack> {
        let mut stack = Stack::new(agent.name.as_str())?.description(&*agent.description);
        stack = stack.set(human_input(agent)?, |stack, human_input| stack.then(human_input));
        if !around.owners.contains(&&*agent.name) {
            let mut around = around.clone();
            around.owners.push(&agent.name);
            for nested in &agent.nested_chats {
                stack = stack.then(nested.when.build(self.nested(nested, &around)?)?);
            }
        }
        if !agent.executes_tools.is_empty() {
            let mut executor = Executor::new().approval(self.approval_of_calls(agent)?);
            for given in &agent.executes_tools {
                for tool in self.tools_for_others(agent, given)? {
                    executor = executor.tool(tool);
                }
            }
            stack = stack.then(executor);
        }
        if let Some(given) = &agent.runs_output_blocks {
            let tools = |tool: &str, scope| self.tools_of(tool, scope, agent.tool_limits.truncating());
            stack = stack.then(given.build(&agent.name, self.approval_of_calls(agent)?, &tools)?);
        }
        if let Some(given) = agent.code_execution.on() {
            stack = stack.then(self.coder(given)?);
        }
        if let Some(keys) = agent.model() {
            stack = stack.then(labeled("model", self.with_reminders(agent, keys, around)?));
        }
        Ok(stack.set(agent.default_reply.as_ref(), |stack, text| stack.otherwise(text.as_str())))
    }

    fn nested(&self, nested: &NestedChat, around: &BuildScope<'a>) -> Result<Chats> {
        let no_chat = || UnknownName::new("chat", &nested.chat).within(format!("of `{}`", self.team.name));
        let inner = self.team.chats.iter().find(|inner| inner.name == nested.chat).ok_or_else(no_chat)?;
        let chats = Chats::new(self.inner(inner, around)?.build()?).message(inner.first_message());
        Ok(match &nested.context {
            NestedContext::Nothing => chats,
            NestedContext::Last => chats.context(OuterContext::Last),
            NestedContext::All => chats.context(OuterContext::All),
            NestedContext::Reflect(gist) => {
                let author = self.participant(&gist.by, around)?;
                chats.context(OuterContext::summarized_by(author, gist.prompt.as_str())?)
            }
        })
    }

    /// The agent without tools and output schema, for its reasoning.
    pub(crate) fn assistant_without_tools(&self, agent: &Agent, keys: &ModelKeys) -> Result<Assistant> {
        let assistant = self.plain_assistant(agent, keys)?;
        Ok(match keys.compaction.as_ref().or(self.team.compaction.as_ref()) {
            None => assistant,
            Some(At { value: Switch::Off, .. }) => assistant.without_compaction(),
            Some(At { value: Switch::On(compaction), .. }) => {
                let by = compaction.by.as_ref().map(|name| self.summarizer(name)).transpose()?;
                let model = compaction.model.as_ref();
                let model = model.map(|model| self.model_of(&agent.name, Some(model))).transpose()?;
                assistant.compaction(compaction.build(by.as_ref(), model))
            }
        })
    }

    /// The agent that summarizes for others.
    pub(crate) fn summarizer(&self, name: &Name) -> Result<Assistant> {
        let agent = self.team.agents.iter().find(|agent| agent.name == *name);
        match agent.and_then(|agent| Some((agent, agent.plain()?))) {
            Some((agent, keys)) => self.plain_assistant(agent, keys),
            None => Err(UnknownName::new("agent with a model", name)
                .within(format!("of `{}`", self.team.name))
                .into()),
        }
    }

    /// The agent without tools, output schema and compaction.
    fn plain_assistant(&self, agent: &Agent, keys: &ModelKeys) -> Result<Assistant> {
        let model = self.model_of(&agent.name, keys.model.as_ref().map(|model| model.as_str()))?;
        let model = Example::shown_to(model, &keys.examples);
        let mut assistant = Assistant::new(agent.name.as_str(), model)?
            .description(&*agent.description)
            .params(Params::from(keys.parameters.value.clone()))
            .view(keys.view.options());
        assistant = assistant.set(keys.parameters.max_continuations, Assistant::max_continuations);
        assistant = match keys.tool_search.on() {
            Some(search) => assistant.tool_search(search.built()),
            None => assistant.without_tool_search(),
        };
        let (system, packages) = (keys.system.value.clone(), self.team.packages_for_code());
        Ok(match (keys.system.is_empty(), packages) {
            (true, None) => assistant,
            (false, None) => assistant.system_from(move |task| system.fill(task)),
            (true, Some(packages)) => assistant.system(packages),
            (false, Some(packages)) => {
                assistant.system_from(move |task| format!("{}\n\n{packages}", system.fill(task)))
            }
        })
    }

    pub(crate) fn assistant(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        around: &BuildScope<'a>,
    ) -> Result<Assistant> {
        let mut assistant = self
            .assistant_without_tools(agent, keys)?
            .tool_calling(*keys.tool_calling)
            .tool_history(*keys.tool_history)
            .max_tool_rounds(*keys.max_tool_rounds);
        assistant = assistant.approval(self.approval_of_calls(agent)?);
        assistant = self.remembering(agent, assistant)?;
        assistant =
            self.with_tools(assistant, agent, (keys.tools.as_slice(), keys.output_schema.as_ref()))?;
        assistant = assistant
            .set(keys.output_retries.as_ref(), |assistant, retries| assistant.output_retries(**retries));
        for name in keys.suggests_tools.iter() {
            for tool in self.tools(name, ToolLimits::default())? {
                assistant = assistant.suggest_tool(tool.spec().clone());
            }
        }
        for agent_tool in self.agent_tools_of(agent, keys, around)? {
            assistant = assistant.agent_tool(agent_tool);
        }
        assistant = assistant.max_background(*keys.max_background_tasks);
        for name in keys.handoffs.iter() {
            assistant = assistant.tool(Handoff::to(name.as_str(), self.team.description_of(name))?);
        }
        Ok(assistant)
    }

    /// `assistant` with tools of `agent`, and with a schema of its replies.
    fn with_tools(
        &self,
        mut assistant: Assistant,
        agent: &Agent,
        (tools, schema): (&[At<ToolEntry>], Option<&At<Schema>>),
    ) -> Result<Assistant> {
        for tool in tools {
            for tool in self.prompted(tool, *agent.tool_limits)? {
                assistant = assistant.prompted_tool(tool);
            }
        }
        if !tools.is_empty() {
            assistant = assistant.tools(reader(agent));
        }
        Ok(assistant.set(schema, |assistant, schema| assistant.output_schema(schema.0.clone().into())))
    }

    /// A tool that `agent` executes for others. The agent that receives the results cannot read more of them.
    pub(crate) fn tools_for_others(&self, agent: &Agent, given: &RunTool) -> Result<Vec<AnyTool>> {
        self.tools_of(&given.tool, given.scope.as_deref().copied(), agent.tool_limits.truncating())
    }

    /// The tools that `name` stands for, as `agent` runs them for blocks in messages.
    pub(crate) fn tools_in_blocks(&self, agent: &Agent, name: &str) -> Result<Vec<AnyTool>> {
        self.tools_of(name, None, agent.tool_limits.truncating())
    }

    /// The agent of a task with what it has for this task only; `None` if it does not reply only by a model.
    pub(crate) fn worker(&self, task: &Task, around: &BuildScope<'a>) -> Result<Option<Assistant>> {
        let agent = self.team.agents.iter().find(|agent| agent.name == task.who);
        let Some((agent, keys)) = agent.and_then(|agent| Some((agent, agent.plain()?))) else {
            return Ok(None);
        };
        let assistant = self.assistant(agent, keys, around)?;
        let own = (task.tools.as_slice(), task.output_schema.as_ref());
        self.with_tools(assistant, agent, own).map(Some)
    }

    /// The tools that `given` stands for within `limits`, each as a prompted tool.
    pub(super) fn prompted(&self, given: &ToolEntry, limits: ToolLimits) -> Result<Vec<PromptedTool>> {
        Ok(match given {
            ToolEntry::Own(own) => {
                let scope = own.scope.as_deref().copied();
                let tools = if own.sets_keys() {
                    let tool = state_setter(&own.keys, scope.unwrap_or(StateScope::Team));
                    vec![self.context.wrapped(limits.around(tool))]
                } else {
                    self.tools_of(&own.tool, scope, limits)?
                };
                tools.into_iter().map(|tool| own.prompted(tool)).collect()
            }
            ToolEntry::Mcp(tools) => {
                let tools = self.context.mcp_tools(tools)?.into_iter();
                tools.map(|tool| PromptedTool::new(limits.around(tool))).collect()
            }
        })
    }
}

/// The tool that reads large results of the agent's tools, if they are stored.
pub(super) fn reader(agent: &Agent) -> Option<AnyTool> {
    agent.tool_limits.stored().map(|stored| AnyTool::new(stored.reader()))
}

/// The layer of a person and of limits, if the agent has one.
fn human_input(agent: &Agent) -> Result<Option<HumanInput>> {
    let asks = agent.is_human() || agent.human_input.is_some();
    if !asks && agent.max_auto_replies.is_none() && agent.terminate_on.is_none() {
        return Ok(None);
    }
    let own = if agent.is_human() { HumanInputMode::Always } else { HumanInputMode::Never };
    let mut layer = agent.human_input.unwrap_or(own).build();
    layer = layer.set(agent.max_auto_replies, |layer, limit| layer.max_auto_replies(limit.into()));
    layer = layer.set_if(*agent.clear_command, HumanInput::clear_command);
    match &agent.terminate_on {
        None => Ok(Some(layer)),
        Some(terminate_on) => terminate_on.add_to(layer).map(Some),
    }
}
