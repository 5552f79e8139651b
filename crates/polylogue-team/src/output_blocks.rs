//! Marked blocks in replies, and agents that execute them.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::layers::parse::{ActionExecutor, ParsedBlock, ToolBlock};
use polylogue::layers::reply::{ReplyLayer, Trigger, when};
use polylogue::tools::Approval;
use polylogue::tools::approval::ApprovalRequest;
use polylogue::{Name, Result};
use polylogue_config::{At, Config};
use polylogue_core::{AnyAgent, AnyTool, StateScope, TranscriptMessage};

use crate::diagnostic::Report;
use crate::set::Set as _;
use crate::tooling::{RunTool, ToolRef};

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

/// Makes the tools that a name stands for, with the scope of their state.
type ToolsOf<'t> = dyn Fn(&str, Option<StateScope>) -> Result<Vec<AnyTool>> + 't;

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
    /// The layer of the agent `name` that executes blocks, and passes on messages without any. `tools` makes those that a name stands
    /// for.
    pub(crate) fn build(
        &self,
        name: &Name,
        approval: Approval<ApprovalRequest>,
        tools: &ToolsOf<'_>,
    ) -> Result<impl ReplyLayer + use<>> {
        let mut actions = ActionExecutor::new(name.as_str())?.approval(approval);
        for given in &self.tools {
            for tool in tools(&given.tool, given.scope.as_deref().copied())? {
                actions = actions.tool(tool);
            }
        }
        for (kind, tool) in &self.code {
            for tool in tools(tool, None)? {
                actions = actions.tool_for(kind, tool);
            }
        }
        let called =
            Trigger::received(|line: &TranscriptMessage| ParsedBlock::calls(&line.message).is_some());
        Ok(when(called, AnyAgent::new(actions)))
    }
}

impl OutputBlock {
    pub(crate) fn build(&self) -> ToolBlock {
        let block = ToolBlock::new(self.kind.as_str()).between(self.begin.as_str(), self.end.as_str());
        let block = block.set_if(self.json, ToolBlock::json);
        let block = block.set_if(self.restore, ToolBlock::restore);
        block.set(self.instructions.as_deref(), ToolBlock::instructions)
    }

    /// Reports two `blocks` of one kind.
    pub(crate) fn check(blocks: &[Self], report: &mut Report<'_>) {
        let mut seen = BTreeSet::new();
        for kind in blocks.iter().map(|block| &block.kind).filter(|kind| kind.ok) {
            if !seen.insert(kind.as_str()) {
                report.error(&kind.span, format!("blocks of the kind `{kind}` already exist"));
            }
        }
    }
}
