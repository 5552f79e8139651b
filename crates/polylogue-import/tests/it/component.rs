//! Components of AutoGen Studio and AgentChat.

use expect_test::expect;
use serde_json::{Value, json};

use crate::{check, imported};

/// As components are written: everything in them, with what is left at its default.
pub(crate) fn component(provider: &str, kind: &str, config: Value) -> Value {
    let label = provider.rsplit('.').next().unwrap();
    json!({
        "provider": provider, "component_type": kind, "version": 1, "component_version": 1,
        "description": null, "label": label, "config": config,
    })
}

pub(crate) fn openai(model: &str) -> Value {
    component("autogen_ext.models.openai.OpenAIChatCompletionClient", "model", json!({"model": model}))
}

pub(crate) fn assistant(name: &str, more: Value) -> Value {
    let mut config = json!({
        "name": name, "model_client": openai("gpt-4o"), "tools": [], "handoffs": [],
        "model_context": component("autogen_core.model_context.UnboundedChatCompletionContext", "chat_completion_context", json!({})),
        "description": "An agent that provides assistance with ability to use tools.",
        "system_message": format!("You are {name}."), "model_client_stream": false, "reflect_on_tool_use": false,
        "tool_call_summary_format": "{result}", "metadata": {},
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    component("autogen_agentchat.agents.AssistantAgent", "agent", config)
}

fn person(name: &str) -> Value {
    let config = json!({"name": name, "description": "Says what is wanted", "input_func": null});
    component("autogen_agentchat.agents.UserProxyAgent", "agent", config)
}

fn ends(class: &str, config: Value) -> Value {
    component(&format!("autogen_agentchat.conditions.{class}"), "termination", config)
}

pub(crate) fn team(class: &str, config: Value) -> Value {
    component(&format!("autogen_agentchat.teams.{class}"), "team", config)
}

#[test]
fn a_round_robin_with_a_person() {
    let any = ends(
        "OrTerminationCondition",
        json!({"conditions": [
            ends("TextMentionTermination", json!({"text": "TERMINATE"})),
            ends("MaxMessageTermination", json!({"max_messages": 10, "include_agent_event": false})),
        ]}),
    );
    let mut definition = team(
        "RoundRobinGroupChat",
        json!({"participants": [assistant("writer", json!({"description": "Writes"})), person("user_proxy")],
               "termination_condition": any, "max_turns": null, "emit_team_events": false}),
    );
    definition["label"] = "Web team".into();
    definition["description"] = "Writes for a person.\n".into();
    check(
        &definition,
        &expect![[r#"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.

            name: Web team
            description: Writes for a person.
            model: openai:gpt-4o
            agents:
              - name: writer
                description: Writes
                system: You are writer.
              - name: user_proxy
                description: Says what is wanted
                human: true
            chat:
              participants: [writer, user_proxy]
              stop: {says: TERMINATE, max_messages: 10}
            ---
            OPENAI_API_KEY
        "#]],
    );
}

#[test]
fn every_termination_condition_is_imported() {
    let both = ends(
        "AndTerminationCondition",
        json!({"conditions": [
            ends("TextMentionTermination", json!({"text": "yes", "sources": ["a"]})),
            ends("TextMentionTermination", json!({"text": "yes", "sources": ["b"]})),
        ]}),
    );
    let without = ends(
        "AndTerminationCondition",
        json!({"conditions": [ends("StopMessageTermination", json!({})), ends("TextMentionTermination", json!({"text": "x"}))]}),
    );
    let any = ends(
        "OrTerminationCondition",
        json!({"conditions": [
            both,
            without,
            ends("TimeoutTermination", json!({"timeout_seconds": 1.5})),
            ends("TokenUsageTermination", json!({"max_total_token": 1000, "max_prompt_token": 900, "max_completion_token": null})),
            ends("SourceMatchTermination", json!({"sources": ["a", "b"]})),
            ends("TextMessageTermination", json!({"source": null})),
            ends("ExternalTermination", json!({})),
            ends("FunctionCallTermination", json!({"function_name": "approve"})),
            ends("HandoffTermination", json!({"target": "user"})),
        ]}),
    );
    let participants = [assistant("a", json!({})), assistant("b", json!({}))];
    let definition = team(
        "RoundRobinGroupChat",
        json!({"participants": participants, "termination_condition": any, "max_turns": 5}),
    );
    check(
        &definition,
        &expect![[r##"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.config.termination_condition.config.conditions[1].config.conditions[0]: left out: agents of a team file say no stop messages
            # - $.config.termination_condition.config.conditions[1].config.conditions: left out as a whole: without all of its parts it would end the chat too soon
            # - $.config.termination_condition.config.conditions[3].config.max_prompt_token: left out: tokens read and written are counted together
            # - $.config.termination_condition.config.conditions[6]: left out: Ctrl-C ends a run, and `polylogue resume` continues it
            # - $.config.termination_condition.config.conditions[7]: left out: code and calls of functions end no chat here; see `stop.when`
            # - $.config.termination_condition.config.conditions[8]: left out: a person who is handed to is a participant here, and is asked

            name: RoundRobinGroupChat
            model: openai:gpt-4o
            agents:
              - name: a
                system: You are a.
              - name: b
                system: You are b.
            chat:
              participants: [a, b]
              stop:
                all:
                  - {says: {text: "yes", by: [a]}}
                  - {says: {text: "yes", by: [b]}}
                max_time: 1.5 s
                max_tokens: 1000
                matches: {pattern: "^", by: [a, b]}
                any: [{matches: "^"}]
                max_turns: 5
            ---
            OPENAI_API_KEY
        "##]],
    );
}

#[test]
fn models_and_what_agents_see_of_a_conversation() {
    let context = |class: &str, config: Value| {
        component(&format!("autogen_core.model_context.{class}"), "chat_completion_context", config)
    };
    let with =
        |provider: &str, config: Value| component(&format!("autogen_ext.models.{provider}"), "model", config);
    let participants = [
        assistant(
            "a",
            json!({
                "model_client": with("openai.OpenAIChatCompletionClient", json!({
                    "model": "m", "base_url": "http://models.house:8000/v1/", "temperature": 0.2, "max_tokens": 100, "top_p": 0.9,
                    "seed": 7, "stop": ["END"], "frequency_penalty": 0.5, "timeout": 30, "max_retries": 2,
                    "model_info": {"vision": false},
                })),
                "model_context": context("BufferedChatCompletionContext", json!({"buffer_size": 10})),
            }),
        ),
        assistant(
            "b",
            json!({
                "model_client": with("ollama.OllamaChatCompletionClient", json!({"model": "llama3.2", "options": {"num_predict": 5, "num_ctx": 4096}})),
                "model_context": context("TokenLimitedChatCompletionContext", json!({"token_limit": 4000})),
            }),
        ),
        assistant(
            "c",
            json!({
                "model_client": with("openai.AzureOpenAIChatCompletionClient", json!({
                    "model": "gpt-4o", "azure_endpoint": "https://house.openai.azure.com/", "azure_deployment": "ours", "api_version": "2024-06-01",
                })),
                "model_context": context("HeadAndTailChatCompletionContext", json!({"head_size": 2, "tail_size": 6})),
            }),
        ),
        assistant(
            "d",
            json!({"model_client": with("anthropic.AnthropicChatCompletionClient", json!({"model": "claude", "max_tokens": 50}))}),
        ),
        assistant("e", json!({"model_client": with("semantic_kernel.SKChatCompletionAdapter", json!({}))})),
    ];
    check(
        &team("RoundRobinGroupChat", json!({"participants": participants})),
        &expect![[r##"
        # Imported from team.json.
        # Keys are not allowed in team files; they are read from ANTHROPIC_API_KEY, AZURE_OPENAI_API_KEY, MODELS_HOUSE_8000_API_KEY.
        #
        # Not converted, or changed:
        # - $.config.participants[0].config.model_client.config.model_info: left out: capabilities are probed on first use; `capabilities` of an endpoint sets them
        # - $.config.participants[2].config.model_client.config.api_version: left out: the address `/openai/v1` needs no version
        # - $.config.participants[2].config.model_context.config.head_size: left out: the latest part of a conversation is seen, and no more
        # - $.config.participants[4].config.model_client: `SKChatCompletionAdapter` is unknown: name a model, or give one with `--model`

        name: RoundRobinGroupChat
        endpoints:
          models_house_8000:
            base_url: http://models.house:8000/v1
            key: MODELS_HOUSE_8000_API_KEY
            timeouts: {total: "30 s"}
            retries: 2
          azure: {base_url: https://house.openai.azure.com/openai/v1, key: AZURE_OPENAI_API_KEY}
        agents:
          - name: a
            system: You are a.
            model: models_house_8000:m
            parameters:
              temperature: 0.2
              top_p: 0.9
              seed: 7
              max_tokens: 100
              stop: [END]
              extra: {"frequency_penalty":0.5}
            view: {window: {messages: 10}}
          - name: b
            system: You are b.
            model: ollama:llama3.2
            parameters: {max_tokens: 5, extra: {"options":{"num_ctx":4096}}}
            view: {window: {tokens: 4000}}
          - name: c
            system: You are c.
            model: azure:ours
            view: {window: {messages: 6}}
          - name: d
            system: You are d.
            model: anthropic:claude
            parameters: {max_tokens: 50}
          - name: e
            system: You are e.
        chat:
          participants: [a, b, c, d, e]
        ---
        ANTHROPIC_API_KEY
        AZURE_OPENAI_API_KEY
        MODELS_HOUSE_8000_API_KEY
    "##]],
    );
}

#[test]
fn what_agents_do_by_code_is_left_out_and_said() {
    let tool = component(
        "autogen_core.tools.FunctionTool",
        "tool",
        json!({"source_code": "def add(a, b):\n    return a + b\n", "name": "add", "description": "Adds", "global_imports": []}),
    );
    let bench =
        component("autogen_core.tools.StaticWorkbench", "workbench", json!({"tools": [tool.clone()]}));
    let mcp = component(
        "autogen_ext.tools.mcp.McpWorkbench",
        "workbench",
        json!({"server_params": {"command": "npx"}}),
    );
    let memory = component("autogen_core.memory.ListMemory", "memory", json!({}));
    let participants = [
        assistant("a", json!({"tools": [tool], "memory": [memory]})),
        assistant("b", json!({"workbench": [bench, mcp], "new_option": 3, "Système": {"x": 1}})),
        component(
            "autogen_ext.agents.web_surfer.MultimodalWebSurfer",
            "agent",
            json!({"name": "surfer", "model_client": openai("gpt-4o"), "headless": true}),
        ),
    ];
    check(
        &team("RoundRobinGroupChat", json!({"participants": participants})),
        &expect![[r#"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.config.participants[0].config.tools[0]: the tool `add` is left out: Python code is not converted, and nothing in a definition is executed
            # - $.config.participants[0].config.memory: not converted: `memory` of an agent remembers across conversations
            # - $.config.participants[1].config.workbench[0].config.tools[0]: the tool `add` is left out: Python code is not converted, and nothing in a definition is executed
            # - $.config.participants[1].config.workbench[1]: not converted: give an MCP server in `mcp` of the team, and its tools as `tools: [{mcp: NAME}]` of the agent
            # - $.config.participants[1].config.new_option: not converted: unknown key
            # - $.config.participants[1].config.Système: not converted: unknown key
            # - $.config.participants[2]: `MultimodalWebSurfer` has no equivalent: it becomes an agent without those abilities
            # - $.config.participants[2].config.headless: not converted: unknown key

            name: RoundRobinGroupChat
            model: openai:gpt-4o
            agents:
              - name: a
                system: You are a.
              - name: b
                system: You are b.
              - name: surfer
            chat:
              participants: [a, b, surfer]
            ---
            OPENAI_API_KEY
        "#]],
    );
}

#[test]
fn invalid_names_are_changed_everywhere() {
    let participants = [
        assistant("Haupt Autor", json!({"system_message": "Use {{name}} and {{task}}; {{name}} again."})),
        assistant("Haupt Autor", json!({})),
        assistant("3rd", json!({})),
        person("user"),
    ];
    let ending = ends("SourceMatchTermination", json!({"sources": ["3rd", "unknown"]}));
    check(
        &team("RoundRobinGroupChat", json!({"participants": participants, "termination_condition": ending})),
        &expect![[r##"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.config.participants[1]: renamed to `Haupt Autor_2`: the name is taken
            # - $.config.participants[2]: renamed to `a_3rd`: a name begins with a letter and has letters, digits, single spaces, `_`, `-`, `'`, `’` and `·`
            # - $.config.participants[3]: renamed to `User`: it is a keyword of team files
            # - $.config.termination_condition.config.sources: `unknown` is left out: there is no such participant
            # - $: `{{task}}` in a text is the task here

            name: RoundRobinGroupChat
            model: openai:gpt-4o
            vars:
              name: "{{name}}"
            agents:
              - name: Haupt Autor
                system: "Use {{name}} and {{task}}; {{name}} again."
              - name: Haupt Autor_2
                system: You are Haupt Autor.
              - name: a_3rd
                system: You are 3rd.
              - name: User
                description: Says what is wanted
                human: true
            chat:
              participants: [Haupt Autor, Haupt Autor_2, a_3rd, User]
              stop: {matches: {pattern: "^", by: [a_3rd]}}
            ---
            OPENAI_API_KEY
        "##]],
    );
}

#[test]
fn teams_within_teams() {
    let inner = |name: &str, of: [&str; 2]| {
        let participants = of.map(|name| assistant(name, json!({})));
        team("RoundRobinGroupChat", json!({"name": name, "participants": participants, "max_turns": 2}))
    };
    let society = component(
        "autogen_agentchat.agents.SocietyOfMindAgent",
        "agent",
        json!({"name": "society", "team": inner("inner", ["c", "d"]), "model_client": openai("gpt-4o-mini"), "description": "Thinks it over",
               "instruction": "Earlier", "response_prompt": "Answer."}),
    );
    let participants = json!([inner("first", ["a", "b"]), society]);
    check(
        &team("RoundRobinGroupChat", json!({"participants": participants, "max_turns": 4})),
        &expect![[r#"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.config.participants[1].config.instruction: left out: the summary is asked for by its prompt alone

            name: RoundRobinGroupChat
            model: openai:gpt-4o
            agents:
              - name: a
                system: You are a.
              - name: b
                system: You are b.
              - name: c
                system: You are c.
              - name: d
                system: You are d.
            chat:
              participants: [first, society]
              stop: {max_turns: 4}
            chats:
              - name: first
                task_from: all
                participants: [a, b]
                stop: {max_turns: 2}
              - name: society
                description: Thinks it over
                task_from: all
                participants: [c, d]
                stop: {max_turns: 2}
                summary: {reflect: {prompt: Answer., model: openai:gpt-4o-mini}}
            ---
            OPENAI_API_KEY
        "#]],
    );
}

#[test]
fn a_gallery_of_one_team_and_a_row_of_a_database_are_that_team() {
    let definition =
        team("RoundRobinGroupChat", json!({"participants": [assistant("a", json!({}))], "max_turns": 1}));
    let yaml = imported(&definition).yaml;
    let gallery =
        json!({"name": "mine", "components": {"agents": [], "tools": ["add"], "teams": [definition]}});
    let row = json!({"id": 3, "user_id": "me", "component": definition});
    assert_eq!(imported(&row).yaml, yaml);
    let imported = imported(&gallery);
    assert!(imported.yaml.ends_with(yaml.split_once("\n\n").unwrap().1), "{}", imported.yaml);
    let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes, ["$.components.tools: left out: it is no part of the team"]);
}
