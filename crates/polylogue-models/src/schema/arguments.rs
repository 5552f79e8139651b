//! The schema of a tool's arguments as every provider takes it: that of an object, with its properties at the root.
//!
//! OpenAI and Anthropic refuse a whole request because of one tool with alternatives at the root of its schema (`anyOf` and its
//! like). These are merged into one object, which has the properties of all alternatives and requires what all of them require; the
//! description lists the alternatives. Arguments keep their form, so that tools, approvals and replays see what they saw before. The
//! object allows more than the tool, which checks its arguments itself, as does every call by text.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{MAX_DEPTH, Object, Place, describe, each_inner, is_of_object, place, strings, target};

/// Limit on the JSON values of the schemas that are merged: references can fork at every step, and each step copies what it has. A
/// schema can be that of a tool server that no person has reviewed.
const MAX_VALUES: usize = 10_000;

/// The schema of an object that allows what `schema` allows.
pub(crate) fn merged(schema: &Value) -> Cow<'_, Value> {
    let has_properties = schema.get("properties").is_some_and(Value::is_object);
    if is_of_object(schema) && has_properties && schema.get("$ref").is_none() {
        return Cow::Borrowed(schema);
    }
    let shape = Merging { root: schema, left: MAX_VALUES }.shape(schema, 0).unwrap_or_default();
    let Shape { properties, mut required, notes } = shape;
    required.retain(|name| properties.contains_key(name));
    let mut object = Object::new();
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), properties.into());
    if !required.is_empty() {
        object.insert("required".into(), required.into());
    }
    let others = schema.as_object().into_iter().flatten();
    let others = others.filter(|(keyword, _)| !MERGED.contains(&keyword.as_str()));
    object.extend(others.map(|(keyword, value)| (keyword.clone(), value.clone())));
    describe(&mut object, &notes);
    Cow::Owned(object.into())
}

/// The same as OpenAI takes it, which refuses a list without a schema of its elements at any place.
pub(crate) fn with_items(schema: &Value) -> Cow<'_, Value> {
    let mut schema = merged(schema);
    if lacks_items(&schema) {
        add_items(schema.to_mut());
    }
    schema
}

/// Keywords of the root whose contents are merged or described.
const MERGED: [&str; 10] =
    ["type", "properties", "required", "$ref", "anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// What an object can have and must have, and in words what else is asked of it.
#[derive(Default)]
struct Shape {
    properties: Object,
    required: Vec<String>,
    notes: Vec<String>,
}

impl Shape {
    /// Adds what another schema says of the same object. What is said first counts.
    fn join(&mut self, other: Self) {
        for (name, schema) in other.properties {
            self.properties.entry(name).or_insert(schema);
        }
        let further = other.required.into_iter().filter(|name| !self.required.contains(name));
        let further: Vec<String> = further.collect();
        self.required.extend(further);
        self.notes.extend(other.notes);
    }

    /// An object that satisfies one of `shapes`; `None` if there are none.
    fn one_of(shapes: Vec<Self>) -> Option<Self> {
        let note = (shapes.len() > 1).then(|| listed(&shapes));
        let mut shapes = shapes.into_iter();
        let mut all = shapes.next()?;
        for shape in shapes {
            all.required.retain(|name| shape.required.contains(name));
            for (name, schema) in shape.properties {
                match all.properties.get_mut(&name) {
                    Some(known) => either(known, schema),
                    None => drop(all.properties.insert(name, schema)),
                }
            }
        }
        if let Some(note) = note {
            all.notes = vec![note];
        }
        Some(all)
    }

    /// Its names in words: constants with their value, what can be missing with a `?`.
    fn names(&self) -> String {
        let given = self.properties.iter().map(|(name, schema)| (name, schema.get("const")));
        let others = self.required.iter().filter(|name| !self.properties.contains_key(*name));
        let all = given.chain(others.map(|name| (name, None)));
        let named = all.map(|(name, value)| match value {
            Some(value) => format!("{name} = {value}"),
            None if self.required.contains(name) => name.clone(),
            None => format!("{name}?"),
        });
        let named: Vec<String> = named.collect();
        if named.is_empty() { "nothing else".to_owned() } else { named.join(", ") }
    }
}

fn listed(shapes: &[Shape]) -> String {
    let shapes: Vec<String> = shapes.iter().map(Shape::names).collect();
    format!("arguments in one of these combinations: {}", shapes.join("; "))
}

/// Makes `known` allow what `other` allows, too.
fn either(known: &mut Value, other: Value) {
    if *known == other {
        return;
    }
    if let (Some((kind, mut values)), Some((other_kind, more))) = (constants(known), constants(&other))
        && kind == other_kind
    {
        let further: Vec<Value> = more.into_iter().filter(|value| !values.contains(value)).collect();
        values.extend(further);
        *known = kind.into_iter().chain([("enum".to_owned(), values.into())]).collect::<Object>().into();
        return;
    }
    let forms = match known.as_object_mut() {
        Some(fields) if fields.len() == 1 => fields.get_mut("anyOf").and_then(Value::as_array_mut),
        _ => None,
    };
    match forms {
        Some(forms) if forms.contains(&other) => {}
        Some(forms) => forms.push(other),
        None => *known = json!({"anyOf": [known, other]}),
    }
}

/// The values that a schema lists, and the rest of it.
fn constants(schema: &Value) -> Option<(Object, Vec<Value>)> {
    let mut rest = schema.as_object()?.clone();
    match (rest.shift_remove("const"), rest.shift_remove("enum")) {
        (Some(value), None) => Some((rest, vec![value])),
        (None, Some(Value::Array(values))) => Some((rest, values)),
        _ => None,
    }
}

struct Merging<'a> {
    root: &'a Value,
    /// How many more values are merged. Beyond that, anything is allowed.
    left: usize,
}

