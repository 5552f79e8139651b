//! The fields of a request to Bedrock after its messages: tools, parameters, extra fields.

use std::collections::BTreeSet;

use bytes::BytesMut;
use polylogue_core::{CacheLifetime, Capability, Effort, Entry, Params, Part, Request, ToolChoice};
use serde_json::{Map, Value, json};

use super::decode::Converse;
use super::reasoning;
use crate::accepts::{Accepts, ReasoningField};
use crate::anthropic::tail::reasons_with;
use crate::schema::{anthropic::enforced, arguments};
use crate::wire::asked::AskedOutput;
use crate::wire::fields::Fields;
use crate::wire::protocol::{Style, WriteTail};
use crate::wire::words::legal_name;

/// The fields of a request. Every other extra field is one of the model's own.
const FIELDS: [&str; 10] = [
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "inferenceConfig",
    "outputConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "toolConfig",
];

/// Extra fields that are part of the path.
const ELSEWHERE: [&str; 2] = ["model", "stream"];

/// The field with those of the model.
const OWN: &str = "additionalModelRequestFields";

impl WriteTail for Converse {
    /// Whether replies can have seals, which are of reasoning. Of Nova it is known that it reasons only when it is asked to.
    fn can_seal(params: &Params, style: &Style) -> bool {
        let accepts = &style.accepts;
        let own = own_fields(params, accepts);
        match accepts.reasoning_field {
            Some(ReasoningField::Thinking) => reasons_with(own.get("thinking"), accepts),
            Some(ReasoningField::ReasoningConfig) => {
                let kind = own.get("reasoningConfig").and_then(|config| config.get("type"));
                kind.is_some_and(|kind| kind != "disabled")
            }
            Some(ReasoningField::ReasoningEffort) | None => accepts.thinks != Some(false),
        }
    }

    /// The names of parameters whose values Converse or the model has no form for.
    fn ignored(params: &Params, accepts: &Accepts) -> Vec<&'static str> {
        let no_call = params.tool_choice == Some(ToolChoice::None);
        let takes_an_hour = accepts.cache_min.is_some() && accepts.cache_long;
        let no_hour = params.prompt_cache == Some(CacheLifetime::Hour) && !takes_an_hour;
        let ignored = [("tool_choice", no_call), ("prompt_cache", no_hour)];
        let ignored = ignored.into_iter().filter_map(|(name, is_ignored)| is_ignored.then_some(name));
        ignored.chain(reasoning::ignored(params, accepts)).collect()
    }

    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        match extra.get(OWN) {
            Some(own) if !own.is_object() => Err("`additionalModelRequestFields` is not an object"),
            _ if extra.contains_key("system") => Err("`system` cannot be an extra field"),
            _ => Ok(()),
        }
    }

    /// What the body asks for. Requests have one reply.
    fn asked_output(params: &Params, style: &Style) -> AskedOutput {
        let own = own_fields(params, &style.accepts);
        let given = params.extra.get("inferenceConfig");
        let known = given.is_none().then_some(params.max_tokens).flatten().map(Value::from);
        let limit = known.as_ref().or_else(|| given?.get("maxTokens"));
        let own_limits = OWN_LIMITS.iter().filter_map(|name| own.get(*name));
        let nested = own.get("inferenceConfig");
        let nested = NESTED_LIMITS.iter().filter_map(|name| nested?.get(name));
        AskedOutput::of(limit.into_iter().chain(own_limits).chain(nested), [])
    }

    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style) {
        let (params, accepts) = (request.params, &style.accepts);
        let mut fields = Fields::new(out, &params.extra);
        fields.add("toolConfig", tools(request, style).as_ref());
        fields.add("inferenceConfig", inference(params).as_ref());
        fields.add("outputConfig", output(params, accepts).as_ref());
        let is_of_claude = accepts.reasoning_field == Some(ReasoningField::Thinking);
        let reasoning = match style.forgoes_reasoning() && is_of_claude {
            true => Map::new(),
            false => reasoning::fields(params, accepts),
        };
        let own = with_extra(reasoning, params);
        if !own.is_empty() {
            fields.put(OWN, &own);
        }
        for (name, value) in params.extra.iter().filter(|(name, _)| FIELDS.contains(&name.as_str())) {
            if name != OWN {
                fields.put(name, value);
            }
        }
        fields.end();
    }

    fn sealer(_: &Style) -> Option<&'static str> {
        Some("bedrock")
    }

    fn hides_reasoning(params: &Params, style: &Style) -> bool {
        reasoning::is_hidden(params, &style.accepts)
    }

    fn least_to_reason(params: &Params, accepts: &Accepts) -> Option<u64> {
        reasoning::least_to_reason(params, accepts)
    }

    fn lacks(request: &Request<'_>, style: &Style) -> Option<(Capability, String)> {
        style.accepts.unenforced(request.params)
    }
}

