//! Operations as tools.

use std::collections::BTreeMap;
use std::time::Duration;

use polylogue_core::{AnyTool, ConfigError, Error, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use polylogue_http::{Client, Env, NetworkAccess};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::auth::{self, Credential, Keys};
use super::document::{Document, Entry, legal};
use super::schema::simple;
use crate::command::{GivenArguments, Piece};
use crate::http::HttpMethod;
use crate::http::request::{Body, Lists, Request, header_name};
use crate::http::send::Sender;

/// Maximum number of parameters of an operation; a model cannot fill more.
const MOST_PARAMETERS: usize = 128;

/// An operation of a document, as data with everything needed to call it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The name of the tool.
    pub name: String,
    /// The description of the tool.
    pub description: String,
    /// The HTTP method.
    pub method: HttpMethod,
    /// The URL, with arguments in braces.
    pub url: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// The places of the arguments, by their names.
    pub places: BTreeMap<String, ParameterPlace>,
    /// The authentication, by the names of security schemes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<String, Credential>,
}

/// The place of an argument in the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterPlace {
    /// The part of the request.
    #[serde(rename = "in")]
    pub into: ArgumentLocation,
    /// The name there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// The part of a request that contains an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentLocation {
    /// The path.
    Path,
    /// The query; a list is one parameter per value.
    Query,
    /// The query; a list has commas.
    QueryCommas,
    /// The query; an object has its keys in brackets.
    QueryBrackets,
    /// A header.
    Header,
    /// The JSON body.
    Body,
}

impl Operation {
    pub(super) fn of(
        document: &Document,
        entry: &Entry<'_>,
        name: String,
        base: &str,
    ) -> Result<Self, String> {
        let text = |key: &str| entry.says.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let mut made = Self {
            name,
            description: about(text("summary"), text("description"), entry),
            method: entry.verb,
            url: String::new(),
            parameters: json!({}),
            places: BTreeMap::new(),
            credentials: document.credentials(entry.says),
        };
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for parameter in parameters(document, entry)? {
            let Some((argument, schema)) = made.parameter(document, parameter)? else { continue };
            if parameter.get("required") == Some(&json!(true))
                || made.goes_into(&argument, ArgumentLocation::Path)
            {
                required.push(argument.clone());
            }
            properties.insert(argument, schema);
        }
        if let Some((schema, is_required)) = body(document, entry)? {
            let argument = if properties.contains_key("body") { "request_body" } else { "body" }.to_owned();
            required.extend(is_required.then(|| argument.clone()));
            made.places.insert(
                argument.clone(),
                ParameterPlace { into: ArgumentLocation::Body, name: String::new() },
            );
            properties.insert(argument, schema);
        }
        made.parameters = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        made.url = format!("{base}{}", made.path(entry.path));
        made.request().map(|_| made)
    }

    fn goes_into(&self, argument: &str, into: ArgumentLocation) -> bool {
        self.places.get(argument).is_some_and(|place| place.into == into)
    }

    /// Adds a parameter. Returns the name of its argument and its schema.
    fn parameter(
        &mut self,
        document: &Document,
        parameter: &Value,
    ) -> Result<Option<(String, Value)>, String> {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, is_required) = (text("name"), parameter.get("required") == Some(&json!(true)));
        let explode = parameter.get("explode").and_then(Value::as_bool);
        let into = match (text("in"), text("style")) {
            ("path", _) => ArgumentLocation::Path,
            ("query", "deepObject") => ArgumentLocation::QueryBrackets,
            ("query", "" | "form") if explode != Some(false) => ArgumentLocation::Query,
            ("query", _) => ArgumentLocation::QueryCommas,
            // These are set elsewhere, or by the HTTP client.
            ("header", _)
                if ["accept", "content-type", "authorization"]
                    .contains(&name.to_ascii_lowercase().as_str()) =>
            {
                return Ok(None);
            }
            ("header", _) if header_name(name).is_ok() => ArgumentLocation::Header,
            (other, _) if is_required => return Err(format!("its parameter `{name}` goes into `{other}`")),
            _ => return Ok(None),
        };
        let argument = self.argument(name);
        let schema = parameter
            .get("schema")
            .or_else(|| parameter.get("content")?.as_object()?.values().next()?.get("schema"));
        let mut schema = simple(document, schema.unwrap_or(&Value::Null));
        if let (Some(object), false) = (schema.as_object_mut(), text("description").is_empty()) {
            object.insert("description".into(), json!(text("description").trim()));
        }
        self.places.insert(argument.clone(), ParameterPlace { into, name: name.to_owned() });
        Ok(Some((argument, schema)))
    }

    /// The path `declared`, with the names of arguments instead of those of their parameters. In one pass: an argument can have the
    /// name of another parameter.
    fn path(&self, declared: &str) -> String {
        let (mut path, mut rest) = (String::new(), declared);
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, from)| Some((before, from.split_once('}')?)))
        {
            let is_it = |place: &ParameterPlace| place.into == ArgumentLocation::Path && place.name == name;
            let argument = self.places.iter().find(|(_, place)| is_it(place));
            let argument = argument.map_or(name, |(argument, _)| argument.as_str());
            path.push_str(&format!("{before}{{{argument}}}"));
            rest = after;
        }
        path + rest
    }

    /// A legal name for the argument of the parameter `name`: different ones can become the same.
    fn argument(&self, name: &str) -> String {
        let name = legal(name, 60);
        if !self.places.contains_key(&name) {
            return name;
        }
        let mut numbered = (2..).map(|number| format!("{name}_{number}"));
        numbered.find(|numbered| !self.places.contains_key(numbered)).unwrap_or_default()
    }

    fn request(&self) -> Result<Request, String> {
        let mut request = Request::to(self.method, &self.url)?;
        for (argument, place) in &self.places {
            let value = vec![Piece::Argument(argument.clone())];
            let mut query = |lists| request.query.push((place.name.clone(), value.clone(), lists));
            match place.into {
                ArgumentLocation::Path => {}
                ArgumentLocation::Query => query(Lists::Each),
                ArgumentLocation::QueryCommas => query(Lists::Commas),
                ArgumentLocation::QueryBrackets => query(Lists::Brackets),
                ArgumentLocation::Header => request.headers.push((header_name(&place.name)?, value)),
                ArgumentLocation::Body => request.body = Some(Body::Argument(argument.clone())),
            }
        }
        match request.arguments().into_iter().find(|name| !self.places.contains_key(*name)) {
            Some(name) => Err(format!("its path has `{{{name}}}`, which is not a parameter")),
            None => Ok(request),
        }
    }

    /// Returns the host that it reaches, with its port.
    pub fn host(&self) -> Option<String> {
        self.request().ok().map(|request| request.host())
    }
}

