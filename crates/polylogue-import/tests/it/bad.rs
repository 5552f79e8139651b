//! What is not a definition.

use polylogue_import::import;
use serde_json::json;

use crate::component::{assistant, team};

#[track_caller]
fn refused(text: &str, why: &str) {
    assert_eq!(import(text, "team.json").unwrap_err().to_string(), why);
}

#[test]
fn an_unreadable_definition_is_reported_with_its_position() {
    refused("{\"a\": 1,}", "this is not valid JSON: trailing comma at line 1 column 9");
    refused("", "this is not valid JSON: EOF while parsing a value at line 1 column 0");
    refused("[]", "$: must be an object");
    refused(
        "{}",
        "$: this is neither a component of AutoGen Studio (`provider`, `config`) nor a list of `agents` of AutoGen 0.2",
    );
    refused(r#"{"provider": 3}"#, "$.provider: must be a text");
    refused(r#"{"provider": "x.Team"}"#, "$: `config` is missing");
    refused(
        r#"{"provider": "x.Team", "config": {"participants": []}}"#,
        "$.config: a team without participants",
    );
    refused(&assistant("a", json!({})).to_string(), "$: this is an agent; a team file is made of a team");
    let unknown = team("BeautifulTeam", json!({"participants": [assistant("a", json!({}))]}));
    refused(&unknown.to_string(), "$: there is no equivalent of a team of the class `BeautifulTeam`");
    let wrong =
        team("RoundRobinGroupChat", json!({"participants": [assistant("a", json!({"system_message": 7}))]}));
    refused(&wrong.to_string(), "$.config.participants[0].config.system_message: must be a text");
    let two = json!({"components": {"teams": [{"label": "one"}, {"label": "two"}]}});
    refused(&two.to_string(), "$: a gallery of 2 teams: give one of them in a file: `one`, `two`");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(
        import(&deep, "team.json")
            .unwrap_err()
            .to_string()
            .starts_with("this is not valid JSON: recursion limit")
    );
}

#[test]
fn what_is_wrong_with_the_definition_is_wrong_with_the_team_file() {
    let hot = assistant(
        "a",
        json!({"model_client": {
            "provider": "autogen_ext.models.openai.OpenAIChatCompletionClient", "config": {"model": "m", "temperature": -3},
        }}),
    );
    let imported =
        import(&team("RoundRobinGroupChat", json!({"participants": [hot]})).to_string(), "team.json")
            .unwrap();
    assert_eq!(imported.problems.errors(), 1, "{}", imported.problems);
    assert!(imported.problems.to_string().contains("temperature"), "{}", imported.problems);
}

#[test]
fn classic_definitions_that_do_not_fit_together_are_refused() {
    let two = json!([{"name": "a"}, {"name": "b"}]);
    let refused_with = |more: serde_json::Value, why: &str| {
        let mut definition = json!({"agents": two});
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        refused(&definition.to_string(), why);
    };
    refused_with(json!({"chats": [{"sender": "a"}]}), "$.chats[0]: `recipient` is missing");
    refused_with(
        json!({"chats": [{"sender": "z", "recipient": "a"}]}),
        "$.chats[0].sender: there is no agent `z`",
    );
    refused_with(
        json!({"chats": [{"sender": "a", "recipient": "z"}]}),
        "$.chats[0].recipient: there is no agent `z`, and no `groupchat`",
    );
    let chat = json!({"sender": "a", "recipient": "b", "chat_id": 1, "prerequisites": [9]});
    let other = json!({"sender": "a", "recipient": "b", "chat_id": 2});
    refused_with(json!({"chats": [chat, other]}), "$.chats[0].prerequisites[0]: there is no chat 9");
    let same = json!({"sender": "a", "recipient": "b", "chat_id": 1});
    refused_with(json!({"chats": [same, same]}), "$.chats[1]: there are two chats with the `chat_id` 1");
    refused_with(
        json!({"groupchat": {"allowed_or_disallowed_speaker_transitions": {"a": ["b"]}}}),
        "$.groupchat.allowed_or_disallowed_speaker_transitions: `speaker_transitions_type` says whether they are \
         `allowed` or `disallowed`",
    );
    refused(
        &json!({"agents": [{"name": "a", "human_input_mode": "SOMETIMES"}]}).to_string(),
        "$.agents[0].human_input_mode: must be `ALWAYS`, `TERMINATE` or `NEVER`",
    );
}

#[test]
fn definitions_whose_parts_multiply_are_bounded() {
    let agents =
        |count: usize| -> Vec<_> { (0..count).map(|nth| json!({"name": format!("a{nth}")})).collect() };
    refused(&json!({"agents": agents(1_001)}).to_string(), "$.agents: has more than 1000 items");
    let chats = vec![json!({"sender": "a0", "recipient": "a1"}); 1_000];
    let nested =
        json!([{"agent": "a0", "trigger": "a1", "chat_queue": [{"recipient": "a1", "message": "hi"}]}]);
    let definition = json!({"agents": agents(1_000), "chats": chats, "nested_chats": nested});
    let why = "$.nested_chats[0].chat_queue[0]: there are more than 2000 agents and chats";
    refused(&definition.to_string(), why);
}

#[test]
fn many_agents_of_one_name_get_numbers() {
    let definition = json!({"agents": vec![json!({"name": "x"}); 4], "name": "x_3"});
    let yaml = import(&definition.to_string(), "team.json").unwrap().yaml;
    for name in ["x", "x_2", "x_4", "x_5"] {
        assert!(yaml.contains(&format!("- name: {name}\n")), "{yaml}");
    }
}
