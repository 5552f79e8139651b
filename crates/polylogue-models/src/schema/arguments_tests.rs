use super::*;

/// A conversion of schemas, and its cases: a schema, and what becomes of it.
fn each(convert: fn(&Value) -> Cow<'_, Value>, cases: impl IntoIterator<Item = (Value, Value)>) {
    for (schema, expected) in cases {
        assert_eq!(convert(&schema).to_string(), expected.to_string(), "{schema}");
        // Once converted, it is kept.
        assert!(matches!(convert(&expected), Cow::Borrowed(_)), "{expected}");
    }
}

#[test]
fn the_schema_of_an_object_stays_as_the_tool_wrote_it() {
    let schema =
        json!({"required": ["a"], "properties": {"a": {"anyOf": [{"type": "string"}]}}, "type": "object"});
    // As text, because equal objects can have another order.
    let text = schema.to_string();
    assert!(matches!(merged(&schema), Cow::Borrowed(same) if format!("{same}") == text));
}

#[test]
fn a_schema_without_type_or_properties_gets_them() {
    let nothing = || json!({"type": "object", "properties": {}});
    let a = json!({"a": {"type": "string"}});
    each(
        merged,
        [
            (json!({}), nothing()),
            (json!(true), nothing()),
            (json!(null), nothing()),
            (json!({"type": "object"}), nothing()),
            (json!({"type": "string"}), nothing()),
            (
                json!({"type": ["object", "null"], "properties": a}),
                json!({"type": "object", "properties": a}),
            ),
            (
                json!({"description": "Any.", "additionalProperties": {"type": "string"}}),
                json!({"type": "object", "properties": {}, "description": "Any.",
                    "additionalProperties": {"type": "string"}}),
            ),
        ],
    );
}

#[test]
fn alternatives_become_one_object_that_requires_what_all_of_them_require() {
    let text = json!({"type": "string"});
    let combinations = |all: &str| format!("(arguments in one of these combinations: {all})");
    each(
        merged,
        [
            // One of two: frequent in schemas of MCP servers.
            (
                json!({"type": "object", "properties": {"id": text, "path": text, "depth": text}, "required": ["depth"],
                    "anyOf": [{"required": ["id"]}, {"required": ["path"]}]}),
                json!({"type": "object", "properties": {"id": text, "path": text, "depth": text}, "required": ["depth"],
                    "description": combinations("id; path")}),
            ),
            // A union of structs with a tag.
            (
                json!({"description": "What to read.", "oneOf": [
                    {"type": "object", "properties": {"kind": {"type": "string", "const": "file"}, "path": text},
                     "required": ["kind", "path"], "additionalProperties": false},
                    {"type": "object", "properties": {"kind": {"type": "string", "const": "web"}, "url": text, "path": {"type": "integer"}},
                     "required": ["kind", "url"], "additionalProperties": false},
                    {"type": "null"},
                ]}),
                json!({"type": "object", "properties": {
                        "kind": {"type": "string", "enum": ["file", "web"]},
                        "path": {"anyOf": [text, {"type": "integer"}]},
                        "url": text,
                    }, "required": ["kind"],
                    "description": format!("What to read. {}", combinations("kind = \"file\", path; kind = \"web\", url, path?"))}),
            ),
            // All of several say something of the same object.
            (
                json!({"allOf": [{"properties": {"a": text}, "required": ["a"]}, {"properties": {"a": {}, "b": text}, "required": ["b"]}]}),
                json!({"type": "object", "properties": {"a": text, "b": text}, "required": ["a", "b"]}),
            ),
            // What no object can be, and what cannot be merged.
            (
                json!({"type": "object", "anyOf": [{"type": "array"}, {"properties": {"a": text}, "required": ["a"]}],
                    "not": {"required": ["b"]}}),
                json!({"type": "object", "properties": {"a": text}, "required": ["a"],
                    "description": "(not: {\"required\":[\"b\"]})"}),
            ),
            (
                json!({"anyOf": [{"properties": {"a": text}, "required": ["a"]}, true]}),
                json!({"type": "object", "properties": {"a": text}, "description": combinations("a; nothing else")}),
            ),
        ],
    );
}

#[test]
fn a_reference_at_the_root_is_followed() {
    let definitions = json!({
        "Read": {"anyOf": [{"$ref": "#/$defs/File"}, {"$ref": "#/$defs/Web"}]},
        "File": {"properties": {"path": {"$ref": "#/$defs/Path"}}, "required": ["path"]},
        "Web": {"properties": {"url": {"type": "string"}}, "required": ["url"]},
        "Path": {"type": "string"},
    });
    each(
        merged,
        [
            (
                json!({"$ref": "#/$defs/Read", "$defs": definitions}),
                json!({"type": "object", "properties": {"path": {"$ref": "#/$defs/Path"}, "url": {"type": "string"}},
                    "$defs": definitions, "description": "(arguments in one of these combinations: path; url)"}),
            ),
            (json!({"$ref": "#/$defs/Gone"}), json!({"type": "object", "properties": {}})),
            (json!({"$ref": "#"}), json!({"type": "object", "properties": {}})),
        ],
    );
}

/// References that fork at every step, and those that lead back, are followed so often and no more.
#[test]
fn schemas_without_end_are_merged_within_bounds() {
    let fork = |index: usize| {
        let next = json!({"$ref": format!("#/$defs/D{}", index + 1)});
        (format!("D{index}"), json!({"anyOf": [next, next, {"$ref": "#/$defs/D0"}]}))
    };
    let definitions: Object = (0..60).map(fork).collect();
    let merged = merged(&json!({"$ref": "#/$defs/D0", "$defs": definitions})).into_owned();
    assert_eq!((&merged["type"], &merged["properties"]), (&json!("object"), &json!({})));
}

/// What each step copies counts, too.
#[test]
fn schemas_of_many_values_are_merged_within_bounds() {
    let constants = |count: usize| json!({"enum": (0..count).collect::<Vec<usize>>()});
    let with = |name: &str, count| json!({"type": "object", "properties": {name: constants(count)}});
    let names = |[a, b]: [usize; 2]| -> Vec<String> {
        let merged = merged(&json!({"allOf": [with("a", a), with("b", b)]})).into_owned();
        merged["properties"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(names([600, 600]), ["a", "b"]);
    assert_eq!(names([6_000, 6_000]), ["a"]);
}

/// OpenAI: "array schema missing items".
#[test]
fn a_list_has_a_schema_of_its_elements_where_openai_wants_one() {
    let with = |property: Value| json!({"type": "object", "properties": {"a": property}});
    let of = |schema: Value| json!({"anyOf": [{"type": "null"}, schema]});
    let (list, any) = (json!({"type": "array"}), json!({"type": "array", "items": {}}));
    let nullable = json!({"type": ["array", "null"]});
    each(
        with_items,
        [
            (with(list.clone()), with(any.clone())),
            (with(of(list.clone())), with(of(any.clone()))),
            (with(json!({"type": "array", "items": list})), with(json!({"type": "array", "items": any}))),
            (with(nullable), with(json!({"type": ["array", "null"], "items": {}}))),
            (json!({"properties": {"items": list}}), with_properties(json!({"items": any}))),
        ],
    );
    // A name of a property is no keyword.
    assert!(matches!(with_items(&with(json!({"type": "string"}))), Cow::Borrowed(_)));
}

fn with_properties(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}
