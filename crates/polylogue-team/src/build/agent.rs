//! Agents: a model, a person, or layers of replies.

use polylogue::agents::tooling::PromptedTool;
use polylogue::layers::nested::{Nested as Chats, Outer};
use polylogue::layers::reply::{Reply, Stack, Trigger as Triggers, named, when};
use polylogue::layers::{Executor, HumanInput};
use polylogue::policies::Selector;
use polylogue::policies::handoff::Handoff;
use polylogue::stop;
use polylogue::{Act, Assistant, Error, Human, Result, Tool as _, Turn};
use polylogue_core::{AnyAgent, Line, Params, PromptRole};
use regex::Regex;

use super::AgentBuilder;
use super::order::compile;
use super::reasoning::shown;
use super::room::Around;
use crate::agent::{Agent, ModelKeys};
use crate::chat::{InnerChat, TaskFrom};
use crate::condition::Condition;
use crate::member::{HumanInputMode, NestedChat, NestedContext, TerminateOn, Trigger};
use crate::pattern;
use crate::private_agents::PrivateRole;
use crate::remote::GivenTool;
use crate::tooling::ToolLimits;

impl<'a> AgentBuilder<'a> {
    pub(super) fn agent(&self, agent: &'a Agent, around: &Around<'a>) -> Result<AnyAgent> {
        if agent.is_layered() {
            return self.stack(agent, around).map(AnyAgent::new);
        }
        if agent.is_human() {
            let human = Human::new(agent.name.as_str())?.description(&*agent.description);
            return Ok(AnyAgent::new(human));
        }
        match agent.model() {
            Some(keys) => self.reminded(agent, keys, around),
            None => Ok(AnyAgent::new(Stack::new(agent.name.as_str())?.description(&*agent.description))),
        }
    }

    /// A person, then the agent's own chats, then tools, then code, then its model.
    fn stack(&self, agent: &'a Agent, around: &Around<'a>) -> Result<Stack> {
        let mut stack = Stack::new(agent.name.as_str())?.description(&*agent.description);
        if let Some(human_input) = human_input(agent)? {
            stack = stack.then(human_input);
        }
        if !around.owners.contains(&&*agent.name) {
            let mut around = around.clone();
            around.owners.push(&agent.name);
            for nested in &agent.nested_chats {
                let condition = nested.when.when.as_deref().map(compile).transpose()?;
                let layer = Conditioned { condition, layer: self.nested(nested, &around)? };
                stack = stack.then(when(trigger(&nested.when)?, layer));
            }
        }
        if !agent.executes_tools.is_empty() {
            let mut executor = Executor::new().approval(self.approval_of_calls(agent.approval.as_deref())?);
            for given in &agent.executes_tools {
                for tool in self.tools_of(&given.tool, given.scope.as_deref().copied(), *agent.tool_limits)? {
                    executor = executor.tool(tool);
                }
            }
            stack = stack.then(executor);
        }
        if let Some(given) = &agent.runs_output_blocks {
            stack = stack.then(self.block_runner(agent, given)?);
        }
        if let Some(given) = agent.code_execution.on() {
            stack = stack.then(self.coder(given)?);
        }
        if let Some(keys) = agent.model() {
            stack = stack.then(named("model", self.reminded(agent, keys, around)?));
        }
        Ok(match &agent.default_reply {
            Some(text) => stack.otherwise(text.as_str()),
            None => stack,
        })
    }

    fn nested(&self, nested: &NestedChat, around: &Around<'a>) -> Result<Chats> {
        let no_chat = || Error::config(format!("`{}` has no chat `{}`", self.team.name, nested.chat));
        let inner = self.team.chats.iter().find(|inner| inner.name == nested.chat).ok_or_else(no_chat)?;
        let chats = Chats::new(self.inner(inner, around)?.build()?).message(begins(inner));
        Ok(match &nested.context {
            NestedContext::Nothing => chats,
            NestedContext::Last => chats.carries(Outer::Last),
            NestedContext::All => chats.carries(Outer::All),
            NestedContext::Reflect(gist) => {
                let author = self.participant(&gist.by, around)?;
                chats.carries(Outer::reflected(author, gist.prompt.as_str())?)
            }
        })
    }

    /// The agent without tools and output schema, for its reasoning.
    pub(super) fn unarmed(&self, agent: &Agent, keys: &ModelKeys) -> Result<Assistant> {
        let model = shown(self.model_of(&agent.name, keys.model.as_ref().map(|model| model.as_str()))?, keys);
        let mut assistant = Assistant::new(agent.name.as_str(), model)?
            .description(&*agent.description)
            .params(Params::from(keys.parameters.value.clone()))
            .view(keys.view.options());
        if let Some(times) = keys.parameters.max_continuations {
            assistant = assistant.max_continuations(times);
        }
        if !keys.system.is_empty() {
            let system = keys.system.value.clone();
            assistant = assistant.system_from(move |task| system.fill(task));
        }
        Ok(assistant)
    }

    pub(super) fn assistant(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        around: &Around<'a>,
    ) -> Result<Assistant> {
        let mut assistant =
            self.unarmed(agent, keys)?.tool_calling(*keys.tool_calling).tool_history(*keys.tool_history);
        assistant = assistant.approval(self.approval_of_calls(agent.approval.as_deref())?);
        assistant = self.remembering(agent, assistant)?;
        for tool in keys.tools.iter() {
            for tool in self.prompted(tool, *agent.tool_limits)? {
                assistant = assistant.prompted_tool(tool);
            }
        }
        if let Some(schema) = &keys.output_schema {
            assistant = assistant.output_schema(schema.0.clone().into());
        }
        if let Some(retries) = &keys.output_retries {
            assistant = assistant.output_retries(**retries);
        }
        for name in keys.suggests_tools.iter() {
            for tool in self.tools(name, ToolLimits::default())? {
                assistant = assistant.suggest_tool(tool.spec().clone());
            }
        }
        for consult in self.consults(agent, keys, around)? {
            assistant = assistant.agent_tool(consult);
        }
        for name in keys.handoffs.iter() {
            assistant = assistant.tool(Handoff::to(name.as_str(), self.team.description_of(name))?);
        }
        Ok(assistant)
    }

