//! A person is asked only about tools that the agent has.

use polylogue::tools::approval::is_like_tool;
use polylogue_core::Name;

use super::working;
use crate::agent::Agent;
use crate::approval::{ApprovalRule, CodeApproval};
use crate::built_in::{FILES, file_tool_names, runs_programs};
use crate::codes;
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::pattern::Task;
use crate::sandbox::SandboxBackend;
use crate::suggest;
use crate::team::Team;
use crate::tooling::ToolEntry;
use crate::working::tool_of;

/// The tasks of the agent `who`.
pub(super) fn tasks_of<'t>(team: &'t Team, who: &Name) -> impl Iterator<Item = &'t Task> {
    let tasks = team.checked_chats().flat_map(|(_, chat)| chat.pattern.part().tasks());
    tasks.filter(move |task| task.who == *who)
}

/// Whether the file says that a person is asked before a call or code of `agent`.
pub(super) fn is_asked_about(team: &Team, agent: &Agent) -> bool {
    let of_calls = agent.approval.as_deref().is_some_and(|rule| *rule != ApprovalRule::Never);
    let code = agent.code_execution.on();
    let of_code =
        code.and_then(|code| code.approval.as_ref()).is_some_and(|rule| *rule != CodeApproval::Never);
    let is_command = |tool: &str| team.commands.iter().any(|command| command.name == *tool);
    let runs = |tool: &String| runs_programs(tool) || is_command(tool);
    let is_open = team.sandbox.backend == SandboxBackend::None;
    of_calls || of_code || is_open && (code.is_some() || Tools::of(team, agent).names.iter().any(runs))
}

/// The tools of an agent, as far as the file says them.
pub(super) struct Tools {
    pub(super) names: Vec<String>,
    /// Whether others may come, from servers.
    pub(super) open: bool,
}

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    for agent in outline.agents() {
        let Some(approval) = &agent.approval else { continue };
        if approval.ok && approval.value == ApprovalRule::Always && runs_code_unasked(team, agent) {
            let message = format!("this approval is not for the code that `{}` runs", agent.name);
            let hint = "write `code_execution: {approval: always}`; `{approval: never}` there runs it without a question";
            report.error_with_hint(approval.key(), message, hint);
            continue;
        }
        let tools = Tools::of(team, agent);
        if tools.open || report.full() {
            continue;
        }
        if tools.names.is_empty() {
            let hint = "give it `tools` or `executes_tools`; code that it runs has an `approval` in `code_execution`";
            let message = format!("`{}` has no tools that a person could be asked about", agent.name);
            report.warning(codes::NO_EFFECT, approval.key(), message, hint);
            continue;
        }
        let ApprovalRule::Tools(patterns) = &approval.value else { continue };
        for pattern in patterns.iter().filter(|pattern| !pattern.is_empty() && !pattern.contains('*')) {
            if !tools.names.iter().any(|name| is_like_tool(pattern, name)) {
                let hint = suggest::hint(pattern, tools.names.iter().map(String::as_str));
                report.warning(
                    codes::UNKNOWN_TOOL,
                    &pattern.span,
                    format!("`{}` has no tool `{pattern}`", agent.name),
                    hint,
                );
            }
        }
    }
}

/// Whether `agent` runs code in messages, and the file does not say whether a person is asked about it.
fn runs_code_unasked(team: &Team, agent: &Agent) -> bool {
    let is_unsaid = agent.code_execution.on().is_some_and(|code| code.approval.is_none());
    is_unsaid && team.sandbox.backend != SandboxBackend::None
}

impl Tools {
    pub(super) fn of(team: &Team, agent: &Agent) -> Self {
        let mut tools = Self { names: Vec::new(), open: false };
        if let Some(keys) = agent.model() {
            keys.tools.iter().for_each(|given| tools.take(team, given));
            tools.names.extend(working::handoffs(keys));
            tools.names.extend(keys.agent_tools.iter().map(tool_of));
        }
        let blocks = agent.runs_output_blocks.iter();
        tools.names.extend(blocks.clone().flat_map(|blocks| blocks.code.values()).map(ToString::to_string));
        let run = agent.executes_tools.iter().chain(blocks.flat_map(|blocks| &blocks.tools));
        run.for_each(|run| tools.add(team, &run.tool));
        for task in tasks_of(team, &agent.name) {
            task.tools.iter().for_each(|given| tools.take(team, given));
        }
        tools
    }

    /// Those that agents of the team execute when others call them.
    pub(super) fn executed(team: &Team, outline: &Outline<'_>) -> Self {
        let mut tools = Self { names: Vec::new(), open: false };
        let run = outline.agents().flat_map(|agent| &agent.executes_tools);
        run.for_each(|run| tools.add(team, &run.tool));
        tools
    }

    /// Those that `name` stands for.
    pub(super) fn named(team: &Team, name: &str) -> Self {
        let mut tools = Self { names: Vec::new(), open: false };
        tools.add(team, name);
        tools
    }

    fn take(&mut self, team: &Team, given: &ToolEntry) {
        match given {
            ToolEntry::Own(own) => self.add(team, &own.tool),
            ToolEntry::Mcp(_) => self.open = true,
        }
    }

    fn add(&mut self, team: &Team, name: &str) {
        match name {
            FILES => self.names.extend(file_tool_names().iter().cloned()),
            name => {
                // That of a service stands for its operations.
                self.names.extend(team.operations(name).into_iter().map(|(_, one)| one.name.clone()));
                self.names.push(name.to_owned());
            }
        }
    }
}
