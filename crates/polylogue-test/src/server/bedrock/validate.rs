//! What Amazon's Converse asks of a request.

use std::collections::HashSet;

use serde_json::Value;

use super::super::media;
use super::super::rules::{
    Checked, Marks, Object, each, ensure, is_name, list, number, object, one_of, only, refuse_if, text,
};
use super::super::schemas;
use super::super::seal::bedrock as signature;
use super::own_fields;

/// What a block of content can be.
const BLOCKS: [&str; 7] =
    ["text", "image", "document", "toolUse", "toolResult", "reasoningContent", "cachePoint"];

/// Checks a request to `model`, and that every thought is sent back as it was signed.
///
/// # Errors
/// Names the first place that breaks a rule, and the rule.
pub(in super::super) fn validate(model: &str, request: &Value) -> Result<(), String> {
    let body = object(request, "the body")?;
    only(
        body,
        &[
            "messages",
            "system",
            "inferenceConfig",
            "toolConfig",
            "outputConfig",
            "additionalModelRequestFields",
            "additionalModelResponseFieldPaths",
            "guardrailConfig",
            "performanceConfig",
            "serviceTier",
            "requestMetadata",
        ],
    )?;
    let mut marks = Points { takes_an_hour: model.contains("claude"), ..Points::default() };
    let tools = request.pointer("/toolConfig/tools").and_then(Value::as_array);
    for point in tools.into_iter().flatten().filter_map(Value::as_object) {
        if point.contains_key("cachePoint") {
            marks.read(point)?;
        }
    }
    if body.contains_key("system") {
        let system = list(body, "system")?;
        refuse_if!(system.is_empty(), "`system` is empty: leave it out");
        each("system", system, |_, block| match one_of(block, &["text", "cachePoint"])? {
            "text" => not_blank(text(block, "text")?),
            _ => marks.read(block),
        })?;
    }
    let has_calls = History::of(model, request).check(list(body, "messages")?, &mut marks)?;
    check_tools(body, has_calls)?;
    own_fields::check(model, body)?;
    check_settings(body)
}

fn not_blank(text: &str) -> Checked {
    match text.trim().is_empty() {
        true => Err(
            "The text field in the ContentBlock object is blank. Add text to the text field, and try again."
                .into(),
        ),
        false => Ok(()),
    }
}

/// The cache points so far, in the order in which the model reads them: the tools come before the system text.
#[derive(Default)]
struct Points {
    marks: Marks,
    takes_an_hour: bool,
}

impl Points {
    fn read(&mut self, block: &Object) -> Checked {
        let point = block.get("cachePoint").unwrap_or(&Value::Null);
        only(object(point, "cachePoint")?, &["type", "ttl"])?;
        let ttl = point.get("ttl").and_then(Value::as_str);
        let is_long = ttl == Some("1h");
        refuse_if!(
            ttl.is_some_and(|ttl| !["5m", "1h"].contains(&ttl)),
            "`cachePoint.ttl` is neither 5m nor 1h"
        );
        refuse_if!(is_long && !self.takes_an_hour, "This model doesn't support the ttl field of cachePoint");
        self.marks.add(is_long)
    }
}

/// The messages so far of a request to a model.
struct History<'a> {
    model: &'a str,
    request: &'a Value,
    role: &'a str,
    calls: Vec<&'a str>,
    ids: HashSet<&'a str>,
    has_calls: bool,
}

impl<'a> History<'a> {
    fn of(model: &'a str, request: &'a Value) -> Self {
        Self { model, request, role: "", calls: Vec::new(), ids: HashSet::new(), has_calls: false }
    }

    /// Whether there are calls or results among the messages.
    fn check(mut self, messages: &'a [Value], marks: &mut Points) -> Checked<bool> {
        refuse_if!(messages.is_empty(), "A conversation must have at least one message.");
        each("messages", messages, |at, message| {
            self.read(message, messages.get(..at).unwrap_or_default(), marks)
        })?;
        match (self.role, self.calls.first()) {
            ("assistant", _) => Err("A conversation must end with a user message.".into()),
            (_, Some(id)) => Err(format!("Expected toolResult blocks for the following Ids: {id}")),
            _ => Ok(self.has_calls),
        }
    }

