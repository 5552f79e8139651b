//! JSON schemas in the forms that providers accept.
//!
//! Each provider enforces a part of JSON Schema and refuses the rest. What a provider cannot enforce moves into the
//! description, where the model reads it; the reply is validated against the full schema in any case. A schema that cannot be
//! sent at all is [`Unfit`], and the caller asks for JSON in words.

pub(crate) mod anthropic;
pub(crate) mod arguments;
pub(crate) mod gemini;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Maximum depth of schemas; deeper ones are unfit.
const MAX_DEPTH: usize = 64;

/// Why a schema cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("it refers to itself")]
    Recursive,
    #[error("an object of it allows properties that it does not list")]
    Open,
    #[error("it has more than {0} optional properties")]
    Optional(usize),
    #[error("it has more than {0} properties with alternatives")]
    Unions(usize),
    #[error("it is nested too deeply")]
    Deep,
    #[error("it refers to something outside of itself, or to nothing")]
    Reference,
    #[error("it allows everything or nothing at a place that needs a type")]
    Untyped,
}

type Object = Map<String, Value>;

/// Where schemas are within a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The value is a schema.
    One,
    /// The value is a list of schemas.
    List,
    /// The value is an object of schemas by name.
    Named,
}

/// Keywords whose values are schemas.
const PLACES: [(&str, Place); 10] = [
    ("properties", Place::Named),
    ("$defs", Place::Named),
    ("definitions", Place::Named),
    ("items", Place::One),
    ("additionalProperties", Place::One),
    ("prefixItems", Place::List),
    ("anyOf", Place::List),
    ("oneOf", Place::List),
    ("allOf", Place::List),
    ("not", Place::One),
];

/// Keywords that OpenAI and Anthropic refuse at the root of a schema.
const NOT_AT_ROOT: [&str; 6] = ["anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// Whether `schema` is that of an object, without alternatives at its root: the only ones that OpenAI takes for replies, and OpenAI
/// and Anthropic for arguments.
pub(crate) fn is_of_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
        && NOT_AT_ROOT.iter().all(|keyword| schema.get(*keyword).is_none())
}

fn place(keyword: &str) -> Option<Place> {
    PLACES.into_iter().find(|(name, _)| *name == keyword).map(|(_, place)| place)
}

/// Applies `to` to every schema within `schema`, but not to itself.
fn each_inner<E>(
    schema: &mut Object,
    mut to: impl FnMut(&str, &mut Value) -> Result<(), E>,
) -> Result<(), E> {
    for (keyword, value) in schema.iter_mut() {
        match (place(keyword), value) {
            (Some(Place::One), value @ Value::Object(_)) => to(keyword, value)?,
            (Some(Place::List), Value::Array(list)) => {
                list.iter_mut().try_for_each(|one| to(keyword, one))?
            }
            (Some(Place::Named), Value::Object(named)) => {
                named.values_mut().try_for_each(|one| to(keyword, one))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes the keywords that `is_kept` refuses; those that limit values are written into the description.
fn move_to_description(schema: &mut Object, is_kept: impl Fn(&str, &Value) -> bool) {
    let mut notes = Vec::new();
    let mut kept = Object::new();
    for (keyword, value) in std::mem::take(schema) {
        if is_kept(&keyword, &value) {
            kept.insert(keyword, value);
        } else if !SILENT.contains(&&*keyword) {
            notes.push(format!("{keyword}: {value}"));
        }
    }
    *schema = kept;
    describe(schema, &notes);
}

/// Keywords that limit nothing, and are left out without a word.
const SILENT: [&str; 6] = ["$schema", "$id", "$comment", "readOnly", "writeOnly", "deprecated"];

fn describe(schema: &mut Object, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    let mut text = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let gap = if text.is_empty() { "" } else { " " };
    let _ = write!(text, "{gap}({})", notes.join(", "));
    schema.insert("description".into(), text.into());
}

/// Replaces a `const` by an `enum` of one value.
fn const_to_enum(schema: &mut Object) {
    if let Some(value) = schema.shift_remove("const") {
        schema.entry("enum").or_insert_with(|| Value::Array(vec![value]));
    }
}

/// What `$ref` refers to: `#`, or `#/$defs/Name` and its like.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Whether every reference leads somewhere within `root`, and none back to where it stands: with `in_optional`, those within
/// optional properties may.
fn check_references(root: &Value, in_optional: bool) -> Result<(), Unfit> {
    let mut references = References { root, in_optional, open: BTreeSet::new(), done: BTreeSet::new() };
    references.walk(root, 0)?;
    // Definitions that are used nowhere, or only by optional properties.
    let definitions =
        ["$defs", "definitions"].into_iter().filter_map(|keyword| root.get(keyword)?.as_object());
    definitions.flat_map(Map::values).try_for_each(|definition| references.walk(definition, 0))
}

struct References<'a> {
    root: &'a Value,
    in_optional: bool,
    /// Those that are being followed.
    open: BTreeSet<&'a str>,
    /// Those that were followed to their ends: each is followed once.
    done: BTreeSet<&'a str>,
}

impl<'a> References<'a> {
    fn walk(&mut self, schema: &'a Value, depth: usize) -> Result<(), Unfit> {
        if depth > MAX_DEPTH {
            return Err(Unfit::Deep);
        }
        let Some(schema) = schema.as_object() else { return Ok(()) };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            self.follow(reference, depth)?;
        }
        for (keyword, value) in schema {
            match (keyword.as_str(), place(keyword), value) {
                // Definitions are looked at where they are used.
                ("$defs" | "definitions", ..) => {}
                ("properties", _, Value::Object(properties)) => {
                    self.properties(properties, schema.get("required"), depth)?;
                }
                (_, Some(Place::One), value) => self.walk(value, depth + 1)?,
                (_, Some(Place::List), Value::Array(list)) => {
                    list.iter().try_for_each(|one| self.walk(one, depth + 1))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn properties(
        &mut self,
        properties: &'a Object,
        required: Option<&Value>,
        depth: usize,
    ) -> Result<(), Unfit> {
        for (name, property) in properties {
            let reference = property.get("$ref").and_then(Value::as_str);
            let may_lead_back = self.in_optional && !strings(required).any(|required| required == name);
            match reference.filter(|_| may_lead_back) {
                Some(reference) => _ = target(self.root, reference).ok_or(Unfit::Reference)?,
                None => self.walk(property, depth + 1)?,
            }
        }
        Ok(())
    }

    fn follow(&mut self, reference: &'a str, depth: usize) -> Result<(), Unfit> {
        let to = target(self.root, reference).ok_or(Unfit::Reference)?;
        if self.done.contains(reference) {
            return Ok(());
        }
        if !self.open.insert(reference) || reference == "#" {
            return Err(Unfit::Recursive);
        }
        self.walk(to, depth + 1)?;
        self.open.remove(reference);
        self.done.insert(reference);
        Ok(())
    }
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
