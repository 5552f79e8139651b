//! Operations of OpenAPI documents.

use std::collections::BTreeMap;

use polylogue_core::{AnyTool, Tool as _};
use polylogue_http::{Client, Env};
use polylogue_tools::openapi::{Document, Keys, Operation, tool};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use proptest::prelude::*;

use crate::site::{Site, answer};
use crate::{done, failed};

const PETS: &str = r##"
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: "https://{where}.pets.example/v1", variables: {where: {default: eu}}}]
security: [{token: []}]
paths:
  /pets/{pet-id}:
    parameters:
      - {$ref: "#/components/parameters/PetId"}
      - {name: X-Trace, in: header, schema: {type: string}}
    get:
      operationId: show.pet
      summary: Shows a pet.
      description: With all that is known of it.
      parameters: [{name: fields, in: query, explode: false, style: form, schema: {type: array, items: {type: string, enum: [name, age]}}}]
    delete: {operationId: removePet, security: [{basic: []}]}
  /pets:
    get:
      parameters:
        - {name: tag, in: query, schema: {type: array}}
        - {name: filter, in: query, style: deepObject, schema: {type: object, properties: {age: {type: integer}}}}
        - {name: session, in: cookie, schema: {type: string}}
        - {name: Authorization, in: header, required: true, schema: {type: string}}
      security: [{in_query: []}, {}]
    post:
      operationId: addPet
      requestBody: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
      security: []
  /pets/upload:
    put:
      operationId: upload
      requestBody: {required: true, content: {image/png: {schema: {type: string, format: binary}}}}
  /cookie:
    get: {operationId: cookie, parameters: [{name: c, in: cookie, required: true, schema: {type: string}}]}
components:
  parameters:
    PetId: {name: pet-id, in: path, required: true, description: Which one, schema: {type: integer, format: int64}}
  securitySchemes:
    token: {type: http, scheme: Bearer}
    basic: {type: http, scheme: basic}
    in_query: {type: apiKey, in: query, name: api_key}
  schemas:
    Named: {type: object, required: [name], properties: {name: {type: string, minLength: 1, example: Rex, xml: {attribute: true}}}}
    Pet:
      allOf:
        - {$ref: "#/components/schemas/Named"}
        - type: object
          required: [kind, id]
          properties:
            id: {type: integer, readOnly: true}
            kind: {oneOf: [{type: string, enum: [cat, dog]}, {$ref: "#/components/schemas/Kind"}], discriminator: {propertyName: x}}
            parent: {nullable: true, allOf: [{$ref: "#/components/schemas/Pet"}]}
            tags: {type: array, items: {type: string}}
    Kind: {type: object, properties: {other: {type: string}}, additionalProperties: false}
"##;

fn operations(only: &[&str]) -> Result<Vec<Operation>, String> {
    Document::read(PETS)?.operations(only, None)
}

fn tools(site: &Site, keys: &Keys, env: &Env) -> BTreeMap<String, AnyTool> {
    let base = format!("http://127.0.0.1:{}/v1/", site.port);
    let operations = Document::read(PETS).unwrap().operations(&[] as &[&str], Some(&base)).unwrap();
    let made = operations
        .into_iter()
        .map(|one| (one.name.clone(), tool(one, Client::new, keys, env, None).unwrap()));
    made.collect()
}

async fn echo() -> Site {
    Site::acting(|path, mut stream| {
        Box::pin(
            async move { stream.write_all(&answer("200 OK", "content-type: text/plain\r\n", path)).await },
        )
    })
    .await
}

