//! The fields of a request to Gemini after its contents: tools, parameters, extra fields.

use bytes::{BufMut, BytesMut};
use polylogue_core::{Capability, Effort, Params, Request, Thinking, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use super::decode::Gemini;
use super::message::name;
use crate::schema;
use crate::wire::asked::AskedOutput;
use crate::wire::fields::Fields;
use crate::wire::json;
use crate::wire::protocol::{Style, WriteTail};

/// The fields of a request. Every other extra field is one of `generationConfig`.
const FIELDS: [&str; 10] = [
    "cachedContent", "cached_content", "continuationToken", "labels", "safetySettings", "safety_settings",
    "serviceTier", "store", "toolConfig", "tools",
];

/// Extra fields that are written elsewhere.
const ELSEWHERE: [&str; 4] = ["contents", "model", "stream", CONFIG];

const CONFIG: &str = "generationConfig";

/// The most stop sequences that are accepted. A reply is cut before any other by the caller.
const MAX_STOPS: usize = 5;

impl WriteTail for Gemini {
    /// Whether replies can have seals: the signatures of a model that thinks, which only a budget of nothing ends.
    fn can_seal(params: &Params, style: &Style) -> bool {
        let config = generation_config(params, style);
        let thinking = config.get("thinkingConfig").or_else(|| config.get("thinking_config"));
        let budget = thinking
            .and_then(|config| config.get("thinkingBudget").or_else(|| config.get("thinking_budget")));
        style.accepts.thinks != Some(false) && budget.is_none_or(|budget| *budget != 0)
    }

    /// Whether the model thinks, and shows no summary unless it is asked for one.
    fn hides_reasoning(params: &Params, style: &Style) -> bool {
        style.accepts.thinks == Some(true) && Self::can_seal(params, style)
    }

    /// Why a reply cannot have the form that `request` asks for, if it cannot.
    fn lacks(request: &Request<'_>, style: &Style) -> Option<(Capability, String)> {
        let Params { schema, json, .. } = request.params;
        let form = match schema {
            Some(_) => Capability::Schema,
            None if *json => Capability::Json,
            None => return None,
        };
        if !style.accepts.thinking_level && !request.tools.is_empty() {
            let why = "models before Gemini 3 take no form of the reply together with tools";
            return Some((form, why.to_owned()));
        }
        let unfit = schema::gemini::enforced(schema.as_ref()?).err()?;
        Some((form, format!("Gemini cannot enforce the schema of the reply: {unfit}")))
    }

    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        match extra.get(CONFIG) {
            Some(config) if !config.is_object() => Err("`generationConfig` is not an object"),
            _ => Ok(()),
        }
    }

    /// What the body asks for. The API also takes names in snake case.
    fn asked_output(params: &Params, _: &Style) -> AskedOutput {
        let config = &with_extra([limit(params)], params);
        let values = |names: [&'static str; 2]| names.into_iter().filter_map(move |name| config.get(name));
        AskedOutput::of(
            values(["maxOutputTokens", "max_output_tokens"]),
            values(["candidateCount", "candidate_count"]),
        )
    }

    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style) {
        let params = request.params;
        let mut fields = Fields::new(out, &params.extra);
        if !request.tools.is_empty() {
            fields.raw("tools", |out| write_tools(out, request.tools));
            fields.add("toolConfig", params.tool_choice.as_ref().map(tool_config).as_ref());
        }
        let config = generation_config(params, style);
        if !config.is_empty() {
            fields.put(CONFIG, &config);
        }
        for (name, value) in params.extra.iter().filter(|(name, _)| FIELDS.contains(&name.as_str())) {
            fields.put(name, value);
        }
        fields.end();
    }

    /// Signatures of one service are not those of the other.
    fn sealer(style: &Style) -> Option<&'static str> {
        Some(if style.vertex { "vertex" } else { "gemini" })
    }
}

