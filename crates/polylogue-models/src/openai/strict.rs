//! Which JSON schemas OpenAI enforces. It refuses a request with another one that is said to be enforced.
//!
//! <https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas>

use polylogue_core::schema::can_be;
use polylogue_core::{Capability, Params};
use serde_json::{Map, Value};

use crate::schema::is_of_object;

/// Maximum depth of strict schemas.
const MAX_DEPTH: usize = 10;

/// Maximum size of strict schemas, as JSON in bytes: below the limits on properties and on the length of their names.
const MAX_SIZE: usize = 60_000;

/// Maximum number of constants of strict schemas.
const MAX_CONSTANTS: usize = 1000;

/// Keywords that strict schemas can have with any value, next to those with schemas, constants and formats. Of others, such as
/// `default` and `minLength`, it is documented or reported that some models refuse them.
const KEYWORDS: [&str; 15] = [
    "$schema", "type", "title", "description", "const", "pattern", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "required", "additionalProperties",
];

/// Formats of texts that strict schemas can have.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Whether `schema` is one that OpenAI accepts as strict: that of an object, in which every value has a type, and every object is
/// closed and has all its properties required.
pub(crate) fn is_strict(schema: &Value) -> bool {
    let mut strict = Strict { root: schema, constants: 0 };
    is_of_object(schema)
        && strict.takes(schema, MAX_DEPTH)
        && strict.constants <= MAX_CONSTANTS
        && schema.to_string().len() <= MAX_SIZE
}

/// The form of a reply that OpenAI refuses, strict or not, and why: schemas are those of objects.
pub(crate) fn unenforced(params: &Params) -> Option<(Capability, String)> {
    let schema = params.schema.as_ref().filter(|schema| !is_of_object(schema))?;
    let kind = schema.get("type").filter(|kind| *kind != "object");
    let why = match kind {
        Some(kind) => format!("the API takes only schemas of objects, and the type of this one is {kind}"),
        None => "the API takes only schemas of objects, without alternatives at their root".to_owned(),
    };
    Some((Capability::Schema, why))
}

/// Looks through a schema, and counts the constants that it lists.
struct Strict<'a> {
    root: &'a Value,
    constants: usize,
}

impl Strict<'_> {
    /// Whether `schema` can be part of a strict one, with so many levels below it.
    fn takes(&mut self, schema: &Value, levels: usize) -> bool {
        let (Some(levels), Some(keywords)) = (levels.checked_sub(1), schema.as_object()) else {
            return false;
        };
        if let Some(reference) = keywords.get("$ref") {
            return keywords.len() == 1 && self.leads(reference);
        }
        let kind = keywords.get("type");
        let is_typed = kind.map_or(keywords.contains_key("anyOf"), |kind| can_be("type", kind));
        let is_object = names(kind, "object") || keywords.contains_key("properties");
        let is_list = names(kind, "array");
        is_typed
            && (!is_object || is_closed(keywords))
            && (!is_list || keywords.contains_key("items"))
            && keywords.iter().all(|(keyword, value)| self.takes_keyword(keyword, value, levels))
    }

    fn takes_keyword(&mut self, keyword: &str, value: &Value, levels: usize) -> bool {
        match (keyword, value) {
            // Names of properties are no keywords.
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values().all(|schema| self.takes(schema, levels))
            }
            ("anyOf", Value::Array(schemas)) => schemas.iter().all(|schema| self.takes(schema, levels)),
            ("items", schema) => self.takes(schema, levels),
            ("enum", Value::Array(values)) => {
                self.constants += values.len();
                true
            }
            ("format", Value::String(format)) => FORMATS.contains(&format.as_str()),
            (keyword, _) => KEYWORDS.contains(&keyword),
        }
    }

    /// Whether a `$ref` leads to a place in the schema.
    fn leads(&self, reference: &Value) -> bool {
        let place = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
        place.is_some_and(|place| self.root.pointer(place).is_some())
    }
}

/// Whether a `type` is `name`, or has it.
fn names(kind: Option<&Value>, name: &str) -> bool {
    kind.is_some_and(|kind| {
        kind == name || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
    })
}

fn is_closed(keywords: &Map<String, Value>) -> bool {
    let required: Vec<&str> = keywords
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let all_required = keywords
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| properties.keys().all(|name| required.contains(&name.as_str())));
    all_required && keywords.get("additionalProperties") == Some(&Value::Bool(false))
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
