//! Parameters that providers refuse of models, as their errors say. The models leave them out from then on.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polylogue_core::{ModelError, ModelErrorKind, Params};
use serde_json::Value;

/// What providers say of a parameter that they do not take, in lower case. Of a wrong value they say other words, which stay errors.
const DENIALS: [&str; 15] = [
    "not support", "n't support", "no support", "unsupported", "not allowed", "not permitted",
    "not available", "not enabled", "unavailable", "deprecated", "unknown", "unrecognized", "not recogni",
    "unexpected", "extra_forbidden",
];

/// The names of fields for parameters, without `_` and `.`. The limit on tokens is not among them: without it, calls cost more.
const FIELDS: [(&str, &[&str]); 10] = [
    ("temperature", &["temperature"]),
    ("top_p", &["topp"]),
    ("top_k", &["topk"]),
    ("seed", &["seed", "randomseed"]),
    ("stop", &["stop", "stopsequences"]),
    // A model without thinking takes neither.
    ("effort", &["reasoningeffort", "effort", "outputconfigeffort", "thinkinglevel", "thinking"]),
    ("thinking", &["thinking", "reasoningsummary"]),
    ("tool_choice", &["toolchoice", "toolconfigtoolchoiceany", "toolconfigtoolchoicetool"]),
    ("parallel_tool_calls", &["paralleltoolcalls"]),
    ("prompt_cache", &["promptcacheretention"]),
];

/// What is noted if a summary of the reasoning is refused that the endpoint itself asked for. It is no parameter of agents: what a team sets is
/// left out only if [its own refusal](refused) says so.
pub(crate) const SUMMARY: &str = "summary";

/// What refusals of a summary say, in lower case: those of OpenAI, Gemini, Vertex AI, Anthropic and Amazon Bedrock.
const SUMMARY_REFUSALS: [&str; 4] = ["summar", "thoughts", "thinking is not enabled", "display"];

/// Whether `error` may be the refusal of a summary. More errors count than for parameters of a team, because without the summary a request
/// is what the team asked for.
pub(crate) fn refuses_summary(error: &ModelError) -> bool {
    let message = error.message.to_ascii_lowercase();
    let is_of_request = error.kind == ModelErrorKind::Config && matches!(error.status, Some(400 | 403 | 422));
    is_of_request && SUMMARY_REFUSALS.iter().any(|words| message.contains(words))
}

/// The names of those of the `params` of a request that `error` says its provider does not take.
pub(crate) fn refused(error: &ModelError, params: &Params) -> Vec<&'static str> {
    let message = error.message.to_ascii_lowercase();
    // The parameter is known then, and has another value.
    let is_of_value = message.contains("supported values");
    if error.kind != ModelErrorKind::Config || !matches!(error.status, Some(400 | 422)) || is_of_value {
        return Vec::new();
    }
    let denies = |text: &&str| DENIALS.iter().any(|denial| text.contains(denial));
    // Other sentences can list what is supported.
    let Some(sentence) = message.split(". ").find(denies) else { return Vec::new() };
    // Gemini's name for it, in two words.
    let sentence = sentence.replace("thinking level", "thinking_level");
    let field = field(error);
    let named = field.as_deref().unwrap_or(&sentence);
    params.names().into_iter().filter(|parameter| names(named, parameter)).collect()
}

/// The field that an error of OpenAI's format names.
fn field(error: &ModelError) -> Option<String> {
    let body: Value = serde_json::from_str(error.body.as_deref()?).ok()?;
    let field = body.pointer("/error/param").or_else(|| body.get("param"))?.as_str()?;
    Some(field.to_ascii_lowercase())
}

/// Whether `text` has the name of a field for `parameter`, as a word.
fn names(text: &str, parameter: &str) -> bool {
    let fields = FIELDS.iter().find(|(name, _)| *name == parameter).map_or(&[][..], |(_, fields)| *fields);
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
    text.split(|letter: char| !is_of_word(letter)).any(|word| {
        let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
        fields.contains(&word.as_str())
    })
}

/// The parameters that were refused of the models of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct RefusedParameters(Mutex<HashMap<String, BTreeSet<&'static str>>>);

impl RefusedParameters {
    fn of_models(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<&'static str>>> {
        // A panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the provider of `model` refused `parameters`.
    pub(crate) fn learn(&self, model: &str, parameters: impl IntoIterator<Item = &'static str>) {
        self.of_models().entry(model.to_owned()).or_default().extend(parameters);
    }

    /// Whether one of `parameters` was refused of `model`.
    pub(crate) fn has_any(&self, model: &str, parameters: &[&str]) -> bool {
        let known = self.of_models();
        known.get(model).is_some_and(|refused| parameters.iter().any(|name| refused.contains(*name)))
    }

    /// The parameters that were refused of `model`.
    pub(crate) fn of(&self, model: &str) -> BTreeSet<&'static str> {
        self.of_models().get(model).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "refused_parameters_tests.rs"]
mod tests;
