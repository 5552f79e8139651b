//! The JSON Schemas of replies, for `/openapi.json`. Requests made from that document check them (`.ci/clients`).

use polylogue_wire::cluster::Cluster;
use polylogue_wire::compare::Comparison;
use polylogue_wire::conversation::{
    Accepted, Continuation, Conversation, ConversationPage, Removed, Stopped, Verdict,
};
use polylogue_wire::files::Files;
use polylogue_wire::{calls, memory, team, token};
use serde_json::{Map, Value, json};

use crate::schema::of_reply;

/// The schema of the reply to a request that succeeds, by the method and the path of its route. `None`: it is not JSON, or not
/// described.
pub(crate) fn schema(method: &str, path: &str) -> Option<Value> {
    let (_, _, schema) = REPLIES.iter().find(|(of, at, _)| (*of, *at) == (method, path))?;
    Some(schema())
}

type Schema = fn() -> Value;

const ONE: &str = "/api/v1/conversations/{id}";

const REPLIES: &[(&str, &str, Schema)] = &[
    ("GET", "/healthz", status),
    ("GET", "/readyz", status),
    ("GET", "/openapi.json", document),
    ("GET", "/api/v1/teams", of_reply::<team::Teams>),
    ("GET", "/api/v1/teams/{team}", of_reply::<team::Team>),
    ("GET", "/api/v1/teams/{team}/source", of_reply::<team::Source>),
    ("PUT", "/api/v1/teams/{team}", of_reply::<team::Team>),
    ("GET", "/api/v1/teams/{team}/graph", graph),
    ("GET", "/api/v1/schema", document),
    ("POST", "/api/v1/teams/check", || {
        object(&[("ok", flag()), ("problems", list(problem()))], &[("team", document())])
    }),
    ("POST", "/api/v1/conversations", of_reply::<Conversation>),
    ("GET", "/api/v1/conversations", of_reply::<ConversationPage>),
    ("GET", ONE, of_reply::<Conversation>),
    ("PATCH", ONE, of_reply::<Conversation>),
    ("POST", "/api/v1/imports", of_reply::<Conversation>),
    ("DELETE", ONE, of_reply::<Removed>),
    ("GET", "/api/v1/conversations/{id}/events", || {
        object(&[("events", list(event())), ("next", or_null("integer"))], &[])
    }),
    ("GET", "/api/v1/conversations/{id}/calls", of_reply::<calls::CallPage>),
    ("GET", "/api/v1/conversations/{id}/views/{agent}", of_reply::<calls::View>),
    ("GET", "/api/v1/conversations/{id}/histories", of_reply::<calls::Histories>),
    ("GET", "/api/v1/conversations/{id}/graph", graph),
    ("POST", "/api/v1/conversations/{id}/messages", of_reply::<Accepted>),
    ("POST", "/api/v1/conversations/{id}/answers", of_reply::<Accepted>),
    ("POST", "/api/v1/conversations/{id}/stop", of_reply::<Stopped>),
    ("POST", "/api/v1/conversations/{id}/pause", of_reply::<Conversation>),
    ("POST", "/api/v1/conversations/{id}/next", of_reply::<Conversation>),
    ("POST", "/api/v1/conversations/{id}/resume", of_reply::<Conversation>),
    ("POST", "/api/v1/conversations/{id}/raise", of_reply::<Conversation>),
    ("GET", "/api/v1/conversations/{id}/verify", of_reply::<Verdict>),
    ("GET", "/api/v1/memory", of_reply::<memory::Facts>),
    ("GET", "/api/v1/cluster", of_reply::<Cluster>),
    ("DELETE", "/api/v1/memory/{fact}", of_reply::<memory::Forgotten>),
    ("GET", "/api/v1/conversations/{id}/continuation", of_reply::<Continuation>),
    ("GET", "/api/v1/conversations/{id}/files", of_reply::<Files>),
    ("POST", "/api/v1/conversations/{id}/fork", of_reply::<Conversation>),
    ("GET", "/api/v1/compare", of_reply::<Comparison>),
    ("GET", "/api/v1/tokens", of_reply::<token::Tokens>),
    ("POST", "/api/v1/tokens", of_reply::<token::MadeToken>),
    ("DELETE", "/api/v1/tokens/{token}", of_reply::<token::Revoked>),
    ("POST", "/api/v1/session", session),
    ("GET", "/api/v1/session", session),
    ("DELETE", "/api/v1/session", of_reply::<token::Revoked>),
    ("GET", "/v1/models", || object(&[("object", json!({"const": "list"})), ("data", list(model()))], &[])),
    ("GET", "/v1/models/{model}", model),
    ("POST", "/v1/chat/completions", completion),
    ("POST", "/mcp", message),
    ("POST", "/mcp/{team}", message),
];