    fn read(&mut self, message: &'a Object, before: &[Value], marks: &mut Points) -> Checked {
        only(message, &["role", "content"])?;
        let role = text(message, "role")?;
        match (self.role, role) {
            ("", "user") | ("user", "assistant") | ("assistant", "user") => {}
            ("", _) => return Err("A conversation must start with a user message.".into()),
            _ => {
                return Err(format!(
                    "is of the role `{role}`: roles must alternate between user and assistant"
                ));
            }
        }
        let blocks = list(message, "content")?;
        refuse_if!(blocks.is_empty(), "has an empty content");
        let awaited = std::mem::take(&mut self.calls);
        let mut results = Vec::new();
        let mut has_words = false;
        each("content", blocks, |_, block| {
            let kind = self.block(role, block, before, marks)?;
            match kind {
                "toolResult" if has_words => {
                    Err("is a result after something else: results come first".into())
                }
                "toolResult" => {
                    results.push(
                        block
                            .get(kind)
                            .and_then(|result| result.get("toolUseId")?.as_str())
                            .unwrap_or_default(),
                    );
                    Ok(())
                }
                "cachePoint" => Ok(()),
                _ => {
                    has_words = true;
                    Ok(())
                }
            }
        })?;
        check_documents(blocks)?;
        let (asked, given): (HashSet<_>, HashSet<_>) = (awaited.iter().collect(), results.iter().collect());
        if asked != given || results.len() != given.len() {
            return Err(
                "The number of toolResult blocks does not match the toolUse blocks of the previous turn."
                    .into(),
            );
        }
        self.role = role;
        Ok(())
    }

    fn block(
        &mut self,
        role: &str,
        block: &'a Object,
        before: &[Value],
        marks: &mut Points,
    ) -> Checked<&'static str> {
        only(block, &BLOCKS)?;
        let kind = one_of(block, &BLOCKS)?;
        let inner = block.get(kind).unwrap_or(&Value::Null);
        let is_own = ["toolUse", "reasoningContent"].contains(&kind);
        if is_own && role != "assistant"
            || !is_own && !["text", "cachePoint"].contains(&kind) && role != "user"
        {
            return Err(format!("is a `{kind}` of the role `{role}`"));
        }
        match kind {
            "text" => not_blank(text(block, "text")?)?,
            "cachePoint" => marks.read(block)?,
            "toolUse" => self.call(object(inner, kind)?)?,
            "toolResult" => {
                self.has_calls = true;
                check_result(object(inner, kind)?)?;
            }
            "reasoningContent" => self.reasoning(object(inner, kind)?, before)?,
            _ => check_media(kind, object(inner, kind)?)?,
        }
        Ok(kind)
    }

    /// Checks that a thought is as it was signed, and, if it is bound, after the same messages.
    fn reasoning(&self, reasoning: &Object, before: &[Value]) -> Checked {
        if one_of(reasoning, &["reasoningText", "redactedContent"])? == "redactedContent" {
            return Ok(());
        }
        let inner = object(reasoning.get("reasoningText").unwrap_or(&Value::Null), "reasoningText")?;
        let own = signature(self.model, self.request, before, text(inner, "text")?);
        match text(inner, "signature")? == own {
            true => Ok(()),
            false => Err("Invalid `signature` in `thinking` block".into()),
        }
    }

    fn call(&mut self, call: &'a Object) -> Checked {
        only(call, &["toolUseId", "name", "input"])?;
        self.has_calls = true;
        let id = text(call, "toolUseId")?;
        check_name(text(call, "name")?)?;
        object(call.get("input").unwrap_or(&Value::Null), "input")?;
        let is_new = is_name(id, 64, "_.:-") && self.ids.insert(id);
        ensure!(is_new, "has the `toolUseId` `{id}`, which is illegal or used again");
        self.calls.push(id);
        Ok(())
    }
}

fn check_result(result: &Object) -> Checked {
    only(result, &["toolUseId", "content", "status"])?;
    text(result, "toolUseId")?;
    let status = result.get("status").map(|status| status.as_str().unwrap_or_default());
    if status.is_some_and(|status| !["success", "error"].contains(&status)) {
        return Err("has a `status` that is neither `success` nor `error`".into());
    }
    let content = list(result, "content")?;
    refuse_if!(content.is_empty(), "has an empty content");
    each("content", content, |_, block| match one_of(block, &["text", "json", "image", "document"])? {
        "text" => not_blank(text(block, "text")?),
        "json" => object(block.get("json").unwrap_or(&Value::Null), "json").map(|_| ()),
        kind => check_media(kind, object(block.get(kind).unwrap_or(&Value::Null), kind)?),
    })
}

