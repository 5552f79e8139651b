//! Fields of bodies, checked by the schemas that `/openapi.json` has for them: what is wrong, as a JSON pointer and in plain words.

use polylogue_config::suggest;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// Refuses the value at `pointer` of a body if `schema` does not allow it: other types, numbers below the minimum, words that are not
/// listed, unknown and missing fields, at any depth. An object has no other fields than its `properties`, unless `additionalProperties`
/// allows them. Numbers are whole and not negative. Lengths of texts are for handlers to check.
pub(crate) fn check(value: &Value, schema: &Value, pointer: &str) -> Result<(), Problem> {
    if let Some(expected) = expected_instead(value, schema) {
        let what = format!("{} must be {expected}", shown(pointer));
        return Err(Problem::bad_request(what).at(pointer, format!("must be {expected}")));
    }
    match (value, schema.get("items")) {
        (Value::Object(fields), _) => check_fields(fields, schema, pointer),
        (Value::Array(items), Some(schema)) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| check(item, schema, &format!("{pointer}/{index}")))
        }
        _ => Ok(()),
    }
}

fn check_fields(fields: &Map<String, Value>, schema: &Value, pointer: &str) -> Result<(), Problem> {
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties").filter(|others| **others != false);
    for (name, value) in fields {
        let at = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        match known.and_then(|known| known.get(name)).or(others) {
            Some(Value::Bool(_)) => {}
            Some(schema) => check(value, schema, &at)?,
            None => {
                let known: Vec<&str> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
                let what = format!("{} has an unknown field `{name}`", shown(pointer));
                return Err(Problem::bad_request(what)
                    .at(at, "unknown field")
                    .hint(suggest::hint(name, known.iter().copied())));
            }
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    match required.filter_map(Value::as_str).find(|name| !fields.contains_key(*name)) {
        None => Ok(()),
        Some(name) => Err(Problem::bad_request(format!("{} has no field `{name}`", shown(pointer)))
            .at(format!("{pointer}/{name}"), "required")),
    }
}

/// What the value must be, if it is something else.
fn expected_instead(value: &Value, schema: &Value) -> Option<String> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let listed = || format!("one of {}", suggest::listed(words.iter().filter_map(Value::as_str)));
        return (!words.contains(value)).then(listed);
    }
    let (is_that, expected) = match schema.get("type").and_then(Value::as_str)? {
        "string" => (value.is_string(), "text"),
        "boolean" => (value.is_boolean(), "`true` or `false`"),
        "array" => (value.is_array(), "a list"),
        "object" => (value.is_object(), "an object"),
        "integer" => {
            let least = schema.get("minimum").and_then(Value::as_u64).unwrap_or_default();
            let is_that = value.as_u64().is_some_and(|number| number >= least);
            return (!is_that).then(|| format!("a whole number of at least {least}"));
        }
        _ => return None,
    };
    (!is_that).then(|| expected.to_owned())
}

/// The place in the body as people write it: `limits.calls`, `scopes[0]`.
fn shown(pointer: &str) -> String {
    if pointer.is_empty() {
        return "the body".to_owned();
    }
    let path = pointer.split('/').skip(1).fold(String::new(), |path, part| match part.parse::<usize>() {
        Ok(index) => format!("{path}[{index}]"),
        Err(_) if path.is_empty() => part.to_owned(),
        Err(_) => format!("{path}.{part}"),
    });
    format!("`{path}`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_wrong_field_is_named_at_any_depth() {
        let count = json!({"type": "integer", "minimum": 1});
        let schema = json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "run": {"type": "boolean"},
                "when": {"enum": ["now", "later"]},
                "limits": {"type": "object", "additionalProperties": false, "properties": {"calls": count}},
                "inputs": {"type": "object", "additionalProperties": {"type": "string"}},
                "any": {"type": "object", "additionalProperties": true},
                "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            },
        });
        let with = |field: Value| {
            let mut body = json!({"name": "x"});
            body.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
            check(&body, &schema, "")
        };
        for fine in [
            json!({"run": true, "when": "now", "limits": {"calls": 1}, "inputs": {"a": ""}}),
            json!({"any": {"a": {"b": [1]}}, "list": [{}, {"n": 0}]}),
        ] {
            assert!(with(fine.clone()).is_ok(), "{fine}");
        }
        for (wrong, param, words) in [
            (json!({"name": null}), "name", "`name` must be text"),
            (json!({"run": "yes"}), "run", "`run` must be `true` or `false`"),
            (json!({"when": 1}), "when", "`when` must be one of `now`, `later`"),
            (json!({"limits": 1}), "limits", "`limits` must be an object"),
            (json!({"limits": {"call": 1}}), "limits.call", "`limits` has an unknown field `call`"),
            (
                json!({"limits": {"calls": 0}}),
                "limits.calls",
                "`limits.calls` must be a whole number of at least 1",
            ),
            (
                json!({"limits": {"calls": 1.5}}),
                "limits.calls",
                "`limits.calls` must be a whole number of at least 1",
            ),
            (json!({"inputs": {"a/b": 1}}), "inputs.a~1b", "`inputs.a~1b` must be text"),
            (json!({"list": {}}), "list", "`list` must be a list"),
            (
                json!({"list": [{}, {"n": -1}]}),
                "list.1.n",
                "`list[1].n` must be a whole number of at least 0",
            ),
        ] {
            let problem = with(wrong.clone()).unwrap_err();
            assert_eq!(
                (problem.param().as_deref(), problem.to_string().as_str()),
                (Some(param), words),
                "{wrong}"
            );
        }
        let missing = check(&json!({}), &schema, "").unwrap_err();
        assert_eq!(
            (missing.param().as_deref(), missing.to_string().as_str()),
            (Some("name"), "the body has no field `name`")
        );
    }
}
