//! Refusals of summaries of reasoning.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use polylogue_core::{ModelError, ModelErrorKind};

/// Models of an endpoint that were refused a summary, and when: they are not asked for one for a while.
#[derive(Debug, Default)]
pub(crate) struct Unsummarized(Mutex<HashMap<Box<str>, Instant>>);

impl Unsummarized {
    /// How long a refusal counts: an account may be verified meanwhile.
    const FOR: Duration = Duration::from_secs(600);

    /// Stores that `model` was refused one.
    pub(crate) fn learn(&self, model: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(model.into(), Instant::now());
    }

    /// Whether `model` is not asked for one.
    pub(crate) fn has(&self, model: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(model).is_some_and(|since| since.elapsed() < Self::FOR)
    }
}

/// What refusals of a summary say, in lower case: those of OpenAI, Gemini, Vertex AI, Anthropic and Amazon Bedrock.
const REFUSALS: [&str; 4] = ["summar", "thoughts", "thinking is not enabled", "display"];

/// Whether `error` may be the refusal of a summary.
pub(crate) fn refuses_summary(error: &ModelError) -> bool {
    let message = error.message.to_ascii_lowercase();
    let is_of_request = error.kind == ModelErrorKind::Config && matches!(error.status, Some(400 | 403 | 422));
    is_of_request && REFUSALS.iter().any(|words| message.contains(words))
}
