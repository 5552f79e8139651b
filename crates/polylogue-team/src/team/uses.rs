//! What a team uses: tools, servers, services, memory.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::tools::memory::Scope;
use polylogue_config::{At, Config as _};
use polylogue_tools::openapi::Operation;
use serde_json::{Map, Value, json};

use super::Team;
use crate::agent::Agent;
use crate::built_in::{is_work_tool, may_change_files, runs_programs, runs_python};
use crate::calls::ApiDocument;
use crate::chat::Summary;
use crate::mcp::McpServer;
use crate::output_blocks::RunsOutputBlocks;
use crate::pattern::Pattern;
use crate::sandbox::SandboxBackend;
use crate::tooling::ToolEntry;
use crate::working::Language;

impl Team {
    /// Returns whether the result of a run is the only message of its only participant, and that the only text that its model
    /// writes: no tools, no schema, one turn.
    pub fn has_single_reply(&self) -> bool {
        let [agent] = self.agents.as_slice() else { return false };
        let [who] = self.chat.participants.as_slice() else { return false };
        let Some(keys) = agent.plain().filter(|_| **who == *agent.name) else { return false };
        let has_tools = !keys.tools.is_empty()
            || !keys.suggests_tools.is_empty()
            || !keys.agent_tools.is_empty()
            || !keys.handoffs.is_empty()
            || agent.memory().is_some();
        let has_one_turn = matches!(self.chat.pattern, Pattern::Sequential)
            || *self.chat.max_turns == 1
            || self.chat.stop.as_ref().is_some_and(|stop| stop.max_turns == Some(1));
        has_one_turn
            && !has_tools
            && keys.output_schema.is_none()
            && self.chat.late_joiners.is_empty()
            && matches!(self.chat.summary, Summary::Last)
    }

    /// Returns the schema that the result of a run has: that of the agent who speaks last, or of all who can. `None` if the
    /// last message can be of another form, or is not the result.
    pub fn result_schema(&self) -> Option<&Map<String, Value>> {
        let speakers = self.chat.participants.as_slice();
        let last = match self.chat.pattern {
            Pattern::Sequential => speakers.split_at(speakers.len().saturating_sub(1)).1,
            _ => speakers,
        };
        let mut schemas = last.iter().map(|who| {
            let agent = self.agents.iter().find(|agent| **who == *agent.name)?;
            agent.plain()?.output_schema.as_ref().map(|schema| &schema.0)
        });
        let first = schemas.next()??;
        let is_result = matches!(self.chat.summary, Summary::Last) && self.chat.late_joiners.is_empty();
        (is_result && schemas.all(|schema| schema == Some(first))).then_some(first)
    }

    /// Names of the tools that the file declares: commands, calls and services.
    pub(crate) fn declared_tools(&self) -> impl Iterator<Item = String> {
        let declared = self.commands.iter().map(|command| &command.name);
        let declared = declared.chain(self.calls.iter().map(|call| &call.name));
        let services = self.openapi.iter().flat_map(|(name, service)| {
            std::iter::once(name).chain(service.operations.iter().map(|operation| &operation.name))
        });
        declared.chain(services).filter(|name| !name.is_empty()).cloned()
    }

    /// The tools that agents and tasks of this team are given.
    pub(crate) fn given_tools(&self) -> impl Iterator<Item = &ToolEntry> {
        let tasks = self.all_chats().flat_map(|(_, chat)| chat.pattern.part().tasks());
        let for_tasks = tasks.flat_map(|task| task.tools.iter());
        let of_agents = self.agents.iter().filter_map(Agent::model).flat_map(|keys| keys.tools.iter());
        of_agents.chain(for_tasks).map(|tool| &tool.value)
    }

    /// Returns whether the team may run programs, or work with files: then it is built with a [`BuildContext`](crate::BuildContext).
    pub fn needs_workplace(&self) -> bool {
        self.works() || self.teams.iter().any(|sub| sub.team.needs_workplace())
    }

    /// Returns where programs of the team, and of those within it, run; empty when none do.
    pub fn runs_programs_at(&self) -> BTreeSet<SandboxBackend> {
        let runs =
            self.runs_code() || self.tool_names().any(|tool| runs_programs(tool) || self.is_command(tool));
        let own = runs.then_some(*self.sandbox.backend);
        own.into_iter().chain(self.teams.iter().flat_map(|sub| sub.team.runs_programs_at())).collect()
    }

    /// Returns whether calls of the tool `name` may change the work directory, in the team or one within it.
    pub fn may_change_files(&self, name: &str) -> bool {
        may_change_files(name)
            || self.is_command(name)
            || self.teams.iter().any(|sub| sub.team.may_change_files(name))
    }

    pub(crate) fn works(&self) -> bool {
        self.runs_code() || self.tool_names().any(|tool| is_work_tool(tool) || self.is_command(tool))
    }

