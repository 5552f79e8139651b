//! Keys stay where they are.

use serde_json::json;

use crate::component::{assistant, component, team};
use crate::imported;

const KEY: &str = "sk-0123456789abcdef0123456789abcdef";

#[test]
fn no_key_gets_into_a_team_file_or_a_note() {
    let client = |config| component("autogen_ext.models.openai.OpenAIChatCompletionClient", "model", config);
    let participants = [
        assistant("a", json!({"model_client": client(json!({"model": "m", "api_key": KEY}))})),
        assistant(
            "b",
            json!({"model_client": client(json!({
                "model": "m", "api_key": {"type": "secret", "value": KEY}, "base_url": "https://house.example/v1",
                "default_headers": {"Authorization": format!("Bearer {KEY}"), "X-Team": "us", "X-Other": KEY},
            }))}),
        ),
        assistant(
            "c",
            json!({"model_client": client(json!({"model": "m", "base_url": format!("https://x:{KEY}@house.example/v1")}))}),
        ),
        assistant("d", json!({"model_client": client(json!({"model": "m", "access": KEY}))})),
        assistant(
            "e",
            json!({"model_client": client(json!({
                "model": "m", "extra_body": {"proxy_key": "geheim", "more": [{"x": KEY}], "best_of": 2},
            }))}),
        ),
    ];
    let component =
        imported(&team("RoundRobinGroupChat", json!({"participants": participants, "max_turns": 1})));
    assert_eq!(component.variables, ["AUTHORIZATION", "HOUSE_EXAMPLE_API_KEY", "OPENAI_API_KEY", "X_OTHER"]);
    assert!(
        component.yaml.contains("X-Team: us") && component.yaml.contains("env: AUTHORIZATION"),
        "{}",
        component.yaml
    );
    assert!(component.yaml.contains("best_of") && !component.yaml.contains("geheim"), "{}", component.yaml);
    let classic = imported(&json!({"agents": [
        {"name": "a", "llm_config": {"config_list": [{"model": "m", "api_key": KEY}, {"model": "n", "api_key": KEY}]}},
        {"name": "b", "llm_config": {"model": "m", "api_key": KEY, "api_type": "azure", "base_url": "https://h.openai.azure.com"}},
    ]}));
    assert_eq!(classic.variables, ["AZURE_OPENAI_API_KEY", "OPENAI_API_KEY"]);
    let azure = imported(&json!({"agents": [
        {"name": "a", "llm_config": {"model": "m", "api_type": "azure", "base_url": format!("https://me:{KEY}@h.openai.azure.com")}},
        {"name": "b", "llm_config": {"model": "m", "api_key": KEY}},
    ]}));
    assert!(azure.notes.iter().any(|note| note.what.contains("there is a key in the address")), "{azure:?}");
    for imported in [component, classic, azure] {
        assert!(!format!("{imported:?}").contains(KEY), "{imported:?}");
        assert_eq!(imported.problems.to_string(), "");
    }
}
