//! When a person approves what an agent does.

use polylogue_config::{At, Config};

use crate::text::{CallConditionText, CodeConditionText, RegexText};

/// Condition under which a person must approve code before it is executed.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "CodeApproval")]
pub enum CodeApproval {
    /// Never.
    Never,
    /// Every block.
    Always,
    /// Blocks that meet a condition in CEL, with the variables `code`, `language` and `file`.
    #[key(as = CodeConditionText, nonempty)]
    When(String),
    /// Blocks that match a regular expression.
    #[key(as = RegexText, nonempty)]
    Matches(String),
}

/// Condition under which a person must approve a tool call before it is executed.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Approval")]
pub enum ApprovalRule {
    /// Never.
    Never,
    /// Every call.
    Always,
    /// Calls of these tools. `*` in a name matches any characters.
    #[key(nonempty, unique)]
    Tools(Vec<At<String>>),
    /// Calls that meet a condition in CEL, with the variables `tool`, `args` and `who`.
    #[key(as = CallConditionText, nonempty)]
    When(String),
    /// Calls whose arguments, as JSON, match a regular expression.
    #[key(as = RegexText, nonempty)]
    Matches(String),
}