#[test]
fn operations_become_tools_with_simple_schemas() {
    let all = operations(&[]).unwrap();
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        ["show_pet", "removePet", "get_pets", "addPet"],
        "those that cannot be called are not there"
    );
    let left_out = Document::read(PETS).unwrap().choose(&[] as &[&str], None).unwrap().left_out;
    let left_out: Vec<(&str, &str)> =
        left_out.iter().map(|left| (left.name.as_str(), left.why.as_str())).collect();
    let expected =
        [("upload", "what it is sent is not JSON"), ("cookie", "its parameter `c` goes into `cookie`")];
    assert_eq!(left_out, expected);
    let show = &all[0];
    assert_eq!(show.url, "https://eu.pets.example/v1/pets/{pet-id}");
    assert_eq!(show.description, "Shows a pet. With all that is known of it.");
    assert_eq!(
        show.parameters,
        json!({
            "type": "object", "required": ["pet-id"], "additionalProperties": false,
            "properties": {
                "pet-id": {"type": "integer", "format": "int64", "description": "Which one"},
                "X-Trace": {"type": "string"},
                "fields": {"type": "array", "items": {"type": "string", "enum": ["name", "age"]}}
            }
        })
    );
    let body = &all[3].parameters["properties"]["body"];
    assert_eq!(body["type"], "object");
    assert_eq!(body["required"], json!(["name", "kind"]));
    assert_eq!(body["properties"]["name"], json!({"type": "string", "minLength": 1}));
    assert!(body["properties"].get("id").is_none(), "it is in answers only");
    assert_eq!(body["properties"]["kind"]["anyOf"][1]["additionalProperties"], false);
    let text = body.to_string();
    assert!(
        !text.contains("$ref")
            && !text.contains("discriminator")
            && !text.contains("xml")
            && text.len() < 30_000,
        "{text}"
    );
    let stored: Vec<Operation> = serde_json::from_value(serde_json::to_value(&all).unwrap()).unwrap();
    assert_eq!(stored, all);
}

#[tokio::test]
async fn operations_are_called_with_all_in_its_place() {
    let site = echo().await;
    let env =
        Env::of([("TOKEN", "my-secret-token"), ("LOGIN", "me:my-password"), ("IN_QUERY", "my-query-key")]);
    let keys = Keys {
        all: Some("TOKEN".into()),
        by_scheme: [("basic".into(), "LOGIN".into()), ("in_query".into(), "IN_QUERY".into())].into(),
    };
    let tools = tools(&site, &keys, &env);
    let show = &tools["show_pet"];
    assert!(show.spec().repeatable && !tools["removePet"].spec().repeatable);
    assert_eq!(
        done(show, json!({"pet-id": 7, "fields": ["name", "age"], "X-Trace": "t"})).await,
        "/v1/pets/7?fields=name%2Cage"
    );
    let asked = site.asked();
    assert!(asked[0].contains("authorization: Bearer my-secret-token") && asked[0].contains("x-trace: t"));
    // The key was in the address, and is taken out of the answer.
    let found = done(&tools["get_pets"], json!({"tag": ["a", "b"], "filter": {"age": 3}})).await;
    assert_eq!(found, "/v1/pets?filter%5Bage%5D=3&tag=a&tag=b&api_key=[key]");
    assert!(site.asked()[1].contains("api_key=my-query-key") && !site.asked()[1].contains("authorization"));
    done(&tools["addPet"], json!({"body": {"name": "Rex", "kind": "dog"}})).await;
    assert!(
        site.asked()[2].starts_with("POST /v1/pets ")
            && site.asked()[2].ends_with(r#"{"name":"Rex","kind":"dog"}"#)
    );
    assert!(!site.asked()[2].contains("authorization"), "this one needs no key");
    done(&tools["removePet"], json!({"pet-id": 7})).await;
    assert!(site.asked()[3].contains("authorization: Basic bWU6bXktcGFzc3dvcmQ="));
    let heard = "me:my-password or my-password, which was bWU6bXktcGFzc3dvcmQ=";
    let answers = [("/v1/pets/7", answer("200 OK", "content-type: text/plain\r\n", heard))];
    let repeating = Site::of(&answers).await;
    let repeated = done(&self::tools(&repeating, &keys, &env)["removePet"], json!({"pet-id": 7})).await;
    assert_eq!(repeated, "[key] or [key], which was [key]");
    for wrong in [json!({}), json!({"pet-id": null}), json!({"pet-id": ".."}), json!({"pet-id": 7, "x": 1})] {
        failed(show, wrong).await;
    }
    assert_eq!(site.asked().len(), 4);
    let why = tool(
        operations(&["removePet"]).unwrap().remove(0),
        Client::new,
        &keys,
        &Env::of([("TOKEN", "x")]),
        None,
    )
    .unwrap_err();
    assert_eq!(
        why.to_string(),
        "the operation `removePet`: `LOGIN` is not set, in the environment or in `.env`"
    );
}

#[test]
fn operations_can_be_selected_by_name_or_path() {
    let names =
        |only: &[&str]| operations(only).map(|all| all.into_iter().map(|one| one.name).collect::<Vec<_>>());
    assert_eq!(
        names(&["removePet", "get /pets", "show.pet"]).unwrap(),
        ["show_pet", "removePet", "get_pets"]
    );
    assert_eq!(
        names(&["showPets"]).unwrap_err(),
        "there is no operation `showPets`; there is `show_pet`, `removePet`, `get_pets`, `addPet`, `upload`, `cookie`"
    );
    assert_eq!(
        names(&["upload"]).unwrap_err(),
        "the operation `upload` cannot be called: what it is sent is not JSON"
    );
    assert_eq!(
        names(&["cookie"]).unwrap_err(),
        "the operation `cookie` cannot be called: its parameter `c` goes into `cookie`"
    );
}

#[test]
fn operations_and_arguments_of_one_name_are_numbered_and_there_are_not_too_many() {
    let parameters = |count: usize, named: fn(usize) -> String| -> Vec<Value> {
        (0..count).map(|nth| json!({"name": named(nth), "in": "query"})).collect()
    };
    let document = json!({
        "openapi": "3.1.0", "servers": [{"url": "https://h.example"}],
        "paths": {
            "/a": {"get": {"operationId": "x", "parameters": parameters(128, |nth| "!".repeat(nth + 1))}},
            "/b": {"get": {"operationId": "x_2"}},
            "/c": {"get": {"operationId": "x"}},
            "/d": {"get": {"operationId": "x"}},
            "/{a b}/{a_b}": {"get": {"operationId": "path", "parameters": [
                {"name": "a b", "in": "path", "required": true}, {"name": "a_b", "in": "path", "required": true},
            ]}},
            "/e": {"get": {"operationId": "many", "parameters": parameters(129, |nth| nth.to_string())}},
        },
    });
    let document = Document::read(&document.to_string()).unwrap();
    let chosen = document.choose(&[] as &[&str], None).unwrap();
    let names: Vec<&str> = chosen.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names, ["x", "x_2", "x_3", "x_4", "path"]);
    assert_eq!(chosen.operations[4].url, "https://h.example/{a_b}/{a_b_2}");
    let arguments: Vec<&String> = chosen.operations[0].places.keys().collect();
    assert!(arguments.iter().all(|name| name.len() <= 64), "{arguments:?}");
    assert!(arguments.len() == 128 && arguments.contains(&&"__128".to_owned()), "{arguments:?}");
    let left_out: Vec<_> = chosen.left_out.iter().map(|one| (&*one.name, &*one.why)).collect();
    assert_eq!(left_out, [("many", "it has more than 128 parameters")]);
}

