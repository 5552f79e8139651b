//! What Google's servers ask of a request for content.

use serde_json::Value;

use super::super::efforts::check_gemini;
use super::super::media;
use super::super::rules::{
    Checked, Object, each, ensure, is_name, list, not_blank, number, object, one_of, only, refuse_if, text,
};
use super::super::schemas;
use super::super::seal::{seal, token};

/// The signature that Google documents for calls of other models.
const STAND_IN: &str = "skip_thought_signature_validator";

/// What a part can be.
const DATA: [&str; 6] =
    ["text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"];

/// Checks a request to `model`.
///
/// # Errors
/// Names the first place that breaks a rule, and the rule.
pub(in super::super) fn validate(model: &str, request: &Value) -> Result<(), String> {
    let body = object(request, "the body")?;
    only(
        body,
        &[
            "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings",
            "cachedContent", "continuationToken", "labels",
        ],
    )?;
    if let Some(system) = body.get("systemInstruction") {
        let parts = list(object(system, "systemInstruction")?, "parts")?;
        each("systemInstruction.parts", parts, |_, part| not_blank(text(part, "text")?))?;
    }
    let contents = list(body, "contents")?;
    check_contents(model, contents)?;
    check_tools(body)?;
    check_continuation(request)?;
    match body.get("generationConfig") {
        Some(config) => check_config(model, object(config, "generationConfig")?, body.contains_key("tools")),
        None => Ok(()),
    }
}

/// Checks that a request for the rest of a reply is the one that the reply began with.
fn check_continuation(request: &Value) -> Checked {
    match request.get("continuationToken") {
        Some(given) if given.as_str() != Some(&token(request)) => {
            Err("`continuationToken` is not of this request".into())
        }
        _ => Ok(()),
    }
}

/// Checks that no call and no response has an id, which Vertex AI does not know.
///
/// # Errors
/// Names the field, as Google does.
pub(in super::super) fn without_ids(body: &Value) -> Result<(), String> {
    for (at, content) in list(object(body, "the body")?, "contents")?.iter().enumerate() {
        let parts = content.get("parts").and_then(Value::as_array).into_iter().flatten();
        for (nth, part) in parts.enumerate() {
            let has_id = |kind: &&&str| part.get(**kind).is_some_and(|data| data.get("id").is_some());
            if let Some(kind) = ["functionCall", "functionResponse"].iter().find(has_id) {
                return Err(format!(
                    "Unknown name \"id\" at 'contents[{at}].parts[{nth}].{kind}': Cannot find field."
                ));
            }
        }
    }
    Ok(())
}

/// The generation of a model, such as 2 of `gemini-2.5-pro`. Unknown ones count as new.
fn generation(model: &str) -> u32 {
    let number = model.strip_prefix("gemini-").and_then(|rest| rest.split(['.', '-']).next());
    number.and_then(|number| number.parse().ok()).unwrap_or(3)
}

/// What is known of the contents before the one that is read.
#[derive(Default)]
struct History<'a> {
    role: &'a str,
    /// Ids and names of the calls of the content before.
    calls: Vec<(Option<&'a str>, &'a str)>,
}

fn check_contents(model: &str, contents: &[Value]) -> Checked {
    refuse_if!(contents.is_empty(), "`contents` is not specified");
    let mut history = History::default();
    each("contents", contents, |_, content| history.read(content))?;
    ensure!(history.calls.is_empty(), "the last calls have no responses");
    refuse_if!(history.role == "model", "the last content is the model's");
    if generation(model) >= 3 { check_signatures(contents) } else { Ok(()) }
}

impl<'a> History<'a> {
    fn read(&mut self, content: &'a Object) -> Checked {
        only(content, &["role", "parts"])?;
        let role = text(content, "role")?;
        refuse_if!(!["user", "model"].contains(&role), "has the role `{role}`; use user or model");
        refuse_if!(self.role.is_empty() && role != "user", "is not the user's, although it is the first");
        let parts = list(content, "parts")?;
        refuse_if!(parts.is_empty(), "has no parts");
        each("parts", parts, |_, part| check_part(role, part))?;
        self.pair(role, parts)?;
        self.role = role;
        Ok(())
    }

