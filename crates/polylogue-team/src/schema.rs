//! The JSON Schema of team files, made of the types in `team.rs`.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::team::Team;

/// The JSON Schema (draft 2020-12) of team files, for editors and for programs that write such files.
///
/// It is the very schema by which files are read, so a file that an editor accepts has no wrong keys and types here.
/// What a schema cannot say, such as that a participant exists, only [`load`](crate::load) checks.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema =
            SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Team>().to_value();
        tidy(&mut schema);
        schema
    })
}

/// That something optional is nothing when it is left out goes without saying, and lines of a comment are no lines of
/// a description.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("default").is_some_and(is_empty) {
                object.shift_remove("default");
            }
            if let Some(Value::String(text)) = object.get_mut("description") {
                let paragraphs: Vec<String> =
                    text.split("\n\n").map(|text| text.replace('\n', " ")).collect();
                *text = paragraphs.join("\n\n");
            }
            bound(object);
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Gives a whole number the bounds of its type, within the numbers that every reader of JSON takes exactly.
fn bound(schema: &mut Map<String, Value>) {
    const EXACT: i64 = 1 << 53;
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint16") => (0, i64::from(u16::MAX)),
        Some("uint32") => (0, i64::from(u32::MAX)),
        Some("uint64") => (0, EXACT),
        Some("int64") => (-EXACT, EXACT),
        _ => return,
    };
    schema.entry("minimum").or_insert_with(|| least.into());
    schema.entry("maximum").or_insert_with(|| most.into());
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}