    fn runs_code(&self) -> bool {
        self.agents.iter().any(|agent| agent.code_execution.on().is_some())
    }

    /// The packages that Python code in messages can use, for the models that write it: if agents of the team execute such code in a
    /// virtual environment. Tools that run Python describe it themselves.
    pub(crate) fn packages_for_code(&self) -> Option<String> {
        let venv = self.sandbox.venv()?;
        let executes = |agent: &Agent| {
            let code = agent.code_execution.on();
            let mut blocks = agent.runs_output_blocks.iter().flat_map(RunsOutputBlocks::tools);
            code.is_some_and(|given| given.languages.iter().any(|language| *language != Language::JavaScript))
                || blocks.any(|tool| runs_python(tool))
        };
        let executed = self.agents.iter().any(executes);
        executed.then(|| format!("Python code in messages is executed. {}", venv.describe()))
    }

    fn is_command(&self, tool: &str) -> bool {
        self.commands.iter().any(|command| command.name == *tool)
    }

    /// Whether an agent or task uses the tool `name`.
    pub(crate) fn names_tool(&self, name: &str) -> bool {
        self.tool_names().any(|tool| **tool == *name)
    }

    fn tool_names(&self) -> impl Iterator<Item = &At<String>> {
        let own_tools = self.given_tools().filter_map(ToolEntry::own);
        let named = self.agents.iter().flat_map(|agent| {
            let blocks = agent.runs_output_blocks.iter().flat_map(RunsOutputBlocks::tools);
            let suggested = agent.model().into_iter().flat_map(|keys| keys.suggests_tools.iter());
            suggested.chain(agent.executes_tools.iter().map(|run| &run.tool)).chain(blocks)
        });
        own_tools.map(|tool| &tool.tool).chain(named)
    }

    /// Returns whether an agent of the team or of a team within it has long-term memory. Then the team must be built with a
    /// [memory](crate::BuildContext::with_memory).
    pub fn needs_memory(&self) -> bool {
        self.agents.iter().any(|agent| agent.memory().is_some())
            || self.teams.iter().any(|sub| sub.team.needs_memory())
    }

    /// Returns the memory that agents of the team and of those within it share or have to themselves.
    pub fn memory_scopes(&self) -> BTreeSet<Scope> {
        let agents = self.agents.iter().filter_map(|agent| Some((&agent.name, agent.memory()?)));
        let own = agents.filter_map(|(name, memory)| self.memory.scope_of(&self.name, name, memory).ok());
        own.chain(self.teams.iter().flat_map(|sub| sub.team.memory_scopes())).collect()
    }

    /// Returns the names of the MCP servers whose tools agents of this team and of the teams within it use.
    pub fn mcp_wanted(&self) -> BTreeSet<&str> {
        let own = self.given_tools().filter_map(ToolEntry::mcp).map(|tools| tools.mcp.as_str());
        own.chain(self.teams.iter().flat_map(|sub| sub.team.mcp_wanted())).collect()
    }

    /// Returns the MCP servers that this team and those within it declare, by name.
    pub fn mcp_declared(&self) -> BTreeMap<&str, &McpServer> {
        let mut all: BTreeMap<_, _> = self.teams.iter().flat_map(|sub| sub.team.mcp_declared()).collect();
        all.extend(self.mcp.servers().iter().map(|(name, server)| (name.as_str(), &server.value)));
        all
    }

    /// Returns the MCP servers as the usual JSON document, `mcpServers`.
    pub fn mcp_document(&self) -> Value {
        let declared =
            self.mcp_declared().into_iter().map(|(name, server)| (name.to_owned(), server.write()));
        json!({ "mcpServers": declared.collect::<serde_json::Map<_, _>>() })
    }

    /// Returns the services of this team and of those within it whose documents have operations that cannot be called, by name.
    /// A service of a team within this one follows the name of that participant, as in `helper/pets`.
    pub fn incomplete_services(&self) -> Vec<(String, &ApiDocument)> {
        let own = self.openapi.iter().filter(|(_, document)| !document.left_out.is_empty());
        let own = own.map(|(name, document)| (name.clone(), &document.value));
        let within = self.teams.iter().flat_map(|sub| {
            let services = sub.team.incomplete_services().into_iter();
            services.map(move |(name, document)| (format!("{}/{name}", *sub.name), document))
        });
        own.chain(within).collect()
    }

    /// The operations that `name` stands for: those of a document, or one.
    pub(crate) fn operations(&self, name: &str) -> Vec<(&ApiDocument, &Operation)> {
        let all = self.openapi.iter().flat_map(|(of, document)| {
            document.operations.iter().map(move |operation| (of, &document.value, operation))
        });
        let meant = all.filter(|(of, _, operation)| *of == name || operation.name == name);
        meant.map(|(_, document, operation)| (document, operation)).collect()
    }
}