fn write_tools(out: &mut BytesMut, tools: &[ToolSpec]) {
    out.extend_from_slice(br#"[{"functionDeclarations":["#);
    for tool in tools {
        json::separate(out);
        json::quoted(out, r#"{"name":"#, &name(&tool.name), "");
        json::quoted(out, r#","description":"#, &tool.description, "");
        if let Some(schema) = arguments(&tool.parameters) {
            out.extend_from_slice(br#","parametersJsonSchema":"#);
            json::value(out, &schema);
        }
        out.put_u8(b'}');
    }
    out.extend_from_slice(b"]}]");
}

/// The schema of arguments; none if there are no arguments. One that Gemini refuses is described instead.
fn arguments(schema: &Value) -> Option<Value> {
    let mut schema = schema::arguments::merged(schema).into_owned();
    let fields = schema.as_object_mut()?;
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    if fields.get("properties").is_some_and(is_empty) {
        fields.shift_remove("properties");
        let says_nothing = ["type", "required", "additionalProperties", "$schema"];
        if fields.keys().all(|keyword| says_nothing.contains(&keyword.as_str())) {
            return None;
        }
    }
    Some(schema::gemini::enforced(&schema).unwrap_or_else(|_| {
        let description = format!("Matches this JSON Schema: {schema}");
        json!({"type": "object", "description": description})
    }))
}

fn tool_config(choice: &ToolChoice) -> Value {
    let config = match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Any => json!({"mode": "ANY"}),
        ToolChoice::Tool(tool) => json!({"mode": "ANY", "allowedFunctionNames": [name(tool)]}),
    };
    json!({"functionCallingConfig": config})
}

/// The parameters, then extra fields, then those of an extra `generationConfig`.
fn generation_config(params: &Params, style: &Style) -> Map<String, Value> {
    let finite = |number: Option<f64>| number.filter(|n| n.is_finite()).map(Value::from);
    let stops = params.stop.iter().filter(|stop| !stop.is_empty()).take(MAX_STOPS);
    let stops: Vec<&str> = stops.map(String::as_str).collect();
    let schema = params.schema.as_ref().and_then(|schema| schema::gemini::enforced(schema).ok());
    let is_json = params.json || schema.is_some();
    let known = [
        ("temperature", finite(params.temperature)),
        ("topP", finite(params.top_p)),
        ("topK", params.top_k.map(Value::from)),
        ("seed", params.seed.map(seed)),
        limit(params),
        ("stopSequences", (!stops.is_empty()).then(|| stops.into())),
        ("responseMimeType", is_json.then(|| "application/json".into())),
        ("responseJsonSchema", schema),
        ("thinkingConfig", thinking(params, style)),
    ];
    with_extra(known, params)
}

/// `known` fields of `generationConfig` with the extra ones.
fn with_extra(
    known: impl IntoIterator<Item = (&'static str, Option<Value>)>,
    params: &Params,
) -> Map<String, Value> {
    let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let is_further = |name: &str| !FIELDS.contains(&name) && !ELSEWHERE.contains(&name);
    let further = params.extra.iter().filter(|(name, _)| is_further(name));
    let further = further.map(|(name, value)| (option_name(name).to_owned(), value.clone()));
    let own = params.extra.get(CONFIG).and_then(Value::as_object).cloned().unwrap_or_default();
    known.chain(further).chain(own).collect()
}

/// The parameter that limits a reply, as a field of `generationConfig`.
fn limit(params: &Params) -> (&'static str, Option<Value>) {
    ("maxOutputTokens", params.max_tokens.map(Value::from))
}

/// The same number for the same seed, within the 31 bits that are accepted.
fn seed(seed: i64) -> Value {
    seed.rem_euclid(1 << 31).into()
}

/// Gemini's name of an option of other servers. Names in snake case are accepted.
fn option_name(name: &str) -> &str {
    match name {
        "max_tokens" | "max_completion_tokens" => "maxOutputTokens",
        "n" => "candidateCount",
        name => name,
    }
}

/// How much the model thinks, and whether it shows that. Models of one generation take a number of tokens, later ones a
/// level; both together are refused.
fn thinking(params: &Params, style: &Style) -> Option<Value> {
    let mut config = Map::new();
    match style.accepts.effort(params) {
        Some(effort) if !style.accepts.thinking_level => {
            config.insert("thinkingBudget".into(), budget(effort, style.accepts.no_thinking).into())
        }
        Some(effort) => config.insert("thinkingLevel".into(), level(effort).into()),
        None => None,
    };
    let shows = params.thinking.map(|thinking| thinking == Thinking::Summary);
    config.extend(shows.map(|shows| ("includeThoughts".to_owned(), shows.into())));
    (!config.is_empty()).then(|| config.into())
}

/// Tokens, as Google's compatible API takes the words. Some models cannot stop thinking: they think for 128 tokens at least.
const fn budget(effort: Effort, no_thinking: bool) -> u32 {
    match effort {
        Effort::None if no_thinking => 0,
        Effort::None => 128,
        Effort::Minimal | Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High | Effort::XHigh | Effort::Max => 24_576,
    }
}

/// These models cannot stop thinking altogether.
const fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High => "HIGH",
        Effort::XHigh | Effort::Max => "XHIGH",
    }
}
