//! What else an AutoGen 0.2 program declares: histories that are kept, managers, nested chats, lists of models, code.

use serde_json::{Value, json};

use crate::imported;

#[track_caller]
fn holds(definition: &Value, lines: &[&str]) {
    let imported = imported(definition);
    for line in lines {
        assert!(imported.yaml.contains(line), "no `{line}` in\n{}", imported.yaml);
    }
    assert_eq!(imported.problems.to_string(), "", "{}", imported.yaml);
}

#[track_caller]
fn lacks(definition: &Value, texts: &[&str]) {
    let yaml = imported(definition).yaml;
    for text in texts {
        assert!(!yaml.contains(text), "`{text}` in\n{yaml}");
    }
}

fn quiet(name: &str) -> Value {
    json!({"name": name, "system_message": name, "llm_config": {"model": "m"}})
}

fn chat(sender: &str, recipient: &str) -> Value {
    json!({"sender": sender, "recipient": recipient, "message": "Do it", "max_turns": 1})
}

fn kept(sender: &str, recipient: &str) -> Value {
    let mut chat = chat(sender, recipient);
    chat["clear_history"] = json!(false);
    chat
}

#[test]
fn a_kept_history_is_that_of_the_same_two_agents() {
    let agents = json!([quiet("a"), quiet("b"), quiet("c")]);
    let other_sender = json!({"agents": agents, "chats": [chat("a", "c"), kept("b", "c")]});
    lacks(&other_sender, &["continues"]);
    let again = json!({"agents": agents, "chats": [chat("a", "c"), chat("b", "c"), kept("a", "c")]});
    holds(&again, &["task: Do it\n    continues: chat_1\n    participants: [a, c]"]);
    // The history of two agents is the same, whichever of them begins.
    let reversed = json!({"agents": agents, "chats": [chat("a", "c"), chat("b", "c"), kept("c", "a")]});
    holds(&reversed, &["continues: chat_1\n    participants: [c, a]"]);
}

#[test]
fn a_kept_history_of_a_group_is_the_same_for_every_sender() {
    let definition = json!({
        "agents": [quiet("a"), quiet("b"), quiet("c")],
        "groupchat": {"agents": ["b", "c"], "speaker_selection_method": "round_robin"},
        "chats": [chat("b", "manager"), kept("c", "manager")],
    });
    holds(&definition, &["continues: chat_1"]);
}

fn group(manager: &Value) -> Value {
    json!({
        "agents": [quiet("a"), quiet("b"), quiet("c")],
        "groupchat": {"speaker_selection_method": "auto", "max_round": 7},
        "manager": manager,
        "initiate_chat": {"sender": "a", "recipient": "boss", "message": "Begin"},
    })
}

#[test]
fn the_manager_of_a_group_keeps_its_termination_predicate() {
    holds(
        &group(&json!({"name": "boss", "is_termination_msg": "DONE"})),
        &["stop: {says: DONE, max_turns: 6}"],
    );
    let usual = "stop: {says: {text: TERMINATE, whole: true}, max_turns: 6}";
    holds(&group(&json!({"name": "boss"})), &[usual]);
    holds(
        &group(&json!({"name": "boss", "is_termination_msg": "lambda x: 'DONE' in x['content']"})),
        &[
            usual,
            "# - $.manager.is_termination_msg: Python code is not converted, and nothing in a definition is executed: \
             give the text as `stop.says`",
        ],
    );
    // A manager can be in the list of agents: it is not a participant.
    let mut listed = group(&Value::Null);
    listed["agents"].as_array_mut().unwrap().push(
        json!({"name": "boss", "class": "autogen.GroupChatManager", "is_termination_msg": "DONE", "llm_config": {"model": "picker"}}),
    );
    holds(
        &listed,
        &[
            "stop: {says: DONE, max_turns: 6}",
            "participants: [a, b, c]",
            "select: {model: {model: openai:picker}}",
        ],
    );
}

