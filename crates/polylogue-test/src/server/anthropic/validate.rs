//! What Anthropic's servers ask of a request for a message.

use std::collections::HashSet;

use serde_json::Value;

use super::super::Received;
use super::super::media;
use super::super::rules::{
    Checked, Marks, Object, each, ensure, is_name, list, number, object, only, refuse_if, text,
};
use super::super::schemas::inner;
use super::super::seal::anthropic as signature;
use super::headers::{VERSIONS, version};

const FIELDS: [&str; 20] = [
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "stop_sequences", "temperature",
    "top_p", "top_k", "thinking", "output_config", "metadata", "service_tier", "speed", "inference_geo",
    "container", "diagnostics", "cache_control", "stream",
];

/// Checks a request: its headers, its fields, and that every thought is sent back as it was signed, after the same as then.
///
/// # Errors
/// Names the first place that breaks a rule, and the rule.
pub(in super::super) fn validate(received: &Received) -> Result<(), String> {
    if received.path.contains("/publishers/anthropic/") {
        return validate_at_vertex(received);
    }
    check(&received.body, version(received)?)
}

/// Checks a request to Vertex AI: the model is in the path, and the version in the body.
fn validate_at_vertex(received: &Received) -> Result<(), String> {
    let mut body = object(&received.body, "the body")?.clone();
    match body.shift_remove("anthropic_version").as_ref().and_then(Value::as_str) {
        Some("vertex-2023-10-16") => {}
        version => return Err(format!("anthropic_version: {version:?} is not a version")),
    }
    refuse_if!(body.contains_key("model"), "model: Extra inputs are not permitted");
    if received.header("anthropic-version").is_some() {
        return Err("anthropic-version: the version is in the body".into());
    }
    if (body.get("stream") == Some(&Value::Bool(true))) != received.path.ends_with(":streamRawPredict") {
        return Err("stream: is not that of the path".into());
    }
    check_for(&Value::Object(body), received.model(), VERSIONS[0])
}

pub(super) fn check(request: &Value, version: &str) -> Checked {
    let model = text(object(request, "the body")?, "model")?;
    check_for(request, model, version)
}

fn check_for(request: &Value, model: &str, version: &str) -> Checked {
    let body = object(request, "the body")?;
    if let Some(name) = body.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("{name}: Extra inputs are not permitted"));
    }
    let most = body.get("max_tokens").and_then(Value::as_u64).ok_or("max_tokens: Field required")?;
    refuse_if!(most == 0, "max_tokens: must be greater than or equal to 1");
    check_sampling(body, version)?;
    check_thinking(body, most)?;
    let mut marks = Marks::default();
    check_tools(body, &mut marks)?;
    check_system(body, &mut marks)?;
    let messages = list(body, "messages")?;
    let mut history = History { request, model, ..History::default() };
    each("messages", messages, |index, message| {
        history.read(message, messages.get(..index).unwrap_or_default(), &mut marks)
    })?;
    history.end()?;
    check_continued(body, messages)?;
    check_output(body)
}

