//! Detects refusals because of a missing capability of the model, among all refusals of providers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use polylogue_core::{Capability, Entry, ModelError, ModelErrorKind, Part, Reply, Request};
use serde_json::{Map, Value};

use crate::wire::pictures;
use crate::wire::protocol::Style;

/// Texts of servers for unsupported features, in lower case. Collected from vLLM, llama.cpp, Ollama, LM Studio, `DeepSeek`, Groq,
/// `OpenRouter` and OpenAI.
const DENIALS: [&str; 21] = [
    "not support", "n't support", "no support", "unsupported", "unavailable", "not available", "not enabled",
    "not implemented", "not allowed", "not permitted", "not compatible", "incompatible", "disabled",
    "no endpoints found", "requires --", "unknown", "unrecognized", "not recogni", "unexpected", "must be ",
    "invalid parameter",
];

/// Their names of output formats. Ollama's field is `format`, a word that occurs in many other refusals.
const FORMS: [&str; 10] = [
    "response_format", "response format", "json", "schema", "structured", "grammar", "'format'", "`format`",
    "\"format\"", ": format ",
];

/// Their names of tools.
const TOOLS: [&str; 2] = ["tool", "function"];

/// Their texts for a supported feature with an invalid request, or by another API.
const FAULTS: [&str; 3] = ["invalid schema", "invalid_function_parameters", "use /v1/responses"];

/// `error` as a missing capability of the model that `request` needs, if its text says so.
pub(crate) fn judged(error: ModelError, request: &Request<'_>) -> ModelError {
    let is_known = |kind: &ModelErrorKind| {
        matches!(
            kind,
            ModelErrorKind::Unsupported(_)
                | ModelErrorKind::TooLong { .. }
                | ModelErrorKind::SealsRefused
                | ModelErrorKind::ContentFiltered
                | ModelErrorKind::QuotaExceeded
        )
    };
    if is_known(&error.kind) {
        return error;
    }
    let refuses = matches!(error.status, Some(400 | 422 | 501)) && error.hint.is_none();
    match lacking(&error, request) {
        Some(capability) => {
            let hint = if capability == Capability::Tools { NO_TOOLS } else { NO_FORM };
            let hint = error.hint.or_else(|| Some(hint.into()));
            ModelError { kind: ModelErrorKind::Unsupported(capability), hint, ..error }
        }
        None => match way_out(&error, request).filter(|_| refuses) {
            Some(hint) => error.hint(hint),
            None => error,
        },
    }
}

/// Texts of templates and servers without a system role, in lower case: Gemma, older Mistral, Google's own API.
const NO_SYSTEM: [&str; 7] = [
    "system role", "system message", "role 'system'", "`system`", "developer instruction",
    "system instruction", "\"system\"",
];

/// The same, for texts that list the supported roles, or complain about consecutive user messages, which merged requests never have.
const OTHER_ROLES: [&str; 3] = ["only user and assistant", "only user, assistant", "must alternate"];

/// Texts of templates that fail for a call without content.
const NO_CONTENT: [&str; 6] = [
    "nonetype",
    "content is null",
    "content must not be null",
    "valid string",
    "must be a string",
    "be null",
];

/// Texts of servers that refuse a user message right after a tool result: Mistral, Amazon's Converse.
const AFTER_TOOL: [&str; 4] = [
    "after role 'tool'",
    "after role tool",
    "after a `tool`",
    "tool result blocks cannot be provided in the same turn",
];

/// `error` as a missing capability for a message format that can be avoided, if its text says so.
pub(crate) fn misformed(error: ModelError, request: &Request<'_>, style: &Style) -> ModelError {
    let refuses = matches!(error.status, Some(400 | 422 | 500 | 501));
    let message = error.message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let has_system = !style.fold && request.system.is_some_and(|text| !text.trim().is_empty());
    let no_system = says(&NO_SYSTEM) && says(&DENIALS) || style.merge && says(&OTHER_ROLES);
    let has_null = !style.omit && request.entries.iter().any(is_wordless_call);
    let after_tool = !style.bridge && has_words_after_results(request.entries, style);
    let no_order = says(&AFTER_TOOL) || style.merge && message.contains("must alternate");
    let lacks = match refuses {
        // Templates that count turns skip calls and results, and report that roles must alternate.
        true if after_tool && no_order => Capability::UserAfterTool,
        true if has_system && no_system => Capability::SystemRole,
        true if has_null && says(&NO_CONTENT) => Capability::NullContent,
        _ => return error,
    };
    ModelError { kind: ModelErrorKind::Unsupported(lacks), hint: None, ..error }
}

