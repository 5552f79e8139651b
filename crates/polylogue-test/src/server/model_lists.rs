//! Lists of models, as each provider has them, in pages. The name of a model says what it does: one with `embed` makes vectors, one with
//! `image` pictures, all others reply.

use serde_json::{Value, json};

use super::response::{Plan, plan_error, plan_json};
use super::rules::Checked;
use super::{Behavior, Received, Vendor};

/// The parameters of a query, as they were sent.
type Query<'a> = Vec<(&'a str, &'a str)>;

/// The list by OpenAI's API, or by Anthropic's, whose requests have a version.
pub(super) fn plan(behavior: &Behavior, received: &Received) -> Plan {
    let query = query(&received.path);
    match received.header("anthropic-version") {
        Some(_) => answer(anthropic(behavior, &query)),
        None => answer(openai(behavior, &query)),
    }
}

/// The list by Google's API.
pub(super) fn plan_google(behavior: &Behavior, received: &Received) -> Plan {
    answer(google(behavior, &query(&received.path)))
}

fn answer(list: Checked<Value>) -> Plan {
    match list {
        Ok(list) => plan_json(200, &list),
        Err(what) => plan_error(400, &what),
    }
}

fn query(path: &str) -> Query<'_> {
    let pairs = path.split_once('?').map_or("", |(_, query)| query).split('&');
    pairs.filter_map(|pair| pair.split_once('=')).collect()
}

fn value<'a>(query: &Query<'a>, name: &str) -> Option<&'a str> {
    query.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Refuses parameters that are not in `known`.
fn only(query: &Query<'_>, known: &[&str]) -> Checked {
    match query.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(format!("{name}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// How many models a page has, of which the request may limit the number by `name`, up to 1,000.
fn size(behavior: &Behavior, query: &Query<'_>, name: &str, usual: usize) -> Checked<usize> {
    let asked = value(query, name).map_or(Some(usual), |given| given.parse().ok());
    match asked.filter(|asked| (1..=1_000).contains(asked)) {
        Some(asked) => Ok(behavior.models_per_page.unwrap_or(asked).min(asked)),
        None => Err(format!("{name}: must be from 1 to 1000")),
    }
}

/// The models of the page that begins at `from`, and where the next one begins. A list without end always has its first page.
fn page(behavior: &Behavior, from: usize, size: usize) -> (&[String], Option<usize>) {
    let from = if behavior.endless_models { 0 } else { from };
    let rest = behavior.models.get(from..).unwrap_or_default();
    let page = rest.get(..size).unwrap_or(rest);
    let is_cut = behavior.endless_models || page.len() < rest.len();
    (page, is_cut.then_some(from + page.len()))
}

/// Where the page after the model `id` begins.
fn after(behavior: &Behavior, id: Option<&str>) -> Checked<usize> {
    let Some(id) = id else { return Ok(0) };
    match behavior.models.iter().position(|name| name == id) {
        Some(at) => Ok(at + 1),
        None => Err(format!("after_id: there is no model `{id}`")),
    }
}

fn makes_vectors(name: &str) -> bool {
    name.contains("embed")
}

fn makes_pictures(name: &str) -> bool {
    name.contains("image")
}

/// The one of three words that says what the model does.
fn does<T>(name: &str, replies: T, vectors: T, pictures: T) -> T {
    match () {
        () if makes_vectors(name) => vectors,
        () if makes_pictures(name) => pictures,
        () => replies,
    }
}

fn openai(behavior: &Behavior, query: &Query<'_>) -> Checked<Value> {
    if behavior.vendor == Some(Vendor::Cohere) {
        return cohere(behavior, query);
    }
    only(query, if behavior.models_per_page.is_some() { &["after", "limit"] } else { &[] })?;
    let size = size(behavior, query, "limit", 1_000)?;
    let (page, next) = page(behavior, after(behavior, value(query, "after"))?, size);
    let data: Vec<Value> = page.iter().map(|name| of_openai(behavior, name)).collect();
    if behavior.vendor == Some(Vendor::Together) {
        return Ok(Value::Array(data));
    }
    let list = json!({"object": "list", "data": data});
    match next {
        Some(_) => Ok(with(list, "has_more", json!(true))),
        None => Ok(list),
    }
}

/// Cohere's list has its own form, also by its compatibility API.
fn cohere(behavior: &Behavior, query: &Query<'_>) -> Checked<Value> {
    only(query, &["page_size", "page_token", "endpoint", "default_only"])?;
    let size = size(behavior, query, "page_size", 20)?;
    let from = value(query, "page_token").map_or(Some(0), |token| token.parse().ok());
    let (page, next) = page(behavior, from.ok_or("invalid page token")?, size);
    let model = |name: &String| json!({"name": name, "endpoints": [does(name, "chat", "embed", "transcriptions")], "context_length": 128_000});
    let list = json!({"models": page.iter().map(model).collect::<Vec<_>>()});
    match next {
        Some(next) => Ok(with(list, "next_page_token", json!(next.to_string()))),
        None => Ok(list),
    }
}

/// A model, with what its vendor says of it.
fn of_openai(behavior: &Behavior, name: &str) -> Value {
    let model = json!({"id": name, "object": "model", "created": 0, "owned_by": "test"});
    let model = match behavior.window {
        Some(tokens) => with(model, "max_model_len", json!(tokens)),
        None => model,
    };
    let replies = !makes_vectors(name) && !makes_pictures(name);
    match behavior.vendor {
        Some(Vendor::Mistral) => {
            let model = with(model, "type", json!("base"));
            with(model, "capabilities", json!({"completion_chat": replies, "function_calling": replies}))
        }
        Some(Vendor::OpenRouter) => {
            let made = does(name, "text", "embeddings", "image");
            with(model, "architecture", json!({"modality": "any", "output_modalities": [made]}))
        }
        Some(Vendor::Together) => with(model, "type", json!(does(name, "chat", "embedding", "image"))),
        _ => model,
    }
}

/// `object` with one more field.
fn with(mut object: Value, name: &str, value: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
    object
}

fn anthropic(behavior: &Behavior, query: &Query<'_>) -> Checked<Value> {
    only(query, &["limit", "after_id", "before_id"])?;
    let size = size(behavior, query, "limit", 20)?;
    let (page, next) = page(behavior, after(behavior, value(query, "after_id"))?, size);
    let model = |name: &String| json!({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"});
    Ok(json!({
        "data": page.iter().map(model).collect::<Vec<_>>(),
        "has_more": next.is_some(),
        "first_id": page.first(),
        "last_id": page.last(),
    }))
}

fn google(behavior: &Behavior, query: &Query<'_>) -> Checked<Value> {
    only(query, &["pageSize", "pageToken"])?;
    let size = size(behavior, query, "pageSize", 50)?;
    // Its sign means a space unless it is encoded.
    let place = |token: &str| token.strip_prefix("from%2B")?.parse().ok();
    let from = value(query, "pageToken").map_or(Some(0), place);
    let (page, next) = page(behavior, from.ok_or("The page token is invalid.")?, size);
    let model = |name: &String| {
        json!({
            "name": format!("models/{name}"),
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": does(
                name,
                ["generateContent", "countTokens"],
                ["embedContent", "countTextTokens"],
                ["predict", "predictLongRunning"],
            ),
        })
    };
    let list = json!({"models": page.iter().map(model).collect::<Vec<_>>()});
    match next {
        Some(next) => Ok(with(list, "nextPageToken", json!(format!("from+{next}")))),
        None => Ok(list),
    }
}
