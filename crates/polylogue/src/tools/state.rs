//! Shared state: values under keys that a team shares, computed from the log.
//!
//! The state is not stored anywhere. A value is set by any tool result or message with [`Part::Data`] of the form
//! `{"state": {"key": value}}`. The last value counts; `null` deletes a key. So the state is the same after a crash, in
//! a fork, and for all participants.
//!
//! State belongs to the team: values set in a chat are visible in the chats within it and around it, and in their next
//! runs. Parallel chats see values set before they started; their own values become visible outside when the turn
//! around them ends. A tool can set values of [one chat](SetState::scope) only, which are not visible outside.
//!
//! # A conversation that ends when a model sets a value
//! ```
//! use polylogue::tools::state::{self, GetState, SetState};
//! use polylogue::policies::with_termination;
//! use polylogue::{AnyModel, Assistant, Chat, round_robin};
//! # fn example(model: AnyModel) -> Result<Chat, polylogue::Error> {
//! let editor = Assistant::new("Editor", model.clone())?
//!     .system("Set `approved` to true when the text is good.")
//!     .tool(SetState::new().only(["approved"]));
//! let writer = Assistant::new("Writer", model)?.tool(GetState::new());
//! let chat = Chat::builder("desk")
//!     .participant(writer)
//!     .participant(editor)
//!     .opening(|task| vec![state::given([("approved", false)]), polylogue::Message::new(polylogue::Name::user(), task)])
//!     .policy(with_termination(round_robin(), state::reaches("approved", true)))
//!     .build()?;
//! # Ok(chat)
//! # }
//! ```

use polylogue_core::{
    Audience, Body, Event, Message, Name, Part, Path, StateScope, Tool, ToolCx, ToolError, ToolResult,
    ToolSpec, ToolStatus, Transcript,
};
use serde_json::{Map, Value, json};

use crate::stop::{Stop, when};

/// The key of data that sets values.
const STATE: &str = "state";
/// The key of data with their scope, if it is not the team.
const SCOPE: &str = "scope";

/// Limit on the bytes of JSON of a value set by a model: a quarter of the limit of a result.
pub const MAX_VALUE_BYTES: usize = ToolResult::MAX_BYTES / 4;

/// Limit on the number of keys set by models.
pub const MAX_KEYS: usize = 256;

/// Returns the state that the chat sees, as of its last finished turn: that of the team, and its own.
pub fn of(chat: &Transcript) -> Map<String, Value> {
    let mut state = Map::new();
    chat.shared().for_each(|event| apply(event, chat.at(), &mut state));
    state
}

/// Returns the value of `key`, as of the last finished turn.
pub fn get(chat: &Transcript, key: &str) -> Option<Value> {
    of(chat).swap_remove(key)
}

/// Returns a condition that holds when `key` has this value, for a [`Graph`](crate::policies::graph::Graph), a group, or
/// [`when`].
pub fn is(
    key: &str,
    value: impl Into<Value>,
) -> impl Fn(&Transcript) -> bool + Clone + Send + Sync + 'static {
    let (key, value) = (key.to_owned(), value.into());
    move |chat| of(chat).get(&key).unwrap_or(&Value::Null) == &value
}

/// Ends the chat when `key` has this value.
pub fn reaches(key: &str, value: impl Into<Value>) -> Stop {
    let value = value.into();
    when(&format!("{key} is {value}"), is(key, value))
}

/// Creates an invisible message that sets values: for the opening of a chat.
pub fn given<K: Into<String>, V: Into<Value>>(values: impl IntoIterator<Item = (K, V)>) -> Message {
    let values = values.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
    Message { to: Audience::private(), parts: vec![sets(values)], ..Message::new(Name::user(), "") }
}

/// Returns the part of a message, or of a tool's result, that sets `values`.
pub fn sets(values: Map<String, Value>) -> Part {
    Part::Data(json!({ STATE: values }))
}

/// Applies what the event sets, for the chat `at`.
fn apply(event: &Event, at: &Path, state: &mut Map<String, Value>) {
    let is_here = event.chat == *at;
    match &event.body {
        Body::Opened(opening) => {
            // Inherited messages set their values when they were sent.
            let inherited = usize::try_from(opening.inherited).unwrap_or(usize::MAX);
            opening
                .messages
                .iter()
                .skip(inherited)
                .for_each(|message| take_in(&message.parts, is_here, state));
        }
        Body::Message(message)
        | Body::Posted(message)
        | Body::Sent(message)
        | Body::Reopened { message: Some(message), .. } => {
            take_in(&message.parts, is_here, state);
        }
        Body::ToolReturned { result: outcome, .. } if outcome.status == ToolStatus::Done => {
            take_in(&outcome.parts, is_here, state);
        }
        _ => {}
    }
}

