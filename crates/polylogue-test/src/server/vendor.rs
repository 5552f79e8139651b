//! Providers whose chat completions deviate from OpenAI's: what they refuse, and the forms in which they reply.

use serde_json::Value;

use super::efforts::check_openai;
use super::quirk::Quirk;
use super::responses::no_parameter_of_others;
use super::rules::{Checked, Object, object, only, role};
use super::schemas;

/// A provider with chat completions that deviate from OpenAI's.
///
/// [`Behavior::vendor`](super::Behavior::vendor) makes the server refuse what the provider refuses or ignores, and reply in
/// its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vendor {
    /// It refuses schemas of replies that are not of an object, long lists of tools and calls, and `top_k`; its models that reason refuse
    /// stop texts, parameters of sampling, the older limit on tokens, and efforts that are not theirs.
    OpenAi,
    /// It refuses unknown fields and a user message after the result of a tool, takes ids of nine characters, and has reasoning
    /// in the content.
    Mistral,
    /// It takes no tool by its name, and refuses unknown fields.
    Cohere,
    /// Its models that reason expect reasoning with every assistant message, R1 with none.
    DeepSeek,
    /// It has reasoning in `reasoning_details`, which must go back. Models of DeepSeek and Moonshot expect it as `reasoning_content`, too,
    /// with every assistant message, and not empty.
    OpenRouter,
    /// It refuses unknown fields, those of reasoning in messages among them.
    Groq,
    /// Its models that reason refuse stop texts.
    Xai,
    /// It takes no tool by its name.
    LmStudio,
    /// It ignores a tool that is named, and puts returned reasoning into templates.
    LlamaCpp,
    /// It puts returned reasoning into templates.
    Sglang,
    /// Its models that reason expect reasoning with every call of a tool, also of one that another model called, and not an empty one.
    Moonshot,
    /// It refuses a temperature of 0, a `top_p` of 1, and formats of replies but its grammars.
    Tgi,
    /// It has reasoning in `reasoning`, and refuses `null` as a content.
    Together,
    /// It has reasoning in `reasoning`, reads it only there when it is returned, and ends replies with calls by `stop`.
    Vllm,
}

/// The fields of Mistral's requests, of its reference.
const MISTRAL: &[&str] = &[
    "model", "messages", "temperature", "top_p", "max_tokens", "stream", "stop", "random_seed",
    "response_format", "tools", "tool_choice", "presence_penalty", "frequency_penalty", "n", "prediction",
    "parallel_tool_calls", "prompt_mode", "reasoning_effort", "safe_prompt", "metadata",
];

/// The fields of Cohere's compatibility API.
const COHERE: &[&str] = &[
    "model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "stream",
    "stream_options", "stop", "seed", "response_format", "tools", "tool_choice", "presence_penalty",
    "frequency_penalty", "reasoning_effort",
];

/// The fields of Groq's requests.
const GROQ: &[&str] = &[
    "model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "stream",
    "stream_options", "stop", "seed", "response_format", "tools", "tool_choice", "parallel_tool_calls",
    "presence_penalty", "frequency_penalty", "reasoning_effort", "reasoning_format", "include_reasoning",
    "service_tier", "user", "n",
];

