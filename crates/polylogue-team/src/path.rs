//! Paths as they are compared: by where they lead, not by how they are written.

use std::collections::BTreeSet;

use polylogue::layers::code::CodeBlock;
use polylogue::tools::approval::ApprovalRequest;
use polylogue_core::ToolCall;
use serde_json::Value;

use crate::built_in::{WorkFiles, work_tool_names};

/// The arguments that are paths.
const ARGUMENTS: [&str; 9] =
    ["path", "file", "filename", "file_path", "folder", "directory", "from", "to", "destination"];

/// Where the paths in arguments of calls lead. What is decided about a path must be about the file that is opened, so those of
/// tools that work in the directory are resolved as these tools do it.
#[derive(Clone)]
pub(crate) struct Paths {
    /// The work directory, if the team has one.
    work: Option<WorkFiles>,
    /// The tools that work in it, and the commands of the team.
    tools: BTreeSet<String>,
}

impl Paths {
    pub(crate) fn new(work: Option<WorkFiles>, commands: impl Iterator<Item = String>) -> Self {
        Self { work, tools: work_tool_names().iter().cloned().chain(commands).collect() }
    }

    /// The paths among the arguments of `call`.
    pub(crate) fn of_call(&self, call: &ToolCall) -> Vec<String> {
        let paths = call.args.as_object().into_iter().flatten().filter(|(name, _)| is_path(name));
        paths.filter_map(|(_, value)| Some(self.of_tool(&call.tool, value.as_str()?))).collect()
    }

    /// `wanted` with the paths among its arguments resolved.
    pub(crate) fn in_request(&self, wanted: &ApprovalRequest) -> ApprovalRequest {
        let mut wanted = wanted.clone();
        for (name, value) in wanted.call.args.as_object_mut().into_iter().flatten() {
            if let (true, Value::String(path)) = (is_path(name), &mut *value) {
                *path = self.of_tool(&wanted.call.tool, path);
            }
        }
        wanted
    }

    /// `block` with the path of its file resolved.
    pub(crate) fn in_block(&self, block: &CodeBlock) -> CodeBlock {
        CodeBlock { file: block.file.as_deref().map(|file| self.in_work(file)), ..block.clone() }
    }

    fn of_tool(&self, tool: &str, path: &str) -> String {
        if self.tools.contains(tool) { self.in_work(path) } else { normalized(path) }
    }

    /// A path for programs and tools of the work directory.
    fn in_work(&self, path: &str) -> String {
        self.work.as_ref().and_then(|work| work.resolve(path)).unwrap_or_else(|| normalized(path))
    }
}

/// Whether an argument called `name` is a path.
fn is_path(name: &str) -> bool {
    ARGUMENTS.contains(&name)
}

/// `path` without `.`, `..` and doubled slashes, as far as its text tells where it leads: `draft/../a//b/` is `a/b`. What leads
/// out of the folder it begins in begins with `..`.
fn normalized(path: &str) -> String {
    let path = path.trim();
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            // There is nothing above the root.
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    match (root, parts.is_empty()) {
        ("", true) => ".".to_owned(),
        _ => format!("{root}{}", parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn paths_are_where_they_lead() {
        for (path, expected) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            ("draft/../secret", "secret"),
            ("draft/./../secret/x/..", "secret"),
            ("../a", "../a"),
            ("a/../../b", "../b"),
            ("/etc/../../x", "/x"),
            ("a\\..\\b", "b"),
            ("", "."),
            (" a ", "a"),
            (" /../a", "/a"),
        ] {
            assert_eq!(normalized(path), expected, "{path}");
        }
    }
}
