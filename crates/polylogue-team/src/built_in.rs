//! Built-in tools, by their names.

use std::sync::LazyLock;

use polylogue::Tool as _;
use polylogue::tools::GetHistory;
use polylogue::tools::state::{GetState, SetState};
use polylogue_core::{AnyTool, StateScope, ToolSpec};
use polylogue_tools::code::{Sandbox, javascript, python, shell};
use polylogue_tools::web::{AnySearch, Pages, web_fetch, web_search};
use polylogue_tools::{Calculator, Chess, HighLow};

/// The name that stands for all tools that work with files.
pub(crate) const FILES: &str = "files";

/// The tool that sets values of the shared state.
pub(crate) const SET_STATE: &str = "set_state";

/// Returns the tools that every team has and that need no work directory, by name.
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
        SET_STATE => Some(AnyTool::new(SetState::new().scope(StateScope::Chat))),
        "chess" => Some(AnyTool::new(Chess::default().scope(StateScope::Chat))),
        _ => None,
    }
}

/// The tool that sets these keys of the shared state.
pub(crate) fn state_setter(keys: &[String], scope: StateScope) -> AnyTool {
    AnyTool::new(SetState::new().only(keys).scope(scope))
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
pub(crate) struct WorkFiles(polylogue_tools::files::Folder);

#[cfg(not(unix))]
#[derive(Clone)]
pub(crate) struct WorkFiles;

#[cfg(unix)]
impl WorkFiles {
    pub(crate) fn of(sandbox: &Sandbox) -> Self {
        Self(polylogue_tools::files::Folder::of(sandbox))
    }

    /// Where `path` leads in the directory; `None` if it leads elsewhere.
    pub(crate) fn resolve(&self, path: &str) -> Option<String> {
        self.0.resolve(path)
    }
}

#[cfg(not(unix))]
impl WorkFiles {
    pub(crate) fn of(_: &Sandbox) -> Self {
        Self
    }

    pub(crate) fn resolve(&self, _: &str) -> Option<String> {
        None
    }
}

#[cfg(unix)]
pub(crate) fn file_tools(shelf: &WorkFiles) -> Vec<AnyTool> {
    polylogue_tools::files::all(&shelf.0)
}

#[cfg(not(unix))]
pub(crate) fn file_tools(_: &WorkFiles) -> Vec<AnyTool> {
    Vec::new()
}

/// What is known of tools without a team. It is made once, because each team that is read or built looks it up many times.
struct Known {
    built_in: Vec<String>,
    files: Vec<String>,
    /// Those that work in a directory.
    work: Vec<String>,
    /// Those that are described in a file's checks, whatever they will work on.
    all: Vec<ToolSpec>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let sandbox = Sandbox::enclosed("work");
    let (built_in, work) = (built_in_tools(), work_tools(&sandbox));
    let web = [web_search(AnySearch::new(Pages::default())), web_fetch(None, None)];
    let all = built_in.iter().chain(&work).chain(&web);
    Known {
        built_in: names_of(&built_in),
        files: names_of(&file_tools(&WorkFiles::of(&sandbox))),
        work: names_of(&work),
        all: all.map(|tool| tool.spec().clone()).collect(),
    }
});

fn names_of(tools: &[AnyTool]) -> Vec<String> {
    tools.iter().map(|tool| tool.spec().name.clone()).collect()
}

/// The tool `name` of [`built_in_tools`].
pub(crate) fn built_in_tool(name: &str) -> Option<AnyTool> {
    let at = KNOWN.built_in.iter().position(|own| own == name)?;
    built_in_tools().into_iter().nth(at)
}

/// Whether the tool `name` is one of [`built_in_tools`].
pub(crate) fn is_built_in_tool(name: &str) -> bool {
    KNOWN.built_in.iter().any(|own| own == name)
}

/// The names of the tools that [`FILES`] stands for.
pub(crate) fn file_tool_names() -> &'static [String] {
    &KNOWN.files
}

/// The tools that are described in a file's checks, whatever they will work on.
pub(crate) fn known_tools() -> &'static [ToolSpec] {
    &KNOWN.all
}

/// The names of the tools that are described in a file's checks.
pub(crate) fn known_tool_names() -> impl Iterator<Item = String> {
    KNOWN.all.iter().map(|spec| spec.name.clone())
}

/// The names of the tools that work in a directory.
pub(crate) fn work_tool_names() -> &'static [String] {
    &KNOWN.work
}

/// Whether the tool `name` needs a work directory.
pub(crate) fn is_work_tool(name: &str) -> bool {
    name == FILES || KNOWN.work.iter().any(|tool| tool == name)
}

/// Whether calls of the tool `name` change files of the work directory.
pub(crate) fn changes_files(name: &str) -> bool {
    ["write_file", "edit_file"].contains(&name)
}

/// Whether calls of the tool `name`, which is no command of a team, may change files of the work directory: also by code in messages, which is
/// run or saved.
pub(crate) fn may_change_files(name: &str) -> bool {
    name == "save" || is_work_tool(name) && !is_reading_tool(name)
}

/// Whether calls of the work tool `name` only read files.
pub(crate) fn is_reading_tool(name: &str) -> bool {
    ["read_file", "list_files", "search_files"].contains(&name)
}

/// Whether calls of the tool `name` may run Python that the model wrote.
pub(crate) fn runs_python(name: &str) -> bool {
    runs_programs(name) && name != "javascript"
}

/// The tool that runs Python in a session, which can show pictures.
pub(crate) const SESSION: &str = "python_session";

/// Whether calls of the tool `name` run what the model wrote as a program.
pub(crate) fn runs_programs(name: &str) -> bool {
    ["python", "shell", "javascript", SESSION].contains(&name)
}
