//! Tools that run code in a sandbox.
//!
//! [`python`], [`shell`] and [`javascript`] are tools that run a text as a program, in the work directory of a [`Sandbox`];
//! [`save`] only writes it there. Models can call them, and the layer `polylogue::layers::code::Coder` uses them to run code blocks of
//! messages. They return
//!
//! ```text
//! exitcode: 0 (execution succeeded)
//! Code output: 42
//! ```
//!
//! and, as a second part, the files of the work directory that were written. A program that timed out has the exit code 124 and
//! `Timeout` at the end of its output, and is dead with all processes that it started.
//!
//! A sandbox has one work directory: give each conversation its own.
//!
//! ```
//! use polylogue_tools::code::{Limits, Sandbox, python, shell};
//! use std::time::Duration;
//!
//! let limits = Limits { time: Duration::from_secs(20), ..Limits::default() };
//! let sandbox = Sandbox::enclosed("work/session-1").limited(limits);
//! let tools = [python(sandbox.clone()), shell(sandbox)];
//! ```

pub(crate) mod files;
pub(crate) mod running;

use std::path::{Path, PathBuf};

use polylogue_core::{Part, Tool, ToolCx, ToolError, ToolResult, ToolSpec, ToolStatus};
#[cfg(unix)]
pub use polylogue_sandbox::Engine;
use polylogue_sandbox::{ExitReason, Program};
pub use polylogue_sandbox::{Limits, Measure, Network, Sandbox, Venv, what_is_enforced};
use serde_json::{Value, json};

use self::files::Files;

/// A tool that runs or saves code. See the [module](self).
#[derive(Debug, Clone)]
pub struct Code {
    spec: ToolSpec,
    language: Language,
    interpreter: Option<String>,
    sandbox: Sandbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Shell,
    JavaScript,
    /// Any language; it is not executed.
    Saved,
}

/// Creates the tool `python`: runs a program with `python3`. Its description names the packages of the sandbox's virtual
/// environment, if it has [one](Sandbox::venv).
pub fn python(sandbox: Sandbox) -> Code {
    let about = "Runs a Python program in a sandbox, and returns what it prints. Each run is its own process: keep in files \
        what a later one needs.";
    Code::new("python", about, Language::Python, sandbox)
}

/// Creates the tool `shell`: runs a script with `bash`, or `sh` if there is none.
pub fn shell(sandbox: Sandbox) -> Code {
    let about = "Runs a shell script in a sandbox, and returns what it prints.";
    Code::new("shell", about, Language::Shell, sandbox)
}

/// Creates the tool `javascript`: runs a program with `node`.
pub fn javascript(sandbox: Sandbox) -> Code {
    let about = "Runs a JavaScript program by Node.js in a sandbox, and returns what it prints.";
    Code::new("javascript", about, Language::JavaScript, sandbox)
}

/// Creates the tool `save`: writes code of any language to a file in the work directory.
pub fn save(sandbox: Sandbox) -> Code {
    Code::new("save", "Saves code to a file, without running it.", Language::Saved, sandbox)
}

impl Code {
    fn new(name: &str, about: &str, language: Language, sandbox: Sandbox) -> Self {
        let mut parameters = json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The whole text of the program"},
                "filename": {"type": "string", "description": "The file of the work directory to keep it in, such as `plot.py`"},
            },
            "required": ["code"],
            "additionalProperties": false,
        });
        if let (Language::Saved, Some(properties)) =
            (language, parameters.get_mut("properties").and_then(Value::as_object_mut))
        {
            properties.insert(
                "language".into(),
                json!({"type": "string", "description": "Its language, such as `html`"}),
            );
        }
        let about = match language {
            Language::Python | Language::Shell => with_packages(about, &sandbox),
            Language::JavaScript | Language::Saved => about.to_owned(),
        };
        Self { spec: ToolSpec::new(name, about, parameters), language, interpreter: None, sandbox }
    }

    /// Sets the interpreter: a path, or a name that is looked up in the system's directories. Paths outside of `/usr` must be
    /// [readable](Sandbox::readable).
    #[must_use]
    pub fn interpreter(self, program: impl Into<String>) -> Self {
        Self { interpreter: Some(program.into()), ..self }
    }

    /// Returns the sandbox in which it runs.
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    fn program(&self, file: &str, code: &str) -> Program {
        let default = match self.language {
            Language::Python => "python3",
            Language::Shell if Path::new("/bin/bash").is_file() => "bash",
            Language::Shell => "sh",
            Language::JavaScript => "node",
            Language::Saved => return Program::new("true").file(file, code),
        };
        let program = Program::new(self.interpreter.as_deref().unwrap_or(default));
        // Interpreters show the file by the path they receive, in tracebacks. It must not be read as an option.
        let arg = if file.starts_with('-') { format!("./{file}") } else { file.to_owned() };
        program.arg(arg).file(file, code)
    }
}

