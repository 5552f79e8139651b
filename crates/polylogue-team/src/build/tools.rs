//! Tools by their names: those that every team has, those that work in its directory, its commands, and who can be asked.

use polylogue::layers::Coder;
use polylogue::tools::agent_tool;
use polylogue::{Result, Tool as _};
use polylogue_core::{AnyTool, ConfigError, StateScope, UnknownName};
use polylogue_tools::code::{javascript, python, save, shell};
use polylogue_tools::command::Command;

use super::builder::{AgentBuilder, BuildScope};
use super::resources::ToolFactory;
use crate::agent::{Agent, ModelKeys};
use crate::built_in::{FILES, built_in_tool, file_tools, is_work_tool, of_one_chat, work_tools};
use crate::set::Set as _;
use crate::tooling::ToolLimits;
use crate::working::{AgentTool, CodeExecution, Language};

impl<'a> AgentBuilder<'a> {
    /// The tools that `name` stands for, each within `limits`, whose state belongs to what `scope` says.
    pub(super) fn tools_of(
        &self,
        name: &str,
        scope: Option<StateScope>,
        limits: ToolLimits,
    ) -> Result<Vec<AnyTool>> {
        if scope != Some(StateScope::Chat) {
            return self.tools(name, limits);
        }
        let none = || ConfigError::missing(format!("`{name}`"), "state that could belong to a chat");
        Ok(vec![self.context.wrapped(limits.around(of_one_chat(name).ok_or_else(none)?))])
    }

    /// The tools that `name` stands for, each within `limits`; it is one, but for `files`.
    pub(super) fn tools(&self, name: &str, limits: ToolLimits) -> Result<Vec<AnyTool>> {
        let (found, factory) = self.found(name)?;
        let bounded = found.into_iter().map(|tool| self.context.wrapped(limits.around(tool)));
        // A call's time begins when it is its turn, and ends before its files are stored.
        Ok(match factory {
            Some(factory) => bounded.map(|tool| factory.queue.joined_by(factory.keeping(tool))).collect(),
            None => bounded.collect(),
        })
    }

    /// The tools that `name` stands for, and what those of the work directory share.
    fn found(&self, name: &str) -> Result<(Vec<AnyTool>, Option<&ToolFactory>)> {
        if let Some(tool) = built_in_tool(name) {
            return Ok((vec![tool], None));
        }
        if let Some(command) = self.team.commands.iter().find(|command| command.name == name) {
            let factory = self.factory()?;
            let command = Command::new(command.value.clone(), factory.sandbox.clone())?;
            return Ok((vec![AnyTool::new(command)], Some(factory)));
        }
        if let Some(tool) = self.web_tool(name)? {
            return Ok((vec![tool], None));
        }
        let calls = self.call_tools(name)?;
        if !calls.is_empty() {
            return Ok((calls, None));
        }
        if !is_work_tool(name) {
            return Err(UnknownName::new("tool", name).into());
        }
        let factory = self.factory()?;
        let files = file_tools(&factory.files);
        let found: Vec<AnyTool> = if name == FILES {
            files
        } else {
            let mut all = files.into_iter().chain(work_tools(&factory.sandbox));
            all.find(|tool| tool.spec().name == name).into_iter().collect()
        };
        Ok((found, Some(factory)))
    }

    /// The layer that runs code.
    pub(super) fn coder(&self, given: &CodeExecution) -> Result<Coder> {
        let factory = self.factory()?;
        let mut sandbox = factory.sandbox.clone();
        if let Some(time) = given.timeout {
            let limits = *sandbox.limits();
            sandbox = sandbox.limited(polylogue_tools::code::Limits { time: time.into(), ..limits });
        }
        let mut coder = Coder::new().approval(self.approver().of_code(given.approval.as_ref())?);
        for language in &given.languages {
            let tool = match language {
                Language::Python => AnyTool::new(python(sandbox.clone())),
                Language::Shell => AnyTool::new(shell(sandbox.clone())),
                Language::JavaScript => AnyTool::new(javascript(sandbox.clone())),
            };
            coder = coder.tool(factory.keeping(self.context.wrapped(tool)));
        }
        if !given.saves.is_empty() {
            let tags: Vec<&str> = given.saves.iter().map(String::as_str).collect();
            coder = coder.tool_for(&tags, factory.keeping(self.context.wrapped(AnyTool::new(save(sandbox)))));
        }
        Ok(coder.set(given.last, Coder::last))
    }

    /// The agent tools of `agent`, unless it is called within its own turn.
    pub(super) fn agent_tools_of(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        around: &BuildScope<'a>,
    ) -> Result<Vec<agent_tool::AgentTool>> {
        if around.owners.contains(&&*agent.name) {
            return Ok(Vec::new());
        }
        let mut around = around.clone();
        around.owners.push(&agent.name);
        keys.agent_tools.iter().map(|given| self.agent_tool_of(given, &around)).collect()
    }

    fn agent_tool_of(&self, given: &'a AgentTool, around: &BuildScope<'a>) -> Result<agent_tool::AgentTool> {
        let inner = self.team.chats.iter().find(|inner| inner.name == given.who);
        let sub = self.team.teams.iter().find(|sub| sub.name == given.who);
        let mut tool = match (inner, sub) {
            (Some(inner), _) => agent_tool::AgentTool::chat(self.inner(inner, around)?.build()?),
            (None, Some(sub)) => {
                agent_tool::AgentTool::chat(self.of_sub(sub).participating(sub.task_from.clone())?)
            }
            (None, None) => agent_tool::AgentTool::agent(self.participant(&given.who, around)?),
        };
        tool = tool.set(given.tool.as_deref(), agent_tool::AgentTool::named);
        tool = tool.set(given.description.as_deref(), agent_tool::AgentTool::description);
        let tool = tool.max_calls(given.max_calls);
        Ok(if given.background { tool.background() } else { tool })
    }
}
