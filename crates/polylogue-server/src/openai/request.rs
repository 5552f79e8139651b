//! Requests of chat completions: what counts, what is not used and named, and what is refused.

use axum::http::HeaderMap;
use polylogue_core::{Media, Part};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::form::Form;
use super::line::without_broken;
use super::pictures::{Picture, picture};
use crate::call::Call;
use crate::chat_options::ChatShow;
use crate::fields;
use crate::problem::Problem;

/// A request that can be answered.
#[derive(Debug)]
pub(super) struct ChatRequest {
    /// The id of the team.
    pub(super) model: String,
    /// System messages first, then the dialogue as it came.
    pub(super) messages: Vec<ChatMessage>,
    /// All pictures of the messages, and where they are.
    pub(super) pictures: Vec<Picture>,
    /// The form of the result that is asked for, if it is not any text.
    pub(super) form: Option<Form>,
    pub(super) streams: bool,
    /// Whether the stream ends with the usage.
    pub(super) usage: bool,
    /// The conversation that the request names, if any.
    pub(super) conversation: Option<NamedChat>,
    pub(super) show: ChatShow,
    /// Whether silence in the stream is kept alive by chunks without text instead of comments.
    pub(super) is_kept_alive_by_chunks: bool,
    /// How many tokens a reply of a participant may take.
    pub(super) max_tokens: Option<u64>,
    /// The fields that are not used.
    pub(super) ignored: Vec<String>,
}

/// What a request says it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NamedChat {
    /// A conversation, by its id.
    Conversation(String),
    /// A chat of the client, by the client's own id.
    OfClient(String),
}

impl NamedChat {
    /// The id that the request has.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Conversation(id) | Self::OfClient(id) => id,
        }
    }
}

/// A message of the caller's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChatMessage {
    pub(super) role: Role,
    pub(super) text: String,
    pub(super) pictures: Vec<Media>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    #[serde(alias = "function")]
    Tool,
}

/// The fields that are used, or that never need a word.
const KNOWN: [&str; 9] = [
    "model", "messages", "stream", "stream_options", "metadata", "response_format", "user",
    "max_completion_tokens", "max_tokens",
];

impl ChatRequest {
    /// Reads the body of `call`.
    ///
    /// # Errors
    /// What the server cannot do, by the name of its field.
    pub(super) fn of(call: &Call) -> Result<Self, Problem> {
        let body = &call.body;
        check_unsupported(body)?;
        let model = model(body)?;
        let (messages, pictures) = messages(body)?;
        let header = |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok());
        let of_metadata = conversation_of_metadata(body)?;
        object(body, "stream_options")?;
        let show = match header("x-polylogue-show") {
            None => call.app.chat.show,
            Some(word) => {
                word.parse().map_err(|why| Problem::bad_request(format!("`X-Polylogue-Show`: {why}")))?
            }
        };
        let is_kept_alive_by_chunks = match header("x-polylogue-keep-alive") {
            None | Some("comments") => false,
            Some("chunks") => true,
            Some(_) => {
                return Err(Problem::bad_request("`X-Polylogue-Keep-Alive` must be `comments` or `chunks`"));
            }
        };
        let fields = body.as_object().map(|fields| fields.keys().cloned()).into_iter().flatten();
        let mut ignored: Vec<String> =
            fields.filter(|name| !KNOWN.contains(&name.as_str())).take(50).collect();
        ignored.sort();
        Ok(Self {
            model,
            messages,
            pictures,
            form: Form::of(body)?,
            streams: is_true(body, "/stream")?,
            usage: is_true(body, "/stream_options/include_usage")?,
            conversation: match header("x-polylogue-conversation").or(of_metadata) {
                Some(id) => Some(NamedChat::Conversation(id.to_owned())),
                None => chat_of_client(&call.headers, &call.app.chat.conversation_headers)?,
            },
            show,
            is_kept_alive_by_chunks,
            max_tokens: max_tokens(body)?,
            ignored,
        })
    }

    /// The last message, if the user says it.
    pub(super) fn last(&self) -> &str {
        self.messages.last().map(|message| message.text.as_str()).unwrap_or_default()
    }
}

impl ChatRequest {
    /// Whether it continues what a team has said.
    pub(super) fn has_history(&self) -> bool {
        self.messages.iter().any(|message| message.role == Role::Assistant)
    }