impl Vendor {
    /// The deviations of its replies.
    pub(super) const fn quirks(self) -> &'static [Quirk] {
        match self {
            Self::Mistral => &[Quirk::ThinkingParts, Quirk::ShortCallId, Quirk::UsageUnasked],
            Self::OpenRouter => &[Quirk::ReasoningDetails],
            Self::Groq | Self::Together => &[Quirk::ReasoningField],
            Self::Vllm => &[Quirk::ReasoningField, Quirk::CallsEndWithStop],
            Self::OpenAi
            | Self::Cohere
            | Self::DeepSeek
            | Self::Xai
            | Self::LmStudio
            | Self::LlamaCpp
            | Self::Sglang
            | Self::Moonshot
            | Self::Tgi => &[],
        }
    }

    /// Whether `model` expects the reasoning of a reply back with the results of its calls.
    pub(super) fn wants_reasoning(self, model: &str) -> bool {
        match self {
            Self::Mistral | Self::OpenRouter | Self::Vllm | Self::LlamaCpp | Self::Sglang => true,
            Self::DeepSeek => !is_r1(model),
            Self::Moonshot => is_kimi(model),
            Self::OpenAi
            | Self::Cohere
            | Self::Groq
            | Self::Xai
            | Self::LmStudio
            | Self::Tgi
            | Self::Together => false,
        }
    }

    /// Checks a request for what this provider asks besides what all ask.
    pub(super) fn check(self, body: &Value) -> Checked {
        let (body, messages) = (object(body, "the body")?, body.get("messages").and_then(Value::as_array));
        let messages = messages.map_or(&[][..], Vec::as_slice);
        match self {
            Self::OpenAi => {
                let schema = body.get("response_format").and_then(|form| form.pointer("/json_schema/schema"));
                schema.map_or(Ok(()), schemas::of_object)?;
                no_long_list(body, messages)?;
                if body.contains_key("top_k") {
                    return Err("Unrecognized request argument supplied: top_k".into());
                }
                let effort = body.get("reasoning_effort").and_then(Value::as_str);
                effort.map_or(Ok(()), |effort| check_openai(model(body), effort))?;
                no_parameter_of_others(model(body), None, body, &["max_tokens"])?;
                no_parameter_of_others(model(body), effort, body, &["temperature", "top_p", "stop"])
            }
            Self::Mistral => {
                only(body, MISTRAL)?;
                each_call_id(messages, is_nine)?;
                no_user_after_tool(messages)
            }
            Self::Cohere => only(body, COHERE).and_then(|()| no_named_tool(body)),
            Self::LmStudio | Self::LlamaCpp => no_named_tool(body),
            Self::Tgi => tgi(body),
            Self::Together => messages.iter().enumerate().try_for_each(|(at, message)| {
                match message.get("content").is_some_and(Value::is_null) {
                    true => Err(format!("messages[{at}]: `content` is null")),
                    false => Ok(()),
                }
            }),
            Self::Groq => {
                only(body, GROQ)?;
                own(messages).try_for_each(|(at, message)| no_reasoning(at, message))
            }
            Self::DeepSeek if is_r1(model(body)) => {
                own(messages).try_for_each(|(at, message)| no_reasoning(at, message))
            }
            Self::DeepSeek => own(messages).try_for_each(|(at, message)| {
                let has = message.get("reasoning_content").is_some_and(Value::is_string);
                has.then_some(()).ok_or_else(|| format!("messages[{at}] has no `reasoning_content`"))
            }),
            Self::Xai if body.contains_key("stop") && model(body).starts_with("grok-4") => {
                Err("Model does not support parameter `stop`.".into())
            }
            // What it ignores without an error.
            Self::Vllm => {
                own(messages).try_for_each(|(at, message)| match message.get("reasoning_content") {
                    Some(_) => Err(format!("messages[{at}]: `reasoning_content` is ignored")),
                    None => Ok(()),
                })
            }
            Self::Moonshot if is_kimi(model(body)) => own(messages).try_for_each(|(at, message)| {
                match message.get("tool_calls").is_none() || has_reasoning_content(message) {
                    true => Ok(()),
                    false => Err(format!(
                        "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
                    )),
                }
            }),
            Self::OpenRouter if wants_reasoning_content(model(body)) => {
                match own(messages).all(|(_, message)| has_reasoning_content(message)) {
                    true => Ok(()),
                    false => {
                        Err("The `reasoning_content` in the thinking mode must be passed back to the API.".into())
                    }
                }
            }
            Self::Xai | Self::OpenRouter | Self::Moonshot | Self::Sglang => Ok(()),
        }
    }
}

