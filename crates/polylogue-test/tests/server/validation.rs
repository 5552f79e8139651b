//! What the strictest servers refuse.

use polylogue_test::server::{History, validate, validate_as};
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(ids: &[&str]) -> Value {
    let call = |id| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
    json!({"role": "assistant", "tool_calls": ids.iter().map(call).collect::<Value>()})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

fn system() -> Value {
    json!({"role": "system", "content": "s"})
}

fn body(messages: &[Value]) -> Value {
    json!({"model": "m", "messages": messages})
}

#[test]
fn proper_histories_pass() {
    let call_next_to_text =
        json!({"role": "assistant", "content": "I look", "tool_calls": calls(&["z"])["tool_calls"]});
    let picture = json!([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]);
    for messages in [
        vec![user("a")],
        vec![system(), user("a")],
        vec![json!({"role": "developer", "content": "d"}), user("a"), assistant("b"), user("c")],
        vec![user("a"), calls(&["x", "y"]), tool("y"), tool("x")],
        vec![user("a"), calls(&["x"]), tool("x"), calls(&["y"]), tool("y"), assistant("b"), user("c")],
        vec![user("a"), call_next_to_text, tool("z")],
        vec![json!({"role": "user", "content": picture})],
    ] {
        assert_eq!(validate(&body(&messages)), Ok(()), "{messages:?}");
        assert_eq!(validate_as(&body(&messages), History::Loose), Ok(()));
    }
}

/// A history that is always refused, and why.
fn always_refused() -> Vec<(Vec<Value>, &'static str)> {
    let call = |function: Value| {
        let calls = json!([{"id": "x", "type": "function", "function": function}]);
        vec![user("a"), json!({"role": "assistant", "tool_calls": calls}), tool("x")]
    };
    vec![
        (vec![], "`messages` is empty"),
        (vec![system()], "nothing but a system message"),
        (vec![user("a"), assistant("b")], "the last message is the assistant's"),
        (vec![user("")], "messages[0] has an empty text"),
        (vec![user("a"), assistant(" \n"), user("b")], "messages[1] has an empty text"),
        (vec![json!({"role": "user"})], "has no content"),
        (vec![json!({"role": "user", "content": null})], "has no content"),
        (vec![json!({"role": "user", "content": 1})], "neither text nor a list"),
        (vec![json!({"role": "user", "content": []})], "an empty list"),
        (vec![json!({"role": "user", "content": [{"type": "text", "text": ""}]})], "an empty text"),
        (vec![json!({"role": "user", "content": [{"type": "image_url"}]})], "without an address"),
        (vec![json!({"role": "user", "content": [{"type": "smell"}]})], "unknown type `smell`"),
        (vec![json!({"role": "narrator", "content": "x"})], "unknown role `narrator`"),
        (vec![json!({"content": "x"})], "has no role"),
        (vec![json!("x")], "is not an object"),
        (vec![user("a"), calls(&["x"]), user("b")], "stands before the answer to the call `x`"),
        (vec![user("a"), calls(&["x", "y"]), tool("x")], "the call `y` is not answered"),
        (vec![user("a"), calls(&["x"]), tool("y")], "answers `y`, which is not awaited"),
        (vec![user("a"), calls(&["x"]), tool("x"), tool("x")], "answers `x`, which is not awaited"),
        (vec![user("a"), tool("x")], "answers `x`, which is not awaited"),
        (vec![user("a"), calls(&["x", "x"]), tool("x")], "uses the id `x` again"),
        (vec![user("a"), calls(&["x"]), tool("x"), calls(&["x"]), tool("x")], "uses the id `x` again"),
        (vec![user("a"), calls(&[]), user("b")], "no list of calls"),
        (vec![user("a"), calls(&[""]), tool("")], "a call without id"),
        (call(json!({"name": "t u", "arguments": "{}"})), "illegal name `t u`"),
        (call(json!({"name": "t", "arguments": {}})), "arguments are no text"),
        (call(json!({"name": "t", "arguments": "[1]"})), "arguments are no JSON object"),
        (call(json!({"name": "t", "arguments": "{oops"})), "arguments are no JSON object"),
    ]
}

#[test]
fn improper_histories_are_refused_with_the_place_and_the_rule() {
    for (messages, why) in always_refused() {
        for history in [History::Strict, History::Loose] {
            let flaw = validate_as(&body(&messages), history).unwrap_err();
            assert!(flaw.contains(why), "{flaw} instead of {why}");
        }
    }
}

#[test]
fn only_strict_servers_ask_for_turns() {
    for (messages, why) in [
        (vec![user("a"), user("b")], "messages[1] is a `user` after a `user`"),
        (vec![user("a"), assistant("b"), assistant("c"), user("d")], "is a `assistant` after a `assistant`"),
        (vec![assistant("a"), user("b")], "messages[0] is a `assistant` at the beginning"),
        (vec![system(), assistant("a"), user("b")], "is a `assistant` after a `system`"),
        (vec![system(), system(), user("a")], "is a `system` after a `system`"),
        (vec![user("a"), system(), user("b")], "is a `system` after a `user`"),
    ] {
        let flaw = validate(&body(&messages)).unwrap_err();
        assert!(flaw.contains(why), "{flaw} instead of {why}");
        assert_eq!(validate_as(&body(&messages), History::Loose), Ok(()));
    }
    // Templates differ here; a behavior of the server refuses it.
    assert_eq!(validate(&body(&[user("a"), calls(&["x"]), tool("x"), user("b")])), Ok(()));
}

#[test]
fn bodies_that_are_no_requests_are_refused_in_strict_mode() {
    for bad in [json!(null), json!([]), json!({"model": "m"}), json!({"model": "m", "messages": {}})] {
        assert!(validate(&bad).is_err(), "{bad}");
        assert_eq!(validate_as(&bad, History::Any), Ok(()));
    }
}

#[test]
fn parameters_are_checked() {
    let taking = |parameters: Value| json!([{"type": "function", "function": {"name": "t", "parameters": parameters}}]);
    let empty = json!({"type": "object", "properties": {}});
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": empty}});
    let schema = |schema: Value| json!({"type": "json_schema", "json_schema": schema});
    let closed = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let cases = [
        ("model", json!("m"), json!("")),
        ("temperature", json!(0.2), json!(2.5)),
        ("top_p", json!(1), json!("1")),
        ("presence_penalty", json!(-1), json!(3)),
        ("max_tokens", json!(1), json!(0)),
        ("max_completion_tokens", json!(1), json!(1.5)),
        ("seed", json!(-3), json!(0.5)),
        ("top_k", json!(40), json!("40")),
        ("stop", json!("x"), json!("")),
        ("stop", json!(["x", "y"]), json!(["a", "b", "c", "d", "e"])),
        ("stop", json!(["x"]), json!([])),
        ("stream", json!(false), json!("yes")),
        ("response_format", json!({"type": "json_object"}), json!({"type": "yaml"})),
        (
            "response_format",
            schema(json!({"name": "s", "schema": {}})),
            schema(json!({"name": "a b", "schema": {}})),
        ),
        (
            "response_format",
            schema(json!({"name": "s", "strict": true, "schema": closed})),
            schema(json!({"name": "s", "strict": true, "schema": {"type": "array", "items": closed}})),
        ),
        ("response_format", json!({"type": "text"}), schema(json!({"name": "s"}))),
        ("tools", json!([tool("t")]), json!([])),
        ("tools", json!([tool("t"), tool("u")]), json!([tool("t"), tool("t")])),
        ("tools", json!([{"type": "function", "function": {"name": "t"}}]), json!([tool("a.b")])),
        ("tools", taking(empty.clone()), taking(json!([]))),
        ("tools", taking(empty.clone()), taking(json!({"properties": {}}))),
        ("tools", taking(empty.clone()), taking(json!({"type": "object"}))),
        ("tools", taking(empty.clone()), taking(json!({"type": "object", "properties": {}, "anyOf": []}))),
        (
            "tools",
            taking(json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}})),
            taking(json!({"type": "object", "properties": {"a": {"type": "array"}}})),
        ),
        ("any_other_field", json!({"of": "a server"}), Value::Null),
    ];
    for (field, good, bad) in cases {
        let with = |value: &Value| {
            let mut body = body(&[user("a")]);
            body[field] = value.clone();
            validate(&body)
        };
        assert_eq!(with(&good), Ok(()), "{field}: {good}");
        assert_eq!(with(&bad).is_err(), !bad.is_null(), "{field}: {bad}");
    }
}

#[test]
fn fields_that_need_or_exclude_each_other_are_checked() {
    let with = |fields: Value| {
        let mut body = body(&[user("a")]);
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        validate(&body)
    };
    assert!(with(json!({"stream_options": {"include_usage": true}})).is_err());
    assert!(with(json!({"stream_options": {"include_usage": true}, "stream": false})).is_err());
    assert_eq!(with(json!({"stream_options": {"include_usage": true}, "stream": true})), Ok(()));
    assert!(with(json!({"tool_choice": "auto"})).is_err());
    assert!(with(json!({"parallel_tool_calls": true})).is_err());
    assert!(with(json!({"max_tokens": 1, "max_completion_tokens": 1})).is_err());
}