    /// The pictures of all messages, as parts of one message.
    pub(super) fn all_pictures(&self) -> Vec<Part> {
        self.messages.iter().flat_map(|message| &message.pictures).cloned().map(Part::Media).collect()
    }

    /// The pictures of the last message.
    pub(super) fn last_pictures(&self) -> &[Media] {
        self.messages.last().map(|message| message.pictures.as_slice()).unwrap_or_default()
    }
}

/// The longest id of a chat of a client, in bytes.
const LONGEST_ID: usize = 255;

/// The chat of the client that the first of these headers names that has a value.
fn chat_of_client(headers: &HeaderMap, names: &[String]) -> Result<Option<NamedChat>, Problem> {
    let mut values = names.iter().filter_map(|name| Some((name, headers.get(name)?)));
    let Some((name, value)) = values.find(|(_, value)| !value.is_empty()) else { return Ok(None) };
    let id = value.to_str().ok().filter(|id| id.len() <= LONGEST_ID);
    let id = id.ok_or_else(|| {
        Problem::bad_request(format!("`{name}` must be at most {LONGEST_ID} printable characters"))
    })?;
    Ok(Some(NamedChat::OfClient(id.to_owned())))
}

/// The id of the team.
fn model(body: &Value) -> Result<String, Problem> {
    match body.get("model").and_then(Value::as_str) {
        Some(id) if !id.is_empty() => Ok(id.to_owned()),
        _ => Err(Problem::bad_request("`model` must be the id of a team")
            .at("/model", "the id of a team")
            .hint("`GET /v1/models` lists the teams")),
    }
}

/// The object that is the field `name`, if there is one.
fn object<'b>(body: &'b Value, name: &str) -> Result<Option<&'b Map<String, Value>>, Problem> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(fields)) => Ok(Some(fields)),
        Some(_) => {
            Err(Problem::bad_request(format!("`{name}` must be an object"))
                .at(format!("/{name}"), "an object"))
        }
    }
}

/// The conversation that the metadata names.
fn conversation_of_metadata(body: &Value) -> Result<Option<&str>, Problem> {
    match object(body, "metadata")?.and_then(|fields| fields.get("conversation")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(id)),
        Some(_) => Err(Problem::bad_request("`metadata.conversation` must be the id of a conversation")
            .at("/metadata/conversation", "a string")),
    }
}

/// The limit on tokens: the lower one, if both names are used.
fn max_tokens(body: &Value) -> Result<Option<u64>, Problem> {
    let mut lowest: Option<u64> = None;
    for name in ["max_completion_tokens", "max_tokens"] {
        let Some(value) = body.get(name).filter(|value| !value.is_null()) else { continue };
        let tokens = value.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
            Problem::bad_request(format!("`{name}` must be a whole number above 0"))
                .at(format!("/{name}"), "a whole number above 0")
        })?;
        lowest = Some(lowest.map_or(tokens, |lowest| lowest.min(tokens)));
    }
    Ok(lowest)
}

/// Whether the field at `pointer` is set to `true`.
fn is_true(body: &Value, pointer: &str) -> Result<bool, Problem> {
    match body.pointer(pointer) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(is_true)) => Ok(*is_true),
        Some(_) => {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            Err(Problem::bad_request(format!("`{name}` must be `true` or `false`"))
                .at(pointer, "`true` or `false`"))
        }
    }
}

fn unsupported(param: &str, detail: &str) -> Problem {
    Problem::unsupported_parameter(detail).at(format!("/{param}"), "not supported")
}

fn check_unsupported(body: &Value) -> Result<(), Problem> {
    let is_set = |name: &str| body.get(name).is_some_and(|value| !value.is_null() && *value != false);
    if body.get("n").is_some_and(|n| !n.is_null() && *n != 1) {
        return Err(unsupported("n", "there is one reply to a request: `n` must be 1"));
    }
    for name in ["logprobs", "top_logprobs", "audio"] {
        if is_set(name) {
            return Err(unsupported(name, &format!("a team has no `{name}`")));
        }
    }
    let modalities = body.get("modalities").and_then(Value::as_array);
    if modalities.is_some_and(|all| all.iter().any(|one| one != "text")) {
        return Err(unsupported("modalities", "a team replies with text"));
    }
    // The second one is its former name.
    for name in ["tool_choice", "function_call"] {
        if body.get(name).is_some_and(|choice| choice == "required" || choice.is_object()) {
            return Err(unsupported(name, "a team does not call tools of the caller"));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct RawMessage {
    role: Role,
    #[serde(default)]
    content: Value,
}

/// What every message has. The other fields of one are those of its client's SDK.
fn messages_schema() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["role"],
            "additionalProperties": true,
            "properties": {
                "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
            },
        },
    })
}

