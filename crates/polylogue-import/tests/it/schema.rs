//! The published schema of definitions, held to what the importer does.

use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

use jsonschema::Validator;
use polylogue_import::{Imported, import};
use regex::Regex;
use serde_json::{Value, json};

const UNKNOWN: &str = "unknown key";

fn docs(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&docs("autogen.schema.json")).unwrap());

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).unwrap()
}

/// The schema without keys that it does not name.
static STRICT: LazyLock<Validator> = LazyLock::new(|| {
    let mut schema = SCHEMA.clone();
    for (_, object) in schema["$defs"].as_object_mut().unwrap() {
        object.as_object_mut().unwrap().entry("additionalProperties").or_insert(json!(false));
    }
    validator(&schema)
});

static OPEN: LazyLock<Validator> = LazyLock::new(|| validator(&SCHEMA));

/// What the importer accepts, the schema accepts. Keys that the importer knows, the schema names.
#[track_caller]
pub(crate) fn accepts(definition: &Value, imported: &Imported) {
    let is_known = !imported.notes.iter().any(|note| note.what.contains(UNKNOWN));
    let validator = if is_known { &*STRICT } else { &*OPEN };
    if let Err(error) = validator.validate(definition) {
        panic!("the schema refuses what the importer accepts: {error}\n{definition:#}");
    }
}

/// A definition with an object of the kind, to which a key is added.
fn with(kind: &str, key: &str, value: &Value) -> Value {
    let agents = json!([{"name": "a", "system_message": "A"}, {"name": "b", "system_message": "B"}]);
    let mut definition = json!({"agents": agents});
    let (path, mut object) = match kind {
        "program" => ("", definition.clone()),
        "agent" => ("/agents/0", json!({"name": "a"})),
        "agent_in_config" => ("/agents/0", json!({"config": {"name": "a"}})),
        "code" => ("/agents/0/code_execution_config", json!({})),
        "manager" => ("/manager", json!({})),
        "group" => ("/groupchat", json!({"speaker_transitions_type": "allowed"})),
        "chat" => ("/chats/1", json!({"sender": "a", "recipient": "b"})),
        "nested" => {
            ("/nested_chats/0", json!({"agent": "a", "trigger": "b", "chat_queue": [{"recipient": "b"}]}))
        }
        "llm_config" => ("/llm_config", json!({"model": "m"})),
        "config_entry" => ("/llm_config/config_list/0", json!({"model": "m"})),
        other => panic!("`{other}` is a definition of the schema that is not tried"),
    };
    let entries = object.as_object_mut().unwrap();
    // Two names of one thing are not next to each other.
    match (kind, key) {
        ("program", "agent_configs") => drop(entries.insert("agents".into(), Value::Null)),
        ("nested", "chats") => drop(entries.insert("chat_queue".into(), Value::Null)),
        (_, "api_version") => {
            entries.insert("api_type".into(), json!("azure"));
            entries.insert("azure_endpoint".into(), json!("https://a.example.com"));
        }
        _ => {}
    }
    entries.insert(key.into(), value.clone());
    let first = json!({"chat_id": 7, "sender": "a", "recipient": "b"});
    match kind {
        "code" => definition["agents"][0]["code_execution_config"] = Value::Null,
        "manager" => definition["groupchat"] = if key == "groupchat" { Value::Null } else { json!({}) },
        "group" => definition["groupchat"] = Value::Null,
        "chat" => definition["chats"] = json!([first, null]),
        "nested" => definition["nested_chats"] = json!([null]),
        "config_entry" => definition["llm_config"] = json!({"config_list": [null]}),
        _ => {}
    }
    if matches!(kind, "manager" | "llm_config") {
        definition[kind] = Value::Null;
    }
    *definition.pointer_mut(path).unwrap() = object;
    definition
}

