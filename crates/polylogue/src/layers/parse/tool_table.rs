//! Tools under the names that texts call them by.

use polylogue_core::{AnyTool, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::Value;

/// Tools under one name or two. Dots in a name are part of the name and give access to nothing else.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolTable(Vec<(String, AnyTool)>);

/// The tool of a toolkit that also has the toolkit's name.
const RUN: &str = "run";

impl ToolTable {
    /// Adds a tool under its own name.
    pub(super) fn add(&mut self, tool: AnyTool) {
        self.put(tool.spec().name.clone(), tool);
    }

    /// Adds a tool of the toolkit `of`.
    pub(super) fn add_of(&mut self, of: &str, tool: AnyTool) {
        let own = tool.spec().name.clone();
        // The log has it under a name that every provider accepts.
        let spec = ToolSpec { name: format!("{of}_{own}"), ..tool.spec().clone() };
        let tool = AnyTool::new(Renamed { spec, tool });
        if own == RUN {
            self.put(of.to_owned(), tool.clone());
        }
        self.put(format!("{of}.{own}"), tool);
    }

    fn put(&mut self, name: String, tool: AnyTool) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, tool));
    }

    pub(super) fn get(&self, name: &str) -> Option<&AnyTool> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, tool)| tool)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &AnyTool)> {
        self.0.iter().map(|(name, tool)| (&**name, tool))
    }
}

/// A tool under another name.
struct Renamed {
    spec: ToolSpec,
    tool: AnyTool,
}

impl Tool for Renamed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        self.tool.call(args, cx).await
    }
}
