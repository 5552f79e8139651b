//! The JSON Schemas of replies, for `/openapi.json`. Requests made from that document check them (`.ci/clients`).

use serde_json::{Map, Value, json};

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
    ("GET", "/api/v1/teams", || object(&[("teams", list(json!({"anyOf": [team(), unusable()]})))], &[])),
    ("GET", "/api/v1/teams/{team}", team),
    ("GET", "/api/v1/teams/{team}/source", || {
        object(&[("id", text()), ("text", text()), ("version", or_null("string"))], &[])
    }),
    ("PUT", "/api/v1/teams/{team}", team),
    ("GET", "/api/v1/teams/{team}/graph", graph),
    ("GET", "/api/v1/schema", document),
    ("POST", "/api/v1/teams/check", || {
        object(&[("ok", flag()), ("problems", list(problem()))], &[("team", document())])
    }),
    ("POST", "/api/v1/conversations", conversation),
    ("GET", "/api/v1/conversations", || {
        object(&[("conversations", list(conversation())), ("next_cursor", or_null("string"))], &[])
    }),
    ("GET", ONE, conversation),
    ("PATCH", ONE, conversation),
    ("POST", "/api/v1/imports", conversation),
    ("DELETE", ONE, || object(&[("removed", json!({"const": true}))], &[])),
    ("GET", "/api/v1/conversations/{id}/events", || page("events", event())),
    ("GET", "/api/v1/conversations/{id}/calls", || page("calls", call())),
    ("GET", "/api/v1/conversations/{id}/views/{agent}", view),
    ("GET", "/api/v1/conversations/{id}/histories", histories),
    ("GET", "/api/v1/conversations/{id}/graph", graph),
    ("POST", "/api/v1/conversations/{id}/messages", accepted),
    ("POST", "/api/v1/conversations/{id}/answers", accepted),
    ("POST", "/api/v1/conversations/{id}/stop", stopped),
    ("POST", "/api/v1/conversations/{id}/pause", conversation),
    ("POST", "/api/v1/conversations/{id}/next", conversation),
    ("POST", "/api/v1/conversations/{id}/resume", conversation),
    ("POST", "/api/v1/conversations/{id}/raise", conversation),
    ("GET", "/api/v1/conversations/{id}/verify", verdict),
    ("GET", "/api/v1/memory", || object(&[("facts", list(fact()))], &[])),
    ("GET", "/api/v1/cluster", cluster),
    ("DELETE", "/api/v1/memory/{fact}", || object(&[("forgotten", json!({"const": true}))], &[])),
    ("GET", "/api/v1/conversations/{id}/continuation", continuation),
    ("GET", "/api/v1/conversations/{id}/files", files),
    ("POST", "/api/v1/conversations/{id}/fork", conversation),
    ("GET", "/api/v1/compare", compared),
    ("GET", "/api/v1/tokens", || object(&[("tokens", list(token(&[])))], &[])),
    ("POST", "/api/v1/tokens", || token(&[("token", text())])),
    ("DELETE", "/api/v1/tokens/{token}", revoked),
    ("POST", "/api/v1/session", session),
    ("GET", "/api/v1/session", session),
    ("DELETE", "/api/v1/session", revoked),
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

/// Of a list that is read in parts.
fn page(name: &str, row: Value) -> Value {
    object(&[(name, list(row)), ("next", or_null("integer"))], &[])
}

fn status() -> Value {
    object(&[("status", text())], &[])
}

/// The number of an event, or none while it waits for the end of a step.
fn accepted() -> Value {
    object(&[("seq", or_null("integer"))], &[("node", text())])
}

fn revoked() -> Value {
    object(&[("revoked", json!({"const": true}))], &[])
}

