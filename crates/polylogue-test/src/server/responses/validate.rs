//! What OpenAI's servers ask of a request for a response.

use std::collections::HashSet;

use serde_json::Value;

use super::super::efforts::check_openai;
use super::super::media;
use super::super::parameters::{check_cache_key, check_cache_mark, check_cache_retention};
use super::super::rules::{
    Checked, Object, each, ensure, is_name, list, not_blank, number, object, only, refuse_if, text,
};
use super::super::schemas;
use super::super::seal::seal;

/// Fields of a request. There is no `stop`, `seed`, `top_k`, penalty or `n`.
const FIELDS: [&str; 27] = [
    "model", "input", "instructions", "max_output_tokens", "temperature", "top_p", "tools", "tool_choice",
    "parallel_tool_calls", "reasoning", "text", "store", "include", "previous_response_id", "conversation",
    "truncation", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier",
    "service_tier", "metadata", "stream", "stream_options", "background", "user", "max_tool_calls",
];

/// Checks a request. It must keep nothing on the server: `store` is `false`, no earlier response is named, and nothing is cut
/// silently.
///
/// # Errors
/// Names the first place that breaks a rule, and the rule.
pub(in super::super) fn validate(body: &Value) -> Result<(), String> {
    let body = object(body, "the body")?;
    if let Some(name) = body.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("Unknown parameter: '{name}'."));
    }
    let model = text(body, "model")?;
    check_stateless(body)?;
    check_cache_key(body.get("prompt_cache_key"))?;
    check_cache_retention(model, body.get("prompt_cache_retention"))?;
    number(body, "max_output_tokens", 16.0, f64::from(u32::MAX))?;
    check_sampling(model, body)?;
    if let Some(instructions) = body.get("instructions") {
        let instructions = instructions.as_str().ok_or("`instructions` is not a text")?;
        not_blank(instructions)?;
    }
    match body.get("input") {
        Some(Value::String(text)) => not_blank(text)?,
        _ => check_items(model, list(body, "input")?)?,
    }
    check_tools(body)?;
    match body.get("text") {
        Some(format) => check_format(object(format, "text")?),
        None => Ok(()),
    }
}

fn check_stateless(body: &Object) -> Checked {
    if body.get("store") != Some(&Value::Bool(false)) {
        return Err("`store` is not false: the server would keep the conversation".into());
    }
    match ["previous_response_id", "conversation", "truncation", "background"]
        .iter()
        .find(|name| body.contains_key(**name))
    {
        Some(name) => Err(format!("`{name}` makes the result depend on the server")),
        None => Ok(()),
    }
}

/// Whether a model reasons, by its name.
fn reasons(model: &str) -> bool {
    let begins = ["o1", "o3", "o4", "gpt-5", "gpt-6"];
    begins.iter().any(|begin| model.starts_with(begin))
}

/// Checks that a model that reasons has none of the parameters `names`. Models between GPT-5 and GPT-6 take those of sampling
/// at the effort `none`.
pub(in crate::server) fn no_parameter_of_others(
    model: &str,
    effort: Option<&str>,
    body: &Object,
    names: &[&str],
) -> Checked {
    let is_off = effort == Some("none") && model.starts_with("gpt-5.");
    let refuses = |name: &&&str| reasons(model) && (!is_off || **name == "stop") && body.contains_key(**name);
    match names.iter().find(refuses) {
        Some(name) => Err(format!("Unsupported parameter: '{name}' is not supported with this model.")),
        None => Ok(()),
    }
}