#[test]
fn settings_of_a_manager_are_kept_or_refused_by_name() {
    let manager = json!({
        "name": "boss", "llm_config": {"model": "picker"}, "system_message": "Be strict.", "human_input_mode": "ALWAYS",
        "max_consecutive_auto_reply": 3, "default_auto_reply": "x", "code_execution_config": {"work_dir": "w"},
        "function_map": {"f": "g"}, "wings": 2,
    });
    holds(
        &group(&manager),
        &[
            "select: {model: {model: openai:picker}}",
            "- $.manager.system_message: left out: ",
            "- $.manager.human_input_mode: left out: ",
            "- $.manager.max_consecutive_auto_reply: left out: ",
            "- $.manager.default_auto_reply: left out: ",
            "- $.manager.code_execution_config: left out: ",
            "- $.manager.function_map: left out: ",
            "- $.manager.wings: not converted: unknown key",
        ],
    );
    // Without a model AutoGen takes the members in the order of the list.
    holds(
        &group(&json!({"name": "boss", "llm_config": false})),
        &["select: round_robin", "- $.manager.llm_config: no model picks the speakers"],
    );
    let mut other = group(&json!({"name": "boss"}));
    other["initiate_chat"]["recipient"] = json!("bos");
    let refused = polylogue_import::import(&other.to_string(), "team.json").unwrap_err().to_string();
    assert_eq!(
        refused,
        "$.initiate_chat.recipient: there is no agent `bos`; the manager of the group is `boss`"
    );
}

#[test]
fn a_group_that_no_chat_is_with_is_named_as_left_out() {
    let mut pair = group(&json!({"name": "boss"}));
    pair["initiate_chat"]["recipient"] = json!("b");
    holds(
        &pair,
        &[
            "- $.groupchat: left out: no chat is with the group",
            "- $.manager: left out: no chat is with the group",
        ],
    );
    // Without a chat, two agents with a manager are a group.
    let two = json!({"agents": [quiet("a"), quiet("b")], "manager": {"is_termination_msg": "DONE"}});
    holds(&two, &["stop: {says: DONE, max_turns: 9}"]);
    lacks(&two, &["left out"]);
}

#[test]
fn nested_chats_are_chats_that_reply_for_their_agent() {
    let definition = |nested: Value| {
        json!({
            "agents": [quiet("user"), quiet("writer"), quiet("critic"), quiet("editor")],
            "nested_chats": [nested],
            "initiate_chat": {"sender": "user", "recipient": "writer", "message": "Write", "max_turns": 2},
        })
    };
    let one = json!({"recipient": "critic", "max_turns": 1, "summary_method": "last_msg"});
    holds(
        &definition(json!({"agent": "writer", "trigger": "user", "chat_queue": [one]})),
        &[
            "- {chat: writer_chat, when: {from: [User]}}",
            "- name: writer_chat\n    participants: [writer, critic]",
        ],
    );
    let two = json!({"sender": "editor", "recipient": "critic", "message": "Again", "max_turns": 1, "carryover": "Be brief"});
    holds(
        &definition(json!({"agent": "writer", "trigger": ["user", "editor"], "chat_queue": [one, two]})),
        &[
            "- {chat: writer_chat, when: {from: [User, editor]}}",
            "- name: writer_chat\n    pattern: sequential\n    participants: [writer_chat_1, writer_chat_2]",
            "- name: writer_chat_1\n    participants: [writer, critic]",
            "- name: writer_chat_2\n    task: Again\n    carryover: {context: [Be brief]}\n    participants: [editor, critic]",
        ],
    );
    // Next to the agent, it means the same.
    let mut own = definition(Value::Null);
    own["nested_chats"] = Value::Null;
    own["agents"][1]["nested_chats"] = json!([{"trigger": "user", "chat_queue": [one]}]);
    holds(&own, &["- {chat: writer_chat, when: {from: [User]}}"]);
}

