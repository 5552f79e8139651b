//! Marked blocks in replies, and agents that execute them.

use std::collections::BTreeMap;

use polylogue_config::{At, Config};

use crate::text::ToolRef;
use crate::tooling::RunTool;

/// A marked block in an agent's replies, which programs parse.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "OutputBlock")]
pub struct OutputBlock {
    /// Name of the kind of block, which `runs_output_blocks` of other agents refers to.
    #[key(nonempty)]
    pub kind: At<String>,
    /// Marker at the beginning of the block, including its line break.
    #[key(nonempty)]
    pub begin: String,
    /// Marker at the end of the block. It can be missing in the reply, for example because it is a stop sequence of the
    /// model.
    #[key(nonempty)]
    pub end: String,
    /// Requires the block to be a JSON object. Any other block is not executed.
    #[key(default = false)]
    pub json: bool,
    /// Instructions for the model about the block, appended to the system message.
    #[key(none = "none", nonempty)]
    pub instructions: Option<String>,
    /// Shows the model its earlier blocks with both markers and without the text after them.
    #[key(default = false)]
    pub restore: bool,
}

/// Output blocks of received messages that an agent executes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
#[config(name = "RunsOutputBlocks", nonempty)]
pub struct RunsOutputBlocks {
    /// Tools by kind of block. The tool receives the text of the block as its argument `code`.
    #[key(as = BTreeMap<String, ToolRef>)]
    pub code: BTreeMap<String, At<String>>,
    /// Tools that JSON blocks can call, as `{"name": ..., "parameters": {...}}`.
    #[key(unique)]
    pub tools: Vec<RunTool>,
}

impl RunsOutputBlocks {
    /// The tools that it may run.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &At<String>> {
        self.tools.iter().map(|given| &given.tool).chain(self.code.values())
    }
}