    /// Checks that responses follow their calls, all of them, in their order.
    fn pair(&mut self, role: &str, parts: &'a [Value]) -> Checked {
        let named = |kind: &'static str| {
            parts.iter().filter_map(move |part| {
                let call = part.get(kind)?;
                Some((call.get("id").and_then(Value::as_str), call.get("name")?.as_str()?))
            })
        };
        let responses: Vec<_> = named("functionResponse").collect();
        let calls = std::mem::replace(&mut self.calls, named("functionCall").collect());
        if responses.len() != calls.len() {
            return Err(
                "breaks the rule that the number of function response parts is equal to the number of \
                        function call parts of the function call turn"
                    .into(),
            );
        }
        for ((call_id, call), (id, name)) in calls.iter().zip(&responses) {
            if call != name || call_id.is_some() && call_id != id {
                return Err(format!("responds to `{name}` where `{call}` was called"));
            }
        }
        if !self.calls.is_empty() && self.role == "model" && role == "model" {
            return Err("breaks the rule that a function call turn comes immediately after a user turn or \
                        after a function response turn"
                .into());
        }
        Ok(())
    }
}

fn check_part(role: &str, part: &Object) -> Checked {
    let mut known = DATA.to_vec();
    known.extend(["thought", "thoughtSignature"]);
    only(part, &known)?;
    let kind = one_of(part, &DATA)?;
    let of_model = ["functionCall", "executableCode"].contains(&kind);
    let of_user = kind == "functionResponse";
    if of_model && role != "model" || of_user && role != "user" {
        return Err(format!("is a `{kind}` of the role `{role}`"));
    }
    let signature =
        part.get("thoughtSignature").map(|value| value.as_str().ok_or("has a signature that is not text"));
    let signature = signature.transpose()?;
    match kind {
        "text" => {
            let text = text(part, "text")?;
            if signature.is_none() {
                not_blank(text)?;
            }
            is_own(signature, text)
        }
        "functionCall" => {
            let call = object(part.get(kind).unwrap_or(&Value::Null), kind)?;
            only(call, &["id", "name", "args"])?;
            check_name(text(call, "name")?)?;
            let args = call.get("args").unwrap_or(&Value::Null);
            object(args, "args")?;
            is_own(signature, &format!("{}{args}", text(call, "name")?))
        }
        "functionResponse" => {
            let response = object(part.get(kind).unwrap_or(&Value::Null), kind)?;
            only(response, &["id", "name", "response", "parts"])?;
            check_name(text(response, "name")?)?;
            object(response.get("response").unwrap_or(&Value::Null), "response").map(|_| ())
        }
        "inlineData" => {
            let data = object(part.get(kind).unwrap_or(&Value::Null), kind)?;
            check_kind(text(data, "mimeType")?)?;
            media::base64(text(data, "data")?)
        }
        "fileData" => {
            let data = object(part.get(kind).unwrap_or(&Value::Null), kind)?;
            check_kind(text(data, "mimeType")?)?;
            let place = text(data, "fileUri")?;
            match place.starts_with("https://") || place.starts_with("gs://") {
                true => Ok(()),
                false => Err(format!("has the address `{place}`, which cannot be fetched")),
            }
        }
        _ => Ok(()),
    }
}