#[test]
fn nested_chats_that_need_code_are_refused_by_name() {
    let definition = |nested: Value| {
        json!({
            "agents": [quiet("a"), quiet("b"), quiet("c")], "nested_chats": [nested],
            "initiate_chat": {"sender": "a", "recipient": "b", "message": "Write", "max_turns": 2},
        })
    };
    let queue = json!([{"recipient": "c", "max_turns": 1}, {"recipient": "c", "max_turns": 1}]);
    let by_code =
        definition(json!({"agent": "b", "trigger": "lambda sender: sender is not c", "chat_queue": queue}));
    holds(&by_code, &["- $.nested_chats[0]: left out with its chats: Python code is not converted"]);
    lacks(&by_code, &["nested:"]);
    let settings = definition(json!({
        "agent": "b", "trigger": "a", "chat_queue": queue, "reply_func_from_nested_chats": "my_reply", "position": 4, "use_async": true,
    }));
    holds(
        &settings,
        &[
            "- $.nested_chats[0].reply_func_from_nested_chats: Python code",
            "- $.nested_chats[0].position: left out: ",
            "- $.nested_chats[0].use_async: left out: ",
            "- $.nested_chats[0].chat_queue[1]: left out: AutoGen skips a chat without a `message` that is not the first",
        ],
    );
}

#[test]
fn the_models_of_a_list_are_fallbacks_with_the_parameters_of_the_first() {
    let definition = json!({
        "llm_config": {"temperature": 0.5, "config_list": [
            {"model": "first", "api_key": "x"}, {"model": "first", "api_key": "y"}, {"model": "second", "temperature": 1},
            {"model": "third", "api_type": "ollama"}]},
        "agents": [{"name": "a", "system_message": "A"}, {"name": "b", "system_message": "B"}],
    });
    holds(
        &definition,
        &[
            "\nmodel: [openai:first, openai:second, ollama:third]\n",
            "- $.llm_config.config_list[2]: its parameters are left out: the models of a list share those of the first",
            "parameters: {temperature: 0.5}",
        ],
    );
    lacks(&definition, &["temperature: 1", "config_list[1]", "config_list[3]"]);
    let filtered = json!({
        "llm_config": {
            "config_list": [{"model": "first", "tags": ["dear"]}, {"model": "second", "tags": ["cheap", "fast"]}],
            "filter_dict": {"tags": ["fast"]},
        },
        "agents": [{"name": "a", "system_message": "A"}, {"name": "b", "system_message": "B"}],
    });
    holds(&filtered, &["model: openai:second"]);
    lacks(&filtered, &["# - $"]);
}

#[test]
fn the_usual_assistant_keeps_its_instructions_for_code_when_its_partner_runs_code() {
    let pair = |proxy: Value| {
        json!({
            "llm_config": {"model": "m"},
            "agents": [{"name": "assistant", "class": "AssistantAgent"}, proxy],
            "initiate_chat": {"sender": "proxy", "recipient": "assistant", "message": "Plot it"},
        })
    };
    let runner =
        pair(json!({"name": "proxy", "class": "UserProxyAgent", "code_execution_config": {"work_dir": "x"}}));
    holds(&runner, &["# filename:", "```python", "reply TERMINATE", "with instructions for code"]);
    // A user proxy of AutoGen runs code unless that is switched off.
    let usual = pair(json!({"name": "proxy", "class": "UserProxyAgent"}));
    holds(&usual, &["# filename:", "- $.agents[1]: it runs code in AutoGen, where nothing else is said"]);
    let off = pair(json!({"name": "proxy", "class": "UserProxyAgent", "code_execution_config": false}));
    lacks(&off, &["# filename:", "runs code in AutoGen"]);
    // Its own code is not a partner's.
    let alone = json!({
        "llm_config": {"model": "m"},
        "agents": [{"name": "assistant", "code_execution_config": {}}, {"name": "other", "system_message": "O"}],
    });
    lacks(&alone, &["# filename:"]);
}

