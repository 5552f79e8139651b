//! Support code for the macros. Not a public interface.

use polylogue_core::{Part, ToolError, ToolResult, ToolSpec, ToolStatus};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
pub use serde_json::Value;
pub use {schemars, serde};

/// Returns the schema of `A` without keywords that models do not need. Arguments are an object, whatever `A` is.
pub fn schema<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<A>();
    let mut object = match schema.to_value() {
        Value::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => schema,
        _ => serde_json::Map::from_iter([("type".to_owned(), "object".into())]),
    };
    object.shift_remove("title");
    // Some providers refuse a schema without it.
    object.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    Value::Object(object)
}

/// Parses `args` as an `A`; a function without parameters ignores them.
///
/// # Errors
/// When they do not fit, with a message for the model.
pub fn read<A: DeserializeOwned>(spec: &ToolSpec, args: Value) -> Result<A, ToolError> {
    let none = args.as_object().is_some_and(serde_json::Map::is_empty);
    let read = serde_json::from_value(args).or_else(|error| match none {
        true => serde_json::from_value(Value::Null).map_err(|_| error),
        false => Err(error),
    });
    read.map_err(|error| ToolError(format!("The arguments of `{}` are wrong: {error}", spec.name)))
}

/// Converts the return value of a function: a text unchanged, `()` as no text, and anything else as JSON.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn outcome(spec: &ToolSpec, returned: impl Serialize) -> Result<ToolResult, ToolError> {
    let unwritten = |error| ToolError(format!("What `{}` returned is not JSON: {error}", spec.name));
    let parts = match serde_json::to_value(returned).map_err(unwritten)? {
        Value::Null => Vec::new(),
        Value::String(text) => vec![Part::text(text)],
        value => vec![Part::Data(value)],
    };
    Ok(ToolResult::new(ToolStatus::Done, parts))
}
