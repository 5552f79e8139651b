//! What the documents of one response have in common.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::outcome::Finish;

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What all documents of one response have.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// As the client named it.
    pub(super) model: String,
    pub(super) conversation: String,
}

impl Head {
    pub(super) fn document(&self, object: &str) -> Value {
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model})
    }

    /// The whole response.
    pub(super) fn completion(&self, finish: &Finish, usage: Option<Value>, extension: Value) -> Value {
        let mut document = self.document("chat.completion");
        if let Some(fields) = document.as_object_mut() {
            let message = json!({"role": "assistant", "content": finish.content, "refusal": null});
            let choice =
                json!({"index": 0, "message": message, "finish_reason": finish.reason, "logprobs": null});
            fields.insert("choices".into(), json!([choice]));
            fields.extend(usage.map(|usage| ("usage".to_owned(), usage)));
            fields.insert("polylogue".into(), extension);
        }
        document
    }
}