#[test]
fn an_agent_that_runs_code_runs_it_in_the_sandbox() {
    let runs = |config: Value| {
        json!({
            "llm_config": {"model": "m"},
            "agents": [quiet("a"), {"name": "b", "llm_config": false, "human_input_mode": "NEVER", "code_execution_config": config}],
        })
    };
    holds(
        &runs(json!({"last_n_messages": 3, "work_dir": "w", "use_docker": "python:3", "timeout": 60})),
        &[
            "code_execution: {last: 3, timeout: \"60 s\"}",
            "- $.agents[1].code_execution_config.work_dir: left out: every conversation has its own work directory; `run --dir FOLDER` sets another",
            "- $.agents[1].code_execution_config.use_docker: left out: code runs in the sandbox of this machine",
        ],
    );
    let plain = runs(json!({"last_n_messages": "auto", "use_docker": false}));
    holds(&plain, &["code_execution: true"]);
    lacks(&plain, &["# - $.agents[1]"]);
    holds(
        &runs(json!({"executor": "commandline-local", "commandline-local": {"timeout": 5, "work_dir": "w"}})),
        &[
            "code_execution: {timeout: \"5 s\"}",
            "- $.agents[1].code_execution_config[\"commandline-local\"].work_dir: left out",
        ],
    );
    holds(
        &runs(json!({"executor": {"class": "autogen.coding.LocalCommandLineCodeExecutor", "timeout": 7}})),
        &["code_execution: {timeout: \"7 s\"}"],
    );
    holds(
        &runs(json!({"executor": "ipython-embedded"})),
        &[
            "code_execution: true",
            "- $.agents[1].code_execution_config.executor: `ipython-embedded` is left out",
        ],
    );
    holds(&runs(json!({"timeout": 0.25})), &["code_execution: {timeout: \"250 ms\"}"]);
    holds(&runs(json!({"timeout": 0})), &["code_execution: {timeout: \"1 ms\"}"]);
    holds(&runs(json!({"timeout": 1e14})), &["code_execution: {timeout: \"86400 s\"}"]);
    let blind = runs(json!({"last_n_messages": 0}));
    holds(
        &blind,
        &["- $.agents[1].code_execution_config: left out: an agent that looks at no message runs no code"],
    );
    lacks(&blind, &["runs_code"]);
    lacks(&runs(json!(false)), &["runs_code"]);
    // A user proxy runs code where nothing is said, and a whole program no key of its own.
    let usual = json!({"llm_config": {"model": "m"}, "agents": [quiet("a"), {"name": "p", "class": "UserProxyAgent"}]});
    holds(
        &usual,
        &["code_execution: true", "- $.agents[1]: it runs code in AutoGen, where nothing else is said"],
    );
    let whole = json!({"code_execution_config": {"work_dir": "w"}, "coding": true, "agents": [quiet("a"), quiet("b")]});
    holds(&whole, &["- $.code_execution_config: left out: ", "- $.coding: left out: "]);
    lacks(&whole, &["code_execution: true\n"]);
}

#[test]
fn a_class_that_does_more_than_those_that_are_converted_is_named() {
    let agent = |class: &str| json!({"class": class, "name": "a", "system_message": "A"});
    for (class, usual, human_input) in [
        ("RetrieveUserProxyAgent", "UserProxyAgent", "always"),
        ("autogen.agentchat.contrib.MultimodalConversableAgent", "ConversableAgent", "terminate"),
        ("GPTAssistantAgent", "AssistantAgent", "never"),
        ("AsistantAgent", "AssistantAgent", "never"),
    ] {
        let note = format!("# - $.agents[0].class: `{class}` is converted as `{usual}`: ");
        let definition = json!({"agents": [agent(class), quiet("b")], "initiate_chat": chat("a", "b")});
        holds(&definition, &[&note, &format!("human_input: {human_input}")]);
    }
    for class in ["AssistantAgent", "autogen.UserProxyAgent", "user_proxy", "conversable", ""] {
        lacks(&json!({"agents": [agent(class), quiet("b")], "initiate_chat": chat("a", "b")}), &[".class"]);
    }
}