#[test]
fn documents_that_cannot_be_used_say_why() {
    let read =
        |text: &str| Document::read(text).and_then(|read| read.operations(&[] as &[&str], None)).unwrap_err();
    let many: Value =
        (0..65).map(|n| (format!("/{n}"), json!({"get": {}}))).collect::<serde_json::Map<_, _>>().into();
    let many =
        json!({"openapi": "3.1.0", "servers": [{"url": "https://h.example"}], "paths": many}).to_string();
    for (text, expected) in [
        ("{", "it is not valid JSON: "),
        ("a: [", "it is not valid YAML: "),
        ("swagger: '2.0'", "it is of version 2 (`swagger`)"),
        ("info: {}", "it has no key `openapi`"),
        ("openapi: 4.0.0\npaths: {/: {get: {}}}", "it is of version 4.0.0"),
        ("openapi: 3.1.0\npaths: {}", "it has no `paths`"),
        ("openapi: 3.1.0\npaths: {/: {get: {}}}", "it needs a `base_url`"),
        (
            "openapi: 3.1.0\nservers: [{url: /v1}]\npaths: {/: {get: {}}}",
            "`/v1`, which is not a whole address",
        ),
        (
            "openapi: 3.1.0\nservers: [{url: 'https://h.example'}]\npaths: {/: {parameters: []}}",
            "none of its operations can be called",
        ),
        (
            "openapi: 3.1.0\nservers: [{url: 'https://h.example'}]\npaths: {'/{a}': {get: {}}}",
            "none of its operations can be called",
        ),
        (&many, "it has 65 operations, more than a model can choose from"),
    ] {
        let why = read(text);
        assert!(why.contains(expected), "{text}: {why}");
    }
}

