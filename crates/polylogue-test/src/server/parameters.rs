//! What is asked of the fields of a request that are not its messages.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::rules::{ensure, is_name, refuse_if};
use super::schemas;

/// Checks everything but the messages. Unknown fields are left alone: servers have fields of their own.
pub(super) fn check(body: &Map<String, Value>) -> Result<(), String> {
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    refuse_if!(model.is_empty(), "`model` is missing");
    check_numbers(body)?;
    check_stop(body.get("stop"))?;
    check_stream(body)?;
    check_format(body.get("response_format"))?;
    check_cache_key(body.get("prompt_cache_key"))?;
    check_cache_retention(model, body.get("prompt_cache_retention"))?;
    check_tools(body)
}

/// Whether OpenAI takes it as the name of a tool or a schema.
pub(super) fn is_legal_name(name: &str) -> bool {
    is_name(name, 64, "_-")
}

/// Ranges from OpenAI's reference; `top_k` is not in it, but in vLLM's and llama.cpp's.
fn check_numbers(body: &Map<String, Value>) -> Result<(), String> {
    for (name, low, high) in [
        ("temperature", 0.0, 2.0),
        ("top_p", 0.0, 1.0),
        ("frequency_penalty", -2.0, 2.0),
        ("presence_penalty", -2.0, 2.0),
    ] {
        let in_range = |value: &Value| value.as_f64().is_some_and(|value| (low..=high).contains(&value));
        if body.get(name).is_some_and(|value| !in_range(value)) {
            return Err(format!("`{name}` is not a number from {low} to {high}"));
        }
    }
    for name in ["max_tokens", "max_completion_tokens", "n"] {
        if body.get(name).is_some_and(|value| value.as_u64().is_none_or(|value| value == 0)) {
            return Err(format!("`{name}` is not a whole number from 1"));
        }
    }
    for name in ["seed", "top_k"] {
        if body.get(name).is_some_and(|value| !value.is_i64() && !value.is_u64()) {
            return Err(format!("`{name}` is not a whole number"));
        }
    }
    match body.contains_key("max_tokens") && body.contains_key("max_completion_tokens") {
        true => Err("`max_tokens` and `max_completion_tokens` exclude each other".into()),
        false => Ok(()),
    }
}

fn check_stop(stop: Option<&Value>) -> Result<(), String> {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    match stop {
        None => Ok(()),
        Some(Value::Array(texts)) if (1..=4).contains(&texts.len()) && texts.iter().all(is_text) => Ok(()),
        Some(text) if is_text(text) => Ok(()),
        Some(_) => Err("`stop` is neither a text nor a list of 1 to 4 texts".into()),
    }
}

fn check_stream(body: &Map<String, Value>) -> Result<(), String> {
    let stream = body.get("stream");
    refuse_if!(stream.is_some_and(|stream| !stream.is_boolean()), "`stream` is neither `true` nor `false`");
    if body.contains_key("stream_options") && stream != Some(&Value::Bool(true)) {
        return Err("`stream_options` is only allowed when `stream` is `true`".into());
    }
    Ok(())
}

/// Checks OpenAI's name of a prefix in its cache.
pub(super) fn check_cache_key(key: Option<&Value>) -> Result<(), String> {
    match key.map(|key| key.as_str().map(str::len)) {
        None | Some(Some(1..=64)) => Ok(()),
        Some(_) => Err("`prompt_cache_key` is not a text of 1 to 64 characters".into()),
    }
}

/// Checks how long OpenAI's cache keeps a prefix: models from `gpt-5.6` on have other options.
pub(super) fn check_cache_retention(model: &str, retention: Option<&Value>) -> Result<(), String> {
    match retention.map(|retention| retention.as_str().unwrap_or_default()) {
        None => Ok(()),
        Some(_) if marks_cache(model) => Err("Unknown parameter: 'prompt_cache_retention'.".into()),
        Some("in_memory" | "24h") => Ok(()),
        Some(_) => Err("`prompt_cache_retention` is neither `in_memory` nor `24h`".into()),
    }
}