#[test]
fn every_key_that_is_left_out_is_named() {
    let entry = json!({"model": "m", "tags": ["t"], "cache_seed": 1, "model_client_cls": "C", "azure_ad_token_provider": "p"});
    let definition = json!({
        "cache_seed": 41,
        "llm_config": {"config_list": [entry], "cache_seed": 42, "cache": {"a": 1}, "context": {"a": 1}, "use_cache": true},
        "agents": [
            {"name": "a", "system_message": "A", "tags": ["t"], "silent": true, "admin_name": "x"},
            {"name": "b", "system_message": "B"},
        ],
        "groupchat": {"speaker_selection_method": "round_robin", "admin_name": "x", "select_speaker_auto_verbose": true},
        "manager": {"name": "boss", "silent": true, "description": "d"},
        "initiate_chat": {
            "sender": "a", "recipient": "boss", "message": "Hi", "silent": true, "verbose": true, "cache": {"a": 1},
            "prerequisites": [1], "clear_history": false,
            "summary_method": "reflection_with_llm", "summary_args": {"summary_role": "system", "cache": {"a": 1}},
        },
    });
    let entry = "$.llm_config.config_list[0]";
    let mut keys = vec![
        "$.cache_seed".to_owned(),
        "$.initiate_chat: `clear_history: false` is left out".to_owned(),
        "$.initiate_chat.summary_args.summary_role".to_owned(),
        "$.initiate_chat.summary_args.cache".to_owned(),
    ];
    keys.extend(["cache_seed", "cache", "context", "use_cache"].map(|key| format!("$.llm_config.{key}")));
    keys.extend(
        ["tags", "cache_seed", "model_client_cls", "azure_ad_token_provider"]
            .map(|key| format!("{entry}.{key}")),
    );
    keys.extend(["tags", "silent", "admin_name"].map(|key| format!("$.agents[0].{key}")));
    keys.extend(["admin_name", "select_speaker_auto_verbose"].map(|key| format!("$.groupchat.{key}")));
    keys.extend(["silent", "description"].map(|key| format!("$.manager.{key}")));
    keys.extend(["silent", "verbose", "cache", "prerequisites"].map(|key| format!("$.initiate_chat.{key}")));
    let lines: Vec<String> = keys.iter().map(|key| format!("# - {key}")).collect();
    holds(&definition, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    // What says nothing is not named.
    let quiet = json!({
        "agents": [quiet("a"), quiet("b")],
        "initiate_chat": {"sender": "a", "recipient": "b", "message": "Hi", "silent": false, "clear_history": true, "cache": null,
            "summary_method": "reflection_with_llm", "summary_args": {"summary_role": "user"}},
    });
    lacks(&quiet, &["# - $"]);
}

#[test]
fn a_key_that_does_not_count_next_to_others_is_named() {
    let agents = json!([quiet("a"), quiet("b")]);
    let group = json!({
        "agents": agents,
        "groupchat": {
            "speaker_selection_method": "round_robin", "select_speaker_prompt_template": "Pick.", "max_retries_for_selecting_speaker": 1,
            "speaker_transitions_type": "allowed", "enable_clear_history": true, "is_termination_msg": "DONE",
        },
        "manager": {"name": "boss", "llm_config": {"model": "m"}, "is_termination_msg": "END"},
        "initiate_chat": {"sender": "a", "recipient": "boss", "message": "Hi", "max_turns": 1},
    });
    holds(
        &group,
        &[
            "- $.groupchat.select_speaker_prompt_template: left out: no model selects the speakers",
            "- $.groupchat.max_retries_for_selecting_speaker: left out: ",
            "- $.groupchat.speaker_transitions_type: left out: there are no transitions",
            "- $.groupchat.enable_clear_history: left out: ",
            "- $.groupchat.is_termination_msg: left out: that of the manager counts",
            "- $.manager.llm_config: no model selects the speakers",
            "- $.initiate_chat.max_turns: left out: the turns of a group are limited by its `max_round`",
            "stop: {says: END, max_turns: 9}",
        ],
    );
    let chats = json!({
        "agents": agents, "task": "Talk", "config_list": [{"model": "x"}], "llm_config": {"model": "m"},
        "initiate_chat": {
            "sender": "a", "recipient": {"name": "b", "system_message": "B"}, "message": "Hi", "summary_prompt": "Sum up.",
        },
    });
    holds(
        &chats,
        &[
            "- $.task: left out: the task is the message of the chat",
            "- $.config_list: left out: the models are those of `llm_config`",
            "- $.initiate_chat.recipient: only its name is read",
            "- $.initiate_chat.summary_prompt: left out: ",
            "task: Hi",
        ],
    );
    let first = json!({"agents": agents, "chats": [kept("a", "b"), kept("a", "b")]});
    holds(&first, &["- $.chats[0]: `clear_history: false` is left out: ", "continues: chat_1"]);
    lacks(&first, &["- $.chats[1]"]);
    let silent = |more: Value| {
        let mut agent = json!({"name": "b", "llm_config": false, "human_input_mode": "NEVER"});
        agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"agents": [quiet("a"), agent]})
    };
    let unread = silent(json!({"system_message": "You run code.", "model": "m"}));
    holds(&unread, &["- $.agents[1].system_message: left out: ", "- $.agents[1].model: left out: "]);
    let code = json!({"timeout": 9, "executor": {"timeout": 1e9}});
    holds(
        &silent(json!({"code_execution_config": code})),
        &[
            "- $.agents[1].code_execution_config.timeout: left out: that of the executor counts",
            "- $.agents[1].code_execution_config.executor.timeout: changed: a time is from 1 ms to 24 h here",
        ],
    );
}

