//! No key of a definition is lost: each is converted, or named in a note.

use polylogue_import::{Imported, import};
use serde_json::{Map, Value, json};

use crate::component::{assistant, component, openai, team};

/// What an editor writes into every component.
const OF_EDITORS: [&str; 5] = ["component_type", "version", "component_version", "label", "description"];
/// What else means nothing in a team file.
const MEANINGLESS: [&str; 3] = [".response_format.type", ".json_schema.name", ".nodes.a.name"];

fn context(class: &str, mut config: Value) -> Value {
    config["initial_messages"] = json!([{"content": "Hello"}]);
    component(&format!("autogen_core.model_context.{class}"), "chat_completion_context", config)
}

fn condition(class: &str, config: Value) -> Value {
    component(&format!("autogen_agentchat.conditions.{class}"), "termination", config)
}

fn any(conditions: &[Value]) -> Value {
    condition("OrTerminationCondition", json!({"conditions": conditions}))
}

/// A client with every setting.
fn client(class: &str, own: Value) -> Value {
    let mut config = json!({
        "model": "m", "timeout": 30, "max_retries": 2, "default_headers": {"x-desk": "3"}, "model_info": {"vision": true},
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}, "strict": false, "description": "d"}},
    });
    config.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    component(&format!("autogen_ext.models.{class}"), "model", config)
}

/// An agent without settings, but for `own`.
fn plain(name: &str, own: Value) -> Value {
    let mut config = json!({"name": name, "system_message": "Help."});
    config.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    component("autogen_agentchat.agents.AssistantAgent", "agent", config)
}

/// An agent with every setting.
fn whole(name: &str, model: Value, context: Value) -> Value {
    let tool = component("autogen_core.tools.FunctionTool", "tool", json!({"name": "add"}));
    let bench = json!({"tools": [tool], "tool_overrides": {"add": {"name": "plus"}}});
    assistant(
        name,
        json!({
            "model_client": model, "model_context": context, "tools": [tool], "description": format!("Is {name}."),
            "workbench": [component("autogen_core.tools.StaticWorkbench", "workbench", bench)],
            "memory": [component("autogen_core.memory.ListMemory", "memory", json!({}))], "metadata": {"a": "b"},
            "model_client_stream": true, "reflect_on_tool_use": true, "tool_call_summary_format": "{tool_name}", "max_tool_iterations": 4,
            "structured_message_factory": component("autogen_agentchat.messages.StructuredMessageFactory", "factory", json!({})),
            "handoffs": [{"target": "user", "name": "to_user", "description": "When a person decides.", "message": "Go on."}],
        }),
    )
}

