//! The fields of a request after its messages: tools, parameters, extra fields.

use bytes::BytesMut;
use polylogue_core::{Effort, Params, Request, ToolChoice};
use serde_json::{Map, Value, json};

use crate::wire::fields::{Fields, write_tools};
use crate::wire::json;
use crate::wire::protocol::Style;

/// Writes everything after the messages, the closing brace included.
pub(super) fn write_tail(out: &mut BytesMut, request: &Request<'_>, style: &Style) {
    let params = request.params;
    let mut fields = Fields::new(out, &params.extra);
    if !request.tools.is_empty() {
        fields.raw("tools", |out| write_tools(out, request.tools));
        fields.add("tool_choice", params.tool_choice.as_ref().map(tool_choice).as_ref());
        fields.add("parallel_tool_calls", params.parallel_tool_calls.as_ref());
    }
    write_params(&mut fields, params, style);
    fields.add("stream", style.stream.then_some(&true));
    if style.stream && style.stream_usage {
        fields.raw("stream_options", |out| out.extend_from_slice(br#"{"include_usage":true}"#));
    }
    // `model` is already written with the extra field's value; `messages` is refused.
    for (name, value) in params.extra.iter().filter(|(name, _)| !matches!(&***name, "model" | "messages")) {
        fields.put(name, value);
    }
    fields.end();
}

fn write_params(fields: &mut Fields<'_>, params: &Params, style: &Style) {
    let finite = |number: Option<f64>| number.filter(|n| n.is_finite());
    fields.add("temperature", finite(params.temperature).as_ref());
    fields.add("top_p", finite(params.top_p).as_ref());
    fields.add("top_k", params.top_k.as_ref());
    fields.add("seed", params.seed.as_ref());
    fields.add(style.max_tokens, params.max_tokens.as_ref());
    fields.add("reasoning_effort", params.effort.map(Effort::as_str).as_ref());
    fields.add("stop", Some(&params.stop).filter(|stop| !stop.is_empty()));
    if let Some(schema) = &params.schema {
        fields.raw("response_format", |out| write_schema(out, schema));
    } else if params.json {
        fields.raw("response_format", |out| out.extend_from_slice(br#"{"type":"json_object"}"#));
    }
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Any => "required".into(),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn write_schema(out: &mut BytesMut, schema: &Value) {
    out.extend_from_slice(br#"{"type":"json_schema","json_schema":{"name":"reply","schema":"#);
    json::value(out, schema);
    out.extend_from_slice(br#","strict":"#);
    json::value(out, &is_strict(schema, MAX_DEPTH));
    out.extend_from_slice(b"}}");
}

/// Maximum depth of schemas that are checked; deeper ones are sent without `strict`.
const MAX_DEPTH: usize = 32;

/// Whether `schema` is one that OpenAI accepts as strict: every object closed and all its properties required.
fn is_strict(schema: &Value, depth: usize) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    match schema {
        Value::Object(fields) => {
            let open = fields.get("type").is_some_and(names_object) || fields.contains_key("properties");
            (!open || is_closed(fields))
                && fields.iter().all(|(name, value)| field_is_strict(name, value, deeper))
        }
        Value::Array(items) => items.iter().all(|item| is_strict(item, deeper)),
        _ => true,
    }
}

fn field_is_strict(name: &str, value: &Value, depth: usize) -> bool {
    match name {
        "allOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentRequired" | "dependentSchemas"
        | "patternProperties" => false,
        // Names of properties and constant values are not keywords.
        "properties" | "$defs" | "definitions" => {
            value.as_object().is_some_and(|members| members.values().all(|member| is_strict(member, depth)))
        }
        "enum" | "const" | "default" | "examples" => true,
        _ => is_strict(value, depth),
    }
}

fn names_object(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

fn is_closed(fields: &Map<String, Value>) -> bool {
    let required: Vec<&str> = fields
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let all_required = fields
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| properties.keys().all(|name| required.contains(&name.as_str())));
    all_required && fields.get("additionalProperties") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_closed_schemas_with_all_properties_required_are_strict() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
                            "required": ["a"], "additionalProperties": false});
        let mut optional = closed.clone();
        optional["required"] = json!([]);
        let mut open = closed.clone();
        open["additionalProperties"] = json!(true);
        let nested = json!({"type": "object", "properties": {"a": optional.clone()},
                            "required": ["a"], "additionalProperties": false});
        let list = json!({"type": "array", "items": closed.clone()});
        let named_like_a_keyword = json!({"type": "object", "properties": {"not": {"type": "string"}},
                            "required": ["not"], "additionalProperties": false});
        for (schema, strict) in [
            (closed, true),
            (optional, false),
            (open, false),
            (nested, false),
            (list, true),
            (named_like_a_keyword, true),
            (json!({"type": "object"}), false),
            (json!({"oneOf": [{"type": "string"}]}), false),
        ] {
            assert_eq!(is_strict(&schema, MAX_DEPTH), strict, "{schema}");
        }
    }

    #[test]
    fn a_schema_of_any_depth_is_looked_through_within_bounds() {
        let deep = (0..500).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
        assert!(!is_strict(&deep, MAX_DEPTH));
    }
}
