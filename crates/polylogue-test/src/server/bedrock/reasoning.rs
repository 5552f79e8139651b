//! What is sealed of a thought.

use serde_json::{Value, json};

use super::super::seal::{bound, seal};

/// The signature of a thought that `model` had after `messages`. Claude binds its thoughts to all that came before them; other
/// models sign the thought alone.
pub(super) fn signature(model: &str, body: &Value, messages: &[Value], thought: &str) -> String {
    if !model.contains("claude") {
        return seal("bedrock", thought);
    }
    let tools = body.pointer("/toolConfig/tools");
    bound("bedrock", model, json!([body.get("system"), tools, messages]), thought)
}