fn messages(body: &Value) -> Result<(Vec<ChatMessage>, Vec<Picture>), Problem> {
    let raw = body.get("messages").cloned().unwrap_or_default();
    fields::check(&raw, &messages_schema(), "/messages")?;
    let raw: Vec<RawMessage> = serde_json::from_value(raw).map_err(|error| {
        Problem::bad_request(format!("`messages`: {error}")).at("/messages", "a list of messages")
    })?;
    let (mut messages, mut pictures) = (Vec::new(), Vec::new());
    for (index, RawMessage { role, content }) in raw.into_iter().enumerate() {
        if role == Role::Tool {
            let what = format!(
                "`messages[{index}]` is the result of a tool: a team does not call tools of the caller"
            );
            return Err(Problem::unsupported_parameter(what)
                .at(
                    format!("/messages/{index}/role"),
                    "only `system`, `developer`, `user` and `assistant` are supported",
                )
                .hint("leave such messages out, and calls of tools with them"));
        }
        let (text, shown) = content_of(&content, role, index)?;
        let text = if role == Role::Assistant { of_assistant(&text) } else { text };
        let media = shown.iter().map(|picture: &Picture| picture.media.clone()).collect();
        messages.push(ChatMessage { role, text, pictures: media });
        pictures.extend(shown);
    }
    match messages.last() {
        Some(ChatMessage { role: Role::User, text, .. }) if !text.is_empty() => Ok((messages, pictures)),
        _ => Err(Problem::bad_request("the last message must be one of the role `user`, with text")
            .at("/messages", "no message of the user at the end")),
    }
}

/// The text of a message, and its pictures.
fn content_of(content: &Value, role: Role, index: usize) -> Result<(String, Vec<Picture>), Problem> {
    let parts = match content {
        Value::String(text) => return Ok((text.trim().to_owned(), Vec::new())),
        Value::Null => return Ok(Default::default()),
        Value::Array(parts) => parts.as_slice(),
        _ => &[],
    };
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for (part, content) in parts.iter().enumerate() {
        let kind = content.get("type").and_then(Value::as_str);
        let place = format!("/messages/{index}/content/{part}");
        match (kind, content.get("text").and_then(Value::as_str)) {
            (Some("text"), Some(text)) => texts.push(text),
            (Some("image_url"), _) if role == Role::User => pictures.push(picture(content, place)?),
            _ => {
                let shown = format!("messages[{index}].content[{part}]");
                let what = format!("`{shown}` is neither text nor a picture of the user's");
                return Err(Problem::unsupported_parameter(what)
                    .at(place, "only text, and pictures in messages of the user, are supported"));
            }
        }
    }
    Ok((texts.join("\n").trim().to_owned(), pictures))
}

