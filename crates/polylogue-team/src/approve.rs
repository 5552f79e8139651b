//! What a team file says of a person who is asked before something is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{CallConditionText, CodeConditionText, OptionText, RegexText};

/// When a person is asked before code is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Approve {
    /// Never.
    Never,
    /// Before every block.
    Always,
    /// Before blocks of which a condition holds, in CEL. It can speak of `code`, `language` and `file`.
    When(#[schemars(with = "CodeConditionText")] String),
    /// Before blocks that match a regular expression.
    Matches(#[schemars(with = "RegexText")] String),
}

/// When a person is asked before a tool is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ApproveCalls {
    /// Never.
    Never,
    /// Before every call.
    Always,
    /// Before calls of these tools; `*` in a name stands for any characters.
    Tools(#[schemars(with = "Vec<OptionText>", length(min = 1), extend("uniqueItems" = true))] Vec<String>),
    /// Before calls of which a condition holds, in CEL. It can speak of `tool`, `args` and `who`.
    When(#[schemars(with = "CallConditionText")] String),
    /// Before calls whose arguments, as JSON, match a regular expression.
    Matches(#[schemars(with = "RegexText")] String),
}
