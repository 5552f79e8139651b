//! Errors: RFC 9457, with a hint and the id of the request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The media type of a [`Problem`].
pub const MEDIA_TYPE: &str = "application/problem+json";

/// What the `type` of a problem begins with.
const PREFIX: &str = "/problems/";

/// The reason why a request failed, whose fault that is, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The kind, which never changes: `/problems/` and a [word](Self::word).
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind, for people.
    pub title: String,
    /// The status of the response.
    pub status: u16,
    /// What happened.
    pub detail: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// Identifies the request in the log of the server.
    pub request_id: String,
    /// Places in the body that are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Mistakes in the text of a team file, as `polylogue check --json` prints them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problems: Option<Value>,
}

/// A place in a body that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    /// The place, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl Problem {
    /// Returns the `type` of problems whose kind is `word`.
    pub fn kind_of(word: &str) -> String {
        format!("{PREFIX}{word}")
    }

    /// Returns the kind in one word, such as `not-found`.
    pub fn word(&self) -> &str {
        self.kind.strip_prefix(PREFIX).unwrap_or(&self.kind)
    }
}
