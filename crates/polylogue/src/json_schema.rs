//! Validates values against a JSON Schema, as far as it matters for arguments and answers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use polylogue_core::text;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

/// Limit on errors in one message.
const MAX_FLAWS: usize = 5;

/// Limit on depth; recursive schemas have no end.
const MAX_DEPTH: usize = 64;

/// Limit on steps: nested `anyOf` could take forever.
const MAX_STEPS: u32 = 20_000;

/// Limit on the compiled size of a pattern, in bytes. A larger one is not checked.
const MAX_PATTERN: usize = 1 << 20;

/// What matches other letters in ECMAScript, whose patterns these are: only ASCII, or all but that.
const CLASSES: [&str; 8] = [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\B"];

/// Checks `value` against `schema`.
///
/// Supports `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`, `allOf`, `anyOf`,
/// `oneOf` (as `anyOf`), `$ref` within the schema, `pattern`, and the limits on numbers, strings and lists. Ignores everything
/// else, such as `format` and `not`, and patterns with what the `regex` crate does not have, such as `(?=`.
///
/// # Errors
/// The first errors, each with its location, for the model.
pub(crate) fn check(value: &Value, schema: &Value) -> Result<(), String> {
    let shared = Shared { steps: Cell::new(MAX_STEPS), patterns: RefCell::default() };
    let mut check = Check { root: schema, shared: &shared, flaws: Vec::new() };
    check.look("", value, schema, MAX_DEPTH);
    if check.flaws.is_empty() { Ok(()) } else { Err(check.flaws.join("; ")) }
}

/// Whether an object can satisfy `schema`: JSON mode writes nothing else.
pub(crate) fn is_of_objects(schema: &Value) -> bool {
    let of_type = match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    };
    let forms = |name: &str| schema.get(name).and_then(Value::as_array);
    of_type && ["anyOf", "oneOf"].into_iter().filter_map(forms).all(|forms| forms.iter().any(is_of_objects))
}

/// What is shared by all parts of a check.
struct Shared<'s> {
    /// The steps that are left.
    steps: Cell<u32>,
    /// The patterns that were met; `None` for those that are not checked.
    patterns: RefCell<BTreeMap<&'s str, Option<Regex>>>,
}

impl<'s> Shared<'s> {
    fn matches(&self, pattern: &'s str, text: &str) -> bool {
        if !text.is_ascii() && CLASSES.iter().any(|class| pattern.contains(class)) {
            return true;
        }
        let compiled = || RegexBuilder::new(pattern).size_limit(MAX_PATTERN).build().ok();
        let mut patterns = self.patterns.borrow_mut();
        let found = patterns.entry(pattern).or_insert_with(compiled);
        found.as_ref().is_none_or(|found| found.is_match(text))
    }
}

struct Check<'s, 'c> {
    root: &'s Value,
    shared: &'c Shared<'s>,
    flaws: Vec<String>,
}

