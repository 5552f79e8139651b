//! Commands as tools: declared as data, without any code.
//!
//! A [`Declaration`] has a program and its command-line arguments, which can contain arguments of the tool. No shell is used: the
//! value of a tool argument is one command-line argument, or a part of one, whatever it contains. The JSON Schema for models is
//! generated from the declaration.
//!
//! - `{name}` in a word is the tool argument of that name; `{{` and `}}` are braces. A word with an omitted argument is omitted, too.
//! - `{"when": "name", "words": [...]}` are words that are passed only if the argument is given and not `false`.
//! - An argument that is a list (`strings`) becomes one word per text, and must be a whole word.
//! - A value that would begin a word with `-` is refused, since programs would read it as an option, unless the word follows `--`, or
//!   the declaration allows it.
//!
//! The command runs in a [`Sandbox`]. The result is its output; if it failed, with its exit code.
//!
//! ```
//! use polylogue_core::Tool as _;
//! use polylogue_tools::code::Sandbox;
//! use polylogue_tools::command::{Command, Declaration};
//!
//! let declared = r#"{
//!     "name": "git_log",
//!     "description": "Shows the last commits.",
//!     "command": ["git", "log", "--oneline", "--max-count={count}", {"when": "all", "words": ["--all"]}, "--", "{paths}"],
//!     "arguments": {
//!         "count": {"type": "integer", "description": "How many", "default": 10, "minimum": 1},
//!         "all": {"type": "boolean", "description": "Those of all branches", "optional": true},
//!         "paths": {"type": "strings", "description": "Only those that touch one of these", "optional": true}
//!     },
//!     "repeatable": true
//! }"#;
//! let declared: Declaration = serde_json::from_str(declared)?;
//! let tool = Command::new(declared, Sandbox::enclosed("work"))?;
//! assert_eq!(tool.spec().parameters["properties"]["count"]["default"], 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod declaration;
mod values;
mod words;

use polylogue_core::{ConfigError, Error, Part, Tool, ToolCx, ToolError, ToolResult, ToolSpec, ToolStatus};
use polylogue_sandbox::{ExitReason, Program, ProgramResult, Sandbox};
use serde_json::Value;

pub use self::declaration::{Argument, Arguments, Declaration, Kind, Words};
pub(crate) use self::declaration::{check_named, schema_of, undeclared};
pub(crate) use self::values::{GivenArguments, check_size, given};
use self::words::Template;
pub(crate) use self::words::{Part as Piece, parsed};
use crate::code::files::Files;
use crate::code::running;

/// A tool that runs a command. See the [module](self).
#[derive(Debug, Clone)]
pub struct Command {
    spec: ToolSpec,
    declaration: Declaration,
    sandbox: Sandbox,
}

impl Command {
    /// Creates the tool that `declaration` describes, run in `sandbox`.
    ///
    /// # Errors
    /// When the declaration is inconsistent: a word names an undeclared argument, an argument is not used, a default is not among the
    /// choices, and so on.
    pub fn new(declaration: Declaration, sandbox: Sandbox) -> Result<Self, Error> {
        let wrong = |why| ConfigError::Declaration { kind: "command", name: declaration.name.clone(), why };
        declaration.check().map_err(wrong)?;
        Template::of(&declaration).map_err(wrong)?;
        Ok(Self { spec: declaration.spec(), declaration, sandbox })
    }

    /// Returns the sandbox in which it runs.
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Declaration {
    /// Returns the program and the words that a call with the arguments `args` runs.
    ///
    /// # Errors
    /// When the arguments do not fit, or the declaration is inconsistent: then nothing runs.
    pub fn words(&self, args: &Value) -> Result<Vec<String>, ToolError> {
        let (program, template) = Template::of(self).map_err(ToolError)?;
        let words = template.fill(&given(&self.arguments, args)?)?;
        Ok([vec![program], words].concat())
    }
}

impl Tool for Command {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let mut words = self.declaration.words(&args)?.into_iter();
        let program = Program::new(words.next().unwrap_or_default());
        let program = words.fold(program, Program::arg);
        let before = Files::of(&self.sandbox).await;
        let ended = running::run(self.sandbox.clone(), program).await;
        let mut outcome = outcome_of(&ended.map_err(ToolError::new)?);
        outcome.parts.extend(Files::of(&self.sandbox).await.written_since(&before, "").map(Part::text));
        Ok(outcome)
    }
}

/// The output, with the exit code if it failed.
fn outcome_of(ended: &ProgramResult) -> ToolResult {
    let output = String::from_utf8_lossy(&ended.output);
    let output = output.trim_end();
    match ended.how {
        ExitReason::Exited(0) if output.is_empty() => ToolResult::done("(no output)"),
        ExitReason::Exited(0) => ToolResult::done(output),
        how => {
            let text = if output.is_empty() { how.to_string() } else { format!("{output}\n{how}") };
            ToolResult::new(ToolStatus::Failed, vec![Part::text(text)])
        }
    }
}