impl<'a> Merging<'a> {
    /// The shape of an object that satisfies `schema`; `None` if none does.
    fn shape(&mut self, schema: &'a Value, depth: usize) -> Option<Shape> {
        let keywords = schema.as_object().filter(|_| depth <= MAX_DEPTH);
        let Some(keywords) = keywords.filter(|keywords| self.count(keywords)) else {
            return (*schema != Value::Bool(false)).then(Shape::default);
        };
        if keywords.contains_key("type") && !can_be(keywords, "object") {
            return None;
        }
        let mut shape = Shape {
            properties: keywords.get("properties").and_then(Value::as_object).cloned().unwrap_or_default(),
            required: strings(keywords.get("required")).map(str::to_owned).collect(),
            notes: Vec::new(),
        };
        let forms = |name: &str| keywords.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let reference = keywords.get("$ref").and_then(Value::as_str);
        let reference = reference.and_then(|reference| target(self.root, reference));
        for part in reference.into_iter().chain(forms("allOf")) {
            shape.join(self.shape(part, depth + 1).unwrap_or_default());
        }
        for name in ["anyOf", "oneOf"] {
            let shapes = forms(name).iter().filter_map(|form| self.shape(form, depth + 1)).collect();
            shape.join(Shape::one_of(shapes).unwrap_or_default());
        }
        let others = ["not", "enum", "const"].into_iter();
        let others = others.filter_map(|name| Some(format!("{name}: {}", keywords.get(name)?)));
        shape.notes.extend(others);
        Some(shape)
    }

    /// Counts the values that are copied of a schema. Returns whether they are within the limit.
    fn count(&mut self, keywords: &Object) -> bool {
        let mut copied = COPIED.into_iter().filter_map(|name| keywords.get(name));
        let left = self.left.checked_sub(1).and_then(|left| copied.try_fold(left, left_after));
        self.left = left.unwrap_or_default();
        left.is_some()
    }
}

/// Keywords whose values are copied.
const COPIED: [&str; 5] = ["properties", "required", "not", "enum", "const"];

/// What is left of a number of values after those in `value`; `None` if these are more.
fn left_after(left: usize, value: &Value) -> Option<usize> {
    let left = left.checked_sub(1)?;
    match value {
        Value::Array(values) => values.iter().try_fold(left, left_after),
        Value::Object(fields) => fields.values().try_fold(left, left_after),
        _ => Some(left),
    }
}

/// Whether a list within `schema` has no schema of its elements.
fn lacks_items(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return false };
    let within = keywords.iter().any(|(keyword, value)| match (place(keyword), value) {
        (Some(Place::One), schema) => lacks_items(schema),
        (Some(Place::List), Value::Array(list)) => list.iter().any(lacks_items),
        (Some(Place::Named), Value::Object(named)) => named.values().any(lacks_items),
        _ => false,
    });
    within || can_be(keywords, "array") && !keywords.contains_key("items")
}

fn add_items(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else { return };
    if can_be(keywords, "array") {
        keywords.entry("items").or_insert_with(|| json!({}));
    }
    let _ = each_inner(keywords, |_, inner| {
        add_items(inner);
        Ok::<(), std::convert::Infallible>(())
    });
}

/// Whether the type is `name`, or one of several.
fn can_be(keywords: &Object, name: &str) -> bool {
    let kind = keywords.get("type");
    kind.is_some_and(|kind| kind == name) || strings(kind).any(|kind| kind == name)
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
