//! What a model can do, as far as is known in this turn.

use polylogue_core::{Model, Skill, Skills, Turn};

use super::ToolUse;
use crate::Assistant;

/// How tools are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Native,
    Object,
    Talk,
}

/// How an answer is brought into a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Schema,
    Json,
    Text,
}

/// What a model can do, as far as is known: what it says of itself, without what it refused in earlier turns of the agent,
/// and in this one. Of the log and of configuration alone, so that a fresh process comes to the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Can {
    by: ToolUse,
    skills: Skills,
}

impl Can {
    pub(super) fn of(agent: &Assistant, refused: impl Iterator<Item = Skill>) -> Self {
        let skills = refused.fold(agent.model.skills(), Skills::without);
        Self { by: agent.tools_by, skills }
    }

    /// Whether what it cannot do is found out, and got round.
    pub(super) fn is_auto(&self) -> bool {
        self.by == ToolUse::Auto
    }

    pub(super) fn lose(&mut self, skill: Skill) {
        self.skills = self.skills.without(skill);
    }

    pub(super) fn calls(&self) -> Way {
        let may = |skill| self.skills.has(skill) != Some(false);
        match self.by {
            ToolUse::Native => Way::Native,
            ToolUse::Schema => Way::Object,
            ToolUse::Json | ToolUse::Text => Way::Talk,
            ToolUse::Auto if may(Skill::Tools) => Way::Native,
            ToolUse::Auto if may(Skill::Schema) => Way::Object,
            ToolUse::Auto => Way::Talk,
        }
    }

    /// Whether JSON is asked for in JSON mode.
    pub(super) fn json(&self) -> bool {
        match self.by {
            ToolUse::Json => true,
            ToolUse::Text => self.skills.json == Some(true),
            ToolUse::Auto | ToolUse::Native | ToolUse::Schema => self.skills.json != Some(false),
        }
    }

    pub(super) fn holds(&self) -> Hold {
        let schema = match self.by {
            ToolUse::Native | ToolUse::Schema => true,
            ToolUse::Json | ToolUse::Text => false,
            ToolUse::Auto => self.skills.schema != Some(false),
        };
        match (schema, self.json()) {
            (true, _) => Hold::Schema,
            (false, true) => Hold::Json,
            (false, false) => Hold::Text,
        }
    }
}

impl Assistant {
    /// Whether its model is known to keep to a JSON Schema, and may be held to one.
    pub(crate) fn keeps_to_schemas(&self, turn: &Turn<'_>) -> bool {
        let can = Can::of(self, turn.transcript().lacks(turn.me(), self.model.name()));
        can.holds() == Hold::Schema && can.skills.schema == Some(true)
    }
}
