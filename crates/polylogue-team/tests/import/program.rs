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
    lacks(&other_sender, &["goes_on_from"]);
    let again = json!({"agents": agents, "chats": [chat("a", "c"), chat("b", "c"), kept("a", "c")]});
    holds(&again, &["message: Do it\n    goes_on_from: chat_1\n    participants: [a, c]"]);
    // The history of two agents is the same, whichever of them begins.
    let reversed = json!({"agents": agents, "chats": [chat("a", "c"), chat("b", "c"), kept("c", "a")]});
    holds(&reversed, &["goes_on_from: chat_1\n    participants: [c, a]"]);
}

#[test]
fn a_kept_history_of_a_group_is_the_same_for_every_sender() {
    let definition = json!({
        "agents": [quiet("a"), quiet("b"), quiet("c")],
        "groupchat": {"agents": ["b", "c"], "speaker_selection_method": "round_robin"},
        "chats": [chat("b", "manager"), kept("c", "manager")],
    });
    holds(&definition, &["goes_on_from: chat_1"]);
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
        &["stop: {says: DONE, max_messages: 7}"],
    );
    let usual = "stop: {says: {text: TERMINATE, whole: true}, max_messages: 7}";
    holds(&group(&json!({"name": "boss"})), &[usual]);
    holds(
        &group(&json!({"name": "boss", "is_termination_msg": "lambda x: 'DONE' in x['content']"})),
        &[
            usual,
            "# - $.manager.is_termination_msg: Python code is not carried over, and nothing of a definition is run: \
             give the text as `stop.says`",
        ],
    );
    // A manager can stand in the list of agents: it is no participant.
    let mut listed = group(&Value::Null);
    listed["agents"].as_array_mut().unwrap().push(
        json!({"name": "boss", "class": "autogen.GroupChatManager", "is_termination_msg": "DONE", "llm_config": {"model": "picker"}}),
    );
    holds(
        &listed,
        &[
            "stop: {says: DONE, max_messages: 7}",
            "participants: [a, b, c]",
            "pick: {model: {model: openai:picker}}",
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
            "pick: {model: {model: openai:picker}}",
            "- $.manager.system_message: left out: ",
            "- $.manager.human_input_mode: left out: ",
            "- $.manager.max_consecutive_auto_reply: left out: ",
            "- $.manager.default_auto_reply: left out: ",
            "- $.manager.code_execution_config: left out: ",
            "- $.manager.function_map: left out: ",
            "- $.manager.wings: not carried over: it is not known here",
        ],
    );
    // Without a model AutoGen takes the members in the order of the list.
    holds(
        &group(&json!({"name": "boss", "llm_config": false})),
        &["pick: round_robin", "- $.manager.llm_config: no model picks the speakers"],
    );
    let mut other = group(&json!({"name": "boss"}));
    other["initiate_chat"]["recipient"] = json!("bos");
    let refused = polylogue_team::import::import(&other.to_string(), "team.json").unwrap_err().to_string();
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
    holds(&two, &["stop: {says: DONE, max_messages: 10}"]);
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
            "- name: writer_chat\n    pattern: once_each\n    participants: [writer_chat_1, writer_chat_2]",
            "- name: writer_chat_1\n    participants: [writer, critic]",
            "- name: writer_chat_2\n    message: Again\n    carryover: {also: [Be brief]}\n    participants: [editor, critic]",
        ],
    );
    // Beside the agent, it means the same.
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
    holds(&by_code, &["- $.nested_chats[0]: left out with its chats: Python code is not carried over"]);
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
fn models_to_fall_back_on_are_refused_by_name() {
    let definition = json!({
        "llm_config": {"config_list": [{"model": "first"}, {"model": "second"}, {"model": "third", "api_type": "ollama"}]},
        "agents": [{"name": "a", "system_message": "A"}, {"name": "b", "system_message": "B"}],
    });
    holds(
        &definition,
        &[
            "- $.llm_config.config_list: `first` is taken; `second`, `third` are left out: a team file has no models to fall back on",
        ],
    );
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
    holds(&runner, &["# filename:", "```python", "reply TERMINATE", "with its instructions for code"]);
    // A user proxy of AutoGen runs code unless that is switched off.
    let usual = pair(json!({"name": "proxy", "class": "UserProxyAgent"}));
    holds(&usual, &["# filename:", "- $.agents[1]: it runs code in AutoGen, where nothing else is said"]);
    let off = pair(json!({"name": "proxy", "class": "UserProxyAgent", "code_execution_config": false}));
    lacks(&off, &["# filename:", "runs code in AutoGen"]);
    // Its own code is no partner's.
    let alone = json!({
        "llm_config": {"model": "m"},
        "agents": [{"name": "assistant", "code_execution_config": {}}, {"name": "other", "system_message": "O"}],
    });
    lacks(&alone, &["# filename:"]);
}
