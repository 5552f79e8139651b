//! Entries of a view, and what a provider has encoded of them.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::{Part, ToolResult, Verbatim};

/// One entry of a view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Entry {
    /// A prompt of the program around the agent within the conversation, if the view options ask for the `system`
    /// role.
    System {
        /// The content; never empty.
        parts: Vec<Part>,
    },
    /// A message of another participant, with its name in the text where names are shown.
    User {
        /// The content; never empty.
        parts: Vec<Part>,
    },
    /// A message of the agent itself: text and tool calls.
    Assistant {
        /// The content; never empty. Thoughts only if they are sealed.
        parts: Vec<Part>,
        /// What is returned to the provider unchanged, if the entry is a reply of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verbatim: Option<Arc<Verbatim>>,
    },
    /// The result of one call of the entry before, in the order of the calls.
    Tool {
        /// The call's `id`.
        id: String,
        /// The tool's name.
        tool: String,
        /// The result.
        result: ToolResult,
    },
}

impl Entry {
    /// Creates the entry for a text of another participant.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { parts: vec![Part::text(text)] }
    }

    /// Creates the entry for a text of the agent itself.
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self::own(vec![Part::text(text)])
    }

    /// Creates the entry for a message of the agent itself.
    pub const fn own(parts: Vec<Part>) -> Self {
        Self::Assistant { parts, verbatim: None }
    }

    /// Returns the parts.
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::System { parts } | Self::User { parts } | Self::Assistant { parts, .. } => parts,
            Self::Tool { result: outcome, .. } => &outcome.parts,
        }
    }
}

impl Entry {
    /// The entry in the form without seals, and so without thoughts. `None` if it has no seals.
    pub(crate) fn unsealed(&self) -> Option<Self> {
        let Self::Assistant { parts, verbatim: Some(verbatim) } = self else { return None };
        verbatim.seals.as_ref()?;
        let is_kept = |at: &usize| parts.get(*at).is_some_and(|part| !part.is_thought());
        let kept: Vec<usize> = (0..parts.len()).filter(is_kept).collect();
        let verbatim = verbatim.of_kept(&kept).and_then(|of| of.unsealed()).map(Arc::new);
        let parts = kept.iter().filter_map(|at| parts.get(*at).cloned()).collect();
        Some(Self::Assistant { parts, verbatim })
    }
}

/// A cache in a view for what a provider keeps between two requests, such as encoded entries. Cleared when entries of
/// the view are dropped, so its content always belongs to a prefix.
#[derive(Default, derive_more::Debug)]
#[debug("EncodeCache")]
pub struct EncodeCache(Mutex<Option<Box<dyn Any + Send>>>);

impl EncodeCache {
    /// Takes out the content, if it is a `T`.
    pub fn take<T: Any + Send>(&self) -> Option<T> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.and_then(|value| value.downcast::<T>().ok()).map(|value| *value)
    }

    /// Replaces the content.
    pub fn put<T: Any + Send>(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(value));
    }
}