/// Refuses types of media that Gemini does not read.
/// <https://ai.google.dev/gemini-api/docs/files>
fn check_kind(kind: &str) -> Checked {
    let known = match kind.split_once('/') {
        Some(("image", kind)) => ["png", "jpeg", "webp", "heic", "heif"].contains(&kind),
        Some(("audio", kind)) => {
            ["wav", "x-wav", "mp3", "mpeg", "aiff", "aac", "ogg", "flac"].contains(&kind)
        }
        Some(("text", kind)) => ["plain", "csv", "html"].contains(&kind),
        Some(("video", _)) => true,
        _ => kind == "application/pdf",
    };
    if known { Ok(()) } else { Err(format!("Unsupported MIME type: {kind}")) }
}

/// Whether a signature is this server's, or the documented stand-in.
fn is_own(signature: Option<&str>, content: &str) -> Checked {
    match signature {
        Some(signature) if signature != STAND_IN && signature != seal("gemini", content) => {
            Err("Thought signature is not valid".into())
        }
        _ => Ok(()),
    }
}

/// Checks that the first call of each step of the current turn is signed.
fn check_signatures(contents: &[Value]) -> Checked {
    let parts = |content: &Value| content.get("parts").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_turn = |content: &Value| {
        content.get("role").and_then(Value::as_str) == Some("user")
            && parts(content).iter().any(|part| part.get("functionResponse").is_none())
    };
    let begin = contents.iter().rposition(is_turn).unwrap_or_default();
    for (index, content) in contents.iter().enumerate().skip(begin) {
        let parts = parts(content);
        let Some(first) = parts.iter().find(|part| part.get("functionCall").is_some()) else { continue };
        if first.get("thoughtSignature").is_none() {
            let name = first.pointer("/functionCall/name").and_then(Value::as_str).unwrap_or_default();
            return Err(format!(
                "function call `{name}` in the {index}. content block is missing a `thought_signature`"
            ));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Checked {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    ensure!(begins && is_name(name, 64, "_.:-"), "has the invalid function name `{name}`");
    Ok(())
}

fn check_tools(body: &Object) -> Checked {
    let mut names = Vec::new();
    if body.contains_key("tools") {
        each("tools", list(body, "tools")?, |_, tool| {
            only(tool, &["functionDeclarations"])?;
            each("functionDeclarations", list(tool, "functionDeclarations")?, |_, declared| {
                let name = check_declaration(declared)?;
                refuse_if!(names.contains(&name), "has the name `{name}` again");
                names.push(name);
                Ok(())
            })
        })?;
        if names.is_empty() || names.len() > 512 {
            return Err(format!("`tools` has {} function declarations", names.len()));
        }
    }
    let Some(config) = body.get("toolConfig") else { return Ok(()) };
    let Some(config) = config.get("functionCallingConfig") else {
        return Err("`toolConfig` has no `functionCallingConfig`".into());
    };
    let mode = text(object(config, "functionCallingConfig")?, "mode")?;
    refuse_if!(!["AUTO", "ANY", "NONE", "VALIDATED"].contains(&mode), "`mode` is `{mode}`");
    let allowed = config.get("allowedFunctionNames").and_then(Value::as_array);
    if allowed.is_some() && !["ANY", "VALIDATED"].contains(&mode) {
        return Err("`allowedFunctionNames` is only allowed with the mode ANY or VALIDATED".into());
    }
    match allowed.into_iter().flatten().filter_map(Value::as_str).find(|name| !names.contains(name)) {
        Some(name) => Err(format!("`allowedFunctionNames` has `{name}`, which is not declared")),
        None => Ok(()),
    }
}

fn check_declaration(declared: &Object) -> Checked<&str> {
    only(declared, &["name", "description", "parameters", "parametersJsonSchema", "behavior"])?;
    let name = text(declared, "name")?;
    check_name(name)?;
    match (declared.get("parameters"), declared.get("parametersJsonSchema")) {
        (Some(_), Some(_)) => return Err("has `parameters` and `parametersJsonSchema`".into()),
        (Some(schema), None) => check_schema(schema)?,
        (None, Some(schema)) => check_schema(schema).and_then(|()| schemas::of_object(schema))?,
        (None, None) => {}
    }
    Ok(name)
}

/// Keywords of JSON Schema that are accepted.
const KEYWORDS: [&str; 24] = [
    "$id", "$defs", "definitions", "$ref", "$anchor", "type", "format", "title", "description", "enum",
    "items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties",
    "additionalProperties", "required", "propertyOrdering", "nullable", "default",
];

fn check_schema(schema: &Value) -> Checked {
    let fields = match schema {
        Value::Bool(_) => return Ok(()),
        schema => object(schema, "a schema")?,
    };
    only(fields, &KEYWORDS).map_err(|flaw| format!("has a schema that {flaw}"))?;
    if fields.contains_key("$ref")
        && fields.keys().any(|key| !["$ref", "$defs", "definitions"].contains(&key.as_str()))
    {
        return Err("has a schema with something next to `$ref`".into());
    }
    let listable = |value: &Value| value.is_string() || value.is_number();
    if let Some(values) = fields.get("enum").and_then(Value::as_array)
        && !values.iter().all(listable)
    {
        return Err("has an `enum` of something other than texts and numbers".into());
    }
    schemas::inner(fields).chain(fields.get("additionalProperties")).try_for_each(check_schema)
}

fn check_config(model: &str, config: &Object, has_tools: bool) -> Checked {
    only(
        config,
        &[
            "temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "seed",
            "presencePenalty", "frequencyPenalty", "responseMimeType", "responseSchema",
            "responseJsonSchema", "thinkingConfig",
        ],
    )
    .map_err(|flaw| format!("`generationConfig` {flaw}"))?;
    number(config, "temperature", 0.0, 2.0)?;
    number(config, "topP", 0.0, 1.0)?;
    number(config, "topK", 1.0, f64::from(u32::MAX))?;
    number(config, "maxOutputTokens", 1.0, 65_536.0)?;
    number(config, "seed", f64::from(i32::MIN), f64::from(i32::MAX))?;
    if let Some(stops) = config.get("stopSequences").and_then(Value::as_array)
        && (stops.len() > 5 || stops.iter().any(|stop| stop.as_str().is_none_or(str::is_empty)))
    {
        return Err("`stopSequences` has more than 5 texts, or an empty one".into());
    }
    check_form(model, config, has_tools)?;
    match config.get("thinkingConfig") {
        Some(thinking) => check_thinking(model, object(thinking, "thinkingConfig")?),
        None => Ok(()),
    }
}

fn check_form(model: &str, config: &Object, has_tools: bool) -> Checked {
    let is_json = config.get("responseMimeType").and_then(Value::as_str) == Some("application/json");
    if is_json && has_tools && generation(model) < 3 {
        return Err("Function calling with a response mime type: 'application/json' is unsupported".into());
    }
    let Some(schema) = config.get("responseJsonSchema") else { return Ok(()) };
    ensure!(is_json, "`responseJsonSchema` needs the response mime type application/json");
    check_schema(schema)
}

fn check_thinking(model: &str, thinking: &Object) -> Checked {
    only(thinking, &["includeThoughts", "thinkingLevel", "thinkingBudget"])?;
    let is_new = generation(model) >= 3;
    match (thinking.get("thinkingLevel"), thinking.get("thinkingBudget")) {
        (Some(_), Some(_)) => Err("You can only set one of thinking budget and thinking level".into()),
        (Some(_), None) if !is_new => Err("Thinking level is not supported for this model".into()),
        (None, Some(_)) if is_new => Err("Thinking budget is not supported for this model".into()),
        (Some(level), None) => check_gemini(model, level.as_str().unwrap_or_default()),
        (None, Some(budget)) => match budget.as_i64() {
            Some(0) if model.starts_with("gemini-2.5-pro") => {
                Err("Budget 0 is invalid. This model only works in thinking mode.".into())
            }
            Some(-1..=65_536) => Ok(()),
            _ => Err("Thinking budget is out of range".into()),
        },
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