fn check_sampling(model: &str, body: &Object) -> Checked {
    number(body, "temperature", 0.0, 2.0)?;
    number(body, "top_p", 0.0, 1.0)?;
    let effort = body.get("reasoning").and_then(|reasoning| reasoning.get("effort")?.as_str());
    no_parameter_of_others(model, effort, body, &["temperature", "top_p"])?;
    let Some(reasoning) = body.get("reasoning") else { return Ok(()) };
    let reasoning = object(reasoning, "reasoning")?;
    only(reasoning, &["effort", "summary", "context", "mode"])?;
    ensure!(reasons(model), "Unsupported parameter: 'reasoning' is not supported with this model.");
    let text = |name: &str| reasoning.get(name).map(|value| value.as_str().unwrap_or_default());
    if text("summary").is_some_and(|summary| !["auto", "concise", "detailed"].contains(&summary)) {
        return Err("Invalid value: 'reasoning.summary'".into());
    }
    text("effort").map_or(Ok(()), |effort| check_openai(model, effort))
}

/// What is known of the items before the one that is read.
#[derive(Default)]
struct Items<'a> {
    calls: HashSet<&'a str>,
    outputs: HashSet<&'a str>,
    ids: HashSet<&'a str>,
    /// The reasoning item that waits for what it precedes.
    reasoning: Option<&'a str>,
    model: &'a str,
    /// Whether the last item is the assistant's.
    own: bool,
}

fn check_items<'a>(model: &'a str, input: &'a [Value]) -> Checked {
    refuse_if!(input.is_empty(), "`input` is empty");
    let mut items = Items { model, ..Items::default() };
    each("input", input, |_, item| items.read(item))?;
    if let Some(id) = items.reasoning {
        return Err(format!(
            "Item '{id}' of type 'reasoning' was provided without its required following item."
        ));
    }
    match items.calls.iter().find(|id| !items.outputs.contains(*id)) {
        Some(id) => Err(format!("No tool output found for function call {id}.")),
        None if items.own => Err("the last item is the assistant's".into()),
        None => Ok(()),
    }
}

impl<'a> Items<'a> {
    fn read(&mut self, item: &'a Object) -> Checked {
        if let Some(id) = item.get("id").and_then(Value::as_str)
            && !self.ids.insert(id)
        {
            return Err(format!("Duplicate item found with id {id}."));
        }
        let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
        let waits = self.reasoning.take();
        match kind {
            "message" => self.message(item),
            "reasoning" => self.seal(item),
            "function_call" => self.call(item),
            "function_call_output" => self.output(item),
            _ => Err(format!("has the unknown type `{kind}`")),
        }?;
        let follows = kind == "function_call" || kind == "message" && self.own;
        match waits {
            Some(id) if !follows && kind != "reasoning" => Err(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            )),
            _ => Ok(()),
        }
    }

    fn message(&mut self, item: &'a Object) -> Checked {
        only(item, &["type", "role", "content", "id", "status", "phase"])?;
        let role = text(item, "role")?;
        self.own = role == "assistant";
        let parts: &[&str] = match role {
            "user" | "system" | "developer" => &["input_text", "input_image", "input_file", "input_audio"],
            "assistant" => &["output_text", "refusal"],
            _ => return Err(format!("has the unknown role `{role}`")),
        };
        match item.get("content") {
            Some(Value::String(text)) => not_blank(text),
            _ => {
                let content = list(item, "content")?;
                let lifetimes = ["30m", "12h"];
                each("content", content, |_, part| check_cache_mark(self.model, role, part, &lifetimes))?;
                check_content(content, parts)
            }
        }
    }

    fn seal(&mut self, item: &'a Object) -> Checked {
        only(item, &["type", "id", "summary", "encrypted_content", "content", "status"])?;
        let id = text(item, "id")?;
        list(item, "summary")?;
        let model = self.model;
        let own = seal("responses", &format!("{model}{id}"));
        if text(item, "encrypted_content")? != own {
            return Err(format!("The encrypted content for item {id} could not be verified."));
        }
        self.reasoning = Some(id);
        self.own = true;
        Ok(())
    }

    fn call(&mut self, item: &'a Object) -> Checked {
        only(item, &["type", "id", "call_id", "name", "arguments", "status"])?;
        let id = text(item, "call_id")?;
        check_name(text(item, "name")?)?;
        text(item, "arguments")?;
        self.own = true;
        match id.len() <= 64 && self.calls.insert(id) {
            true => Ok(()),
            false => Err(format!("has the call id `{id}` again, or one that is too long")),
        }
    }

    fn output(&mut self, item: &'a Object) -> Checked {
        only(item, &["type", "id", "call_id", "output", "status"])?;
        let id = text(item, "call_id")?;
        self.own = false;
        ensure!(self.calls.contains(id), "No tool call found for function call output with call_id {id}.");
        ensure!(self.outputs.insert(id), "has a second output of the call `{id}`");
        match item.get("output") {
            Some(Value::String(_)) => Ok(()),
            _ => check_content(list(item, "output")?, &["input_text", "input_image", "input_file"]),
        }
    }
}