impl<'s> Check<'s, '_> {
    fn flaw(&mut self, at: &str, what: &str) {
        if self.flaws.len() < MAX_FLAWS {
            let place = at.strip_prefix('/').filter(|at| !at.is_empty()).map(|at| format!("`{at}` "));
            self.flaws.push(format!("{}{what}", place.unwrap_or_else(|| "the whole ".into())));
        }
    }

    fn look(&mut self, at: &str, value: &Value, schema: &'s Value, depth: usize) {
        let (Some(deeper), Some(steps)) = (depth.checked_sub(1), self.shared.steps.get().checked_sub(1))
        else {
            return;
        };
        self.shared.steps.set(steps);
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return self.flaw(at, "must not be there"),
            _ => return,
        };
        if let Some(target) = self.target(schema) {
            self.look(at, value, target, deeper);
        }
        self.look_at_kind(at, value, schema);
        self.look_at_limits(at, value, schema);
        match value {
            Value::Object(members) => self.look_at_members(at, members, schema, deeper),
            Value::Array(items) => self.look_at_items(at, items, schema, deeper),
            Value::String(text) => self.look_at_pattern(at, text, schema),
            _ => {}
        }
        self.look_at_forms(at, value, schema, deeper);
    }

    /// The target of `$ref`, if it is in the schema.
    fn target(&self, schema: &Map<String, Value>) -> Option<&'s Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    fn look_at_kind(&mut self, at: &str, value: &Value, schema: &Map<String, Value>) {
        let kinds: Vec<&str> = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(value, kind)) {
            self.flaw(at, &format!("must be of type {}; got {}", kinds.join(" or "), got(value)));
        }
        let allowed = schema.get("enum").and_then(Value::as_array);
        if let Some(allowed) = allowed.filter(|allowed| !allowed.contains(value)) {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            self.flaw(at, &format!("must be one of {}; got {}", allowed.join(", "), got(value)));
        }
        if let Some(only) = schema.get("const").filter(|only| *only != value) {
            self.flaw(at, &format!("must be {only}; got {}", got(value)));
        }
    }

    fn look_at_limits(&mut self, at: &str, value: &Value, schema: &Map<String, Value>) {
        let (size, [least, most], verb) = match value {
            Value::Number(number) => (number.as_f64(), ["minimum", "maximum"], "be"),
            Value::String(text) => {
                (size(text.chars().count()), ["minLength", "maxLength"], "have a length of")
            }
            Value::Array(items) => (size(items.len()), ["minItems", "maxItems"], "have a length of"),
            _ => return,
        };
        let Some(size) = size else { return };
        let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
        let exclusive = |name: &str| limit(name).filter(|_| value.is_number());
        for (limit, how) in [
            (limit(least).filter(|least| size < *least), "at least"),
            (limit(most).filter(|most| size > *most), "at most"),
            (exclusive("exclusiveMinimum").filter(|least| size <= *least), "more than"),
            (exclusive("exclusiveMaximum").filter(|most| size >= *most), "less than"),
        ] {
            if let Some(limit) = limit {
                self.flaw(at, &format!("must {verb} {how} {limit}; got {size}"));
            }
        }
    }

    fn look_at_pattern(&mut self, at: &str, text: &str, schema: &'s Map<String, Value>) {
        let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else { return };
        if !self.shared.matches(pattern, text) {
            let (pattern, got) = (text::excerpt(pattern, 80), text::excerpt(text, 80));
            self.flaw(at, &format!("must match the pattern {pattern}; got \"{got}\""));
        }
    }

    fn look_at_members(
        &mut self,
        at: &str,
        members: &Map<String, Value>,
        schema: &'s Map<String, Value>,
        depth: usize,
    ) {
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.flaw(&format!("{at}/{name}"), "is missing");
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, member) in members {
            let at = format!("{at}/{name}");
            match (properties.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
                (Some(schema), _) => self.look(&at, member, schema, depth),
                (None, Some(Value::Bool(false))) => self.flaw(&at, "is not known"),
                (None, Some(schema)) => self.look(&at, member, schema, depth),
                (None, None) => {}
            }
        }
    }

    fn look_at_items(&mut self, at: &str, items: &[Value], schema: &'s Map<String, Value>, depth: usize) {
        let Some(schema) = schema.get("items") else { return };
        for (index, item) in items.iter().enumerate() {
            self.look(&format!("{at}/{index}"), item, schema, depth);
        }
    }

    fn look_at_forms(&mut self, at: &str, value: &Value, schema: &'s Map<String, Value>, depth: usize) {
        let forms = |name: &str| schema.get(name).and_then(Value::as_array);
        for schema in forms("allOf").into_iter().flatten() {
            self.look(at, value, schema, depth);
        }
        for forms in ["anyOf", "oneOf"].into_iter().filter_map(forms) {
            let tries: Vec<Vec<String>> =
                forms.iter().map(|form| self.flaws_of(at, value, form, depth)).collect();
            if tries.iter().all(|flaws| !flaws.is_empty()) {
                // The closest alternative is the one that was meant.
                let nearest = tries.into_iter().min_by_key(Vec::len).unwrap_or_default();
                self.flaws.extend(nearest);
                self.flaws.truncate(MAX_FLAWS);
            }
        }
    }

    fn flaws_of(&self, at: &str, value: &Value, schema: &'s Value, depth: usize) -> Vec<String> {
        let mut check = Check { root: self.root, shared: self.shared, flaws: Vec::new() };
        check.look(at, value, schema, depth);
        check.flaws
    }
}

