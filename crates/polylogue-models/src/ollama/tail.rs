//! The fields of a request to Ollama after its messages: tools, format, options, extra fields.

use bytes::BytesMut;
use polylogue_core::{Effort, Params, Request};
use serde_json::{Map, Value, json};

use super::decode::Ollama;
use crate::wire::asked::AskedOutput;
use crate::wire::fields::{Fields, write_tools};
use crate::wire::protocol::{Style, WriteTail};

/// The fields of Ollama's `ChatRequest`. Every other extra field is one of its options.
const FIELDS: [&str; 9] =
    ["format", "keep_alive", "logprobs", "shift", "stream", "think", "tools", "top_logprobs", "truncate"];

/// Extra fields that are written elsewhere.
const ELSEWHERE: [&str; 4] = ["messages", "model", "options", "response_format"];

impl WriteTail for Ollama {
    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        match extra.get("options") {
            Some(options) if !options.is_object() => Err("`options` is not an object"),
            _ => Ok(()),
        }
    }

    /// What the body asks for. Requests have one reply.
    fn asked_output(params: &Params, _: &Style) -> AskedOutput {
        AskedOutput::of(options(params).get("num_predict"), [])
    }

    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style) {
        let params = request.params;
        let mut fields = Fields::new(out, &params.extra);
        if !request.tools.is_empty() {
            fields.raw("tools", |out| write_tools(out, request.tools));
        }
        fields.add("format", format(params).as_ref());
        // Ollama streams by default.
        fields.add("stream", Some(&style.stream));
        // Otherwise Ollama silently drops what does not fit into `num_ctx`, and the model answers the rest. Versions before 0.12.6
        // always do.
        fields.add("truncate", Some(&false));
        fields.add("shift", Some(&false));
        fields.add("think", params.effort.map(think).as_ref());
        let options = options(params);
        if !options.is_empty() {
            fields.put("options", &options);
        }
        for (name, value) in params.extra.iter().filter(|(name, _)| FIELDS.contains(&name.as_str())) {
            fields.put(name, value);
        }
        fields.end();
    }

    /// Templates of models that think expect their thoughts back with the results of tools, and others ignore them.
    fn sealer(_: &Style) -> Option<&'static str> {
        Some("ollama")
    }
}

/// Whether and how much a model reasons. Models without levels reason at any of them.
fn think(effort: Effort) -> Value {
    match effort {
        Effort::None => false.into(),
        Effort::Minimal | Effort::Low => "low".into(),
        Effort::Medium => "medium".into(),
        Effort::High | Effort::XHigh | Effort::Max => "high".into(),
    }
}

/// The format of the reply: `json`, or a schema. The names of other servers are accepted, too.
fn format(params: &Params) -> Option<Value> {
    let Some(wanted) = params.extra.get("response_format") else {
        return params.schema.clone().or_else(|| params.json.then(|| json!("json")));
    };
    match wanted.get("type").and_then(Value::as_str) {
        Some("json_object") => Some(json!("json")),
        Some("json_schema") => wanted.pointer("/json_schema/schema").cloned(),
        _ => None,
    }
}

fn options(params: &Params) -> Map<String, Value> {
    let finite = |number: Option<f64>| number.filter(|n| n.is_finite()).map(Value::from);
    let stops: Vec<&str> = params.stop.iter().map(String::as_str).filter(|stop| !stop.is_empty()).collect();
    let known = [
        ("temperature", finite(params.temperature)),
        ("top_p", finite(params.top_p)),
        ("top_k", params.top_k.map(Value::from)),
        ("seed", params.seed.map(Value::from)),
        ("num_predict", params.max_tokens.map(Value::from)),
        ("stop", (!stops.is_empty()).then(|| stops.into())),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let further = params.extra.iter().filter(|(name, _)| !is_field(name));
    let further = further.map(|(name, value)| (option_name(name).to_owned(), value.clone()));
    let own = params.extra.get("options").and_then(Value::as_object).cloned().unwrap_or_default();
    known.chain(further).chain(own).collect()
}

fn is_field(name: &str) -> bool {
    FIELDS.contains(&name) || ELSEWHERE.contains(&name)
}

/// Ollama's name of an option of other servers.
fn option_name(name: &str) -> &str {
    match name {
        "max_tokens" | "max_completion_tokens" => "num_predict",
        name => name,
    }
}
