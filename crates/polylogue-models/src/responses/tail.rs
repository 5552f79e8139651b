//! The fields of a request after its input: tools, parameters, extra fields.

use bytes::{BufMut, BytesMut};
use polylogue_core::{CacheLifetime, Capability, Params, Request, Thinking, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use super::decode::Responses;
use crate::accepts::Accepts;
use crate::deviations::Deviations;
use crate::openai::{is_strict, prefix_name, unenforced};
use crate::schema::arguments::with_items;
use crate::wire::asked::AskedOutput;
use crate::wire::fields::Fields;
use crate::wire::json;
use crate::wire::protocol::{Style, WriteTail};

/// The smallest limit on the tokens of a reply that the API accepts.
const MIN_TOKENS: u32 = 16;

/// Extra fields by which the server decides what the model sees or when it replies, and why they cannot be sent.
const REFUSED: [(&str, &str); 5] = [
    (
        "instructions",
        "`instructions` cannot be an extra field: the system message of the agent is sent there",
    ),
    (
        "previous_response_id",
        "`previous_response_id` cannot be an extra field: the whole conversation is sent",
    ),
    ("conversation", "`conversation` cannot be an extra field: the whole conversation is sent"),
    ("truncation", "`truncation` cannot be an extra field: what the agent sees is what is sent"),
    ("background", "`background` cannot be an extra field: replies are awaited"),
];

impl WriteTail for Responses {
    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        REFUSED.iter().find(|(name, _)| extra.contains_key(*name)).map_or(Ok(()), |(_, why)| Err(why))
    }

    /// What the body asks for. Requests have one reply.
    fn asked_output(params: &Params, _: &Style) -> AskedOutput {
        let extra = params.extra.get(LIMIT);
        let own = limit(params).filter(|_| extra.is_none()).map(Value::from);
        AskedOutput::of(own.iter().chain(extra), [])
    }

    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style) {
        let params = request.params;
        let mut fields = Fields::new(out, &params.extra);
        if !request.tools.is_empty() {
            fields.raw("tools", |out| write_tools(out, request.tools));
            fields.add("tool_choice", params.tool_choice.as_ref().map(tool_choice).as_ref());
            fields.add("parallel_tool_calls", params.parallel_tool_calls.as_ref());
        }
        let finite = |number: Option<f64>| number.filter(|n| n.is_finite());
        fields.add("temperature", finite(params.temperature).as_ref());
        fields.add("top_p", finite(params.top_p).as_ref());
        fields.add(LIMIT, limit(params).as_ref());
        for (name, own) in [("reasoning", reasoning(params, &style.accepts)), ("text", format(params))] {
            let value = with_extra(own, params.extra.get(name));
            if let Some(value) = value {
                fields.put(name, &value);
            }
        }
        fields.add("store", Some(&false));
        if style.accepts.thinks != Some(false) {
            fields.raw("include", |out| out.extend_from_slice(br#"["reasoning.encrypted_content"]"#));
        }
        fields.add("prompt_cache_key", style.names_prefix.then(|| prefix_name(request)).as_ref());
        let retention = params.prompt_cache.filter(|lifetime| *lifetime == CacheLifetime::Day);
        fields.add("prompt_cache_retention", retention.as_ref());
        fields.add("stream", style.stream.then_some(&true));
        if style.stream && style.stream_usage {
            // Padding against observers of encrypted traffic: several times the text.
            fields.raw("stream_options", |out| out.extend_from_slice(br#"{"include_obfuscation":false}"#));
        }
        let elsewhere = ["model", "input", "reasoning", "text"];
        for (name, value) in params.extra.iter().filter(|(name, _)| !elsewhere.contains(&&***name)) {
            fields.put(name, value);
        }
        fields.end();
    }

    fn sealer(_: &Style) -> Option<&'static str> {
        Some("responses")
    }

    fn can_seal(params: &Params, style: &Style) -> bool {
        style.accepts.thinks != Some(false) && !ends_reasoning(params, &style.accepts)
    }

    fn hides_reasoning(params: &Params, style: &Style) -> bool {
        style.accepts.thinks == Some(true) && !ends_reasoning(params, &style.accepts)
    }

    /// It has no field for them.
    fn sends_stop(_: &Accepts, _: &Deviations) -> bool {
        false
    }

    fn lacks(request: &Request<'_>, _: &Style) -> Option<(Capability, String)> {
        unenforced(request.params)
    }
}

/// The field that limits a reply.
const LIMIT: &str = "max_output_tokens";

fn limit(params: &Params) -> Option<u32> {
    params.max_tokens.map(|tokens| tokens.max(MIN_TOKENS))
}

/// The value of a field with what an extra field of the same name adds to it or replaces.
fn with_extra(own: Map<String, Value>, extra: Option<&Value>) -> Option<Value> {
    let mut all = own;
    match extra {
        Some(Value::Object(more)) => all.extend(more.clone()),
        Some(other) => return Some(other.clone()),
        None => {}
    }
    (!all.is_empty()).then_some(Value::Object(all))
}

fn reasoning(params: &Params, accepts: &Accepts) -> Map<String, Value> {
    let effort = accepts.effort(params).map(|effort| ("effort", effort.as_str()));
    let summary = (params.thinking == Some(Thinking::Summary)).then_some(("summary", "auto"));
    let fields = effort.into_iter().chain(summary);
    fields.map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

/// Whether the body asks for no reasoning.
pub(super) fn ends_reasoning(params: &Params, accepts: &Accepts) -> bool {
    let sent = with_extra(reasoning(params, accepts), params.extra.get("reasoning"));
    sent.is_some_and(|fields| fields.get("effort").is_some_and(|effort| effort == "none"))
}

/// The form of the reply.
fn format(params: &Params) -> Map<String, Value> {
    let form = match (&params.schema, params.json) {
        (Some(schema), _) => {
            json!({"type": "json_schema", "name": "reply", "schema": schema, "strict": is_strict(schema)})
        }
        (None, true) => json!({"type": "json_object"}),
        (None, false) => return Map::new(),
    };
    Map::from_iter([("format".to_owned(), form)])
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Any => "required".into(),
        ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
    }
}

/// Writes the list of tools. Tools are strict unless they say otherwise, so each says it.
fn write_tools(out: &mut BytesMut, tools: &[ToolSpec]) {
    out.put_u8(b'[');
    for tool in tools {
        json::separate(out);
        json::quoted(out, r#"{"type":"function","name":"#, &tool.name, "");
        json::quoted(out, r#","description":"#, &tool.description, r#","parameters":"#);
        let parameters = with_items(&tool.parameters);
        json::value(out, &parameters);
        out.extend_from_slice(br#","strict":"#);
        json::value(out, &is_strict(&parameters));
        out.put_u8(b'}');
    }
    out.put_u8(b']');
}