/// Checks the numbers of tools and of calls in a message.
fn no_long_list(body: &Object, messages: &[Value]) -> Checked {
    let calls = messages.iter().enumerate();
    let calls = calls.map(|(at, message)| (format!("messages[{at}].tool_calls"), message.get("tool_calls")));
    let lists = calls.chain([("tools".to_owned(), body.get("tools"))]);
    let mut lists = lists.filter_map(|(name, list)| Some((name, list?.as_array()?.len())));
    match lists.find(|(_, length)| *length > 128) {
        Some((name, length)) => Err(format!(
            "Invalid '{name}': array too long. Expected an array with maximum length 128, but got an array with length \
             {length} instead."
        )),
        None => Ok(()),
    }
}

/// What TGI asks, whose formats of replies have their schema as `value`.
fn tgi(body: &Object) -> Checked {
    if body.get("temperature").and_then(Value::as_f64).is_some_and(|temperature| temperature <= 0.0) {
        return Err("Input validation error: `temperature` must be strictly positive".into());
    }
    if body.get("top_p").and_then(Value::as_f64).is_some_and(|top_p| top_p >= 1.0) {
        return Err("Input validation error: `top_p` must be > 0.0 and < 1.0".into());
    }
    match body.get("response_format") {
        Some(format) if format.get("value").is_none() => {
            Err("Failed to deserialize the JSON body into the target type: response_format: missing field `value`".into())
        }
        _ => Ok(()),
    }
}

fn model(body: &Object) -> &str {
    body.get("model").and_then(Value::as_str).unwrap_or_default()
}

fn is_r1(model: &str) -> bool {
    model.contains("r1")
}

/// Whether it is one of Moonshot's models that reason.
fn is_kimi(model: &str) -> bool {
    model.starts_with("kimi-")
}

/// Whether it is a model behind OpenRouter whose provider expects `reasoning_content`.
fn wants_reasoning_content(model: &str) -> bool {
    model.starts_with("deepseek/deepseek-v4") || model.starts_with("moonshotai/kimi-")
}

/// Whether there is any `reasoning_content`.
fn has_reasoning_content(message: &Value) -> bool {
    message.get("reasoning_content").and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

/// The request without parts of reasoning, which only Mistral has in contents.
pub(super) fn without_thinking(body: &Value) -> Value {
    let mut body = body.clone();
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten().filter_map(Value::as_object_mut) {
        let Some(Value::Array(parts)) = message.get_mut("content") else { continue };
        parts.retain(|part| part.get("type").is_none_or(|kind| kind != "thinking"));
        if parts.is_empty() {
            message.shift_remove("content");
        }
    }
    body
}

/// The messages of the assistant, each with its index.
fn own(messages: &[Value]) -> impl Iterator<Item = (usize, &Value)> {
    messages.iter().enumerate().filter(|(_, message)| role(message) == "assistant")
}

fn no_reasoning(at: usize, message: &Value) -> Checked {
    let names = ["reasoning_content", "reasoning", "reasoning_details"];
    match names.into_iter().find(|name| message.get(name).is_some()) {
        Some(name) => Err(format!("messages[{at}]: property '{name}' is unsupported")),
        None => Ok(()),
    }
}

fn no_named_tool(body: &Object) -> Checked {
    match body.get("tool_choice") {
        Some(Value::Object(_)) => Err("Invalid tool_choice type: 'object'".into()),
        _ => Ok(()),
    }
}

fn is_nine(id: &str) -> bool {
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Checks the ids of all calls and results.
fn each_call_id(messages: &[Value], is_legal: fn(&str) -> bool) -> Checked {
    let made = messages.iter().filter_map(|message| message.get("tool_calls")?.as_array()).flatten();
    let made = made.filter_map(|call| call.get("id"));
    let answered = messages.iter().filter_map(|message| message.get("tool_call_id"));
    match made.chain(answered).filter_map(Value::as_str).find(|id| !is_legal(id)) {
        Some(id) => Err(format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.")),
        None => Ok(()),
    }
}

fn no_user_after_tool(messages: &[Value]) -> Checked {
    let mut pairs = messages.iter().zip(messages.iter().skip(1));
    match pairs.any(|(before, next)| role(before) == "tool" && role(next) == "user") {
        true => Err("Unexpected role 'user' after role 'tool'".into()),
        false => Ok(()),
    }
}
