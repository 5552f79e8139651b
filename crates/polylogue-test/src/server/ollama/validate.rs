//! What is asked of a request to Ollama. More than Ollama asks: what it would ignore without a word is refused.

use serde_json::{Map, Value, json};

use super::super::media;
use super::super::parameters::check_tools;
use super::super::rules::{ensure, role};
use super::super::validate::{History, check_history};

/// The fields of a request.
const FIELDS: [&str; 12] = [
    "format", "keep_alive", "logprobs", "messages", "model", "options", "shift", "stream", "think", "tools",
    "top_logprobs", "truncate",
];

/// The options that are numbers, texts are in `stop` alone. From `Options` and `Runner` of Ollama's `api/types.go`.
const NUMBERS: [&str; 19] = [
    "num_keep", "seed", "num_predict", "top_k", "top_p", "min_p", "typical_p", "repeat_last_n",
    "temperature", "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau",
    "mirostat_eta", "num_ctx", "num_batch", "num_gpu", "num_thread",
];

/// The options that are `true` or `false`.
const SWITCHES: [&str; 4] = ["penalize_newline", "use_mmap", "use_mlock", "numa"];

/// Checks a request.
///
/// # Errors
/// Names the first place that breaks a rule, and the rule.
pub(in super::super) fn validate(body: &Value, history: History) -> Result<(), String> {
    if history == History::Any {
        return Ok(());
    }
    let body = body.as_object().ok_or("the body is not a JSON object")?;
    if let Some(unknown) = body.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("`{unknown}` is not a field of Ollama's"));
    }
    if body.get("model").and_then(Value::as_str).unwrap_or_default().is_empty() {
        return Err("`model` is missing".into());
    }
    check_fields(body)?;
    check_tools(body)?;
    check_options(body.get("options"))?;
    let messages = body.get("messages").and_then(Value::as_array).ok_or("`messages` is not a list")?;
    let messages: Vec<Value> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| as_openai(message).map_err(|flaw| format!("messages[{index}] {flaw}")))
        .collect::<Result<_, _>>()?;
    check_history(&messages, history)
}

fn check_fields(body: &Map<String, Value>) -> Result<(), String> {
    for name in ["stream", "truncate", "shift", "logprobs"] {
        if body.get(name).is_some_and(|value| !value.is_boolean()) {
            return Err(format!("`{name}` is neither `true` nor `false`"));
        }
    }
    match body.get("format") {
        None | Some(Value::Object(_)) => {}
        Some(form) if form == "json" => {}
        Some(_) => return Err("`format` is neither `json` nor a schema".into()),
    }
    let levels = ["low", "medium", "high", "max"];
    let is_level = |value: &Value| value.as_str().is_some_and(|level| levels.contains(&level));
    if body.get("think").is_some_and(|think| !think.is_boolean() && !is_level(think)) {
        return Err("`think` is neither a switch nor a level".into());
    }
    match body.get("keep_alive") {
        None | Some(Value::String(_) | Value::Number(_)) => Ok(()),
        Some(_) => Err("`keep_alive` is not a duration".into()),
    }
}

fn check_options(options: Option<&Value>) -> Result<(), String> {
    let Some(options) = options else { return Ok(()) };
    for (name, value) in options.as_object().ok_or("`options` is not an object")? {
        let name = name.as_str();
        let fits = match name {
            "stop" => value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string)),
            _ if NUMBERS.contains(&name) => value.is_number(),
            _ if SWITCHES.contains(&name) => value.is_boolean(),
            _ => return Err(format!("`{name}` is not an option of Ollama's")),
        };
        ensure!(fits, "the option `{name}` has the wrong type");
    }
    Ok(())
}

/// The message as OpenAI has it, so that histories are judged alike.
fn as_openai(message: &Value) -> Result<Value, String> {
    let fields = message.as_object().ok_or("is not an object")?;
    let text = fields.get("content").and_then(Value::as_str).ok_or("has a content that is not text")?;
    let images = fields.get("images").map_or(Ok(0), check_images)?;
    let mut like = Map::from_iter([("role".to_owned(), json!(role(message)))]);
    let shown = if text.is_empty() && images > 0 { "(pictures)" } else { text };
    if !shown.is_empty() {
        like.insert("content".into(), json!(shown));
    }
    if let Some(calls) = fields.get("tool_calls") {
        let calls = calls.as_array().ok_or("has `tool_calls` that are no list")?;
        like.insert("tool_calls".into(), calls.iter().map(call).collect());
    }
    if role(message) == "tool" {
        if fields.get("tool_name").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err("has no `tool_name`".into());
        }
        like.insert("tool_call_id".into(), fields.get("tool_call_id").cloned().unwrap_or_default());
    }
    Ok(like.into())
}

fn call(call: &Value) -> Value {
    let function = |name: &str| call.pointer(&format!("/function/{name}")).cloned().unwrap_or_default();
    // Arguments are an object; what is none is left to be refused.
    let args = function("arguments");
    let args = if args.is_object() { json!(args.to_string()) } else { Value::Null };
    json!({"id": call.get("id"), "type": "function", "function": {"name": function("name"), "arguments": args}})
}

/// How many pictures there are, all of them in base64.
fn check_images(images: &Value) -> Result<usize, String> {
    let images = images.as_array().ok_or("has `images` that are no list")?;
    let is_base64 = |text: &str| media::base64(text).is_ok();
    match images.iter().all(|image| image.as_str().is_some_and(is_base64)) {
        true => Ok(images.len()),
        false => Err("has an image that is not base64".into()),
    }
}