fn team() -> Value {
    let limits = ["turns", "calls", "tokens", "cost"].map(|name| (name, or_null("integer")));
    let input = object(&[("name", text()), ("default", json!({}))], &[]);
    let kind = json!({"enum": ["model", "person", "program", "chat"]});
    let participant = [("name", text()), ("kind", kind), ("model", or_null("string")), ("color", count())];
    let edge = ["from", "to", "when"].map(|name| (name, or_null("string")));
    object(
        &[
            ("id", text()),
            ("name", text()),
            ("description", text()),
            ("task", or_null("string")),
            ("participants", list(object(&participant, &[]))),
            ("edges", list(object(&edge, &[]))),
            ("selected_by", or_null("string")),
            ("inputs", list(input)),
            ("models", list(text())),
            ("scripted", flag()),
            ("limits", object(&limits, &[])),
            ("changed", or_null("object")),
        ],
        &[("version", text())],
    )
}

/// A team that cannot be prepared.
fn unusable() -> Value {
    object(&[("id", text()), ("error", text()), ("hint", or_null("string"))], &[])
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

fn histories() -> Value {
    let one =
        [("at", text()), ("agent", text()), ("system", or_null("string")), ("entries", list(document()))];
    object(&[("histories", list(object(&one, &[])))], &[])
}

fn question_kind() -> Value {
    json!({"enum": ["turn", "speaker", "reply", "approval", "code_approval", "limit", "text"]})
}

/// Returns the JSON Schema of an open question as data: what the native API and MCP have in `asked`.
///
/// ```
/// let schema = polylogue_server::asked_schema();
/// assert_eq!(schema["properties"]["kind"]["enum"][0], "turn");
/// ```
pub fn asked_schema() -> Value {
    object(
        &[
            ("question", count()),
            ("at", text()),
            ("who", text()),
            ("text", text()),
            ("kind", question_kind()),
            ("choices", list(object(&[("answer", text()), ("effect", text())], &[("label", text())]))),
            ("call", or_null("object")),
            ("asked_ms", count()),
            ("until_ms", or_null("integer")),
        ],
        &[("default", document()), ("limit", document())],
    )
}

fn conversation() -> Value {
    let bound = object(
        &[("text", text()), ("price_date", text()), ("team_digest", text())],
        &[("calls", count()), ("tokens", count()), ("cost", count())],
    );
    let state = json!({"enum": ["running", "waiting", "halted", "closed"]});
    object(
        &[
            ("id", text()),
            ("team", text()),
            ("team_name", text()),
            ("title", or_null("string")),
            ("task", text()),
            ("state", state),
            ("created_ms", count()),
            ("started_ms", count()),
            ("updated_ms", count()),
            ("seq", count()),
            ("turns", count()),
            ("usage", document()),
            ("asked", list(asked_schema())),
        ],
        &[
            ("imported", flag()),
            ("node", text()),
            ("bound", bound),
            ("bound_ended", text()),
            ("paused", json!({"const": true})),
            ("archived", json!({"const": true})),
            ("ended", object(&[("word", text()), ("detail", text())], &[])),
            ("parent", object(&[("id", text()), ("seq", count())], &[("edited", flag())])),
        ],
    )
}

/// A conversation, and whether there was anything to stop.
fn stopped() -> Value {
    json!({"allOf": [conversation(), object(&[("stopped", flag())], &[])]})
}

/// What continues a conversation that has ended.
fn continuation() -> Value {
    object(&[("resumes", flag()), ("limits", or_null("object")), ("message", or_null("string"))], &[])
}

/// Whether a conversation is intact.
fn verdict() -> Value {
    let state = json!({"enum": ["intact", "damaged", "old_format", "newer_format"]});
    object(&[("id", text()), ("state", state), ("events", count()), ("intact", count())], &[("why", text())])
}

/// What an agent remembers.
fn fact() -> Value {
    object(
        &[
            ("id", count()),
            ("scope", text()),
            ("text", text()),
            ("by", text()),
            ("time_ms", count()),
            ("conversation", text()),
            ("call", text()),
        ],
        &[],
    )
}

fn files() -> Value {
    let file = object(&[("path", text()), ("bytes", count()), ("mode", count())], &[]);
    let folder = object(&[("path", text()), ("mode", count())], &[]);
    let link = object(&[("path", text()), ("to", text())], &[]);
    let left_out = object(&[("path", text()), ("why", text())], &[]);
    let lists = [("files", file), ("folders", folder), ("links", link), ("left_out", left_out)];
    object(&lists.map(|(name, item)| (name, list(item))), &[])
}

/// What workers run, and what waits for them.
fn cluster() -> Value {
    let worker = [
        ("worker", text()),
        ("version", text()),
        ("held", count()),
        ("at_once", count()),
        ("offers", list(text())),
        ("seen_ms", count()),
    ];
    let usage = || object(&["calls", "tokens", "cost"].map(|name| (name, count())), &[]);
    let budget = [
        ("budget", text()),
        ("limits", object(&["calls", "tokens", "cost"].map(|name| (name, or_null("integer"))), &[])),
        ("used", usage()),
        ("drawn", usage()),
        ("processes", count()),
        ("conversations", count()),
    ];
    let rate_limit = [
        ("provider", text()),
        ("model", text()),
        ("wait_ms", count()),
        ("requests", count()),
        ("refusals", count()),
        ("slots", count()),
        ("slots_taken", count()),
    ];
    let queued = [
        ("id", text()),
        ("state", json!({"enum": ["lost", "parked", "ready", "held", "timed"]})),
        ("overdue_ms", or_null("integer")),
        ("holder", or_null("string")),
        ("needs", list(text())),
        ("missing", list(text())),
        ("tries", count()),
        ("takeovers", count()),
        ("why", or_null("string")),
    ];
    object(
        &[
            ("workers", list(object(&worker, &[]))),
            ("budgets", list(object(&budget, &[]))),
            ("rate_limits", list(object(&rate_limit, &[]))),
            ("conversations", list(object(&queued, &[]))),
            (
                "counts",
                object(&["lost", "parked", "ready", "held", "timed"].map(|name| (name, count())), &[]),
            ),
            ("overdue_seconds", json!({"type": "number", "minimum": 0})),
            ("takeovers", count()),
            ("lost_events", count()),
        ],
        &[],
    )
}

fn event() -> Value {
    object(&[("seq", count()), ("type", text()), ("time_ms", count())], &[("at", text())])
}

fn call() -> Value {
    let kind = json!({"enum": ["model", "tool", "person"]});
    object(
        &[("kind", kind), ("who", text()), ("at", text()), ("start_ms", count())],
        &[("end_ms", or_null("integer"))],
    )
}

fn view() -> Value {
    object(
        &[
            ("agent", text()),
            ("call", count()),
            ("calls", count()),
            ("seq", or_null("integer")),
            ("at", text()),
            ("exact", or_null("boolean")),
            ("request", document()),
        ],
        &[],
    )
}

fn compared() -> Value {
    let said = json!({"anyOf": [{"type": "null"}, object(
        &[("seq", count()), ("at", text()), ("who", text()), ("text", text()), ("private", flag())],
        &[],
    )]});
    object(
        &[
            ("a", conversation()),
            ("b", conversation()),
            ("common", count()),
            ("messages", list(object(&[("a", said.clone()), ("b", said)], &[]))),
            ("has_more", flag()),
            ("difference", json!({"type": "object", "additionalProperties": {"type": "number"}})),
        ],
        &[],
    )
}

fn token(more: &[(&str, Value)]) -> Value {
    let spent = object(&[("cost", count()), ("tokens", count())], &[]);
    let spent = json!({"anyOf": [{"type": "null"}, spent]});
    let fields = [
        ("id", text()),
        ("name", text()),
        ("kind", text()),
        ("tenant", text()),
        ("scopes", list(text())),
        ("teams", or_null("array")),
        ("per_day", document()),
        ("created_ms", count()),
        ("expires_ms", or_null("integer")),
        ("last_used_ms", or_null("integer")),
        ("spent_today", spent),
    ];
    object(&[&fields, more].concat(), &[])
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
