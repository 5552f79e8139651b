//! Ids of new conversations, and the requests that make them.

use polylogue_core::{LogId, Meta};
use serde_json::Value;

/// The field of the document in the metadata of a conversation that identifies the request that made it.
const REQUEST: &str = "request";

/// The id of a new conversation, and the request that makes it. A store makes an id once, so that a repeated request finds by both whether the
/// conversation is there already, whichever process has made it.
///
/// ```
/// use polylogue_runtime::stored::{NewLog, fresh_id};
///
/// let new = NewLog { request: Some("5d0c9e1f".to_owned()), ..NewLog::from(fresh_id()) };
/// # let _ = new;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLog {
    /// The id.
    pub id: LogId,
    /// Identifies the request: [`made_by`] returns it. Default: none.
    pub request: Option<String>,
}

impl From<LogId> for NewLog {
    fn from(id: LogId) -> Self {
        Self { id, request: None }
    }
}

/// Returns what identifies the request that made the conversation with this `meta`, if that was given.
pub fn made_by(meta: &Meta) -> Option<&str> {
    meta.team.get(REQUEST)?.as_str()
}

/// `meta` for a conversation that this request makes. One that its own program began has no document for it.
pub(crate) fn with_request(mut meta: Meta, request: Option<&str>) -> Meta {
    without_request(&mut meta.team);
    if let (Some(fields), Some(request)) = (meta.team.as_object_mut(), request) {
        fields.insert(REQUEST.to_owned(), request.into());
    }
    meta
}

/// Removes from the document of a conversation what identifies the request that made it: the team does not depend on it.
pub(crate) fn without_request(document: &mut Value) {
    if let Some(fields) = document.as_object_mut() {
        fields.shift_remove(REQUEST);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_request_that_made_a_conversation_is_none_of_its_forks() {
        let meta = Meta { team: json!({"digest": "d"}), ..Meta::default() };
        let made = with_request(meta.clone(), Some("r"));
        assert_eq!((made_by(&made), made_by(&meta)), (Some("r"), None));
        assert_eq!(with_request(made.clone(), None), meta);
        assert_eq!(made_by(&with_request(made, Some("s"))), Some("s"));
        let own = with_request(Meta::default(), Some("r"));
        assert_eq!(made_by(&own), None);
        assert_eq!(own, Meta::default());
    }
}
