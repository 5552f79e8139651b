//! What is reported of a definition: errors, and notes on what could not be converted.

use std::fmt;

/// Code in a definition.
pub(crate) const CODE: &str = "Python code is not converted, and nothing in a definition is executed";

/// Functions of an agent, by which its model calls code.
pub(crate) const FUNCTIONS: &str = "Python code is not converted, and nothing in a definition is executed: make programs tools by `commands` or `mcp` of the team, in `tools` of this agent, or in `suggests_tools` of it and `executes_tools` of another one";

/// Whether replies are streamed.
pub(crate) const STREAMS: &str = "left out: replies are streamed, unless the command line says `--no-stream`";

/// Settings of AutoGen's cache.
pub(crate) const UNCACHED: &str =
    "left out: replies are not cached; `--record` stores the replies of a run, and `--replay` repeats it";

/// A chat that prints nothing.
pub(crate) const SILENT: &str = "left out: `--quiet` on the command line controls output";

/// Human input of a manager.
pub(crate) const UNASKED: &str = "left out: AutoGen never asks the person of a manager";

/// Code execution of a whole definition.
pub(crate) const CODE_BLOCKS: &str = "left out: give it to the agent that runs code, here as `code_execution: true`, in AutoGen as its `code_execution_config`";

/// A part of a definition that was left out or changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Note {
    /// Its path in the definition, such as `$.config.participants[0]`.
    pub path: String,
    /// What was changed in it, and why.
    pub what: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// The reason why a text cannot be imported. It names the place in the definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    path: String,
    what: String,
}

impl ImportError {
    pub(crate) fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.path, self.what) }
    }
}

impl std::error::Error for ImportError {}

/// The result of reading a part of a definition.
pub(crate) type Result<T> = std::result::Result<T, ImportError>;
