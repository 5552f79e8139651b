//! The fields of a request after its messages: tools, parameters, extra fields.

use bytes::BytesMut;
use polylogue_core::{Capability, Effort, Params, Request, ToolChoice};
use serde_json::{Value, json};

use super::decode::ChatCompletions;
use super::strict::{is_strict, unenforced};
use crate::accepts::Accepts;
use crate::deviations::{Deviations, SchemaForm, SendReasoning};
use crate::wire::asked::AskedOutput;
use crate::wire::fields::{Fields, write_tools};
use crate::wire::json;
use crate::wire::protocol::{Style, WriteTail};

/// The fields that limit a reply: servers know one of them, or both.
const LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// The most stop texts that OpenAI accepts. A reply is cut before any other by the caller.
const MAX_STOPS: usize = 4;

/// The temperature instead of 0, where that is refused: low enough to take the likeliest tokens, and high enough to divide by.
const LEAST_TEMPERATURE: f64 = 0.01;

impl WriteTail for ChatCompletions {
    fn asked_output(params: &Params, style: &Style) -> AskedOutput {
        let extra = &params.extra;
        let own = params.max_tokens.filter(|_| !extra.contains_key(style.max_tokens)).map(Value::from);
        AskedOutput::of(own.iter().chain(LIMITS.iter().filter_map(|name| extra.get(*name))), extra.get("n"))
    }

    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style) {
        let params = request.params;
        let mut fields = Fields::new(out, &params.extra);
        if !request.tools.is_empty() {
            fields.raw("tools", |out| write_tools(out, request.tools));
            fields.add(
                "tool_choice",
                params.tool_choice.as_ref().map(|choice| tool_choice(choice, style)).as_ref(),
            );
            fields.add("parallel_tool_calls", params.parallel_tool_calls.as_ref());
        }
        write_params(&mut fields, params, style);
        fields.add("prompt_cache_key", style.names_prefix.then(|| prefix_name(request)).as_ref());
        fields.add("prompt_cache_retention", params.prompt_cache.as_ref());
        fields.add("stream", style.stream.then_some(&true));
        if style.stream && style.stream_usage {
            fields.raw("stream_options", |out| out.extend_from_slice(br#"{"include_usage":true}"#));
        }
        // `model` is already written with the extra field's value; `messages` is refused.
        for (name, value) in params.extra.iter().filter(|(name, _)| !matches!(&***name, "model" | "messages"))
        {
            fields.put(name, value);
        }
        fields.end();
    }

    fn sealer(style: &Style) -> Option<&'static str> {
        (style.reasoning != SendReasoning::Never).then_some("chat")
    }

    /// An extra field can ask for reasoning that the effort ends.
    fn can_seal(params: &Params, style: &Style) -> bool {
        let is_asked = ["reasoning", "reasoning_effort"].iter().any(|name| params.extra.contains_key(*name));
        Self::sealer(style).is_some() && (is_asked || style.accepts.can_reason(params))
    }

    fn sends_stop(accepts: &Accepts, deviations: &Deviations) -> bool {
        deviations.stop_while_reasoning || accepts.thinks != Some(true)
    }

    fn lacks(request: &Request<'_>, style: &Style) -> Option<(Capability, String)> {
        unenforced(request.params).filter(|_| style.deviations.schemas_of_objects)
    }
}

/// A name of the prefix that all requests of an agent share: the same in each of its conversations, whatever is said in them. OpenAI
/// sends requests with the same name and the same beginning to the same cache.
pub(crate) fn prefix_name(request: &Request<'_>) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in
        [&request.origin.chat.to_string(), request.origin.who.as_str(), request.system.unwrap_or_default()]
    {
        // So that no two lists of texts are the same bytes.
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}

fn write_params(fields: &mut Fields<'_>, params: &Params, style: &Style) {
    let finite = |number: Option<f64>| number.filter(|n| n.is_finite());
    let above_zero =
        |of: f64| if style.deviations.temperature_above_zero { of.max(LEAST_TEMPERATURE) } else { of };
    fields.add("temperature", finite(params.temperature).map(above_zero).as_ref());
    let top_p = finite(params.top_p).filter(|top_p| !style.deviations.top_p_below_one || *top_p < 1.0);
    fields.add("top_p", top_p.as_ref());
    fields.add("top_k", params.top_k.as_ref());
    fields.add(style.deviations.seed, params.seed.as_ref());
    fields.add(style.max_tokens, params.max_tokens.as_ref());
    fields.add("reasoning_effort", style.accepts.effort(params).map(Effort::as_str).as_ref());
    let has_stop = ChatCompletions::sends_stop(&style.accepts, &style.deviations);
    let stops: Vec<&String> = params.stop.iter().filter(|stop| !stop.is_empty()).take(MAX_STOPS).collect();
    fields.add("stop", Some(&stops).filter(|stops| has_stop && !stops.is_empty()));
    let is_value = style.deviations.schema == SchemaForm::Value;
    if let Some(schema) = params.schema.as_ref().filter(|_| is_value) {
        fields.add("response_format", Some(&json!({"type": "json", "value": schema})));
    } else if is_value && params.json {
        fields.add("response_format", Some(&json!({"type": "json", "value": {"type": "object"}})));
    } else if let Some(schema) = &params.schema {
        fields.raw("response_format", |out| write_schema(out, schema));
    } else if params.json {
        fields.raw("response_format", |out| out.extend_from_slice(br#"{"type":"json_object"}"#));
    }
}

fn tool_choice(choice: &ToolChoice, style: &Style) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Any => "required".into(),
        ToolChoice::Tool(_) if !style.deviations.named_tool_choice => "required".into(),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn write_schema(out: &mut BytesMut, schema: &Value) {
    out.extend_from_slice(br#"{"type":"json_schema","json_schema":{"name":"reply","schema":"#);
    json::value(out, schema);
    out.extend_from_slice(br#","strict":"#);
    json::value(out, &is_strict(schema));
    out.extend_from_slice(b"}}");
}
