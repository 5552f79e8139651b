//! Arguments of the tools.

use polylogue_core::ToolError;
use serde_json::Value;

/// The argument `name`, which has to be a text.
pub(super) fn text<'a>(args: &'a Value, name: &str) -> Result<&'a str, ToolError> {
    args.get(name).and_then(Value::as_str).ok_or_else(|| ToolError(format!("`{name}` must be a text")))
}

/// The argument `name`, a text that may be left out.
pub(super) fn text_if_given<'a>(args: &'a Value, name: &str) -> Result<&'a str, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(_) => text(args, name),
    }
}

/// The argument `name`, a count of at least 1 that may be left out.
pub(super) fn count(args: &Value, name: &str) -> Result<Option<usize>, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|count| usize::try_from(count).ok()) {
            Some(count) if count > 0 => Ok(Some(count)),
            _ => Err(ToolError(format!("`{name}` must be a whole number from 1"))),
        },
    }
}

/// The argument `name`, `true` or `false`, which is `false` when it is left out.
pub(super) fn flag(args: &Value, name: &str) -> Result<bool, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(ToolError(format!("`{name}` must be `true` or `false`"))),
    }
}