/// Fields by which models limit the reply, apart from Converse's own `maxTokens`.
const OWN_LIMITS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_gen_len"];

/// Those that a model has in an `inferenceConfig` of its own.
const NESTED_LIMITS: [&str; 2] = ["maxTokens", "max_new_tokens"];

/// The fields of the model.
fn own_fields(params: &Params, accepts: &Accepts) -> Map<String, Value> {
    with_extra(reasoning::fields(params, accepts), params)
}

/// `fields` of the model with the extra ones.
fn with_extra(fields: Map<String, Value>, params: &Params) -> Map<String, Value> {
    if params.extra.is_empty() {
        return fields;
    }
    let is_own = |name: &String| !FIELDS.contains(&name.as_str()) && !ELSEWHERE.contains(&name.as_str());
    let further = params.extra.iter().filter(|(name, _)| is_own(name));
    let further = further.map(|(name, value)| (name.clone(), value.clone()));
    let own = params.extra.get(OWN).and_then(Value::as_object).cloned().unwrap_or_default();
    // What the caller gives counts more.
    fields.into_iter().chain(further).chain(own).collect()
}

fn inference(params: &Params) -> Option<Value> {
    let finite = |number: Option<f64>| number.filter(|n| n.is_finite()).map(Value::from);
    // Models refuse texts of white space. The caller cuts the reply at all of them.
    let stops: Vec<&str> =
        params.stop.iter().map(|stop| &**stop).filter(|stop| !stop.trim().is_empty()).collect();
    let known = [
        ("maxTokens", params.max_tokens.map(Value::from)),
        ("temperature", finite(params.temperature)),
        ("topP", finite(params.top_p)),
        ("stopSequences", (!stops.is_empty()).then(|| stops.into())),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let known: Map<String, Value> = known.collect();
    (!known.is_empty()).then_some(Value::Object(known))
}

fn output(params: &Params, accepts: &Accepts) -> Option<Value> {
    let mut output = Map::new();
    if let Some(Ok(schema)) = params.schema.as_ref().map(enforced) {
        // The schema is a text.
        let schema = json!({"jsonSchema": {"name": "reply", "schema": schema.to_string()}});
        output.insert("textFormat".to_owned(), json!({"type": "json_schema", "structure": schema}));
    }
    let asked = params.effort.filter(|effort| *effort != Effort::None);
    if let (Some(asked), Some(efforts)) = (asked, accepts.efforts) {
        output.insert("effort".to_owned(), efforts.nearest(asked.max(Effort::Low)).as_str().into());
    }
    (!output.is_empty()).then_some(Value::Object(output))
}

/// The tools that are offered. A conversation with calls needs some even if none is offered: then those that it called.
fn tools(request: &Request<'_>, style: &Style) -> Option<Value> {
    let mut tools: Vec<Value> = match request.tools {
        [] => called(request.entries),
        offered => offered.iter().map(|tool| spec(&tool.name, &tool.description, &tool.parameters)).collect(),
    };
    if tools.is_empty() {
        return None;
    }
    // The mark of a system text covers the tools before it.
    if style.marks && request.system.is_none_or(|text| text.trim().is_empty()) {
        tools.push(match style.long_marks {
            true => json!({"cachePoint": {"type": "default", "ttl": "1h"}}),
            false => json!({"cachePoint": {"type": "default"}}),
        });
    }
    let choice = match &request.params.tool_choice {
        _ if request.tools.is_empty() => None,
        None | Some(ToolChoice::None) => None,
        Some(ToolChoice::Auto) => Some(json!({"auto": {}})),
        Some(ToolChoice::Any) => Some(json!({"any": {}})),
        Some(ToolChoice::Tool(name)) => Some(json!({"tool": {"name": name}})),
    };
    let choice = choice.map(|choice| ("toolChoice".to_owned(), choice));
    let config: Map<String, Value> =
        std::iter::once(("tools".to_owned(), tools.into())).chain(choice).collect();
    Some(config.into())
}

fn spec(name: &str, description: &str, schema: &Value) -> Value {
    let description = if description.trim().is_empty() { name } else { description };
    json!({"toolSpec": {"name": name, "description": description, "inputSchema": {"json": arguments::merged(schema)}}})
}

/// The tools that `entries` call, as far as that is known.
fn called(entries: &[Entry]) -> Vec<Value> {
    let name = |part: &Part| match part {
        Part::ToolCall(call) => Some(legal_name(&call.tool).into_owned()),
        _ => None,
    };
    let names: BTreeSet<String> = entries.iter().flat_map(Entry::parts).filter_map(name).collect();
    names.iter().map(|name| spec(name, "It is no longer offered.", &json!({}))).collect()
}