#[test]
fn every_key_of_the_schema_is_known_to_the_importer() {
    let mut tried = 0;
    for (kind, object) in SCHEMA["$defs"].as_object().unwrap() {
        if ["component", "row", "gallery"].contains(&kind.as_str()) {
            continue;
        }
        for (key, property) in object["properties"].as_object().unwrap() {
            let definition = with(kind, key, &property["examples"][0]);
            let imported = import(&definition.to_string(), "team.json")
                .unwrap_or_else(|error| panic!("{kind}.{key}: {error}\n{definition:#}"));
            let unknown = imported.notes.iter().find(|note| note.what.contains(UNKNOWN));
            assert_eq!(unknown, None, "{kind}.{key}");
            accepts(&definition, &imported);
            let other = import(&with(kind, "no_such_key", &json!(1)).to_string(), "team.json").unwrap();
            // What is not known of a model goes nowhere unreported, either.
            assert!(other.notes.iter().any(|note| note.what.contains(UNKNOWN)), "{kind}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

/// Keys without an effect: examples that are defaults, secrets, classes, names of managers and groups, numbers of chats.
const WITHOUT_EFFECT: [&str; 17] = [
    "agent.human_input_mode",
    "class",
    "type",
    "agent_type",
    "code.commandline-local",
    "manager.name",
    "group.agents",
    "group.participants",
    "group.name",
    "chat.summary_method",
    "chat.chat_id",
    "chat.prerequisites",
    "nested.reply_func_from_nested_chats",
    "nested.position",
    "api_type",
    "api_key",
    "base_api_key",
];

#[test]
fn every_key_of_the_schema_is_converted_or_named() {
    let mut lost = Vec::new();
    for (kind, object) in SCHEMA["$defs"].as_object().unwrap() {
        if ["component", "row", "gallery"].contains(&kind.as_str()) {
            continue;
        }
        for (key, property) in object["properties"].as_object().unwrap() {
            let text = |value: &Value| {
                import(&with(kind, key, value).to_string(), "team.json").map(|imported| imported.yaml)
            };
            if text(&property["examples"][0]) == text(&Value::Null) {
                lost.push(format!("{kind}.{key}"));
            }
        }
    }
    lost.retain(|path| {
        !WITHOUT_EFFECT.iter().any(|key| path == key || path.split_once('.').unwrap().1 == *key)
    });
    assert_eq!(lost, [""; 0]);
}

/// Keys by which the importer takes fields, as its source names them.
fn taken() -> BTreeSet<String> {
    let one = Regex::new(r#"\.(?:take|text|flag|count|need|cannot|unusual)\(\s*"([a-z_]+)""#).unwrap();
    let lists = Regex::new(r#"\.(?:first|ignore)\(\s*&\[([^\]]*)\]"#).unwrap();
    let word = Regex::new(r#""([a-z_]+)""#).unwrap();
    let mut keys = BTreeSet::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let parts = fs::read_dir(sources.join("program")).unwrap().map(|entry| entry.unwrap().path());
    for path in parts.chain([sources.join("program.rs")]) {
        let text = fs::read_to_string(path).unwrap();
        keys.extend(one.captures_iter(&text).map(|found| found[1].to_owned()));
        for list in lists.captures_iter(&text) {
            keys.extend(word.captures_iter(&list[1]).map(|found| found[1].to_owned()));
        }
    }
    keys
}

#[test]
fn every_key_that_the_importer_takes_is_in_the_schema() {
    let kinds = SCHEMA["$defs"].as_object().unwrap().values();
    let mut named: BTreeSet<&str> =
        kinds.flat_map(|kind| kind["properties"].as_object().unwrap().keys().map(String::as_str)).collect();
    // Within `summary_args`.
    named.extend(["summary_prompt", "summary_role"]);
    let taken = taken();
    assert!(taken.len() > 70, "{taken:?}");
    let missing: Vec<_> = taken.iter().filter(|key| !named.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "not in docs/autogen.schema.json: {missing:?}");
}

#[test]
fn the_schema_refuses_what_the_importer_refuses_by_its_form() {
    let refused = [
        json!({}),
        json!([]),
        json!({"agents": [{"system_message": "no name"}]}),
        json!({"agents": [{"name": "a", "human_input_mode": "SOMETIMES"}]}),
        json!({"agents": [{"name": "a", "system_message": 7}]}),
        json!({"agents": [{"name": "a"}, {"name": "b"}], "chats": [{"sender": "a"}]}),
        json!({"agents": [{"name": "a"}, {"name": "b"}], "initiate_chat": {"recipient": "b", "max_turns": -1}}),
        json!({"agents": [{"name": "a"}, {"name": "b"}], "nested_chats": [{"agent": "a", "chat_queue": [{"recipient": "b"}]}]}),
        json!({"agents": [{"name": "a"}], "llm_config": {"config_list": []}}),
        json!({"provider": "x.RoundRobinGroupChat"}),
        json!({"provider": "x.RoundRobinGroupChat", "config": {"participants": []}}),
        json!({"provider": "x.BeautifulTeam", "config": {"participants": [{"provider": "x.AssistantAgent", "config": {"name": "a"}}]}}),
    ];
    for definition in refused {
        assert!(import(&definition.to_string(), "team.json").is_err(), "imported: {definition}");
        assert!(!OPEN.is_valid(&definition), "accepted by the schema: {definition}");
    }
}

/// The first block of code with a tag in a text.
fn block<'a>(text: &'a str, tag: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("```{tag}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_worked_example_is_imported_as_the_documentation_shows() {
    let page = docs("from-autogen.md");
    let (_, text) = page.split_once("\n## An imported example\n").unwrap();
    let definition = block(text, "json");
    let imported = import(definition, "poem.json").unwrap();
    assert_eq!(imported.problems.to_string(), "");
    assert_eq!(imported.yaml, block(text, "yaml"));
    accepts(&serde_json::from_str(definition).unwrap(), &imported);
}
