//! When a person approves what an agent does.

use polylogue::Result;
use polylogue::layers::code::Block;
use polylogue::tools::approval::{ApprovalRequest, is_like_tool};
use polylogue_config::{At, Config};

use crate::condition::{CallCondition, CodeCondition};
use crate::path::with_normalized;
use crate::text::{CallConditionText, CodeConditionText, RegexText, compile_regex};

/// Whether a person must approve something.
pub(crate) type ApprovalCheck<T> = Box<dyn Fn(&T) -> bool + Send + Sync>;

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

impl CodeApproval {
    pub(crate) fn build(&self) -> Result<ApprovalCheck<Block>> {
        Ok(match self {
            Self::Never => Box::new(|_| false),
            Self::Always => Box::new(|_| true),
            Self::When(text) => {
                let condition = CodeCondition::new(text).map_err(|error| error.of(text))?;
                Box::new(move |block| condition.holds(block))
            }
            Self::Matches(pattern) => {
                let regex = compile_regex(pattern)?;
                Box::new(move |block| regex.is_match(&block.code))
            }
        })
    }
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

impl ApprovalRule {
    pub(crate) fn build(&self) -> Result<ApprovalCheck<ApprovalRequest>> {
        Ok(match self {
            Self::Never => Box::new(|_| false),
            Self::Always => Box::new(|_| true),
            Self::Tools(names) => {
                let names = names.clone();
                Box::new(move |wanted| names.iter().any(|name| is_like_tool(name, &wanted.call.tool)))
            }
            Self::When(text) => {
                let condition = CallCondition::new(text).map_err(|error| error.of(text))?;
                Box::new(move |wanted| condition.holds(wanted))
            }
            Self::Matches(pattern) => {
                let regex = compile_regex(pattern)?;
                Box::new(move |wanted| {
                    let args = &wanted.call.args;
                    [args, &with_normalized(args)].into_iter().any(|args| regex.is_match(&args.to_string()))
                })
            }
        })
    }
}