#[test]
fn models_that_are_not_named_keep_their_parameters() {
    let definition = |llm: Value| json!({"llm_config": llm, "agents": [{"name": "a", "system_message": "A"}, {"name": "b", "system_message": "B"}]});
    holds(
        &definition(
            json!({"config_list": "OAI_CONFIG_LIST", "filter_dict": {"tags": ["t"]}, "temperature": 0.5}),
        ),
        &[
            "- $.llm_config.config_list: left out: the list is kept elsewhere",
            "- $.llm_config.filter_dict: left out: ",
            "parameters: {temperature: 0.5}",
        ],
    );
    holds(&definition(json!({"config_list": [{"temperature": 0.5}]})), &["parameters: {temperature: 0.5}"]);
    let again = json!({"config_list": [{"model": "m", "price": [1, 2]}, {"model": "m", "temperature": 1, "price": [3, 4]}]});
    holds(
        &definition(again),
        &[
            "- $.llm_config.config_list[1]: its parameters are left out: ",
            "- $.llm_config.config_list[1].price: left out: ",
            "model: openai:m\n",
        ],
    );
    let picked = json!({
        "default_llm_config": {"config_list": [{"model": "x"}, {"model": "y"}]},
        "agent_configs": [{"name": "a", "system_message": "A", "model": ["z"]}, {"name": "b", "system_message": "B", "llm_config": {}, "model": ["v", "w"]}],
    });
    holds(
        &picked,
        &[
            "- $.default_llm_config.config_list: all of its models are taken: none is `z`",
            "- $.agent_configs[1].llm_config: the model `w` is left out: ",
            "model: [openai:x, openai:y]",
            "model: openai:v",
        ],
    );
    holds(&json!({"agents": [{"name": "a", "system_message": "A", "model": "m"}]}), &["model: openai:m"]);
}

