//! The description of the routes, OpenAPI 3.1.

use serde_json::{Map, Value, json};

use crate::route::{Access, Route};

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
            "schemas": {"Problem": problem()},
        },
    })
}

fn operation(route: &Route) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let text = json!({"type": "string"});
    let of_path = names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": text}));
    let of_query = route.query.iter().map(|name| json!({"name": name, "in": "query", "schema": text}));
    let problem = json!({"$ref": "#/components/schemas/Problem"});
    let mut operation = json!({
        "summary": route.about,
        "parameters": of_path.chain(of_query).collect::<Vec<_>>(),
        "responses": {
            "2XX": {"description": "It was done"},
            "default": {
                "description": "It was not done",
                "content": {"application/problem+json": {"schema": problem}},
            },
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

/// The schema of errors.
fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "hint", "request_id"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "hint": {"type": ["string", "null"]},
            "request_id": {"type": "string"},
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"pointer": {"type": "string"}, "message": {"type": "string"}},
                },
            },
        },
    })
}
