//! Texts that are not conditions.

use polylogue_core::{ConfigError, Error};

/// Why a text is not a condition, and the position of the mistake, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoCondition {
    pub(crate) why: String,
    pub(crate) hint: Option<String>,
    /// In bytes of the text.
    pub(crate) at: Option<usize>,
}

impl NoCondition {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None, at: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The error of a team that was not read from a file, and so not checked.
    pub(crate) fn of(&self, text: &str) -> Error {
        let hint = self.hint.as_deref().map(Into::into);
        let what = format!("the condition `{text}`").into();
        ConfigError::Invalid { what, why: self.why.as_str().into(), hint }.into()
    }
}
