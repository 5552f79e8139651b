//! Messages of inboxes, as they are stored.

use polylogue_core::{InboxMessage, StoreError};
use serde_json::Value;

use crate::intact::is_type_name;

/// Parses the message `number` of the inbox `place`, which is stored as `json`.
///
/// # Errors
/// [`StoreError::UnknownInstruction`] for one of a later version, [`StoreError::Io`] for what is no message.
pub fn parse_message(json: &[u8], number: u64, place: &str) -> Result<InboxMessage, StoreError> {
    serde_json::from_slice(json).map_err(|error| {
        let place = place.to_owned();
        match unknown_instruction(json) {
            Some(kind) => StoreError::UnknownInstruction { place, number, kind },
            None => StoreError::Io { place, why: format!("message {number} cannot be read: {error}") },
        }
    })
}

/// The name of the instruction of a message that this version cannot read, because the instruction or something in it is of a later one.
fn unknown_instruction(json: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(json).ok()?;
    message.get("key")?.as_str()?;
    message.get("posted_ms")?.as_u64()?;
    let kind = match message.get("instruction")? {
        Value::String(kind) => kind,
        Value::Object(one) if one.len() == 1 => one.keys().next()?,
        _ => return None,
    };
    is_type_name(kind).then(|| kind.clone())
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Instruction, Timestamp};

    use super::*;

    fn parsed(instruction: &str) -> Result<InboxMessage, StoreError> {
        let json = format!(r#"{{"key":"a","posted_ms":1,"instruction":{instruction}}}"#);
        parse_message(json.as_bytes(), 7, "the inbox")
    }

    #[test]
    fn an_instruction_that_only_a_later_version_knows_is_no_damage() {
        let pause = InboxMessage {
            key: "a".into(),
            request: None,
            posted: Timestamp(1),
            instruction: Instruction::Pause,
        };
        assert_eq!(parsed("\"pause\""), Ok(pause));
        for (instruction, name) in [
            (r#""dim""#, "dim"),
            (r#"{"dim":{"by":3}}"#, "dim"),
            // Of a known one, something in it is unknown.
            (r#"{"cancel":{"now":"soon"}}"#, "cancel"),
        ] {
            let unknown =
                StoreError::UnknownInstruction { place: "the inbox".into(), number: 7, kind: name.into() };
            assert_eq!(parsed(instruction), Err(unknown.clone()), "{instruction}");
            assert!(unknown.hint().unwrap().contains("update Polylogue"), "{unknown:?}");
        }
    }

    #[test]
    fn what_is_no_message_is_damage() {
        for instruction in ["", "3", "{}", r#"{"send":1,"pause":2}"#, r#""Not a name""#, r#""pause" ,"#] {
            let damage = parsed(instruction);
            assert!(matches!(damage, Err(StoreError::Io { .. })), "{instruction}: {damage:?}");
        }
        for json in ["", "[]", r#"{"instruction":"dim"}"#, r#"{"key":1,"posted_ms":1,"instruction":"dim"}"#] {
            let damage = parse_message(json.as_bytes(), 1, "the inbox");
            assert!(matches!(damage, Err(StoreError::Io { .. })), "{json}: {damage:?}");
        }
    }
}