impl Tool for Code {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let code = text("code").ok_or("`code` must be a text: the whole program")?;
        let code = if self.language == Language::Saved { code } else { unfenced(code) };
        let named = text("filename").map(|name| self.relative(name));
        let is_kept = named.is_some() || self.language == Language::Saved || !self.sandbox.is_project();
        let file = named.unwrap_or_else(|| self.file_name(code, text("language")));
        let before = Files::of(&self.sandbox).await;
        let temporary = (!is_kept).then(|| TemporaryFile(self.sandbox.work().join(&file)));
        let ended = running::run(self.sandbox.clone(), self.program(&file, code)).await;
        drop(temporary);
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Ok(outcome_of(1, &error.to_string())),
        };
        let mut output = String::from_utf8_lossy(&ended.output).into_owned();
        match ended.how {
            ExitReason::Exited(0) if self.language == Language::Saved => {
                output = format!("Code saved to {}", self.sandbox.work_inside().join(&file).display());
            }
            ExitReason::Exited(_) => {}
            other => {
                let end = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
                output = format!("{output}{end}{other}");
            }
        }
        let mut outcome = outcome_of(ended.how.code(), &output);
        outcome.parts.extend(Files::of(&self.sandbox).await.written_since(&before, &file).map(Part::text));
        Ok(outcome)
    }
}

/// A file in a folder of the user's that is there only to be run. It is removed when this is dropped: by a call that is cancelled,
/// too.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // One that cannot be removed is no reason to lose what the program printed.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Code {
    /// The path of a file relative to the work directory. Models also write the whole path, as programs see it and as this tool
    /// reports it.
    fn relative(&self, name: &str) -> String {
        let within = Path::new(name).strip_prefix(self.sandbox.work_inside()).ok();
        within.and_then(Path::to_str).unwrap_or(name).to_owned()
    }

    /// The file for code without a name, which depends only on the code.
    fn file_name(&self, code: &str, language: Option<&str>) -> String {
        let hash = blake3::hash(code.as_bytes()).to_hex();
        let hash = hash.get(..12).unwrap_or_default();
        let ending = match (self.language, language.unwrap_or_default()) {
            (Language::Python, _) | (_, "python" | "py") => "py",
            (Language::Shell, _) | (_, "sh" | "bash" | "shell") => "sh",
            (Language::JavaScript, _) | (_, "javascript" | "js") => "js",
            (_, "c++") => "cpp",
            (_, "rust") => "rs",
            (_, "typescript") => "ts",
            (_, "ruby") => "rb",
            (_, own) if !own.is_empty() && own.chars().all(|c| c.is_ascii_alphanumeric()) => own,
            _ => "txt",
        };
        format!("code_{hash}.{ending}")
    }
}

/// The description `about` of a tool that runs Python, with the packages of the sandbox's virtual environment.
pub(crate) fn with_packages(about: &str, sandbox: &Sandbox) -> String {
    match sandbox.python() {
        Some(venv) => format!("{about} {}", venv.describe()),
        None => about.to_owned(),
    }
}

/// An exit code and an output, in the format that models know.
fn outcome_of(code: i32, output: &str) -> ToolResult {
    let (result, status) =
        if code == 0 { ("succeeded", ToolStatus::Done) } else { ("failed", ToolStatus::Failed) };
    let text = format!("exitcode: {code} (execution {result})\nCode output: {output}");
    ToolResult::new(status, vec![Part::text(text.trim_end())])
}

/// `code` without the fence around all of it, if there is one. Models that are used to Markdown write fences in arguments as
/// well, and no program begins with one.
pub(crate) fn unfenced(code: &str) -> &str {
    let Some(rest) = code.trim().strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return code;
    };
    match rest.split_once('\n') {
        Some((tag, body)) if body.ends_with('\n') && !tag.contains('`') && !body.contains("```") => body,
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_around_all_of_it_is_taken_off_and_no_other() {
        assert_eq!(unfenced("```python\nif x:\n    f()\n```\n"), "if x:\n    f()\n");
        assert_eq!(unfenced("\n```\n1 + 1\n```"), "1 + 1\n");
        let others = [
            "",
            "1 + 1",
            "```",
            "``````",
            "```1```",
            "```\n1",
            "1\n```",
            "```\na\n```\nb\n```\nc\n```",
            "```\nx = '```",
        ];
        for code in others {
            assert_eq!(unfenced(code), code);
        }
    }
}
