//! The description of the routes, OpenAPI 3.1.

use polylogue_wire::problem::Problem;
use serde_json::{Map, Value, json};

use crate::problem::ErrorForm;
use crate::replies;
use crate::route::{Access, Route};
use crate::schema::of_reply;

/// The document that describes `routes`.
pub(crate) fn document(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes.iter().filter(|route| route.is_documented) {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.as_str().to_ascii_lowercase(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Polylogue", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
            "schemas": {
                "Problem": of_reply::<Problem>(),
                "OpenAiError": replies::openai_error(),
                "JsonRpcError": replies::json_rpc_error(),
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let of_path =
        names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let of_query =
        route.query.iter().map(|name| json!({"name": name, "in": "query", "schema": of_query(name)}));
    let mut operation = json!({
        "summary": route.about,
        "parameters": of_path.chain(of_query).collect::<Vec<_>>(),
        "responses": {
            "2XX": {"description": "It was done", "content": content(route)},
            "default": {"description": "It was not done", "content": error_content(route.form)},
        },
    });
    let Some(fields) = operation.as_object_mut() else { return operation };
    if let Some(schema) = route.body {
        let content = json!({"application/json": {"schema": schema()}});
        fields.insert("requestBody".into(), json!({"required": true, "content": content}));
    }
    if let Access::Scope(scope) = route.access {
        fields.insert("security".into(), json!([{"bearer": []}, {"key": []}]));
        fields.insert("x-polylogue-scope".into(), scope.word().into());
    }
    operation
}

/// The schema of a parameter of the query.
fn of_query(name: &str) -> Value {
    match name {
        "limit" => json!({"type": "integer", "minimum": 1}),
        "from" | "call" | "since_ms" => json!({"type": "integer", "minimum": 0}),
        _ => json!({"type": "string"}),
    }
}

/// What a request is answered with.
fn content(route: &Route) -> Value {
    let mut content = Map::new();
    if let Some(schema) = replies::schema(route.method.as_str(), route.path) {
        content.insert("application/json".into(), json!({"schema": schema}));
    }
    if let Some(media) = other_media(route.path) {
        content.insert(media.into(), json!({"schema": {"type": "string"}}));
    }
    if content.is_empty() {
        content.insert("application/json".into(), json!({"schema": {}}));
    }
    content.into()
}

/// What a request that fails is answered with.
fn error_content(form: ErrorForm) -> Value {
    match form {
        ErrorForm::Problem => {
            json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}})
        }
        ErrorForm::OpenAi => {
            json!({"application/json": {"schema": {"$ref": "#/components/schemas/OpenAiError"}}})
        }
        ErrorForm::JsonRpc => {
            json!({"application/json": {"schema": {"$ref": "#/components/schemas/JsonRpcError"}}})
        }
    }
}

/// Replies that are not JSON: their media type.
fn other_media(path: &str) -> Option<&'static str> {
    match path {
        "/metrics" => Some("application/openmetrics-text"),
        "/api/v1/conversations/{id}/export" => Some("application/jsonl"),
        "/api/v1/conversations/{id}/files/content" => Some("application/octet-stream"),
        "/api/v1/feed"
        | "/api/v1/conversations/{id}/events"
        | "/v1/chat/completions"
        | "/mcp"
        | "/mcp/{team}" => Some("text/event-stream"),
        _ => None,
    }
}
