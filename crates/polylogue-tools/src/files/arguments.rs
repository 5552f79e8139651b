//! Arguments of the tools.

use polylogue_core::ToolError;
use serde_json::Value;

/// The required argument `name`, a text.
pub(super) fn text<'a>(args: &'a Value, name: &str) -> Result<&'a str, ToolError> {
    args.get(name).and_then(Value::as_str).ok_or_else(|| ToolError(format!("`{name}` must be a text")))
}

/// The optional argument `name`, a text.
pub(super) fn text_if_given<'a>(args: &'a Value, name: &str) -> Result<&'a str, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(_) => text(args, name),
    }
}

/// The optional argument `name`, a count of at least 1.
pub(super) fn count(args: &Value, name: &str) -> Result<Option<usize>, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|count| usize::try_from(count).ok()) {
            Some(count) if count > 0 => Ok(Some(count)),
            _ => Err(ToolError(format!("`{name}` must be a whole number from 1"))),
        },
    }
}

/// The argument `name`, `true` or `false`. Default: `false`.
pub(super) fn flag(args: &Value, name: &str) -> Result<bool, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(ToolError(format!("`{name}` must be `true` or `false`"))),
    }
}
