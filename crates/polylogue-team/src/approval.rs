//! When a person approves what an agent does.

use polylogue_config::Config;
use serde::{Deserialize, Serialize};

use crate::text::{CallConditionText, CodeConditionText, RegexText};

/// When a person is asked before code is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "CodeApproval")]
pub enum CodeApproval {
    /// Never.
    Never,
    /// Before every block.
    Always,
    /// Before blocks that meet a condition, in CEL. It can use `code`, `language` and `file`.
    #[key(as = CodeConditionText, nonempty)]
    When(String),
    /// Before blocks that match a regular expression.
    #[key(as = RegexText, nonempty)]
    Matches(String),
}

/// When a person is asked before a tool is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "Approval")]
pub enum ApprovalRule {
    /// Never.
    Never,
    /// Before every call.
    Always,
    /// Before calls of these tools. `*` in a name stands for any characters.
    #[key(nonempty, unique)]
    Tools(Vec<String>),
    /// Before calls that meet a condition, in CEL. It can use `tool`, `args` and `who`.
    #[key(as = CallConditionText, nonempty)]
    When(String),
    /// Before calls whose arguments, as JSON, match a regular expression.
    #[key(as = RegexText, nonempty)]
    Matches(String),
}