fn take_in(parts: &[Part], is_here: bool, state: &mut Map<String, Value>) {
    for part in parts {
        let Part::Data(Value::Object(data)) = part else { continue };
        let is_of_chat = data.get(SCOPE).is_some_and(|scope| scope == "chat");
        // Data with other keys is not about the state.
        let is_state = data.len() == 1 + usize::from(is_of_chat) && (is_here || !is_of_chat);
        let Some(Value::Object(values)) = data.get(STATE).filter(|_| is_state) else { continue };
        for (key, value) in values {
            match value {
                Value::Null => drop(state.shift_remove(key)),
                value => drop(state.insert(key.clone(), value.clone())),
            }
        }
    }
}

/// The state that a tool sees, including values set earlier in its turn.
fn seen_by(cx: &ToolCx<'_>) -> Map<String, Value> {
    let mut state = Map::new();
    cx.known(StateScope::Team).into_iter().for_each(|event| apply(event, cx.chat, &mut state));
    state
}

/// The tool `set_state`: sets one value of the state.
///
/// Of parallel calls - in one reply, or in parallel turns - the last in the log counts.
#[derive(Debug, Clone)]
pub struct SetState {
    spec: ToolSpec,
    keys: Vec<String>,
    scope: StateScope,
}

impl Default for SetState {
    fn default() -> Self {
        Self { spec: set_spec(&[]), keys: Vec::new(), scope: StateScope::Team }
    }
}

impl SetState {
    /// Creates a tool that sets any key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the tool to these keys.
    #[must_use]
    pub fn only<K: Into<String>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        let keys: Vec<String> = keys.into_iter().map(Into::into).collect();
        Self { spec: set_spec(&keys), keys, ..self }
    }

    /// Sets the scope of the values. Default: [`StateScope::Team`].
    #[must_use]
    pub fn scope(self, scope: StateScope) -> Self {
        Self { scope, ..self }
    }

    /// The key of a call, if it may be set.
    fn key(&self, args: &Value) -> Result<String, ToolError> {
        let Some(key) = args.get("key").and_then(Value::as_str).filter(|key| !key.trim().is_empty()) else {
            return Err("`key` must be a text that is not empty".into());
        };
        if self.keys.is_empty() || self.keys.iter().any(|known| known == key) {
            return Ok(key.to_owned());
        }
        Err(format!("`{key}` cannot be set; what can be set is `{}`", self.keys.join("`, `")).into())
    }
}

fn set_spec(keys: &[String]) -> ToolSpec {
    let mut key = json!({"type": "string", "description": "What is set"});
    if !keys.is_empty() {
        key = json!({"type": "string", "description": "What is set", "enum": keys});
    }
    let value = json!({"description": "Its new value, any JSON; null takes it away"});
    let parameters = json!({
        "type": "object", "properties": {"key": key, "value": value},
        "required": ["key", "value"], "additionalProperties": false,
    });
    let description = "Sets a value that all participants of this conversation share.";
    ToolSpec::new("set_state", description, parameters).repeatable()
}

impl Tool for SetState {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let key = self.key(&args)?;
        let Some(value) = args.get("value") else {
            return Err("`value` is missing; to take a key away, set it to null".into());
        };
        let bytes = value.to_string().len() + key.len();
        if bytes > MAX_VALUE_BYTES {
            return Err(format!("the value has {bytes} bytes; at most {MAX_VALUE_BYTES} can be set").into());
        }
        let state = seen_by(cx);
        if state.len() >= MAX_KEYS && !state.contains_key(&key) && !value.is_null() {
            return Err(format!("there are {MAX_KEYS} keys already; take one away first").into());
        }
        let values = Map::from_iter([(key, value.clone())]);
        let part = match self.scope {
            StateScope::Team => sets(values),
            StateScope::Chat => Part::Data(json!({ STATE: values, SCOPE: "chat" })),
        };
        Ok(ToolResult::new(ToolStatus::Done, vec![part]))
    }
}

/// The tool `get_state`: reads the state, or one value of it.
#[derive(Debug, Clone)]
pub struct GetState(ToolSpec);

impl Default for GetState {
    fn default() -> Self {
        let key = json!({"type": "string", "description": "What is read. Default: everything"});
        let parameters = json!({"type": "object", "properties": {"key": key}, "additionalProperties": false});
        let description = "Reads the values that all participants of this conversation share.";
        Self(ToolSpec::new("get_state", description, parameters).repeatable())
    }
}

impl GetState {
    /// Creates the tool.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for GetState {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let mut state = seen_by(cx);
        match args.get("key") {
            None | Some(Value::Null) => Ok(ToolResult::done(Value::Object(state).to_string())),
            Some(Value::String(key)) => {
                // As text: data would set it again.
                Ok(ToolResult::done(state.swap_remove(key).unwrap_or(Value::Null).to_string()))
            }
            Some(other) => Err(format!("`key` must be a text; got {other}").into()),
        }
    }
}