fn size(count: usize) -> Option<f64> {
    u32::try_from(count).ok().map(f64::from)
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

fn got(value: &Value) -> String {
    text::excerpt(&value.to_string(), 80)
}

/// Asks for structured output.
pub(crate) fn form(schema: &Value) -> String {
    format!("Write your answer as JSON that satisfies this JSON Schema, and nothing else:\n{schema}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "count": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
                "kind": {"enum": ["a", "b"]},
                "name": {"type": ["string", "null"], "maxLength": 3},
                "list": {"type": "array", "items": {"$ref": "#/$defs/item"}, "maxItems": 2},
                "form": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"const": 1}},
                         "required": ["x"], "additionalProperties": false}]},
            },
            "required": ["count"],
            "additionalProperties": false,
            "$defs": {"item": {"type": "number"}},
        })
    }

    #[test]
    fn a_value_that_satisfies_the_schema_has_no_flaws() {
        for value in [
            json!({"count": 1}),
            json!({"count": 9.0, "kind": "a", "name": null, "list": [1, 2.5], "form": {"x": 1}}),
            json!({"count": 2, "name": "ünd", "form": null}),
        ] {
            assert_eq!(check(&value, &schema()), Ok(()), "{value}");
        }
        assert_eq!(check(&json!(7), &json!({})), Ok(()));
        assert_eq!(check(&json!(7), &json!(true)), Ok(()));
    }

    #[test]
    fn schema_errors_name_the_position() {
        for (value, flaw) in [
            (json!([]), "the whole must be of type object; got []"),
            (json!({}), "`count` is missing"),
            (json!({"count": "1"}), "`count` must be of type integer; got \"1\""),
            (json!({"count": 1.5}), "`count` must be of type integer; got 1.5"),
            (json!({"count": 0}), "`count` must be at least 1; got 0"),
            (json!({"count": 10}), "`count` must be less than 10; got 10"),
            (json!({"count": 1, "kind": "c"}), "`kind` must be one of \"a\", \"b\"; got \"c\""),
            (json!({"count": 1, "name": "long"}), "`name` must have a length of at most 3; got 4"),
            (json!({"count": 1, "list": [1, "x"]}), "`list/1` must be of type number; got \"x\""),
            (json!({"count": 1, "list": [1, 2, 3]}), "`list` must have a length of at most 2; got 3"),
            (json!({"count": 1, "form": {"x": 2}}), "`form` must be of type null; got {\"x\":2}"),
            (json!({"count": 1, "more": 1}), "`more` is not known"),
            (json!({"kind": "c"}), "`count` is missing; `kind` must be one of \"a\", \"b\"; got \"c\""),
        ] {
            assert_eq!(check(&value, &schema()).unwrap_err(), flaw);
        }
    }

    #[test]
    fn patterns_are_checked_where_both_dialects_read_them_alike() {
        let schema = |pattern: &str| json!({"properties": {"s": {"type": "string", "pattern": pattern}}});
        for (pattern, text, is_right) in [
            ("^a", "abc", true),
            ("^a", "bac", false),
            ("b", "abc", true),
            (r"^\d{4}-\d{2}$", "2026-11", true),
            (r"^\d{4}-\d{2}$", "2026-1", false),
            ("^[äö]+$", "äö", true),
            ("^[äö]+$", "äu", false),
            // ECMAScript's `\W` matches `é`, that of the crate does not.
            (r"^\W$", "é", true),
            // Unknown to the crate, wrong, or too large.
            ("^(?!a)", "a", true),
            ("(", "a", true),
            (r"(\w{200}){200}", "a", true),
        ] {
            let checked = check(&json!({"s": text}), &schema(pattern));
            assert_eq!(checked.is_ok(), is_right, "{pattern} {text}: {checked:?}");
        }
        let flaw = check(&json!({"s": "bbb"}), &schema("^a")).unwrap_err();
        assert_eq!(flaw, "`s` must match the pattern ^a; got \"bbb\"");
        assert_eq!(check(&json!({"s": 7}), &json!({"properties": {"s": {"pattern": "^a"}}})), Ok(()));
    }

    #[test]
    fn schemas_of_objects_differ_from_others() {
        for (schema, expected) in [
            (schema(), true),
            (json!({}), true),
            (json!({"type": ["object", "null"]}), true),
            (json!({"anyOf": [{"type": "null"}, {"type": "object"}]}), true),
            (json!({"anyOf": [{"type": "null"}, {"type": "array"}]}), false),
            (json!({"type": "array", "items": {"type": "object"}}), false),
            (json!({"type": ["string", "null"]}), false),
        ] {
            assert_eq!(is_of_objects(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_schema_without_end_is_looked_through_within_bounds() {
        let endless = json!({"$ref": "#"});
        assert_eq!(check(&json!({}), &endless), Ok(()));
        let forms = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert_eq!(check(&json!({}), &forms), Ok(()));
        assert_eq!(check(&json!({}), &json!({"$ref": "#/no/where"})), Ok(()));
        assert_eq!(check(&json!({}), &json!({"anyOf": []})), Ok(()));
        assert_eq!(check(&json!({}), &json!(false)).unwrap_err(), "the whole must not be there");
    }
}