/// With a number of tokens for thinking, calls are continued only with the thinking before them.
fn check_continued(body: &Object, messages: &[Value]) -> Checked {
    let is_enabled = body.get("thinking").is_some_and(|thinking| thinking["type"] == "enabled");
    let own = messages.iter().rfind(|message| message["role"] == "assistant");
    let blocks = own.and_then(|own| own["content"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let has_calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let first = blocks.first().and_then(|block| block["type"].as_str()).unwrap_or_default();
    match is_enabled && has_calls && !first.ends_with("thinking") {
        true => Err(format!(
            "messages: Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, \
             a final `assistant` message must start with a thinking block"
        )),
        false => Ok(()),
    }
}

/// Reads the mark of a cache, if there is one.
fn mark(of: &Object, is_allowed: bool, marks: &mut Marks) -> Checked {
    let Some(mark) = of.get("cache_control") else { return Ok(()) };
    let mark = object(mark, "cache_control")?;
    only(mark, &["type", "ttl"])?;
    refuse_if!(!is_allowed || text(mark, "type")? != "ephemeral", "cache_control cannot be set here");
    marks.add(mark.get("ttl").and_then(Value::as_str) == Some("1h"))
}

fn not_blank(text: &str) -> Checked {
    match () {
        () if text.is_empty() => Err("text content blocks must be non-empty".into()),
        () if text.trim().is_empty() => Err("text content blocks must contain non-whitespace text".into()),
        () => Ok(()),
    }
}

fn check_sampling(body: &Object, version: &str) -> Checked {
    let new = version == "2026-10-21";
    let given = |name: &&&str| body.contains_key(**name);
    if let Some(name) = ["temperature", "top_p", "top_k"].iter().find(given).filter(|_| new) {
        return Err(format!("{name}: Extra inputs are not permitted"));
    }
    number(body, "temperature", 0.0, 1.0)?;
    number(body, "top_p", 0.0, 1.0)?;
    if body.contains_key("temperature") && body.contains_key("top_p") {
        return Err("`temperature` and `top_p` cannot both be specified for this model.".into());
    }
    let stops = body.get("stop_sequences").and_then(Value::as_array).into_iter().flatten();
    match stops.filter_map(Value::as_str).any(|stop| stop.trim().is_empty()) {
        true => Err("stop_sequences: each stop sequence must contain non-whitespace".into()),
        false => Ok(()),
    }
}

fn check_thinking(body: &Object, most: u64) -> Checked {
    let Some(thinking) = body.get("thinking") else { return Ok(()) };
    let thinking = object(thinking, "thinking")?;
    let forced = body.get("tool_choice").and_then(|choice| choice.get("type")?.as_str());
    match text(thinking, "type")? {
        "enabled" => {
            only(thinking, &["type", "budget_tokens", "display", "block_binding"])?;
            match thinking.get("budget_tokens").and_then(Value::as_u64) {
                Some(budget) if budget >= 1024 && budget < most => {}
                _ => {
                    return Err(
                        "thinking.budget_tokens: must be at least 1024 and less than max_tokens".into()
                    );
                }
            }
            match forced {
                Some("any" | "tool") => {
                    Err("Thinking may not be enabled when tool_choice forces tool use.".into())
                }
                _ => Ok(()),
            }
        }
        "adaptive" => only(thinking, &["type", "display", "block_binding"]),
        "disabled" | "between_tools" => only(thinking, &["type"]),
        kind => Err(format!("thinking.type: `{kind}` is not a kind of thinking")),
    }
}

fn check_name(name: &str) -> Checked {
    ensure!(
        is_name(name, 128, "_-"),
        "has the name `{name}`, which does not match '^[a-zA-Z0-9_-]{{1,128}}$'"
    );
    Ok(())
}

fn check_tools(body: &Object, marks: &mut Marks) -> Checked {
    let mut names = HashSet::new();
    if body.contains_key("tools") {
        each("tools", list(body, "tools")?, |_, tool| {
            only(tool, &["name", "description", "input_schema", "strict", "cache_control", "type"])?;
            let name = text(tool, "name")?;
            check_name(name)?;
            mark(tool, true, marks)?;
            let schema =
                object(tool.get("input_schema").ok_or("input_schema: Field required")?, "input_schema")?;
            if schema.get("type").and_then(Value::as_str) != Some("object") {
                return Err("input_schema.type: Field required".into());
            }
            if ["oneOf", "allOf", "anyOf"].iter().any(|name| schema.contains_key(*name)) {
                return Err("input_schema does not support oneOf, allOf, or anyOf at the top level".into());
            }
            if names.insert(name.to_owned()) { Ok(()) } else { Err("Tool names must be unique.".into()) }
        })?;
    }
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    let choice = object(choice, "tool_choice")?;
    only(choice, &["type", "name", "disable_parallel_tool_use"])?;
    match text(choice, "type")? {
        _ if names.is_empty() => Err("tool_choice may only be specified while providing tools.".into()),
        "auto" | "any" | "none" => Ok(()),
        "tool" if names.contains(text(choice, "name")?) => Ok(()),
        "tool" => Err("Tool in tool_choice not found in provided tools".into()),
        kind => Err(format!("tool_choice.type: `{kind}`")),
    }
}

fn check_system(body: &Object, marks: &mut Marks) -> Checked {
    match body.get("system") {
        None => Ok(()),
        Some(Value::String(text)) => not_blank(text),
        Some(_) => each("system", list(body, "system")?, |_, block| {
            only(block, &["type", "text", "cache_control"])?;
            mark(block, true, marks)?;
            not_blank(text(block, "text")?)
        }),
    }
}

#[derive(Default)]
struct History<'a> {
    request: &'a Value,
    model: &'a str,
    role: &'a str,
    calls: Vec<&'a str>,
    ids: HashSet<&'a str>,
    /// Whether the last message ends with a call of the server itself.
    paused: bool,
}

/// Models that take messages of the role `system` within a conversation.
const WITH_SYSTEM: [&str; 6] = [
    "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-mythos-5",
    "claude-haiku-5-5",
];

impl<'a> History<'a> {
    fn read(&mut self, message: &'a Object, before: &[Value], marks: &mut Marks) -> Checked {
        only(message, &["role", "content"])?;
        let role = text(message, "role")?;
        let last =
            message.get("content").and_then(|content| content.as_array()?.last()?.get("type")?.as_str());
        self.paused = last == Some("server_tool_use");
        match (self.role, role) {
            ("", "user") | ("user" | "system", "assistant") | ("assistant", "user") => {}
            ("user", "system") if WITH_SYSTEM.iter().any(|model| self.model.starts_with(model)) => {}
            (_, "system") => return Err("role 'system' is not supported on this model".into()),
            ("", _) => return Err("first message must use the \"user\" role".into()),
            _ => return Err("roles must alternate between \"user\" and \"assistant\"".into()),
        }
        if let Some(Value::String(text)) = message.get("content") {
            self.pair(&[])?;
            self.role = role;
            return not_blank(text);
        }
        let blocks = list(message, "content")?;
        refuse_if!(blocks.is_empty(), "all messages must have non-empty content");
        self.pair(blocks)?;
        each("content", blocks, |_, block| self.block(role, block, before, marks))?;
        self.role = role;
        Ok(())
    }

    /// Checks that results come first, all of them, directly after their calls.
    fn pair(&mut self, blocks: &'a [Value]) -> Checked {
        let kind = |block: &Value| block.get("type").and_then(Value::as_str) == Some("tool_result");
        let results: Vec<&str> = blocks
            .iter()
            .take_while(|block| kind(block))
            .filter_map(|block| block.get("tool_use_id")?.as_str())
            .collect();
        if results.len() != blocks.iter().filter(|block| kind(block)).count() {
            return Err("has a `tool_result` block after another block".into());
        }
        let calls = std::mem::take(&mut self.calls);
        if let Some(id) = calls.iter().find(|id| !results.contains(id)) {
            return Err(format!(
                "`tool_use` ids were found without `tool_result` blocks immediately after: {id}"
            ));
        }
        let mut seen = HashSet::new();
        match results.iter().find(|id| !calls.contains(id) || !seen.insert(**id)) {
            Some(id) => Err(format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}")),
            None => Ok(()),
        }
    }

    fn block(&mut self, role: &str, block: &'a Object, before: &[Value], marks: &mut Marks) -> Checked {
        let kind = text(block, "type")?;
        let of_assistant = ["thinking", "redacted_thinking", "tool_use", "server_tool_use"].contains(&kind);
        let of_user = ["tool_result", "image", "document"].contains(&kind);
        if of_assistant && role != "assistant" || of_user && role != "user" {
            return Err(format!("`{kind}` blocks are not permitted in messages of the role `{role}`"));
        }
        mark(block, !kind.ends_with("thinking"), marks)?;
        match kind {
            "text" => {
                only(block, &["type", "text", "cache_control", "citations"])?;
                not_blank(text(block, "text")?)
            }
            "thinking" => {
                only(block, &["type", "thinking", "signature"])?;
                let own = signature(self.request, before, text(block, "thinking")?);
                match text(block, "signature")? == own {
                    true => Ok(()),
                    false => Err("The block is bound to a different conversation".into()),
                }
            }
            "redacted_thinking" => {
                only(block, &["type", "data"])?;
                match text(block, "data")? == signature(self.request, before, "") {
                    true => Ok(()),
                    false => Err("Invalid `data` in `redacted_thinking` block".into()),
                }
            }
            "tool_use" => self.call(block),
            "server_tool_use" => only(block, &["type", "id", "name", "input", "cache_control"]),
            "tool_result" => check_result(block),
            "image" | "document" => check_source(kind, block),
            _ => Err(format!("has the unknown type `{kind}`")),
        }
    }

    fn call(&mut self, block: &'a Object) -> Checked {
        only(block, &["type", "id", "name", "input", "cache_control"])?;
        let id = text(block, "id")?;
        check_name(id).map_err(|_| format!("tool_use.id: `{id}` should match pattern '^[a-zA-Z0-9_-]+$'"))?;
        check_name(text(block, "name")?)?;
        object(block.get("input").unwrap_or(&Value::Null), "tool_use.input")?;
        ensure!(self.ids.insert(id), "`tool_use` ids must be unique");
        self.calls.push(id);
        Ok(())
    }

    fn end(&self) -> Checked {
        match (self.role, self.calls.first()) {
            ("", _) => Err("messages: at least one message is required".into()),
            // A paused reply comes back to be resumed.
            ("assistant", None) if self.paused => Ok(()),
            ("assistant", None) => Err("This model does not support assistant message prefill.".into()),
            (_, Some(id)) => {
                Err(format!("`tool_use` ids were found without `tool_result` blocks immediately after: {id}"))
            }
            _ => Ok(()),
        }
    }
}

fn check_result(block: &Object) -> Checked {
    only(block, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    match block.get("content") {
        None => Ok(()),
        Some(Value::String(_)) => Ok(()),
        Some(_) => each("content", list(block, "content")?, |_, inner| match text(inner, "type")? {
            "text" => not_blank(text(inner, "text")?),
            kind @ ("image" | "document") => check_source(kind, inner),
            kind => Err(format!("has the type `{kind}` in a result")),
        }),
    }
}

fn check_source(kind: &str, block: &Object) -> Checked {
    let source = object(block.get("source").ok_or("source: Field required")?, "source")?;
    match text(source, "type")? {
        "base64" => {
            let media = text(source, "media_type")?;
            let known: &[&str] = match kind {
                "image" => &media::PICTURES,
                _ => &["application/pdf"],
            };
            ensure!(known.contains(&media), "source.media_type: `{media}`");
            media::base64(text(source, "data")?)
        }
        "url" => media::web(text(source, "url")?),
        "text" if kind == "document" => text(source, "data").map(|_| ()),
        other => Err(format!("source.type: `{other}`")),
    }
}

fn check_output(body: &Object) -> Checked {
    let Some(config) = body.get("output_config") else { return Ok(()) };
    let config = object(config, "output_config")?;
    only(config, &["effort", "format"])?;
    let effort = config.get("effort").map(|effort| effort.as_str().unwrap_or_default());
    if effort.is_some_and(|effort| !["low", "medium", "high", "xhigh", "max"].contains(&effort)) {
        return Err("output_config.effort: is none of low, medium, high, xhigh, max".into());
    }
    let Some(format) = config.get("format") else { return Ok(()) };
    let format = object(format, "output_config.format")?;
    refuse_if!(text(format, "type")? != "json_schema", "output_config.format.type: must be json_schema");
    check_schema(format.get("schema").unwrap_or(&Value::Null))
}

/// Keywords of schemas that are accepted.
const KEYWORDS: [&str; 16] = [
    "type", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions", "properties", "required",
    "items", "additionalProperties", "title", "description", "default", "format",
];

fn check_schema(schema: &Value) -> Checked {
    let fields = object(schema, "schema")?;
    let known = |name: &&String| !KEYWORDS.contains(&name.as_str()) && *name != "minItems";
    if let Some(name) = fields.keys().find(known) {
        return Err(format!("output_config.format.schema: '{name}' is not supported"));
    }
    let is_object = fields.get("type").and_then(Value::as_str) == Some("object");
    if is_object && fields.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(
            "output_config.format.schema: 'additionalProperties' must be explicitly set to false".into()
        );
    }
    inner(fields).try_for_each(check_schema)
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