fn check_media(kind: &str, media: &Object) -> Checked {
    let format = text(media, "format")?;
    let known: &[&str] = match kind {
        "image" => &["png", "jpeg", "gif", "webp"],
        _ => &["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"],
    };
    ensure!(known.contains(&format), "has the unknown format `{format}`");
    let source = object(media.get("source").unwrap_or(&Value::Null), "source")?;
    media::base64(text(source, "bytes")?)?;
    if kind == "image" {
        return Ok(());
    }
    let name = text(media, "name")?;
    let legal = |c: char| c.is_ascii_alphanumeric() || " -()[]".contains(c);
    match !name.is_empty() && name.chars().all(legal) && !name.contains("  ") {
        true => Ok(()),
        false => Err("The file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets.".into()),
    }
}

fn check_documents(blocks: &[Value]) -> Checked {
    let count = |kind: &str| blocks.iter().filter(|block| block.get(kind).is_some()).count();
    let mut names = HashSet::new();
    let mut documents = blocks.iter().filter_map(|block| block.get("document")?.get("name")?.as_str());
    match documents.all(|name| names.insert(name)) {
        _ if count("document") > 0 && count("text") == 0 => {
            Err("A conversation with documents must have a text in the same message.".into())
        }
        _ if count("document") > 5 => Err("A message has at most 5 documents.".into()),
        _ if count("image") > 20 => Err("A message has at most 20 images.".into()),
        true => Ok(()),
        false => Err("Two documents of a message have the same name.".into()),
    }
}

fn check_name(name: &str) -> Checked {
    ensure!(is_name(name, 64, "_-"), "has the illegal tool name `{name}`");
    Ok(())
}

fn check_tools(body: &Object, has_calls: bool) -> Checked {
    let Some(config) = body.get("toolConfig") else {
        return match has_calls {
            true => {
                Err("The toolConfig field must be defined when using toolUse and toolResult content blocks."
                    .into())
            }
            false => Ok(()),
        };
    };
    let config = object(config, "toolConfig")?;
    only(config, &["tools", "toolChoice"])?;
    let mut names = HashSet::new();
    each("tools", list(config, "tools")?, |_, tool| {
        if one_of(tool, &["toolSpec", "cachePoint"])? == "cachePoint" {
            return Ok(());
        }
        let spec = object(tool.get("toolSpec").unwrap_or(&Value::Null), "toolSpec")?;
        only(spec, &["name", "description", "inputSchema", "strict"])?;
        let name = text(spec, "name")?;
        check_name(name)?;
        if spec.get("description").is_some_and(|text| text.as_str().is_none_or(str::is_empty)) {
            return Err("has an empty description".into());
        }
        let schema = spec.get("inputSchema").and_then(|schema| schema.get("json"));
        schemas::of_object(schema.unwrap_or(&Value::Null))?;
        if names.insert(name.to_owned()) { Ok(()) } else { Err(format!("has the name `{name}` again")) }
    })?;
    refuse_if!(names.is_empty(), "`toolConfig.tools` has no tools");
    let Some(choice) = config.get("toolChoice") else { return Ok(()) };
    let choice = object(choice, "toolChoice")?;
    match one_of(choice, &["auto", "any", "tool"])? {
        "tool" => {
            let name = choice.get("tool").and_then(|tool| tool.get("name")?.as_str()).unwrap_or_default();
            if names.contains(name) {
                Ok(())
            } else {
                Err(format!("`toolChoice` names `{name}`, which is not a tool"))
            }
        }
        _ => Ok(()),
    }
}

fn check_settings(body: &Object) -> Checked {
    if let Some(config) = body.get("inferenceConfig") {
        let config = object(config, "inferenceConfig")?;
        only(config, &["maxTokens", "temperature", "topP", "stopSequences"])?;
        number(config, "maxTokens", 1.0, f64::from(u32::MAX))?;
        number(config, "temperature", 0.0, 1.0)?;
        number(config, "topP", 0.0, 1.0)?;
        let stops = config.get("stopSequences").and_then(Value::as_array);
        if stops.is_some_and(|stops| stops.iter().any(|stop| stop.as_str().is_none_or(str::is_empty))) {
            return Err("`stopSequences` has an empty text".into());
        }
    }
    let Some(output) = body.get("outputConfig") else { return Ok(()) };
    let Some(format) = output.get("textFormat") else { return Ok(()) };
    if format.get("type").and_then(Value::as_str) != Some("json_schema") {
        return Err("`outputConfig.textFormat` has an unknown type".into());
    }
    let schema = format.pointer("/structure/jsonSchema/schema").and_then(Value::as_str);
    match schema.map(serde_json::from_str::<Value>) {
        Some(Ok(Value::Object(_))) => Ok(()),
        _ => Err("the schema is not a text with a JSON object".into()),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