fn about(summary: &str, description: &str, entry: &Entry<'_>) -> String {
    const MOST: usize = 1000;
    let text = match (summary, description) {
        ("", "") => format!("{} {}", entry.verb.word().to_ascii_uppercase(), entry.path),
        (one, "") | ("", one) => one.to_owned(),
        (summary, description) if description.starts_with(summary) => description.to_owned(),
        (summary, description) => format!("{}. {description}", summary.trim_end_matches('.')),
    };
    text.chars().take(MOST).collect()
}

/// The parameters of an operation; its own take precedence over those of its path.
fn parameters<'a>(document: &'a Document, entry: &Entry<'a>) -> Result<Vec<&'a Value>, String> {
    let of =
        |says: &'a Map<String, Value>| says.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let mut all: Vec<&Value> = Vec::new();
    for parameter in of(entry.says).chain(of(entry.around)) {
        let parameter = document.resolved(parameter);
        let is_same = |known: &&Value| ["name", "in"].iter().all(|key| known.get(key) == parameter.get(key));
        if !parameter.is_object() || all.iter().any(is_same) {
            continue;
        }
        if all.len() == MOST_PARAMETERS {
            return Err(format!("it has more than {MOST_PARAMETERS} parameters"));
        }
        all.push(parameter);
    }
    Ok(all)
}

/// The schema of the body, and whether it is required.
fn body(document: &Document, entry: &Entry<'_>) -> Result<Option<(Value, bool)>, String> {
    let Some(body) = entry.says.get("requestBody").map(|body| document.resolved(body)) else {
        return Ok(None);
    };
    let is_required = body.get("required") == Some(&json!(true));
    let contents = body.get("content").and_then(Value::as_object);
    let is_json = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        kind == "application/json" || kind.ends_with("+json") || kind == "*/*" || kind == "application/*"
    };
    let found = contents.into_iter().flatten().find(|(kind, _)| is_json(kind));
    match found {
        Some((_, content)) => {
            Ok(Some((simple(document, content.get("schema").unwrap_or(&Value::Null)), is_required)))
        }
        None if is_required => Err("what it is sent is not JSON".into()),
        None => Ok(None),
    }
}

/// Creates the tool that calls `operation`. `client` creates the HTTP client for the address that the operation reaches. `keys`
/// names the environment variables with keys.
///
/// # Errors
/// When a variable is not set, or the operation cannot be called.
pub fn tool(
    operation: Operation,
    client: impl FnOnce(NetworkAccess) -> Client,
    keys: &Keys,
    env: &Env,
    time: Option<Duration>,
) -> Result<AnyTool, Error> {
    let wrong = |why| ConfigError::Declaration { kind: "operation", name: operation.name.clone(), why };
    let request = operation.request().map_err(wrong)?;
    let mut sender = Sender::new(client(NetworkAccess::only([request.place().map_err(wrong)?])));
    auth::add(&mut sender, &operation.credentials, keys, env).map_err(wrong)?;
    sender.time = time.unwrap_or(sender.time);
    let spec =
        ToolSpec::new(operation.name.clone(), operation.description.clone(), operation.parameters.clone());
    let spec = if operation.method.only_reads() { spec.repeatable() } else { spec };
    Ok(AnyTool::new(OperationTool { spec, operation, request, sender }))
}

struct OperationTool {
    spec: ToolSpec,
    operation: Operation,
    request: Request,
    sender: Sender,
}

impl Tool for OperationTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let args = args.as_object().ok_or("the arguments must be a JSON object")?;
        let places = &self.operation.places;
        if let Some(name) = args.keys().find(|name| !places.contains_key(*name)) {
            let known = places.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(ToolError(format!("there is no argument `{name}`; there is {known}")));
        }
        // Models write `null` for what they leave out.
        let given: GivenArguments<'_> = args
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.as_str(), value))
            .collect();
        let required =
            self.operation.parameters.get("required").and_then(Value::as_array).into_iter().flatten();
        if let Some(name) = required.filter_map(Value::as_str).find(|name| !given.contains_key(name)) {
            return Err(ToolError(format!("`{name}` is missing")));
        }
        self.sender.send(&self.request, &given).await
    }
}
