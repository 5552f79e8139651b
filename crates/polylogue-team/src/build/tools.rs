//! Tools by their names: those that every team has, those that work in its directory, its commands, and who can be asked.

use polylogue::layers::Coder;
use polylogue::tools::{GetHistory, agent_tool};
use polylogue::{Error, Result, Tool as _};
use polylogue_core::{AnyTool, StateScope};
use polylogue_tools::code::{Sandbox, javascript, python, save, shell};
use polylogue_tools::command::Command;
use polylogue_tools::{Calculator, Chess, HighLow, Queue};

use polylogue::tools::state::{GetState, SetState};

use super::AgentBuilder;
use super::room::Around;
use super::web::known_web_tools;
use crate::agent::{Agent, ModelKeys};
use crate::build_context::BuildContext;
use crate::tooling::ToolLimits;
use crate::working::{AgentTool, CodeExecution, Language, SandboxSettings};

/// The name that stands for all tools that work with files.
pub(crate) const FILES: &str = "files";

/// The tools that every team has at hand and that need no work directory, by name.
#[must_use]
pub fn built_in_tools() -> Vec<AnyTool> {
    vec![
        AnyTool::new(GetHistory::default()),
        AnyTool::new(GetState::new()),
        AnyTool::new(SetState::new()),
        AnyTool::new(Calculator::default()),
        AnyTool::new(Chess::default()),
        AnyTool::new(HighLow::default()),
    ]
}

/// The tool `name`, whose state belongs to one run of a chat, if it keeps any.
pub(crate) fn of_one_chat(name: &str) -> Option<AnyTool> {
    match name {
        "set_state" => Some(AnyTool::new(SetState::new().scope(StateScope::Chat))),
        "chess" => Some(AnyTool::new(Chess::default().scope(StateScope::Chat))),
        _ => None,
    }
}

/// The tools that work in the directory of `sandbox`.
pub(crate) fn work_tools(sandbox: &Sandbox) -> Vec<AnyTool> {
    let mut tools = vec![
        AnyTool::new(python(sandbox.clone())),
        AnyTool::new(shell(sandbox.clone())),
        AnyTool::new(javascript(sandbox.clone())),
    ];
    #[cfg(unix)]
    tools.push(AnyTool::new(polylogue_tools::PythonSession::new(sandbox.clone())));
    tools.extend(file_tools(&WorkFiles::of(sandbox)));
    tools
}

/// The files of a work directory: one for all agents of a team, so that changes to a file do not undo each other.
#[cfg(unix)]
#[derive(Clone)]
pub(super) struct WorkFiles(polylogue_tools::files::Folder);

#[cfg(not(unix))]
#[derive(Clone)]
pub(super) struct Shelf;

#[cfg(unix)]
impl WorkFiles {
    pub(super) fn of(sandbox: &Sandbox) -> Self {
        Self(polylogue_tools::files::Folder::of(sandbox))
    }
}

#[cfg(not(unix))]
impl WorkFiles {
    pub(super) fn of(_: &Sandbox) -> Self {
        Self
    }
}

#[cfg(unix)]
fn file_tools(shelf: &WorkFiles) -> Vec<AnyTool> {
    polylogue_tools::files::all(&shelf.0)
}

#[cfg(not(unix))]
fn file_tools(_: &WorkFiles) -> Vec<AnyTool> {
    Vec::new()
}

/// The names of the tools that [`FILES`] stands for.
pub(crate) fn file_tool_names() -> Vec<String> {
    let tools = file_tools(&WorkFiles::of(&Sandbox::enclosed("work")));
    tools.iter().map(|tool| tool.spec().name.clone()).collect()
}

/// The tools that are described in a file's checks, whatever they will work on.
pub(crate) fn known_tools() -> Vec<AnyTool> {
    let mut tools = built_in_tools();
    tools.extend(work_tools(&Sandbox::enclosed("work")));
    tools.extend(known_web_tools());
    tools
}

/// Whether the tool `name` needs a work directory.
pub(crate) fn is_work_tool(name: &str) -> bool {
    name == FILES || work_tools(&Sandbox::enclosed("work")).iter().any(|tool| tool.spec().name == name)
}

/// Whether calls of the tool `name` run what the model wrote as a program.
pub(crate) fn runs_programs(name: &str) -> bool {
    ["python", "shell", "javascript", "python_session"].contains(&name)
}

/// Where the programs of a crew run.
pub(super) struct ToolFactory {
    sandbox: Sandbox,
    shelf: WorkFiles,
    /// What one call leaves in the work directory is there for the next of the same message.
    queue: Queue,
}