#[test]
fn an_empty_reply_counts_for_a_limit_as_in_autogen() {
    let pair = json!({
        "agents": [quiet("a"), {"name": "b", "llm_config": false, "human_input_mode": "NEVER"}],
        "initiate_chat": {"sender": "b", "recipient": "a", "message": "Hi", "max_turns": 2},
    });
    // A question, which is not a turn here, an answer, an empty question, an answer.
    holds(&pair, &["stop: {max_turns: 3}"]);
    holds(&group(&json!({"name": "boss"})), &["max_turns: 6}"]);
    let one = json!({"agents": [quiet("a"), quiet("b")], "groupchat": {"max_round": 1}});
    holds(&one, &["max_messages: 1}"]);
}

#[test]
fn the_model_that_picks_reads_the_descriptions_of_autogen() {
    let definition = |method: &str| {
        json!({
            "llm_config": {"model": "m"},
            "agents": [
                {"name": "coder", "system_message": "You write code."},
                {"name": "critic", "system_message": "You score.", "description": "Scores."},
                {"name": "helper", "class": "AssistantAgent"},
                {"name": "always", "class": "UserProxyAgent", "code_execution_config": false},
                {"name": "terminal", "class": "UserProxyAgent", "human_input_mode": "NEVER", "code_execution_config": {}},
            ],
            "groupchat": {"speaker_selection_method": method},
        })
    };
    holds(
        &definition("auto"),
        &[
            "name: coder\n    description: You write code.\n",
            "name: critic\n    description: Scores.\n",
            "name: helper\n    description: A general assistant that writes text and code\n",
            "name: always\n    description: A person who answers questions and can run code\n",
            "name: terminal\n    description: \"A computer terminal that runs code it is given, and does nothing else\"\n",
        ],
    );
    lacks(&definition("round_robin"), &["description: You", "description: A "]);
}

#[test]
fn functions_are_left_out_with_what_replaces_them() {
    let functions =
        json!([{"name": "sh", "description": "Runs a script.", "parameters": {"type": "object"}}]);
    let team = json!({
        "agents": [
            {"name": "a", "class": "AssistantAgent", "llm_config": {"model": "m", "functions": functions}},
            {"name": "b", "class": "UserProxyAgent", "human_input_mode": "NEVER", "function_map": {"sh": "exec_sh"}},
        ],
        "initiate_chat": {"sender": "b", "recipient": "a", "message": "Hi", "max_turns": 1},
    });
    for place in ["agents[0].llm_config.functions", "agents[1].function_map"] {
        let note = format!(
            "- $.{place}: Python code is not converted, and nothing in a definition is executed: make programs tools"
        );
        holds(&team, &[&note]);
    }
}

#[test]
fn the_model_of_the_recipient_sums_up() {
    let agent = |name: &str, model: &str| json!({"name": name, "system_message": name, "llm_config": {"model": model, "temperature": 0.5}});
    let chat = |recipient: &str| {
        json!({"sender": "a", "recipient": recipient, "message": "Hi", "max_turns": 1, "summary_method": "reflection_with_llm",
            "summary_args": {"summary_prompt": "Sum up.", "summary_role": "user"}})
    };
    let two = json!({"agents": [agent("a", "one"), agent("b", "two")], "initiate_chat": chat("b")});
    holds(
        &two,
        &["summary: {reflect: {model: openai:two, parameters: {temperature: 0.5}, prompt: Sum up.}}"],
    );
    let without = json!({"agents": [agent("a", "one"), {"name": "b", "llm_config": false}], "initiate_chat": chat("b")});
    holds(
        &without,
        &["model: openai:one", "summary: {reflect: {parameters: {temperature: 0.5}, prompt: Sum up.}}"],
    );
    let managed = json!({
        "agents": [agent("a", "one"), agent("b", "two")],
        "groupchat": {"speaker_selection_method": "round_robin"},
        "manager": {"name": "boss", "llm_config": {"model": "three"}},
        "initiate_chat": chat("boss"),
    });
    holds(&managed, &["summary: {reflect: {model: openai:three, prompt: Sum up.}}"]);
}