/// Teams that have every setting that AutoGen writes, none of them with its default.
fn teams() -> Vec<Value> {
    let open = client(
        "openai.OpenAIChatCompletionClient",
        json!({
            "temperature": 0.1, "top_p": 0.2, "seed": 7, "max_tokens": 9, "stop": ["x"], "frequency_penalty": 0.1, "presence_penalty": 0.2,
            "logit_bias": {"1": 2}, "n": 2, "user": "u", "stream_options": {"include_usage": true}, "organization": "o",
            "parallel_tool_calls": false, "add_name_prefixes": true, "include_name_in_message": false, "base_url": "http://models.house/v1",
        }),
    );
    let azure = client(
        "openai.AzureOpenAIChatCompletionClient",
        json!({
            "azure_endpoint": "https://house.openai.azure.com", "azure_deployment": "ours", "api_version": "2024-06-01", "model": null,
            "azure_ad_token_provider": component("autogen_ext.auth.azure.AzureTokenProvider", "token_provider", json!({})),
        }),
    );
    let ollama = client(
        "ollama.OllamaChatCompletionClient",
        json!({
            "host": "http://other.house", "temperature": 0.5, "options": {"temperature": 0.1, "num_predict": 3, "num_ctx": 9}, "keep_alive": "1m",
        }),
    );
    let anthropic = client(
        "anthropic.AnthropicChatCompletionClient",
        json!({
            "top_k": 3, "stop_sequences": ["x"], "thinking": {"type": "enabled"}, "metadata": {"user_id": "u"}, "response_format": null,
        }),
    );
    let person = component(
        "autogen_agentchat.agents.UserProxyAgent",
        "agent",
        json!({"name": "p", "description": "Decides.", "input_func": "input"}),
    );
    let participants = json!([
        whole("a", open, context("BufferedChatCompletionContext", json!({"buffer_size": 3}))),
        whole(
            "b",
            azure,
            context(
                "TokenLimitedChatCompletionContext",
                json!({"token_limit": 4, "model_client": openai("m"), "tool_schema": [{"name": "t"}]})
            )
        ),
        whole(
            "c",
            ollama,
            context("HeadAndTailChatCompletionContext", json!({"head_size": 1, "tail_size": 2}))
        ),
        whole("d", anthropic, context("UnboundedChatCompletionContext", json!({}))),
        person,
    ]);
    let end = any(&[
        condition("MaxMessageTermination", json!({"max_messages": 9, "include_agent_event": true})),
        condition("TextMentionTermination", json!({"text": "END", "sources": ["a"]})),
        condition("TimeoutTermination", json!({"timeout_seconds": 5})),
        condition(
            "TokenUsageTermination",
            json!({"max_total_token": 9, "max_prompt_token": 8, "max_completion_token": 7}),
        ),
        condition("SourceMatchTermination", json!({"sources": ["b"]})),
        condition("TextMessageTermination", json!({"source": "c"})),
        condition("HandoffTermination", json!({"target": "user"})),
        condition(
            "AndTerminationCondition",
            json!({"conditions": [
                condition("TextMentionTermination", json!({"text": "one"})), condition("TextMentionTermination", json!({"text": "two"})),
            ]}),
        ),
    ]);
    let of = |class: &str, own: Value| {
        let handoff = json!({"target": "user", "name": "to_user", "description": "When a person decides.", "message": "Go on."});
        let participants = ["a", "b", "c", "p"].map(|name| plain(name, json!({"handoffs": [handoff]})));
        let mut config = json!({
            "name": "desk", "description": "Answers.", "participants": participants, "termination_condition": end, "max_turns": 5,
            "emit_team_events": true,
        });
        config.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        team(class, config)
    };
    let edge = |to: &str| json!({"target": to, "condition": "yes", "activation_group": "g", "activation_condition": "any"});
    let inner = team("RoundRobinGroupChat", json!({"participants": [plain("e", json!({}))], "max_turns": 2}));
    let society = component(
        "autogen_agentchat.agents.SocietyOfMindAgent",
        "agent",
        json!({
            "name": "society", "team": inner, "model_client": openai("s"), "description": "Thinks.", "instruction": "i", "response_prompt": "r",
            "model_context": context("BufferedChatCompletionContext", json!({"buffer_size": 3})), "model_client_stream": true,
        }),
    );
    vec![
        of("RoundRobinGroupChat", json!({"participants": participants})),
        of(
            "RoundRobinGroupChat",
            json!({"participants": [society, of("RoundRobinGroupChat", json!({"name": "inner"}))]}),
        ),
        of(
            "SelectorGroupChat",
            json!({
                "model_client": openai("s"), "selector_prompt": "Pick {roles}", "allow_repeated_speaker": true, "max_selector_attempts": 7,
                "model_client_streaming": true, "model_context": context("BufferedChatCompletionContext", json!({"buffer_size": 3})),
            }),
        ),
        of("Swarm", json!({})),
        of(
            "MagenticOneGroupChat",
            json!({"model_client": openai("s"), "max_stalls": 7, "final_answer_prompt": "Answer."}),
        ),
        of(
            "GraphFlow",
            json!({"graph": {"default_start_node": "b", "nodes": {
                "a": {"name": "a", "edges": [edge("c")]},
                "b": {"name": "B", "edges": [edge("a"), edge("p")], "activation": "any"},
            }}}),
        ),
    ]
}

/// The objects in `value`, with their places as a JSON pointer and as a path.
fn objects<'v>(
    value: &'v Value,
    pointer: &str,
    path: &str,
    all: &mut Vec<(String, String, &'v Map<String, Value>)>,
) {
    match value {
        Value::Object(map) => {
            all.push((pointer.to_owned(), path.to_owned(), map));
            for (key, value) in map {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                objects(value, &format!("{pointer}/{escaped}"), &format!("{path}.{key}"), all);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                objects(value, &format!("{pointer}/{index}"), &format!("{path}[{index}]"), all);
            }
        }
        _ => {}
    }
}

/// The definition without one of its keys, or with one more in one of its objects, and the place of that key.
fn changed(definition: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    objects(definition, "", "$", &mut all);
    let mut changed = Vec::new();
    for (pointer, path, map) in all {
        let of_editor = |key: &str| map.contains_key("provider") && OF_EDITORS.contains(&key);
        let given = map.iter().filter(|(key, value)| !value.is_null() && !of_editor(key));
        for key in given.map(|(key, _)| key.as_str()).chain(["no_such_key"]) {
            let mut definition = definition.clone();
            let object = definition.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
            if object.shift_remove(key).is_none() {
                object.insert(key.to_owned(), json!(1));
            }
            changed.push((format!("{path}.{key}"), definition));
        }
    }
    changed
}

/// Whether a note is about a value with all that is in it.
fn is_whole(what: &str) -> bool {
    ["left out", "not converted"].iter().any(|words| what.contains(words))
}

#[test]
fn every_key_of_a_component_is_converted_or_named() {
    for definition in teams() {
        let Imported { yaml, notes, .. } = import(&definition.to_string(), "d.json").unwrap();
        let is_lost = |(path, other): &(String, Value)| {
            let is_named = notes.iter().any(|note| is_whole(&note.what) && path.starts_with(&note.path));
            let is_exempt = is_named || MEANINGLESS.iter().any(|end| path.ends_with(end));
            !is_exempt && import(&other.to_string(), "d.json").is_ok_and(|other| other.yaml == yaml)
        };
        let lost: Vec<String> =
            changed(&definition).into_iter().filter(is_lost).map(|(path, _)| path).collect();
        assert_eq!(lost, [""; 0], "{}", definition["provider"]);
    }
}