/// Whether it is `gpt-5.6` or a later model, which write to the cache at marks.
fn marks_cache(model: &str) -> bool {
    let version = model.strip_prefix("gpt-").and_then(|rest| rest.split('-').next()?.parse::<f64>().ok());
    version.is_some_and(|version| version >= 5.6)
}

/// Checks OpenAI's mark of a part, which only `gpt-5.6` and later models take, and not after what they wrote themselves. Its lifetime is one
/// of `lifetimes`, which depend on the API.
pub(super) fn check_cache_mark(
    model: &str,
    role: &str,
    part: &Map<String, Value>,
    lifetimes: &[&str],
) -> Result<(), String> {
    let Some(mark) = part.get("prompt_cache_breakpoint") else { return Ok(()) };
    let lifetime = mark.get("ttl").map(|lifetime| lifetime.as_str().unwrap_or_default());
    match marks_cache(model) {
        _ if mark.get("mode").and_then(Value::as_str) != Some("explicit") => {
            Err("`prompt_cache_breakpoint` has no mode `explicit`".into())
        }
        _ if lifetime.is_some_and(|lifetime| !lifetimes.contains(&lifetime)) => {
            Err(format!("`ttl` of `prompt_cache_breakpoint` is none of {lifetimes:?}"))
        }
        _ if role == "assistant" => Err("`prompt_cache_breakpoint` is not allowed in this role".into()),
        true => Ok(()),
        false => Err("Unknown parameter: 'prompt_cache_breakpoint'.".into()),
    }
}

fn check_format(format: Option<&Value>) -> Result<(), String> {
    let Some(format) = format else { return Ok(()) };
    match format.get("type").and_then(Value::as_str) {
        Some("text" | "json_object") => Ok(()),
        // A grammar of TGI.
        Some("json") if format.get("value").is_some_and(Value::is_object) => Ok(()),
        Some("json_schema") => {
            let schema = format.get("json_schema").ok_or("`response_format` has no `json_schema`")?;
            let name = schema.get("name").and_then(Value::as_str).unwrap_or_default();
            ensure!(is_legal_name(name), "the schema's name `{name}` is illegal");
            let is_strict = schema.get("strict") == Some(&Value::Bool(true));
            match schema.get("schema") {
                Some(form @ Value::Object(_)) if is_strict => schemas::strict(form),
                Some(Value::Object(_)) => Ok(()),
                _ => Err("the schema is not an object".into()),
            }
        }
        _ => Err("`response_format` has an unknown type".into()),
    }
}

pub(super) fn check_tools(body: &Map<String, Value>) -> Result<(), String> {
    let Some(tools) = body.get("tools") else {
        return match body.contains_key("tool_choice") || body.contains_key("parallel_tool_calls") {
            true => Err("`tool_choice` and `parallel_tool_calls` are only allowed with `tools`".into()),
            false => Ok(()),
        };
    };
    let tools = tools.as_array().filter(|tools| !tools.is_empty());
    let mut names = HashSet::new();
    for (index, tool) in tools.ok_or("`tools` is not a list of tools, or an empty one")?.iter().enumerate() {
        check_tool(tool, &mut names).map_err(|flaw| format!("tools[{index}] {flaw}"))?;
    }
    Ok(())
}

fn check_tool<'a>(tool: &'a Value, names: &mut HashSet<&'a str>) -> Result<(), String> {
    refuse_if!(tool.get("type").and_then(Value::as_str) != Some("function"), "is not of type `function`");
    let function = tool.get("function").ok_or("has no `function`")?;
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    ensure!(is_legal_name(name), "has the illegal name `{name}`");
    ensure!(names.insert(name), "has the name `{name}` again");
    if function.get("description").is_some_and(|text| !text.is_string()) {
        return Err("has a description that is not text".into());
    }
    let is_strict = function.get("strict") == Some(&Value::Bool(true));
    match function.get("parameters") {
        None => Ok(()),
        Some(schema) if is_strict => schemas::strict(schema),
        Some(schema) => schemas::arguments(schema),
    }
}