fn check_content(parts: &[Value], known: &[&str]) -> Checked {
    refuse_if!(parts.is_empty(), "has an empty content");
    each("content", parts, |_, part| {
        let kind = text(part, "type")?;
        ensure!(known.contains(&kind), "has the type `{kind}`. Supported values are: {}", known.join(", "));
        match kind {
            "input_text" | "output_text" => not_blank(text(part, "text")?),
            "input_image" => match part.get("image_url").and_then(Value::as_str) {
                Some(url) => media::address(url, &media::PICTURES),
                None => {
                    text(part, "file_id").map(|_| ()).map_err(|_| "is an image without an address".into())
                }
            },
            "input_file" => media::document(part, &["file_id", "file_url"]),
            "input_audio" => media::sound(object(part.get(kind).unwrap_or(&Value::Null), kind)?),
            _ => Ok(()),
        }
    })
}

fn check_name(name: &str) -> Checked {
    ensure!(is_name(name, 64, "_-"), "has the name `{name}`, which does not match '^[a-zA-Z0-9_-]+$'");
    Ok(())
}

fn check_tools(body: &Object) -> Checked {
    let mut names = HashSet::new();
    if body.contains_key("tools") {
        let tools = list(body, "tools")?;
        each("tools", tools, |_, tool| {
            only(tool, &["type", "name", "description", "parameters", "strict"])?;
            refuse_if!(text(tool, "type")? != "function", "is not of the type `function`");
            let name = text(tool, "name")?;
            check_name(name)?;
            let strict =
                tool.get("strict").and_then(Value::as_bool).ok_or("does not say whether it is `strict`")?;
            let schema = tool.get("parameters").ok_or("has no `parameters`")?;
            let check: fn(&Value) -> Checked = if strict { schemas::strict } else { schemas::arguments };
            check(schema)?;
            if names.insert(name.to_owned()) { Ok(()) } else { Err(format!("has the name `{name}` again")) }
        })?;
        refuse_if!(tools.is_empty(), "`tools` is empty");
    }
    match body.get("tool_choice") {
        None => Ok(()),
        Some(_) if names.is_empty() => Err("`tool_choice` is only allowed when `tools` are specified".into()),
        Some(Value::String(choice)) if ["auto", "none", "required"].contains(&choice.as_str()) => Ok(()),
        Some(choice) => match choice.get("name").and_then(Value::as_str) {
            Some(name) if names.contains(name) => Ok(()),
            _ => Err("`tool_choice` names no tool".into()),
        },
    }
}

fn check_format(format: &Object) -> Checked {
    only(format, &["format", "verbosity"])?;
    let Some(form) = format.get("format") else { return Ok(()) };
    let form = object(form, "format")?;
    match text(form, "type")? {
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            check_name(text(form, "name")?)?;
            let strict = form.get("strict").and_then(Value::as_bool).ok_or("`strict` is not said")?;
            let schema = form.get("schema").unwrap_or(&Value::Null);
            if strict { schemas::strict(schema) } else { schemas::of_object(schema) }
        }
        kind => Err(format!("`text.format` has the unknown type `{kind}`")),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