#[test]
fn what_providers_refuse_in_schemas_is_left_out() {
    let document = json!({
        "openapi": "3.0.0",
        "servers": [{"url": "https://a.example"}],
        "paths": {"/x": {"get": {"operationId": "x", "parameters": [
            {"name": "a", "in": "query", "schema": {"type": "file", "pattern": 5, "minLength": "1", "enum": [], "description": {"x": 1}}},
            {"name": "b", "in": "query", "schema": {"type": "map", "properties": {"c": {"type": ["int", "null"]}}, "required": [1, "c"]}},
            {"name": "d", "in": "query", "schema": {"type": "integer", "minimum": "0", "maximum": 9, "multipleOf": 0, "uniqueItems": "yes"}},
        ]}}},
    });
    let found = Document::read(&document.to_string()).unwrap().operations(&["x"], None).unwrap().remove(0);
    let expected = json!({
        "a": {},
        "b": {"type": "object", "properties": {"c": {}}, "required": ["c"]},
        "d": {"type": "integer", "maximum": 9},
    });
    assert_eq!(found.parameters["properties"], expected);
}

#[test]
fn references_in_circles_and_schemas_without_end_are_bounded() {
    let wide: serde_json::Map<String, Value> =
        (0..40).map(|n| (format!("p{n}"), json!({"$ref": "#/components/schemas/Wide"}))).collect();
    let document = json!({
        "openapi": "3.1.0", "servers": [{"url": "https://h.example"}],
        "paths": {"/x": {"post": {"operationId": "x", "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}},
                  "/y": {"post": {"operationId": "y", "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Wide"}}}}}},
                  "/z": {"$ref": "#/paths/~1z"}, "/w": {"$ref": "other.yaml#/w"}},
        "components": {"schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"},
                                   "Wide": {"type": ["object", "null"], "properties": wide, "allOf": [{"$ref": "#/components/schemas/Wide"}]}}}
    });
    let all = Document::read(&document.to_string()).unwrap().operations(&[] as &[&str], None).unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].parameters["properties"]["body"], json!({}));
    let wide = &all[1].parameters["properties"]["body"];
    assert!(wide["type"] == "object" && wide.to_string().len() < 30_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_breaks_the_reader(text in "(\\PC|[\n {}\\[\\]:'\"&*!#-]){0,80}") {
        let _ = Document::read(&text);
    }

    #[test]
    fn no_document_breaks_the_reader(at in any::<prop::sample::Index>(), with in "[ a-z0-9{}\\[\\]:'\"$#/&*-]{0,6}", drop in 0..12usize) {
        let start = PETS.floor_char_boundary(at.index(PETS.len()));
        let rest = PETS.get(start..).and_then(|rest| rest.get(drop..)).unwrap_or_default();
        let changed = format!("{}{with}{rest}", &PETS[..start]);
        if let Ok(document) = Document::read(&changed) {
            let _ = document.operations(&[] as &[&str], None);
        }
    }
}

/// What would be gigabytes, if what is referred to were copied as often.
#[test]
fn a_document_does_not_grow_by_what_refers_to_it() {
    let refers = |nth: usize| (format!("p{nth}"), json!({"$ref": "#/components/schemas/Long"}));
    let properties: serde_json::Map<String, Value> = (0..1500).map(refers).collect();
    let variables: serde_json::Map<String, Value> = (0..40)
        .map(|nth| (format!("v{nth}"), json!({"default": format!("{{v{}}}{{v{}}}", nth + 1, nth + 1)})))
        .collect();
    let long = "x".repeat(4 << 20);
    let document = |url: &str| {
        json!({
            "openapi": "3.0.0",
            "servers": [{"url": url, "variables": variables}],
            "paths": {"/a": {"post": {"operationId": "add", "requestBody": {"content": {"application/json": {
                "schema": {"type": "object", "properties": properties}}}}}}},
            "components": {"schemas": {"Long": {"type": "string", "description": long}}},
        })
        .to_string()
    };
    let found = Document::read(&document("https://a.example")).unwrap().operations(&["add"], None).unwrap();
    let env = Env::of([] as [(&str, &str); 0]);
    let tool = tool(found.into_iter().next().unwrap(), Client::new, &Keys::default(), &env, None).unwrap();
    assert!(tool.spec().parameters.to_string().len() < 64 * 1024);
    let doubled = Document::read(&document("https://a.example/{v0}")).unwrap().operations(&["add"], None);
    assert!(doubled.is_err());
}
