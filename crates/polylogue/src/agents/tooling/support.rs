//! The capabilities of a model, as known in this turn.

use polylogue_core::{Capabilities, Capability, Model, Turn};

use crate::agents::assistant::Assistant;
use crate::agents::prompted::ToolCalling;

/// How tools are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallMode {
    Native,
    Object,
    Text,
}

/// How structured output is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputMode {
    Schema,
    Json,
    Text,
}

/// The capabilities of a model as far as they are known: those it declares, minus refusals in earlier turns of the
/// agent and in this one. From the log and configuration only, so that a new process gets the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolSupport {
    by: ToolCalling,
    capabilities: Capabilities,
}

impl ToolSupport {
    pub(super) fn of(agent: &Assistant, refused: impl Iterator<Item = Capability>) -> Self {
        let capabilities = refused.fold(agent.model.capabilities(), Capabilities::without);
        Self { by: agent.tool_calling, capabilities }
    }

    /// Whether missing capabilities are detected and worked around.
    pub(super) fn is_auto(&self) -> bool {
        self.by == ToolCalling::Auto
    }

    pub(super) fn lose(&mut self, capability: Capability) {
        self.capabilities = self.capabilities.without(capability);
    }

    pub(super) fn calls(&self) -> CallMode {
        let may = |capability| self.capabilities.has(capability) != Some(false);
        match self.by {
            ToolCalling::Native => CallMode::Native,
            ToolCalling::Schema => CallMode::Object,
            ToolCalling::Json | ToolCalling::Text => CallMode::Text,
            ToolCalling::Auto if may(Capability::Tools) => CallMode::Native,
            ToolCalling::Auto if may(Capability::Schema) => CallMode::Object,
            ToolCalling::Auto => CallMode::Text,
        }
    }

    /// Whether JSON is requested in JSON mode.
    pub(super) fn json(&self) -> bool {
        match self.by {
            ToolCalling::Json => true,
            ToolCalling::Text => self.capabilities.json == Some(true),
            ToolCalling::Auto | ToolCalling::Native | ToolCalling::Schema => {
                self.capabilities.json != Some(false)
            }
        }
    }

    pub(super) fn output_mode(&self) -> OutputMode {
        let schema = match self.by {
            ToolCalling::Native | ToolCalling::Schema => true,
            ToolCalling::Json | ToolCalling::Text => false,
            ToolCalling::Auto => self.capabilities.schema != Some(false),
        };
        match (schema, self.json()) {
            (true, _) => OutputMode::Schema,
            (false, true) => OutputMode::Json,
            (false, false) => OutputMode::Text,
        }
    }
}

impl Assistant {
    /// Whether its model is known to support JSON Schema, and may use it.
    pub(crate) fn keeps_to_schemas(&self, turn: &Turn<'_>) -> bool {
        let support =
            ToolSupport::of(self, turn.transcript().missing_capabilities(turn.me(), self.model.name()));
        support.output_mode() == OutputMode::Schema && support.capabilities.schema == Some(true)
    }
}
