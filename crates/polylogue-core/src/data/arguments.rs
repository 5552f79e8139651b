//! Reading the arguments that a model wrote.

use serde_json::Value;

/// Parses JSON arguments of a model whose strings contain raw line breaks or tabs; `None` if that was not the
/// mistake.
pub(crate) fn repaired(text: &str) -> Option<Value> {
    serde_json::from_str(&escaped(text)).ok().filter(Value::is_object)
}

/// `text` with the control characters inside its strings escaped. Outside of strings they are white space.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut in_string = false;
    let mut after_backslash = false;
    for c in text.chars() {
        match c {
            '"' if !after_backslash => in_string = !in_string,
            _ if c.is_ascii_control() && in_string => {
                // A backslash at the end of a line stands for itself.
                let stray = if after_backslash { "\\" } else { "" };
                let code = u32::from(c);
                escaped.push_str(&format!("{stray}\\u{code:04x}"));
                after_backslash = false;
                continue;
            }
            _ => {}
        }
        after_backslash = c == '\\' && in_string && !after_backslash;
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn line_breaks_and_tabs_inside_strings_are_repaired() {
        let text = "{\n\t\"cell\": \"a = \\\"1\\\"\n\tprint(a)\r\n\",\n\"n\": 1}";
        assert_eq!(repaired(text), Some(json!({"cell": "a = \"1\"\n\tprint(a)\r\n", "n": 1})));
        assert_eq!(repaired("{\"a\": \"b \\\nc\"}"), Some(json!({"a": "b \\\nc"})));
        assert_eq!(repaired("{\"a\": \"ö\\\\\"}"), Some(json!({"a": "ö\\"})));
    }

    #[test]
    fn arguments_that_are_no_object_are_unchanged() {
        for text in ["", "{", "\"a\nb\"", "[1]", "{\"a\": \"\n", "cell: 1", "{\"a\": \"b\"c\"}"] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }
}