/// Whether a user message, or pictures of tools, are sent right after a tool result.
fn has_words_after_results(entries: &[Entry], style: &Style) -> bool {
    let is_words = |entry: &Entry| matches!(entry, Entry::User { .. } | Entry::System { .. });
    let mut pairs = entries.iter().zip(entries.iter().skip(1));
    pairs.any(|(before, entry)| matches!(before, Entry::Tool { .. }) && is_words(entry))
        || style.vision && entries.iter().flat_map(pictures::of).next().is_some()
}

/// Whether an entry has calls but no text.
fn is_wordless_call(entry: &Entry) -> bool {
    let Entry::Assistant { parts, .. } = entry else { return false };
    parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
        && parts.iter().all(|part| matches!(part, Part::ToolCall(_)) || part.is_blank())
}

/// The hint when it is unknown why a request with tools and a schema was refused: error texts differ by server.
const NEITHER: &str = "if the model cannot call tools or write JSON on demand, say so: `--capabilities text`, or `capabilities: text` of its endpoint";

/// The same for a request with tools.
const NO_TOOLS: &str = "if the model cannot call tools, say so: `--capabilities text`, or `capabilities: {tools: false}` of its endpoint";

/// The same for a request for JSON.
const NO_FORM: &str = "if the model cannot write JSON on demand, say so: `--capabilities tools`, or `capabilities: {schema: false, json: false}` of its \
                       endpoint";

/// The ends of errors that do not say why a request was refused, in lower case.
const NO_REASON: [&str; 7] = [
    "bad request",
    "invalid request",
    "unprocessable entity",
    "unprocessable content",
    "not implemented",
    "provider returned error",
    "it does not say why",
];

