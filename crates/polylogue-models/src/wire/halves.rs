//! Halves of characters in JSON: servers that cut a stream by units of UTF-16 write the two halves of an emoji in two pieces.

use std::borrow::Cow;

/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// `json`, in which the replacement character stands for each escaped half of a character whose other half does not follow. No parser takes
/// these.
pub(super) fn without_halves(json: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        let after = escape + ESCAPE;
        at = match unit(json, escape) {
            Some(0xd800..=0xdbff) if matches!(unit(json, after), Some(0xdc00..=0xdfff)) => after + ESCAPE,
            Some(0xd800..=0xdfff) => {
                repaired.push_str(json.get(copied..escape).unwrap_or_default());
                repaired.push_str("\\ufffd");
                copied = after;
                after
            }
            Some(_) => after,
            // Another escape, such as that of a backslash.
            None => escape + 2,
        };
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    repaired.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(repaired)
}

/// The unit of UTF-16 that is escaped at `index`.
fn unit(json: &str, index: usize) -> Option<u16> {
    let digits = json.get(index..)?.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_are_replaced() {
        for (json, expected) in [
            (r#"{"a":"x\ud83dy"}"#, r#"{"a":"x\ufffdy"}"#),
            (r#"{"a":"\uDE00"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#),
            (r#"{"a":"\ude00\ud83d"}"#, r#"{"a":"\ufffd\ufffd"}"#),
            (r#"{"a":"\ud83d\n"}"#, r#"{"a":"\ufffd\n"}"#),
        ] {
            assert_eq!(without_halves(json), expected);
            assert!(serde_json::from_str::<serde_json::Value>(json).is_err(), "{json}");
            assert!(serde_json::from_str::<serde_json::Value>(expected).is_ok(), "{expected}");
        }
        for json in [
            r#"{"a":"\ud83d\ude00 \u00e9 é"}"#,
            // The text `\ud83d`, not an escape.
            r#"{"a":"\\ud83d"}"#,
            r#"{"a":"\"}"#,
            r#"{"a":"\ud8"#,
            r"\é",
            "",
        ] {
            assert!(matches!(without_halves(json), Cow::Borrowed(same) if same == json), "{json}");
        }
    }
}