impl ToolFactory {
    pub(super) fn of(workplace: &BuildContext, settings: &SandboxSettings) -> Result<Self> {
        let sandbox = workplace.sandbox(settings)?;
        Ok(Self { shelf: WorkFiles::of(&sandbox), sandbox, queue: Queue::default() })
    }
}

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
        let none = || Error::config(format!("`{name}` keeps no state that could belong to a chat"));
        Ok(vec![limits.around(of_one_chat(name).ok_or_else(none)?)])
    }

    /// The tools that `name` stands for, each within `limits`; it is one, but for `files`.
    pub(super) fn tools(&self, name: &str, limits: ToolLimits) -> Result<Vec<AnyTool>> {
        let (found, queue) = self.found(name)?;
        let bounded = found.into_iter().map(|tool| limits.around(tool));
        // A call's time begins when it is its turn.
        Ok(match queue {
            Some(queue) => bounded.map(|tool| queue.joined_by(tool)).collect(),
            None => bounded.collect(),
        })
    }

    /// The tools that `name` stands for, and where their calls wait for one another, if they do.
    fn found(&self, name: &str) -> Result<(Vec<AnyTool>, Option<&Queue>)> {
        if let Some(tool) = built_in_tools().into_iter().find(|tool| tool.spec().name == name) {
            return Ok((vec![tool], None));
        }
        if let Some(command) = self.team.commands.iter().find(|command| command.name == name) {
            let desk = self.desk()?;
            let command = Command::new(command.clone(), desk.sandbox.clone())?;
            return Ok((vec![AnyTool::new(command)], Some(&desk.queue)));
        }
        if let Some(tool) = self.web_tool(name)? {
            return Ok((vec![tool], None));
        }
        let calls = self.call_tools(name)?;
        if !calls.is_empty() {
            return Ok((calls, None));
        }
        if !is_work_tool(name) {
            return Err(Error::config(format!("there is no tool `{name}`")));
        }
        let desk = self.desk()?;
        let files = file_tools(&desk.shelf);
        let found: Vec<AnyTool> = if name == FILES {
            files
        } else {
            let mut all = files.into_iter().chain(work_tools(&desk.sandbox));
            all.find(|tool| tool.spec().name == name).into_iter().collect()
        };
        Ok((found, Some(&desk.queue)))
    }

    fn desk(&self) -> Result<&ToolFactory> {
        if self.desk.get().is_none() {
            let _ = self.desk.set(ToolFactory::of(self.workplace, &self.team.sandbox)?);
        }
        self.desk.get().ok_or_else(|| Error::Bug("a desk that was set is not there".into()))
    }

    /// The layer that runs code.
    pub(super) fn coder(&self, given: &CodeExecution) -> Result<Coder> {
        let mut sandbox = self.desk()?.sandbox.clone();
        if let Some(time) = given.timeout {
            let limits = *sandbox.limits();
            sandbox = sandbox.limited(polylogue_tools::code::Limits { time: time.into(), ..limits });
        }
        let mut coder = Coder::new().approval(self.approval_of_code(given.approval.as_ref())?);
        for language in &given.languages {
            coder = match language {
                Language::Python => coder.tool(python(sandbox.clone())),
                Language::Shell => coder.tool(shell(sandbox.clone())),
                Language::JavaScript => coder.tool(javascript(sandbox.clone())),
            };
        }
        if !given.saves.is_empty() {
            let tags: Vec<&str> = given.saves.iter().map(String::as_str).collect();
            coder = coder.runs(&tags, save(sandbox));
        }
        Ok(match given.last {
            Some(messages) => coder.last(messages),
            None => coder,
        })
    }

    /// The agent tools of `agent`. Agents called by them have no agent tools themselves.
    pub(super) fn consults(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        around: &Around<'a>,
    ) -> Result<Vec<agent_tool::AgentTool>> {
        if around.owners.contains(&&*agent.name) {
            return Ok(Vec::new());
        }
        let mut around = around.clone();
        around.owners.push(&agent.name);
        keys.agent_tools.iter().map(|given| self.consult(given, &around)).collect()
    }

    fn consult(&self, given: &'a AgentTool, around: &Around<'a>) -> Result<agent_tool::AgentTool> {
        let inner = self.team.chats.iter().find(|inner| inner.name == given.who);
        let sub = self.team.teams.iter().find(|sub| sub.name == given.who);
        let mut tool = match (inner, sub) {
            (Some(inner), _) => agent_tool::AgentTool::chat(self.inner(inner, around)?.build()?),
            (None, Some(sub)) => agent_tool::AgentTool::chat(self.of_sub(sub).outermost(sub.task_from)?),
            (None, None) => agent_tool::AgentTool::agent(self.participant(&given.who, around)?),
        };
        if let Some(name) = &given.tool {
            tool = tool.named(name.as_str());
        }
        if let Some(about) = &given.description {
            tool = tool.description(about.as_str());
        }
        Ok(tool.max_calls(given.max_calls))
    }
}