/// What a reply says, without the reasoning that user interfaces fold into its beginning, and without what does not count. One that was cut
/// off within the reasoning says nothing.
pub(super) fn of_assistant(text: &str) -> String {
    let mut rest = text.trim_start();
    for (open, close) in [("<think>", "</think>"), ("<details type=\"reasoning\"", "</details>")] {
        if rest.starts_with(open) {
            rest = rest.split_once(close).map_or("", |(_, rest)| rest.trim_start());
        }
    }
    without_broken(rest).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s60_what_cannot_be_done_is_refused_by_its_name() {
        for (body, field) in [
            (json!({"n": 2}), "n"),
            (json!({"logprobs": true}), "logprobs"),
            (json!({"tool_choice": "required"}), "tool_choice"),
            (json!({"tool_choice": {"type": "function"}}), "tool_choice"),
            (json!({"function_call": {"name": "look"}}), "function_call"),
            (json!({"modalities": ["text", "audio"]}), "modalities"),
        ] {
            let problem = check_unsupported(&body).unwrap_err();
            assert_eq!(problem.param().as_deref(), Some(field), "{body}");
        }
        let fine = json!({"n": 1, "logprobs": false, "tool_choice": "auto", "function_call": "auto", "audio": null,
            "modalities": ["text"]});
        check_unsupported(&fine).unwrap();
    }

    #[test]
    fn the_lower_limit_on_tokens_counts_and_must_be_a_number() {
        assert_eq!(max_tokens(&json!({"max_tokens": 9, "max_completion_tokens": 7})).unwrap(), Some(7));
        assert_eq!(max_tokens(&json!({"max_tokens": null})).unwrap(), None);
        for wrong in [json!(0), json!(-1), json!(1.5), json!("9"), json!([])] {
            let problem = max_tokens(&json!({"max_completion_tokens": wrong})).unwrap_err();
            assert_eq!(problem.param().as_deref(), Some("max_completion_tokens"));
        }
    }

    #[test]
    fn texts_of_parts_are_joined_and_other_parts_named() {
        let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
        let parts = json!([{"type": "text", "text": " One"}, {"type": "text", "text": "two. "}]);
        assert_eq!(messages(&user(parts)).unwrap().0[0].text, "One\ntwo.");
        for part in [json!({"type": "input_audio"}), json!({"type": "image_url", "image_url": {"url": "x"}})]
        {
            let problem = messages(&user(json!([{"type": "text", "text": "x"}, part]))).unwrap_err();
            assert_eq!(problem.param().as_deref(), Some("messages.0.content.1"));
        }
        let dot =
            json!({"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlhAgADAAAA"}});
        let (read, pictures) = messages(&user(json!([{"type": "text", "text": "x"}, dot]))).unwrap();
        assert_eq!(
            (&*read[0].pictures[0].media_type, pictures[0].place.as_str()),
            ("image/gif", "/messages/0/content/1")
        );
        let of_system =
            json!({"messages": [{"role": "system", "content": [dot]}, {"role": "user", "content": "x"}]});
        assert!(messages(&of_system).is_err());
        let alone = messages(&user(json!([dot]))).unwrap_err();
        assert!(alone.to_string().contains("with text"), "{alone}");
        for wrong in
            [json!({}), json!({"messages": []}), user(json!("")), json!({"messages": [{"role": "x"}]})]
        {
            assert!(messages(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn results_of_tools_and_flags_of_other_types_are_refused_by_their_places() {
        let called = json!({"role": "assistant", "content": null, "tool_calls": []});
        for role in ["tool", "function"] {
            let of_tool = json!({"messages": [called, {"role": role, "content": "42"}, {"role": "user", "content": "and?"}]});
            let problem = messages(&of_tool).unwrap_err();
            assert_eq!(problem.param().as_deref(), Some("messages.1.role"));
        }
        for wrong in [json!("yes"), json!(1), json!([])] {
            let body = json!({"stream": wrong, "stream_options": {"include_usage": wrong}});
            for (pointer, param) in
                [("/stream", "stream"), ("/stream_options/include_usage", "stream_options.include_usage")]
            {
                assert_eq!(is_true(&body, pointer).unwrap_err().param().as_deref(), Some(param), "{body}");
            }
        }
        let body = json!({"stream": true, "stream_options": null});
        assert!(is_true(&body, "/stream").unwrap());
        assert!(!is_true(&body, "/stream_options/include_usage").unwrap());
    }

    #[test]
    fn fields_of_other_types_are_refused_and_never_begin_another_conversation() {
        for (body, param) in [
            (json!({"metadata": {"conversation": 3}}), "metadata.conversation"),
            (json!({"metadata": "x"}), "metadata"),
        ] {
            let problem = conversation_of_metadata(&body).unwrap_err();
            assert_eq!(problem.param().as_deref(), Some(param), "{body}");
        }
        for body in [json!({}), json!({"metadata": null}), json!({"metadata": {"conversation": null}})] {
            assert_eq!(conversation_of_metadata(&body).unwrap(), None, "{body}");
        }
        let named = json!({"metadata": {"conversation": "a", "other": 3}});
        assert_eq!(conversation_of_metadata(&named).unwrap(), Some("a"));
        let options = object(&json!({"stream_options": "x"}), "stream_options").unwrap_err();
        assert_eq!(options.param().as_deref(), Some("stream_options"));
        for body in [json!({}), json!({"model": ""}), json!({"model": 3}), json!({"model": null})] {
            assert_eq!(model(&body).unwrap_err().param().as_deref(), Some("model"), "{body}");
        }
    }

    #[test]
    fn reasoning_that_was_folded_into_a_reply_is_not_said() {
        assert_eq!(of_assistant("<think>\n**Ann:** one\n</think>\n\nTwo."), "Two.");
        assert_eq!(of_assistant("Two <think>x</think>"), "Two <think>x</think>");
        assert_eq!(of_assistant("<think>\n**Ann:** o"), "");
    }
}