/// What to do about a refusal whose cause is unknown: it may be what `request` has and the error names, or all that it has if the
/// error gives no reason. A model that has called tools can call them.
fn way_out(error: &ModelError, request: &Request<'_>) -> Option<&'static str> {
    let message = error.message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let is_silent = NO_REASON.iter().any(|words| message.ends_with(words));
    let asked = asked_for(request);
    let has_called = request.entries.iter().any(|entry| matches!(entry, Entry::Tool { .. }));
    let tools = asked.contains(&Capability::Tools) && !has_called && (is_silent || says(&TOOLS));
    let form = asked.iter().any(|of| *of != Capability::Tools) && (is_silent || says(&FORMS));
    match (tools, form) {
        (true, true) => Some(NEITHER),
        (true, false) => Some(NO_TOOLS),
        (false, true) => Some(NO_FORM),
        (false, false) => None,
    }
}

/// The hint when a model was configured with vision and its server refuses pictures.
const BLIND: &str = "pictures that tools returned went along: if the model does not see, say so: `vision: false` in the capabilities of its endpoint";

/// `error`, with a hint if it is about the pictures of tools in `request`.
pub(crate) fn advised(error: ModelError, request: &Request<'_>) -> ModelError {
    let refuses = matches!(error.status, Some(400 | 404 | 415 | 422 | 500 | 501)) && error.hint.is_none();
    let message = error.message.to_ascii_lowercase();
    let names = ["image", "vision", "multimodal", "mmproj"].iter().any(|word| message.contains(word));
    let mut shown = request.entries.iter().flat_map(pictures::of);
    if refuses && names && shown.next().is_some() { error.hint(BLIND) } else { error }
}

fn lacking(error: &ModelError, request: &Request<'_>) -> Option<Capability> {
    let may_mean = matches!(error.status, Some(400 | 404 | 422 | 500 | 501));
    let message = error.message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if !may_mean || !says(&DENIALS) || says(&FAULTS) {
        return None;
    }
    let asked = asked_for(request);
    let form = says(&FORMS);
    if asked.contains(&Capability::Tools) && says(&TOOLS) {
        return Some(Capability::Tools);
    }
    asked.into_iter().find(|capability| *capability != Capability::Tools && form)
}

/// The optional capabilities that `request` needs.
pub(crate) fn asked_for(request: &Request<'_>) -> Vec<Capability> {
    let tools = (!request.tools.is_empty()).then_some(Capability::Tools);
    let form = match (&request.params.schema, request.params.json) {
        (Some(_), _) => Some(Capability::Schema),
        (None, true) => Some(Capability::Json),
        (None, false) => None,
    };
    tools.into_iter().chain(form).collect()
}

/// The capabilities that `reply` proves, of those that `request` needs. Servers may silently ignore tools and formats, so only their
/// use in the reply counts.
pub(crate) fn shown(request: &Request<'_>, reply: &Reply) -> impl Iterator<Item = Capability> {
    let asked = asked_for(request);
    let calls = reply.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let is_form = |capability: &Capability| matches!(capability, Capability::Schema | Capability::Json);
    let object: Option<Map<String, Value>> = match asked.iter().any(is_form) {
        true => serde_json::from_str(reply.text().trim()).ok(),
        false => None,
    };
    let required = request.params.schema.as_ref().and_then(|schema| schema.get("required")?.as_array());
    let has_all = required.is_some_and(|names| {
        let has =
            |name: &Value| object.as_ref().zip(name.as_str()).is_some_and(|(o, name)| o.contains_key(name));
        !names.is_empty() && names.iter().all(has)
    });
    asked.into_iter().filter(move |capability| match capability {
        Capability::Tools => calls,
        Capability::Schema => has_all,
        Capability::Json => object.is_some(),
        // No reply proves these.
        Capability::Vision | Capability::SystemRole | Capability::NullContent | Capability::UserAfterTool => {
            false
        }
    })
}

/// Missing capabilities of the models of an endpoint, which are not tried again for a while.
#[derive(Debug, Default)]
pub(crate) struct Unsupported(Mutex<HashMap<String, Findings>>);

/// The missing capabilities of one model, and when each was found.
type Findings = HashMap<Capability, (Instant, ModelError)>;

impl Unsupported {
    /// How long a finding counts: a server may be restarted with more capabilities.
    const FOR: Duration = Duration::from_secs(600);

    /// Stores `error`, if it is a missing capability.
    pub(crate) fn learn(&self, error: &ModelError) {
        if let ModelErrorKind::Unsupported(capability) = error.kind {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let of_model = known.entry(error.model.clone()).or_default();
            of_model.insert(capability, (Instant::now(), error.clone()));
        }
    }

    /// Removes the finding on a capability of `model`.
    pub(crate) fn forget(&self, model: &str, capability: Capability) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_mut(model).and_then(|known| known.remove(&capability));
    }

    /// Whether `model` is known to lack `capability`.
    pub(crate) fn has(&self, model: &str, capability: Capability) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(model).and_then(|known| known.get(&capability));
        known.is_some_and(|(since, _)| since.elapsed() < Self::FOR)
    }

    /// The known error of `model` for `request`, if any.
    pub(crate) fn known(&self, model: &str, request: &Request<'_>) -> Option<ModelError> {
        let asked = asked_for(request);
        if asked.is_empty() {
            return None;
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |capability: Capability| {
            let (since, error) = known.get(model)?.get(&capability)?;
            (since.elapsed() < Self::FOR).then(|| error.clone())
        };
        asked.into_iter().find_map(fresh)
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{EncodeCache, Name, Origin, Params, Path, ToolSpec};
    use serde_json::json;

    use super::*;

    /// What a refusal with `status` and `message` means for a request with tools, a schema, or JSON.
    fn means(status: u16, message: &str, asked: Capability) -> Option<Capability> {
        match refused(status, message, asked).kind {
            ModelErrorKind::Unsupported(capability) => Some(capability),
            _ => None,
        }
    }

    fn refused(status: u16, message: &str, asked: Capability) -> ModelError {
        refused_after(&[Entry::user("go")], status, message, asked)
    }

    fn refused_after(entries: &[Entry], status: u16, message: &str, asked: Capability) -> ModelError {
        let tools = [ToolSpec::new("t", "", json!({"type": "object"}))];
        let params = Params {
            schema: (asked == Capability::Schema).then(|| json!({"type": "object"})),
            json: asked == Capability::Json,
            ..Params::default()
        };
        let (at, who, wire) = (Path::root(), Name::new("A").unwrap(), EncodeCache::default());
        let origin = Origin::new(&at, &who, 0);
        let tools = if asked == Capability::Tools { &tools[..] } else { &[] };
        let request =
            Request { origin, system: None, entries, tools, params: &params, encoded: &wire, reserved: None };
        let error = ModelError::new(ModelErrorKind::Config, "m", message);
        judged(ModelError { status: Some(status), ..error }, &request)
    }

    #[test]
    fn an_unknown_refusal_comes_with_a_way_out_by_what_was_sent_and_what_it_names() {
        use Capability::{Json, Schema, Tools, Vision};
        // With the last one, nothing is asked for.
        for (status, message, asked, hint) in [
            (400, "the provider answered with status 400: Bad Request", Tools, Some(NO_TOOLS)),
            (422, "the provider answered with status 422: Unprocessable Entity", Schema, Some(NO_FORM)),
            (400, "Bad request", Vision, None),
            (400, "`tool_choice` is odd", Tools, Some(NO_TOOLS)),
            (400, "`tool_choice` is odd", Json, None),
            (400, "`response_format` is odd", Json, Some(NO_FORM)),
            (400, "`response_format` is odd", Tools, None),
            (400, "tools and the response_format are odd", Vision, None),
            (400, "`temperature` is above 2", Tools, None),
            (400, "`temperature` is above 2", Schema, None),
            (500, "Bad luck", Tools, None),
            (400, "tools are not supported", Tools, Some(NO_TOOLS)),
        ] {
            assert_eq!(refused(status, message, asked).hint.as_deref(), hint, "{message}");
        }
        let outcome = polylogue_core::ToolResult::done("sunny");
        let called = [Entry::user("go"), Entry::Tool { id: "1".into(), tool: "t".into(), result: outcome }];
        let message = "`tool_use` ids were found without `tool_result` blocks immediately after";
        assert_eq!(refused_after(&called, 400, message, Tools).hint, None);
    }

    #[test]
    fn what_servers_say_of_what_they_cannot_do() {
        use Capability::{Json, Schema, Tools};
        for (status, message, asked) in [
            (400, "registry.ollama.ai/library/gemma:2b does not support tools", Tools),
            (
                400,
                "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
                Tools,
            ),
            (500, "tools param requires --jinja flag", Tools),
            (404, "No endpoints found that support tool use", Tools),
            (400, "Unsupported parameter: 'tools' is not supported with this model", Tools),
            (422, "tools: Extra inputs are not permitted", Tools),
            (400, "This response_format type is unavailable now", Schema),
            (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported", Schema),
            (400, "'response_format.type' must be 'json_schema' or 'text'", Json),
            (400, "the provider answered with status 400: format is not supported", Schema),
            (400, "unknown field `format`", Json),
            (400, "Function calling is disabled for this model", Tools),
            (422, "Parameter 'response_format' is not recognized", Schema),
        ] {
            assert_eq!(means(status, message, asked), Some(asked), "{message}");
        }
    }

    #[test]
    fn what_is_refused_for_other_reasons_is_no_lack() {
        use Capability::{Json, Schema, Tools};
        for (status, message, asked) in [
            (
                400,
                "Invalid schema for function 't': schema must be a JSON Schema of 'type: \"object\"'",
                Tools,
            ),
            (400, "Invalid schema for response_format 'reply': 'a' is not permitted", Schema),
            (
                400,
                "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Please use /v1/responses instead.",
                Tools,
            ),
            (400, "This model's maximum context length is 4096 tokens", Tools),
            (400, "Unsupported parameter: 'max_tokens' is not supported with this model", Tools),
            (400, "Unsupported value: 'temperature' does not support 0.2 with this model", Json),
            (401, "tools are not supported for this key", Tools),
            (429, "tools are unavailable", Tools),
            (400, "this image format is not supported", Schema),
            (400, "Unsupported parameter: 'tools' is not supported with this model", Json),
        ] {
            assert_eq!(means(status, message, asked), None, "{message}");
        }
    }
}
