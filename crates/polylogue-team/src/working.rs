//! Code execution, agent tools and files in the work directory.

use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{At, Config, Cx};
use polylogue_core::Name;
use serde_json::Value;

use crate::approval::CodeApproval;
use crate::duration::Time;
use crate::text::{ParticipantRef, PathText, ToolNameText};

/// A language that can be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Config)]
pub enum Language {
    /// Python, executed by `python3`.
    Python,
    /// Shell, executed by `bash` or `sh`.
    Shell,
    /// JavaScript, executed by `node`.
    #[config(name = "javascript")]
    JavaScript,
}

impl Language {
    pub(crate) const ALL: [Self; 3] = [Self::Python, Self::Shell, Self::JavaScript];
}

/// Code blocks of received messages that an agent executes.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct CodeExecution {
    /// Languages that are executed.
    #[key(default = Language::ALL.to_vec(), nonempty, unique)]
    pub languages: Vec<Language>,
    /// Further languages, by their tags such as `html`, whose code is saved to files and not executed.
    #[key(unique)]
    pub saves: Vec<String>,
    /// Condition under which a person must approve code before it is executed.
    #[key(none = "never; always with `backend: none`")]
    pub approval: Option<CodeApproval>,
    /// Number of latest messages that are searched for code.
    #[key(none = "all since its last turn", range = 1..)]
    pub last: Option<usize>,
    /// Time limit of a code block, such as `30 s`.
    #[key(none = "the time limit of the sandbox")]
    pub timeout: Option<Time>,
}

/// An agent, chat or team that the model can call as a tool.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "AgentTool", shorthand = "who")]
pub struct AgentTool {
    /// Name of the agent, chat or team.
    #[key(as = ParticipantRef)]
    pub who: At<Name>,
    /// Name of the tool: ASCII letters, digits, `_` and `-`.
    #[key(as = Option<At<ToolNameText>>, none = "the name of `who`, in these characters")]
    pub tool: Option<At<String>>,
    /// Description of the tool for the model: what it does and when to call it.
    #[key(none = "the description of `who`", nonempty)]
    pub description: Option<String>,
    /// Maximum number of calls per turn. Further calls fail.
    #[key(default = polylogue::tools::agent_tool::AgentTool::DEFAULT_MAX_CALLS, range = 1..=1000)]
    pub max_calls: u32,
    /// Runs each call as a background task: it returns at once, the conversation continues, and the result is posted to the agent when
    /// it is there.
    #[key(default = false)]
    pub background: bool,
}

/// The name of the tool by which an agent is asked.
pub(crate) fn tool_of(given: &AgentTool) -> String {
    given.tool.as_ref().map_or_else(|| given.who.tool_name(""), |tool| tool.value.clone())
}

/// A file that is in the work directory when a conversation begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFile {
    /// The path, relative to the team file's folder.
    pub file: String,
    /// The content.
    pub content: String,
}

/// A file is read by the loader.
impl Config for WorkFile {
    fn ty() -> &'static Type {
        PathText::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Self { file: PathText::read(node, cx).0, content: String::new() }
    }

    fn hole() -> Self {
        Self { file: String::new(), content: String::new() }
    }

    fn write(&self) -> Value {
        Value::String(self.file.clone())
    }
}

impl WorkFile {
    /// Returns the name in the work directory.
    pub fn name(&self) -> &str {
        base_name(&self.file)
    }
}

/// The last name of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