/// The schema of errors below `/v1`, in the form of OpenAI's API.
pub(crate) fn openai_error() -> Value {
    let error =
        object(&[("message", text()), ("type", text()), ("param", or_null("string")), ("code", text())], &[]);
    object(&[("error", error)], &[])
}

/// The schema of errors below `/mcp`, which are messages of JSON-RPC 2.0.
pub(crate) fn json_rpc_error() -> Value {
    let error = object(&[("code", json!({"type": "integer"})), ("message", text())], &[("data", document())]);
    object(&[("jsonrpc", json!({"const": "2.0"})), ("error", error)], &[("id", json!({}))])
}

/// A message of JSON-RPC 2.0.
fn message() -> Value {
    object(
        &[("jsonrpc", json!({"const": "2.0"}))],
        &[("id", json!({})), ("result", document()), ("error", document())],
    )
}

fn object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let fields = required.iter().chain(optional);
    let fields: Map<String, Value> = fields.map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    json!({"type": "object", "required": names, "properties": fields})
}

fn document() -> Value {
    json!({"type": "object"})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn or_null(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn status() -> Value {
    object(&[("status", text())], &[])
}

/// A finding in the text of a team file.
fn problem() -> Value {
    object(
        &[("severity", text()), ("code", text()), ("message", text())],
        &[("place", document()), ("file", or_null("string")), ("hint", or_null("string"))],
    )
}

fn graph() -> Value {
    object(
        &[("name", text()), ("pattern", text()), ("nodes", list(document())), ("edges", list(document()))],
        &[],
    )
}

fn event() -> Value {
    object(&[("seq", count()), ("type", text()), ("time_ms", count())], &[("chat", text())])
}

fn session() -> Value {
    object(
        &[
            ("id", text()),
            ("name", text()),
            ("tenant", text()),
            ("scopes", list(text())),
            ("teams", or_null("array")),
            ("expires_ms", or_null("integer")),
            ("has_cluster", flag()),
            ("version", text()),
        ],
        &[],
    )
}

fn model() -> Value {
    let kind = json!({"const": "model"});
    object(&[("id", text()), ("object", kind), ("created", count()), ("owned_by", text())], &[])
}

fn completion() -> Value {
    let message = object(
        &[
            ("role", json!({"const": "assistant"})),
            ("content", json!({"type": "string", "minLength": 1})),
            ("refusal", json!({"type": "null"})),
        ],
        &[],
    );
    let choice = object(
        &[
            ("index", json!({"const": 0})),
            ("message", message),
            ("finish_reason", json!({"enum": ["stop", "length"]})),
            ("logprobs", json!({"type": "null"})),
        ],
        &[],
    );
    let usage = [("prompt_tokens", count()), ("completion_tokens", count()), ("total_tokens", count())];
    object(
        &[
            ("id", text()),
            ("object", json!({"const": "chat.completion"})),
            ("created", count()),
            ("model", text()),
            ("choices", list(choice)),
        ],
        &[("usage", object(&usage, &[])), ("polylogue", document())],
    )
}

#[cfg(test)]
mod tests {
    use crate::route::Route;
    use crate::table::ROUTES;

    use super::*;

    #[test]
    fn every_schema_is_that_of_a_documented_route() {
        for (nth, (method, path, schema)) in REPLIES.iter().enumerate() {
            let is_route = |route: &&Route| (route.method.as_str(), route.path) == (*method, *path);
            let route =
                ROUTES.iter().find(is_route).unwrap_or_else(|| panic!("there is no route {method} {path}"));
            assert!(route.is_documented && schema().is_object(), "{method} {path}");
            assert!(
                !REPLIES[..nth].iter().any(|(of, at, _)| (of, at) == (method, path)),
                "{method} {path} twice"
            );
        }
    }
}