    /// The tools that `given` stands for within `limits`, each as a prompted tool.
    pub(super) fn prompted(&self, given: &GivenTool, limits: ToolLimits) -> Result<Vec<PromptedTool>> {
        Ok(match given {
            GivenTool::Own(own) => {
                let tools = self.tools_of(&own.tool, own.scope.as_deref().copied(), limits)?;
                tools.into_iter().map(|tool| own.prompted(tool)).collect()
            }
            GivenTool::Mcp(tools) => {
                let tools = self.workplace.mcp_tools(tools)?.into_iter();
                tools.map(|tool| PromptedTool::new(limits.around(tool))).collect()
            }
        })
    }

    pub(super) fn selector(&self, chat: &polylogue::Name, given: &pattern::Selector) -> Result<Selector> {
        let name = polylogue::Name::new(PrivateRole::Selector.name(chat.as_str()))?;
        let mut selector = Selector::new(name.as_str(), self.model_of(&name, given.model.as_deref())?)?
            .params(Params::from(given.parameters.clone()))
            .attempts(given.attempts)
            .constrained(given.constrained)
            .role(match given.role {
                pattern::Role::System => PromptRole::System,
                pattern::Role::User => PromptRole::User,
            });
        if let Some(text) = &given.system {
            selector = selector.system(text.as_str());
        }
        if let Some(text) = &given.prompt {
            selector = selector.prompt(text.as_str());
        }
        if let Some(text) = &given.none {
            selector = selector.when_none(text.as_str());
        }
        if let Some(text) = &given.several {
            selector = selector.when_several(text.as_str());
        }
        Ok(selector)
    }
}

/// A layer that is asked only when a condition holds.
struct Conditioned<R> {
    condition: Option<Condition>,
    layer: R,
}

impl<R: Reply> Reply for Conditioned<R> {
    fn label(&self) -> &str {
        self.layer.label()
    }

    fn may_be_silent(&self) -> bool {
        self.layer.may_be_silent()
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        let Some(condition) = &self.condition else { return self.layer.reply(turn).await };
        match condition.holds(turn.transcript()) {
            Ok(true) => self.layer.reply(turn).await,
            Ok(false) => Ok(None),
            Err(why) => {
                let (who, text) = (turn.me(), condition.text());
                Err(Error::config(format!(
                    "`{who}` has the condition `{text}`, which cannot be evaluated: {why}"
                )))
            }
        }
    }
}

/// What a chat nested in an agent begins with.
fn begins(inner: &InnerChat) -> Outer {
    match (&inner.task, *inner.task_from) {
        (Some(message), _) => {
            let message = message.value.clone();
            Outer::own(move |turn| message.fill(turn.transcript().task()))
        }
        (None, TaskFrom::Last) => Outer::Last,
        (None, TaskFrom::All) => Outer::All,
        (None, TaskFrom::Task) => Outer::own(|turn| turn.transcript().task().to_owned()),
    }
}

/// The layer of a person and of limits, if the agent has one.
fn human_input(agent: &Agent) -> Result<Option<HumanInput>> {
    let overseen = agent.is_human() || agent.human_input.is_some();
    if !overseen && agent.max_auto_replies.is_none() && agent.terminate_on.is_none() {
        return Ok(None);
    }
    let own = if agent.is_human() { HumanInputMode::Always } else { HumanInputMode::Never };
    let mode = agent.human_input.unwrap_or(own);
    let mut human_input = match mode {
        HumanInputMode::Always => HumanInput::always(),
        HumanInputMode::Terminate => HumanInput::terminate(),
        HumanInputMode::Never => HumanInput::never(),
    };
    if let Some(limit) = agent.max_auto_replies {
        human_input = human_input.max_auto_replies(limit.into());
    }
    if *agent.clear_command {
        human_input = human_input.clear_command();
    }
    Ok(Some(match &agent.terminate_on {
        None => human_input,
        Some(TerminateOn::Says(says)) => {
            let text = if says.whole { stop::says(&says.text).whole() } else { stop::says(&says.text) };
            human_input.terminate_on(says.by.iter().cloned().fold(text, stop::Says::by))
        }
        Some(TerminateOn::Matches(matches)) => {
            let (regex, by) = (expression(&matches.pattern)?, matches.by.clone());
            human_input.terminate_when(&matches.pattern, move |line| {
                let from = &line.message.from;
                (by.is_empty() || by.contains(from)) && regex.is_match(&line.message.plain())
            })
        }
    }))
}

pub(super) fn expression(pattern: &str) -> Result<Regex> {
    Regex::new(pattern).map_err(|error| Error::config(error.to_string()))
}

fn trigger(given: &Trigger) -> Result<Triggers> {
    let mut all = Triggers::anyone();
    if !given.from.is_empty() {
        all = all & Triggers::among(given.from.clone());
    }
    if let Some(text) = given.says.clone() {
        all = all & Triggers::received(move |line: &Line| line.message.plain().contains(&text));
    }
    if let Some(pattern) = &given.matches {
        let regex = expression(pattern)?;
        all = all & Triggers::received(move |line: &Line| regex.is_match(&line.message.plain()));
    }
    Ok(all)
}
