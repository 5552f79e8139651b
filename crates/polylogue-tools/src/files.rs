//! Tools for the files of one directory: read, list, search, write and edit.
//!
//! These tools access only a [`Folder`]. Whatever path a model gives, whatever links are in the directory, and whatever a program
//! changes there concurrently, nothing outside is read or written. Links are not followed. Every path is opened step by step from the
//! folder's descriptor without following links, so there is no race between checking and opening. That needs only POSIX, while
//! `openat2` needs Linux and a container that permits it.
//!
//! Files are written completely and then renamed, so that readers never see a partial file, and parallel calls that change the same
//! file do not undo each other.
//!
//! | tool | what it does |
//! |---|---|
//! | [`read`]: `read_file` | a text file, or some lines of it |
//! | [`list`]: `list_files` | the entries of a directory |
//! | [`search`]: `search_files` | lines that match a regular expression |
//! | [`write()`]: `write_file` | creates or replaces a file |
//! | [`edit`]: `edit_file` | replaces a text in a file |
//!
//! ```
//! use polylogue_tools::code::{Sandbox, python};
//! use polylogue_tools::files::{self, Folder};
//!
//! let sandbox = Sandbox::enclosed("work/session-1");
//! // Programs and files in the same work directory; `files::reading` has only the tools that read.
//! let folder = Folder::of(&sandbox);
//! let tools = files::all(&folder);
//! let python = python(sandbox);
//! ```

mod arguments;
mod change;
mod folder;
mod kept;
mod look;
mod search;

use polylogue_core::{AnyTool, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::{Value, json};

pub use self::folder::Folder;
pub use self::kept::{KeptFiles, NewFolder, RestoreError, piece_of, restore, tree_of};
use crate::blocking::blocking;

/// The function of a tool.
type Action = fn(&Folder, &Value) -> Result<ToolResult, ToolError>;

/// One of the tools.
#[derive(Debug)]
struct FileTool {
    spec: ToolSpec,
    folder: Folder,
    action: Action,
}

impl Tool for FileTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let (folder, action) = (self.folder.clone(), self.action);
        blocking(move || action(&folder, &args)).await?
    }
}

/// Creates the tool `read_file`.
pub fn read(folder: &Folder) -> AnyTool {
    let about = "Reads a text file of the work directory, whole or from a line on.";
    let parameters = json!({
        "path": path("The file, such as `src/main.py`"),
        "from": {"type": "integer", "minimum": 1, "description": "The first line to read. Default: 1"},
        "lines": {"type": "integer", "minimum": 1, "description": "How many lines to read at most"},
    });
    tool(folder, spec("read_file", about, parameters, &["path"]).repeatable(), look::read)
}

/// Creates the tool `list_files`.
pub fn list(folder: &Folder) -> AnyTool {
    let about = "Lists files and directories of the work directory, with the size of each file in bytes.";
    let parameters = json!({
        "path": path("The directory. Default: the whole work directory"),
        "recursive": {"type": "boolean", "description": "Whether directories within are listed, too"},
    });
    tool(folder, spec("list_files", about, parameters, &[]).repeatable(), look::list)
}

/// Creates the tool `search_files`.
pub fn search(folder: &Folder) -> AnyTool {
    let about = "Finds the lines of text files in the work directory that match a regular expression.";
    let parameters = json!({
        "pattern": {"type": "string", "description": "The regular expression; `(?i)` before it ignores case"},
        "path": path("The file or directory to search. Default: the whole work directory"),
    });
    tool(folder, spec("search_files", about, parameters, &["pattern"]).repeatable(), search::search)
}

/// Creates the tool `write_file`. Its calls can be repeated.
pub fn write(folder: &Folder) -> AnyTool {
    let about = "Writes a text file of the work directory. One that is there is replaced; directories are made as needed.";
    let parameters = json!({
        "path": path("The file, such as `src/main.py`"),
        "content": {"type": "string", "description": "The whole text of the file"},
    });
    tool(folder, spec("write_file", about, parameters, &["path", "content"]).repeatable(), change::write)
}

/// Creates the tool `edit_file`.
pub fn edit(folder: &Folder) -> AnyTool {
    let about = "Replaces a text in a file of the work directory by another.";
    let parameters = json!({
        "path": path("The file, such as `src/main.py`"),
        "old": {"type": "string", "description": "The text to replace, exactly as in the file, with enough context to be unique"},
        "new": {"type": "string", "description": "What takes its place"},
        "all": {"type": "boolean", "description": "Whether to replace all occurrences"},
    });
    tool(folder, spec("edit_file", about, parameters, &["path", "old", "new"]), change::edit)
}

/// Returns the tools that only read: read, list and search.
pub fn reading(folder: &Folder) -> Vec<AnyTool> {
    vec![read(folder), list(folder), search(folder)]
}

/// Returns all tools.
pub fn all(folder: &Folder) -> Vec<AnyTool> {
    let mut tools = reading(folder);
    tools.extend([write(folder), edit(folder)]);
    tools
}

fn tool(folder: &Folder, spec: ToolSpec, action: Action) -> AnyTool {
    AnyTool::new(FileTool { spec, folder: folder.clone(), action })
}

fn path(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn spec(name: &str, about: &str, properties: Value, required: &[&str]) -> ToolSpec {
    let parameters = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    ToolSpec::new(name, about, parameters)
}
